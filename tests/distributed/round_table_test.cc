#include "gradflow/distributed/round_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "gradflow/core/tensor.h"
#include "gradflow/distributed/call_header.h"
#include "gradflow/testing/status_matchers.h"

namespace gradflow {
namespace distributed {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::StatusIs;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const RoundTable::Time kStart = RoundTable::Time() + std::chrono::hours(1);

CollectiveCall Call(int group_size, int64_t instance = 7) {
  CollectiveCall call;
  call.op = "CollectiveReduceV2";
  call.type = CollectiveType::kReduce;
  call.group_size = group_size;
  call.group_key = 1;
  call.instance_key = instance;
  call.timeout = milliseconds(100);
  call.input = Tensor(DT_FLOAT, {2, 3});
  return call;
}

CallHeader Header(int group_size, int64_t instance = 7) {
  return HeaderOf(Call(group_size, instance));
}

std::vector<int> RanksOf(const RoundTable::Event& event) {
  std::vector<int> ranks;
  for (const RoundTable::Member& member : event.members) ranks.push_back(member.rank);
  return ranks;
}

TEST(RoundTable, StartsWhenTheLastRankArrives) {
  RoundTable table(3);
  EXPECT_THAT(table.Join(2, 20, Header(3), kStart), IsEmpty());
  EXPECT_THAT(table.Join(0, 10, Header(3), kStart), IsEmpty());
  const RoundTable::Events events = table.Join(1, 15, Header(3), kStart);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_THAT(events[0].status, IsOk());
  EXPECT_THAT(RanksOf(events[0]), ElementsAre(0, 1, 2));
  EXPECT_EQ(events[0].members[2].call, 20);
  EXPECT_EQ(table.NextDeadline(), RoundTable::Time::max());
  EXPECT_THAT(table.Finish(events[0].round, absl::OkStatus()), IsEmpty());
  EXPECT_EQ(table.num_rounds(), 0);
}

TEST(RoundTable, MatchesByKeysInAnyOrder) {
  RoundTable table(2);
  EXPECT_THAT(table.Join(0, 1, Header(2, 7), kStart), IsEmpty());
  EXPECT_THAT(table.Join(0, 2, Header(2, 8), kStart), IsEmpty());
  EXPECT_EQ(table.Join(1, 3, Header(2, 8), kStart).at(0).header.instance_key, 8);
  EXPECT_EQ(table.Join(1, 4, Header(2, 7), kStart).at(0).header.instance_key, 7);
}

TEST(RoundTable, CallsWithTheSameKeysBelongToConsecutiveRounds) {
  RoundTable table(2);
  EXPECT_THAT(table.Join(0, 1, Header(2), kStart), IsEmpty());
  EXPECT_THAT(table.Join(0, 2, Header(2), kStart), IsEmpty());
  EXPECT_EQ(table.Join(1, 3, Header(2), kStart).at(0).members.at(0).call, 1);
  // The first round has started and has not been finished.
  EXPECT_EQ(table.Join(1, 4, Header(2), kStart).at(0).members.at(0).call, 2);
}

TEST(RoundTable, StatedRanksGiveTheOrder) {
  RoundTable table(2);
  CollectiveCall call = Call(2);
  call.group_rank = 1;
  table.Join(0, 1, HeaderOf(call), kStart);
  call.group_rank = 0;
  EXPECT_THAT(RanksOf(table.Join(1, 2, HeaderOf(call), kStart).at(0)), ElementsAre(1, 0));
  table.Join(0, 3, HeaderOf(call), kStart);
  EXPECT_THAT(table.Join(1, 4, HeaderOf(call), kStart).at(0).status,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "CollectiveReduceV2, group 1, instance 7: ranks 0, 1 are the ranks 0, 0 of "
                       "the group, but each must have a rank of its own"));
}

TEST(RoundTable, NamesTheDifference) {
  const auto error = [](auto change) {
    RoundTable table(2);
    table.Join(0, 1, Header(2), kStart);
    CollectiveCall call = Call(2);
    change(&call);
    const RoundTable::Events events = table.Join(1, 2, HeaderOf(call), kStart);
    EXPECT_THAT(events, SizeIs(1));
    EXPECT_THAT(RanksOf(events.at(0)), ElementsAre(0, 1));
    EXPECT_THAT(events.at(0).status, StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_EQ(table.num_rounds(), 0);
    return std::string(events.at(0).status.message());
  };
  const std::string prefix = "CollectiveReduceV2, group 1, instance 7: ";
  EXPECT_EQ(error([](CollectiveCall* call) { call->type = CollectiveType::kGather; }),
            prefix + "rank 1 has operation gather, but rank 0 has operation reduce");
  EXPECT_EQ(error([](CollectiveCall* call) { call->merge = CollectiveMerge::kMax; }),
            prefix + "rank 1 has merge_op Max, but rank 0 has merge_op Add");
  EXPECT_EQ(error([](CollectiveCall* call) { call->final = CollectiveFinal::kDiv; }),
            prefix + "rank 1 has final_op Div, but rank 0 has final_op Id");
  EXPECT_EQ(error([](CollectiveCall* call) {
              call->input = Tensor(DT_INT32, {2, 3});
            }),
            prefix + "rank 1 has type int32, but rank 0 has type float");
  EXPECT_EQ(error([](CollectiveCall* call) {
              call->input = Tensor(DT_FLOAT, {3, 2});
            }),
            prefix + "rank 1 has shape [3,2], but rank 0 has shape [2,3]");
}

TEST(RoundTable, ComparesLongShapesByTheirHash) {
  RoundTable table(2);
  CollectiveCall call = Call(2);
  call.input = Tensor(DT_FLOAT, {1, 1, 1, 1, 1, 1, 1, 1, 2, 3});
  table.Join(0, 1, HeaderOf(call), kStart);
  call.input = Tensor(DT_FLOAT, {1, 1, 1, 1, 1, 1, 1, 1, 3, 2});
  EXPECT_THAT(table.Join(1, 2, HeaderOf(call), kStart).at(0).status,
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[1,1,1,1,1,1,1,1,...]")));
}

TEST(RoundTable, DifferentSizesOfAGroupAreAnErrorOnEveryRank) {
  RoundTable table(3);
  table.Join(0, 1, Header(3), kStart);
  EXPECT_THAT(table.Join(1, 2, Header(2), kStart).at(0).status,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("rank 1 has group_size 2, but rank 0 has group_size 3")));
  EXPECT_THAT(table.Join(2, 3, Header(3), kStart).at(0).status,
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(table.num_rounds(), 0);
}

TEST(RoundTable, BroadcastNeedsOneSender) {
  RoundTable table(2);
  const auto join = [&](int rank, bool sends) {
    CollectiveCall call = Call(2);
    call.type = CollectiveType::kBroadcast;
    call.is_sender = sends;
    call.output = call.input;
    return table.Join(rank, 1, HeaderOf(call), kStart);
  };
  join(0, true);
  EXPECT_THAT(join(1, true).at(0).status,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("one rank must send, but ranks 0, 1 send")));
  join(0, false);
  EXPECT_THAT(join(1, false).at(0).status,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("one rank must send, but ranks 0, 1 all receive")));
  join(0, false);
  EXPECT_THAT(join(1, true).at(0).status, IsOk());
}

TEST(RoundTable, ExpiresAtTheEarliestDeadline) {
  RoundTable table(4);
  table.Join(0, 1, Header(4), kStart);
  CollectiveCall shorter = Call(4);
  shorter.timeout = milliseconds(20);
  table.Join(3, 2, HeaderOf(shorter), kStart + milliseconds(10));
  EXPECT_EQ(table.NextDeadline(), kStart + milliseconds(30));
  EXPECT_THAT(table.Expire(kStart + milliseconds(29)), IsEmpty());
  const RoundTable::Events events = table.Expire(kStart + milliseconds(30));
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_THAT(RanksOf(events[0]), ElementsAre(0, 3));
  EXPECT_THAT(events[0].status,
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       "CollectiveReduceV2, group 1, instance 7: ranks 1, 2 did not arrive within "
                       "100 ms"));
}

