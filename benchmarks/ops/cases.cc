#include "benchmarks/ops/cases.h"

#include <cblas.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "benchmarks/harness.h"
#include "gradflow/core/types.h"
#include "gradflow/ops/standard_ops.h"

namespace gradflow::benchmarks {
namespace {

using Build = std::function<void(const Scope& scope, const std::vector<Output>& x)>;
using MakeInput = std::function<Tensor()>;

constexpr int64_t kMany = int64_t{1} << 24;

// Unordered floats in [low, high). They are much faster to generate than normally distributed
// floats.
Tensor Spread(const TensorShape& shape, float low = -4, float high = 4) {
  Tensor tensor = NewTensor(DT_FLOAT, shape);
  const auto values = tensor.flat<float>();
  uint32_t state = 1;
  for (int64_t i = 0; i < values.size(); ++i) {
    state = state * 1664525 + 1013904223;
    values(i) = low + (high - low) * static_cast<float>(state >> 8) * 0x1p-24f;
  }
  return tensor;
}

MakeInput Floats(const TensorShape& shape) {
  return [=] { return Spread(shape); };
}
MakeInput Positive(const TensorShape& shape) {
  return [=] { return Spread(shape, 0.1f, 4); };
}

// Unordered integers in [0, limit).
MakeInput Integers(const TensorShape& shape, int64_t limit) {
  return [=] {
    Tensor tensor = NewTensor(DT_INT32, shape);
    const auto values = tensor.flat<int32_t>();
    uint64_t state = 1;
    for (int64_t i = 0; i < values.size(); ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      values(i) = static_cast<int32_t>((state >> 33) % static_cast<uint64_t>(limit));
    }
    return tensor;
  };
}

MakeInput Booleans(const TensorShape& shape) {
  return [=] {
    Tensor tensor = NewTensor(DT_BOOL, shape);
    const auto values = tensor.flat<bool>();
    for (int64_t i = 0; i < values.size(); ++i) values(i) = i * 2654435761u % 7 < 3;
    return tensor;
  };
}

// The op that `build` adds as node "op", with fed inputs.
OpCase::Make Ours(const Build& build, const std::vector<MakeInput>& inputs) {
  return [=](int threads) {
    const Scope scope = Scope::NewRootScope();
    std::vector<std::pair<std::string, Tensor>> feeds;
    std::vector<Output> outputs;
    for (const MakeInput& make : inputs) {
      const std::string name = absl::StrCat("x", feeds.size());
      Tensor tensor = make();
      outputs.push_back(ops::Placeholder(scope.WithOpName(name), tensor.dtype()));
      feeds.emplace_back(name, std::move(tensor));
    }
    build(scope.WithOpName("op"), outputs);
    return InSession(scope, std::move(feeds), threads);
  };
}

class CaseList {
 public:
  void Add(std::string name, const Build& build, const std::vector<MakeInput>& inputs,
           std::string peer_name, OpCase::Make peer, Table::Bound bound, double target) {
    cases_.push_back({std::move(name), Ours(build, inputs), std::move(peer_name), std::move(peer),
                      bound, target});
  }
  // Adds an op that reads and writes `floats` floats in total. The peer copies floats / 2 floats.
  void AddCopy(std::string name, const Build& build, const std::vector<MakeInput>& inputs,
               int64_t floats, double target) {
    Add(
        std::move(name), build, inputs, "copy",
        [=](int threads) { return Copy(floats / 2, threads); }, Table::kAtMost, target);
  }
  // Adds an op that reads and writes as much as a = b + s * c over arrays of `count` floats.
  void AddTriad(std::string name, const Build& build, const std::vector<MakeInput>& inputs,
                int64_t count, double target) {
    Add(
        std::move(name), build, inputs, "triad", [=](int threads) { return Triad(count, threads); },
        Table::kAtMost, target);
  }
  // Adds an op that moves `floats` floats in total, in any direction.
  void AddTraffic(std::string name, const Build& build, const std::vector<MakeInput>& inputs,
                  int64_t floats) {
    // A triad reads two arrays and writes one.
    AddTriad(std::move(name), build, inputs, floats / 3, 1.3);
  }
  void AddRead(std::string name, const Build& build, const std::vector<MakeInput>& inputs,
               int64_t floats, double target) {
    Add(
        std::move(name), build, inputs, "read", [=](int threads) { return Read(floats, threads); },
        Table::kAtMost, target);
  }
  // Adds an op whose peer is a C library function in a loop.
  template <typename F>
  void AddStd(std::string name, const Build& build, const std::vector<MakeInput>& inputs, F f,
              double avx2_target, double avx512_target) {
    const double target = __builtin_cpu_supports("avx512f") != 0 ? avx512_target : avx2_target;
    const auto peer = [=](int threads) {
      const Tensor x = inputs[0]();
      const Tensor y = inputs.back()();
      Tensor out = NewTensor(DT_FLOAT, x.shape());
      const float* const a = x.flat<float>().data();
      const float* const b = y.flat<float>().data();
      float* const to = out.flat<float>().data();
      return InParts(x.NumElements(), threads, [=](int64_t begin, int64_t end) {
        // Captures the tensors, so that they outlive the pointers.
        (void)out;
        for (int64_t i = begin; i < end; ++i) to[i] = f(a[i], b[i]);
        (void)x, (void)y;
      });
    };
    Add(std::move(name), build, inputs, "C library", peer, Table::kAtLeast, target);
  }

