#include "gradflow/distributed/round_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/status.h"

namespace gradflow::distributed {
namespace {

// Failed rounds that are kept for ranks that have not arrived.
constexpr size_t kMaxRounds = 100000;

std::string RanksOf(const std::vector<RoundTable::Member>& members) {
  std::set<int> ranks;
  for (const RoundTable::Member& member : members) ranks.insert(member.rank);
  return absl::StrJoin(ranks, ", ");
}

}  // namespace

bool RoundTable::HasMember(const Round& round, int rank) {
  return std::any_of(round.members.begin(), round.members.end(),
                     [&](const Member& member) { return member.rank == rank; });
}

std::string RoundTable::Missing(const Round& round) const {
  if (round.header.group_size < size_) {
    return absl::StrCat(round.members.size(), " of ", round.header.group_size,
                        " ranks arrived: ", RanksOf(round.members));
  }
  std::vector<int> missing;
  for (int rank = 0; rank < size_; ++rank) {
    if (!HasMember(round, rank)) missing.push_back(rank);
  }
  return absl::StrCat(missing.size() == 1 ? "rank " : "ranks ", absl::StrJoin(missing, ", "),
                      " did not arrive");
}

RoundTable::Events RoundTable::Join(int rank, Collectives::CallId call, const CallHeader& header,
                                    Time now) {
  Events events;
  const Member member = {rank, call, header.group_rank, header.is_sender != 0};
  const Key key = KeyOf(header);
  Rounds::iterator round = rounds_.end();
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    for (const Rounds::iterator candidate : found->second) {
      if (candidate->state == State::kStarted || HasMember(*candidate, rank)) continue;
      round = candidate;
      break;
    }
  }
  if (round != rounds_.end() && round->state == State::kFailed) {
    round->members.push_back(member);
    events.push_back({round->status, {member}, 0, {}, {}});
    if (static_cast<int>(round->members.size()) >= round->header.group_size) Erase(round);
    return events;
  }
  if (round == rounds_.end()) {
    if (rounds_.size() >= kMaxRounds) ForgetOldest();
    round = rounds_.emplace(rounds_.end());
    round->number = next_number_++;
    round->key = key;
    round->header = header;
    round->timeout = std::chrono::milliseconds(header.timeout_ms);
    round->deadline = now + round->timeout;
    by_key_[key].push_back(round);
  }
  const auto prefix = [&] { return absl::StrCat(DebugString(round->header), ": "); };
  round->members.push_back(member);
  round->deadline = std::min(round->deadline, now + std::chrono::milliseconds(header.timeout_ms));
  const Member& first = round->members.front();
  if (absl::Status status = CompareHeaders(round->header, first.rank, header, rank); !status.ok()) {
    Fail(round, errors::Prefix(prefix(), status), now, &events);
  } else if (header.group_size > size_) {
    Fail(round,
         errors::InvalidArgument(prefix(), "group_size is ", header.group_size, ", but there are ",
                                 size_, " ranks"),
         now, &events);
  } else if (header.group_size > size_ - static_cast<int>(lost_.size())) {
    Fail(round, absl::UnavailableError(absl::StrCat(prefix(), why_lost_)), now, &events);
  } else if (static_cast<int>(round->members.size()) == header.group_size) {
    Start(round, now, &events);
  }
  return events;
}

void RoundTable::Start(Rounds::iterator round, Time now, Events* events) {
  std::vector<Member>& members = round->members;
  const bool states_ranks = std::any_of(members.begin(), members.end(),
                                        [](const Member& m) { return m.group_rank >= 0; });
  std::sort(members.begin(), members.end(), [&](const Member& a, const Member& b) {
    return std::make_pair(a.group_rank, a.rank) < std::make_pair(b.group_rank, b.rank);
  });
  const auto prefix = [&] { return absl::StrCat(DebugString(round->header), ": "); };
  for (size_t i = 0; i < members.size() && states_ranks; ++i) {
    if (members[i].group_rank == static_cast<int>(i)) continue;
    Fail(round,
         errors::InvalidArgument(prefix(), "ranks ", RanksOf(members), " are the ranks ",
                                 absl::StrJoin(members, ", ",
                                               [](std::string* out, const Member& m) {
                                                 absl::StrAppend(out, m.group_rank);
                                               }),
                                 " of the group, but each must have a rank of its own"),
         now, events);
    return;
  }
  if (static_cast<CollectiveType>(round->header.type) == CollectiveType::kBroadcast) {
    std::vector<Member> senders = members;
    senders.erase(std::remove_if(senders.begin(), senders.end(),
                                 [](const Member& m) { return !m.is_sender; }),
                  senders.end());
    if (senders.size() != 1) {
      Fail(round,
           errors::InvalidArgument(prefix(), "one rank must send, but ",
                                   senders.empty()
                                       ? absl::StrCat("ranks ", RanksOf(members), " all receive")
                                       : absl::StrCat("ranks ", RanksOf(senders), " send")),
           now, events);
      return;
    }
  }
  round->state = State::kStarted;
  const Time deadline = std::exchange(round->deadline, Time::max());
  started_.emplace(round->number, round);
  events->push_back({absl::OkStatus(), members, round->number, round->header, deadline});
}