TEST(RoundTable, NamesTheRanksThatArrivedIfTheGroupIsSmaller) {
  RoundTable table(4);
  table.Join(0, 1, Header(3), kStart);
  table.Join(2, 1, Header(3), kStart);
  EXPECT_THAT(table.Expire(kStart + milliseconds(100)).at(0).status,
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       HasSubstr("2 of 3 ranks arrived: 0, 2 within 100 ms")));
}

TEST(RoundTable, LateRanksGetTheErrorOnce) {
  RoundTable table(2);
  table.Join(0, 1, Header(2), kStart);
  table.Expire(kStart + milliseconds(100));
  // The first rank tries again while the other is late.
  EXPECT_THAT(table.Join(0, 2, Header(2), kStart + milliseconds(110)), IsEmpty());
  EXPECT_THAT(table.Join(1, 1, Header(2), kStart + milliseconds(120)).at(0).status,
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  EXPECT_THAT(table.Join(1, 2, Header(2), kStart + milliseconds(130)).at(0).status, IsOk());
}

TEST(RoundTable, ForgetsErrorsAfterTheTimeout) {
  RoundTable table(2);
  table.Join(0, 1, Header(2), kStart);
  table.Expire(kStart + milliseconds(100));
  EXPECT_EQ(table.num_rounds(), 1);
  EXPECT_THAT(table.Expire(kStart + milliseconds(200)), IsEmpty());
  EXPECT_EQ(table.num_rounds(), 0);
}

TEST(RoundTable, CancelFailsARoundThatWaits) {
  RoundTable table(2);
  table.Join(0, 1, Header(2), kStart);
  RoundTable::Events events;
  EXPECT_EQ(table.Cancel(0, 99, kStart, &events), 0);
  EXPECT_EQ(table.Cancel(0, 1, kStart, &events), 0);
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_THAT(events[0].status, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(table.Join(1, 1, Header(2), kStart).at(0).status,
              StatusIs(absl::StatusCode::kCancelled));
}

TEST(RoundTable, CancelReturnsARoundThatHasStarted) {
  RoundTable table(2);
  table.Join(0, 1, Header(2), kStart);
  const int64_t round = table.Join(1, 1, Header(2), kStart).at(0).round;
  RoundTable::Events events;
  EXPECT_EQ(table.Cancel(0, 1, kStart, &events), round);
  EXPECT_THAT(events, IsEmpty());
  events = table.Finish(round, absl::UnavailableError("no"));
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_THAT(events[0].status, StatusIs(absl::StatusCode::kUnavailable,
                                         "CollectiveReduceV2, group 1, instance 7: no"));
  EXPECT_THAT(table.Finish(round, absl::UnavailableError("no")), IsEmpty());
}

TEST(RoundTable, LostRankFailsTheRoundsThatNeedIt) {
  RoundTable table(3);
  table.Join(0, 1, Header(3, 1), kStart);
  table.Join(0, 2, Header(2, 2), kStart);
  table.Join(1, 3, Header(2, 3), kStart);
  const RoundTable::Events events = table.Lose(1, "the connection was closed", kStart);
  ASSERT_THAT(events, SizeIs(2));
  EXPECT_THAT(events[0].status,
              StatusIs(absl::StatusCode::kUnavailable,
                       "CollectiveReduceV2, group 1, instance 1: rank 1 is lost: the connection "
                       "was closed"));
  EXPECT_THAT(table.Join(2, 4, Header(3, 9), kStart).at(0).status,
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(table.Join(2, 5, Header(2, 2), kStart).at(0).status, IsOk());
}

TEST(RoundTable, RejectsGroupsLargerThanTheRun) {
  RoundTable table(2);
  EXPECT_THAT(table.Join(0, 1, Header(3), kStart).at(0).status,
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("group_size is 3, but there are 2 ranks")));
}

TEST(CallHeader, RejectsInvalidHeaders) {
  EXPECT_THAT(CheckHeader(Header(2)), IsOk());
  const auto check = [](auto change) {
    CallHeader header = Header(2);
    change(&header);
    return CheckHeader(header);
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(check([](CallHeader* h) { h->type = 6; }), StatusIs(kInvalid));
  EXPECT_THAT(check([](CallHeader* h) { h->merge = 4; }), StatusIs(kInvalid));
  EXPECT_THAT(check([](CallHeader* h) { h->final = 2; }), StatusIs(kInvalid));
  EXPECT_THAT(check([](CallHeader* h) { h->is_sender = 2; }), StatusIs(kInvalid));
  EXPECT_THAT(check([](CallHeader* h) { h->group_size = 1; }), StatusIs(kInvalid));
  EXPECT_THAT(check([](CallHeader* h) { h->group_rank = 2; }), StatusIs(kInvalid));
  EXPECT_THAT(check([](CallHeader* h) { h->timeout_ms = -1; }), StatusIs(kInvalid));
  EXPECT_THAT(check([](CallHeader* h) { h->num_elements = -1; }), StatusIs(kInvalid));
  EXPECT_THAT(check([](CallHeader* h) { h->op[39] = 'x'; }), StatusIs(kInvalid));
}

TEST(CallHeader, ShortensTheNameOfTheOp) {
  CollectiveCall call = Call(2);
  call.op = std::string(100, 'a');
  call.subgroup = 3;
  EXPECT_EQ(DebugString(HeaderOf(call)),
            std::string(39, 'a') + ", group 1, subgroup 3, instance 7");
}

}  // namespace
}  // namespace distributed
}  // namespace gradflow
