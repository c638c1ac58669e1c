// Ragged tensors in variants, with the values of TensorFlow 2.21. One result differs: the splits of
// stacks of three or more dimensions are complete here, but end too early in TensorFlow.
#include <string>
#include <vector>

#include "gradflow/core/ragged_value.h"
#include "gradflow/core/variant.h"
#include "gradflow/core/variant_registry.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

Tensor Ints(const std::vector<int64_t>& values) { return AsTensor<int64_t>(values); }

OpTester ToVariant(const std::vector<Tensor>& splits, const Tensor& values, bool batched = true) {
  OpTester tester("RaggedTensorToVariant");
  return tester.Inputs(splits).Input(values).Attr("batched_input", batched).ShapeIsData();
}
OpTester FromVariant(const Tensor& encoded, int rank, int input_rank = -1,
                     DataType type = DT_FLOAT) {
  OpTester tester("RaggedTensorFromVariant");
  tester.Input(encoded).Attr("input_ragged_rank", input_rank).Attr("output_ragged_rank", rank);
  return tester.Attr("Tvalues", type).ShapeIsData();
}
OpTester Gradient(const Tensor& encoded, const Tensor& splits, const std::vector<int32_t>& shape) {
  OpTester tester("RaggedTensorToVariantGradient");
  tester.Input(encoded).Input(splits).Input(AsTensor<int32_t>(shape));
  return tester.Attr("Tvalues", DT_FLOAT).ShapeIsData();
}
Tensor Only(const absl::StatusOr<std::vector<Tensor>>& outputs) {
  GRADFLOW_EXPECT_OK(outputs.status());
  return outputs.ok() ? (*outputs)[0] : Tensor();
}
// Element i of a vector, or all of it in another shape.
Tensor Element(const Tensor& variants, int64_t i) { return variants.SubSlice(i); }
Tensor Repeat(const Tensor& variants, const TensorShape& shape) {
  Tensor all(DT_VARIANT, shape);
  for (int64_t i = 0; i < all.NumElements(); ++i) {
    all.span<Variant>()[i] = variants.span<Variant>()[i % variants.NumElements()];
  }
  return all;
}

const Tensor kFloats = AsTensor<float>({1, 2, 3, 4, 5});
const Tensor kRows = AsTensor<float>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, {5, 2});

TEST(RaggedVariant, HoldsRaggedTensors) {
  const Tensor one = Only(ToVariant({Ints({0, 2, 2, 5})}, kFloats).RunOnThreads(1));
  const Tensor two = Only(ToVariant({Ints({0, 2, 3}), Ints({0, 2, 2, 5})}, kRows).RunOnThreads(1));
  const Tensor dense = Only(ToVariant({}, AsTensor<float>({1, 2, 3, 4}, {2, 2})).RunOnThreads(1));
  const Tensor scalar = Only(ToVariant({}, Tensor(1.f), false).RunOnThreads(1));
  const Tensor whole = Only(ToVariant({Ints({0, 2, 2, 5})}, kFloats, false).RunOnThreads(1));
  ASSERT_EQ(one.shape(), TensorShape({3}));
  ASSERT_EQ(two.shape(), TensorShape({2}));
  const Tensor twelve = Repeat(one, {2, 2, 3});
  const Tensor repeated_splits = Ints({0, 2, 2, 5, 7, 7, 10, 12, 12, 15, 17, 17, 20});
  const Tensor repeated =
      AsTensor<float>({1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5});
  const struct {
    OpTester tester;
    std::vector<Tensor> expected;
  } cases[] = {
      {FromVariant(one, 1), {Ints({0, 2, 2, 5}), kFloats}},
      {FromVariant(one, 1, 0), {Ints({0, 2, 2, 5}), kFloats}},
      {FromVariant(Element(one, 2), 0), {AsTensor<float>({3, 4, 5})}},
      {FromVariant(Repeat(one, {2, 6}), 2), {Ints({0, 6, 12}), repeated_splits, repeated}},
      {FromVariant(twelve, 3),
       {Ints({0, 2, 4}), Ints({0, 3, 6, 9, 12}), repeated_splits, repeated}},
      {FromVariant(Tensor(DT_VARIANT, {0}), 1), {Ints({0}), AsTensor<float>({})}},
      {FromVariant(Tensor(DT_VARIANT, {0, 3}), 2), {Ints({0}), Ints({0}), AsTensor<float>({})}},
      {FromVariant(two, 2), {Ints({0, 2, 3}), Ints({0, 2, 2, 5}), kRows}},
      {FromVariant(Element(two, 1), 1, 1), {Ints({0, 3}), kRows.Slice(2, 5)}},
      {FromVariant(Repeat(two, {2, 1}), 3, 1),
       {Ints({0, 1, 2}), Ints({0, 2, 3}), Ints({0, 2, 2, 5}), kRows}},
      {FromVariant(dense, 1), {Ints({0, 2, 4}), AsTensor<float>({1, 2, 3, 4})}},
      {FromVariant(scalar, 0), {Tensor(1.f)}},
      {FromVariant(whole, 1), {Ints({0, 2, 2, 5}), kFloats}},
      {Gradient(one, Ints({0, 2, 2, 5}), {5}), {kFloats}},
      {Gradient(two, Ints({0, 2, 3}), {5, 2}), {kRows}},
      {Gradient(dense, Tensor(int64_t{0}), {2, 2}), {AsTensor<float>({1, 2, 3, 4}, {2, 2})}},
      {Gradient(Tensor(DT_VARIANT, {3}), Ints({0, 2, 2, 5}), {5}),
       {AsTensor<float>({0, 0, 0, 0, 0})}},
  };
  for (const auto& c : cases) {
    const auto outputs = OpTester(c.tester).RunOnThreads(1);
    GRADFLOW_ASSERT_OK(outputs.status());
    ASSERT_EQ(outputs->size(), c.expected.size());
    for (size_t i = 0; i < c.expected.size(); ++i) {
      EXPECT_THAT((*outputs)[i], TensorEq(c.expected[i])) << i;
    }
  }
}

