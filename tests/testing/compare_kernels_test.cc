// Tests of CompareKernels.
#include "gradflow/testing/compare_kernels.h"

#include <algorithm>
#include <string>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/testing/kernel_test.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A correct Relu.
absl::Status MyRelu(KernelContext& ctx) {
  Tensor* y = nullptr;
  absl::Status status = ctx.AllocateOutput(0, ctx.input(0).shape(), &y);
  for (int64_t i = 0; status.ok() && i < y->NumElements(); ++i) {
    y->flat<float>()(i) = std::max(ctx.input(0).flat<float>()(i), 0.0f);
  }
  return status;
}

// Omits the remainder after vectors of 4.
absl::Status NoRemainder(KernelContext& ctx) {
  absl::Status status = MyRelu(ctx);
  Tensor* y = ctx.mutable_output(0);
  for (int64_t i = y->NumElements() / 4 * 4; i < y->NumElements(); ++i) y->flat<float>()(i) = 7;
  return status;
}

absl::Status RefusesEmpty(KernelContext& ctx) {
  if (ctx.input(0).NumElements() == 0) return absl::InvalidArgumentError("empty");
  return MyRelu(ctx);
}

// A wrong kernel: its result is right only for empty tensors.
absl::Status Zeros(KernelContext& ctx) {
  Tensor* y = nullptr;
  absl::Status status = ctx.AllocateOutput(0, ctx.input(0).shape(), &y);
  for (int64_t i = 0; status.ok() && i < y->NumElements(); ++i) y->flat<int32_t>()(i) = 0;
  return status;
}

// Registers kernels once, because labels must be unique.
const bool registered = [] {
  GlobalRegistry().Kernel("Relu", MakeFunctionKernel<MyRelu>).Type<float>("T").Label("mine");
  GlobalRegistry().Kernel("Relu", MakeFunctionKernel<NoRemainder>).Type<float>("T").Label("short");
  GlobalRegistry().Kernel("Relu", MakeFunctionKernel<RefusesEmpty>).Type<float>("T").Label("picky");
  GlobalRegistry().Kernel("Relu", MakeFunctionKernel<Zeros>).Type<int32_t>("T").Label("zeros");
  return true;
}();

TEST(CompareKernels, AcceptsACorrectKernel) {
  ASSERT_TRUE(registered);
  EXPECT_TRUE(CompareKernels("Relu", "mine").Input("[...]").Run());
  EXPECT_TRUE(CompareKernels("Relu", "mine")
                  .Input("[n,3]", Normal(0, 10))
                  .Within(Tolerance::Exact())
                  .Run());
}

TEST(CompareKernels, ShowsTheFirstRoundThatDiffers) {
  const ::testing::AssertionResult result =
      CompareKernels("Relu", "short").Input("[5]").Rounds(3, 9).Run();
  EXPECT_FALSE(result);
  EXPECT_THAT(result.message(),
              AllOf(StartsWith("kernel 'short' of 'Relu': round 0, seed 9, input shapes [5], "
                               "output 0: 1 of 5 elements differs\n  [4]: 7, expected "),
                    Not(HasSubstr("round 1"))));
}

TEST(CompareKernels, ComparesIntegersOtherThanZero) {
  const ::testing::AssertionResult result =
      CompareKernels("Relu", "zeros").Input("[40]", Distribution(), DT_INT32).Rounds(1).Run();
  EXPECT_FALSE(result);
  EXPECT_THAT(result.message(), HasSubstr(": 0, expected "));
}

TEST(CompareKernels, ShowsErrorsOfOnlyOneKernel) {
  const ::testing::AssertionResult result = CompareKernels("Relu", "picky").Input("[...]").Run();
  EXPECT_FALSE(result);
  EXPECT_THAT(result.message(),
              HasSubstr(": returns INVALID_ARGUMENT: empty, the built-in one OK"));
}

TEST(CompareKernels, FailsWithoutTheKernel) {
  EXPECT_THAT(CompareKernels("Relu", "yours").Input("[...]").Run().message(),
              HasSubstr("kernel 'yours' of 'Relu': it cannot be made: UNIMPLEMENTED"));
  EXPECT_THAT(CompareKernels("Rilu", "mine").Input("[...]").Run().message(),
              HasSubstr("did you mean 'Relu'"));
  EXPECT_THAT(CompareKernels("Relu", "mine").Input("[...").Run().message(),
              HasSubstr("shape '[...' must be like"));
  EXPECT_THAT(CompareKernels("Relu", "mine").Input("[...]").MaxSize(-1).Run().message(),
              HasSubstr("MaxSize(-1) is negative"));
}

// The kernel of the op "Plus" below. Same() computes the same, and is registered with a label.
absl::Status MyAdd(KernelContext& ctx) {
  const Tensor& x = ctx.input(0);
  const Tensor& y = ctx.input(1);
  if (x.shape() != y.shape()) return absl::InvalidArgumentError("not alike");
  Tensor* z = nullptr;
  absl::Status status = ctx.AllocateOutput(0, x.shape(), &z);
  for (int64_t i = 0; status.ok() && i < z->NumElements(); ++i) {
    z->flat<float>()(i) = x.flat<float>()(i) + y.flat<float>()(i);
  }
  return status;
}
absl::Status Same(KernelContext& ctx) { return MyAdd(ctx); }

TEST(CompareKernels, NamesMeanTheSameSizeEverywhere) {
  Registry registry;
  registry.Op("Plus")
      .Input("x: float")
      .Input("y: float")
      .Output("z: float")
      .Shape(SameShape)
      .Doc("A test.");
  registry.Kernel("Plus", MakeFunctionKernel<MyAdd>);
  registry.Kernel("Plus", MakeFunctionKernel<Same>).Label("same");
  EXPECT_TRUE(CompareKernels("Plus", "same", registry).Input("[n,...,2]").Input("[n,...,2]").Run());
  EXPECT_TRUE(CompareKernels("Plus", "same", registry).Input("[]").Input(AsScalar<float>(2)).Run());
  // Fails if the op fails for all shapes.
  EXPECT_THAT(CompareKernels("Plus", "same", registry).Input("[2]").Input("[3]").Run().message(),
              HasSubstr("the built-in kernel failed in all rounds; the last error is "
                        "INVALID_ARGUMENT: not alike"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
