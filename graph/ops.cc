#include "gradflow/graph/ops.h"

#include <algorithm>
#include <cstring>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/node.h"
#include "gradflow/proto/tensor.pb.h"

namespace gradflow {
namespace {

// Returns "float of shape [2,3]".
std::string TypeAndShape(const Tensor& tensor) {
  return absl::StrCat(DataTypeString(tensor.dtype()), " of shape ", tensor.shape().DebugString());
}

}  // namespace

// ---- Operation, Output ----

int32_t Operation::num_inputs() const { return node_ == nullptr ? 0 : node_->num_inputs(); }
int32_t Operation::num_outputs() const { return node_ == nullptr ? 0 : node_->num_outputs(); }

DataType Operation::input_type(int32_t i) const {
  return i >= 0 && i < num_inputs() ? node_->input_type(i) : DT_INVALID;
}
DataType Operation::output_type(int32_t i) const {
  return i >= 0 && i < num_outputs() ? node_->output_type(i) : DT_INVALID;
}

Output Operation::input(int32_t i) const {
  if (i < 0 || i >= num_inputs()) return Output();
  const Node::Source& source = node_->sources()[i];
  return Output(source.node, source.output);
}
Output Operation::output(int32_t i) const {
  return i >= 0 && i < num_outputs() ? Output(*this, i) : Output();
}

uint64_t Operation::hash(int32_t index) const { return absl::HashOf(node_, index); }

std::string Output::name() const {
  return node() == nullptr ? std::string() : absl::StrCat(node()->name(), ":", index_);
}

// ---- Input::Initializer ----

bool Input::Initializer::Allocate(DataType dtype, const TensorShape& shape) {
  absl::StatusOr<Tensor> made = Tensor::Allocate(dtype, shape);
  status.Update(made.status());
  if (!made.ok()) return false;
  tensor = *std::move(made);
  return true;
}

Input::Initializer::Initializer(const Tensor& value) : tensor(value) {
  if (!tensor.IsInitialized()) {
    status = errors::InvalidArgument("a tensor used as a value is not initialized: ",
                                     TypeAndShape(tensor));
  }
}

void Input::Initializer::FillBytes(DataType dtype, const void* value, const TensorShape& shape) {
  if (!Allocate(dtype, shape)) return;
  const size_t size = DataTypeSize(dtype);
  char* const data = static_cast<char*>(tensor.raw_data());
  for (int64_t i = 0; i < tensor.NumElements(); ++i) std::memcpy(data + i * size, value, size);
}

void Input::Initializer::FillString(absl::string_view value, const TensorShape& shape) {
  if (Allocate(DT_STRING, shape)) tensor.flat<tstring>().setConstant(tstring(value));
}

void Input::Initializer::SetBytes(DataType dtype, const void* values, size_t count,
                                  const TensorShape& shape) {
  if (!CheckCount(count, shape) || !Allocate(dtype, shape) || count == 0) return;
  std::memcpy(tensor.raw_data(), values, count * DataTypeSize(dtype));
}

void Input::Initializer::SetStrings(absl::Span<const absl::string_view> values,
                                    const TensorShape& shape) {
  if (!CheckCount(values.size(), shape) || !Allocate(DT_STRING, shape)) return;
  const auto flat = tensor.flat<tstring>();
  for (size_t i = 0; i < values.size(); ++i) flat(i) = tstring(values[i]);
}

bool Input::Initializer::CheckCount(size_t count, const TensorShape& shape) {
  if (shape.IsValid() && shape.num_elements() == static_cast<int64_t>(count)) return true;
  status.Update(errors::InvalidArgument("a list of ", count, count == 1 ? " value" : " values",
                                        " cannot make a tensor of shape ", shape.DebugString()));
  return false;
}

Input::Initializer::Initializer(const std::initializer_list<Initializer>& elements) {
  const int64_t count = static_cast<int64_t>(elements.size());
  if (count == 0) {
    Allocate(DT_FLOAT, TensorShape({0}));
    return;
  }
  const Tensor& first = elements.begin()->tensor;
  for (const Initializer& element : elements) {
    status.Update(element.status);
    if (!status.ok()) return;
    if (element.tensor.dtype() != first.dtype() || element.tensor.shape() != first.shape()) {
      status = errors::InvalidArgument(
          element.tensor.dtype() != first.dtype() ? "a list has values of several types"
                                                  : "a list is ragged",
          ": element ", &element - elements.begin(), " is ", TypeAndShape(element.tensor),
          ", but element 0 is ", TypeAndShape(first));
      return;
    }
  }
  TensorShape shape({count});
  shape.AppendShape(first.shape());
  if (!Allocate(first.dtype(), shape)) return;
  int64_t row = 0;
  for (const Initializer& element : elements) {
    Tensor target = tensor.Slice(row, row + 1);
    ++row;
    if (element.tensor.NumElements() == 0) continue;
    if (first.dtype() == DT_STRING) {
      const auto strings = element.tensor.flat<tstring>();
      std::copy(strings.begin(), strings.end(), target.flat<tstring>().begin());
    } else {
      const absl::string_view bytes = element.tensor.tensor_data();
      std::memcpy(target.raw_data(), bytes.data(), bytes.size());
    }
  }
}

TensorProto Input::Initializer::AsTensorProto() const {
  TensorProto proto;
  if (status.ok()) tensor.AsProtoField(&proto);
  return proto;
}

// ---- Input ----

Input::Input(const Operation& op) : output_(op.output(0)) {
  if (op.node() == nullptr || op.num_outputs() == 1) return;
  auto other = std::make_shared<Other>();
  other->status =
      errors::InvalidArgument("operation '", op.node()->name(), "' (", op.node()->type_string(),
                              ") has ", op.num_outputs(), " outputs, expected one");
  output_ = Output();
  other_ = std::move(other);
}

Input::Input(const Initializer& value) {
  auto other = std::make_shared<Other>();
  other->status = value.status;
  other->tensor = value.tensor;
  other_ = std::move(other);
}

Input::Input(absl::string_view node_name, int32_t index, DataType dtype) {
  auto other = std::make_shared<Other>();
  other->node_name = std::string(node_name);
  other->index = index;
  other->dtype = dtype;
  other_ = std::move(other);
}

int32_t Input::index() const { return other_ == nullptr ? output_.index() : other_->index; }

const Tensor& Input::tensor() const {
  // Never destroyed, so it outlives all users.
  static const Tensor& none = *new Tensor();
  return other_ == nullptr ? none : other_->tensor;
}

}  // namespace gradflow
