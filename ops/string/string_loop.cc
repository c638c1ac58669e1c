#include "gradflow/ops/string/string_loop.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "gradflow/core/memory_reservation.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/indices.h"

namespace gradflow {

absl::Status MakeStrings(KernelContext& ctx, const TensorShape& shape, double nanoseconds,
                         absl::FunctionRef<double(int64_t i)> most_bytes,
                         absl::FunctionRef<absl::Status(int64_t i, tstring* string)> make) {
  ctx.ExpectStringBytes(0);
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
  const auto strings = output->span<tstring>();
  const auto count = static_cast<int64_t>(strings.size());
  const int64_t block = BlockSizeForCost(nanoseconds);
  // Each block charges the strings that it has made, and the next one.
  struct Block {
    explicit Block(Allocator* allocator) : charge(allocator) {}

    MemoryReservation charge;
    absl::Status status;
  };
  std::vector<std::unique_ptr<Block>> blocks;
  const int64_t num_blocks = (count + block - 1) / block;
  blocks.reserve(num_blocks);
  for (int64_t b = 0; b < num_blocks; ++b) {
    blocks.push_back(std::make_unique<Block>(ctx.allocator().get()));
  }
  FirstBadIndex bad;
  ParallelFor(ctx, count, block, [&](int64_t begin, int64_t end) {
    if (bad.any() && bad.first() < begin) return;
    Block& own = *blocks[begin / block];
    double made = 0;
    double charged = 0;
    for (int64_t i = begin; i < end; ++i) {
      // Charges for some more strings, so that few strings change the charge.
      constexpr double kStep = 4096;
      if (const double most = made + most_bytes(i); most > charged) {
        charged = most + std::min(kStep, most / 4);
        own.status = own.charge.Set(charged, "strings");
      }
      if (own.status.ok()) own.status = make(i, &strings[i]);
      if (!own.status.ok()) return bad.Found(i);
      made += static_cast<double>(strings[i].size());
    }
  });
  if (bad.any()) return blocks[bad.first() / block]->status;
  if (ctx.ShouldStop()) return absl::OkStatus();
  // Replaces the charges of the blocks.
  blocks.clear();
  return output->ChargeStrings();
}

double StringNanoseconds(const Tensor& strings, double nanoseconds_per_byte) {
  constexpr double kNanosecondsPerString = 30;
  // Looks at some strings only.
  const auto span = strings.span<tstring>();
  constexpr size_t kSamples = 64;
  const size_t step = span.size() / kSamples + 1;
  double bytes = 0;
  double samples = 0;
  for (size_t i = 0; i < span.size(); i += step) {
    bytes += static_cast<double>(span[i].size());
    ++samples;
  }
  return kNanosecondsPerString + (samples > 0 ? bytes / samples : 0) * nanoseconds_per_byte;
}

absl::Status CheckStrings(const KernelContext& ctx, int i, absl::string_view name) {
  const Tensor& input = ctx.input(i);
  if (input.dtype() == DT_STRING && input.IsInitialized()) return absl::OkStatus();
  return errors::InvalidArgument(name, " must be of type string, but is ",
                                 DataTypeString(input.dtype()));
}

absl::StatusOr<const tstring*> ScalarString(const KernelContext& ctx, int i,
                                            absl::string_view name) {
  GRADFLOW_RETURN_IF_ERROR(CheckStrings(ctx, i, name));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(i, name));
  return &ctx.input(i).span<tstring>()[0];
}

}  // namespace gradflow
