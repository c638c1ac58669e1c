// Add, AddV2, Sub, Mul, RealDiv and SquaredDifference.
//
// Integers wrap around: they are computed as unsigned ones.
#include <complex>
#include <type_traits>

#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/elementwise.h"
#include "gradflow/ops/register.h"

namespace gradflow {
namespace {

// The product in an unsigned type that C++ does not widen to int, in which the product of two
// 16-bit numbers might overflow.
template <typename T>
T Multiplied(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(1u * x * y);
  } else {
    return x * y;
  }
}

struct AddElements {
  template <typename T>
  T operator()(T x, T y) const {
    return static_cast<T>(x + y);
  }
};

struct Subtract {
  template <typename T>
  T operator()(T x, T y) const {
    return static_cast<T>(x - y);
  }
};

struct Multiply {
  template <typename T>
  T operator()(T x, T y) const {
    return Multiplied(x, y);
  }
};

struct Divide {
  template <typename T>
  T operator()(T x, T y) const {
    return x / y;
  }
};

struct SquareDifference {
  template <typename T>
  T operator()(T x, T y) const {
    const T difference = static_cast<T>(x - y);
    if constexpr (kIsComplex<T>) {
      return std::norm(difference);
    } else {
      return Multiplied(difference, difference);
    }
  }
};

absl::Status AddStrings(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape,
                            BroadcastShapes(ctx.input(0).shape(), ctx.input(1).shape()));
  // Broadcast, each element of an input is in the sums equally often.
  double bytes = 0;
  for (const int i : {0, 1}) {
    const Tensor& input = ctx.input(i);
    if (input.NumElements() == 0) continue;
    bytes += static_cast<double>(input.StringBytes()) * static_cast<double>(shape.num_elements()) /
             static_cast<double>(input.NumElements());
  }
  ctx.ExpectStringBytes(bytes);
  return Binary<tstring>(
      ctx, [](const tstring& x, const tstring& y) { return x + y; },
      /*nanoseconds=*/50);
}

void RegisterAdd(Registry& registry) {
  registry.Op("Add")
      .Group("math_ops")
      .Input("x: T")
      .Input("y: T")
      .Output("z: T")
      .Attr(
          "T: {bfloat16, half, float, double, uint8, int8, int16, int32, "
          "int64, complex64, "
          "complex128, string}")
      .Shape(BroadcastBinaryShape)
      .Doc(R"(The sum x + y, element by element; of strings, y appended to x.

The inputs are broadcast to one shape as NumPy does. Integers wrap around.

x: A tensor.
y: A tensor of the same type.
z: The sums, of the common shape.
T: The type of all three.)");
  using AddTypes = TypeList<bfloat16, half, float, double, uint8_t, int8_t, int16_t, int32_t,
                            int64_t, complex64, complex128>;
  RegisterBinaryKernels<AddElements, WrappingType>(registry, "Add", AddTypes());
  registry.Kernel("Add", MakeFunctionKernel<AddStrings>).Type<tstring>("T");

  registry.Op("AddV2")
      .Group("math_ops")
      .Input("x: T")
      .Input("y: T")
      .Output("z: T")
      .Attr(
          "T: {bfloat16, half, float, double, uint8, uint16, uint32, uint64, "
          "int8, int16, int32, "
          "int64, complex64, complex128}")
      .Commutative()
      .Aggregate()
      .Shape(BroadcastBinaryShape)
      .Doc(R"(The sum x + y, element by element.

The inputs are broadcast to one shape as NumPy does. Integers wrap around.

x: A tensor.
y: A tensor of the same type.
z: The sums, of the common shape.
T: The type of all three.)");
  RegisterBinaryKernels<AddElements, WrappingType>(registry, "AddV2", NumberTypes());
}

}  // namespace

void RegisterArithmetic(Registry& registry) {
  RegisterAdd(registry);

  registry.Op("Sub")
      .Group("math_ops")
      .Alias("Subtract")
      .Input("x: T")
      .Input("y: T")
      .Output("z: T")
      .Attr(
          "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, "
          "int32, int64, complex64, "
          "complex128, uint32, uint64}")
      .Shape(BroadcastBinaryShape)
      .Doc(R"(The difference x - y, element by element.

The inputs are broadcast to one shape as NumPy does. Integers wrap around.

x: A tensor.
y: What to subtract, a tensor of the same type.
z: The differences, of the common shape.
T: The type of all three.)");
  RegisterBinaryKernels<Subtract, WrappingType>(registry, "Sub", NumberTypes());

  registry.Op("Mul")
      .Group("math_ops")
      .Alias("Multiply")
      .Input("x: T")
      .Input("y: T")
      .Output("z: T")
      .Attr(
          "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, "
          "int32, uint32, uint64, "
          "int64, complex64, complex128}")
      .Commutative()
      .Shape(BroadcastBinaryShape)
      .Doc(R"(The product x * y, element by element.

The inputs are broadcast to one shape as NumPy does. Integers wrap around.

x: A tensor.
y: A tensor of the same type.
z: The products, of the common shape.
T: The type of all three.)");
  RegisterBinaryKernels<Multiply, WrappingType>(registry, "Mul", NumberTypes());

  registry.Op("RealDiv")
      .Group("math_ops")
      .Input("x: T")
      .Input("y: T")
      .Output("z: T")
      .Attr(
          "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, "
          "int32, uint32, uint64, "
          "int64, complex64, complex128}")
      .Shape(BroadcastBinaryShape)
      .Doc(
          R"(The quotient x / y, element by element, of real or complex numbers.

The inputs are broadcast to one shape as NumPy does. Division by zero gives an infinity or NaN.
There are no kernels for integers, as in TensorFlow: cast them first.

x: What to divide.
y: What to divide by, a tensor of the same type.
z: The quotients, of the common shape.
T: The type of all three.)");
  RegisterBinaryKernels<Divide, OwnType>(registry, "RealDiv",
                                         ConcatTypes<FloatingTypes, ComplexTypes>::type());

  registry.Op("SquaredDifference")
      .Group("math_ops")
      .Input("x: T")
      .Input("y: T")
      .Output("z: T")
      .Attr(
          "T: {bfloat16, half, float, double, int32, int64, complex64, "
          "complex128}")
      .Commutative()
      .Shape(BroadcastBinaryShape)
      .Doc(R"(The square of the difference x - y, element by element.

The inputs are broadcast to one shape as NumPy does. Integers wrap around. Of complex numbers it is
the square of the difference's magnitude, which is real.

x: A tensor.
y: A tensor of the same type.
z: The squares, of the common shape.
T: The type of all three.)");
  using SquaredDifferenceTypes =
      TypeList<bfloat16, half, float, double, int32_t, int64_t, complex64, complex128>;
  RegisterBinaryKernels<SquareDifference, WrappingType>(registry, "SquaredDifference",
                                                        SquaredDifferenceTypes());
}

}  // namespace gradflow
