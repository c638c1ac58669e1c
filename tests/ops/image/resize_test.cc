// Tests of resampling: bilinear, bicubic, area, nearest neighbor and ScaleAndTranslate, with their
// gradients.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gradflow/core/stop_token.h"
#include "gradflow/ops/common/simd.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

struct Mode {
  bool align_corners;
  bool half_pixel_centers;
};
constexpr Mode kModes[] = {{false, false}, {true, false}, {false, true}};
constexpr int64_t kSizes[][2] = {{1, 1}, {3, 7}, {8, 2}, {5, 4}, {10, 12}, {17, 3}};
constexpr int64_t kRows = 5;
constexpr int64_t kColumns = 4;

// The weights of the input pixels for each output pixel, along one dimension.
using Weights = std::vector<std::vector<double>>;

// Returns the position of output i in the input. Computes in float, so that positions at the edge
// of a pixel round like in the kernel.
float Position(const Mode& mode, int64_t in, int64_t out, int64_t i) {
  const float scale = mode.align_corners && out > 1 && in > 1
                          ? static_cast<float>(in - 1) / static_cast<float>(out - 1)
                          : static_cast<float>(in) / static_cast<float>(out);
  return mode.half_pixel_centers ? (static_cast<float>(i) + 0.5f) * scale - 0.5f
                                 : static_cast<float>(i) * scale;
}

Weights BilinearWeights(const Mode& mode, int64_t in, int64_t out) {
  Weights weights(out, std::vector<double>(in));
  for (int64_t i = 0; i < out; ++i) {
    const double x = Position(mode, in, out, i);
    const int64_t low = static_cast<int64_t>(std::floor(x));
    for (const int64_t k : {low, low + 1}) {
      const int64_t at = std::min(in - 1, std::max<int64_t>(0, k));
      weights[i][at] += 1 - std::abs(x - static_cast<double>(k));
    }
  }
  return weights;
}

Weights BicubicWeights(const Mode& mode, int64_t in, int64_t out) {
  const double a = mode.half_pixel_centers ? -0.5 : -0.75;
  Weights weights(out, std::vector<double>(in));
  for (int64_t i = 0; i < out; ++i) {
    const double x = Position(mode, in, out, i);
    const double low = std::floor(x);
    const double fraction = std::nearbyint((x - low) * 1024) / 1024;
    double sum = 0;
    for (int64_t k = -1; k <= 2; ++k) {
      const double d = std::abs(fraction - static_cast<double>(k));
      const double w =
          d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
      const int64_t at = static_cast<int64_t>(low) + k;
      if (mode.half_pixel_centers && (at < 0 || at >= in)) continue;
      weights[i][std::min(in - 1, std::max<int64_t>(0, at))] += w;
      sum += w;
    }
    if (!mode.half_pixel_centers) continue;
    for (double& w : weights[i]) w /= sum;
  }
  return weights;
}

Weights AreaWeights(const Mode& mode, int64_t in, int64_t out) {
  const double scale = mode.align_corners && out > 1 && in > 1
                           ? static_cast<double>(in - 1) / static_cast<double>(out - 1)
                           : static_cast<double>(in) / static_cast<double>(out);
  Weights weights(out, std::vector<double>(in));
  for (int64_t i = 0; i < out; ++i) {
    const double from = static_cast<double>(i) * scale;
    const double to = from + scale;
    for (int64_t k = static_cast<int64_t>(from); static_cast<double>(k) < to; ++k) {
      const double part =
          std::min(to, static_cast<double>(k + 1)) - std::max(from, static_cast<double>(k));
      weights[i][std::min(k, in - 1)] += part / scale;
    }
  }
  return weights;
}

Weights NearestWeights(const Mode& mode, int64_t in, int64_t out) {
  Weights weights(out, std::vector<double>(in));
  for (int64_t i = 0; i < out; ++i) {
    float x = Position(mode, in, out, i);
    if (mode.half_pixel_centers) x += 0.5f;
    const float pixel = mode.align_corners ? std::round(x) : std::floor(x);
    weights[i][std::min(in - 1, static_cast<int64_t>(pixel))] = 1;
  }
  return weights;
}

