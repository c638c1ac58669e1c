// Ops that move elements, on tensors of variants and of handles.
#include <string>
#include <vector>

#include "gradflow/core/resource_handle.h"
#include "gradflow/core/tensor_list.h"
#include "gradflow/core/variant.h"
#include "gradflow/core/variant_registry.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

// Returns variants of the values, for the least one an empty variant.
Tensor Variants(const std::vector<int>& values, const TensorShape& shape) {
  Tensor tensor(DT_VARIANT, shape);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != 0) tensor.span<Variant>()[i] = values[i];
  }
  return tensor;
}

Tensor Handles(const std::vector<int>& values, const TensorShape& shape) {
  Tensor tensor(DT_RESOURCE, shape);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] != 0) {
      tensor.span<ResourceHandle>()[i] = ResourceHandle("", std::to_string(values[i]));
    }
  }
  return tensor;
}

TEST(MovedObjects, AreThoseThatIntegersWouldBe) {
  for (const auto& make : {Variants, Handles}) {
    const Tensor x = make({1, 2, 3, 4, 5, 6}, {2, 3});
    const Tensor y = make({7, 8, 9}, {3});
    const Tensor one = make({1}, {});
    const Tensor axis = AsScalar<int32_t>(0);
    const struct {
      OpTester tester;
      Tensor expected;
    } cases[] = {
        {OpTester("Identity").Input(x), x},
        {OpTester("StopGradient").Input(x), x},
        {OpTester("Snapshot").Input(x), x},
        {OpTester("Reshape").Input(x).Input<int32_t>({3, 2}), make({1, 2, 3, 4, 5, 6}, {3, 2})},
        {OpTester("ExpandDims").Input(y).Input(axis), make({7, 8, 9}, {1, 3})},
        {OpTester("Squeeze").Input(make({7, 8, 9}, {1, 3})), y},
        {OpTester("Pack").Input(y).Input(y), make({7, 8, 9, 7, 8, 9}, {2, 3})},
        {OpTester("Concat").Input(axis).Input(y).Input(y), make({7, 8, 9, 7, 8, 9}, {6})},
        {OpTester("ConcatV2").Input(x).Input(make({7, 8, 9}, {1, 3})).Input(axis),
         make({1, 2, 3, 4, 5, 6, 7, 8, 9}, {3, 3})},
        {OpTester("Slice").Input(x).Input<int32_t>({0, 1}).Input<int32_t>({2, 2}),
         make({2, 3, 5, 6}, {2, 2})},
        {OpTester("StridedSlice")
             .Input(y)
             .Input<int32_t>({2})
             .Input<int32_t>({-4})
             .Input<int32_t>({-2}),
         make({9, 7}, {2})},
        {OpTester("GatherV2").Input(x).Input<int32_t>({2, 0}).Input(AsScalar<int32_t>(1)),
         make({3, 1, 6, 4}, {2, 2})},
        {OpTester("Gather").Input(y).Input<int32_t>({2, 2}), make({9, 9}, {2})},
        {OpTester("GatherNd").Input(x).Input<int32_t>({1, 0, 0, 2}, {2, 2}), make({4, 3}, {2})},
        {OpTester("Tile").Input(y).Input<int32_t>({2}), make({7, 8, 9, 7, 8, 9}, {6})},
        {OpTester("Transpose").Input(x).Input<int32_t>({1, 0}), make({1, 4, 2, 5, 3, 6}, {3, 2})},
        {OpTester("BroadcastTo").Input(y).Input<int32_t>({2, 3}), make({7, 8, 9, 7, 8, 9}, {2, 3})},
        {OpTester("Fill").Input<int32_t>({2}).Input(one), make({1, 1}, {2})},
        {OpTester("Roll").Input(y).Input<int32_t>({1}).Input<int32_t>({0}), make({9, 7, 8}, {3})},
        {OpTester("SelectV2").Input<bool>({true, false, true}).Input(y).Input(one),
         make({7, 1, 9}, {3})},
        {OpTester("Select")
             .Input<bool>({true, false})
             .Input(x)
             .Input(make({6, 5, 4, 3, 2, 1}, {2, 3})),
         make({1, 2, 3, 3, 2, 1}, {2, 3})},
        {OpTester("OneHot")
             .Input<int32_t>({1})
             .Input(AsScalar<int32_t>(2))
             .Input(one)
             .Input(make({3}, {})),
         make({3, 1}, {1, 2})},
        {OpTester("DynamicStitch").Input<int32_t>({2, 0}).Input(make({1, 2}, {2})),
         make({2, 0, 1}, {3})},
        {OpTester("PlaceholderWithDefault").Input(y).Attr("shape", PartialTensorShape({3})), y},
        {OpTester("EnsureShape").Input(y).Attr("shape", PartialTensorShape({-1})), y},
        {OpTester("Shape").Input(x), AsTensor<int32_t>({2, 3})},
        {OpTester("Rank").Input(x), AsScalar<int32_t>(2)},
        {OpTester("Size").Input(x), AsScalar<int32_t>(6)},
    };
    for (const auto& c : cases) {
      OpTester tester = c.tester;
      SCOPED_TRACE(tester.node().op());
      EXPECT_THAT(tester.RunOne(), TensorEq(c.expected));
    }
    const auto parts = OpTester("Unpack").Input(x).Attr("num", 2).Run();
    GRADFLOW_ASSERT_OK(parts.status());
    EXPECT_THAT((*parts)[1], TensorEq(make({4, 5, 6}, {3})));
    const auto split =
        OpTester("Split").Input(AsScalar<int32_t>(1)).Input(x).Attr("num_split", 3).Run();
    GRADFLOW_ASSERT_OK(split.status());
    EXPECT_THAT((*split)[2], TensorEq(make({3, 6}, {2, 1})));
  }
}

