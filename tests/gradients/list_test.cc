// Gradients through lists of tensors, compared with central differences.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "gradflow/gradients/gradients.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"

namespace gradflow {
namespace {

using ::gradflow::testing::AsTensor;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::TensorEq;
using ::gradflow::testing::TensorNear;
using ::testing::HasSubstr;

// Builds functions of x, a double[3,2].
class Lists {
 public:
  explicit Lists(const Scope& scope) : scope(scope) {}

  Output Ints(const std::vector<int32_t>& values) const {
    return ops::Const(scope, AsTensor<int32_t>(values));
  }
  Output FromRows(const Output& x) const { return ops::TensorListFromTensor(scope, x, Ints({-1})); }
  Output Stack(const Output& list) const {
    return ops::TensorListStack(scope, list, unknown, DT_DOUBLE);
  }
  Output Item(const Output& list, int32_t i) const {
    return ops::TensorListGetItem(scope, list, i, Ints({2}), DT_DOUBLE);
  }
  Output Row(const Output& x, int32_t i) const { return ops::Gather(scope, x, i); }
  Output Empty() const { return ops::EmptyTensorList(scope, Ints({-1}), -1, DT_DOUBLE); }
  Output Reserve(int32_t n) const { return ops::TensorListReserve(scope, Ints({2}), n, DT_DOUBLE); }
  // Two rows, none, and one row of x.
  Output Ragged(const Output& x) const {
    const Output splits = ops::Const(scope, AsTensor<int64_t>({0, 2, 2, 3}));
    return ops::RaggedTensorToVariant(scope, {splits}, x, true);
  }
  Output Values(const Output& variants, int64_t rank) const {
    return ops::RaggedTensorFromVariant(scope, variants, -1, rank, DT_DOUBLE).output_dense_values;
  }
  // A nonlinear loss with a different weight for each element.
  Output Weighted(const Output& y) const {
    const Output flat = ops::Reshape(scope, y, {-1});
    const Output n = ops::Cast(
        scope, ops::Range(scope, 1, ops::Add(scope, ops::Size(scope, y), 1), 1), DT_DOUBLE);
    return ops::Sum(scope, ops::Mul(scope, n, ops::Square(scope, flat)), 0);
  }

