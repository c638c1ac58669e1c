// KernelTest: a GoogleTest fixture for kernel tests.
//
//   class ReluTest : public KernelTest {};
//
//   TEST_F(ReluTest, KeepsPositiveElements) {
//     Op("Relu").Input<float>({-1, 0, 2, 3}, {2, 2});
//     GRADFLOW_ASSERT_OK(Run());
//     EXPECT_THAT(output(0), TensorEq(AsTensor<float>({0, 0, 2, 3}, {2, 2})));
//   }
//   TEST_F(ReluTest, HasTheSameBitsEverywhere) {
//     Op("Relu").RandomInput(DT_FLOAT, {1000, 33}, Normal(0, 1));
//     GRADFLOW_ASSERT_OK(RunEverywhere());
//   }
#ifndef GRADFLOW_TESTING_KERNEL_TEST_H_
#define GRADFLOW_TESTING_KERNEL_TEST_H_

#include <gtest/gtest.h>

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/registry.h"
#include "gradflow/testing/op_tester.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"

namespace gradflow {
namespace testing {

class KernelTest : public ::testing::Test {
 protected:
  // Starts a node of op `op`, replacing the previous node. Add inputs and attributes to the result;
  // see OpTester.
  OpTester& Op(absl::string_view op, const Registry& registry = GlobalRegistry());
  // Returns the current node.
  OpTester& op() { return op_; }

  // Runs the node with the checks of OpTester, and stores its outputs.
  absl::Status Run() { return Keep(op_.Run()); }
  // Runs the node with several numbers of threads and all instruction sets, and expects equal bits.
  absl::Status RunEverywhere(const Everywhere& where = {}) {
    return Keep(op_.RunEverywhere(where));
  }

  // Returns the number of outputs of the last run.
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  // Returns output i of the last run. Adds a failure and returns an empty tensor if it does not
  // exist.
  const Tensor& output(int i) const;
  // Returns the output with this name in the op definition. Returns the first element of a list.
  const Tensor& output(absl::string_view name) const;

 private:
  absl::Status Keep(absl::StatusOr<std::vector<Tensor>> outputs);

  OpTester op_{"NoOp"};
  std::vector<Tensor> outputs_;
};

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTING_KERNEL_TEST_H_