TEST(Constants, HoldVariants) {
  TensorList list = *TensorList::Make(DT_FLOAT, {});
  GRADFLOW_ASSERT_OK(list.PushBack(AsTensor<float>({1, 2})));
  Tensor value(DT_VARIANT, {2});
  value.span<Variant>()[1] = list;
  EXPECT_THAT(OpTester("Const").Attr("dtype", DT_VARIANT).Attr("value", value).RunOne(),
              TensorEq(value));
}

// ---- ZerosLike and AddN ----

Tensor ListOf(DataType dtype, const std::vector<Tensor>& elements) {
  TensorList list = *TensorList::Make(dtype, {});
  GRADFLOW_EXPECT_OK(list.Resize(static_cast<int64_t>(elements.size())));
  for (size_t i = 0; i < elements.size(); ++i) {
    if (elements[i].dtype() == DT_INVALID) continue;
    GRADFLOW_EXPECT_OK(list.Set(static_cast<int64_t>(i), elements[i]));
  }
  return Tensor(Variant(std::move(list)));
}

const Tensor kUnset{Tensor::Unset()};

TEST(ZerosOfVariants, AreListsOfZeros) {
  const Tensor list = ListOf(DT_FLOAT, {AsTensor<float>({1, 2}), kUnset, Tensor(3.f)});
  const Tensor zeros = ListOf(DT_FLOAT, {AsTensor<float>({0, 0}), kUnset, Tensor(0.f)});
  EXPECT_THAT(OpTester("ZerosLike").Input(list).RunOne(), TensorEq(zeros));
  EXPECT_THAT(OpTester("ZerosLike").Input(ListOf(DT_VARIANT, {list, list})).RunOne(),
              TensorEq(ListOf(DT_VARIANT, {zeros, zeros})));
  EXPECT_THAT(OpTester("ZerosLike").Input(Tensor(Variant(7))).Run(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       "variants of type 'int' have no function for zeros"));
}

