// Gradients of the ops of ops/list, and of optional values. The gradient of a list is the list of
// the gradients of its elements. Elements that are not set stand for zeros.
#include <cstdint>
#include <vector>

#include "gradflow/gradients/gradient_helpers.h"
#include "gradflow/gradients/gradient_registry.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/ops/data_flow_ops.h"
#include "gradflow/ops/list_ops.h"
#include "gradflow/ops/math_ops.h"

namespace gradflow {
namespace gradients {
namespace {

absl::StatusOr<DataType> ElementType(const Operation& op) {
  DataType dtype;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "element_dtype", &dtype));
  return dtype;
}

// The shape of a row of `x`.
Output RowShape(const Scope& scope, const Output& x) {
  return ops::Slice(scope, ops::Shape(scope, x), {1}, {-1});
}

// A list of zeros of as many elements as `list` has.
Output ZeroList(const Scope& scope, const Output& list, DataType dtype) {
  return ops::TensorListReserve(scope, ops::TensorListElementShape(scope, list, DT_INT64),
                                ops::TensorListLength(scope, list), dtype);
}

absl::Status GradientOfListPushBack(const Scope& scope, const Operation& op,
                                    const std::vector<Output>& dy, std::vector<Output>* dx) {
  GRADFLOW_ASSIGN_OR_RETURN(const DataType dtype, ElementType(op));
  const ops::TensorListPopBack popped(scope, dy[0], ops::Shape(scope, op.input(1)), dtype);
  *dx = {popped.output_handle, popped.tensor};
  return scope.status();
}

absl::Status GradientOfListPopBack(const Scope& scope, const Operation& op,
                                   const std::vector<Output>& dy, std::vector<Output>* dx) {
  GRADFLOW_ASSIGN_OR_RETURN(const DataType dtype, ElementType(op));
  const Output rest = IsNoGradient(dy[0]) ? ZeroList(scope, op.output(0), dtype) : dy[0];
  *dx = {ops::TensorListPushBack(scope, rest, OrZeros(scope, op, 1, dy)), NoGradient()};
  return scope.status();
}

absl::Status GradientOfListGetItem(const Scope& scope, const Operation& op,
                                   const std::vector<Output>& dy, std::vector<Output>* dx) {
  GRADFLOW_ASSIGN_OR_RETURN(const DataType dtype, ElementType(op));
  const Output zeros = ZeroList(scope, op.input(0), dtype);
  *dx = {ops::TensorListSetItem(scope, zeros, op.input(1), dy[0]), NoGradient(), NoGradient()};
  return scope.status();
}

absl::Status GradientOfListSetItem(const Scope& scope, const Operation& op,
                                   const std::vector<Output>& dy, std::vector<Output>* dx) {
  GRADFLOW_ASSIGN_OR_RETURN(const DataType dtype, ElementType(op));
  const Output item = op.input(2);
  Output list = ops::TensorListSetItem(scope, dy[0], op.input(1), ops::ZerosLike(scope, item));
  bool resizes = false;
  GRADFLOW_RETURN_IF_ERROR(GetAttr(op, "resize_if_index_out_of_bounds", &resizes));
  if (resizes) {
    list = ops::TensorListResize(scope, list, ops::TensorListLength(scope, op.input(0)));
  }
  *dx = {list, NoGradient(),
         ops::TensorListGetItem(scope, dy[0], op.input(1), ops::Shape(scope, item), dtype)};
  return scope.status();
}

absl::Status GradientOfListStack(const Scope& scope, const Operation&,
                                 const std::vector<Output>& dy, std::vector<Output>* dx) {
  *dx = {ops::TensorListFromTensor(scope, dy[0], RowShape(scope, dy[0])), NoGradient()};
  return scope.status();
}

absl::Status GradientOfListFromTensor(const Scope& scope, const Operation& op,
                                      const std::vector<Output>& dy, std::vector<Output>* dx) {
  GRADFLOW_ASSIGN_OR_RETURN(const DataType dtype, ElementType(op));
  *dx = {ops::TensorListStack(scope, dy[0], RowShape(scope, op.input(0)), dtype), NoGradient()};
  return scope.status();
}

// If an index occurs several times, the element's gradient is the sum of its rows. Each occurrence
// scatters this sum, so the order of scattering makes no difference.
absl::Status GradientOfListGather(const Scope& scope, const Operation& op,
                                  const std::vector<Output>& dy, std::vector<Output>* dx) {
  GRADFLOW_ASSIGN_OR_RETURN(const DataType dtype, ElementType(op));
  const Output indices = op.input(1);
  const Output sums =
      ops::UnsortedSegmentSum(scope, dy[0], indices, ops::TensorListLength(scope, op.input(0)));
  const Output zeros = ZeroList(scope, op.input(0), dtype);
  *dx = {ops::TensorListScatterIntoExistingList(scope, zeros,
                                                ops::GatherV2(scope, sums, indices, 0), indices),
         NoGradient(), NoGradient()};
  return scope.status();
}

// Returns the gradient of `tensor`, whose rows were scattered to `indices` of a list. `list` is the
// gradient of that list. If several rows have the same index, the list holds the last row, and the
// other rows have zero gradients.
absl::StatusOr<Output> GradientOfScatteredRows(const Scope& scope, const Operation& op,
                                               const Output& list, const Output& tensor,
                                               const Output& indices) {
  GRADFLOW_ASSIGN_OR_RETURN(const DataType dtype, ElementType(op));
  const Output rows = ops::TensorListGather(scope, list, indices, RowShape(scope, tensor), dtype);
  const Output positions = ops::Range(scope, 0, ops::Size(scope, indices), 1);
  const Output last =
      ops::UnsortedSegmentMax(scope, positions, indices, ops::TensorListLength(scope, list));
  const Output is_last = ops::Equal(scope, ops::GatherV2(scope, last, indices, 0), positions);
  return Output(ops::Where3(scope, is_last, rows, ops::ZerosLike(scope, rows)));
}

absl::Status GradientOfListScatter(const Scope& scope, const Operation& op,
                                   const std::vector<Output>& dy, std::vector<Output>* dx) {
  GRADFLOW_ASSIGN_OR_RETURN(const Output rows,
                            GradientOfScatteredRows(scope, op, dy[0], op.input(0), op.input(1)));
  dx->push_back(rows);
  return NoGradientForTheRest(scope, op, dx);
}

absl::Status GradientOfListScatterInto(const Scope& scope, const Operation& op,
                                       const std::vector<Output>& dy, std::vector<Output>* dx) {
  const Output tensor = op.input(1);
  const Output indices = op.input(2);
  GRADFLOW_ASSIGN_OR_RETURN(const Output rows,
                            GradientOfScatteredRows(scope, op, dy[0], tensor, indices));
  const Output others =
      ops::TensorListScatterIntoExistingList(scope, dy[0], ops::ZerosLike(scope, tensor), indices);
  *dx = {ops::TensorListResize(scope, others, ops::TensorListLength(scope, op.input(0))), rows,
         NoGradient()};
  return scope.status();
}

absl::Status GradientOfListSplit(const Scope& scope, const Operation& op,
                                 const std::vector<Output>& dy, std::vector<Output>* dx) {
  GRADFLOW_ASSIGN_OR_RETURN(const DataType dtype, ElementType(op));
  const Output shape = ops::ConcatV2(scope, {Vector(scope, {-1}), RowShape(scope, op.input(0))},
                                     Scalar(scope, DT_INT32, 0));
  const ops::TensorListConcatV2 joined(scope, dy[0], shape, op.input(2), dtype);
  *dx = {joined.tensor, NoGradient(), NoGradient()};
  return scope.status();
}

absl::Status GradientOfListConcat(const Scope& scope, const Operation& op,
                                  const std::vector<Output>& dy, std::vector<Output>* dx) {
  if (!IsNoGradient(dy[0])) {
    const Output shape = ops::TensorListElementShape(scope, op.input(0), DT_INT64);
    dx->push_back(ops::TensorListSplit(scope, dy[0], shape, op.output(1)));
  }
  return NoGradientForTheRest(scope, op, dx);
}

absl::Status GradientOfListResize(const Scope& scope, const Operation& op,
                                  const std::vector<Output>& dy, std::vector<Output>* dx) {
  *dx = {ops::TensorListResize(scope, dy[0], ops::TensorListLength(scope, op.input(0))),
         NoGradient()};
  return scope.status();
}

// Returns the lists of a vector of lists whose length is known when the graph is built.
absl::StatusOr<std::vector<Output>> Lists(const Scope& scope, const Output& lists,
                                          const PartialTensorShape& shape) {
  if (shape.unknown_rank() || shape.dims() != 1 || shape.dim_size(0) < 0) {
    return errors::Unimplemented("the gradient needs a known number of lists, but they have shape ",
                                 shape.DebugString());
  }
  return ops::Unpack(scope, lists, shape.dim_size(0)).output;
}

absl::Status GradientOfListPushBackBatch(const Scope& scope, const Operation& op,
                                         const std::vector<Output>& dy, std::vector<Output>* dx) {
  GRADFLOW_ASSIGN_OR_RETURN(const DataType dtype, ElementType(op));
  const PartialTensorShape& shape = op.output(0).node()->output_shape(0);
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<Output> lists, Lists(scope, dy[0], shape));
  const Output row = RowShape(scope, op.input(1));
  std::vector<Output> rest;
  std::vector<Output> rows;
  for (const Output& list : lists) {
    const ops::TensorListPopBack popped(scope, list, row, dtype);
    rest.push_back(popped.output_handle);
    rows.push_back(popped.tensor);
  }
  if (lists.empty()) {
    *dx = {NoGradient(), NoGradient()};
  } else {
    *dx = {ops::Pack(scope, rest), ops::Pack(scope, rows)};
  }
  return scope.status();
}

