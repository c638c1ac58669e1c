// Tests that results have the same bits on every processor, except for the ops that README.md
// lists.
//
// Each case runs an op with all instruction sets of this processor. The digest of the outputs must
// equal the digest in tests/data/digests.txt, which was recorded on x86-64. Inputs come from
// integer arithmetic and exact conversions, so they are the same everywhere.
// GRADFLOW_UPDATE_GOLDEN=1 replaces the file.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"
#include "gradflow/testing/op_tester.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/testing/constants.h"
#include "tests/testing/subprocess.h"

namespace gradflow::testing {
namespace {

constexpr char kFile[] = GRADFLOW_TEST_DATA_DIR "/digests.txt";
const std::vector<DataType> kFloats = {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16};

// ---- Inputs ----

// The random number generator SplitMix64.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // Returns a multiple of 2^-12 in [-8, 8).
  double Moderate() {
    return static_cast<double>(static_cast<int64_t>(Next() % 65536) - 32768) / 4096;
  }

 private:
  uint64_t state_;
};

template <typename T>
void Store(double value, Tensor* tensor, int64_t i) {
  tensor->flat<T>()(i) = T(value);
}

void Set(Tensor* tensor, int64_t i, double value) {
  switch (tensor->dtype()) {
    case DT_FLOAT:
      return Store<float>(value, tensor, i);
    case DT_DOUBLE:
      return Store<double>(value, tensor, i);
    case DT_HALF:
      return Store<half>(value, tensor, i);
    case DT_BFLOAT16:
      return Store<bfloat16>(value, tensor, i);
    default:
      FAIL() << "no values of " << DataTypeString(tensor->dtype());
  }
}

Tensor Fill(DataType dtype, const TensorShape& shape, double value) {
  Tensor tensor(dtype, shape);
  for (int64_t i = 0; i < tensor.NumElements(); ++i) Set(&tensor, i, value);
  return tensor;
}

// Returns values in [low, low + 16).
Tensor Moderate(DataType dtype, const TensorShape& shape, uint64_t seed, double low = -8) {
  Numbers numbers(seed);
  Tensor tensor(dtype, shape);
  for (int64_t i = 0; i < tensor.NumElements(); ++i) Set(&tensor, i, numbers.Moderate() + 8 + low);
  return tensor;
}

// Returns elements with random bits: numbers of all magnitudes, infinities and NaNs.
Tensor AnyBits(DataType dtype, const TensorShape& shape, uint64_t seed) {
  Numbers numbers(seed);
  Tensor tensor(dtype, shape);
  auto* const bytes = static_cast<uint8_t*>(tensor.raw_data());
  for (size_t i = 0; i < tensor.TotalBytes(); ++i) bytes[i] = static_cast<uint8_t>(numbers.Next());
  return tensor;
}

// Numbers at which formats and instruction sets differ: zeros, subnormal numbers, ties, the limits
// of integers, infinities and NaN.
std::vector<double> SpecialValues() {
  std::vector<double> values;
  for (const double magnitude : {0.0,
                                 0x1p-1074,
                                 0x1p-149,
                                 0x1.fffffcp-127,
                                 0x1p-126,
                                 0x1p-24,
                                 0x1p-14,
                                 0.25,
                                 0.5,
                                 1.0,
                                 1.5,
                                 2.5,
                                 127.5,
                                 128.0,
                                 255.5,
                                 256.0,
                                 32767.5,
                                 65504.0,
                                 65536.0,
                                 8388607.5,
                                 0x1p31 - 1,
                                 0x1p31,
                                 0x1p32,
                                 0x1.fffffep62,
                                 0x1p63,
                                 0x1p64,
                                 0x1.fffffep127,
                                 0x1.fffffffffffffp1023}) {
    values.push_back(magnitude);
    values.push_back(-magnitude);
  }
  values.insert(values.end(), {double{kInf}, -double{kInf}, double{kNan}, -double{kNan}});
  return values;
}

Tensor FromValues(DataType dtype, const std::vector<double>& values) {
  Tensor tensor(dtype, TensorShape({static_cast<int64_t>(values.size())}));
  for (size_t i = 0; i < values.size(); ++i) Set(&tensor, static_cast<int64_t>(i), values[i]);
  return tensor;
}

// Returns all pairs of special values: a column for the first operand and a row for the second.
std::pair<Tensor, Tensor> SpecialPairs(DataType dtype) {
  const Tensor row = FromValues(dtype, SpecialValues());
  Tensor column(dtype, TensorShape({row.NumElements(), 1}));
  std::memcpy(column.raw_data(), row.raw_data(), row.TotalBytes());
  return {column, row};
}

// ---- Digests ----

class Digest {
 public:
  // Adds bytes to the hash (FNV-1a).
  void Add(const void* data, size_t size) {
    for (size_t i = 0; i < size; ++i) {
      hash_ = (hash_ ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001b3;
    }
  }
  // Adds `count` floats. Replaces each NaN by the same NaN, because the processor decides which NaN
  // an operation returns.
  template <typename T>
  void AddFloats(const Tensor& tensor, size_t count) {
    const auto* const values = static_cast<const T*>(tensor.raw_data());
    for (size_t i = 0; i < count; ++i) {
      const T value = std::isnan(static_cast<double>(values[i]))
                          ? std::numeric_limits<T>::quiet_NaN()
                          : values[i];
      Add(&value, sizeof(value));
    }
  }
  void AddTensor(const Tensor& tensor) {
    const std::string type =
        absl::StrCat(DataTypeString(tensor.dtype()), tensor.shape().DebugString());
    Add(type.data(), type.size());
    switch (tensor.dtype()) {
      case DT_FLOAT:
      case DT_COMPLEX64:
        return AddFloats<float>(tensor, tensor.TotalBytes() / sizeof(float));
      case DT_DOUBLE:
      case DT_COMPLEX128:
        return AddFloats<double>(tensor, tensor.TotalBytes() / sizeof(double));
      case DT_HALF:
        return AddFloats<half>(tensor, tensor.TotalBytes() / sizeof(half));
      case DT_BFLOAT16:
        return AddFloats<bfloat16>(tensor, tensor.TotalBytes() / sizeof(bfloat16));
      default:
        return Add(tensor.raw_data(), tensor.TotalBytes());
    }
  }
  std::string Hex() const { return absl::StrCat(absl::Hex(hash_, absl::kZeroPad16)); }

 private:
  uint64_t hash_ = 0xcbf29ce484222325;
};

// ---- Cases ----

class Cases {
 public:
  // Runs the op and stores the digest of its outputs.
  void Add(const std::string& name, OpTester op) {
    SCOPED_TRACE(name);
    const auto outputs = op.RunEverywhere({{1, 3}, {}});
    GRADFLOW_ASSERT_OK(outputs);
    Digest digest;
    for (const Tensor& output : *outputs) digest.AddTensor(output);
    EXPECT_TRUE(digests_.emplace(name, digest.Hex()).second) << "another case has this name";
  }
  const std::map<std::string, std::string>& digests() const { return digests_; }

