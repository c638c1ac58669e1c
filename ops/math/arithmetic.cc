// Add, AddV2, Sub, Mul, RealDiv and SquaredDifference.
//
// Integers wrap around: they are computed as unsigned integers.
#include <complex>
#include <type_traits>

#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/elementwise_simd.h"

namespace gradflow::arithmetic {
namespace {

// Returns x * y. Integers are multiplied in a type that is not promoted to int, because the product
// of two 16-bit integers may overflow int.
template <typename T>
T Multiplied(T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(1u * x * y);
  } else {
    return x * y;
  }
}

struct AddElements {
  static constexpr ElementwiseLoop kFloatLoop = AddFloats;
  template <typename T>
  T operator()(T x, T y) const {
    return static_cast<T>(x + y);
  }
};

struct Subtract {
  static constexpr ElementwiseLoop kFloatLoop = SubtractFloats;
  template <typename T>
  T operator()(T x, T y) const {
    return static_cast<T>(x - y);
  }
};

struct Multiply {
  static constexpr ElementwiseLoop kFloatLoop = MultiplyFloats;
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
  // Broadcasting repeats all elements of an input equally often.
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
      .Doc(R"(Returns x + y element-wise; for strings, y appended to x.

The inputs are broadcast to one shape as NumPy does. Integers wrap around.

x: A tensor.
y: A tensor of the same type.
z: The sums, of the broadcast shape.
T: The type of the inputs and the output.)");
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
      .Doc(R"(Returns x + y element-wise.

The inputs are broadcast to one shape as NumPy does. Integers wrap around.

x: A tensor.
y: A tensor of the same type.
z: The sums, of the broadcast shape.
T: The type of the inputs and the output.)");
  RegisterBinaryKernels<AddElements, WrappingType>(registry, "AddV2", NumberTypes());
}

}  // namespace

void Register(Registry& registry) {
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
      .Doc(R"(Returns x - y element-wise.

The inputs are broadcast to one shape as NumPy does. Integers wrap around.

x: A tensor.
y: The tensor to subtract, of the same type.
z: The differences, of the broadcast shape.
T: The type of the inputs and the output.)");
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
      .Doc(R"(Returns x * y element-wise.

The inputs are broadcast to one shape as NumPy does. Integers wrap around.

x: A tensor.
y: A tensor of the same type.
z: The products, of the broadcast shape.
T: The type of the inputs and the output.)");
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
          R"(Returns x / y element-wise for real or complex numbers.

The inputs are broadcast to one shape as NumPy does. Division by zero results in an infinity or NaN.
As in TensorFlow, there are no kernels for integers: cast them first.

x: The dividend.
y: The divisor, a tensor of the same type.
z: The quotients, of the broadcast shape.
T: The type of the inputs and the output.)");
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
      .Doc(R"(Returns (x - y)^2 element-wise.

The inputs are broadcast to one shape as NumPy does. Integers wrap around. For complex numbers the
result is |x - y|^2, which is real.

x: A tensor.
y: A tensor of the same type.
z: The squares, of the broadcast shape.
T: The type of the inputs and the output.)");
  using SquaredDifferenceTypes =
      TypeList<bfloat16, half, float, double, int32_t, int64_t, complex64, complex128>;
  RegisterBinaryKernels<SquareDifference, WrappingType>(registry, "SquaredDifference",
                                                        SquaredDifferenceTypes());
}

}  // namespace gradflow::arithmetic