// Returns images of shape [batch, rows.out, columns.out, depth], or their gradients.
Tensor Resampled(DataType dtype, const Tensor& x, const Weights& rows, const Weights& columns,
                 bool transposed) {
  const int64_t batch = x.dim_size(0);
  const int64_t depth = x.dim_size(3);
  const int64_t out_rows = static_cast<int64_t>(rows.size());
  const int64_t out_columns = static_cast<int64_t>(columns.size());
  const int64_t in_rows = static_cast<int64_t>(rows[0].size());
  const int64_t in_columns = static_cast<int64_t>(columns[0].size());
  const std::vector<double> from = AsDoubles(x);
  const TensorShape shape = transposed ? TensorShape({batch, in_rows, in_columns, depth})
                                       : TensorShape({batch, out_rows, out_columns, depth});
  std::vector<double> to(shape.num_elements());
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t y = 0; y < out_rows; ++y) {
      for (int64_t c = 0; c < out_columns; ++c) {
        for (int64_t i = 0; i < in_rows; ++i) {
          for (int64_t j = 0; j < in_columns; ++j) {
            const double w = rows[y][i] * columns[c][j];
            if (w == 0) continue;
            for (int64_t d = 0; d < depth; ++d) {
              const int64_t in = ((b * in_rows + i) * in_columns + j) * depth + d;
              const int64_t out = ((b * out_rows + y) * out_columns + c) * depth + d;
              if (transposed) {
                to[in] += w * from[out];
              } else {
                to[out] += w * from[in];
              }
            }
          }
        }
      }
    }
  }
  return FromDoubles(dtype, shape, to);
}

OpTester Resizer(const char* op, const Mode& mode) {
  OpTester tester(op);
  tester.Attr("align_corners", mode.align_corners);
  if (std::string(op) != "ResizeArea") tester.Attr("half_pixel_centers", mode.half_pixel_centers);
  return tester;
}
Tensor Size(int64_t rows, int64_t columns) {
  return AsTensor<int32_t>({static_cast<int32_t>(rows), static_cast<int32_t>(columns)});
}

const DataTypeVector& AllImageTypes() {
  static const auto* const types =
      new DataTypeVector{DT_FLOAT, DT_DOUBLE, DT_HALF,   DT_BFLOAT16, DT_INT8,
                         DT_UINT8, DT_INT16,  DT_UINT16, DT_INT32,    DT_INT64};
  return *types;
}

struct Resizing {
  const char* op;
  Weights (*weights)(const Mode&, int64_t in, int64_t out);
};

TEST(Resize, AgreesWithItsDefinition) {
  const Resizing ops[] = {{"ResizeBilinear", BilinearWeights},
                          {"ResizeBicubic", BicubicWeights},
                          {"ResizeArea", AreaWeights},
                          {"ResizeNearestNeighbor", NearestWeights}};
  for (const Resizing& r : ops) {
    for (const Mode& mode : kModes) {
      if (std::string(r.op) == "ResizeArea" && mode.half_pixel_centers) continue;
      for (const auto& size : kSizes) {
        const Weights rows = r.weights(mode, kRows, size[0]);
        const Weights columns = r.weights(mode, kColumns, size[1]);
        for (const int64_t depth : {1, 2, 3, 4, 9}) {
          SCOPED_TRACE(std::string(r.op) + " " + std::to_string(size[0]) + "x" +
                       std::to_string(size[1]) + " depth " + std::to_string(depth) +
                       (mode.align_corners ? " aligned" : "") +
                       (mode.half_pixel_centers ? " half" : ""));
          const Tensor x = RandomTensor(DT_FLOAT, {2, kRows, kColumns, depth}, 0, 100);
          EXPECT_THAT(Resizer(r.op, mode).Input(x).Input(Size(size[0], size[1])).RunOne(),
                      TensorNear(Resampled(DT_FLOAT, x, rows, columns, false), 2e-4, 1e-5));
        }
      }
    }
  }
}

