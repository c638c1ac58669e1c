#include "gradflow/core/op_kernel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "gradflow/testing/status_matchers.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A context with given inputs and two outputs, float and int32.
class KernelContextTest : public ::testing::Test {
 protected:
  KernelContext Context(std::vector<Tensor> inputs) {
    inputs_ = std::move(inputs);
    return KernelContext(absl::MakeSpan(inputs_), absl::MakeSpan(outputs_), types_, run_);
  }

  RunContext run_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_ = std::vector<Tensor>(2);
  DataTypeVector types_ = {DT_FLOAT, DT_INT32};
};

TEST_F(KernelContextTest, AllocatesOutputsOfTheDeclaredType) {
  KernelContext ctx = Context({});
  Tensor* out = nullptr;
  ASSERT_THAT(ctx.AllocateOutput(1, {2, 3}, &out), IsOk());
  EXPECT_EQ(out, &outputs_[1]);
  EXPECT_EQ(out->dtype(), DT_INT32);
  EXPECT_EQ(out->shape(), TensorShape({2, 3}));
}

TEST_F(KernelContextTest, ReportsSizesThatCannotBeAllocated) {
  KernelContext ctx = Context({});
  Tensor* out = nullptr;
  EXPECT_THAT(ctx.AllocateOutput(0, {int64_t{1} << 60}, &out),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("output 0")));
  EXPECT_THAT(ctx.AllocateOutput(0, {-1}, &out), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(KernelContextTest, ForwardsAnInputWithoutOtherHolders) {
  KernelContext ctx = Context({Tensor(DT_FLOAT, {4})});
  const void* data = inputs_[0].raw_data();
  Tensor* out = nullptr;
  ASSERT_THAT(ctx.ForwardInputOrAllocateOutput(0, 0, {2, 2}, &out), IsOk());
  EXPECT_EQ(out->raw_data(), data);
  EXPECT_EQ(out->shape(), TensorShape({2, 2}));
  // The output shares the buffer, so another output cannot.
  outputs_[1] = Tensor();
  types_[1] = DT_FLOAT;
  ASSERT_THAT(ctx.ForwardInputOrAllocateOutput(0, 1, {4}, &out), IsOk());
  EXPECT_NE(out->raw_data(), data);
}

TEST_F(KernelContextTest, DoesNotForwardSharedOrMismatchedInputs) {
  const Tensor shared(DT_FLOAT, {4});
  float fixed[4] = {};
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const Tensor read_only,
      Tensor::FromMemory(DT_FLOAT, {4}, fixed, /*writable=*/false, nullptr));
  KernelContext ctx = Context({shared, Tensor(DT_INT32, {4}), Tensor(DT_FLOAT, {5}), read_only});
  for (int input = 0; input < 4; ++input) {
    Tensor* out = nullptr;
    ASSERT_THAT(ctx.ForwardInputOrAllocateOutput(input, 0, {4}, &out), IsOk());
    EXPECT_FALSE(out->SharesBufferWith(inputs_[input])) << input;
    EXPECT_EQ(out->dtype(), DT_FLOAT);
  }
}

TEST_F(KernelContextTest, ErrorsOfChecksStateExpectedAndFound) {
  KernelContext ctx = Context({Tensor(DT_FLOAT, {2, 3}), Tensor(DT_FLOAT, {3}), Tensor(1.0f)});
  const auto is = [](const char* text) {
    return StatusIs(absl::StatusCode::kInvalidArgument, text);
  };
  EXPECT_THAT(ctx.CheckScalar(0, "min"),
              is("Shape must be rank 0 but is rank 2: min has shape [2,3]"));
  EXPECT_THAT(ctx.CheckScalar(2, "min"), IsOk());
  EXPECT_THAT(ctx.CheckVector(0, "min"),
              is("Shape must be rank 1 but is rank 2: min has shape [2,3]"));
  EXPECT_THAT(ctx.CheckVector(1, "min"), IsOk());
  EXPECT_THAT(ctx.CheckRank(1, "x", 4), is("Shape must be rank 4 but is rank 1: x has shape [3]"));
  EXPECT_THAT(ctx.CheckRank(1, "x", 1), IsOk());
  EXPECT_THAT(ctx.CheckShape(1, "scale", {64}),
              is("scale must have shape [64], but has shape [3]"));
  EXPECT_THAT(ctx.CheckShape(1, "scale", {3}), IsOk());
  EXPECT_THAT(
      ctx.CheckSameShape(0, "a", 1, "b"),
      is("Shapes must be equal rank, but are 2 and 1: a has shape [2,3], and b has shape [3]"));
  EXPECT_THAT(ctx.CheckSameShape(0, "a", 0, "a"), IsOk());
}

