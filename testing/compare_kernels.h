// CompareKernels runs another implementation of an op beside the built-in one.
//
//   GlobalRegistry().Kernel("Relu", MakeKernel<MyRelu>).Type<float>("T").Label("mine");
//   ...
//   EXPECT_TRUE(CompareKernels("Relu", "mine").Input("[...]").Run());
//
//   EXPECT_TRUE(CompareKernels("FusedBatchNormV3", "mine")
//                   .Input("[n,h,w,c]").Input("[c]").Input("[c]").Input("[0]").Input("[0]")
//                   .Attr("epsilon", 0.01f)
//                   .Within(Tolerance::Ulps(4))
//                   .Run());
#ifndef GRADFLOW_TESTING_COMPARE_KERNELS_H_
#define GRADFLOW_TESTING_COMPARE_KERNELS_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gradflow/core/tensor.h"
#include "gradflow/testing/op_tester.h"
#include "gradflow/testing/tensor_diff.h"
#include "gradflow/testing/tensors.h"

namespace gradflow {
namespace testing {

class CompareKernels {
 public:
  // Compares the kernel that is registered with `label` with the one that has none.
  CompareKernels(absl::string_view op, absl::string_view label,
                 const Registry& registry = GlobalRegistry());

  // The op's next input: random tensors of a shape in which
  //   5     is the size 5,
  //   name  is a size that differs from round to round, the same wherever the name stands,
  //   ...   is any number of such dimensions, the same wherever it stands:
  // "[...]", "[n,2,c]", "[...,c]", "[]".
  CompareKernels& Input(absl::string_view shape, const Distribution& distribution = Distribution(),
                        DataType dtype = DT_FLOAT);
  // The same tensor in all rounds, such as the axes of a reduction.
  CompareKernels& Input(const Tensor& tensor);
  template <typename T>
  CompareKernels& Attr(absl::string_view name, const T& value) {
    tester_.Attr(name, value);
    return *this;
  }
  CompareKernels& Attr(absl::string_view name, std::initializer_list<int64_t> values) {
    tester_.Attr(name, values);
    return *this;
  }

  // How close the outputs must be. Tolerance::ForType of each unless it is said here.
  CompareKernels& Within(const Tolerance& tolerance) { return tolerance_ = tolerance, *this; }
  // Only outputs before this one are compared; those behind them are for the op's own gradient.
  CompareKernels& Outputs(int count) { return outputs_ = count, *this; }
  // Shapes and values that are tried, among them sizes 0 and 1. The same for the same seed.
  CompareKernels& Rounds(int rounds, uint32_t seed = 1) {
    rounds_ = rounds;
    seed_ = seed;
    return *this;
  }
  // The largest size of a dimension that has a name, and of those of "...".
  CompareKernels& MaxSize(int64_t size) { return max_size_ = size, *this; }

  // Whether both agree, or fail alike (with the same code), in all rounds; if not, how the first
  // round came out in which they do not. A failure, too, if there is no such kernel, or if the
  // built-in one fails in all rounds.
  ::testing::AssertionResult Run() const;

 private:
  struct InputSpec {
    std::string shape;
    Distribution distribution;
    DataType dtype;
    // The tensor itself, if it is always the same.
    std::optional<Tensor> tensor;
  };

  OpTester tester_;
  std::string label_;
  std::vector<InputSpec> inputs_;
  std::optional<Tolerance> tolerance_;
  int outputs_ = -1;
  int rounds_ = 50;
  uint32_t seed_ = 1;
  int64_t max_size_ = 40;
};

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTING_COMPARE_KERNELS_H_