TEST(Resize, RunsForEveryType) {
  const Mode mode = {false, true};
  const Weights bilinear[] = {BilinearWeights(mode, kRows, 8), BilinearWeights(mode, kColumns, 3)};
  const Weights nearest[] = {NearestWeights(mode, kRows, 8), NearestWeights(mode, kColumns, 3)};
  for (const DataType dtype : AllImageTypes()) {
    SCOPED_TRACE(DataTypeString(dtype));
    for (const int64_t depth : {1, 2, 3, 5}) {
      const Tensor x = RandomTensor(dtype, {2, kRows, kColumns, depth}, 0, 100);
      EXPECT_THAT(Resizer("ResizeBilinear", mode).Input(x).Input(Size(8, 3)).RunOne(),
                  TensorNear(Resampled(DT_FLOAT, x, bilinear[0], bilinear[1], false), 1e-4, 1e-5));
      EXPECT_THAT(Resizer("ResizeNearestNeighbor", mode).Input(x).Input(Size(8, 3)).RunOne(),
                  TensorEq(Resampled(dtype, x, nearest[0], nearest[1], false)));
    }
  }
}

TEST(Resize, GradientsAgreeWithTheirDefinition) {
  for (const Mode& mode : kModes) {
    for (const auto& size : kSizes) {
      SCOPED_TRACE(std::to_string(size[0]) + "x" + std::to_string(size[1]) +
                   (mode.align_corners ? " aligned" : "") +
                   (mode.half_pixel_centers ? " half" : ""));
      const Tensor g = RandomTensor(DT_FLOAT, {2, size[0], size[1], 3}, -2, 2);
      for (const DataType dtype : {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16}) {
        const Tensor x(dtype, {2, kRows, kColumns, 3});
        const double tolerance = dtype == DT_HALF ? 4e-3 : dtype == DT_BFLOAT16 ? 3e-2 : 2e-5;
        EXPECT_THAT(Resizer("ResizeBilinearGrad", mode).Input(g).Input(x).RunOne(),
                    TensorNear(Resampled(dtype, g, BilinearWeights(mode, kRows, size[0]),
                                         BilinearWeights(mode, kColumns, size[1]), true),
                               tolerance, tolerance));
        if (dtype == DT_FLOAT || dtype == DT_DOUBLE) {
          EXPECT_THAT(Resizer("ResizeBicubicGrad", mode).Input(g).Input(x).RunOne(),
                      TensorNear(Resampled(dtype, g, BicubicWeights(mode, kRows, size[0]),
                                           BicubicWeights(mode, kColumns, size[1]), true),
                                 1e-4, 1e-4));
        }
      }
      for (const DataType dtype :
           {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16, DT_UINT8, DT_INT8, DT_INT32}) {
        const Tensor ints = RandomTensor(DT_INT32, {2, size[0], size[1], 3}, 0, 4);
        const Tensor grads = *OpTester("Cast").Input(ints).Attr("DstT", dtype).RunOne();
        EXPECT_THAT(Resizer("ResizeNearestNeighborGrad", mode)
                        .Input(grads)
                        .Input(Size(kRows, kColumns))
                        .RunOne(),
                    TensorEq(Resampled(dtype, grads, NearestWeights(mode, kRows, size[0]),
                                       NearestWeights(mode, kColumns, size[1]), true)));
      }
    }
  }
}

TEST(Resize, RunsForLargeImages) {
  const Mode mode = {false, true};
  const Tensor x = RandomTensor(DT_UINT8, {1, 40, 60, 3}, 0, 255);
  for (const auto& size : {std::array<int64_t, 2>{70, 90}, std::array<int64_t, 2>{13, 18}}) {
    EXPECT_THAT(Resizer("ResizeBilinear", mode).Input(x).Input(Size(size[0], size[1])).RunOne(),
                TensorNear(Resampled(DT_FLOAT, x, BilinearWeights(mode, 40, size[0]),
                                     BilinearWeights(mode, 60, size[1]), false),
                           1e-3, 1e-5));
    EXPECT_THAT(Resizer("ResizeArea", {}).Input(x).Input(Size(size[0], size[1])).RunOne(),
                TensorNear(Resampled(DT_FLOAT, x, AreaWeights({}, 40, size[0]),
                                     AreaWeights({}, 60, size[1]), false),
                           2e-3, 1e-4));
  }
}

