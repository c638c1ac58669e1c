// Elementwise loops: Unary() and Binary() apply a function to each element of their inputs.
//
//   absl::Status Double(KernelContext& ctx) {
//     return Unary<float>(ctx, [](float x) { return x * 2; });
//   }
//
// Binary() broadcasts its inputs as NumPy does. Both process fixed blocks in parallel and compute
// in place if an input is not needed elsewhere. The bits of a result depend on its operands alone,
// not on its position.
//
// An op of many types is a functor with a templated operator(), which the Register functions
// instantiate:
//
//   struct Subtract {
//     template <typename T>
//     T operator()(T x, T y) const { return static_cast<T>(x - y); }
//   };
//   RegisterBinaryKernels<Subtract, WrappingType>(registry, "Sub", NumberTypes());
#ifndef GRADFLOW_OPS_COMMON_ELEMENTWISE_H_
#define GRADFLOW_OPS_COMMON_ELEMENTWISE_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/types.h"

// Precedes a loop that reads a[i] and writes b[i]. Asserts that a and b are equal or disjoint, so
// that gcc vectorises the loop.
#if defined(__GNUC__) && !defined(__clang__)
#define GRADFLOW_SAME_INDEX_LOOP _Pragma("GCC ivdep")
#else
#define GRADFLOW_SAME_INDEX_LOOP
#endif

namespace gradflow {

// The type in which elements of type T are computed: float for 16-bit floats, whose results are
// rounded once.
template <typename T>
using ComputeType = std::conditional_t<kIsFloat16<T>, float, T>;

// The unsigned integer of the width of T, whose arithmetic wraps around without undefined
// behaviour, if T is an integer; otherwise T.
template <typename T, bool = std::is_integral_v<T> && !std::is_same_v<T, bool>>
struct WrappingTypeOf {
  using type = T;
};
template <typename T>
struct WrappingTypeOf<T, true> {
  using type = std::make_unsigned_t<T>;
};
template <typename T>
using WrappingType = typename WrappingTypeOf<T>::type;
// T itself, as an argument for `Storage`.
template <typename T>
using OwnType = T;

namespace internal {

// Compute n elements. A stride is 1, or 0 to repeat one element.
using UnaryLoop = absl::FunctionRef<void(const void* x, void* out, int64_t n)>;
using BinaryLoop = absl::FunctionRef<void(const void* x, int64_t x_stride, const void* y,
                                          int64_t y_stride, void* out, int64_t n)>;
// Run `loop` over all elements. Return INVALID_ARGUMENT unless the elements of the inputs have
// `element_size` bytes. `nanoseconds` is the approximate cost of an element.
absl::Status RunUnary(KernelContext& ctx, size_t element_size, double nanoseconds, UnaryLoop loop);
absl::Status RunBinary(KernelContext& ctx, size_t element_size, double nanoseconds,
                       BinaryLoop loop);

}  // namespace internal

// Approximate cost of an element: of arithmetic, and of functions such as exp().
inline constexpr double kCheapNanoseconds = 0.5;
inline constexpr double kFunctionNanoseconds = 10;

// Sets each element of output 0 to f(x), for the elements of input 0.
template <typename In, typename Out = In, typename F>
absl::Status Unary(KernelContext& ctx, F f, double nanoseconds = kCheapNanoseconds) {
  return internal::RunUnary(ctx, sizeof(In), nanoseconds, [f](const void* x, void* out, int64_t n) {
    const In* a = static_cast<const In*>(x);
    Out* result = static_cast<Out*>(out);
    GRADFLOW_SAME_INDEX_LOOP
    for (int64_t i = 0; i < n; ++i) {
      result[i] = static_cast<Out>(f(static_cast<ComputeType<In>>(a[i])));
    }
  });
}

// Sets each element of output 0 to f(x, y), for the elements of inputs 0 and 1, broadcast to one
// shape.
template <typename In, typename Out = In, typename F>
absl::Status Binary(KernelContext& ctx, F f, double nanoseconds = kCheapNanoseconds) {
  using C = ComputeType<In>;
  return internal::RunBinary(
      ctx, sizeof(In), nanoseconds,
      [f](const void* x, int64_t x_stride, const void* y, int64_t y_stride, void* out, int64_t n) {
        const In* a = static_cast<const In*>(x);
        const In* b = static_cast<const In*>(y);
        Out* result = static_cast<Out*>(out);
        if (x_stride == 0) {
          const C repeated = static_cast<C>(a[0]);
          GRADFLOW_SAME_INDEX_LOOP
          for (int64_t i = 0; i < n; ++i) {
            result[i] = static_cast<Out>(f(repeated, static_cast<C>(b[i])));
          }
        } else if (y_stride == 0) {
          const C repeated = static_cast<C>(b[0]);
          GRADFLOW_SAME_INDEX_LOOP
          for (int64_t i = 0; i < n; ++i) {
            result[i] = static_cast<Out>(f(static_cast<C>(a[i]), repeated));
          }
        } else {
          GRADFLOW_SAME_INDEX_LOOP
          for (int64_t i = 0; i < n; ++i) {
            result[i] = static_cast<Out>(f(static_cast<C>(a[i]), static_cast<C>(b[i])));
          }
        }
      });
}

// ---- Registration ----

template <typename F, typename In, typename Out>
absl::Status UnaryKernel(KernelContext& ctx) {
  return Unary<In, Out>(ctx, F(), F::kNanoseconds);
}
template <typename F, typename In, typename Out>
absl::Status BinaryKernel(KernelContext& ctx) {
  return Binary<In, Out>(ctx, F());
}

// Registers kernels of `op` that compute F, one for each type of the list as attribute T. Elements
// are computed as Storage<T>: types with the same Storage share an instantiation.
template <typename F, template <typename> class Storage, typename... Ts>
void RegisterUnaryKernels(Registry& registry, absl::string_view op, TypeList<Ts...>) {
  (registry.Kernel(op, MakeFunctionKernel<UnaryKernel<F, Storage<Ts>, Storage<Ts>>>)
       .template Type<Ts>("T"),
   ...);
}
template <typename F, template <typename> class Storage, typename... Ts>
void RegisterBinaryKernels(Registry& registry, absl::string_view op, TypeList<Ts...>) {
  (registry.Kernel(op, MakeFunctionKernel<BinaryKernel<F, Storage<Ts>, Storage<Ts>>>)
       .template Type<Ts>("T"),
   ...);
}

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_ELEMENTWISE_H_
