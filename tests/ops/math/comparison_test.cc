#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/small_blocks.h"
#include "tests/testing/constants.h"
#include "tests/testing/op_reference.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

struct ComparisonCase {
  const char* op;
  bool (*reference)(double, double);
};
const ComparisonCase kComparisonCases[] = {
    {"Equal", [](double x, double y) { return x == y; }},
    {"NotEqual", [](double x, double y) { return x != y; }},
    {"Less", [](double x, double y) { return x < y; }},
    {"LessEqual", [](double x, double y) { return x <= y; }},
    {"Greater", [](double x, double y) { return x > y; }},
    {"GreaterEqual", [](double x, double y) { return x >= y; }},
};

TEST(Comparison, RunsForEveryRealType) {
  for (const ComparisonCase& c : kComparisonCases) {
    ForEachType(RealTypes(), [&](auto tag) {
      constexpr DataType dtype = DataTypeToEnum<typename decltype(tag)::type>::value;
      SCOPED_TRACE(std::string(c.op) + " of " + DataTypeString(dtype));
      // Small integers, so that some elements are equal.
      Tensor x = UnaryReference(RandomTensor(dtype, {23, 9}, 0, 4, 1),
                                [](double v) { return static_cast<int>(v); });
      Tensor y = UnaryReference(RandomTensor(dtype, {23, 1}, 0, 4, 2),
                                [](double v) { return static_cast<int>(v); });
      EXPECT_THAT(OpTester(c.op).Input(x).Input(y).RunOne(),
                  TensorEq(BinaryReference(x, y, DT_BOOL, c.reference)));
      EXPECT_THAT(OpTester(c.op).Input(y).Input(x).RunOne(),
                  TensorEq(BinaryReference(y, x, DT_BOOL, c.reference)));
    });
  }
}

TEST(Comparison, OrdersByValueAndNotByBits) {
  EXPECT_THAT(OpTester("Less")
                  .Input(AsTensor<int8_t>({-1, 127, -128}))
                  .Input(AsTensor<int8_t>({1, -128, 127}))
                  .RunOne(),
              TensorEq(AsTensor<bool>({true, false, true})));
  EXPECT_THAT(OpTester("Less")
                  .Input(AsTensor<uint8_t>({255, 1}))
                  .Input(AsTensor<uint8_t>({1, 255}))
                  .RunOne(),
              TensorEq(AsTensor<bool>({false, true})));
  // Two distinct integers that are equal as doubles.
  constexpr int64_t large = (int64_t{1} << 53) + 1;
  for (const auto& [op, expected] :
       {std::pair<const char*, bool>{"Greater", true}, {"Equal", false}, {"LessEqual", false}}) {
    EXPECT_THAT(
        OpTester(op).Input(AsScalar<int64_t>(large)).Input(AsScalar<int64_t>(large - 1)).RunOne(),
        TensorEq(AsScalar<bool>(expected)));
  }
}

TEST(Comparison, NanIsFalseExceptForNotEqual) {
  for (const ComparisonCase& c : kComparisonCases) {
    SCOPED_TRACE(c.op);
    const Tensor x = AsTensor<float>({kNan, 1, kNan, 0});
    const Tensor y = AsTensor<float>({1, kNan, kNan, -0.0f});
    EXPECT_THAT(OpTester(c.op).Input(x).Input(y).RunOne(),
                TensorEq(BinaryReference(x, y, DT_BOOL, c.reference)));
    const Tensor hx = AsTensor<half>({kNan, 1, kNan, 0});
    const Tensor hy = AsTensor<half>({1, kNan, kNan, -0.0f});
    EXPECT_THAT(OpTester(c.op).Input(hx).Input(hy).RunOne(),
                TensorEq(BinaryReference(x, y, DT_BOOL, c.reference)));
  }
}

TEST(Equal, ComparesBoolsStringsComplexAndQuantizedNumbers) {
  const Tensor expected = AsTensor<bool>({true, false});
  const Tensor opposite = AsTensor<bool>({false, true});
  const std::vector<std::pair<Tensor, Tensor>> cases = {
      {AsTensor<bool>({true, false}), AsScalar<bool>(true)},
      {AsTensor<tstring>({"same", "other"}), AsScalar<tstring>("same")},
      {AsTensor<complex64>({{1, 2}, {1, 3}}), AsScalar<complex64>({1, 2})},
      {AsTensor<complex128>({{1, 2}, {0, 2}}), AsScalar<complex128>({1, 2})},
      {AsTensor<qint8>({-3, 3}), AsScalar<qint8>(-3)},
      {AsTensor<quint8>({200, 3}), AsScalar<quint8>(200)},
      {AsTensor<qint16>({-300, 3}), AsScalar<qint16>(-300)},
      {AsTensor<quint16>({60000, 3}), AsScalar<quint16>(60000)},
      {AsTensor<qint32>({-300000, 3}), AsScalar<qint32>(-300000)},
  };
  for (const auto& [x, y] : cases) {
    SCOPED_TRACE(DataTypeString(x.dtype()));
    EXPECT_THAT(OpTester("Equal").Input(x).Input(y).RunOne(), TensorEq(expected));
    EXPECT_THAT(OpTester("NotEqual").Input(x).Input(y).RunOne(), TensorEq(opposite));
  }
}

