// Tests of integer convolutions and matrix products against sums in 64-bit integers.
#include "gradflow/ops/quant/integer_product.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gradflow/core/integer_kernels.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/parallel.h"
#include "gradflow/ops/common/simd.h"
#include "gradflow/ops/nn/conv_geometry.h"
#include "gradflow/ops/nn/integer_conv.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"

namespace gradflow {
namespace integer_product_test {
namespace {

using ::gradflow::testing::StatusIs;
using ::gradflow::testing::TensorEq;
using ::testing::HasSubstr;

using Random = std::mt19937;

int64_t Pick(Random* random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>((*random)() % static_cast<uint32_t>(high - low + 1));
}

// The values that a test fills tensors with.
enum class Values { kRandom, kExtreme };

Tensor RandomInputs(Random* random, const TensorShape& shape, Values values) {
  Tensor tensor(DT_UINT8, shape);
  for (uint8_t& x : tensor.span<uint8_t>()) {
    x = static_cast<uint8_t>(values == Values::kExtreme ? 255 : Pick(random, 0, 255));
  }
  return tensor;
}

// Weights between `low` and `high`; all of them `low` if they are extreme.
Tensor RandomWeights(Random* random, const TensorShape& shape, int low, int high, Values values) {
  Tensor tensor(DT_INT16, shape);
  for (int16_t& w : tensor.span<int16_t>()) {
    w = static_cast<int16_t>(values == Values::kExtreme ? low : Pick(random, low, high));
  }
  return tensor;
}

IntegerResult RandomResult(Random* random, int64_t channels, bool is_float, double typical_sum) {
  IntegerResult result;
  const int64_t count = Pick(random, 0, 3) == 0 ? 1 : channels;
  for (int64_t c = 0; c < count; ++c) {
    result.multiplier.push_back(
        static_cast<float>(static_cast<double>(Pick(random, -200, 200)) / typical_sum));
    result.offset.push_back(static_cast<float>(Pick(random, -100, 100)) / 4);
  }
  if (is_float) {
    result.is_float = true;
    if (Pick(random, 0, 1) == 0) result.lowest = 0;
    if (Pick(random, 0, 1) == 0) result.highest = 6;
  } else {
    result.zero_point = static_cast<int32_t>(Pick(random, 0, 255));
    result.lowest = Pick(random, 0, 1) == 0 ? 0 : static_cast<float>(-result.zero_point);
    result.highest = static_cast<float>(255 - result.zero_point);
  }
  return result;
}

// Stores the result of a sum as the header of IntegerResult states.
void StoreExpected(int64_t sum, const IntegerResult& result, int64_t channel, Tensor* out,
                   int64_t i) {
  const auto element = [&](const std::vector<float>& values) {
    return values[values.size() == 1 ? 0 : static_cast<size_t>(channel)];
  };
  const float scaled = static_cast<float>(static_cast<int32_t>(sum)) * element(result.multiplier);
  const float value = scaled + element(result.offset);
  const float clamped = std::clamp<float>(value, result.lowest, result.highest);
  if (result.is_float) {
    out->flat<float>()(i) = clamped == 0 ? 0 : clamped;
  } else {
    out->flat<uint8_t>()(i) =
        static_cast<uint8_t>(static_cast<int>(std::nearbyint(clamped)) + result.zero_point);
  }
}

absl::StatusOr<Tensor> Compute(const OpKernel& kernel, const Tensor& x, bool is_float) {
  std::vector<Tensor> inputs = {x};
  std::vector<Tensor> outputs(1, Tensor(Tensor::Unset{}));
  const DataType types[] = {is_float ? DT_FLOAT : DT_UINT8};
  RunContext run;
  KernelContext ctx(absl::MakeSpan(inputs), absl::MakeSpan(outputs), types, run);
  if (absl::Status status = kernel.Compute(ctx); !status.ok()) return status;
  return outputs[0];
}

// Expects the same bits on all instruction sets.
void ExpectOnAllTargets(const OpKernel& kernel, const Tensor& x, const Tensor& expected,
                        const std::string& what) {
  for (const std::string& target : SimdTargets()) {
    ASSERT_TRUE(SetSimdTarget(target));
    const auto found = Compute(kernel, x, expected.dtype() == DT_FLOAT);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_THAT(*found, TensorEq(expected)) << target << ": " << what;
  }
  SetSimdTarget("");
}

struct WeightRange {
  int low;
  int high;
};
constexpr WeightRange kRanges[] = {{-127, 127}, {-128, 127}, {-127, 128}, {0, 255},
                                   {-255, 0},   {-7, 7},     {-1, 1}};

TEST(IntegerProduct, MatMulIsExact) {
  Random random(1);
  for (int i = 0; i < 300; ++i) {
    const Values values = i % 5 == 0 ? Values::kExtreme : Values::kRandom;
    const int64_t rows = Pick(&random, 0, i % 10 == 1 ? 200 : 20);
    const int64_t inner = Pick(&random, 1, i % 10 == 2 ? 2000 : 70);
    const int64_t channels = Pick(&random, 1, i % 10 == 3 ? 300 : 70);
    const WeightRange range = kRanges[i % std::size(kRanges)];
    const bool is_float = Pick(&random, 0, 3) == 0;
    const Tensor x = RandomInputs(&random, {rows, inner}, values);
    IntegerProductArgs args;
    args.weights = RandomWeights(&random, {inner, channels}, range.low, range.high, values);
    args.zero_point = static_cast<int32_t>(Pick(&random, 0, 255));
    args.result = RandomResult(&random, channels, is_float, 255 * 128 * std::sqrt(inner));
    const auto* const w = args.weights.span<int16_t>().data();
    Tensor expected(is_float ? DT_FLOAT : DT_UINT8, {rows, channels});
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < channels; ++c) {
        int64_t sum = 0;
        for (int64_t k = 0; k < inner; ++k) {
          sum += int64_t{x.span<uint8_t>()[r * inner + k] - args.zero_point} * w[k * channels + c];
        }
        StoreExpected(sum, args.result, c, &expected, r * channels + c);
      }
    }
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto kernel,
                                  MakeIntegerMatMul({w, inner, channels, channels, 1}, args));
    ExpectOnAllTargets(*kernel, x, expected, absl::StrCat(rows, " ", inner, " ", channels));
  }
}