  std::vector<OpCase> Take() { return std::move(cases_); }

 private:
  std::vector<OpCase> cases_;
};

using namespace ops;  // NOLINT: the names of all cases
using Outputs = std::vector<Output>;

void AddElementwise(CaseList* list) {
  const MakeInput x = Floats({kMany});
  constexpr double kTarget = 1.15;
  list->AddCopy(
      "Neg 2^24", [](const Scope& s, const Outputs& i) { Neg(s, i[0]); }, {x}, 2 * kMany, kTarget);
  list->AddCopy(
      "Sqrt 2^24", [](const Scope& s, const Outputs& i) { Sqrt(s, i[0]); }, {Positive({kMany})},
      2 * kMany, kTarget);
  list->AddTriad(
      "AddV2 2^24", [](const Scope& s, const Outputs& i) { AddV2(s, i[0], i[1]); }, {x, x}, kMany,
      kTarget);
  list->AddTriad(
      "Mul 2^24", [](const Scope& s, const Outputs& i) { Mul(s, i[0], i[1]); }, {x, x}, kMany,
      kTarget);
  list->AddTriad(
      "RealDiv 2^24", [](const Scope& s, const Outputs& i) { RealDiv(s, i[0], i[1]); }, {x, x},
      kMany, kTarget);
  list->AddTriad(
      "Maximum 2^24", [](const Scope& s, const Outputs& i) { Maximum(s, i[0], i[1]); }, {x, x},
      kMany, kTarget);
  const MakeInput square = Floats({4096, 4096});
  const Build add = [](const Scope& s, const Outputs& i) { AddV2(s, i[0], i[1]); };
  list->AddCopy("AddV2 [4096,4096] [4096]", add, {square, Floats({4096})}, 2 * kMany, kTarget);
  list->AddCopy("AddV2 [4096,4096] [4096,1]", add, {square, Floats({4096, 1})}, 2 * kMany, kTarget);
  const auto cast = [&](DataType to, int64_t floats) {
    list->AddCopy(
        absl::StrCat("Cast float to ", DataTypeString(to), " 2^24"),
        [=](const Scope& s, const Outputs& i) { Cast(s, i[0], to); }, {x}, floats, kTarget);
  };
  cast(DT_INT32, 2 * kMany);
  cast(DT_DOUBLE, 3 * kMany);
  cast(DT_HALF, kMany + kMany / 2);
  cast(DT_BFLOAT16, kMany + kMany / 2);
  cast(DT_INT8, kMany + kMany / 4);
  list->AddCopy(
      "Less 2^24", [](const Scope& s, const Outputs& i) { Less(s, i[0], i[1]); }, {x, x},
      2 * kMany + kMany / 4, kTarget);
  list->AddCopy(
      "SelectV2 2^24", [](const Scope& s, const Outputs& i) { SelectV2(s, i[0], i[1], i[2]); },
      {Booleans({kMany}), x, x}, 3 * kMany + kMany / 4, kTarget);
}

void AddFunctions(CaseList* list) {
  const TensorShape shape({1 << 22});
  const MakeInput x = Floats(shape);
  const MakeInput positive = Positive(shape);
  list->AddStd(
      "Exp 2^22", [](const Scope& s, const Outputs& i) { Exp(s, i[0]); }, {x},
      [](float a, float) { return std::exp(a); }, 4, 6);
  list->AddStd(
      "Sigmoid 2^22", [](const Scope& s, const Outputs& i) { Sigmoid(s, i[0]); }, {x},
      [](float a, float) { return 1 / (1 + std::exp(-a)); }, 4, 6);
  list->AddStd(
      "Log 2^22", [](const Scope& s, const Outputs& i) { Log(s, i[0]); }, {positive},
      [](float a, float) { return std::log(a); }, 1.8, 3);
  list->AddStd(
      "Tanh 2^22", [](const Scope& s, const Outputs& i) { Tanh(s, i[0]); }, {x},
      [](float a, float) { return std::tanh(a); }, 3, 4);
  list->AddStd(
      "Erf 2^22", [](const Scope& s, const Outputs& i) { Erf(s, i[0]); }, {x},
      [](float a, float) { return std::erf(a); }, 2.5, 4);
  list->AddStd(
      "Pow 2^22", [](const Scope& s, const Outputs& i) { Pow(s, i[0], i[1]); }, {positive, x},
      [](float a, float b) { return std::pow(a, b); }, 1, 1);
}

void AddReductions(CaseList* list) {
  const MakeInput square = Floats({4096, 4096});
  const auto sum = [&](const char* axes, const std::vector<int32_t>& values, const MakeInput& x,
                       int64_t floats) {
    list->AddRead(
        absl::StrCat("Sum ", axes),
        [=](const Scope& s, const Outputs& i) {
          Tensor tensor(DT_INT32, {static_cast<int64_t>(values.size())});
          std::copy(values.begin(), values.end(), tensor.flat<int32_t>().data());
          Sum(s, i[0], Const(s.WithOpName("axes"), Input::Initializer(tensor)));
        },
        {x}, floats, 1.1);
  };
  sum("[4096,4096] axis 0", {0}, square, kMany);
  sum("[4096,4096] axis 1", {1}, square, kMany);
  sum("[4096,4096] all", {0, 1}, square, kMany);
  sum("[64,256,256,16] axes 1, 2", {1, 2}, Floats({64, 256, 256, 16}), 4 * kMany);
  list->AddRead(
      "Max [4096,4096] axis 1", [](const Scope& s, const Outputs& i) { Max(s, i[0], 1); }, {square},
      kMany, 1.1);
}

void AddMovement(CaseList* list) {
  constexpr double kTarget = 1.3;
  const MakeInput square = Floats({4096, 4096});
  const int64_t image_elements = int64_t{16} * 112 * 112 * 64;
  list->AddCopy(
      "Transpose [4096,4096]",
      [](const Scope& s, const Outputs& i) {
        Transpose(s, i[0], {1, 0});
      },
      {square}, 2 * kMany, kTarget);
  list->AddCopy(
      "Transpose [16,112,112,64] to NCHW",
      [](const Scope& s, const Outputs& i) {
        Transpose(s, i[0], {0, 3, 1, 2});
      },
      {Floats({16, 112, 112, 64})}, 2 * image_elements, kTarget);
  list->AddCopy(
      "Transpose [16,64,112,112] to NHWC",
      [](const Scope& s, const Outputs& i) {
        Transpose(s, i[0], {0, 2, 3, 1});
      },
      {Floats({16, 64, 112, 112})}, 2 * image_elements, kTarget);
  const int64_t color_elements = int64_t{64} * 224 * 224 * 3;
  list->AddCopy(
      "Transpose [64,224,224,3] to NCHW",
      [](const Scope& s, const Outputs& i) {
        Transpose(s, i[0], {0, 3, 1, 2});
      },
      {Floats({64, 224, 224, 3})}, 2 * color_elements, kTarget);
  list->AddCopy(
      "Transpose [64,3,224,224] to NHWC",
      [](const Scope& s, const Outputs& i) {
        Transpose(s, i[0], {0, 2, 3, 1});
      },
      {Floats({64, 3, 224, 224})}, 2 * color_elements, kTarget);
  list->AddCopy(
      "Cumsum [4096,4096] axis 1", [](const Scope& s, const Outputs& i) { Cumsum(s, i[0], 1); },
      {square}, 2 * kMany, kTarget);
  list->AddCopy(
      "Cumsum [4096,4096] axis 0", [](const Scope& s, const Outputs& i) { Cumsum(s, i[0], 0); },
      {square}, 2 * kMany, kTarget);
  const MakeInput part = Floats({65536, 64});
  list->AddCopy(
      "ConcatV2 3 [65536,64] axis 1",
      [](const Scope& s, const Outputs& i) {
        Concat(s, {i[0], i[1], i[2]}, 1);
      },
      {part, part, part}, int64_t{6} * 65536 * 64, kTarget);
  list->AddCopy(
      "Split [4096,4096] in 4 axis 1",
      [](const Scope& s, const Outputs& i) { Split(s, 1, i[0], 4); }, {square}, 2 * kMany, kTarget);
  list->AddCopy(
      "Pad [16,112,112,64] by 1",
      [](const Scope& s, const Outputs& i) {
        Pad(s, i[0], {{0, 0}, {1, 1}, {1, 1}, {0, 0}});
      },
      {Floats({16, 112, 112, 64})}, 2 * image_elements, kTarget);
  list->AddCopy(
      "Tile [1024,1024] 4 x 4",
      [](const Scope& s, const Outputs& i) {
        Tile(s, i[0], {4, 4});
      },
      {Floats({1024, 1024})}, 2 * kMany, kTarget);
  list->AddCopy(
      "GatherV2 65536 rows of 256 B",
      [](const Scope& s, const Outputs& i) { GatherV2(s, i[0], i[1], 0); },
      {Floats({65536, 64}), Integers({65536}, 65536)}, int64_t{2} * 65536 * 64, kTarget);
  list->AddCopy(
      "GatherV2 2^22 elements",
      [](const Scope& s, const Outputs& i) { GatherV2(s, i[0], i[1], 0); },
      {Floats({1 << 16}), Integers({1 << 22}, 1 << 16)}, int64_t{2} << 22, kTarget);
}

// Computes `count` products [m,k] x [k,n] with the BLAS. Several products are split over the
// threads whole. A single product is split by rows.
OpCase::Make Blas(int64_t count, int64_t m, int64_t k, int64_t n) {
  return [=](int threads) {
    const Tensor x = Spread({count, m, k});
    const Tensor y = Spread({count, k, n});
    Tensor out = NewTensor(DT_FLOAT, {count, m, n});
    const float* const a = x.flat<float>().data();
    const float* const b = y.flat<float>().data();
    float* const c = out.flat<float>().data();
    const auto multiply = [=](int64_t batch, int64_t row, int64_t rows) {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, static_cast<int>(rows),
                  static_cast<int>(n), static_cast<int>(k), 1, a + (batch * m + row) * k,
                  static_cast<int>(k), b + batch * k * n, static_cast<int>(n), 0,
                  c + (batch * m + row) * n, static_cast<int>(n));
    };
    // Each part is a whole product or, for a single product, at least 64 rows.
    const int64_t parts = count > 1 ? 1 : std::max<int64_t>(1, std::min<int64_t>(threads, m / 64));
    return InParts(count * parts, threads, [=](int64_t begin, int64_t end) {
      // Captures the tensors, so that they outlive the pointers.
      (void)x, (void)y, (void)out;
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i % parts * m / parts;
        multiply(i / parts, row, (i % parts + 1) * m / parts - row);
      }
    });
  };
}

