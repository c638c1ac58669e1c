#include "gradflow/distributed/exchange.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "gradflow/core/status.h"
#include "gradflow/distributed/call_header.h"
#include "gradflow/distributed/elements.h"

namespace gradflow::distributed {
namespace {

const char* DataOf(const Tensor& tensor) { return static_cast<const char*>(tensor.raw_data()); }
char* DataOf(Tensor& tensor) { return static_cast<char*>(tensor.raw_data()); }

// Merges elements [begin, begin + count) of all inputs and passes the result to use(). Elements are
// merged in the order of the ranks, in blocks that stay in the cache. A block is read before use()
// is called, so that use() may overwrite the inputs.
template <typename F>
void MergeBlocks(const std::vector<CollectiveCall*>& calls, int64_t begin, int64_t count, F use) {
  constexpr int64_t kBlock = 2048;
  alignas(64) char block[kBlock * sizeof(double)];
  const CollectiveCall& first = *calls[0];
  const DataType dtype = first.dtype();
  const auto size = static_cast<int64_t>(DataTypeSize(dtype));
  for (int64_t i = begin; i < begin + count; i += kBlock) {
    const int64_t n = std::min(kBlock, begin + count - i);
    std::memcpy(block, DataOf(first.input) + i * size, static_cast<size_t>(n * size));
    for (size_t r = 1; r < calls.size(); ++r) {
      MergeElements(dtype, first.merge, block, DataOf(calls[r]->input) + i * size, n);
    }
    if (first.final == CollectiveFinal::kDiv) {
      DivideElements(dtype, block, n, static_cast<int>(calls.size()));
    }
    use(block, i, n);
  }
}

}  // namespace

absl::Status CheckCall(const CollectiveCall& call, int size) {
  if (call.group_size < 2 || call.group_size > size) {
    return errors::InvalidArgument("a group must have 2 to ", size, " ranks, but has ",
                                   call.group_size);
  }
  if (call.group_rank < -1 || call.group_rank >= call.group_size) {
    return errors::InvalidArgument("the rank in the group must be less than ", call.group_size,
                                   ", but is ", call.group_rank);
  }
  if (call.timeout.count() < 0 || call.timeout > kMaxTimeout) {
    return errors::InvalidArgument("the timeout must be in [0, ", kMaxTimeout.count(),
                                   "] ms, but is ", call.timeout.count());
  }
  if (call.type == CollectiveType::kBarrier) return absl::OkStatus();
  const bool merges =
      call.type == CollectiveType::kReduce || call.type == CollectiveType::kReduceScatter;
  const DataType dtype = call.dtype();
  if (merges ? !CanMerge(dtype) : !DataTypeIsPlainBytes(dtype)) {
    return errors::InvalidArgument("tensors of type ", DataTypeString(dtype), " cannot be ",
                                   merges ? "merged" : "exchanged");
  }
  if (call.type == CollectiveType::kBroadcast) return absl::OkStatus();
  const auto input = static_cast<int64_t>(call.input.TotalBytes());
  const auto output = static_cast<int64_t>(call.output.TotalBytes());
  int64_t expected = input;
  if (call.type == CollectiveType::kGather) expected = input * call.group_size;
  if (call.type == CollectiveType::kReduceScatter) expected = input / call.group_size;
  const bool splits =
      call.type == CollectiveType::kReduceScatter || call.type == CollectiveType::kAllToAll;
  if (splits && call.input.NumElements() % call.group_size != 0) {
    return errors::InvalidArgument("the number of elements must be a multiple of ", call.group_size,
                                   ", but is ", call.input.NumElements());
  }
  if (output != expected || call.output.dtype() != dtype) {
    return errors::InvalidArgument("the output must have ", expected, " bytes of type ",
                                   DataTypeString(dtype), ", but has ", output, " of type ",
                                   DataTypeString(call.output.dtype()));
  }
  return absl::OkStatus();
}

void Exchange(const std::vector<CollectiveCall*>& calls) {
  const CollectiveCall& first = *calls[0];
  const auto ranks = static_cast<int64_t>(calls.size());
  const auto bytes = static_cast<int64_t>(first.input.TotalBytes());
  switch (first.type) {
    case CollectiveType::kReduce: {
      const auto size = static_cast<int64_t>(DataTypeSize(first.dtype()));
      MergeBlocks(
          calls, 0, first.input.NumElements(), [&](const char* block, int64_t i, int64_t n) {
            for (CollectiveCall* const call : calls) {
              std::memcpy(DataOf(call->output) + i * size, block, static_cast<size_t>(n * size));
            }
          });
      return;
    }
    case CollectiveType::kReduceScatter: {
      const auto size = static_cast<int64_t>(DataTypeSize(first.dtype()));
      const int64_t part = first.input.NumElements() / ranks;
      for (int64_t r = 0; r < ranks; ++r) {
        char* const output = DataOf(calls[static_cast<size_t>(r)]->output);
        MergeBlocks(calls, r * part, part, [&](const char* block, int64_t i, int64_t n) {
          std::memcpy(output + (i - r * part) * size, block, static_cast<size_t>(n * size));
        });
      }
      return;
    }
    case CollectiveType::kGather:
      if (bytes == 0) return;
      for (CollectiveCall* const to : calls) {
        for (int64_t r = 0; r < ranks; ++r) {
          std::memcpy(DataOf(to->output) + r * bytes, DataOf(calls[static_cast<size_t>(r)]->input),
                      static_cast<size_t>(bytes));
        }
      }
      return;
    case CollectiveType::kBroadcast: {
      const CollectiveCall* const sender = *std::find_if(
          calls.begin(), calls.end(), [](const CollectiveCall* call) { return call->is_sender; });
      const size_t sent = sender->input.TotalBytes();
      for (CollectiveCall* const to : calls) {
        if (to == sender || sent == 0) continue;
        std::memcpy(DataOf(to->output), DataOf(sender->input), sent);
      }
      return;
    }
    case CollectiveType::kAllToAll: {
      const int64_t row = bytes / ranks;
      if (row == 0) return;
      for (int64_t to = 0; to < ranks; ++to) {
        for (int64_t from = 0; from < ranks; ++from) {
          std::memcpy(DataOf(calls[static_cast<size_t>(to)]->output) + from * row,
                      DataOf(calls[static_cast<size_t>(from)]->input) + to * row,
                      static_cast<size_t>(row));
        }
      }
      return;
    }
    case CollectiveType::kBarrier:
      return;
  }
}

}  // namespace gradflow::distributed
