// Loops over elements, for kernels whose outputs depend on one element of each input:
//
//   absl::Status Double(KernelContext& ctx) {
//     return Unary<float>(ctx, [](float x) { return x * 2; });
//   }
//
// Binary() broadcasts its inputs as NumPy does. Both go through fixed blocks in parallel and write
// in the place of an input where no one else needs it. Every element is computed alike wherever it
// lies, so that its bits depend on its operands alone.
//
// An op of many types is a functor with a template for its operator(), which the Register functions
// instantiate:
//
//   struct Subtract {
//     template <typename T>
//     T operator()(T x, T y) const { return static_cast<T>(x - y); }
//   };
//   RegisterBinaryKernels<Subtract, WrappingType>(registry, "Sub",
//   NumberTypes());
#ifndef GRADFLOW_OPS_ELEMENTWISE_H_
#define GRADFLOW_OPS_ELEMENTWISE_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/types.h"

// Before a loop that reads a[i] and writes b[i], where a and b are the same memory or apart: lets
// gcc use vectors in both cases.
#if defined(__GNUC__) && !defined(__clang__)
#define GRADFLOW_SAME_INDEX_LOOP _Pragma("GCC ivdep")
#else
#define GRADFLOW_SAME_INDEX_LOOP
#endif

namespace gradflow {

// What elements of type T are computed in: the 16-bit floats in float, from which the result is
// rounded once.
template <typename T>
using ComputeType = std::conditional_t<kIsFloat16<T>, float, T>;

// For arithmetic on integers that wraps around: the unsigned integer with T's bits. Other types are
// themselves.
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
// For the rest: T itself.
template <typename T>
using OwnType = T;

namespace internal {

// `loop` computes n elements; a stride is 1, or 0 for one element that is repeated.
using UnaryLoop = absl::FunctionRef<void(const void* x, void* out, int64_t n)>;
using BinaryLoop = absl::FunctionRef<void(const void* x, int64_t x_stride, const void* y,
                                          int64_t y_stride, void* out, int64_t n)>;
// Inputs must have elements of `element_size` bytes, each of which takes `nanoseconds`.
absl::Status RunUnary(KernelContext& ctx, size_t element_size, double nanoseconds, UnaryLoop loop);
absl::Status RunBinary(KernelContext& ctx, size_t element_size, double nanoseconds,
                       BinaryLoop loop);

}  // namespace internal

// What an element costs, roughly: arithmetic, and functions like exp().
inline constexpr double kCheapNanoseconds = 0.5;
inline constexpr double kFunctionNanoseconds = 10;

// Output 0 is f of each element of input 0.
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

// Output 0 is f of the elements of inputs 0 and 1, broadcast to one shape.
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

// ---- Registering ----

template <typename F, typename In, typename Out>
absl::Status UnaryKernel(KernelContext& ctx) {
  return Unary<In, Out>(ctx, F(), F::kNanoseconds);
}
template <typename F, typename In, typename Out>
absl::Status BinaryKernel(KernelContext& ctx) {
  return Binary<In, Out>(ctx, F());
}

// Registers F as the kernel of `op` for each type T of the list as attribute T, computed on
// Storage<T>: the types that have one Storage share one instantiation.
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

#endif  // GRADFLOW_OPS_ELEMENTWISE_H_
