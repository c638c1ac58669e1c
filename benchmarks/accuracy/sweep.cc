// SweepAllFloats() (checks.h).
#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

#include "benchmarks/accuracy/checks.h"
#include "benchmarks/harness.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/session/client_session.h"

namespace gradflow::benchmarks {
namespace {

// The formulas of fake quantization for one number.
struct Quantizer {
  Quantizer(float min, float max, int num_bits, bool narrow_range)
      : lowest(narrow_range ? 1.0f : 0.0f), highest(static_cast<float>((1 << num_bits) - 1)) {
    scale = (max - min) / (highest - lowest);
    inverse = (highest - lowest) / (max - min);
    const float from_min = lowest - min / scale;
    const float zero_point = std::round(std::min(std::max(from_min, lowest), highest));
    nudged_min = (lowest - zero_point) * scale;
    nudged_max = (highest - zero_point) * scale;
    zero = std::floor(-nudged_min * inverse + 0.5f);
  }

  float Shift(float x) const { return std::max(std::min(x, nudged_max), nudged_min) - nudged_min; }
  float Round(float steps) const { return std::floor(steps - zero + 0.5f) * scale; }
  float ByDivision(float x) const { return Round(Shift(x) / scale); }
  float ByProduct(float x) const { return Round(Shift(x) * inverse); }
  float Gradient(float g, float x) const {
    return g * (x >= nudged_min && x <= nudged_max ? 1.0f : 0.0f);
  }

  float lowest;
  float highest;
  float scale;
  float inverse;
  float nudged_min;
  float nudged_max;
  float zero;
};

struct QuantRange {
  float min;
  float max;
  int num_bits;
  bool narrow_range;
};
constexpr QuantRange kRanges[] = {{-1, 1, 8, false}, {-6, 5.3f, 4, true}, {0, 1e-3f, 16, false}};
constexpr int64_t kChannels = 4;

bool SameFloat(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

// Counts the elements of `outputs` that differ from expected(x).
template <typename Expected>
int64_t CountOthers(const Tensor& inputs, const Tensor& outputs, const Expected& expected) {
  const float* const x = inputs.flat<float>().data();
  const float* const y = outputs.flat<float>().data();
  return tbb::parallel_reduce(
      tbb::blocked_range<int64_t>(0, inputs.NumElements(), 1 << 16), int64_t{0},
      [&](const tbb::blocked_range<int64_t>& range, int64_t count) {
        for (int64_t i = range.begin(); i < range.end(); ++i) {
          if (!SameFloat(y[i], expected(x[i]))) ++count;
        }
        return count;
      },
      std::plus<>());
}

// Returns false if an op differs from its formula. Checks `floats_per_step` floats with consecutive
// bits, from every multiple of `step_between` on.
bool Sweep(const QuantRange& range, int64_t floats_per_step, int64_t step_between) {
  Scope root = Scope::NewRootScope();
  const TensorShape shape({floats_per_step / kChannels, kChannels});
  const Output x = ops::Placeholder(root, DT_FLOAT);
  Tensor mins(DT_FLOAT, {kChannels});
  mins.flat<float>().setConstant(range.min);
  Tensor maxs(DT_FLOAT, {kChannels});
  maxs.flat<float>().setConstant(range.max);
  const int bits = range.num_bits;
  const bool narrow = range.narrow_range;
  using ArgsAttrs = ops::FakeQuantWithMinMaxArgs::Attrs;
  using VarsAttrs = ops::FakeQuantWithMinMaxVars::Attrs;
  using PerChannelAttrs = ops::FakeQuantWithMinMaxVarsPerChannel::Attrs;
  using ArgsGradientAttrs = ops::FakeQuantWithMinMaxArgsGradient::Attrs;
  using VarsGradientAttrs = ops::FakeQuantWithMinMaxVarsGradient::Attrs;
  using PerChannelGradientAttrs = ops::FakeQuantWithMinMaxVarsPerChannelGradient::Attrs;
  const Output min = ops::Const(root, mins);
  const Output max = ops::Const(root, maxs);
  // Three ops, and the gradients of their inputs.
  const std::vector<Output> fetches = {
      ops::FakeQuantWithMinMaxArgs(
          root, x, ArgsAttrs().Min(range.min).Max(range.max).NumBits(bits).NarrowRange(narrow)),
      ops::FakeQuantWithMinMaxVars(root, x, range.min, range.max,
                                   VarsAttrs().NumBits(bits).NarrowRange(narrow)),
      ops::FakeQuantWithMinMaxVarsPerChannel(root, x, min, max,
                                             PerChannelAttrs().NumBits(bits).NarrowRange(narrow)),
      ops::FakeQuantWithMinMaxArgsGradient(
          root, x, x,
          ArgsGradientAttrs().Min(range.min).Max(range.max).NumBits(bits).NarrowRange(narrow)),
      ops::FakeQuantWithMinMaxVarsGradient(root, x, x, range.min, range.max,
                                           VarsGradientAttrs().NumBits(bits).NarrowRange(narrow))
          .backprops_wrt_input,
      ops::FakeQuantWithMinMaxVarsPerChannelGradient(
          root, x, x, min, max, PerChannelGradientAttrs().NumBits(bits).NarrowRange(narrow))
          .backprops_wrt_input,
  };
  const Quantizer quantizer(range.min, range.max, bits, narrow);
  const auto product = [&](float v) { return quantizer.ByProduct(v); };
  const auto division = [&](float v) { return quantizer.ByDivision(v); };
  const auto gradient = [&](float v) { return quantizer.Gradient(v, v); };
  const ClientSession session(root);
  int64_t others = 0;
  int64_t count = 0;
  for (int64_t first = 0; first < int64_t{1} << 32; first += step_between) {
    Tensor inputs(DT_FLOAT, shape);
    float* const values = inputs.flat<float>().data();
    for (int64_t i = 0; i < floats_per_step; ++i) {
      const auto bits_of_x = static_cast<uint32_t>(first + i);
      std::memcpy(&values[i], &bits_of_x, sizeof(float));
    }
    std::vector<Tensor> outputs;
    Check(session.Run({{x, inputs}}, fetches, &outputs));
    others += CountOthers(inputs, outputs[0], product);
    others += CountOthers(inputs, outputs[1], division);
    others += CountOthers(inputs, outputs[2], product);
    for (const int i : {3, 4, 5}) others += CountOthers(inputs, outputs[i], gradient);
    count += floats_per_step;
  }
  std::printf("fake quant, 6 ops, %d bits%s, [%g, %g]: %lld floats, %lld differ from the formula\n",
              bits, narrow ? " narrow" : "", range.min, range.max, static_cast<long long>(count),
              static_cast<long long>(others));
  std::fflush(stdout);
  return others == 0;
}

}  // namespace

bool SweepAllFloats(bool small) {
  bool good = true;
  for (const QuantRange& range : kRanges) {
    good &= small ? Sweep(range, 1 << 10, (int64_t{1} << 32) / 61) : Sweep(range, 1 << 24, 1 << 24);
  }
  return good;
}

}  // namespace gradflow::benchmarks
