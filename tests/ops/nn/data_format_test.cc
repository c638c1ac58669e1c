#include <cstdint>
#include <string>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

OpTester WithFormats(const char* op, const Tensor& x, const std::string& from,
                     const std::string& to) {
  return OpTester(op).Input(x).Attr("src_format", from).Attr("dst_format", to);
}

TEST(DataFormat, MapsDimensions) {
  const char* const op = "DataFormatDimMap";
  EXPECT_THAT(OpTester(op).Input<int32_t>({0, 1, 2, 3, -1, -4}).RunOne(),
              TensorEq(AsTensor<int32_t>({0, 2, 3, 1, 1, 0})));
  EXPECT_THAT(WithFormats(op, AsTensor<int64_t>({0, 1, 4, -2}, {2, 2}), "NDHWC", "NCDHW").RunOne(),
              TensorEq(AsTensor<int64_t>({0, 2, 1, 4}, {2, 2})));
  EXPECT_THAT(WithFormats(op, AsScalar<int32_t>(3), "NCHW", "HWCN").RunOne(),
              TensorEq(AsScalar<int32_t>(1)));
  EXPECT_THAT(OpTester(op).Input(Tensor(DT_INT32, {0, 3})).RunOne(),
              TensorEq(Tensor(DT_INT32, {0, 3})));
  Tensor many(DT_INT64, {100003});
  Tensor expected(DT_INT64, {100003});
  const int64_t map[] = {0, 2, 3, 1};
  for (int64_t i = 0; i < many.NumElements(); ++i) {
    many.flat<int64_t>()(i) = i % 8 - 4;
    expected.flat<int64_t>()(i) = map[i % 4];
  }
  EXPECT_THAT(OpTester(op).Input(many).RunOne(), TensorEq(expected));
}

TEST(DataFormat, PermutesVectors) {
  const char* const op = "DataFormatVecPermute";
  EXPECT_THAT(OpTester(op).Input<int32_t>({1, 2, 3, 4}).RunOne(),
              TensorEq(AsTensor<int32_t>({1, 4, 2, 3})));
  EXPECT_THAT(OpTester(op).Input<int64_t>({1, 2, 3, 4, 5, 6, 7, 8}, {4, 2}).RunOne(),
              TensorEq(AsTensor<int64_t>({1, 2, 7, 8, 3, 4, 5, 6}, {4, 2})));
  EXPECT_THAT(WithFormats(op, AsTensor<int32_t>({1, 2}), "NHWC", "WHCN").RunOne(),
              TensorEq(AsTensor<int32_t>({2, 1})));
  EXPECT_THAT(WithFormats(op, AsTensor<int32_t>({1, 2, 3}), "NDHWC", "NCWHD").RunOne(),
              TensorEq(AsTensor<int32_t>({3, 2, 1})));
  EXPECT_THAT(WithFormats(op, AsTensor<int32_t>({1, 2, 3, 4}, {2, 2}), "NHWC", "NWHC").RunOne(),
              TensorEq(AsTensor<int32_t>({3, 4, 1, 2}, {2, 2})));
  EXPECT_THAT(WithFormats(op, AsTensor<int32_t>({1, 2, 3, 4}), "1234", "4321").RunOne(),
              TensorEq(AsTensor<int32_t>({4, 3, 2, 1})));
}

TEST(DataFormat, RejectsFormats) {
  struct {
    const char* from;
    const char* to;
    const char* text;
  } const cases[] = {{"HW", "WH", "src_format is 'HW', expected 4 or 5 letters"},
                     {"NHWC", "NCHWDE", "dst_format is 'NCHWDE', expected 4 or 5 letters"},
                     {"NHWC", "NCDHW", "do not have the same distinct letters"},
                     {"1234", "1253", "src_format '1234' and dst_format '1253' do not have"},
                     {"1224", "1422", "do not have the same distinct letters"}};
  for (const char* const op : {"DataFormatDimMap", "DataFormatVecPermute"}) {
    for (const auto& wrong : cases) {
      OpTester tester = WithFormats(op, AsTensor<int32_t>({0, 1, 2, 3}), wrong.from, wrong.to);
      EXPECT_THAT(tester.Run(), StatusIs(kInvalidArgument, HasSubstr(wrong.text)));
      EXPECT_THAT(tester.InferShape(), StatusIs(kInvalidArgument, HasSubstr(wrong.text)));
    }
  }
}

TEST(DataFormat, RejectsElementsAndShapes) {
  for (const int32_t dim : {4, -5, 2147483647, -2147483647 - 1}) {
    EXPECT_THAT(OpTester("DataFormatDimMap").Input<int32_t>({0, dim}).Run(),
                StatusIs(kInvalidArgument, "x has element " + std::to_string(dim) +
                                               " at 1, expected a dimension in [-4, 4)"));
  }
  const char* const op = "DataFormatVecPermute";
  for (const TensorShape& shape :
       {TensorShape({3}), TensorShape({5}), TensorShape({4, 1}), TensorShape({4, 0})}) {
    OpTester tester(op);
    tester.Input(Tensor(DT_INT32, shape));
    const std::string text =
        "x has shape " + shape.DebugString() + ", expected [4], [2], [4,2] or [2,2]";
    EXPECT_THAT(tester.Run(), StatusIs(kInvalidArgument, text));
    EXPECT_THAT(tester.InferShape(), StatusIs(kInvalidArgument, text));
  }
  for (const TensorShape& shape : {TensorShape(), TensorShape({4, 2, 1})}) {
    EXPECT_THAT(OpTester(op).Input(Tensor(DT_INT32, shape)).Run(),
                StatusIs(kInvalidArgument, HasSubstr("x must have rank 1 or 2")));
  }
  EXPECT_THAT(WithFormats(op, AsTensor<int32_t>({1, 2}), "1234", "4321").Run(),
              StatusIs(kInvalidArgument, HasSubstr("has other letters than H and W")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
