// QuantizeDownAndShrinkRange, RequantizationRange and Requantize.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/quant/quantized_range.h"

namespace gradflow::requantize {
namespace {

// Returns the range of the numbers of input 0, extended to contain 0. For an empty input, the range
// goes from the number of the highest integer to the number of the lowest, as in TensorFlow.
QuantizedRange UsedRange(const KernelContext& ctx, const QuantizedRange& range) {
  const auto* const x = static_cast<const int32_t*>(ctx.input(0).raw_data());
  const int64_t n = ctx.input(0).NumElements();
  struct Bounds {
    int32_t min = std::numeric_limits<int32_t>::max();
    int32_t max = std::numeric_limits<int32_t>::min();
  };
  constexpr double kNanoseconds = 0.5;
  const int64_t block = BlockSizeForCost(kNanoseconds);
  std::vector<Bounds> blocks(static_cast<size_t>(NumBlocks(n, block)));
  ParallelFor(ctx, n, block, [&](int64_t begin, int64_t end) {
    Bounds& bounds = blocks[static_cast<size_t>(begin / block)];
    for (int64_t i = begin; i < end; ++i) {
      bounds.min = std::min(bounds.min, x[i]);
      bounds.max = std::max(bounds.max, x[i]);
    }
  });
  Bounds all;
  for (const Bounds& bounds : blocks) {
    all.min = std::min(all.min, bounds.min);
    all.max = std::max(all.max, bounds.max);
  }
  return {std::min(0.0f, DequantizeNumber(all.min, range)), DequantizeNumber(all.max, range)};
}

// Sets output 0 to the integers of input 0 in another range and type.
template <typename To>
absl::Status OutputRequantized(KernelContext& ctx, const QuantizedRange& from,
                               const QuantizedRange& to) {
  if constexpr (std::is_same_v<To, uint8_t>) {
    return Unary<int32_t, To>(ctx, FixedPointRequantizer(from, to));
  } else {
    return Unary<int32_t, To>(ctx, FloatRequantizer<int32_t, To>(from, to));
  }
}

class RequantizationRangeKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    ranges_.Init(construction, 1);
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<QuantizedRange> ranges, ranges_.Read(ctx));
    return OutputRange(ctx, 0, UsedRange(ctx, ranges[0]));
  }

 private:
  RangeInputs ranges_;
};

class ShrinkRangeKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    ranges_.Init(construction, 1);
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<QuantizedRange> ranges, ranges_.Read(ctx));
    const QuantizedRange used = UsedRange(ctx, ranges[0]);
    GRADFLOW_RETURN_IF_ERROR(OutputRequantized<uint8_t>(ctx, ranges[0], used));
    return OutputRange(ctx, 1, used);
  }

 private:
  RangeInputs ranges_;
};

template <typename To>
class RequantizeKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    ranges_.Init(construction, 1, 2);
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<QuantizedRange> ranges, ranges_.Read(ctx));
    const QuantizedRange& to = ranges[1];
    if (to.min > 0 || to.max < to.min) {
      return errors::InvalidArgument("requested_output_min must be at most 0 and at most ",
                                     "requested_output_max, but they are ", to.min, " and ",
                                     to.max);
    }
    GRADFLOW_RETURN_IF_ERROR(OutputRequantized<To>(ctx, ranges[0], to));
    return OutputRange(ctx, 1, to);
  }

 private:
  RangeInputs ranges_;
};

absl::Status RangeShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckRangeShapes(c, 1, c.num_inputs() - 1));
  c.set_output(0, c.num_outputs() == 2 ? PartialTensorShape(TensorShape()) : c.input(0));
  return absl::OkStatus();
}

constexpr char kInputDoc[] = R"(input: The integers.
input_min: A scalar: the number of the lowest integer of `input`.
input_max: A scalar: the number of the highest integer of `input`.
)";

}  // namespace

void Register(Registry& registry) {
  const std::string from = absl::StrCat("Tinput: ", kQuantizedTypes);
  const std::string to = absl::StrCat("out_type: ", kQuantizedTypes);
  registry.Op("QuantizeDownAndShrinkRange")
      .Group("math_ops")
      .Input("input: Tinput")
      .Input("input_min: float")
      .Input("input_max: float")
      .Output("output: out_type")
      .Output("output_min: float")
      .Output("output_max: float")
      .Attr(from)
      .Attr(to)
      .Shape(RangeShape)
      .Doc(absl::StrCat(R"(Converts integers to fewer bits, with the range that they use.

`RequantizationRange` followed by `Requantize` computes the same.

)",
                        kInputDoc,
                        R"(output: The converted integers.
output_min: The least number of `input`, or 0 if that is less.
output_max: The greatest number of `input`.
Tinput: The type of `input`.
out_type: The type of `output`.)"));
  registry.Kernel("QuantizeDownAndShrinkRange", MakeKernel<ShrinkRangeKernel>)
      .Type<qint32>("Tinput")
      .Type<quint8>("out_type");

  registry.Op("RequantizationRange")
      .Group("math_ops")
      .Input("input: Tinput")
      .Input("input_min: float")
      .Input("input_max: float")
      .Output("output_min: float")
      .Output("output_max: float")
      .Attr(from)
      .Shape(RangeShape)
      .Doc(absl::StrCat(R"(Computes the range that integers use, for `Requantize`.

)",
                        kInputDoc,
                        R"(output_min: The least number of `input`, or 0 if that is less.
output_max: The greatest number of `input`.
Tinput: The type of `input`.)"));
  registry.Kernel("RequantizationRange", MakeKernel<RequantizationRangeKernel>)
      .Type<qint32>("Tinput");

  registry.Op("Requantize")
      .Group("math_ops")
      .Input("input: Tinput")
      .Input("input_min: float")
      .Input("input_max: float")
      .Input("requested_output_min: float")
      .Input("requested_output_max: float")
      .Output("output: out_type")
      .Output("output_min: float")
      .Output("output_max: float")
      .Attr(from)
      .Attr(to)
      .Shape(RangeShape)
      .Doc(absl::StrCat(
          R"(Converts integers to another range and type.

Numbers outside of the new range become its lowest or highest integer.

)",
          kInputDoc,
          R"(requested_output_min: A scalar, 0 or less: the number of the lowest integer of `output`.
requested_output_max: A scalar: the number of the highest integer of `output`.
output: The converted integers.
output_min: `requested_output_min`.
output_max: `requested_output_max`.
Tinput: The type of `input`.
out_type: The type of `output`.)"));
  registry.Kernel("Requantize", MakeKernel<RequantizeKernel<uint8_t>>)
      .Type<qint32>("Tinput")
      .Type<quint8>("out_type");
  registry.Kernel("Requantize", MakeKernel<RequantizeKernel<int8_t>>)
      .Type<qint32>("Tinput")
      .Type<qint8>("out_type");
}

}  // namespace gradflow::requantize
