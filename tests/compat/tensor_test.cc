// Tests of tensors, views, shapes and formats.
#include "tensorflow/core/framework/tensor.h"

#include <gtest/gtest-spi.h>

#include <limits>
#include <vector>

#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/lib/gtl/array_slice.h"
#include "tensorflow/core/platform/test.h"
#include "tensorflow/core/util/tensor_format.h"

namespace tensorflow {
namespace {

template <typename T>
T Total(typename TTypes<T, 3>::ConstTensor values) {
  T total = 0;
  for (int i = 0; i < values.dimension(0); ++i) {
    for (int j = 0; j < values.dimension(1); ++j) {
      for (int k = 0; k < values.dimension(2); ++k) total += values(i, j, k);
    }
  }
  return total;
}

int64 Length(StringPiece text) { return text.size(); }

int64 Product(gtl::ArraySlice<int64> values) {
  int64 product = 1;
  for (int64 value : values) product *= value;
  return product;
}

TEST(TensorTest, HasViewsOfTTypes) {
  Tensor t(DT_FLOAT, TensorShape({2, 3, 4}));
  test::FillIota<float>(&t, 1);
  const Tensor& constant = t;
  EXPECT_EQ(Total<float>(constant.tensor<float, 3>()), 300);
  TTypes<float>::Matrix rows = t.flat_inner_dims<float>();
  EXPECT_EQ(rows.dimension(0), 6);
  EXPECT_EQ(rows(5, 3), 24);
  TTypes<float, 4>::Tensor shaped = t.shaped<float, 4>({2, 3, 2, 2});
  EXPECT_EQ(shaped(1, 2, 1, 0), 23);
  t.flat<float>().setZero();
  EXPECT_EQ(constant.flat<float>()(7), 0);
  t.tensor<float, 3>().setConstant(2.5f);
  EXPECT_EQ(t.flat<float>().data()[23], 2.5f);
  EXPECT_EQ(t.flat<float>().size(), t.NumElements());
}

TEST(TensorTest, HoldsScalarsAndStrings) {
  EXPECT_EQ(Tensor(3.5f).scalar<float>()(), 3.5f);
  Tensor words(DT_STRING, TensorShape({2}));
  words.vec<string>()(0) = "tensor";
  words.vec<tstring>()(1) = "flow";
  EXPECT_EQ(Length(words.vec<tstring>()(0)), 6);
  EXPECT_EQ(DataTypeString(DataTypeToEnum<int64>::v()), "int64");
  EXPECT_EQ(test::AsScalar<string>("x").dtype(), DT_STRING);
}

TEST(TensorTest, ConvertsToProtos) {
  TensorProto proto;
  test::AsTensor<int32>({1, 2, 3}).AsProtoTensorContent(&proto);
  EXPECT_EQ(proto.dtype(), DT_INT32);
  Tensor back;
  ASSERT_TRUE(back.FromProto(proto));
  test::ExpectEqual(back, test::AsTensor<int32>({1, 2, 3}));
}

TEST(TensorTestUtil, InfinityIsCloseOnlyToItself) {
  const float infinity = std::numeric_limits<float>::infinity();
  test::ExpectClose(test::AsScalar<float>(infinity), test::AsScalar<float>(infinity));
  EXPECT_NONFATAL_FAILURE(
      test::ExpectClose(test::AsScalar<float>(std::numeric_limits<float>::infinity()),
                        test::AsScalar<float>(1)),
      "");
  EXPECT_TRUE(test::internal_test::IsClose(infinity, infinity));
  EXPECT_FALSE(test::internal_test::IsClose(infinity, 1.0f));
  EXPECT_FALSE(test::internal_test::IsClose(1.0f, infinity));
  const double largest = std::numeric_limits<double>::max();
  EXPECT_TRUE(test::internal_test::IsClose(-largest, largest, double{infinity}, 0.0));
  EXPECT_TRUE(test::internal_test::IsClose(-largest, largest, largest, largest));
  EXPECT_FALSE(test::internal_test::IsClose(std::complex<float>(infinity, 0), {1, 0}));
  EXPECT_TRUE(test::internal_test::IsClose(std::complex<float>(2, 0), {2, 1e-7f}));
}

TEST(TensorShapeTest, HasUtilities) {
  EXPECT_TRUE(TensorShapeUtils::IsScalar(TensorShape({})));
  EXPECT_TRUE(TensorShapeUtils::IsVector(TensorShape({3})));
  EXPECT_TRUE(TensorShapeUtils::IsSquareMatrix(TensorShape({3, 3})));
  EXPECT_FALSE(TensorShapeUtils::IsMatrix(TensorShape({3})));
  EXPECT_TRUE(TensorShapeUtils::StartsWith(TensorShape({2, 3, 4}), TensorShape({2, 3})));
  EXPECT_TRUE(TensorShapeUtils::EndsWith(TensorShape({2, 3, 4}), TensorShape({4})));
  EXPECT_FALSE(TensorShapeUtils::EndsWith(TensorShape({4}), TensorShape({2, 4})));
  TensorShape shape;
  const int32 dims[] = {2, 5};
  ASSERT_TRUE(TensorShapeUtils::MakeShape(dims, 2, &shape).ok());
  EXPECT_EQ(shape, TensorShape({2, 5}));
  EXPECT_FALSE(TensorShapeUtils::MakeShape(std::vector<int64>{-2}, &shape).ok());
  EXPECT_EQ(TensorShapeUtils::ShapeListString({shape, TensorShape({})}), "[[2,5], []]");
  EXPECT_EQ(Product({2, 3, 4}), 24);
}

TEST(TensorFormatTest, FindsDimensions) {
  TensorFormat format;
  ASSERT_TRUE(FormatFromString("NCHW", &format));
  EXPECT_EQ(format, FORMAT_NCHW);
  EXPECT_FALSE(FormatFromString("CHWN", &format));
  Tensor images(DT_FLOAT, ShapeFromFormat(FORMAT_NCHW, 2, 4, 5, 3));
  EXPECT_EQ(images.shape(), TensorShape({2, 3, 4, 5}));
  EXPECT_EQ(GetTensorDim(images, FORMAT_NCHW, 'C'), 3);
  EXPECT_EQ(GetTensorDim(images, FORMAT_NHWC, 'C'), 5);
  EXPECT_EQ(GetTensorDim(images.shape(), FORMAT_NCHW, 'H'), 4);
  EXPECT_EQ(GetTensorDimIndex<2>(FORMAT_NHWC, 'W'), 2);
  EXPECT_EQ(ToString(FORMAT_NHWC), "NHWC");
}

TEST(TensorFormatTest, SupportsAllFormats) {
  const struct {
    const char* name;
    TensorFormat format;
    const char* shape;
  } cases[] = {{"NHWC", FORMAT_NHWC, "[2,4,8,12]"},
               {"NCHW", FORMAT_NCHW, "[2,12,4,8]"},
               {"NCHW_VECT_C", FORMAT_NCHW_VECT_C, "[2,3,4,8,4]"},
               {"NHWC_VECT_W", FORMAT_NHWC_VECT_W, "[2,4,2,12,4]"},
               {"HWNC", FORMAT_HWNC, "[4,8,2,12]"},
               {"HWCN", FORMAT_HWCN, "[4,8,12,2]"}};
  for (const auto& c : cases) {
    TensorFormat format;
    ASSERT_TRUE(FormatFromString(c.name, &format)) << c.name;
    EXPECT_EQ(format, c.format);
    EXPECT_EQ(ToString(format), c.name);
    const TensorShape shape = ShapeFromFormat(format, 2, 4, 8, 12);
    EXPECT_EQ(shape.DebugString(), c.shape);
    EXPECT_EQ(GetTensorSpatialDims(shape.dims(), format), 2);
    EXPECT_EQ(GetTensorDimsFromSpatialDims(2, format), shape.dims());
    EXPECT_EQ(GetTensorDim(shape, format, 'N'), 2);
    EXPECT_EQ(GetTensorDim(shape, format, 'H'), 4);
    EXPECT_EQ(GetTensorDim(shape, format, '1'), GetTensorDim(shape, format, 'W'));
    EXPECT_EQ(shape.dim_size(GetTensorFeatureDimIndex(shape.dims(), format)),
              format == FORMAT_NCHW_VECT_C ? 3 : 12);
    for (const auto& to : cases) {
      EXPECT_EQ(ShapeFromFormat(to.format, shape, format).DebugString(), to.shape) << c.name;
    }
  }
  TensorShape shape;
  EXPECT_EQ(ShapeFromFormatWithStatus(FORMAT_NCHW_VECT_C, 1, 2, 2, 6, &shape).message(),
            "dimension C of NCHW_VECT_C is 6, expected a multiple of 4");
  EXPECT_FALSE(ShapeFromFormatWithStatus(FORMAT_NHWC, 1, -2, 2, 6, &shape).ok());
  constexpr int64_t kHuge = int64_t{1} << 61;
  for (const TensorShape& source :
       {TensorShape({7}), TensorShape({1, 3, 2, 2, 8}), TensorShape({0, kHuge, 2, 2, 4}),
        TensorShape({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4})}) {
    EXPECT_EQ(ShapeFromFormatWithStatus(FORMAT_NHWC, source, FORMAT_NCHW_VECT_C, &shape).code(),
              error::INVALID_ARGUMENT)
        << source.DebugString();
  }
  EXPECT_FALSE(
      ShapeFromFormatWithStatus(FORMAT_NHWC_VECT_W, TensorShape({2, 3}), FORMAT_NCHW, &shape).ok());
  TensorFormat format;
  ASSERT_TRUE(FormatFromString("NCDHW", &format));
  EXPECT_EQ(GetTensorDimIndex<3>(format, 'D'), 2);
  int64_t before, after;
  GetExplicitPaddingForDim({0, 0, 1, 2, 3, 4, 0, 0}, FORMAT_NHWC, 'W', &before, &after);
  EXPECT_EQ(before, 3);
  EXPECT_EQ(after, 4);
}

TEST(TensorFormatTest, SupportsFilterFormats) {
  const struct {
    const char* name;
    FilterTensorFormat format;
    const char* shape;
  } cases[] = {{"HWIO", FORMAT_HWIO, "[3,5,8,2]"},
               {"OIHW", FORMAT_OIHW, "[2,8,3,5]"},
               {"OHWI", FORMAT_OHWI, "[2,3,5,8]"},
               {"OIHW_VECT_I", FORMAT_OIHW_VECT_I, "[2,2,3,5,4]"}};
  for (const auto& c : cases) {
    FilterTensorFormat format;
    ASSERT_TRUE(FilterFormatFromString(c.name, &format)) << c.name;
    EXPECT_EQ(format, c.format);
    EXPECT_EQ(ToString(format), c.name);
    const Tensor filter(DT_INT8, ShapeFromFilterTensorFormat(format, 3, 5, 8, 2));
    EXPECT_EQ(filter.shape().DebugString(), c.shape);
    EXPECT_EQ(GetFilterDim(filter, format, 'H'), 3);
    EXPECT_EQ(GetFilterDim(filter, format, 'W'), 5);
    EXPECT_EQ(GetFilterDim(filter, format, 'O'), 2);
    EXPECT_EQ(GetFilterTensorSpatialDims(filter.dims(), format), 2);
    for (const auto& to : cases) {
      EXPECT_EQ(ShapeFromFilterFormat(to.format, filter.shape(), format).DebugString(), to.shape);
    }
  }
  FilterTensorFormat format;
  EXPECT_FALSE(FilterFormatFromString("NHWC", &format));
}

TEST(TensorTestUtilTest, DifferencesAreFailures) {
  static const Tensor a = test::AsTensor<float>({1, 2, 3});
  static const Tensor b = test::AsTensor<float>({1, 2, 3.01f});
  test::ExpectTensorNear<float>(a, b, 0.02);
  test::ExpectClose(a, b, /*atol=*/0, /*rtol=*/0.01);
  EXPECT_NONFATAL_FAILURE(test::ExpectTensorNear<float>(a, b, 0.001), "element 2 is 3");
  EXPECT_NONFATAL_FAILURE(test::ExpectTensorEqual<float>(a, b), "element 2 is 3");
  EXPECT_NONFATAL_FAILURE(test::ExpectClose(a, b), "element 2 is 3");
  EXPECT_NONFATAL_FAILURE(test::ExpectEqual(a, b), "element 2 is 3");
  static const Tensor other_shape = test::AsTensor<float>({1, 2, 3}, {3, 1});
  EXPECT_NONFATAL_FAILURE(test::ExpectTensorEqual<float>(a, other_shape), "[3,1]");
}

}  // namespace
}  // namespace tensorflow
