#include "tests/distributed/random_calls.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/float16.h"
#include "gradflow/core/status.h"
#include "gradflow/core/types.h"

namespace gradflow::testing {
namespace {

using Types = TypeList<bfloat16, half, float, double, int32_t, int64_t, bool>;

// Returns element `i` of the input of a member: small integers, whose sums, or products for kMul,
// are exact in every type.
int64_t ElementOf(const RandomRound& round, int member, int64_t i) {
  uint64_t bits = round.seed + 1000003 * static_cast<uint64_t>(member) + static_cast<uint64_t>(i);
  bits ^= bits >> 31;
  bits *= 0x9e3779b97f4a7c15u;
  bits ^= bits >> 29;
  if (round.dtype == DT_BOOL) return static_cast<int64_t>(bits % 2);
  if (round.merge == CollectiveMerge::kMul) {
    constexpr int64_t kFactors[] = {-1, 1, 2};
    return kFactors[bits % 3];
  }
  return static_cast<int64_t>(bits % 17) - 8;
}

int64_t Merged(const RandomRound& round, int64_t i) {
  int64_t result = ElementOf(round, 0, i);
  for (int r = 1; r < static_cast<int>(round.ranks.size()); ++r) {
    const int64_t x = ElementOf(round, r, i);
    switch (round.merge) {
      case CollectiveMerge::kAdd:
        result += x;
        break;
      case CollectiveMerge::kMul:
        result *= x;
        break;
      case CollectiveMerge::kMin:
        result = std::min(result, x);
        break;
      case CollectiveMerge::kMax:
        result = std::max(result, x);
        break;
    }
  }
  return result;
}

// Makes a tensor from a function of the index.
template <typename F>
Tensor Make(DataType dtype, const TensorShape& shape, F element) {
  Tensor tensor(dtype, shape);
  DispatchType(Types(), dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* const out = static_cast<T*>(tensor.raw_data());
    for (int64_t i = 0; i < tensor.NumElements(); ++i) out[i] = static_cast<T>(element(i));
  });
  return tensor;
}

// Divides the elements of a tensor in its type.
void Divide(Tensor* tensor, int divisor) {
  DispatchType(TypeList<bfloat16, half, float, double, int32_t, int64_t>(), tensor->dtype(),
               [&](auto tag) {
                 using T = typename decltype(tag)::type;
                 for (T& x : tensor->span<T>()) x = static_cast<T>(x / static_cast<T>(divisor));
               });
}

TensorShape OutputShape(const RandomRound& round) {
  TensorShape shape = round.shape;
  const auto ranks = static_cast<int64_t>(round.ranks.size());
  if (round.type == CollectiveType::kGather) shape.set_dim(0, shape.dim_size(0) * ranks);
  if (round.type == CollectiveType::kReduceScatter) shape.set_dim(0, shape.dim_size(0) / ranks);
  return shape;
}

}  // namespace

RandomRound MakeRandomRound(uint64_t seed, int index, int size) {
  std::mt19937_64 random(seed * 7919 + static_cast<uint64_t>(index));
  const auto below = [&](uint64_t n) { return static_cast<int>(random() % n); };
  RandomRound round;
  round.type = static_cast<CollectiveType>(below(6));
  round.merge = static_cast<CollectiveMerge>(below(4));
  round.final = static_cast<CollectiveFinal>(below(2));
  constexpr DataType kTypes[] = {DT_BFLOAT16, DT_FLOAT, DT_HALF, DT_DOUBLE, DT_INT32, DT_INT64};
  round.dtype = kTypes[below(6)];
  if (round.type == CollectiveType::kBroadcast && below(4) == 0) round.dtype = DT_BOOL;
  round.ranks.resize(static_cast<size_t>(size));
  std::iota(round.ranks.begin(), round.ranks.end(), 0);
  round.states_ranks = below(2) == 0;
  round.group_key = 1;
  if (size > 2 && below(2) == 0) {
    std::shuffle(round.ranks.begin(), round.ranks.end(), random);
    round.ranks.resize(static_cast<size_t>(2 + below(static_cast<uint64_t>(size) - 1)));
    round.group_key = 2 + index;
  }
  if (!round.states_ranks) std::sort(round.ranks.begin(), round.ranks.end());
  round.instance_key = index;
  const auto ranks = static_cast<int64_t>(round.ranks.size());
  // Mostly small tensors, some empty, some large.
  int64_t rows = below(8);
  const int64_t columns = below(10) == 0 ? below(30000) : below(9);
  if (round.type == CollectiveType::kReduceScatter) rows *= ranks;
  if (round.type == CollectiveType::kAllToAll) rows = ranks;
  round.shape = TensorShape({rows, columns});
  round.sender = below(static_cast<uint64_t>(ranks));
  round.seed = random();
  return round;
}

