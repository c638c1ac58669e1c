// Complex, Real, Imag, Conj, Angle and ComplexAbs.
#include <cmath>
#include <complex>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/elementary_simd.h"
#include "gradflow/ops/common/elementwise.h"
#include "gradflow/ops/common/elementwise_chunks.h"

namespace gradflow::complex_parts {
namespace {

struct RealPart {
  template <typename T>
  T operator()(std::complex<T> z) const {
    return z.real();
  }
};

struct ImaginaryPart {
  template <typename T>
  T operator()(std::complex<T> z) const {
    return z.imag();
  }
};

struct Magnitude {
  static constexpr double kNanoseconds = 5;
  template <typename T>
  T operator()(std::complex<T> z) const {
    return std::hypot(z.real(), z.imag());
  }
};

struct Conjugate {
  template <typename T>
  T operator()(T z) const {
    return std::conj(z);
  }
};

struct FromParts {
  template <typename T>
  std::complex<T> operator()(T real, T imag) const {
    return {real, imag};
  }
};

template <typename T>
void AngleLoop(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  ForEachChunk<std::complex<T>, T, 1>(
      x, strides, out, n, [&](const std::complex<T>* const* z, T* result, int64_t count) {
        T real[kElementwiseChunk];
        T imag[kElementwiseChunk];
        for (int64_t i = 0; i < count; ++i) {
          real[i] = z[0][i].real();
          imag[i] = z[0][i].imag();
        }
        ApplyElementary(Elementary2::kAtan2, imag, real, result, count);
      });
}

// Registers an op that returns a part of a complex number. T is the complex type, Tout the real
// type.
void DefinePart(Registry& registry, absl::string_view op, absl::string_view input,
                absl::string_view output, absl::string_view summary) {
  registry.Op(op)
      .Group("math_ops")
      .Input(absl::StrCat(input, ": T"))
      .Output(absl::StrCat(output, ": Tout"))
      .Attr("T: {complex64, complex128} = DT_COMPLEX64")
      .Attr("Tout: {float, double} = DT_FLOAT")
      .Shape(UnchangedShape)
      .Doc(absl::StrCat(summary, "\n\n", input, ": A tensor of complex numbers.\n", output,
                        ": The results, of the shape of `", input,
                        "`.\nT: The type of the input.\nTout: The type of its parts: float for "
                        "complex64, double for complex128."));
}

template <ElementwiseLoop kLoop64, ElementwiseLoop kLoop128, int kPicoseconds>
void RegisterPartKernels(Registry& registry, absl::string_view op) {
  registry.Kernel(op, MakeUnaryKernel<kLoop64, sizeof(complex64), kPicoseconds>)
      .Types("T", {DT_COMPLEX64})
      .Types("Tout", {DT_FLOAT});
  registry.Kernel(op, MakeUnaryKernel<kLoop128, sizeof(complex128), kPicoseconds>)
      .Types("T", {DT_COMPLEX128})
      .Types("Tout", {DT_DOUBLE});
}

template <typename F>
void RegisterPartKernels(Registry& registry, absl::string_view op) {
  RegisterPartKernels<internal::kUnaryLoop<F, complex64, float>,
                      internal::kUnaryLoop<F, complex128, double>, internal::kPicoseconds<F>>(
      registry, op);
}

}  // namespace

void Register(Registry& registry) {
  DefinePart(registry, "Real", "input", "output", "Returns the real part element-wise.");
  RegisterPartKernels<RealPart>(registry, "Real");
  DefinePart(registry, "Imag", "input", "output", "Returns the imaginary part element-wise.");
  RegisterPartKernels<ImaginaryPart>(registry, "Imag");
  DefinePart(registry, "ComplexAbs", "x", "y",
             "Returns the absolute value element-wise, which does not overflow on the way.");
  RegisterPartKernels<Magnitude>(registry, "ComplexAbs");
  DefinePart(registry, "Angle", "input", "output",
             "Returns the angle element-wise, in radians from -pi to pi.");
  RegisterPartKernels<AngleLoop<float>, AngleLoop<double>, 5000>(registry, "Angle");

  registry.Op("Conj")
      .Group("math_ops")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: {complex64, complex128, variant} = DT_COMPLEX64")
      .Shape(UnchangedShape)
      .Doc(R"(Returns the complex conjugate element-wise.

There is no kernel for variants.

input: A tensor of complex numbers.
output: The conjugates, of the shape of `input`.
T: The type of both.)");
  RegisterUnaryKernels<Conjugate, OwnType>(registry, "Conj", ComplexTypes());

  registry.Op("Complex")
      .Group("math_ops")
      .Input("real: T")
      .Input("imag: T")
      .Output("out: Tout")
      .Attr("T: {float, double} = DT_FLOAT")
      .Attr("Tout: {complex64, complex128} = DT_COMPLEX64")
      .Shape(BroadcastBinaryShape)
      .Doc(R"(Returns the complex numbers of two parts element-wise.

The inputs are broadcast to one shape as NumPy does.

real: The real parts.
imag: The imaginary parts.
out: The numbers, of the broadcast shape.
T: The type of the parts.
Tout: The type of the numbers: complex64 for float, complex128 for double.)");
  registry.Kernel("Complex", internal::kBinaryFactory<FromParts, float, complex64>)
      .Type<float>("T")
      .Type<complex64>("Tout");
  registry.Kernel("Complex", internal::kBinaryFactory<FromParts, double, complex128>)
      .Type<double>("T")
      .Type<complex128>("Tout");
}

}  // namespace gradflow::complex_parts