  const Scope& scope;
  const Output unknown = ops::Const(scope, -1);
};

using Function = std::function<Output(const Lists& l, const Output& x)>;

struct Case {
  const char* name;
  Function function;
  // As in TensorFlow, RaggedTensorToVariantGradient has no gradient.
  bool first_order_only = false;
};

const std::vector<Case>& Cases() {
  static const auto& cases = *new std::vector<Case>{
      {"FromTensor and Stack",
       [](const Lists& l, const Output& x) { return l.Stack(l.FromRows(x)); }},
      {"GetItem", [](const Lists& l, const Output& x) { return l.Item(l.FromRows(x), 1); }},
      {"OptionalFromValue and OptionalGetValue",
       [](const Lists& l, const Output& x) {
         const ops::OptionalFromValue optional(l.scope, {x, l.Row(x, 1)});
         const std::vector<PartialTensorShape> shapes = {TensorShape({3, 2}), TensorShape({2})};
         const ops::OptionalGetValue value(l.scope, optional, {DT_DOUBLE, DT_DOUBLE}, shapes);
         return ops::Add(l.scope, value[0], value[1]);
       }},
      {"OptionalGetValue of one tensor",
       [](const Lists& l, const Output& x) {
         const ops::OptionalFromValue optional(l.scope, {x, ops::Square(l.scope, x)});
         const std::vector<PartialTensorShape> shapes(2, TensorShape({3, 2}));
         return ops::OptionalGetValue(l.scope, optional, {DT_DOUBLE, DT_DOUBLE}, shapes)[1];
       }},
      {"RaggedTensorToVariant and RaggedTensorFromVariant",
       [](const Lists& l, const Output& x) {
         const Output rows = l.Ragged(x);
         return ops::Mul(l.scope, l.Values(rows, 1), l.Values(rows, 1));
       },
       /*first_order_only=*/true},
      {"RaggedTensorToVariant as a scalar",
       [](const Lists& l, const Output& x) {
         const Output splits = ops::Const(l.scope, AsTensor<int64_t>({0, 2, 3}));
         return l.Values(ops::RaggedTensorToVariant(l.scope, {splits}, x, false), 1);
       },
       /*first_order_only=*/true},
      {"RaggedTensorToVariant, one row",
       [](const Lists& l, const Output& x) {
         return l.Values(ops::Unstack(l.scope, l.Ragged(x), 3)[2], 0);
       },
       /*first_order_only=*/true},
      {"RaggedTensorToVariant of a tensor",
       [](const Lists& l, const Output& x) {
         return l.Values(ops::RaggedTensorToVariant(l.scope, OutputList(), x, true), 1);
       },
       /*first_order_only=*/true},
      {"RaggedTensorFromVariant of a matrix",
       [](const Lists& l, const Output& x) {
         return l.Values(ops::Reshape(l.scope, l.Ragged(x), {1, 3}), 2);
       },
       /*first_order_only=*/true},
      {"GetItem twice",
       [](const Lists& l, const Output& x) {
         const Output list = l.FromRows(x);
         return ops::Mul(l.scope, l.Item(list, 1), l.Item(list, 2));
       }},
      {"PushBack",
       [](const Lists& l, const Output& x) {
         Output list = ops::TensorListPushBack(l.scope, l.Empty(), l.Row(x, 2));
         list = ops::TensorListPushBack(l.scope, list, l.Row(x, 0));
         return l.Stack(list);
       }},
      {"PopBack",
       [](const Lists& l, const Output& x) {
         const ops::TensorListPopBack popped(l.scope, l.FromRows(x), l.Ints({2}), DT_DOUBLE);
         return ops::Mul(l.scope, l.Stack(popped.output_handle), popped.tensor);
       }},
      {"PopBack, the list alone",
       [](const Lists& l, const Output& x) {
         const ops::TensorListPopBack popped(l.scope, l.FromRows(x), l.Ints({2}), DT_DOUBLE);
         return l.Stack(popped.output_handle);
       }},
      {"PopBack, the element alone",
       [](const Lists& l, const Output& x) {
         return Output(
             ops::TensorListPopBack(l.scope, l.FromRows(x), l.Ints({2}), DT_DOUBLE).tensor);
       }},
      {"SetItem",
       [](const Lists& l, const Output& x) {
         Output list = ops::TensorListSetItem(l.scope, l.Reserve(3), 1, l.Row(x, 2));
         list = ops::TensorListSetItem(l.scope, list, 1, l.Row(x, 0));
         list = ops::TensorListSetItem(l.scope, list, 2, l.Row(x, 1));
         return l.Stack(list);
       }},
      {"SetItem that resizes",
       [](const Lists& l, const Output& x) {
         const Output list =
             ops::TensorListSetItem(l.scope, l.FromRows(x), 4, l.Row(x, 0),
                                    ops::TensorListSetItem::ResizeIfIndexOutOfBounds(true));
         return l.Stack(list);
       }},
      {"Gather, an element twice",
       [](const Lists& l, const Output& x) {
         return ops::TensorListGather(l.scope, l.FromRows(x), l.Ints({2, 0, 2}), l.unknown,
                                      DT_DOUBLE);
       }},
      {"Scatter, an element twice",
       [](const Lists& l, const Output& x) {
         return l.Stack(ops::TensorListScatter(l.scope, x, l.Ints({3, 0, 3}), l.Ints({2})));
       }},
      {"ScatterV2",
       [](const Lists& l, const Output& x) {
         return l.Stack(ops::TensorListScatterV2(l.scope, x, l.Ints({3, 0, 1}), l.Ints({2}), 5));
       }},
      {"ScatterIntoExistingList",
       [](const Lists& l, const Output& x) {
         return l.Stack(ops::TensorListScatterIntoExistingList(
             l.scope, l.FromRows(x), ops::Square(l.scope, x), l.Ints({3, 0, 3})));
       }},
      {"Concat",
       [](const Lists& l, const Output& x) {
         const Output list = ops::TensorListSplit(l.scope, x, l.Ints({-1, 2}),
                                                  ops::Const(l.scope, AsTensor<int64_t>({1, 2})));
         return Output(ops::TensorListConcat(l.scope, list, DT_DOUBLE).tensor);
       }},
      {"ConcatV2 with rows that are not set",
       [](const Lists& l, const Output& x) {
         Output list = ops::TensorListReserve(l.scope, l.Ints({-1, 2}), 2, DT_DOUBLE);
         list = ops::TensorListSetItem(l.scope, list, 1, x);
         return Output(ops::TensorListConcatV2(l.scope, list, l.Ints({-1, 2}),
                                               ops::Const(l.scope, AsTensor<int64_t>({2})),
                                               DT_DOUBLE)
                           .tensor);
       }},
      {"Split",
       [](const Lists& l, const Output& x) {
         const Output list = ops::TensorListSplit(l.scope, x, l.Ints({-1, 2}),
                                                  ops::Const(l.scope, AsTensor<int64_t>({1, 2})));
         return ops::TensorListGetItem(l.scope, list, 1, l.unknown, DT_DOUBLE);
       }},
      {"Resize to less",
       [](const Lists& l, const Output& x) {
         return l.Stack(ops::TensorListResize(l.scope, l.FromRows(x), 2));
       }},
      {"Resize to more",
       [](const Lists& l, const Output& x) {
         return l.Stack(ops::TensorListResize(l.scope, l.FromRows(x), 5));
       }},
      {"ConcatLists",
       [](const Lists& l, const Output& x) {
         const Output a = ops::TensorListFromTensor(l.scope, x, l.Ints({2}));
         const Output b = ops::TensorListFromTensor(l.scope, ops::Exp(l.scope, x), l.Ints({2}));
         return l.Stack(ops::TensorListConcatLists(l.scope, a, b, DT_DOUBLE));
       }},
      {"PushBackBatch",
       [](const Lists& l, const Output& x) {
         const Output lists = ops::Pack(l.scope, {l.Empty(), l.FromRows(x)});
         const Output pushed =
             ops::TensorListPushBackBatch(l.scope, lists, ops::Slice(l.scope, x, {1, 0}, {2, 2}));
         const std::vector<Output> parts = ops::Unpack(l.scope, pushed, 2).output;
         return Output(ops::ConcatV2(l.scope, {l.Stack(parts[0]), l.Stack(parts[1])}, 0));
       }},
      {"lists that are added, copied and selected",
       [](const Lists& l, const Output& x) {
         const Output list = l.FromRows(x);
         const Output copy = ops::Identity(l.scope, list);
         return ops::Add(l.scope, l.Stack(copy), ops::Mul(l.scope, l.Stack(list), l.Stack(copy)));
       }},
  };
  return cases;
}

double Value(const Scope& scope, const Output& x, const Output& loss, const Tensor& at) {
  ClientSession session(scope);
  std::vector<Tensor> outputs;
  GRADFLOW_EXPECT_OK(session.Run({{x, at}}, {loss}, &outputs));
  return outputs.empty() ? 0 : outputs[0].scalar<double>()();
}

// Returns the gradient of `loss` after comparing it with finite differences.
Output CheckedGradient(const Scope& scope, const Output& loss, const Output& x) {
  std::vector<Output> gradients;
  GRADFLOW_EXPECT_OK(scope.status());
  GRADFLOW_EXPECT_OK(AddSymbolicGradients(scope, {loss}, {x}, &gradients));
  if (gradients.empty()) return x;
  const Tensor at = AsTensor<double>({0.5, -1, 2, 0.25, -0.75, 1.5}, {3, 2});
  ClientSession session(scope);
  std::vector<Tensor> outputs;
  GRADFLOW_EXPECT_OK(session.Run({{x, at}}, {gradients[0]}, &outputs));
  if (outputs.empty()) return x;
  Tensor expected(DT_DOUBLE, {3, 2});
  constexpr double kStep = 1e-4;
  for (int i = 0; i < 6; ++i) {
    Tensor plus = *at.DeepCopy();
    Tensor minus = *at.DeepCopy();
    plus.flat<double>()(i) += kStep;
    minus.flat<double>()(i) -= kStep;
    expected.flat<double>()(i) =
        (Value(scope, x, loss, plus) - Value(scope, x, loss, minus)) / (2 * kStep);
  }
  EXPECT_THAT(outputs[0], TensorNear(expected, 1e-5, 1e-5));
  return gradients[0];
}

TEST(ListGradients, AreThoseOfDifferences) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name);
    const Scope scope = Scope::NewRootScope();
    const Output x = ops::Placeholder(scope, DT_DOUBLE, ops::Placeholder::Shape({3, 2}));
    const Lists lists(scope);
    const Output first = CheckedGradient(scope, lists.Weighted(c.function(lists, x)), x);
    if (c.first_order_only) continue;
    // The second derivatives.
    SCOPED_TRACE("of the gradient");
    CheckedGradient(scope, lists.Weighted(first), x);
  }
}

TEST(ListGradients, NeedTheGradientOfAList) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Const(scope, AsTensor<double>({1, 2}));
  const Output list = ops::TensorListFromTensor(scope, x, ops::Const(scope, -1));
  std::vector<Output> gradients;
  EXPECT_THAT(AddSymbolicGradients(scope, {list}, {x}, &gradients),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "output 0 is a variant, whose gradient must be given"));
  const Output dy = ops::TensorListFromTensor(scope, ops::Const(scope, AsTensor<double>({3, 4})),
                                              ops::Const(scope, -1));
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {list}, {x}, {dy}, &gradients));
  ClientSession session(scope);
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session.Run({}, {gradients[0]}, &outputs));
  EXPECT_THAT(outputs[0], TensorEq(AsTensor<double>({3, 4})));
}

}  // namespace
}  // namespace gradflow