// Fewer and more channels than a vector has lanes.
TEST(Resize, HasTheSameBitsOnEverySimdTarget) {
  const std::vector<Mode> modes[] = {{{false, false}, {false, true}}, {{false, false}}};
  for (const std::string op : {"ResizeBilinear", "ResizeBicubic", "ResizeArea"}) {
    for (const Mode& mode : modes[op == "ResizeArea"]) {
      for (const auto& size : kSizes) {
        for (const int64_t depth : {1, 2, 3, 4, 7, 20, 37}) {
          for (const DataType dtype : {DT_FLOAT, DT_UINT8}) {
            SCOPED_TRACE(op + " " + std::to_string(size[0]) + "x" + std::to_string(size[1]) +
                         " depth " + std::to_string(depth));
            const Tensor x = RandomTensor(dtype, {2, kRows, kColumns, depth}, 0, 100);
            EXPECT_THAT(Resizer(op.c_str(), mode)
                            .Input(x)
                            .Input(Size(size[0], size[1]))
                            .RunEverywhere({{1, 3}, {}}),
                        IsOk());
            if (op == "ResizeArea" || dtype != DT_FLOAT) continue;
            const Tensor g = RandomTensor(DT_FLOAT, {2, size[0], size[1], depth}, -1, 1);
            EXPECT_THAT(
                Resizer((op + "Grad").c_str(), mode).Input(g).Input(x).RunEverywhere({{1, 3}, {}}),
                IsOk());
          }
        }
      }
    }
  }
}

TEST(Resize, KeepsInfinitiesOnEverySimdTarget) {
  const float inf = std::numeric_limits<float>::infinity();
  const float max = std::numeric_limits<float>::max();
  const Tensor x = AsTensor<float>({inf, 1, max, max, -inf, 2}, {1, 1, 6, 1});
  for (const std::string& target : SimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_TRUE(SetSimdTarget(target));
    EXPECT_THAT(Resizer("ResizeArea", {}).Input(x).Input(Size(1, 3)).RunOne(),
                TensorEq(AsTensor<float>({inf, max, -inf}, {1, 1, 3, 1})));
  }
  ASSERT_TRUE(SetSimdTarget(""));
}

// Large results are written with non-temporal stores.
TEST(Resize, TreatsEachOfManyImagesAlike) {
  constexpr int64_t kBatch = 80;
  const Tensor x = RandomTensor(DT_FLOAT, {kBatch, 20, 30, 16}, -1, 1);
  for (const char* const op : {"ResizeBilinear", "ResizeBicubic", "ResizeArea"}) {
    SCOPED_TRACE(op);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor all,
                                  Resizer(op, {}).Input(x).Input(Size(40, 64)).RunOne());
    ASSERT_GE(all.TotalBytes(), static_cast<size_t>(MinNonTemporalBytes()));
    for (const int64_t i : {int64_t{0}, kBatch - 1}) {
      EXPECT_THAT(Resizer(op, {}).Input(x.Slice(i, i + 1)).Input(Size(40, 64)).RunOne(),
                  TensorEq(all.Slice(i, i + 1)));
    }
  }
}