ConvAttrs RandomAttrs(Random* random, bool depthwise) {
  ConvAttrs attrs;
  attrs.depthwise = depthwise;
  attrs.spatial_dims = !depthwise && Pick(random, 0, 4) == 0 ? 3 : 2;
  attrs.padding = static_cast<WindowPadding>(Pick(random, 0, attrs.spatial_dims == 3 ? 1 : 2));
  for (int s = attrs.first_spatial(); s < kConvSpatial; ++s) {
    const auto at = static_cast<size_t>(s);
    attrs.stride[at] = Pick(random, 1, 3);
    attrs.dilation[at] = Pick(random, 0, 2) == 0 ? 2 : 1;
    if (attrs.padding != WindowPadding::kExplicit) continue;
    attrs.pad_before[at] = Pick(random, 0, 2);
    attrs.pad_after[at] = Pick(random, 0, 2);
  }
  return attrs;
}

TEST(IntegerProduct, ConvolutionsAreExact) {
  Random random(2);
  int computed = 0;
  for (int i = 0; i < 600; ++i) {
    const Values values = i % 5 == 0 ? Values::kExtreme : Values::kRandom;
    const bool depthwise = i % 3 == 0;
    ConvAttrs attrs = RandomAttrs(&random, depthwise);
    const int64_t groups = depthwise ? Pick(&random, 1, 40) : i % 3 == 1 ? 1 : Pick(&random, 2, 4);
    const int64_t group_in = depthwise ? 1 : Pick(&random, 1, 9);
    const int64_t group_out = Pick(&random, 1, depthwise ? 2 : i % 7 == 0 ? 70 : 18);
    std::vector<int64_t> in = {Pick(&random, 1, 2)};
    std::vector<int64_t> filter;
    for (int s = 0; s < attrs.spatial_dims; ++s) {
      in.push_back(Pick(&random, 1, i % 10 == 1 ? 20 : 7));
      filter.push_back(Pick(&random, 1, 3));
    }
    in.push_back(groups * group_in);
    filter.push_back(depthwise ? groups : group_in);
    filter.push_back(depthwise ? group_out : groups * group_out);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const TensorShape in_shape, TensorShape::Make(in));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const TensorShape filter_shape, TensorShape::Make(filter));
    ConvGeometry g;
    PartialTensorShape inferred;
    if (!InferConv(attrs, in_shape, filter_shape, &g, &inferred).ok()) continue;
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const TensorShape shape, TensorShape::Make(inferred.dim_sizes()));
    const WeightRange range = kRanges[i % std::size(kRanges)];
    const bool is_float = Pick(&random, 0, 3) == 0;
    const Tensor x = RandomInputs(&random, in_shape, values);
    IntegerProductArgs args;
    args.weights = RandomWeights(&random, filter_shape, range.low, range.high, values);
    args.zero_point = static_cast<int32_t>(Pick(&random, 0, 255));
    args.result = RandomResult(&random, g.out_depth, is_float, 255 * 128 * 3);
    Tensor expected(is_float ? DT_FLOAT : DT_UINT8, shape);
    const auto* const w = args.weights.span<int16_t>().data();
    int64_t at = 0;
    for (int64_t b = 0; b < g.batch; ++b) {
      for (int64_t p = 0; p < g.out_volume(); ++p) {
        const int64_t out[] = {p / (g.out[1] * g.out[2]), p / g.out[2] % g.out[1], p % g.out[2]};
        for (int64_t c = 0; c < g.out_depth; ++c, ++at) {
          int64_t sum = 0;
          for (int64_t t = 0; t < g.taps(); ++t) {
            const int64_t tap[] = {t / (g.filter[1] * g.filter[2]), t / g.filter[2] % g.filter[1],
                                   t % g.filter[2]};
            int64_t index = b;
            bool inside = true;
            for (size_t s = 0; s < kConvSpatial; ++s) {
              const int64_t position = out[s] * g.stride[s] - g.pad[s] + tap[s] * g.dilation[s];
              inside = inside && position >= 0 && position < g.in[s];
              index = index * g.in[s] + position;
            }
            if (!inside) continue;
            for (int64_t k = 0; k < g.group_in_depth(); ++k) {
              const int64_t group = c / g.group_out_depth();
              const int64_t q =
                  x.span<uint8_t>()[index * g.in_depth + group * g.group_in_depth() + k];
              sum += (q - args.zero_point) * w[(t * g.group_in_depth() + k) * g.out_depth + c];
            }
          }
          StoreExpected(sum, args.result, c, &expected, at);
        }
      }
    }
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto kernel, MakeIntegerConv(attrs, args));
    ExpectOnAllTargets(
        *kernel, x, expected,
        absl::StrCat(i, ": ", in_shape.DebugString(), " ", filter_shape.DebugString()));
    ++computed;
  }
  EXPECT_GT(computed, 400);
}

