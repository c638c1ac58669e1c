// Tests of serialized sparse tensors: TensorFlow's values are in
// tests/data/tensorflow_values/sparse_serialize.txt.
#include <string>
#include <vector>

#include "gradflow/core/variant.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

const Tensor& Index() {
  static const auto& index = *new Tensor(AsTensor<int64_t>({0, 1, 2, 0, 2, 2}, {3, 2}));
  return index;
}

absl::StatusOr<std::vector<Tensor>> Deserialize(const Tensor& serialized, DataType dtype) {
  return OpTester("DeserializeSparse").Input(serialized).Attr("dtype", dtype).ShapeIsData().Run();
}

TEST(SparseSerialize, StringsAndVariantsReturnTheTensors) {
  const Tensor shape = AsTensor<int64_t>({4, 3});
  for (const DataType form : {DT_STRING, DT_VARIANT}) {
    for (const Tensor& values :
         {AsTensor<float>({1, 2, 3}), AsTensor<tstring>({"a", "", std::string(100, 'b')}),
          AsTensor<bool>({true, false, true})}) {
      const auto one = OpTester("SerializeSparse")
                           .Inputs({Index(), values, shape})
                           .Attr("out_type", form)
                           .RunOne();
      ASSERT_THAT(one, IsOk());
      const auto parts = Deserialize(*one, values.dtype());
      ASSERT_THAT(parts, IsOk());
      EXPECT_THAT((*parts)[0], TensorEq(Index()));
      EXPECT_THAT((*parts)[1], TensorEq(values));
      EXPECT_THAT((*parts)[2], TensorEq(shape));
      const auto many = OpTester("SerializeManySparse")
                            .Inputs({Index(), values, shape})
                            .Attr("out_type", form)
                            .ShapeIsData()
                            .RunOne();
      ASSERT_THAT(many, IsOk());
      EXPECT_EQ(many->shape(), TensorShape({4, 3}));
      const auto stacked = Deserialize(*many, values.dtype());
      ASSERT_THAT(stacked, IsOk());
      EXPECT_THAT((*stacked)[0], TensorEq(Index()));
      EXPECT_THAT((*stacked)[1], TensorEq(values));
      EXPECT_THAT((*stacked)[2], TensorEq(shape));
    }
  }
}

TEST(SparseSerialize, DeserializeManySparseNeedsAMatrix) {
  EXPECT_THAT(
      OpTester("DeserializeManySparse")
          .Input(AsTensor<tstring>({"a", "b", "c"}))
          .Attr("dtype", DT_FLOAT)
          .ShapeIsData()
          .Run(),
      StatusIs(kInvalidArgument,
               HasSubstr("Shape must be rank 2 but is rank 1: serialized_sparse has shape [3]")));
}

TEST(SparseSerialize, ChecksItsInputs) {
  const Tensor values = AsTensor<float>({1, 2, 3});
  const Tensor shape = AsTensor<int64_t>({4, 3});
  const auto variants = [](const std::vector<Tensor>& parts) {
    Tensor tensor(DT_VARIANT, {static_cast<int64_t>(parts.size())});
    for (size_t i = 0; i < parts.size(); ++i) tensor.span<Variant>()[i] = parts[i];
    return tensor;
  };
  const struct {
    absl::Status status;
    const char* error;
  } cases[] = {
      {Deserialize(AsTensor<tstring>({"a", "b", "c"}), DT_FLOAT).status(),
       "serialized_sparse[0,0] is not a TensorProto"},
      {Deserialize(AsTensor<tstring>({"a", "b"}), DT_FLOAT).status(),
       "the last dimension of serialized_sparse must be 3, but the shape is [2]"},
      {Deserialize(AsScalar<tstring>("a"), DT_FLOAT).status(),
       "serialized_sparse must not be a scalar"},
      {Deserialize(Tensor(DT_VARIANT, {3}), DT_FLOAT).status(),
       "serialized_sparse[0,0] must hold a tensor"},
      {Deserialize(Tensor(DT_VARIANT, {0, 3}), DT_FLOAT).status(),
       "serialized_sparse must not be empty, but has shape [0,3]"},
      {Deserialize(variants({Index(), values, shape}), DT_INT32).status(),
       "serialized_sparse[0,1] has type float, expected int32"},
      {Deserialize(variants({values, values, shape}), DT_FLOAT).status(),
       "serialized_sparse[0,0] has type float, expected int64"},
      {Deserialize(variants({shape, values, shape}), DT_FLOAT).status(),
       "the indices of serialized_sparse[0] must have rank 2, but have shape [2]"},
      {Deserialize(variants({Index(), values, AsTensor<int64_t>({4})}), DT_FLOAT).status(),
       "the indices of serialized_sparse[0] must have shape [3,1], but have shape [3,2]"},
      {OpTester("SerializeManySparse")
           .Inputs({Index(), values, AsTensor<int64_t>({2, 3})})
           .ShapeIsData()
           .Run()
           .status(),
       "sparse_indices[1] is [2,0], which is not within the shape [2,3]"},
      {OpTester("SerializeManySparse")
           .Inputs({AsTensor<int64_t>({0, 1, 2}, {3, 1}), values, AsTensor<int64_t>({4})})
           .ShapeIsData()
           .Run()
           .status(),
       "sparse_shape must have at least 2 elements, but has 1"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(c.status, StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