TEST(Resize, RejectsBadArguments) {
  const Tensor x = Iota<float>({1, 2, 3, 1});
  for (const char* const op :
       {"ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor", "ResizeArea"}) {
    SCOPED_TRACE(op);
    ExpectErrors({
        {"rank", Resizer(op, {}).Input(Iota<float>({2, 3})).Input(Size(1, 1)), "images"},
        {"negative", Resizer(op, {}).Input(x).Input(Size(-1, 1)), "must be positive, but "},
    });
    EXPECT_THAT(
        Resizer(op, {}).Input(x).Input(Size(0, 1)).Run(),
        StatusIs(kInvalidArgument, "output dimensions must be positive, but size is [0,1]"));
    EXPECT_THAT(Resizer(op, {}).Input(x).Input<int32_t>({1, 2, 3}).Run(),
                StatusIs(kInvalidArgument, ::testing::HasSubstr("shape_t must ")));
    EXPECT_THAT(Resizer(op, {}).Input(Tensor(DT_FLOAT, {1, 0, 2, 1})).Input(Size(1, 1)).Run(),
                StatusIs(kInvalidArgument, ::testing::HasSubstr("images must have 1 to")));
    EXPECT_THAT(Resizer(op, {}).Input(Tensor(DT_FLOAT, {0, 2, 2, 1})).Input(Size(3, 1)).RunOne(),
                TensorEq(Tensor(DT_FLOAT, {0, 3, 1, 1})));
    EXPECT_THAT(
        Resizer(op, {}).UnknownInput(DT_FLOAT, {-1, 3, 3, 2}).UnknownInput(DT_INT32).InferShape(),
        ShapeIs("[?,?,?,2]"));
  }
  for (const char* const op : {"ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor"}) {
    EXPECT_THAT(
        Resizer(op, {true, true}).Input(x).Input(Size(1, 1)).Run(),
        StatusIs(kInvalidArgument, "align_corners and half_pixel_centers must not both be true"));
  }
  ExpectErrors(
      {{"rank", Resizer("ResizeBilinearGrad", {}).Input(x).Input(Iota<float>({2, 2})), "rank 4"}});
  EXPECT_THAT(Resizer("ResizeBicubicGrad", {}).Input(x).Input(Iota<float>({2, 2, 3, 1})).Run(),
              StatusIs(kInvalidArgument,
                       ::testing::HasSubstr("expected the batch and channels of original_image")));
  EXPECT_THAT(
      Resizer("ResizeBilinearGrad", {}).Input(x).Input(Tensor(DT_FLOAT, {1, 0, 3, 1})).Run(),
      StatusIs(kInvalidArgument, ::testing::HasSubstr("must have 1 to")));
}

// ---- ScaleAndTranslate ----

double KernelWeight(const std::string& name, double x) {
  const double pi = std::acos(-1);
  if (name.substr(0, 7) == "lanczos") {
    const double r = name[7] - '0';
    if (x > r) return 0;
    if (x < 1e-3) return 1;
    return r * std::sin(pi * x) * std::sin(pi * x / r) / (pi * pi * x * x);
  }
  if (name == "gaussian") return x >= 1.5 ? 0 : std::exp(-x * x / 0.5);
  if (name == "box") return x < 0.5 ? 1 : x == 0.5 ? 0.5 : 0;
  if (name == "triangle") return x < 1 ? 1 - x : 0;
  const double b = name == "keyscubic" ? 0 : 1.0 / 3;
  const double c = name == "keyscubic" ? 0.5 : 1.0 / 3;
  if (x >= 2) return 0;
  if (x >= 1) {
    return ((-b - 6 * c) * x * x * x + (6 * b + 30 * c) * x * x + (-12 * b - 48 * c) * x + 8 * b +
            24 * c) /
           6;
  }
  return ((12 - 9 * b - 6 * c) * x * x * x + (-18 + 12 * b + 6 * c) * x * x + 6 - 2 * b) / 6;
}
double KernelRadius(const std::string& name) {
  if (name.substr(0, 7) == "lanczos") return name[7] - '0';
  if (name == "gaussian") return 1.5;
  return name == "box" || name == "triangle" ? 1 : 2;
}

