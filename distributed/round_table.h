// RoundTable: matches the calls of the ranks to rounds.
//
// A round has the calls of all ranks of a group with the same keys. It starts when the last rank
// has arrived and all headers agree. Otherwise it fails, and then all ranks that have arrived get
// the error. A rank that arrives at a failed round gets the error at once. A failed round is
// forgotten when all ranks have the error, or when the timeout of its calls has passed since it
// failed; a rank that arrives later opens a new round, and times out by itself.
//
// The table reads no clock and holds no tensors, so its tests need no threads.
//
// Thread safety: none; the owner has a mutex.
#ifndef GRADFLOW_DISTRIBUTED_ROUND_TABLE_H_
#define GRADFLOW_DISTRIBUTED_ROUND_TABLE_H_

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "gradflow/core/collectives.h"
#include "gradflow/distributed/call_header.h"

namespace gradflow::distributed {

class RoundTable {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // A call of a rank.
  struct Member {
    int rank = 0;
    Collectives::CallId call = 0;
    // The rank that the call states, or -1.
    int group_rank = -1;
    bool is_sender = false;
  };

  // A change: a round has started, or calls have ended with an error.
  struct Event {
    absl::Status status;
    // The members in the order of the group if the round has started; otherwise the members that
    // get the error.
    std::vector<Member> members;
    // If the round has started: its number, and a header of the round.
    int64_t round = 0;
    CallHeader header;
    // If the round has started: the time at which its calls fail.
    Time deadline;
  };
  using Events = std::vector<Event>;

  // `size` is the number of ranks of the run.
  explicit RoundTable(int size) : size_(size) {}

  // Adds a call. A rank may have several calls with the same keys; they belong to consecutive
  // rounds. REQUIRES: 0 <= rank < size; CheckHeader(header) is OK
  Events Join(int rank, Collectives::CallId call, const CallHeader& header, Time now);
  // Ends a round that has started. With an error, ends its calls.
  Events Finish(int64_t round, const absl::Status& status);
  // Fails the round of a call that has not started. Returns the number of the round if it has
  // started, for the owner to decide, and 0 otherwise.
  int64_t Cancel(int rank, Collectives::CallId call, Time now, Events* events);
  // Fails all rounds of a rank that is lost. Later calls of groups that need it fail at once.
  // Rounds that have started are the owner's business.
  Events Lose(int rank, const std::string& why, Time now);
  // Fails the rounds whose time is over.
  Events Expire(Time now);
  // Returns the time at which Expire() has something to do; Time::max() for never.
  Time NextDeadline() const;
  // Returns the ranks that are lost.
  const std::set<int>& lost() const { return lost_; }
  // Returns the number of rounds, including failed rounds that some rank has not seen.
  size_t num_rounds() const { return rounds_.size(); }

 private:
  using Key = std::tuple<int64_t, int32_t, int64_t>;
  enum class State { kWaiting, kStarted, kFailed };
  struct Round {
    int64_t number = 0;
    Key key;
    State state = State::kWaiting;
    CallHeader header;
    std::vector<Member> members;
    // While waiting: when the round fails. Afterwards: when it is forgotten.
    Time deadline;
    std::chrono::milliseconds timeout{0};
    absl::Status status;
  };
  using Rounds = std::list<Round>;

  static Key KeyOf(const CallHeader& header) {
    return {header.group_key, header.subgroup, header.instance_key};
  }
  static bool HasMember(const Round& round, int rank);
  // "1, 2": the ranks of the run that have not arrived. "2 of 3 ranks arrived: 0, 2" for groups
  // whose ranks are not known.
  std::string Missing(const Round& round) const;
  void Fail(Rounds::iterator round, absl::Status status, Time now, Events* events);
  // Starts a round that all ranks have joined, or fails it.
  void Start(Rounds::iterator round, Time now, Events* events);
  void Erase(Rounds::iterator round);
  void ForgetOldest();

  const int size_;
  int64_t next_number_ = 1;
  Rounds rounds_;
  // The rounds of each key, in their order.
  std::map<Key, std::list<Rounds::iterator>> by_key_;
  std::map<int64_t, Rounds::iterator> started_;
  std::set<int> lost_;
  std::string why_lost_;
};

}  // namespace gradflow::distributed

#endif  // GRADFLOW_DISTRIBUTED_ROUND_TABLE_H_