void AddProducts(CaseList* list) {
  list->Add(
      "BatchMatMulV2 [96,128,64]x[96,64,128]",
      [](const Scope& s, const Outputs& i) { BatchMatMulV2(s, i[0], i[1]); },
      {Floats({96, 128, 64}), Floats({96, 64, 128})}, "BLAS", Blas(96, 128, 64, 128),
      Table::kAtLeast, 0.95);
  for (const int64_t n : {64, 128, 256, 512, 1024, 2048}) {
    list->Add(
        absl::StrCat("MatMul [", n, ",", n, "]"),
        [](const Scope& s, const Outputs& i) { MatMul(s, i[0], i[1]); },
        {Floats({n, n}), Floats({n, n})}, "BLAS", Blas(1, n, n, n), Table::kAtLeast, 0.95);
  }
}

// Ops of networks. They should take only as long as moving their tensors.
void AddNetworkOps(CaseList* list) {
  const MakeInput x = Floats({kMany});
  const auto unary = [&](const char* name, const Build& build) {
    list->AddTraffic(absl::StrCat(name, " 2^24"), build, {x}, 2 * kMany);
  };
  unary("Relu", [](const Scope& s, const Outputs& i) { Relu(s, i[0]); });
  unary("Relu6", [](const Scope& s, const Outputs& i) { Relu6(s, i[0]); });
  unary("LeakyRelu", [](const Scope& s, const Outputs& i) { LeakyRelu(s, i[0]); });
  unary("Elu", [](const Scope& s, const Outputs& i) { Elu(s, i[0]); });
  unary("Selu", [](const Scope& s, const Outputs& i) { Selu(s, i[0]); });
  unary("Softplus", [](const Scope& s, const Outputs& i) { Softplus(s, i[0]); });
  unary("Softsign", [](const Scope& s, const Outputs& i) { Softsign(s, i[0]); });
  const auto gradient = [&](const char* name, const Build& build) {
    list->AddTraffic(absl::StrCat(name, " 2^24"), build, {x, x}, 3 * kMany);
  };
  gradient("ReluGrad", [](const Scope& s, const Outputs& i) { ReluGrad(s, i[0], i[1]); });
  gradient("Relu6Grad", [](const Scope& s, const Outputs& i) { Relu6Grad(s, i[0], i[1]); });
  gradient("LeakyReluGrad", [](const Scope& s, const Outputs& i) { LeakyReluGrad(s, i[0], i[1]); });
  gradient("EluGrad", [](const Scope& s, const Outputs& i) { EluGrad(s, i[0], i[1]); });
  gradient("SeluGrad", [](const Scope& s, const Outputs& i) { SeluGrad(s, i[0], i[1]); });
  gradient("SoftplusGrad", [](const Scope& s, const Outputs& i) { SoftplusGrad(s, i[0], i[1]); });
  gradient("SoftsignGrad", [](const Scope& s, const Outputs& i) { SoftsignGrad(s, i[0], i[1]); });

  // The activations after the first convolution of a ResNet, for 8 images.
  constexpr int64_t kActivations = int64_t{8} * 112 * 112 * 64;
  const MakeInput images = Floats({8, 112, 112, 64});
  const MakeInput pooled = Floats({8, 56, 56, 64});
  const std::vector<int> window = {1, 3, 3, 1};
  const std::vector<int> step = {1, 2, 2, 1};
  list->AddTraffic(
      "MaxPool 3x3 / 2 [8,112,112,64]",
      [=](const Scope& s, const Outputs& i) { MaxPool(s, i[0], window, step, "SAME"); }, {images},
      kActivations + kActivations / 4);
  list->AddTraffic(
      "AvgPool 3x3 / 2 [8,112,112,64]",
      [=](const Scope& s, const Outputs& i) { AvgPool(s, i[0], window, step, "SAME"); }, {images},
      kActivations + kActivations / 4);
  list->AddTraffic(
      "MaxPoolGrad 3x3 / 2 [8,112,112,64]",
      [=](const Scope& s, const Outputs& i) {
        MaxPoolGrad(s, i[0], i[1], i[1], window, step, "SAME");
      },
      {images, pooled}, 2 * kActivations + kActivations / 4);
  list->AddTraffic(
      "AvgPoolGrad 3x3 / 2 [8,112,112,64]",
      [=](const Scope& s, const Outputs& i) {
        AvgPoolGrad(s, {8, 112, 112, 64}, i[0], window, step, "SAME");
      },
      {pooled}, kActivations + kActivations / 4);
  list->AddTraffic(
      "BiasAdd [8,112,112,64]", [](const Scope& s, const Outputs& i) { BiasAdd(s, i[0], i[1]); },
      {images, Floats({64})}, 2 * kActivations);
  list->AddTraffic(
      "BiasAddGrad [8,112,112,64]", [](const Scope& s, const Outputs& i) { BiasAddGrad(s, i[0]); },
      {images}, kActivations);

  constexpr int64_t kLogits = int64_t{16384} * 1000;
  const MakeInput logits = Floats({16384, 1000});
  list->AddTraffic(
      "Softmax [16384,1000]", [](const Scope& s, const Outputs& i) { Softmax(s, i[0]); }, {logits},
      2 * kLogits);
  list->AddTraffic(
      "LogSoftmax [16384,1000]", [](const Scope& s, const Outputs& i) { LogSoftmax(s, i[0]); },
      {logits}, 2 * kLogits);
  list->AddTraffic(
      "SoftmaxCrossEntropyWithLogits [16384,1000]",
      [](const Scope& s, const Outputs& i) { SoftmaxCrossEntropyWithLogits(s, i[0], i[1]); },
      {logits, logits}, 3 * kLogits);
  list->AddTraffic(
      "SparseSoftmaxCrossEntropyWithLogits [16384,1000]",
      [](const Scope& s, const Outputs& i) { SparseSoftmaxCrossEntropyWithLogits(s, i[0], i[1]); },
      {logits, Integers({16384}, 1000)}, 2 * kLogits);
}