Weights KernelWeights(const std::string& name, bool antialias, double scale, double move,
                      int64_t in, int64_t out) {
  Weights weights(out, std::vector<double>(in));
  const double width = antialias ? std::max(1 / scale, 1.0) : 1;
  for (int64_t i = 0; i < out; ++i) {
    const double center = (static_cast<double>(i) + 0.5 - move) / scale;
    if (center < 0 || center > static_cast<double>(in)) continue;
    const double reach = KernelRadius(name) * width;
    double sum = 0;
    for (int64_t k = 0; k < in; ++k) {
      const double distance = std::abs(static_cast<double>(k) + 0.5 - center);
      // The pixels closest to the edge are in every span.
      if (distance > reach + 1e-6) continue;
      weights[i][k] = KernelWeight(name, distance / width);
      sum += weights[i][k];
    }
    for (double& w : weights[i]) w = sum == 0 ? 0 : w / sum;
  }
  return weights;
}

TEST(ScaleAndTranslate, AgreesWithItsDefinition) {
  const struct {
    int64_t size[2];
    float scale[2];
    float move[2];
  } cases[] = {{{7, 6}, {1.4f, 1.5f}, {0, 0}},
               {{3, 2}, {0.45f, 0.4f}, {0.3f, -0.3f}},
               {{4, 9}, {1, 2}, {3.1f, -2.6f}},
               {{1, 1}, {0.21f, 0.26f}, {0, 0}}};
  for (const char* const name : {"lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle",
                                 "keyscubic", "mitchellcubic"}) {
    for (const auto& c : cases) {
      for (const bool antialias : {true, false}) {
        SCOPED_TRACE(std::string(name) + " " + std::to_string(c.size[0]) +
                     (antialias ? " antialias" : ""));
        const Weights rows =
            KernelWeights(name, antialias, c.scale[0], c.move[0], kRows, c.size[0]);
        const Weights columns =
            KernelWeights(name, antialias, c.scale[1], c.move[1], kColumns, c.size[1]);
        const Tensor x = RandomTensor(DT_FLOAT, {2, kRows, kColumns, 3}, -1, 1);
        const Tensor g = RandomTensor(DT_FLOAT, {2, c.size[0], c.size[1], 3}, -1, 1);
        const Tensor scale = AsTensor<float>({c.scale[0], c.scale[1]});
        const Tensor move = AsTensor<float>({c.move[0], c.move[1]});
        EXPECT_THAT(OpTester("ScaleAndTranslate")
                        .Inputs({x, Size(c.size[0], c.size[1]), scale, move})
                        .Attr("kernel_type", name)
                        .Attr("antialias", antialias)
                        .RunOne(),
                    TensorNear(Resampled(DT_FLOAT, x, rows, columns, false), 1e-5, 1e-4));
        EXPECT_THAT(OpTester("ScaleAndTranslateGrad")
                        .Inputs({g, x, scale, move})
                        .Attr("kernel_type", name)
                        .Attr("antialias", antialias)
                        .RunOne(),
                    TensorNear(Resampled(DT_FLOAT, g, rows, columns, true), 1e-5, 1e-4));
      }
    }
  }
}

// One output row depends on all input rows and takes much longer than the deadline.
TEST(ScaleAndTranslate, StopsWithinARow) {
  constexpr int64_t kSize = 2000;
  Tensor x(DT_FLOAT, {1, kSize, kSize, 1});
  x.flat<float>().setConstant(1);
  StopToken stop(nullptr, nullptr, StopToken::Clock::now() + std::chrono::milliseconds(400));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const std::vector<Tensor> outputs,
      OpTester("ScaleAndTranslate")
          .Inputs({x, Size(1, kSize), AsTensor<float>({5e-4f, 5e-4f}), AsTensor<float>({0, 0})})
          .Attr("kernel_type", "triangle")
          .StoppedBy(&stop)
          .RunOnThreads(1));
  EXPECT_FALSE(std::abs(outputs[0].flat<float>()(0) - 1) < 0.1f);
}

