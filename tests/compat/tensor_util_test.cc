// Copying, concatenating, splitting and compressing tensors.
#include "tensorflow/core/framework/tensor_util.h"

#include <string>
#include <vector>

#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/platform/test.h"

namespace tensorflow {
namespace {

TEST(TensorUtilTest, DeepCopyHasElementsOfItsOwn) {
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

TEST(TensorUtilTest, RefusesWhatDoesNotFit) {
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
  // Neither what is small nor what has no repetitions.
  EXPECT_FALSE(tensor::CompressTensorProtoInPlace(101, 2.0f, &proto));
  test::FillIota<float>(&t, 0);
  t.AsProtoTensorContent(&proto);
  EXPECT_FALSE(tensor::CompressTensorProtoInPlace(&proto));
}

}  // namespace
}  // namespace tensorflow