Tensor InputOf(const RandomRound& round, int i) {
  return Make(round.dtype, round.shape, [&](int64_t k) { return ElementOf(round, i, k); });
}

Tensor ExpectedOf(const RandomRound& round, int i) {
  const TensorShape shape = OutputShape(round);
  const auto ranks = static_cast<int64_t>(round.ranks.size());
  const int64_t n = round.shape.num_elements();
  Tensor result;
  switch (round.type) {
    case CollectiveType::kReduce:
      result = Make(round.dtype, shape, [&](int64_t k) { return Merged(round, k); });
      break;
    case CollectiveType::kReduceScatter:
      result =
          Make(round.dtype, shape, [&](int64_t k) { return Merged(round, k + i * n / ranks); });
      break;
    case CollectiveType::kGather:
      return Make(round.dtype, shape,
                  [&](int64_t k) { return ElementOf(round, static_cast<int>(k / n), k % n); });
    case CollectiveType::kBroadcast:
      return Make(round.dtype, shape, [&](int64_t k) { return ElementOf(round, round.sender, k); });
    case CollectiveType::kAllToAll:
      return Make(round.dtype, shape, [&](int64_t k) {
        const int64_t row = n / ranks;
        return ElementOf(round, static_cast<int>(k / row), i * row + k % row);
      });
    case CollectiveType::kBarrier:
      return Tensor();
  }
  if (round.final == CollectiveFinal::kDiv) Divide(&result, static_cast<int>(ranks));
  return result;
}

CollectiveCall CallOf(const RandomRound& round, int i, std::chrono::milliseconds timeout) {
  CollectiveCall call;
  call.op = "TestOp";
  call.type = round.type;
  call.merge = round.merge;
  call.final = round.final;
  call.group_size = static_cast<int>(round.ranks.size());
  call.group_key = round.group_key;
  call.instance_key = round.instance_key;
  if (round.states_ranks) call.group_rank = i;
  call.timeout = timeout;
  call.is_sender = i == round.sender;
  if (round.type == CollectiveType::kBarrier) return call;
  if (round.type != CollectiveType::kBroadcast || call.is_sender) call.input = InputOf(round, i);
  if (round.type != CollectiveType::kBroadcast || !call.is_sender) {
    call.output = Tensor(round.dtype, OutputShape(round));
  }
  return call;
}

CollectiveCall SumCall(const Tensor& input, int group_size, int64_t instance,
                       std::chrono::milliseconds timeout) {
  CollectiveCall call;
  call.op = "CollectiveReduceV2";
  call.type = CollectiveType::kReduce;
  call.group_size = group_size;
  call.group_key = 1;
  call.instance_key = instance;
  call.timeout = timeout;
  call.input = input;
  call.output = Tensor(input.dtype(), input.shape());
  return call;
}

StartedCall StartCall(Collectives* collectives, CollectiveCall call) {
  StartedCall started;
  started.id = collectives->NewCallId();
  started.output = call.output;
  auto promise = std::make_shared<std::promise<absl::Status>>();
  started.status = promise->get_future();
  collectives->Start(started.id, std::move(call),
                     [promise](absl::Status status) { promise->set_value(std::move(status)); });
  return started;
}