TEST(IntegerProduct, RefusesSumsThatMayExceed32Bits) {
  // 66312 * 127 * 255 is more than 2^31.
  for (const int64_t inner : {66000, 66400}) {
    Tensor weights(DT_INT16, {inner, 1});
    std::fill(weights.span<int16_t>().begin(), weights.span<int16_t>().end(), int16_t{127});
    IntegerProductArgs args;
    args.weights = weights;
    args.result.multiplier = args.result.offset = {1};
    const auto kernel = MakeIntegerMatMul({weights.span<int16_t>().data(), inner, 1, 1, 1}, args);
    if (inner == 66000) {
      GRADFLOW_EXPECT_OK(kernel.status());
    } else {
      EXPECT_THAT(kernel.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                            "a sum of 66400 products may exceed 32 bits"));
    }
  }
}

// In fixed point, the offset is part of the sum.
TEST(IntegerProduct, RefusesOffsetsThatMayExceed32Bits) {
  Tensor weights(DT_INT16, {1, 1, 2, 1});
  weights.span<int16_t>()[0] = weights.span<int16_t>()[1] = 100;
  constexpr int32_t kLargest = std::numeric_limits<int32_t>::max() - 2 * 100 * 255;
  for (const bool depthwise : {false, true}) {
    for (const int32_t offset : {kLargest, kLargest + 1, -kLargest, -kLargest - 1}) {
      IntegerProductArgs args;
      args.weights = weights;
      args.result.multiplier = args.result.offset = {1};
      args.result.lowest = 0;
      args.result.highest = 255;
      args.result.fixed = {ToFixedPoint(0x1p-24)};
      args.result.fixed_offset = {offset};
      ConvAttrs attrs;
      attrs.depthwise = depthwise;
      if (depthwise) args.weights = *weights.Reshaped({2, 1, 1, 1});
      const auto kernel = MakeIntegerConv(attrs, args);
      if (std::abs(offset) == kLargest) {
        GRADFLOW_ASSERT_OK(kernel.status());
        Tensor x(DT_UINT8, depthwise ? TensorShape{1, 2, 1, 1} : TensorShape{1, 1, 1, 2});
        x.span<uint8_t>()[0] = x.span<uint8_t>()[1] = 255;
        GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor y, Compute(**kernel, x, false));
        EXPECT_EQ(y.span<uint8_t>()[0], offset > 0 ? 128 : 0);
      } else {
        EXPECT_THAT(kernel.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                              "a sum of 2 products may exceed 32 bits"));
      }
    }
  }
}

TEST(IntegerProduct, RefusesWeightsWithMoreThan256Levels) {
  Tensor weights(DT_INT16, {2, 1});
  weights.span<int16_t>()[0] = -200;
  weights.span<int16_t>()[1] = 200;
  IntegerProductArgs args;
  args.weights = weights;
  args.result.multiplier = args.result.offset = {1};
  EXPECT_THAT(MakeIntegerMatMul({weights.span<int16_t>().data(), 2, 1, 1, 1}, args).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("more than 256 levels")));
}

}  // namespace
}  // namespace integer_product_test
}  // namespace gradflow