void AddOthers(CaseList* list) {
  const MakeInput keys = Integers({1000000}, 1000000);
  list->Add(
      "Unique 10^6", [](const Scope& s, const Outputs& i) { Unique(s, i[0]); }, {keys}, "libtorch",
      [=](int threads) { return TorchUnique(keys(), threads); }, Table::kAtLeast, 1);
  const MakeInput rows = Floats({1000000, 64});
  const MakeInput ids = Integers({1000000}, 1000);
  list->Add(
      "UnsortedSegmentSum 10^6 rows of 64",
      [](const Scope& s, const Outputs& i) { UnsortedSegmentSum(s, i[0], i[1], 1000); },
      {rows, ids}, "libtorch",
      [=](int threads) { return TorchSegmentSum(rows(), ids(), 1000, threads); }, Table::kAtLeast,
      1);
  list->Add(
      "RandomStandardNormal 10^7",
      [](const Scope& s, const Outputs&) {
        RandomStandardNormal(s, {10000000}, DT_FLOAT, RandomStandardNormal::Seed(1));
      },
      {}, "libtorch", [](int threads) { return TorchNormal(10000000, threads); }, Table::kAtLeast,
      1);
  const MakeInput values = Floats({1000000});
  list->Add(
      "TopKV2 10 of 10^6", [](const Scope& s, const Outputs& i) { TopK(s, i[0], 10); }, {values},
      "libtorch", [=](int threads) { return TorchTopK(values(), 10, threads); }, Table::kAtLeast,
      1);
}

}  // namespace

std::vector<OpCase> Cases() {
  CaseList list;
  AddElementwise(&list);
  AddFunctions(&list);
  AddReductions(&list);
  AddMovement(&list);
  AddProducts(&list);
  AddNetworkOps(&list);
  AddOthers(&list);
  return list.Take();
}

}  // namespace gradflow::benchmarks
