#include <string>
#include <vector>

#include "gradflow/core/optional_value.h"
#include "gradflow/core/variant.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

Tensor Optional(const std::vector<Tensor>& components) {
  return Tensor(Variant(OptionalValue(components)));
}
const Tensor kNone{Variant(OptionalValue())};

const OptionalValue& ValueIn(const absl::StatusOr<std::vector<Tensor>>& outputs) {
  static const auto& none = *new OptionalValue;
  GRADFLOW_EXPECT_OK(outputs.status());
  if (!outputs.ok()) return none;
  const auto* const value = (*outputs)[0].span<Variant>()[0].get<OptionalValue>();
  EXPECT_NE(value, nullptr);
  return value == nullptr ? none : *value;
}
OpTester Get(const Tensor& optional, const DataTypeVector& types,
             const std::vector<PartialTensorShape>& shapes) {
  OpTester tester("OptionalGetValue");
  tester.Input(optional).Attr("output_types", types).Attr("output_shapes", shapes);
  return tester.ShapeIsData();
}

TEST(Optional, HoldsTensorsOrNothing) {
  const Tensor a = AsTensor<float>({1, 2});
  const Tensor b(tstring("b"));
  const auto made = OpTester("OptionalFromValue").Input(a).Input(b).RunOnThreads(1);
  ASSERT_TRUE(ValueIn(made).has_value());
  const auto got = Get((*made)[0], {DT_FLOAT, DT_STRING}, {PartialTensorShape({-1}), TensorShape()})
                       .RunOnThreads(1);
  GRADFLOW_ASSERT_OK(got.status());
  EXPECT_THAT((*got)[0], TensorEq(a));
  EXPECT_THAT((*got)[1], TensorEq(b));
  EXPECT_FALSE(ValueIn(OpTester("OptionalNone").RunOnThreads(1)).has_value());
  const auto has_value = [](const Tensor& optional) {
    return OpTester("OptionalHasValue").Input(optional).RunOnThreads(1);
  };
  EXPECT_THAT((*has_value(kNone))[0], TensorEq(Tensor(false)));
  EXPECT_THAT((*has_value((*made)[0]))[0], TensorEq(Tensor(true)));
}

TEST(Optional, ChecksWhatItHolds) {
  const Tensor one = Optional({Tensor(1.f)});
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {Get(kNone, {DT_FLOAT}, {TensorShape()}), "optional has no value"},
      {Get(one, {DT_FLOAT, DT_FLOAT}, {TensorShape(), TensorShape()}),
       "optional has 1 tensors, expected 2"},
      {Get(one, {DT_INT32}, {TensorShape()}),
       "tensor 0 of optional has type float and shape [], expected int32 and []"},
      {Get(one, {DT_FLOAT}, {TensorShape({3})}),
       "tensor 0 of optional has type float and shape [], expected float and [3]"},
      {Get(one, {DT_FLOAT}, {TensorShape(), TensorShape()}),
       "output_types and output_shapes must have the same length"},
      {Get(Tensor(Variant(7)), {DT_FLOAT}, {TensorShape()}),
       "optional must hold an optional value, but holds a value of type 'int'"},
      {Get(Tensor(DT_VARIANT, {}), {DT_FLOAT}, {TensorShape()}), "but holds nothing"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(OpTester(c.tester).RunOnThreads(1), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
}

TEST(Optional, MayBeNestedUpToALimit) {
  Tensor nested = Optional({Tensor(1.f)});
  absl::Status status;
  int levels = 1;
  for (; status.ok() && levels < 1000; ++levels) {
    const auto outputs = OpTester("OptionalFromValue").Input(nested).RunOnThreads(1);
    status = outputs.status();
    if (outputs.ok()) nested = (*outputs)[0];
  }
  EXPECT_EQ(levels, 65);
  EXPECT_THAT(status, StatusIs(kInvalidArgument, HasSubstr("at most 64 levels")));
}

TEST(Optional, IsZeroedAndAdded) {
  const Tensor pair = Optional({AsTensor<float>({1, 2}), AsScalar<int32_t>(3)});
  const auto zeros = OpTester("ZerosLike").Input(pair).RunOnThreads(1);
  EXPECT_THAT(ValueIn(zeros).components()[0], TensorEq(AsTensor<float>({0, 0})));
  EXPECT_THAT(ValueIn(zeros).components()[1], TensorEq(AsScalar<int32_t>(0)));
  EXPECT_FALSE(ValueIn(OpTester("ZerosLike").Input(kNone).RunOnThreads(1)).has_value());
  const auto add = [](const Tensor& a, const Tensor& b) {
    return OpTester("AddN").Input(a).Input(b).RunOnThreads(1);
  };
  EXPECT_THAT(ValueIn(add(pair, pair)).components()[0], TensorEq(AsTensor<float>({2, 4})));
  EXPECT_FALSE(ValueIn(add(kNone, kNone)).has_value());
  EXPECT_THAT(add(pair, kNone),
              StatusIs(kInvalidArgument, HasSubstr("if only one of them holds tensors")));
  EXPECT_THAT(add(pair, Optional({Tensor(1.f)})),
              StatusIs(kInvalidArgument, HasSubstr("of 2 and of 1 tensors cannot be added")));
  EXPECT_THAT(OpTester("ZerosLike").Input(Optional({Tensor(tstring("a"))})).RunOnThreads(1),
              StatusIs(kInvalidArgument, HasSubstr("there are no zeros of type string")));
}

TEST(Optional, IsEncodedAndDecoded) {
  for (const Tensor& optional : {kNone, Optional({AsTensor<float>({1, 2})})}) {
    VariantTensorData data;
    optional.span<Variant>()[0].Encode(&data);
    EXPECT_EQ(data.type_name(), "tensorflow::data::Optional");
    OptionalValue decoded;
    ASSERT_TRUE(decoded.Decode(data));
    EXPECT_EQ(decoded.DebugString(),
              optional.span<Variant>()[0].get<OptionalValue>()->DebugString());
  }
  VariantTensorData other;
  other.set_type_name("int");
  EXPECT_FALSE(OptionalValue().Decode(other));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