TEST(Equal, ShapesThatDoNotBroadcastAreUnequalIfAllowed) {
  const Tensor x = RandomTensor(DT_FLOAT, {2, 3});
  const Tensor y = RandomTensor(DT_FLOAT, {2});
  for (const char* op : {"Equal", "NotEqual"}) {
    SCOPED_TRACE(op);
    const Tensor expected = AsScalar<bool>(op[0] == 'N');
    auto tester = OpTester(op);
    tester.Input(x).Input(y).Attr("incompatible_shape_error", false);
    EXPECT_THAT(tester.RunOne(), TensorEq(expected));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const PartialTensorShape shape, tester.InferShape());
    EXPECT_EQ(shape.DebugString(), "[]");
    EXPECT_THAT(OpTester(op).Input(x).Input(y).Run(),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("shapes [2,3] and [2] cannot be broadcast together")));
    // Compatible shapes are still broadcast.
    EXPECT_THAT(
        OpTester(op).Input(x).Input(x).Attr("incompatible_shape_error", false).RunOne(),
        TensorEq(BinaryReference(x, x, DT_BOOL, [&](double, double) { return op[0] == 'E'; })));
  }
}

TEST(Equal, RejectsShapesWhoseResultIsTooLarge) {
  const TensorShape column({int64_t{1} << 32, 1});
  const TensorShape row({1, int64_t{1} << 32});
  const auto error = StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("more elements"));
  const auto allocator = std::make_shared<SmallBlocks>();
  for (const char* op : {"Equal", "NotEqual"}) {
    for (const bool incompatible_shape_error : {false, true}) {
      EXPECT_THAT(OpTester(op)
                      .UnknownInput(DT_BOOL, column)
                      .UnknownInput(DT_BOOL, row)
                      .Attr("incompatible_shape_error", incompatible_shape_error)
                      .InferShape(),
                  error);
      EXPECT_THAT(OpTester(op)
                      .Attr("T", DT_BOOL)
                      .Attr("incompatible_shape_error", incompatible_shape_error)
                      .RunOn({Tensor(allocator, DT_BOOL, column), Tensor(allocator, DT_BOOL, row)}),
                  error);
    }
  }
}

TEST(Equal, ShapeIsUnknownWhileItMayBeAScalar) {
  for (const bool error : {false, true}) {
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const PartialTensorShape shape,
                                  OpTester("Equal")
                                      .UnknownInput(DT_FLOAT, {2, -1})
                                      .UnknownInput(DT_FLOAT, {2, 3})
                                      .Attr("incompatible_shape_error", error)
                                      .InferShape());
    EXPECT_EQ(shape.DebugString(), error ? "[2,3]" : "<unknown>");
  }
}

TEST(Less, RejectsBools) {
  for (const char* op : {"Less", "LessEqual", "Greater", "GreaterEqual"}) {
    EXPECT_THAT(
        OpTester(op).Input(AsTensor<bool>({true})).Input(AsTensor<bool>({true})).MakeKernel(),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("T")));
  }
}

TEST(ApproximateEqual, ComparesTheDistance) {
  ForEachType(NumberTypes(), [](auto tag) {
    using T = typename decltype(tag)::type;
    SCOPED_TRACE(DataTypeString(DataTypeToEnum<T>::value));
    const Tensor x = AsTensor<T>({1, 2, 5, 100});
    const Tensor y = AsTensor<T>({1, 1, 3, 3});
    EXPECT_THAT(OpTester("ApproximateEqual").Input(x).Input(y).Attr("tolerance", 1.5f).RunOne(),
                TensorEq(AsTensor<bool>({true, true, false, false})));
    EXPECT_THAT(OpTester("ApproximateEqual").Input(x).Input(y).RunOne(),
                TensorEq(AsTensor<bool>({true, false, false, false})));
  });
  EXPECT_THAT(OpTester("ApproximateEqual")
                  .Input<float>({kNan, kInf, 1, 1})
                  .Input<float>({kNan, kInf, kNan, 1.000001f})
                  .RunOne(),
              TensorEq(AsTensor<bool>({false, false, false, true})));
  // The difference does not fit an int64.
  EXPECT_THAT(OpTester("ApproximateEqual")
                  .Input<int64_t>({INT64_MIN, INT64_MAX})
                  .Input<int64_t>({INT64_MAX, INT64_MIN})
                  .RunOne(),
              TensorEq(AsTensor<bool>({false, false})));
}

TEST(ApproximateEqual, RejectsOtherShapes) {
  OpTester op("ApproximateEqual");
  op.Input<float>({1, 2}).Input<float>({1});
  EXPECT_THAT(op.Run(),
              StatusIs(kInvalidArgument, HasSubstr("x has shape [2], and y has shape [1]")));
  EXPECT_THAT(op.InferShape(), StatusIs(kInvalidArgument));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