TEST(SumsOfVariants, AddElementsOfLists) {
  const auto add = [](const std::vector<Tensor>& lists) {
    return OpTester("AddN").Inputs(lists).RunOne();
  };
  const Tensor a = ListOf(DT_FLOAT, {Tensor(1.f), kUnset, Tensor(3.f), kUnset});
  const Tensor b = ListOf(DT_FLOAT, {Tensor(10.f), Tensor(20.f), kUnset, kUnset});
  EXPECT_THAT(add({a, b, a}),
              TensorEq(ListOf(DT_FLOAT, {Tensor(12.f), Tensor(20.f), Tensor(6.f), kUnset})));
  EXPECT_THAT(add({ListOf(DT_VARIANT, {a}), ListOf(DT_VARIANT, {b})}),
              TensorEq(ListOf(DT_VARIANT, {*add({a, b})})));
  EXPECT_THAT(add({Tensor(DT_VARIANT, {}), a}), TensorEq(a));
  EXPECT_THAT(add({a, ListOf(DT_FLOAT, {kUnset})}),
              StatusIs(kInvalidArgument,
                       "lists of 4 elements of type float and shape <unknown> and of 1 element of "
                       "type float and shape <unknown> cannot be added"));
  EXPECT_THAT(add({ListOf(DT_FLOAT, {Tensor(1.f)}), ListOf(DT_FLOAT, {AsTensor<float>({1})})}),
              StatusIs(kInvalidArgument,
                       "elements 0 of two lists have shapes [] and [1] and cannot be added"));
  EXPECT_THAT(add({ListOf(DT_STRING, {Tensor("a")}), ListOf(DT_STRING, {Tensor("b")})}),
              StatusIs(absl::StatusCode::kUnimplemented,
                       "lists of elements of type string cannot be added"));
  EXPECT_THAT(add({a, Tensor(Variant(7))}),
              StatusIs(kInvalidArgument,
                       "variants of types 'tensorflow::TensorList' and 'int' cannot be added"));
}

// Lists that share lists have exponentially many paths, but few lists.
TEST(VariantOps, ComputeSharedListsOnce) {
  Tensor list = ListOf(DT_FLOAT, {Tensor(1.f)});
  for (int i = 0; i < 60; ++i) list = ListOf(DT_VARIANT, {list, list});
  EXPECT_THAT(OpTester("ZerosLike").Input(list).RunOnThreads(1), IsOk());
  EXPECT_THAT(OpTester("AddN").Input(list).Input(list).RunOnThreads(1), IsOk());
  for (int i = 0; i < 10; ++i) list = ListOf(DT_VARIANT, {list});
  for (OpTester tester :
       {OpTester("ZerosLike").Input(list), OpTester("AddN").Input(list).Input(list)}) {
    EXPECT_THAT(
        tester.RunOnThreads(1),
        StatusIs(kInvalidArgument, "expected at most 64 levels of lists in lists, but found more"));
  }
}

struct Point {
  int x = 0;
  std::string TypeName() const { return "Point"; }
};

TEST(VariantOps, CallRegisteredFunctions) {
  VariantRegistry& registry = VariantRegistry::Global();
  GRADFLOW_ASSERT_OK(registry.RegisterZerosLike(
      TypeIndex::Make<Point>(), [](KernelContext&, const Variant&, Variant* result) {
        *result = Point{0};
        return absl::OkStatus();
      }));
  GRADFLOW_ASSERT_OK(
      registry.RegisterAdd(TypeIndex::Make<Point>(),
                           [](KernelContext&, const Variant& a, const Variant& b, Variant* result) {
                             *result = Point{a.get<Point>()->x + b.get<Point>()->x};
                             return absl::OkStatus();
                           }));
  const Tensor p(Variant(Point{3}));
  EXPECT_THAT(OpTester("AddN").Input(p).Input(p).RunOne(), TensorEq(Tensor(Variant(Point{6}))));
  EXPECT_THAT(OpTester("ZerosLike").Input(p).RunOne(), TensorEq(Tensor(Variant(Point{0}))));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
