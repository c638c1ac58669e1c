// Tests of kernels with a form in integers against sums in 64-bit integers: pools, means, softmax
// and products of two activations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/integer_kernels.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/graph/node_kernel.h"
#include "gradflow/graph/ops.h"
#include "gradflow/graph/scope.h"
#include "gradflow/ops/common/simd.h"
#include "gradflow/ops/register.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"

namespace gradflow {
namespace integer_forms_test {
namespace {

using ::gradflow::testing::AsTensor;
using ::gradflow::testing::TensorEq;

using Random = std::mt19937;

int64_t Pick(Random* random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>((*random)() % static_cast<uint32_t>(high - low + 1));
}

Tensor RandomBytes(Random* random, const TensorShape& shape, bool extreme) {
  Tensor tensor(DT_UINT8, shape);
  for (uint8_t& x : tensor.span<uint8_t>()) {
    x = static_cast<uint8_t>(extreme ? 255 : Pick(random, 0, 255));
  }
  return tensor;
}

IntegerFormat RandomFormat(Random* random) {
  IntegerFormat format;
  format.scale = static_cast<float>(Pick(random, 1, 1000)) / 4096;
  format.zero_point = static_cast<int32_t>(Pick(random, 0, 255));
  return format;
}

IntegerFormKernel::Args RandomArgs(Random* random, size_t inputs) {
  IntegerFormKernel::Args args;
  for (size_t i = 0; i < inputs; ++i) args.inputs.push_back(RandomFormat(random));
  args.format = RandomFormat(random);
  args.factor = Pick(random, 0, 1) == 0 ? 1 : 0.7;
  args.lowest = static_cast<float>(-args.format.zero_point);
  args.highest = static_cast<float>(255 - args.format.zero_point);
  if (Pick(random, 0, 2) == 0) args.lowest = 0;
  return args;
}

// Returns the integer of a value in steps, as the header of IntegerFormKernel states.
uint8_t Rounded(float steps, const IntegerFormKernel::Args& args) {
  return static_cast<uint8_t>(
      static_cast<int>(std::nearbyint(std::clamp(steps, args.lowest, args.highest))) +
      args.format.zero_point);
}

// Makes the form in integers of a node, and expects that it computes `expected` on all instruction
// sets.
void ExpectForm(const Output& node, const IntegerFormKernel::Args& args,
                const std::vector<Tensor>& inputs, const Tensor& expected, int tolerance = 0) {
  const KernelRegistration* registration = nullptr;
  GRADFLOW_ASSERT_OK_AND_ASSIGN(registration, GlobalRegistry().FindKernel(node.node()->def()));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<OpKernel> in_float,
                                internal::MakeNodeKernel(*node.node(), *registration));
  const auto* const form = dynamic_cast<const IntegerFormKernel*>(in_float.get());
  ASSERT_NE(form, nullptr);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::shared_ptr<const OpKernel> kernel,
                                form->MakeIntegerForm(args));
  const auto compute = [&]() -> absl::StatusOr<Tensor> {
    std::vector<Tensor> in = inputs;
    std::vector<Tensor> out(1, Tensor(Tensor::Unset{}));
    const DataType types[] = {DT_UINT8};
    RunContext run;
    KernelContext ctx(absl::MakeSpan(in), absl::MakeSpan(out), types, run);
    if (absl::Status status = kernel->Compute(ctx); !status.ok()) return status;
    return out[0];
  };
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor found, compute());
  if (tolerance == 0) {
    ASSERT_THAT(found, TensorEq(expected));
  } else {
    ASSERT_EQ(found.shape(), expected.shape());
    int64_t different = 0;
    for (int64_t i = 0; i < found.NumElements(); ++i) {
      const int difference =
          std::abs(int{found.flat<uint8_t>()(i)} - int{expected.flat<uint8_t>()(i)});
      ASSERT_LE(difference, tolerance) << i;
      different += difference;
    }
    // Values at the border between two steps may differ.
    EXPECT_LE(different, 1 + found.NumElements() / 100);
  }
  for (const std::string& target : SimdTargets()) {
    ASSERT_TRUE(SetSimdTarget(target));
    const auto again = compute();
    SetSimdTarget("");
    ASSERT_TRUE(again.ok()) << again.status();
    ASSERT_THAT(*again, TensorEq(found)) << target;
  }
}

