// Tests of KernelTest and OpTester: inputs, and detection of faulty kernels.
#include "gradflow/testing/kernel_test.h"

#include <gtest/gtest-spi.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/io/npy.h"
#include "gradflow/ops/common/simd.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

class FixtureTest : public KernelTest {};

TEST_F(FixtureTest, RunsAnOpOnEveryKindOfInput) {
  const std::string path = ::testing::TempDir() + "/x.npy";
  GRADFLOW_ASSERT_OK(WriteNpy(path, AsTensor<float>({1, 2, 3})));
  const std::vector<float> ones = {1, 1, 1};
  Op("AddN")
      .Input<float>({10, 20, 30})
      .InputFromSpan<float>(ones, {3})
      .InputFromNpy(path)
      .RandomInput(DT_FLOAT, {3}, Uniform(0, 1e-30));
  GRADFLOW_ASSERT_OK(Run());
  EXPECT_EQ(num_outputs(), 1);
  EXPECT_THAT(output(0), TensorEq(AsTensor<float>({12, 23, 34})));
  EXPECT_THAT(output("sum"), TensorEq(output(0)));
}

TEST_F(FixtureTest, FindsOutputsByName) {
  Op("FakeQuantWithMinMaxVarsGradient")
      .Input<float>({1, 2, 3})
      .Input<float>({-9, 0, 9})
      .Input(AsScalar<float>(-1))
      .Input(AsScalar<float>(1))
      .Attr("num_bits", 8);
  GRADFLOW_ASSERT_OK(Run());
  EXPECT_THAT(output("backprops_wrt_input"), TensorEq(AsTensor<float>({0, 2, 0})));
  EXPECT_THAT(output("backprop_wrt_min"), TensorEq(AsScalar<float>(1)));
  EXPECT_THAT(output("backprop_wrt_max"), TensorEq(AsScalar<float>(3)));
  EXPECT_NONFATAL_FAILURE(output("backprop"), "there is no output 'backprop'");
  EXPECT_NONFATAL_FAILURE(output(3), "there is no output 3: the last run returned 3");
}

TEST_F(FixtureTest, ReportsTheFaultOfTheNode) {
  Op("Sqare").Input<float>({1});
  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("did you mean 'Square'")));
  Op("Square").InputFromNpy("/no/such.npy");
  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such.npy")));
  Op("Square").Input<float>({1}).Input<float>({1});
  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_NONFATAL_FAILURE(output(0), "there is no output 0: the last run returned 0");
}

