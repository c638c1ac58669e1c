// Tests of kernels with references to variables in a session, and of outputs that kernels leave
// unset.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/status_matchers.h"

namespace tensorflow {
namespace op_kernel_session_test {

using ::tensorflow::testing::StatusIs;
using ::testing::HasSubstr;

// The body of the kernel.
std::function<void(OpKernelContext*)> on_compute;

REGISTER_OP("OpKernelReferences")
    .Input("v: Ref(float)")
    .Input("w: Ref(float)")
    .Input("z: float")
    .Output("y: float")
    .Output("ref: Ref(float)")
    .SetIsStateful();
class ReferencesOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override { on_compute(context); }
};
REGISTER_KERNEL_BUILDER(Name("OpKernelReferences").Device(DEVICE_CPU), ReferencesOp);

// Runs `compute` in a session as a kernel with two variables of the values 1 and 2, and the number
// 3. If `same`, both variables are the same. Stores the values of the variables before and after
// the run.
absl::Status RunInSession(std::function<void(OpKernelContext*)> compute, bool same = false,
                          std::vector<Tensor>* values = nullptr) {
  on_compute = std::move(compute);
  const Scope root = Scope::NewRootScope();
  const auto v = ops::Variable(root, {}, DT_FLOAT);
  const auto w = ops::Variable(root, {}, DT_FLOAT);
  const auto set_v = ops::Assign(root, v, ops::Const(root, 1.f));
  const auto set_w = ops::Assign(root, w, ops::Const(root, 2.f));
  Node* node = nullptr;
  TF_RETURN_IF_ERROR(NodeBuilder("references", "OpKernelReferences")
                         .Input(v.node(), 0)
                         .Input((same ? v : w).node(), 0)
                         .Input(ops::Const(root, 3.f).node(), 0)
                         .Finalize(root.graph(), &node));
  const ClientSession session(root);
  std::vector<Tensor> outputs;
  TF_RETURN_IF_ERROR(session.Run({set_v, set_w}, &outputs));
  std::vector<Tensor> before, after;
  TF_RETURN_IF_ERROR(session.Run({v, w}, &before));
  TF_RETURN_IF_ERROR(session.Run({Output(node, 0), Output(node, 1)}, &outputs));
  // The second output is a reference to the first variable.
  TF_RETURN_IF_ERROR(session.Run({v, w}, &after));
  test::ExpectTensorEqual<float>(outputs[1], after[0]);
  if (values != nullptr) *values = {before[0], before[1], after[0], after[1]};
  return absl::OkStatus();
}

// Sets both outputs.
void SetOutputs(OpKernelContext* context) {
  context->set_output(0, Tensor(0.f));
  context->forward_ref_input_to_ref_output(0, 1);
}

TEST(OpKernelContextInASession, ReplacesVariables) {
  std::vector<Tensor> values;
  TF_ASSERT_OK(RunInSession(
      [](OpKernelContext* context) {
        EXPECT_EQ(context->input_dtype(1), DT_FLOAT_REF);
        EXPECT_TRUE(context->input_is_ref(1));
        EXPECT_TRUE(context->has_input(1));
        EXPECT_EQ(context->step_container(), nullptr);
        EXPECT_EQ(context->mutable_output(0), nullptr);
        context->mutable_input(0, /*lock_held=*/false).scalar<float>()() = 6;
        TF_EXPECT_OK(context->replace_ref_input("w", Tensor(7.f), /*lock_held=*/false));
        SetOutputs(context);
      },
      false, &values));
  // Values that were read earlier do not change.
  for (const auto& [i, value] :
       {std::pair(0, 1.f), std::pair(1, 2.f), std::pair(2, 6.f), std::pair(3, 7.f)}) {
    test::ExpectTensorEqual<float>(values[i], Tensor(value));
  }
}

TEST(OpKernelContextInASession, HasAMutexForEachVariable) {
  for (const bool same : {false, true}) {
    TF_EXPECT_OK(RunInSession(
        [same](OpKernelContext* context) {
          mutex* const first = context->input_ref_mutex(0);
          ASSERT_NE(first, nullptr);
          EXPECT_EQ(context->input_ref_mutex(0), first);
          EXPECT_EQ(context->input_ref_mutex(1) == first, same);
          const mutex_lock lock(*first);
          EXPECT_TRUE(context->mutable_input(0, /*lock_held=*/true).IsInitialized());
          SetOutputs(context);
        },
        same));
  }
}

TEST(OpKernelContextInASession, FailsTheRun) {
  static Tensor& own = *new Tensor(4.f);
  static mutex& mu = *new mutex;
  const struct {
    std::function<void(OpKernelContext*)> compute;
    absl::StatusCode code;
    std::string message;
  } kCases[] = {
      {[](OpKernelContext* context) { context->set_output_ref(1, &mu, &own); },
       error::UNIMPLEMENTED,
       "output 1 is a reference to the kernel's own tensor; in a session, references are those of "
       "variables"},
      {[](OpKernelContext* context) { context->delete_ref_input(0, false); }, error::INTERNAL,
       "input 0 is not a tensor that the kernel may delete"},
      {[](OpKernelContext* context) {
         SetOutputs(context);
         EXPECT_FALSE(context->mutable_input(2, false).IsInitialized());
       },
       error::INVALID_ARGUMENT, "input 2 must be a resource, but is a tensor"},
      {[](OpKernelContext* context) {
         SetOutputs(context);
         context->replace_ref_input(2, Tensor(0.f), false);
       },
       error::INVALID_ARGUMENT, "input 2 must be a resource, but is a tensor"},
      {[](OpKernelContext* context) {
         SetOutputs(context);
         EXPECT_NE(context->input_ref_mutex(2), nullptr);
         TF_EXPECT_OK(context->status());
         context->set_output(0, Tensor(int32{1}));
       },
       error::INTERNAL, "the kernel has set output 0 to a tensor of type int32, expected float"},
      {[](OpKernelContext* context) { context->forward_ref_input_to_ref_output(0, 1); },
       error::INTERNAL, "the kernel has not set output 0"},
      {[](OpKernelContext* context) { context->set_output(0, Tensor(0.f)); }, error::INTERNAL,
       "the kernel has not set output 1"},
      {[](OpKernelContext* context) { context->CtxFailure("f", 1, errors::DataLoss("lost")); },
       error::DATA_LOSS, "lost"},
  };
  for (const auto& [compute, code, message] : kCases) {
    EXPECT_THAT(RunInSession(compute), StatusIs(code, HasSubstr(message)));
  }
}

}  // namespace op_kernel_session_test
}  // namespace tensorflow