RoundTable::Events RoundTable::Finish(int64_t number, const absl::Status& status) {
  Events events;
  const auto found = started_.find(number);
  if (found == started_.end()) return events;
  const Rounds::iterator round = found->second;
  started_.erase(found);
  if (!status.ok()) {
    events.push_back({errors::Prefix(absl::StrCat(DebugString(round->header), ": "), status),
                      round->members,
                      0,
                      {},
                      {}});
  }
  Erase(round);
  return events;
}

int64_t RoundTable::Cancel(int rank, Collectives::CallId call, Time now, Events* events) {
  for (auto round = rounds_.begin(); round != rounds_.end(); ++round) {
    const auto is_member = [&](const Member& m) { return m.rank == rank && m.call == call; };
    if (!std::any_of(round->members.begin(), round->members.end(), is_member)) continue;
    if (round->state == State::kStarted) return round->number;
    if (round->state == State::kWaiting) {
      Fail(round,
           absl::CancelledError(absl::StrCat(DebugString(round->header), ": the run of rank ", rank,
                                             " was stopped")),
           now, events);
    }
    return 0;
  }
  return 0;
}

RoundTable::Events RoundTable::Lose(int rank, const std::string& why, Time now) {
  Events events;
  lost_.insert(rank);
  why_lost_ = absl::StrCat("rank ", rank, " is lost: ", why);
  for (auto round = rounds_.begin(); round != rounds_.end();) {
    const auto current = round++;
    if (current->state != State::kWaiting) continue;
    const bool needs_it = HasMember(*current, rank) ||
                          current->header.group_size > size_ - static_cast<int>(lost_.size());
    if (!needs_it) continue;
    Fail(current,
         absl::UnavailableError(absl::StrCat(DebugString(current->header), ": ", why_lost_)), now,
         &events);
  }
  return events;
}

RoundTable::Events RoundTable::Expire(Time now) {
  Events events;
  for (auto round = rounds_.begin(); round != rounds_.end();) {
    const auto current = round++;
    if (current->deadline > now) continue;
    if (current->state == State::kFailed) {
      Erase(current);
    } else if (current->state == State::kWaiting) {
      Fail(current,
           absl::DeadlineExceededError(absl::StrCat(DebugString(current->header), ": ",
                                                    Missing(*current), " within ",
                                                    current->timeout.count(), " ms")),
           now, &events);
    }
  }
  return events;
}

RoundTable::Time RoundTable::NextDeadline() const {
  Time next = Time::max();
  for (const Round& round : rounds_) next = std::min(next, round.deadline);
  return next;
}

void RoundTable::Fail(Rounds::iterator round, absl::Status status, Time now, Events* events) {
  round->state = State::kFailed;
  round->status = status;
  round->deadline = now + round->timeout;
  events->push_back({std::move(status), round->members, 0, {}, {}});
  if (static_cast<int>(round->members.size()) >= round->header.group_size) Erase(round);
}

void RoundTable::Erase(Rounds::iterator round) {
  const auto found = by_key_.find(round->key);
  found->second.remove(round);
  if (found->second.empty()) by_key_.erase(found);
  rounds_.erase(round);
}

void RoundTable::ForgetOldest() {
  for (auto round = rounds_.begin(); round != rounds_.end(); ++round) {
    if (round->state != State::kFailed) continue;
    Erase(round);
    return;
  }
}

}  // namespace gradflow::distributed