TEST_F(FixtureTest, RunsEverywhereWithTheSameBits) {
  Op("Sum").RandomInput(DT_FLOAT, {1000, 100}, Normal(0, 1)).Input<int32_t>({0, 1});
  const std::string before = CurrentSimdTarget();
  GRADFLOW_ASSERT_OK(RunEverywhere());
  EXPECT_EQ(CurrentSimdTarget(), before);
  EXPECT_EQ(output(0).shape(), TensorShape());
  EXPECT_THAT(RunEverywhere({{1}, {"sse9"}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'sse9'")));
}

TEST(RandomTensor, IsReproducibleAndHasItsDistribution) {
  const Tensor normal = RandomTensor(DT_DOUBLE, {100000}, Normal(5, 2), 7);
  EXPECT_THAT(normal, TensorEq(RandomTensor(DT_DOUBLE, {100000}, Normal(5, 2), 7)));
  double sum = 0;
  double squares = 0;
  for (const double x : normal.flat<double>()) sum += x;
  for (const double x : normal.flat<double>()) squares += (x - 5) * (x - 5);
  EXPECT_NEAR(sum / 1e5, 5, 0.03);
  EXPECT_NEAR(squares / 1e5, 4, 0.06);
  const Tensor uniform = RandomTensor(DT_DOUBLE, {1000}, Uniform(2, 3));
  for (const double x : uniform.flat<double>()) {
    EXPECT_GE(x, 2);
    EXPECT_LT(x, 3);
  }
  EXPECT_THAT(RandomTensor(DT_FLOAT, {9}, Normal(0, 1), 1),
              ::testing::Not(TensorEq(RandomTensor(DT_FLOAT, {9}, Normal(0, 1), 2))));
  // The random inputs of an op differ from each other.
  OpTester tester("Sub");
  tester.RandomInput(DT_FLOAT, {9}).RandomInput(DT_FLOAT, {9});
  EXPECT_THAT(tester.input(0), ::testing::Not(TensorEq(tester.input(1))));
}

TEST(RandomTensor, RoundsToIntegers) {
  const struct {
    DataType dtype;
    Distribution distribution;
    double min;
    double max;
  } cases[] = {
      {DT_INT8, Distribution(), -10, 10},
      {DT_INT16, Distribution(), -10, 10},
      {DT_INT32, Distribution(), -10, 10},
      {DT_INT64, Distribution(), -10, 10},
      {DT_UINT8, Distribution(), 0, 10},
      {DT_UINT16, Distribution(), 0, 10},
      {DT_UINT32, Distribution(), 0, 10},
      {DT_UINT64, Distribution(), 0, 10},
      {DT_INT32, Uniform(-1, 1), -1, 1},
      {DT_INT32, Uniform(2.6, 3.4), 3, 3},
      {DT_INT32, Uniform(-3.4, -2.6), -3, -3},
      {DT_UINT32, Uniform(-3, -2), 0, 0},
      {DT_INT8, Uniform(-200, 200), -128, 127},
      {DT_UINT8, Normal(100, 500), 0, 255},
      {DT_INT64, Uniform(-1e300, 1e300), -0x1p63, 0x1p63},
      {DT_UINT64, Uniform(-1e300, 1e300), 0, 0x1p64},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(absl::StrCat(DataTypeString(c.dtype), " from ", c.min, " to ", c.max));
    const Tensor tensor = RandomTensor(c.dtype, {1000}, c.distribution);
    const std::vector<double> values = AsDoubles(tensor);
    EXPECT_EQ(*std::min_element(values.begin(), values.end()), c.min);
    EXPECT_EQ(*std::max_element(values.begin(), values.end()), c.max);
  }
}

TEST(RandomTensor, HasADefaultForEachType) {
  EXPECT_THAT(RandomTensor(DT_FLOAT, {9}), TensorEq(RandomTensor(DT_FLOAT, {9}, -1, 1)));
  EXPECT_THAT(RandomTensor(DT_COMPLEX64, {9}), TensorEq(RandomTensor(DT_COMPLEX64, {9}, -1, 1)));
  EXPECT_THAT(RandomTensor(DT_INT32, {9}), TensorEq(RandomTensor(DT_INT32, {9}, -10, 10)));
  EXPECT_THAT(RandomTensor(DT_UINT8, {9}), TensorEq(RandomTensor(DT_UINT8, {9}, 0, 10)));
  OpTester tester("AddN");
  tester.RandomInput(DT_INT32, {100});
  EXPECT_THAT(tester.input(0), TensorEq(RandomTensor(DT_INT32, {100})));
}

// ---- Faulty kernels that Run() detects ----

// Registers an op with one input and one output, computed by Function.
template <absl::Status (*Function)(KernelContext&)>
std::unique_ptr<Registry> RegistryOf(ShapeFn shape_fn = UnchangedShape) {
  auto registry = std::make_unique<Registry>();
  registry->Op("Faulty").Input("x: float").Output("y: float").Shape(shape_fn).Doc("A test.");
  registry->Kernel("Faulty", MakeFunctionKernel<Function>);
  return registry;
}

absl::Status Copy(KernelContext& ctx) {
  Tensor* y = nullptr;
  absl::Status status = ctx.AllocateOutput(0, ctx.input(0).shape(), &y);
  for (int64_t i = 0; status.ok() && i < y->NumElements(); ++i) {
    y->flat<float>()(i) = ctx.input(0).flat<float>()(i);
  }
  return status;
}

absl::Status ChangesItsInput(KernelContext& ctx) {
  const_cast<float*>(ctx.input(0).flat<float>().data())[1] = 42;
  return Copy(ctx);
}

absl::Status LeavesItsOutputOut(KernelContext& ctx) {
  *ctx.mutable_output(0) = Tensor(DT_INT32, ctx.input(0).shape());
  for (int32_t& element : ctx.mutable_output(0)->flat<int32_t>()) element = 0;
  return absl::OkStatus();
}

absl::Status GivesAnotherNumberEachTime(KernelContext& ctx) {
  static float calls = 0;
  absl::Status status = Copy(ctx);
  ctx.mutable_output(0)->flat<float>()(0) = ++calls;
  return status;
}

absl::Status SaysNothing(KernelContext&) { return absl::InternalError(""); }

absl::Status SaysThatItIsAMatrix(ShapeContext& ctx) {
  ctx.set_output(0, PartialTensorShape({-1, -1}));
  return absl::OkStatus();
}

void RunFaulty(const Registry& registry) {
  const auto ignored = OpTester("Faulty", registry).Input<float>({1, 2, 3}).Run();
}

TEST(OpTester, FindsKernelsThatChangeTheirInputs) {
  static const Registry* const registry = RegistryOf<ChangesItsInput>().release();
  EXPECT_NONFATAL_FAILURE(RunFaulty(*registry),
                          "[1]: 42, expected 2 (difference 40, 36175872 ulps)\n"
                          "input 0, which the kernel must not change");
}

TEST(OpTester, FindsOutputsOfAnotherType) {
  static const Registry* const registry = RegistryOf<LeavesItsOutputOut>().release();
  ::testing::TestPartResultArray failures;
  {
    const ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    RunFaulty(*registry);
  }
  ASSERT_GT(failures.size(), 0);
  EXPECT_THAT(failures.GetTestPartResult(0).message(), HasSubstr("\"int32\""));
}

TEST(OpTester, FindsResultsThatDifferFromRunToRun) {
  static const Registry* const registry = RegistryOf<GivesAnotherNumberEachTime>().release();
  EXPECT_NONFATAL_FAILURE(RunFaulty(*registry), "output 0 with 4 threads, in place where possible");
}

TEST(OpTester, FindsErrorsWithoutAText) {
  static const Registry* const registry = RegistryOf<SaysNothing>().release();
  ::testing::TestPartResultArray failures;
  {
    const ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    RunFaulty(*registry);
  }
  EXPECT_GT(failures.size(), 0);
}

TEST(OpTester, FindsWrongShapeFunctions) {
  static const Registry* const registry = RegistryOf<Copy>(SaysThatItIsAMatrix).release();
  ::testing::TestPartResultArray failures;
  {
    const ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    RunFaulty(*registry);
  }
  ASSERT_GT(failures.size(), 0);
  EXPECT_THAT(failures.GetTestPartResult(0).message(),
              HasSubstr("output 0 has shape [3], but was inferred to have [?,?]"));
}

absl::Status CountsItsThreads(KernelContext& ctx) {
  Tensor* y = nullptr;
  absl::Status status = ctx.AllocateOutput(0, TensorShape(), &y);
  if (status.ok()) {
    y->scalar<float>()() = static_cast<float>(tbb::this_task_arena::max_concurrency());
  }
  return status;
}

TEST(OpTester, RunEverywhereFindsResultsThatDependOnTheThreads) {
  static const Registry* const registry = RegistryOf<CountsItsThreads>(ScalarShape).release();
  ::testing::TestPartResultArray failures;
  {
    const ::testing::ScopedFakeTestPartResultReporter reporter(
        ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    GRADFLOW_EXPECT_OK(OpTester("Faulty", *registry).Input<float>({1}).RunEverywhere({{8}, {}}));
  }
  ASSERT_GT(failures.size(), 0);
  EXPECT_THAT(failures.GetTestPartResult(0).message(), HasSubstr("output 0 on 8 threads, "));
}

TEST(OpTester, CopiesAreIndependent) {
  OpTester one("Sub");
  one.Input<float>({5});
  OpTester two = one;
  two.Input<float>({3});
  one.Input<float>({4});
  EXPECT_THAT(one.RunOne(), TensorEq(AsTensor<float>({1})));
  EXPECT_THAT(two.RunOne(), TensorEq(AsTensor<float>({2})));
  one = two;
  EXPECT_THAT(one.RunOne(), TensorEq(AsTensor<float>({2})));
}

TEST(OpTester, SelectsTheKernelByLabel) {
  auto registry = RegistryOf<Copy>();
  registry->Kernel("Faulty", MakeFunctionKernel<SaysNothing>).Label("other");
  EXPECT_THAT(OpTester("Faulty", *registry).Input<float>({1}).RunOne(),
              TensorEq(AsTensor<float>({1})));
  EXPECT_THAT(OpTester("Faulty", *registry).Input<float>({1}).KernelLabel("none").MakeKernel(),
              StatusIs(absl::StatusCode::kUnimplemented));
  GRADFLOW_EXPECT_OK(
      OpTester("Faulty", *registry).Input<float>({1}).KernelLabel("other").MakeKernel());
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