TEST_F(KernelContextTest, ReadsIntegersOfEveryIndexType) {
  Tensor wide(DT_INT64, {2});
  wide.vec<int64_t>()(0) = std::numeric_limits<int64_t>::min();
  wide.vec<int64_t>()(1) = 7;
  KernelContext ctx = Context({wide, Tensor(int32_t{-3}), Tensor(int16_t{5}), Tensor(1.0f)});
  EXPECT_THAT(*ctx.Ints(0, "v"), ElementsAre(std::numeric_limits<int64_t>::min(), 7));
  EXPECT_EQ(*ctx.ScalarInt(1, "v"), -3);
  EXPECT_EQ(*ctx.ScalarInt(2, "v"), 5);
  EXPECT_THAT(ctx.Ints(3, "v"), StatusIs(absl::StatusCode::kInvalidArgument,
                                         "v must be of type int16, int32 or int64, but is float"));
  EXPECT_THAT(ctx.ScalarInt(0, "v"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "Shape must be rank 0 but is rank 1: v has shape [2]"));
}

TEST_F(KernelContextTest, LimitsIntegersToTheMaximumRank) {
  KernelContext ctx = Context({Tensor(DT_INT32, {254}), Tensor(DT_INT32, {255})});
  EXPECT_EQ(ctx.Ints(0, "v")->size(), 254);
  EXPECT_THAT(ctx.Ints(1, "v"), StatusIs(absl::StatusCode::kInvalidArgument,
                                         "v must have at most 254 elements, but has 255"));
}

// Counts the bytes that are charged for the characters of strings.
class CountingAllocator final : public Allocator {
 public:
  void* Allocate(size_t bytes) override { return SystemAllocator()->Allocate(bytes); }
  void Deallocate(void* block, size_t bytes) override {
    SystemAllocator()->Deallocate(block, bytes);
  }
  bool Reserve(size_t bytes) override {
    reserved += bytes;
    return reserved <= limit;
  }
  void Release(size_t bytes) override { reserved -= bytes; }

  size_t reserved = 0;
  size_t limit = 1'000'000;
};

TEST_F(KernelContextTest, ChargesStringsByTheLongestInput) {
  const auto allocator = std::make_shared<CountingAllocator>();
  const std::shared_ptr<Allocator> base = allocator;
  run_.allocator = &base;
  types_ = {DT_STRING, DT_STRING};
  Tensor strings(DT_STRING, {3});
  strings.flat<tstring>()(1) = "12345";
  KernelContext ctx = Context({Tensor(1.0f), strings, Tensor(tstring("123"))});
  Tensor* out = nullptr;
  ASSERT_THAT(ctx.AllocateOutput(0, {100}, &out), IsOk());
  EXPECT_EQ(allocator->reserved, 500u);
  // The kernel states the total number of characters itself.
  ctx.ExpectStringBytes(20);
  ASSERT_THAT(ctx.AllocateOutput(0, {100}, &out), IsOk());
  EXPECT_EQ(allocator->reserved, 20u);
  ASSERT_THAT(ctx.AllocateOutput(1, {2}, &out), IsOk());
  EXPECT_EQ(allocator->reserved, 30u);
  EXPECT_THAT(ctx.AllocateOutput(1, {1'000'000}, &out),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("out of memory for the 5000000 characters")));
}

TEST_F(KernelContextTest, StringExpectationAppliesOnlyToTheNextOutput) {
  const auto allocator = std::make_shared<CountingAllocator>();
  const std::shared_ptr<Allocator> base = allocator;
  run_.allocator = &base;
  types_ = {DT_FLOAT, DT_STRING};
  KernelContext ctx = Context({Tensor(tstring("123"))});
  Tensor* out = nullptr;
  ctx.ExpectStringBytes(1000);
  ASSERT_THAT(ctx.AllocateOutput(0, {2}, &out), IsOk());
  ASSERT_THAT(ctx.AllocateOutput(1, {2}, &out), IsOk());
  EXPECT_EQ(allocator->reserved, 6u);
}

TEST(KernelContextDeathTest, ReportsTheIndexOutOfRange) {
  ::testing::FLAGS_gtest_death_test_style = ::gradflow::testing::kDeathTestStyle;
  const RunContext run;
  KernelContext ctx({}, {}, {}, run);
  EXPECT_DEATH(ctx.input(9), "KernelContext::input\\(9\\): index out of range");
  EXPECT_DEATH(ctx.set_output(-1, Tensor()), "KernelContext::mutable_output\\(-1\\)");
  EXPECT_DEATH(ctx.expected_output_dtype(0), "KernelContext::expected_output_dtype\\(0\\)");
}

}  // namespace
}  // namespace gradflow