 private:
  std::map<std::string, std::string> digests_;
};

std::string Name(absl::string_view op, DataType dtype, absl::string_view variant) {
  return absl::StrCat(op, " ", DataTypeString(dtype), " ", variant);
}

void FakeQuant(Cases* cases) {
  const TensorShape shape({3, 11, 37});
  const Tensor x = Moderate(DT_FLOAT, shape, 1);
  const Tensor any = AnyBits(DT_FLOAT, shape, 2);
  const Tensor gradients = Moderate(DT_FLOAT, shape, 3);
  const Tensor min = AsScalar<float>(-3.0625f);
  const Tensor max = AsScalar<float>(4.8125f);
  const Tensor mins = Moderate(DT_FLOAT, TensorShape({37}), 4, -16);
  const Tensor maxes = Moderate(DT_FLOAT, TensorShape({37}), 5, 0.25);
  for (const int64_t bits : {2, 4, 8, 16}) {
    for (const bool narrow : {false, true}) {
      const std::string variant = absl::StrCat(bits, narrow ? " bits, narrow" : " bits");
      const auto add = [&](const char* op, OpTester tester) {
        cases->Add(absl::StrCat(op, " ", variant),
                   tester.Attr("num_bits", bits).Attr("narrow_range", narrow));
      };
      const auto args = [](OpTester tester) {
        return tester.Attr("min", -3.0625f).Attr("max", 4.8125f);
      };
      add("FakeQuantWithMinMaxArgs", args(OpTester("FakeQuantWithMinMaxArgs").Input(x)));
      add("FakeQuantWithMinMaxArgsGradient",
          args(OpTester("FakeQuantWithMinMaxArgsGradient").Input(gradients).Input(x)));
      add("FakeQuantWithMinMaxVars",
          OpTester("FakeQuantWithMinMaxVars").Input(x).Input(min).Input(max));
      add("FakeQuantWithMinMaxVars any",
          OpTester("FakeQuantWithMinMaxVars").Input(any).Input(min).Input(max));
      add("FakeQuantWithMinMaxVarsGradient", OpTester("FakeQuantWithMinMaxVarsGradient")
                                                 .Input(gradients)
                                                 .Input(x)
                                                 .Input(min)
                                                 .Input(max));
      add("FakeQuantWithMinMaxVarsGradient any", OpTester("FakeQuantWithMinMaxVarsGradient")
                                                     .Input(gradients)
                                                     .Input(any)
                                                     .Input(min)
                                                     .Input(max));
      add("FakeQuantWithMinMaxVarsPerChannel",
          OpTester("FakeQuantWithMinMaxVarsPerChannel").Input(x).Input(mins).Input(maxes));
      add("FakeQuantWithMinMaxVarsPerChannelGradient",
          OpTester("FakeQuantWithMinMaxVarsPerChannelGradient")
              .Input(gradients)
              .Input(x)
              .Input(mins)
              .Input(maxes));
    }
  }
}

void BatchNorm(Cases* cases) {
  constexpr int64_t kDepth = 19;
  const auto vector = [](uint64_t seed, double low) {
    return Moderate(DT_FLOAT, TensorShape({kDepth}), seed, low);
  };
  const Tensor scale = vector(11, -8);
  const Tensor offset = vector(12, -8);
  const Tensor mean = vector(13, -8);
  const Tensor variance = vector(14, 0.125);
  const Tensor none(DT_FLOAT, TensorShape({0}));
  for (const char* const version : {"", "V2", "V3"}) {
    for (const DataType dtype : kFloats) {
      if (dtype == DT_DOUBLE || (*version == '\0' && dtype != DT_FLOAT)) continue;
      for (const char* const format : {"NHWC", "NCHW"}) {
        const bool channels_last = std::strcmp(format, "NHWC") == 0;
        const TensorShape shape =
            channels_last ? TensorShape({3, 5, 7, kDepth}) : TensorShape({3, kDepth, 5, 7});
        const Tensor x = Moderate(dtype, shape, 15);
        const Tensor gradients = Moderate(dtype, shape, 16);
        for (const bool training : {false, true}) {
          const std::string variant =
              absl::StrCat(format, training ? " in training" : " in inference");
          const auto attrs = [&](OpTester tester) {
            return tester.Attr("data_format", std::string(format))
                .Attr("is_training", training)
                .Attr("epsilon", 0.0009765625f);
          };
          const std::string forward = absl::StrCat("FusedBatchNorm", version);
          cases->Add(Name(forward, dtype, variant), attrs(OpTester(forward)
                                                              .Input(x)
                                                              .Input(scale)
                                                              .Input(offset)
                                                              .Input(training ? none : mean)
                                                              .Input(training ? none : variance)));
          const std::string backward = absl::StrCat("FusedBatchNormGrad", version);
          OpTester tester =
              OpTester(backward).Input(gradients).Input(x).Input(scale).Input(mean).Input(variance);
          if (std::strcmp(version, "V3") == 0) tester.Input(mean);
          cases->Add(Name(backward, dtype, variant), attrs(tester));
        }
      }
    }
  }
}

void Reductions(Cases* cases) {
  for (const DataType dtype : kFloats) {
    // Odd sizes that are long enough for vectors, blocks and several threads.
    const Tensor x = Moderate(dtype, TensorShape({37, 5, 131}), 21);
    const Tensor any = AnyBits(dtype, TensorShape({37, 5, 131}), 22);
    for (const char* const op : {"Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm"}) {
      for (const std::vector<int32_t>& axes :
           std::vector<std::vector<int32_t>>{{0}, {1}, {2}, {0, 2}, {0, 1, 2}}) {
        const auto reduce = [&](const Tensor& values) {
          return OpTester(op).Input(values).Input(AsTensor<int32_t>(axes));
        };
        const std::string variant = absl::StrCat("axes ", absl::StrJoin(axes, ","));
        cases->Add(Name(op, dtype, variant), reduce(x));
        cases->Add(Name(op, dtype, variant + " any"), reduce(any));
      }
    }
    for (const char* const op : {"Cumsum", "Cumprod"}) {
      for (const int32_t axis : {0, 2}) {
        cases->Add(Name(op, dtype, absl::StrCat("axis ", axis)),
                   OpTester(op).Input(x).Input(AsScalar<int32_t>(axis)));
      }
    }
    cases->Add(Name("BiasAddGrad", dtype, ""), OpTester("BiasAddGrad").Input(x));
    cases->Add(Name("AddN", dtype, ""), OpTester("AddN").Input(x).Input(any).Input(x));
    cases->Add(Name("Softmax", dtype, ""),
               OpTester("Softmax").Input(Moderate(dtype, TensorShape({13, 131}), 23)));
  }
}

void Elementwise(Cases* cases) {
  for (const DataType dtype : kFloats) {
    const Tensor specials = FromValues(dtype, SpecialValues());
    const Tensor x = Moderate(dtype, TensorShape({1037}), 31);
    const Tensor any = AnyBits(dtype, TensorShape({1037}), 32);
    // Erf is left out, because it depends on the version of SLEEF.
    for (const char* const op :
         {"Acos",  "Acosh",  "Asin",  "Asinh", "Atan",     "Atanh",      "Cos",   "Cosh",
          "Erfc",  "Exp",    "Expm1", "Log",   "Log1p",    "Sigmoid",    "Sin",   "Sinh",
          "Tan",   "Tanh",   "Abs",   "Inv",   "Neg",      "Reciprocal", "Rsqrt", "Sign",
          "Sqrt",  "Square", "Ceil",  "Floor", "IsFinite", "IsInf",      "IsNan", "Rint",
          "Round", "Elu",    "Selu",  "Relu",  "Relu6",    "LeakyRelu"}) {
      cases->Add(Name(op, dtype, "moderate"), OpTester(op).Input(x));
      cases->Add(Name(op, dtype, "any"), OpTester(op).Input(any));
      cases->Add(Name(op, dtype, "special"), OpTester(op).Input(specials));
    }
    // For negative numbers, the C library computes the result.
    cases->Add(Name("Lgamma", dtype, "positive"),
               OpTester("Lgamma").Input(Moderate(dtype, TensorShape({1037}), 33, 0.25)));
    const auto [column, row] = SpecialPairs(dtype);
    for (const char* const op :
         {"Add",         "AddV2",       "Mul",      "RealDiv",  "SquaredDifference",
          "Sub",         "Maximum",     "Minimum",  "FloorDiv", "FloorMod",
          "TruncateDiv", "TruncateMod", "DivNoNan", "MulNoNan", "Xdivy",
          "Atan2",       "NextAfter",   "Pow",      "Xlogy",    "Xlog1py",
          "Less",        "Greater",     "Equal",    "ReluGrad", "Relu6Grad",
          "EluGrad"}) {
      // NextAfter supports float and double only.
      if (std::strcmp(op, "NextAfter") == 0 && DataTypeSize(dtype) == 2) continue;
      const bool broadcasts = std::strstr(op, "Grad") == nullptr;
      OpTester moderate = OpTester(op).Input(x).Input(Moderate(dtype, TensorShape({1037}), 34));
      OpTester special = OpTester(op).Input(broadcasts ? column : row).Input(row);
      cases->Add(Name(op, dtype, "moderate"), moderate);
      cases->Add(Name(op, dtype, "special"), special);
    }
  }
}

void Casts(Cases* cases) {
  const std::vector<DataType> integers = {DT_INT8,   DT_UINT8, DT_INT16,  DT_UINT16, DT_INT32,
                                          DT_UINT32, DT_INT64, DT_UINT64, DT_BOOL};
  const auto cast = [&](const std::string& name, const Tensor& from, DataType to) {
    cases->Add(
        absl::StrCat("Cast ", DataTypeString(from.dtype()), " to ", DataTypeString(to), " ", name),
        OpTester("Cast").Input(from).Attr("DstT", to));
  };
  for (const DataType from : kFloats) {
    std::vector<DataType> targets = integers;
    for (const DataType to : kFloats) {
      if (to != from) targets.push_back(to);
    }
    for (const DataType to : targets) {
      cast("special", FromValues(from, SpecialValues()), to);
      cast("any", AnyBits(from, TensorShape({1037}), 41), to);
    }
  }
  for (const DataType from : integers) {
    Tensor bytes(from, TensorShape({1037}));
    if (from == DT_BOOL) {
      for (int64_t i = 0; i < bytes.NumElements(); ++i) bytes.flat<bool>()(i) = i % 3 == 0;
    } else {
      bytes = AnyBits(from, bytes.shape(), 42);
    }
    for (const DataType to : kFloats) cast("any", bytes, to);
  }
}

void Fourier(Cases* cases) {
  // Products of small primes, and a large prime.
  for (const int64_t n : {1, 8, 105, 1000, 1031, 2187}) {
    for (const DataType dtype : {DT_COMPLEX64, DT_COMPLEX128}) {
      const DataType part = dtype == DT_COMPLEX64 ? DT_FLOAT : DT_DOUBLE;
      const Tensor parts = Moderate(part, TensorShape({3, n, 2}), 46);
      Tensor x(dtype, TensorShape({3, n}));
      std::memcpy(x.raw_data(), parts.raw_data(), parts.TotalBytes());
      for (const char* const op : {"FFT", "IFFT"}) {
        cases->Add(Name(op, dtype, absl::StrCat(n)), OpTester(op).Input(x));
      }
    }
  }
}

void Resize(Cases* cases) {
  for (const DataType dtype : {DT_FLOAT, DT_HALF, DT_BFLOAT16}) {
    const Tensor images = Moderate(dtype, TensorShape({2, 11, 13, 3}), 51);
    for (const char* const op :
         {"ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor", "ResizeArea"}) {
      for (const char* const attr : {"", "align_corners", "half_pixel_centers"}) {
        if (std::strcmp(op, "ResizeArea") == 0 && std::strcmp(attr, "half_pixel_centers") == 0) {
          continue;
        }
        for (const auto& [height, width] : std::vector<std::pair<int, int>>{{7, 29}, {23, 5}}) {
          OpTester tester = OpTester(op).Input(images).Input<int32_t>({height, width});
          if (*attr != '\0') tester.Attr(attr, true);
          cases->Add(Name(op, dtype, absl::StrCat(height, "x", width, " ", attr)), tester);
        }
      }
    }
  }
}

void Random(Cases* cases) {
  for (const DataType dtype : kFloats) {
    cases->Add(Name("RandomUniform", dtype, ""), OpTester("RandomUniform")
                                                     .Input<int32_t>({17, 61})
                                                     .Attr("dtype", dtype)
                                                     .Attr("seed", int64_t{5}));
    cases->Add(Name("StatelessRandomUniform", dtype, ""), OpTester("StatelessRandomUniform")
                                                              .Input<int32_t>({17, 61})
                                                              .Input<int64_t>({5, -6})
                                                              .Attr("dtype", dtype));
  }
  cases->Add("RandomUniformInt int32", OpTester("RandomUniformInt")
                                           .Input<int32_t>({17, 61})
                                           .Input(AsScalar<int32_t>(-1000))
                                           .Input(AsScalar<int32_t>(12345))
                                           .Attr("seed", int64_t{5}));
}

void Quantize(Cases* cases) {
  const TensorShape shape({13, 37});
  const Tensor x = Moderate(DT_FLOAT, shape, 61);
  const Tensor gradients = Moderate(DT_FLOAT, shape, 62);
  const Tensor min = AsScalar<float>(-3.0625f);
  const Tensor max = AsScalar<float>(4.8125f);
  for (const DataType dtype : {DT_QINT8, DT_QUINT8, DT_QINT16, DT_QUINT16, DT_QINT32}) {
    for (const char* const mode : {"MIN_COMBINED", "MIN_FIRST", "SCALED"}) {
      cases->Add(Name("QuantizeV2", dtype, mode), OpTester("QuantizeV2")
                                                      .Input(x)
                                                      .Input(min)
                                                      .Input(max)
                                                      .Attr("T", dtype)
                                                      .Attr("mode", std::string(mode)));
      cases->Add(Name("Dequantize", dtype, mode), OpTester("Dequantize")
                                                      .Input(AnyBits(dtype, shape, 63))
                                                      .Input(min)
                                                      .Input(max)
                                                      .Attr("mode", std::string(mode)));
    }
  }
  for (const DataType dtype : kFloats) {
    const Tensor values = Moderate(dtype, shape, 64);
    for (const char* const rounding : {"HALF_TO_EVEN", "HALF_UP"}) {
      cases->Add(Name("QuantizeAndDequantizeV2", dtype, rounding),
                 OpTester("QuantizeAndDequantizeV2")
                     .Input(values)
                     .Input(Fill(dtype, TensorShape(), -3.0625))
                     .Input(Fill(dtype, TensorShape(), 4.8125))
                     .Attr("range_given", true)
                     .Attr("round_mode", std::string(rounding)));
    }
    cases->Add(Name("QuantizeAndDequantizeV2", dtype, "own range"),
               OpTester("QuantizeAndDequantizeV2")
                   .Input(values)
                   .Input(Fill(dtype, TensorShape(), 0))
                   .Input(Fill(dtype, TensorShape(), 0)));
  }
  cases->Add(
      "QuantizeAndDequantizeV4Grad float",
      OpTester("QuantizeAndDequantizeV4Grad").Input(gradients).Input(x).Input(min).Input(max));
}

TEST(Digests, MatchX86) {
  Cases cases;
  FakeQuant(&cases);
  BatchNorm(&cases);
  Reductions(&cases);
  Elementwise(&cases);
  Casts(&cases);
  Fourier(&cases);
  Resize(&cases);
  Random(&cases);
  Quantize(&cases);
  if (std::getenv("GRADFLOW_UPDATE_GOLDEN") != nullptr) {
    if (HasFailure()) return;
    std::string text;
    for (const auto& [name, digest] : cases.digests()) {
      absl::StrAppend(&text, digest, " ", name, "\n");
    }
    WriteFile(kFile, text);
    return;
  }
  std::map<std::string, std::string> recorded;
  for (const absl::string_view line : absl::StrSplit(ReadFile(kFile), '\n', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> fields =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    recorded[fields.second] = fields.first;
  }
  for (const auto& [name, digest] : cases.digests()) {
    EXPECT_EQ(digest, recorded[name]) << name;
    recorded.erase(name);
  }
  for (const auto& [name, digest] : recorded) {
    ADD_FAILURE() << "no case computes '" << name << "'; GRADFLOW_UPDATE_GOLDEN=1 removes it";
  }
}

}  // namespace
}  // namespace gradflow::testing
