#include "gradflow/training/micro_batches.h"

#include <algorithm>
#include <cstring>
#include <future>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/core/collectives.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor.h"

namespace gradflow {
namespace training {
namespace {

void AddTo(float* sum, const float* addend, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sum[i] += addend[i];
}

// Appends the nodes below `node` that cover the part of it in `part`.
void Cover(const SumRange& node, const SumRange& part, std::vector<SumRange>* nodes) {
  if (part.end <= node.begin || node.end <= part.begin) return;
  if (part.begin <= node.begin && node.end <= part.end) {
    nodes->push_back(node);
    return;
  }
  const int64_t split = SplitOf(node);
  Cover({node.begin, split}, part, nodes);
  Cover({split, node.end}, part, nodes);
}

// Adds given nodes in the tree. The sums of the nodes follow in the order of the tree; the sum of a
// range is added into the memory of its first node.
class TreeAdder {
 public:
  TreeAdder(std::vector<SumRange> nodes, std::vector<float*> sums, int64_t length)
      : nodes_(std::move(nodes)), sums_(std::move(sums)), length_(length) {}

  // Returns the sum of `range`. Called once, for the whole tree.
  float* Add(const SumRange& range) {
    const SumRange& next = nodes_[next_];
    if (next.begin == range.begin && next.end == range.end) return sums_[next_++];
    const int64_t split = SplitOf(range);
    float* const sum = Add({range.begin, split});
    AddTo(sum, Add({split, range.end}), length_);
    return sum;
  }

 private:
  const std::vector<SumRange> nodes_;
  const std::vector<float*> sums_;
  const int64_t length_;
  size_t next_ = 0;
};

absl::Status Call(const SumExchange& exchange, CollectiveCall call) {
  call.op = "DataParallel";
  call.group_key = exchange.group_key;
  call.group_size = exchange.collectives->size();
  call.timeout = exchange.timeout;
  const auto ended = std::make_shared<std::promise<absl::Status>>();
  std::future<absl::Status> status = ended->get_future();
  exchange.collectives->Start(
      exchange.collectives->NewCallId(), std::move(call),
      [ended](absl::Status result) { ended->set_value(std::move(result)); });
  return status.get();
}

}  // namespace

int64_t SplitOf(const SumRange& range) {
  int64_t left = 1;
  while (2 * left < range.end - range.begin) left *= 2;
  return range.begin + left;
}

SumRange MicroBatchesOf(int64_t count, int rank, int ranks) {
  return {count * rank / ranks, count * (rank + 1) / ranks};
}

std::vector<SumRange> NodesOf(int64_t count, const SumRange& part) {
  std::vector<SumRange> nodes;
  Cover({0, count}, part, &nodes);
  return nodes;
}

absl::StatusOr<std::vector<float>> SumOf(const SumRange& range, const RunMicroBatch& run) {
  if (range.end - range.begin == 1) return run(range.begin);
  const int64_t split = SplitOf(range);
  GRADFLOW_ASSIGN_OR_RETURN(std::vector<float> sum, SumOf({range.begin, split}, run));
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<float> right, SumOf({split, range.end}, run));
  if (sum.size() != right.size()) {
    return errors::Internal("micro-batches have ", sum.size(), " and ", right.size(), " numbers");
  }
  AddTo(sum.data(), right.data(), static_cast<int64_t>(sum.size()));
  return sum;
}

absl::StatusOr<std::vector<float>> AverageOf(int64_t count, const SumExchange& exchange,
                                             const RunMicroBatch& run) {
  const auto divide = [&](float* sum, int64_t length) {
    for (int64_t i = 0; i < length; ++i) sum[i] /= static_cast<float>(count);
  };
  const int ranks = exchange.collectives == nullptr ? 1 : exchange.collectives->size();
  if (ranks == 1) {
    GRADFLOW_ASSIGN_OR_RETURN(std::vector<float> sum, SumOf({0, count}, run));
    divide(sum.data(), static_cast<int64_t>(sum.size()));
    return sum;
  }
  const int rank = exchange.collectives->rank();
  // The nodes of all ranks, and the largest number of a rank. Calls need the same shape on all
  // ranks, so ranks with fewer nodes send zeros, which are not added.
  std::vector<SumRange> all_nodes;
  std::vector<size_t> num_nodes;
  size_t max_nodes = 0;
  for (int r = 0; r < ranks; ++r) {
    const std::vector<SumRange> nodes = NodesOf(count, MicroBatchesOf(count, r, ranks));
    all_nodes.insert(all_nodes.end(), nodes.begin(), nodes.end());
    num_nodes.push_back(nodes.size());
    max_nodes = std::max(max_nodes, nodes.size());
  }

  Tensor sent;
  int64_t length = 0;
  int64_t chunk = 0;
  const std::vector<SumRange> own_nodes = NodesOf(count, MicroBatchesOf(count, rank, ranks));
  for (size_t k = 0; k < own_nodes.size(); ++k) {
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<float> sum, SumOf(own_nodes[k], run));
    if (k == 0) {
      length = static_cast<int64_t>(sum.size());
      chunk = (length + ranks - 1) / ranks;
      sent = Tensor(DT_FLOAT, {ranks, static_cast<int64_t>(max_nodes), chunk});
      std::memset(sent.raw_data(), 0, sent.TotalBytes());
    }
    for (int r = 0; r < ranks; ++r) {
      const int64_t begin = std::min(length, r * chunk);
      const int64_t end = std::min(length, begin + chunk);
      const int64_t row = static_cast<int64_t>(r) * static_cast<int64_t>(max_nodes);
      std::copy(sum.begin() + begin, sum.begin() + end,
                sent.span<float>().data() + (row + static_cast<int64_t>(k)) * chunk);
    }
  }

  CollectiveCall scatter;
  scatter.type = CollectiveType::kAllToAll;
  scatter.instance_key = exchange.instance_key;
  scatter.input = sent;
  scatter.output = Tensor(DT_FLOAT, sent.shape());
  Tensor received = scatter.output;
  GRADFLOW_RETURN_IF_ERROR(Call(exchange, std::move(scatter)));

  std::vector<float*> sums;
  for (int r = 0; r < ranks; ++r) {
    const size_t row = static_cast<size_t>(r) * max_nodes;
    for (size_t k = 0; k < num_nodes[static_cast<size_t>(r)]; ++k) {
      sums.push_back(received.span<float>().data() + static_cast<int64_t>(row + k) * chunk);
    }
  }
  float* const total = TreeAdder(std::move(all_nodes), std::move(sums), chunk).Add({0, count});
  divide(total, chunk);

  CollectiveCall gather;
  gather.type = CollectiveType::kGather;
  gather.instance_key = exchange.instance_key + 1;
  gather.input = Tensor(DT_FLOAT, {chunk});
  std::copy(total, total + chunk, gather.input.span<float>().data());
  gather.output = Tensor(DT_FLOAT, {ranks * chunk});
  Tensor averages = gather.output;
  GRADFLOW_RETURN_IF_ERROR(Call(exchange, std::move(gather)));
  const float* const data = averages.span<float>().data();
  return std::vector<float>(data, data + length);
}

}  // namespace training
}  // namespace gradflow