TEST(IntegerForms, ProductsOfActivationsAreExact) {
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(i);
    const int64_t m = Pick(&random, 1, 20);
    // A few sums exceed 32 bits.
    const int64_t k = i % 50 == 7 ? 40000 : Pick(&random, 0, 70);
    const int64_t n = Pick(&random, 1, i % 50 == 7 ? 3 : 40);
    const bool adj_x = Pick(&random, 0, 1) == 0;
    const bool adj_y = Pick(&random, 0, 1) == 0;
    const bool extreme = i % 5 == 0;
    // The batch dimensions of x and y broadcast.
    const int64_t batch = Pick(&random, 1, 3);
    const int64_t heads = Pick(&random, 1, 3);
    const bool broadcasts_x = Pick(&random, 0, 3) == 0;
    const bool broadcasts_y = Pick(&random, 0, 3) == 0;
    const TensorShape x_shape = {batch, broadcasts_x ? 1 : heads, adj_x ? k : m, adj_x ? m : k};
    const TensorShape y_shape = {broadcasts_y ? 1 : batch, heads, adj_y ? n : k, adj_y ? k : n};
    const Tensor x = RandomBytes(&random, x_shape, extreme);
    const Tensor y = RandomBytes(&random, y_shape, extreme);
    IntegerFormKernel::Args args = RandomArgs(&random, 2);
    if (extreme) args.inputs[0].zero_point = args.inputs[1].zero_point = i % 2 == 0 ? 0 : 255;
    const auto factor = static_cast<float>(args.factor * args.inputs[0].scale *
                                           args.inputs[1].scale / args.format.scale);
    Tensor expected(DT_UINT8, {batch, heads, m, n});
    int64_t at = 0;
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t h = 0; h < heads; ++h) {
        const auto* const xs =
            x.span<uint8_t>().data() + (b * x_shape.dim_size(1) + (broadcasts_x ? 0 : h)) * m * k;
        const auto* const ys =
            y.span<uint8_t>().data() + ((broadcasts_y ? 0 : b) * heads + h) * k * n;
        for (int64_t r = 0; r < m; ++r) {
          for (int64_t c = 0; c < n; ++c, ++at) {
            int64_t sum = 0;
            for (int64_t j = 0; j < k; ++j) {
              const int64_t q = xs[adj_x ? j * m + r : r * k + j] - args.inputs[0].zero_point;
              sum += q * (ys[adj_y ? c * k + j : j * n + c] - args.inputs[1].zero_point);
            }
            expected.flat<uint8_t>()(at) = Rounded(static_cast<float>(sum) * factor, args);
          }
        }
      }
    }
    const Scope scope = Scope::NewRootScope();
    const Output a = ops::Placeholder(scope, DT_FLOAT);
    ExpectForm(ops::BatchMatMulV2(scope, a, a, ops::BatchMatMulV2::AdjX(adj_x).AdjY(adj_y)), args,
               {x, y}, expected);
    if (HasFatalFailure()) return;
  }
}

TEST(IntegerForms, MeansAreExact) {
  Random random(2);
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(i);
    const TensorShape shape = {Pick(&random, 1, 4), Pick(&random, 1, 9), Pick(&random, 1, 9),
                               Pick(&random, 1, i % 7 == 0 ? 600 : 20)};
    const int axes = static_cast<int>(Pick(&random, 0, 15));
    std::vector<int32_t> reduced;
    std::vector<int64_t> kept;
    for (int d = 0; d < 4; ++d) {
      const bool is_reduced = (axes >> d) % 2 == 1;
      if (is_reduced) reduced.push_back(Pick(&random, 0, 1) == 0 ? d : d - 4);
      kept.push_back(is_reduced ? 1 : shape.dim_size(d));
    }
    const Tensor x = RandomBytes(&random, shape, i % 5 == 0);
    const IntegerFormKernel::Args args = RandomArgs(&random, 1);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const TensorShape out, TensorShape::Make(kept));
    std::vector<int64_t> sums(static_cast<size_t>(out.num_elements()));
    for (int64_t at = 0; at < x.NumElements(); ++at) {
      int64_t to = 0;
      int64_t left = at;
      int64_t stride = 1;
      for (int d = 3; d >= 0; --d) {
        if (kept[static_cast<size_t>(d)] > 1) to += left % shape.dim_size(d) * stride;
        stride *= kept[static_cast<size_t>(d)];
        left /= shape.dim_size(d);
      }
      sums[static_cast<size_t>(to)] += x.span<uint8_t>()[at] - args.inputs[0].zero_point;
    }
    const int64_t count = x.NumElements() / out.num_elements();
    const auto factor = static_cast<float>(args.factor * args.inputs[0].scale / args.format.scale /
                                           static_cast<double>(count));
    Tensor expected(DT_UINT8, out);
    for (size_t j = 0; j < sums.size(); ++j) {
      expected.span<uint8_t>()[j] = Rounded(static_cast<float>(sums[j]) * factor, args);
    }
    const Scope scope = Scope::NewRootScope();
    const Output a = ops::Placeholder(scope, DT_FLOAT);
    ExpectForm(ops::Mean(scope, a, ops::Placeholder(scope, DT_INT32), ops::Mean::KeepDims(true)),
               args, {x, AsTensor<int32_t>(reduced)}, expected, 1);
    if (HasFatalFailure()) return;
  }
}

