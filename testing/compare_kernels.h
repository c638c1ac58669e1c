// CompareKernels: compares another kernel of an op with the built-in kernel on random inputs.
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
  // Compares the kernel that is registered with label `label` with the kernel without a label.
  CompareKernels(absl::string_view op, absl::string_view label,
                 const Registry& registry = GlobalRegistry());

  // Adds an input: random tensors of shape `shape`, such as "[...]", "[n,2,c]", "[...,c]" or "[]":
  //   5     is the size 5,
  //   name  is a size that varies between rounds and is equal wherever the name appears,
  //   ...   is 0 to 4 dimensions that vary between rounds and are equal wherever "..." appears.
  CompareKernels& Input(absl::string_view shape, const Distribution& distribution = Distribution(),
                        DataType dtype = DT_FLOAT);
  // Adds an input with the same value in all rounds, such as reduction axes.
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

  // Sets the tolerance for all outputs. Default: Tolerance::ForType of each output.
  CompareKernels& Within(const Tolerance& tolerance) { return tolerance_ = tolerance, *this; }
  // Compares only the first `count` outputs. Later outputs may be internal to the op's gradient.
  CompareKernels& Outputs(int count) { return outputs_ = count, *this; }
  // Sets the number of rounds and the seed. Each round has different shapes (including sizes 0 and
  // 1) and values, which the seed determines. Default: 50 rounds, seed 1.
  CompareKernels& Rounds(int rounds, uint32_t seed = 1) {
    rounds_ = rounds;
    seed_ = seed;
    return *this;
  }
  // Sets the maximum size of named dimensions and of the dimensions of "...". Default: 40.
  CompareKernels& MaxSize(int64_t size) { return max_size_ = size, *this; }

  // Succeeds if both kernels agree, or fail with the same code, in every round. Otherwise describes
  // the first round where they differ. Fails if one of the kernels does not exist, or if the
  // built-in kernel fails in every round.
  ::testing::AssertionResult Run() const;

 private:
  struct InputSpec {
    std::string shape;
    Distribution distribution;
    DataType dtype;
    // The value, if it is the same in all rounds.
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
