#include "gradflow/graph/const_op.h"

#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <variant>

#include "absl/strings/str_cat.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/tensor.pb.h"

namespace gradflow::ops {
namespace {

// Holds a number of any of ConstTypes exactly.
using Number = std::variant<int64_t, uint64_t, double, complex128>;
using ConstTypes = ConcatTypes<NumberTypes, TypeList<bool>>::type;

template <typename T>
Number ToNumber(T value) {
  if constexpr (kIsComplex<T>) {
    return complex128(value);
  } else if constexpr (std::is_floating_point_v<T> || kIsFloat16<T>) {
    return static_cast<double>(value);
  } else if constexpr (std::is_unsigned_v<T>) {
    return static_cast<uint64_t>(value);
  } else {
    return static_cast<int64_t>(value);
  }
}

// Returns whether the integer type T can hold `value`, truncated toward zero.
template <typename T>
bool Fits(int64_t value) {
  if (value < 0) return value >= static_cast<int64_t>(std::numeric_limits<T>::min());
  return static_cast<uint64_t>(value) <= static_cast<uint64_t>(std::numeric_limits<T>::max());
}
template <typename T>
bool Fits(uint64_t value) {
  return value <= static_cast<uint64_t>(std::numeric_limits<T>::max());
}
template <typename T>
bool Fits(double value) {
  const double whole = std::trunc(value);
  return whole >= static_cast<double>(std::numeric_limits<T>::min()) &&
         whole < std::ldexp(1.0, std::numeric_limits<T>::digits);
}

template <typename T>
bool FromNumber(const Number& number, T* value) {
  return std::visit(
      [&](auto n) {
        if constexpr (std::is_same_v<decltype(n), complex128> && !kIsComplex<T>) {
          return FromNumber(n.real(), value);
        } else if constexpr (std::is_same_v<decltype(n), complex128>) {
          *value = static_cast<T>(n);
        } else if constexpr (std::is_integral_v<T>) {
          if (!Fits<T>(n)) return false;
          *value = static_cast<T>(n);
        } else if constexpr (kIsComplex<T>) {
          *value = static_cast<typename T::value_type>(n);
        } else {
          *value = static_cast<T>(n);
        }
        return true;
      },
      number);
}

template <typename N>
std::string Text(N number) {
  return absl::StrCat(number);
}
std::string Text(complex128 number) {
  return absl::StrCat("(", number.real(), ",", number.imag(), ")");
}

absl::StatusOr<Tensor> Convert(const Tensor& from, DataType dtype) {
  GRADFLOW_ASSIGN_OR_RETURN(Tensor result, Tensor::Allocate(dtype, from.shape()));
  std::vector<Number> numbers;
  const bool readable = DispatchType(ConstTypes(), from.dtype(), [&](auto tag) {
    for (const auto value : from.flat<typename decltype(tag)::type>()) {
      numbers.push_back(ToNumber(value));
    }
  });
  int64_t done = 0;
  const bool writable = DispatchType(ConstTypes(), dtype, [&](auto tag) {
    const auto target = result.flat<typename decltype(tag)::type>();
    while (done < from.NumElements() && readable && FromNumber(numbers[done], &target(done))) {
      ++done;
    }
  });
  // An empty list has no type, so it converts to any type.
  if (done == from.NumElements()) return result;
  if (!readable || !writable) {
    return errors::InvalidArgument("a value of type ", DataTypeString(from.dtype()),
                                   " cannot be converted to ", DataTypeString(dtype));
  }
  const std::string value = std::visit([](auto n) { return Text(n); }, numbers[done]);
  return errors::InvalidArgument("the value ", value, " does not fit in ", DataTypeString(dtype));
}

// Sets the scope's error for a Const that has no name yet.
Output Fail(const Scope& scope, const absl::Status& status) {
  const std::string name = scope.GetUniqueNameForOp("Const");
  scope.UpdateStatus(errors::Prefix(absl::StrCat("node '", name, "' (Const): value: "), status));
  return Output();
}

}  // namespace

Output Const(const Scope& scope, const Input::Initializer& value) {
  if (!scope.ok()) return Output();
  if (!value.status.ok()) return Fail(scope, value.status);
  OpBuilder op(scope, "Const");
  op.Attr("value", value.tensor).Attr("dtype", value.tensor.dtype());
  return op.Finish().output(0);
}

Output ConstFromProto(const Scope& scope, const TensorProto& proto) {
  if (!scope.ok()) return Output();
  AttrValue value;
  *value.mutable_tensor() = proto;
  OpBuilder op(scope, "Const");
  op.Attr("value", value).Attr("dtype", static_cast<DataType>(proto.dtype()));
  return op.Finish().output(0);
}

namespace internal {

Output ConstAs(const Scope& scope, const Input::Initializer& value, DataType dtype) {
  if (!scope.ok() || !value.status.ok() || value.tensor.dtype() == dtype) {
    return Const(scope, value);
  }
  const absl::StatusOr<Tensor> converted = Convert(value.tensor, dtype);
  if (!converted.ok()) return Fail(scope, converted.status());
  return Const(scope, *converted);
}

}  // namespace internal

NodeOut AsNodeOut(const Scope& scope, const Input& input) {
  if (!scope.ok()) return NodeOut();
  if (!input.node_name().empty()) {
    const Node* node = scope.graph()->FindNode(input.node_name());
    const Output output = Operation(node).output(input.index());
    if (output.node() == nullptr || output.type() != input.data_type()) {
      scope.UpdateStatus(errors::InvalidArgument(
          "an input names output ", input.index(), " of type ", DataTypeString(input.data_type()),
          " of ", input.node_name(),
          node == nullptr ? ", which is not in the graph" : ", which has no such output"));
      return NodeOut();
    }
    return output;
  }
  if (!input.is_value()) return input.output();
  if (!input.status().ok()) {
    scope.UpdateStatus(input.status());
    return NodeOut();
  }
  return Const(scope.NewSubScope("Const"), input.tensor());
}

std::vector<NodeOut> AsNodeOutList(const Scope& scope, const InputList& inputs) {
  std::vector<NodeOut> outputs;
  outputs.reserve(inputs.size());
  for (const Input& input : inputs) outputs.push_back(AsNodeOut(scope, input));
  return outputs;
}

}  // namespace gradflow::ops
