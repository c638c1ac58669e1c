// Tests of copying, concatenating, splitting and compressing tensors.
#include "tensorflow/core/framework/tensor_util.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/platform/test.h"

namespace tensorflow {
namespace {

TEST(TensorUtilTest, DeepCopySharesNoElements) {
  Tensor t = test::AsTensor<float>({1, 2, 3});
  const Tensor copy = tensor::DeepCopy(t);
  t.flat<float>()(0) = 9;
  EXPECT_EQ(copy.flat<float>()(0), 1);
  EXPECT_FALSE(copy.SharesBufferWith(t));
  const Tensor strings =
      test::AsTensor<tstring>({"a", "a string that is long enough for the heap"});
  Tensor target(DT_STRING, TensorShape({2}));
  tensor::DeepCopy(strings, &target);
  test::ExpectTensorEqual<tstring>(target, strings);
}

TEST(TensorUtilTest, ConcatenatesAndSplits) {
  const Tensor a = test::AsTensor<int32>({1, 2}, TensorShape({1, 2}));
  const Tensor b = test::AsTensor<int32>({3, 4, 5, 6}, TensorShape({2, 2}));
  Tensor all;
  ASSERT_TRUE(tensor::Concat({a, b}, &all).ok());
  test::ExpectTensorEqual<int32>(all,
                                 test::AsTensor<int32>({1, 2, 3, 4, 5, 6}, TensorShape({3, 2})));
  std::vector<Tensor> parts;
  ASSERT_TRUE(tensor::Split(all, {1, 0, 2}, &parts).ok());
  ASSERT_EQ(parts.size(), 3u);
  test::ExpectTensorEqual<int32>(parts[0], a);
  EXPECT_EQ(parts[1].shape(), TensorShape({0, 2}));
  test::ExpectTensorEqual<int32>(parts[2], b);
}

TEST(TensorUtilTest, ConcatenatesStrings) {
  const Tensor a = test::AsTensor<tstring>({"x", "y"});
  Tensor all;
  ASSERT_TRUE(tensor::Concat({a, a}, &all).ok());
  test::ExpectTensorEqual<tstring>(all, test::AsTensor<tstring>({"x", "y", "x", "y"}));
}

TEST(TensorUtilTest, RefusesMismatches) {
  const Tensor a = test::AsTensor<int32>({1, 2});
  const Tensor matrix = test::AsTensor<int32>({1, 2}, TensorShape({1, 2}));
  Tensor all = a;
  EXPECT_EQ(tensor::Concat({}, &all).code(), error::INVALID_ARGUMENT);
  EXPECT_EQ(tensor::Concat({a, matrix}, &all).code(), error::INVALID_ARGUMENT);
  EXPECT_EQ(tensor::Concat({a, test::AsTensor<float>({1})}, &all).code(), error::INVALID_ARGUMENT);
  EXPECT_EQ(tensor::Concat({test::AsScalar<int32>(1)}, &all).code(), error::INVALID_ARGUMENT);
  test::ExpectTensorEqual<int32>(all, a);
  std::vector<Tensor> parts;
  for (const std::vector<int64>& sizes :
       std::vector<std::vector<int64>>{{1}, {3}, {-1, 3}, {int64{1} << 62, int64{1} << 62}}) {
    EXPECT_EQ(tensor::Split(a, sizes, &parts).code(), error::INVALID_ARGUMENT);
  }
  EXPECT_EQ(tensor::Split(test::AsScalar<int32>(1), {1}, &parts).code(), error::INVALID_ARGUMENT);
}

TEST(TensorUtilTest, MakesShapes) {
  TensorShape shape;
  ASSERT_TRUE(tensor::MakeShape(test::AsTensor<int64>({2, 3}), &shape).ok());
  EXPECT_EQ(shape, TensorShape({2, 3}));
  EXPECT_FALSE(tensor::MakeShape(test::AsTensor<int32>({2, -1}), &shape).ok());
  EXPECT_FALSE(tensor::MakeShape(test::AsTensor<float>({2}), &shape).ok());
}

TEST(TensorUtilTest, CreatesMessages) {
  const TensorProto proto = tensor::CreateTensorProto<float>({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(proto.dtype(), DT_FLOAT);
  EXPECT_EQ(proto.float_val_size(), 4);
  Tensor t;
  ASSERT_TRUE(t.FromProto(proto));
  test::ExpectTensorEqual<float>(t, test::AsTensor<float>({1, 2, 3, 4}, TensorShape({2, 2})));
  EXPECT_EQ(tensor::CreateTensorProto<float>({1, 2, 3}, {2, 2}).dtype(), DT_INVALID);
}

TEST(TensorUtilTest, CompressesRepetitions) {
  Tensor t(DT_FLOAT, TensorShape({10, 10}));
  t.flat<float>().setConstant(2);
  t.flat<float>()(0) = 1;
  TensorProto proto;
  t.AsProtoTensorContent(&proto);
  ASSERT_TRUE(tensor::CompressTensorProtoInPlace(&proto));
  EXPECT_EQ(proto.float_val_size(), 2);
  Tensor read;
  ASSERT_TRUE(read.FromProto(proto));
  test::ExpectTensorEqual<float>(read, t);
  // Small tensors and tensors without repetitions are not compressed.
  EXPECT_FALSE(tensor::CompressTensorProtoInPlace(101, 2.0f, &proto));
  test::FillIota<float>(&t, 0);
  t.AsProtoTensorContent(&proto);
  EXPECT_FALSE(tensor::CompressTensorProtoInPlace(&proto));
}

TEST(TensorUtilTest, CopiesElementsIntoAnotherTensor) {
  for (const Tensor& source :
       {test::AsTensor<int32>({7}), test::AsTensor<int32>({1, 2, 3}), test::AsTensor<int32>({})}) {
    Tensor target(DT_INT32, source.shape());
    tensor::DeepCopy(source, &target);
    test::ExpectTensorEqual<int32>(target, source);
    EXPECT_EQ(target.SharesBufferWith(source), false);
    test::ExpectTensorEqual<int32>(tensor::DeepCopy(source), source);
  }
  // A source without elements is not read, even if the target has elements.
  Tensor one = test::AsTensor<int32>({7});
  tensor::DeepCopy(Tensor(DT_INT32, TensorShape({0})), &one);
  EXPECT_EQ(one.flat<int32>()(0), 7);
}

TEST(TensorUtilTest, DescribesMismatches) {
  const Tensor a = test::AsTensor<int32>({1, 2}), scalar = test::AsScalar<int32>(1);
  const Tensor matrix = test::AsTensor<int32>({1, 2}, TensorShape({1, 2}));
  Tensor all;
  std::vector<Tensor> parts = {a};
  TensorShape shape;
  const std::string sizes =
      "the sizes of the parts must be positive or 0 and add up to 2, the "
      "first dimension of the tensor";
  const std::pair<absl::Status, std::string> cases[] = {
      {tensor::Concat({}, &all), "there are no tensors to concatenate"},
      {tensor::Concat({a, scalar}, &all), "a scalar cannot be concatenated"},
      {tensor::Concat({a, matrix}, &all),
       "a tensor of type int32 and shape [1,2] cannot be concatenated with one of type int32 and "
       "shape [2]"},
      {tensor::Concat({a, test::AsTensor<float>({1})}, &all),
       "a tensor of type float and shape [1] cannot be concatenated with one of type int32 and "
       "shape [2]"},
      {tensor::Split(scalar, {1}, &parts), "a scalar cannot be split"},
      {tensor::Split(a, {1}, &parts), sizes},
      {tensor::Split(a, {1, 2}, &parts), sizes},
      {tensor::Split(a, {-1, 3}, &parts), sizes},
      {tensor::Split(a, {3, -1}, &parts), sizes},
      {tensor::MakeShape(scalar, &shape),
       "a shape must be a vector of int32 or int64, but is int32 of shape []"},
      {tensor::MakeShape(test::AsTensor<int64>({1}, {1, 1}), &shape),
       "a shape must be a vector of int32 or int64, but is int64 of shape [1,1]"},
      {tensor::MakeShape(test::AsTensor<float>({2}), &shape),
       "a shape must be a vector of int32 or int64, but is float of shape [1]"}};
  for (const auto& [status, message] : cases) {
    EXPECT_EQ(status.code(), error::INVALID_ARGUMENT);
    EXPECT_EQ(status.message(), message);
  }
  EXPECT_EQ(parts.size(), 1u);
  ASSERT_TRUE(tensor::MakeShape(test::AsTensor<int32>({4, 0}), &shape).ok());
  EXPECT_EQ(shape, TensorShape({4, 0}));
  // The shapes must agree from the second dimension on.
  const Tensor cube(DT_INT32, TensorShape({2, 3, 4})), other(DT_INT32, TensorShape({2, 1, 4}));
  EXPECT_EQ(tensor::Concat({cube, other}, &all).code(), error::INVALID_ARGUMENT);
  ASSERT_TRUE(tensor::Split(Tensor(DT_INT32, TensorShape({0, 3})), {}, &parts).ok());
  EXPECT_TRUE(parts.empty());
}

TEST(TensorUtilTest, CompressesRepetitionsAtTheEnd) {
  const auto values = [](const Tensor& tensor) {
    TensorProto proto;
    tensor.AsProtoTensorContent(&proto);
    const TensorShapeProto shape = proto.tensor_shape();
    if (!tensor::CompressTensorProtoInPlace(1, 0, &proto)) return -1;
    EXPECT_EQ(proto.tensor_shape().DebugString(), shape.DebugString());
    Tensor back;
    EXPECT_TRUE(back.FromProto(proto));
    test::ExpectEqual(back, tensor);
    return proto.float_val_size() + proto.string_val_size();
  };
  EXPECT_EQ(values(test::AsTensor<float>({2, 2, 2, 2}, {2, 2})), 1);
  EXPECT_EQ(values(test::AsTensor<float>({1, 1, 2, 2})), 3);
  EXPECT_EQ(values(test::AsTensor<float>({1, 2, 1, 2})), 4);
  EXPECT_EQ(values(test::AsScalar<float>(3)), 1);
  EXPECT_EQ(values(test::AsTensor<tstring>({"a", "b", "b"})), 2);
  EXPECT_EQ(values(test::AsTensor<tstring>({"b", "b"})), 1);
  EXPECT_EQ(values(Tensor(DT_FLOAT, TensorShape({0}))), -1);
  TensorProto invalid;
  invalid.set_dtype(DT_FLOAT);
  invalid.mutable_tensor_shape()->set_unknown_rank(true);
  EXPECT_FALSE(tensor::CompressTensorProtoInPlace(1, 0, &invalid));
}

TEST(TensorUtilTest, CompressesByTheRatioAndFromTheNumberOfElements) {
  Tensor t(DT_FLOAT, TensorShape({1}));
  TensorProto proto, compressed;
  int64 n = 64;
  // Finds a number of elements that makes the ratio exact.
  do {
    t = Tensor(DT_FLOAT, TensorShape({++n}));
    t.flat<float>().setConstant(2);
    t.AsProtoTensorContent(&proto);
    compressed = proto;
    ASSERT_TRUE(tensor::CompressTensorProtoInPlace(n, 2, &compressed));
  } while (proto.ByteSizeLong() % compressed.ByteSizeLong() != 0);
  const auto ratio = static_cast<float>(proto.ByteSizeLong() / compressed.ByteSizeLong());
  TensorProto same = proto;
  EXPECT_FALSE(tensor::CompressTensorProtoInPlace(n + 1, 2, &same));
  EXPECT_FALSE(tensor::CompressTensorProtoInPlace(n, std::nextafter(ratio, 1e6f), &same));
  EXPECT_EQ(same.DebugString(), proto.DebugString());
  EXPECT_TRUE(tensor::CompressTensorProtoInPlace(n, ratio, &same));
  EXPECT_EQ(same.DebugString(), compressed.DebugString());
}

}  // namespace
}  // namespace tensorflow