TEST(IntegerForms, PoolsAreExact) {
  Random random(3);
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(i);
    const int64_t in[] = {Pick(&random, 1, 9), Pick(&random, 1, 9)};
    const int64_t size[] = {Pick(&random, 1, 4), Pick(&random, 1, 4)};
    const int64_t stride[] = {Pick(&random, 1, 3), Pick(&random, 1, 3)};
    const int64_t depth = Pick(&random, 1, i % 7 == 0 ? 300 : 20);
    const bool same = Pick(&random, 0, 1) == 0;
    if (!same && (in[0] < size[0] || in[1] < size[1])) continue;
    int64_t out[2];
    int64_t pad[2];
    for (int d = 0; d < 2; ++d) {
      out[d] = same ? (in[d] + stride[d] - 1) / stride[d] : (in[d] - size[d]) / stride[d] + 1;
      pad[d] = same ? std::max<int64_t>(0, (out[d] - 1) * stride[d] + size[d] - in[d]) / 2 : 0;
    }
    const Tensor x = RandomBytes(&random, {2, in[0], in[1], depth}, i % 5 == 0);
    const IntegerFormKernel::Args args = RandomArgs(&random, 1);
    Tensor expected(DT_UINT8, {2, out[0], out[1], depth});
    int64_t at = 0;
    for (int64_t b = 0; b < 2; ++b) {
      for (int64_t row = 0; row < out[0]; ++row) {
        for (int64_t column = 0; column < out[1]; ++column) {
          for (int64_t c = 0; c < depth; ++c, ++at) {
            int64_t sum = 0;
            int64_t count = 0;
            for (int64_t dr = 0; dr < size[0]; ++dr) {
              for (int64_t dc = 0; dc < size[1]; ++dc) {
                const int64_t r = row * stride[0] - pad[0] + dr;
                const int64_t k = column * stride[1] - pad[1] + dc;
                if (r < 0 || r >= in[0] || k < 0 || k >= in[1]) continue;
                sum += x.span<uint8_t>()[((b * in[0] + r) * in[1] + k) * depth + c] -
                       args.inputs[0].zero_point;
                ++count;
              }
            }
            const auto factor = static_cast<float>(args.factor * args.inputs[0].scale /
                                                   args.format.scale / static_cast<double>(count));
            expected.flat<uint8_t>()(at) = Rounded(static_cast<float>(sum) * factor, args);
          }
        }
      }
    }
    const Scope scope = Scope::NewRootScope();
    const Output a = ops::Placeholder(scope, DT_FLOAT);
    ExpectForm(ops::AvgPool(scope, a, {1, static_cast<int>(size[0]), static_cast<int>(size[1]), 1},
                            {1, static_cast<int>(stride[0]), static_cast<int>(stride[1]), 1},
                            same ? "SAME" : "VALID"),
               args, {x}, expected, 1);
    if (HasFatalFailure()) return;
  }
}

TEST(IntegerForms, SoftmaxIsWithinOneStep) {
  Random random(4);
  for (int i = 0; i < 100; ++i) {
    SCOPED_TRACE(i);
    const int64_t rows = Pick(&random, 1, 5);
    const int64_t n = Pick(&random, 1, i % 10 == 0 ? 5000 : 300);
    const Tensor x = RandomBytes(&random, {rows, n}, i % 9 == 0);
    IntegerFormKernel::Args args = RandomArgs(&random, 1);
    if (i % 4 == 0) args.inputs[0].scale = 1e30f;
    args.format.scale = static_cast<float>(Pick(&random, 1, 255)) / 65536;
    Tensor expected(DT_UINT8, {rows, n});
    for (int64_t r = 0; r < rows; ++r) {
      const auto* const row = x.span<uint8_t>().data() + r * n;
      const int max = *std::max_element(row, row + n);
      const auto e = [&](int64_t k) {
        return std::exp(static_cast<double>(row[k] - max) * args.inputs[0].scale);
      };
      double sum = 0;
      for (int64_t k = 0; k < n; ++k) sum += e(k);
      for (int64_t k = 0; k < n; ++k) {
        expected.flat<uint8_t>()(r * n + k) =
            Rounded(static_cast<float>(e(k) / sum * args.factor / args.format.scale), args);
      }
    }
    const Scope scope = Scope::NewRootScope();
    ExpectForm(ops::Softmax(scope, ops::Placeholder(scope, DT_FLOAT)), args, {x}, expected, 1);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace integer_forms_test
}  // namespace gradflow