TEST(RaggedVariant, ChecksItsInputs) {
  const Tensor one = Only(ToVariant({Ints({0, 2, 2, 5})}, kFloats).RunOnThreads(1));
  const Tensor two = Only(ToVariant({Ints({0, 2, 3}), Ints({0, 2, 2, 5})}, kRows).RunOnThreads(1));
  const auto encoded = [](const std::vector<Tensor>& components) {
    return Tensor(Variant(RaggedValue(components)));
  };
  Tensor mixed(DT_VARIANT, {2});
  mixed.span<Variant>()[0] = RaggedValue({kFloats});
  mixed.span<Variant>()[1] = RaggedValue({kRows});
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {ToVariant({Ints({0, 3})}, kFloats),
       "rt_nested_splits[0] must end with the number of values"},
      {ToVariant({}, Tensor(1.f)), "the values of a ragged tensor must not be a scalar"},
      {FromVariant(one, 0), "output_ragged_rank must be the sum of the rank of encoded_ragged, 1"},
      {FromVariant(one, 2), "encoded_ragged[0] has 0 ragged dimensions, expected 1"},
      {FromVariant(two, 1), "encoded_ragged[0] has 1 ragged dimensions, expected 0"},
      {FromVariant(one, 1, -1, DT_INT32), "has values of type float, expected int32"},
      {FromVariant(mixed, 1), "must have the same inner shape, but have shapes [5] and [5,2]"},
      {FromVariant(Tensor(Variant(7)), 0), "holds no ragged tensor, but a value of type 'int'"},
      {FromVariant(Tensor(DT_VARIANT, {}), 0), "holds no ragged tensor, but nothing"},
      {FromVariant(encoded({AsTensor<int32_t>({0, 5}), kFloats}), 1),
       "has splits of type int32, expected int64"},
      {FromVariant(encoded({Ints({0, 9}), kFloats}), 1),
       "splits 0 of encoded_ragged must end with the number of values, 5, but ends with 9"},
      {FromVariant(encoded({Ints({0, 1}), Tensor(1.f)}), 1), "must not be a scalar"},
      {Gradient(one, Ints({0, 2, 2, 5}), {6}), "as many elements as dense_values_shape [6]"},
      {Gradient(one, Ints({0, 2, 5}), {5}), "row_splits must be a scalar or a vector of 4"},
      {Gradient(Tensor(DT_VARIANT, {2}), Ints({0, 9, 5}), {5}), "as many elements as"},
      {Gradient(Tensor(Variant(7)), Ints({0}), {5}), "must hold a ragged tensor"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(OpTester(c.tester).RunOnThreads(1), StatusIs(kInvalidArgument, HasSubstr(c.error)))
        << c.error;
  }
}

TEST(RaggedVariant, IsAddedAndEncoded) {
  const Tensor a = Tensor(Variant(RaggedValue({Ints({0, 2}), AsTensor<float>({1, 2})})));
  const Tensor b = Tensor(Variant(RaggedValue({Ints({0, 2}), AsTensor<float>({10, 20})})));
  const Tensor c = Tensor(Variant(RaggedValue({Ints({0, 1, 2}), AsTensor<float>({10, 20})})));
  const auto add = [](const Tensor& x, const Tensor& y) {
    return OpTester("AddN").Inputs({x, y}).RunOnThreads(1);
  };
  const auto values = [](const Tensor& x) {
    const auto* const value = x.span<Variant>()[0].get<RaggedValue>();
    return value == nullptr ? Tensor() : value->values();
  };
  EXPECT_THAT(values(Only(add(a, b))), TensorEq(AsTensor<float>({11, 22})));
  EXPECT_THAT(add(a, c), StatusIs(kInvalidArgument, HasSubstr("different splits")));
  const Tensor zeros = Only(OpTester("ZerosLike").Input(a).RunOnThreads(1));
  EXPECT_THAT(values(zeros), TensorEq(AsTensor<float>({0, 0})));

  VariantTensorData data;
  a.span<Variant>()[0].get<RaggedValue>()->Encode(&data);
  EXPECT_EQ(data.type_name(), "RaggedTensorVariant");
  RaggedValue decoded;
  ASSERT_TRUE(decoded.Decode(data));
  ASSERT_EQ(decoded.splits().size(), 1);
  EXPECT_EQ(decoded.DebugString(), "1 splits, float[2]");
  // Refuses a value without tensors, and variants in variants.
  VariantTensorData none;
  none.set_type_name("RaggedTensorVariant");
  EXPECT_FALSE(decoded.Decode(none));
  none.tensors_ = {Tensor(DT_VARIANT, {1})};
  EXPECT_FALSE(decoded.Decode(none));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