// REQUIRES: all elements of the second list have the same shape.
absl::Status GradientOfConcatLists(const Scope& scope, const Operation& op,
                                   const std::vector<Output>& dy, std::vector<Output>* dx) {
  GRADFLOW_ASSIGN_OR_RETURN(const DataType dtype, ElementType(op));
  // Appends the gradients of the lists a and b.
  const auto split = [&](const Output& list, const Output& a, const Output& b,
                         std::vector<Output>* das, std::vector<Output>* dbs) {
    const Output length = ops::TensorListLength(scope, a);
    const Output all = ops::TensorListLength(scope, list);
    const Output shape = ops::TensorListElementShape(scope, b, DT_INT32);
    das->push_back(ops::TensorListResize(scope, list, length));
    const Output rows =
        ops::TensorListGather(scope, list, ops::Range(scope, length, all, 1), shape, dtype);
    dbs->push_back(ops::TensorListFromTensor(scope, rows, shape));
  };
  std::vector<Output> das;
  std::vector<Output> dbs;
  const PartialTensorShape& shape = op.output(0).node()->output_shape(0);
  if (!shape.unknown_rank() && shape.dims() == 0) {
    split(dy[0], op.input(0), op.input(1), &das, &dbs);
    *dx = {das[0], dbs[0]};
    return scope.status();
  }
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<Output> lists, Lists(scope, dy[0], shape));
  if (lists.empty()) {
    *dx = {NoGradient(), NoGradient()};
    return scope.status();
  }
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<Output> as, Lists(scope, op.input(0), shape));
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<Output> bs, Lists(scope, op.input(1), shape));
  for (size_t i = 0; i < lists.size(); ++i) split(lists[i], as[i], bs[i], &das, &dbs);
  *dx = {ops::Pack(scope, das), ops::Pack(scope, dbs)};
  return scope.status();
}