TEST(ScaleAndTranslate, HasTheSameBitsOnEverySimdTarget) {
  for (const char* const kernel : {"lanczos3", "triangle", "keyscubic"}) {
    for (const bool antialias : {false, true}) {
      for (const int64_t depth : {1, 3, 20}) {
        SCOPED_TRACE(std::string(kernel) + " depth " + std::to_string(depth));
        const Tensor x = RandomTensor(DT_FLOAT, {1, 40, 30, depth}, -1, 1);
        const Tensor g = RandomTensor(DT_FLOAT, {1, 9, 44, depth}, -1, 1);
        const Tensor scale = AsTensor<float>({0.2f, 1.5f});
        const Tensor move = AsTensor<float>({0.3f, -0.2f});
        EXPECT_THAT(OpTester("ScaleAndTranslate")
                        .Inputs({x, Size(9, 44), scale, move})
                        .Attr("kernel_type", kernel)
                        .Attr("antialias", antialias)
                        .RunEverywhere({{1, 3}, {}}),
                    IsOk());
        EXPECT_THAT(OpTester("ScaleAndTranslateGrad")
                        .Inputs({g, x, scale, move})
                        .Attr("kernel_type", kernel)
                        .Attr("antialias", antialias)
                        .RunEverywhere({{1, 3}, {}}),
                    IsOk());
      }
    }
  }
}

// Windows with more rows than a cache holds, and with fewer.
TEST(ScaleAndTranslate, RunsForWideWindows) {
  for (const int64_t columns : {3, 20000}) {
    SCOPED_TRACE(columns);
    const Tensor x = RandomTensor(DT_FLOAT, {1, 90, columns, 1}, -1, 1);
    const Tensor scale = AsTensor<float>({0.1f, 1});
    const auto y = OpTester("ScaleAndTranslate")
                       .Inputs({x, Size(9, columns), scale, AsTensor<float>({0, 0})})
                       .Attr("kernel_type", "lanczos3")
                       .RunOne();
    const Weights rows = KernelWeights("lanczos3", true, 0.1f, 0, 90, 9);
    ASSERT_TRUE(y.ok()) << y.status();
    for (int64_t i = 0; i < 9; ++i) {
      for (const int64_t c : {int64_t{0}, columns - 1}) {
        double sum = 0;
        for (int64_t r = 0; r < 90; ++r) {
          sum += rows[static_cast<size_t>(i)][static_cast<size_t>(r)] *
                 static_cast<double>(x.flat<float>()(r * columns + c));
        }
        EXPECT_NEAR(y->flat<float>()(i * columns + c), sum, 1e-5);
      }
    }
  }
}

TEST(ScaleAndTranslate, RejectsBadArguments) {
  const Tensor x = Iota<float>({1, 2, 3, 1});
  const auto tester = [&](std::vector<float> scale, std::vector<float> move, const char* kernel) {
    return OpTester("ScaleAndTranslate")
        .Input(x)
        .Input(Size(2, 2))
        .Input(AsTensor<float>(scale))
        .Input(AsTensor<float>(move))
        .Attr("kernel_type", kernel);
  };
  ExpectErrors({
      {"kernel", tester({1, 1}, {0, 0}, "cubic"), "kernel_type is 'cubic', expected lanczos1"},
      {"scales", tester({1}, {0, 0}, "box"), "scale must have shape [2]"},
      {"moves", tester({1, 1}, {0, 0, 0}, "box"), "translation must have shape [2]"},
  });
  for (const float scale : {0.0f, -1.0f, kNan}) {
    EXPECT_THAT(tester({1, scale}, {0, 0}, "box").Run(),
                StatusIs(kInvalidArgument, ::testing::HasSubstr("scale must be positive")));
  }
  EXPECT_THAT(tester({1, 1e-40f}, {0, 0}, "box").Run(),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("finite positions")));
  EXPECT_THAT(tester({1, 1}, {0, kInf}, "box").Run(),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("finite positions")));
  // All positions are outside of the image.
  EXPECT_THAT(tester({1, 1}, {0, 1e30f}, "box").RunOne(),
              TensorEq(AsTensor<float>({0, 0, 0, 0}, {1, 2, 2, 1})));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