namespace {

// What is wrong with a round.
enum class Fault { kNone, kShape, kType, kMerge, kSenders, kMissing, kCancelled };

struct FaultyRound {
  RandomRound round;
  Fault fault = Fault::kNone;
  // The member that has the fault.
  int member = 0;
};

FaultyRound MakeFaultyRound(uint64_t seed, int index, int size) {
  FaultyRound faulty = {MakeRandomRound(seed, index, size)};
  std::mt19937_64 random(seed * 104729 + static_cast<uint64_t>(index));
  faulty.fault = static_cast<Fault>(random() % 7);
  faulty.member = static_cast<int>(random() % faulty.round.ranks.size());
  const CollectiveType type = faulty.round.type;
  const bool merges = type == CollectiveType::kReduce || type == CollectiveType::kReduceScatter;
  if (faulty.fault == Fault::kMerge && !merges) faulty.fault = Fault::kShape;
  if (faulty.fault == Fault::kSenders && type != CollectiveType::kBroadcast) {
    faulty.fault = Fault::kType;
  }
  if (type == CollectiveType::kBarrier && faulty.fault != Fault::kNone) {
    faulty.fault = Fault::kMissing;
  }
  return faulty;
}

// Returns the call of member `i`, with the fault if it has it.
CollectiveCall FaultyCallOf(const FaultyRound& faulty, int i, std::chrono::milliseconds timeout) {
  RandomRound round = faulty.round;
  if (i == faulty.member) {
    switch (faulty.fault) {
      case Fault::kShape:
        round.shape.set_dim(1, round.shape.dim_size(1) + 1);
        break;
      case Fault::kType:
        round.dtype = round.dtype == DT_INT64 ? DT_FLOAT : DT_INT64;
        break;
      case Fault::kMerge:
        round.merge =
            round.merge == CollectiveMerge::kAdd ? CollectiveMerge::kMul : CollectiveMerge::kAdd;
        break;
      case Fault::kSenders:
        // A second sender, or none.
        round.sender = round.sender == i ? -1 : i;
        break;
      default:
        break;
    }
  }
  return CallOf(round, i, timeout);
}

absl::StatusCode CodeOf(Fault fault) {
  switch (fault) {
    case Fault::kNone:
      return absl::StatusCode::kOk;
    case Fault::kMissing:
      return absl::StatusCode::kDeadlineExceeded;
    case Fault::kCancelled:
      return absl::StatusCode::kCancelled;
    default:
      return absl::StatusCode::kInvalidArgument;
  }
}

absl::Status CheckOutput(const RandomRound& round, int member, const Tensor& actual,
                         const std::string& name) {
  if (round.type == CollectiveType::kBarrier) return absl::OkStatus();
  if (round.type == CollectiveType::kBroadcast && member == round.sender) return absl::OkStatus();
  const Tensor expected = ExpectedOf(round, member);
  if (expected.TotalBytes() > 0 &&
      std::memcmp(expected.raw_data(), actual.raw_data(), expected.TotalBytes()) != 0) {
    return errors::Internal(name, "wrong elements, of type ", DataTypeString(round.dtype),
                            " and shape ", round.shape.DebugString(), ", kind ",
                            static_cast<int>(round.type));
  }
  return absl::OkStatus();
}

// Makes the calls of a rank. `make` returns round `index`.
template <typename F>
absl::Status RunRounds(Collectives* collectives, uint64_t seed, int count, int window,
                       std::chrono::milliseconds timeout, F make) {
  constexpr std::chrono::milliseconds kMissingTimeout(50);
  const int rank = collectives->rank();
  std::mt19937_64 random(seed + static_cast<uint64_t>(rank) * 31);
  for (int begin = 0; begin < count; begin += window) {
    std::vector<int> order;
    for (int i = begin; i < std::min(count, begin + window); ++i) order.push_back(i);
    std::shuffle(order.begin(), order.end(), random);
    struct Call {
      int index;
      int member;
      FaultyRound faulty;
      StartedCall started;
    };
    std::vector<Call> calls;
    for (const int index : order) {
      FaultyRound faulty = make(index);
      const std::vector<int>& ranks = faulty.round.ranks;
      const auto self = std::find(ranks.begin(), ranks.end(), rank);
      if (self == ranks.end()) continue;
      const auto member = static_cast<int>(self - ranks.begin());
      const bool has_fault = member == faulty.member;
      const bool is_missing = faulty.fault == Fault::kMissing;
      if (is_missing && has_fault) continue;
      // The call of one member is cancelled, and another member does not call.
      const bool is_cancelled = faulty.fault == Fault::kCancelled;
      if (is_cancelled && member == (faulty.member + 1) % static_cast<int>(ranks.size())) continue;
      StartedCall started = StartCall(
          collectives, FaultyCallOf(faulty, member, is_missing ? kMissingTimeout : timeout));
      if (is_cancelled && has_fault) collectives->Cancel(started.id);
      calls.push_back({index, member, std::move(faulty), std::move(started)});
    }
    for (Call& call : calls) {
      const std::string name = absl::StrCat("rank ", rank, ", round ", call.index, ": ");
      const absl::Status status = call.started.status.get();
      const absl::StatusCode expected = CodeOf(call.faulty.fault);
      if (status.code() != expected) {
        return errors::Internal(name, "expected ", absl::StatusCodeToString(expected), ", but is ",
                                status.ToString());
      }
      if (!status.ok()) continue;
      GRADFLOW_RETURN_IF_ERROR(
          CheckOutput(call.faulty.round, call.member, call.started.output, name));
    }
  }
  // A rank that ended now would be lost for ranks that still wait.
  CollectiveCall barrier;
  barrier.op = "End";
  barrier.group_size = collectives->size();
  barrier.timeout = timeout;
  return StartCall(collectives, barrier).status.get();
}

}  // namespace

absl::Status RunRandomRounds(Collectives* collectives, uint64_t seed, int count, int window,
                             std::chrono::milliseconds timeout) {
  return RunRounds(collectives, seed, count, window, timeout, [&](int index) {
    return FaultyRound{MakeRandomRound(seed, index, collectives->size())};
  });
}

absl::Status RunFaultyRounds(Collectives* collectives, uint64_t seed, int count, int window,
                             std::chrono::milliseconds timeout) {
  return RunRounds(collectives, seed, count, window, timeout,
                   [&](int index) { return MakeFaultyRound(seed, index, collectives->size()); });
}

}  // namespace gradflow::testing
