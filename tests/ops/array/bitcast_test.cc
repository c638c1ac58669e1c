#include <cstring>
#include <string>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

OpTester Bitcast(const Tensor& input, DataType type) {
  return OpTester("Bitcast").Input(input).Attr("type", type);
}

const DataType kBitcastTypes[] = {DT_BFLOAT16, DT_HALF,   DT_FLOAT,     DT_DOUBLE,     DT_INT64,
                                  DT_INT32,    DT_UINT8,  DT_UINT16,    DT_UINT32,     DT_UINT64,
                                  DT_INT8,     DT_INT16,  DT_COMPLEX64, DT_COMPLEX128, DT_QINT8,
                                  DT_QUINT8,   DT_QINT16, DT_QUINT16,   DT_QINT32};

TEST(Bitcast, CastsEveryTypeToEveryOther) {
  for (const DataType from : kBitcastTypes) {
    for (const DataType to : kBitcastTypes) {
      SCOPED_TRACE(DataTypeString(from) + " to " + DataTypeString(to));
      const int64_t ratio = DataTypeSize(to) / DataTypeSize(from);
      const Tensor x = DistinctTensor(from, ratio > 1 ? TensorShape({3, ratio}) : TensorShape({3}));
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor y, Bitcast(x, to).RunOne());
      EXPECT_EQ(y.dtype(), to);
      EXPECT_EQ(y.TotalBytes(), x.TotalBytes());
      EXPECT_EQ(std::memcmp(y.raw_data(), x.raw_data(), x.TotalBytes()), 0);
      EXPECT_EQ(y.raw_data(), x.raw_data());
      const int64_t parts = DataTypeSize(from) / DataTypeSize(to);
      EXPECT_EQ(y.shape(), parts > 1 ? TensorShape({3, parts}) : TensorShape({3}));
    }
  }
}

TEST(Bitcast, CopiesElementsThatAreNotAligned) {
  const Tensor whole = Iota<uint8_t>({6, 4});
  const Tensor rows = Iota<uint8_t>({7, 2}).Slice(1, 7);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor pairs, rows.Reshaped({3, 4}));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor y, Bitcast(pairs, DT_INT32).RunOne());
  EXPECT_THAT(y, TensorEq(AsTensor<int32_t>({0x05040302, 0x09080706, 0x0d0c0b0a})));
  EXPECT_THAT(Bitcast(whole, DT_INT32).RunOne(), ::testing::Not(TensorEq(y)));
}

TEST(Bitcast, TakesScalarsAndEmptyTensors) {
  EXPECT_THAT(Bitcast(AsScalar<float>(1), DT_INT32).RunOne(),
              TensorEq(AsScalar<int32_t>(0x3f800000)));
  EXPECT_THAT(Bitcast(AsScalar<float>(1), DT_UINT16).RunOne(),
              TensorEq(AsTensor<uint16_t>({0, 0x3f80})));
  EXPECT_THAT(Bitcast(Tensor(DT_UINT8, {0, 4}), DT_FLOAT).RunOne(),
              TensorEq(Tensor(DT_FLOAT, {0})));
  EXPECT_THAT(Bitcast(Tensor(DT_FLOAT, {0, 4}), DT_UINT8).RunOne(),
              TensorEq(Tensor(DT_UINT8, {0, 4, 4})));
}

TEST(Bitcast, InfersShapes) {
  const auto infer = [](const PartialTensorShape& shape, DataType from, DataType to) {
    return OpTester("Bitcast").UnknownInput(from, shape).Attr("type", to).InferShape();
  };
  EXPECT_THAT(infer({2, -1}, DT_UINT8, DT_FLOAT), ShapeIs("[2]"));
  EXPECT_THAT(infer({2, -1}, DT_FLOAT, DT_UINT8), ShapeIs("[2,?,4]"));
  EXPECT_THAT(infer({2, -1}, DT_FLOAT, DT_INT32), ShapeIs("[2,?]"));
  EXPECT_THAT(infer(PartialTensorShape(), DT_UINT8, DT_FLOAT), ShapeIs("<unknown>"));
}

TEST(Bitcast, RejectsLastDimensionsOfAnotherSize) {
  const auto expect_rejected = [](const Tensor& input, DataType type, const char* message) {
    EXPECT_THAT(Bitcast(input, type).Run(), StatusIs(kInvalidArgument, message));
    EXPECT_THAT(Bitcast(input, type).InferShape(), StatusIs(kInvalidArgument, message));
  };
  expect_rejected(
      Iota<uint8_t>({2, 3}), DT_FLOAT,
      "input has shape [2,3], expected a last dimension of 4 to bitcast uint8 to float");
  expect_rejected(AsScalar<uint8_t>(1), DT_UINT16,
                  "input has shape [], expected a last dimension of 2 to bitcast uint8 to uint16");
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