// ---- Optional values ----

absl::Status GradientOfOptionalFromValue(const Scope& scope, const Operation& op,
                                         const std::vector<Output>& dy, std::vector<Output>* dx) {
  DataTypeVector types;
  std::vector<PartialTensorShape> shapes;
  for (int i = 0; i < op.num_inputs(); ++i) {
    types.push_back(op.input(i).type());
    shapes.push_back(op.input(i).node()->output_shape(op.input(i).index()));
  }
  const ops::OptionalGetValue value(scope, dy[0], types, shapes);
  *dx = value.components;
  return scope.status();
}

absl::Status GradientOfOptionalGetValue(const Scope& scope, const Operation& op,
                                        const std::vector<Output>& dy, std::vector<Output>* dx) {
  std::vector<Output> components;
  for (size_t i = 0; i < dy.size(); ++i) {
    components.push_back(OrZeros(scope, op, static_cast<int>(i), dy));
  }
  *dx = {ops::OptionalFromValue(scope, components)};
  return scope.status();
}

}  // namespace

namespace list {

void Register(GradientRegistry& registry) {
  registry.Register("OptionalFromValue", GradientOfOptionalFromValue);
  registry.Register("OptionalGetValue", GradientOfOptionalGetValue);
  registry.RegisterNoGradient("OptionalHasValue");
  registry.RegisterNoGradient("OptionalNone");
  registry.Register("TensorListConcat", GradientOfListConcat);
  registry.Register("TensorListConcatLists", GradientOfConcatLists);
  registry.Register("TensorListConcatV2", GradientOfListConcat);
  registry.Register("TensorListFromTensor", GradientOfListFromTensor);
  registry.Register("TensorListGather", GradientOfListGather);
  registry.Register("TensorListGetItem", GradientOfListGetItem);
  registry.Register("TensorListPopBack", GradientOfListPopBack);
  registry.Register("TensorListPushBack", GradientOfListPushBack);
  registry.Register("TensorListPushBackBatch", GradientOfListPushBackBatch);
  registry.Register("TensorListResize", GradientOfListResize);
  registry.Register("TensorListScatter", GradientOfListScatter);
  registry.Register("TensorListScatterIntoExistingList", GradientOfListScatterInto);
  registry.Register("TensorListScatterV2", GradientOfListScatter);
  registry.Register("TensorListSetItem", GradientOfListSetItem);
  registry.Register("TensorListSplit", GradientOfListSplit);
  registry.Register("TensorListStack", GradientOfListStack);
  for (const char* const op :
       {"EmptyTensorList", "TensorListElementShape", "TensorListLength", "TensorListReserve"}) {
    registry.RegisterNoGradient(op);
  }
}

}  // namespace list
}  // namespace gradients
}  // namespace gradflow
