// Elementwise loops. Unary() and Binary() apply a function to each element of their inputs.
//
//   absl::Status Double(KernelContext& ctx) {
//     return Unary<float>(ctx, [](float x) { return x * 2; });
//   }
//
// Inputs are broadcast as in NumPy. The loops process fixed blocks in parallel, compute in place if
// nothing else reads an input, and write large outputs with non-temporal stores. The bits of an
// output element depend only on its operands, not on its position.
//
// An op that supports many types is a functor with a template operator(). The Register functions
// instantiate it for each type:
//
//   struct Subtract {
//     template <typename T>
//     T operator()(T x, T y) const { return static_cast<T>(x - y); }
//   };
//   RegisterBinaryKernels<Subtract, WrappingType>(registry, "Sub", NumberTypes());
//
// half and bfloat16 are computed in float and rounded once. They use the float loop: their elements
// are converted to float in chunks that fit the L1 cache.
#ifndef GRADFLOW_OPS_COMMON_ELEMENTWISE_H_
#define GRADFLOW_OPS_COMMON_ELEMENTWISE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/types.h"
#include "gradflow/ops/common/clones.h"

// Marks a loop that reads a[i] and writes b[i], so that gcc vectorizes it.
// REQUIRES: the arrays a and b are either equal or disjoint
#if defined(__GNUC__) && !defined(__clang__)
#define GRADFLOW_SAME_INDEX_LOOP _Pragma("GCC ivdep")
#else
#define GRADFLOW_SAME_INDEX_LOOP
#endif

namespace gradflow {

// The type of computations with elements of type T: float for half and bfloat16, otherwise T.
template <typename T>
using ComputeType = std::conditional_t<kIsFloat16<T>, float, T>;

// For an integer type T, the unsigned type of the same width, whose arithmetic wraps around without
// undefined behavior; otherwise T.
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
// T itself: an argument for the parameter `Storage` of RegisterUnaryKernels() and the other
// Register functions.
template <typename T>
using OwnType = T;

// Approximate costs per element: of arithmetic, and of functions such as exp().
inline constexpr double kCheapNanoseconds = 0.5;
inline constexpr double kFunctionNanoseconds = 10;

// ---- Loops over bytes ----

inline constexpr int kMaxElementwiseInputs = 3;
// The maximum number of elements in a chunk. If operands must be converted or gathered, the loop is
// called for one chunk at a time. Loops that need scratch memory split their elements into chunks
// (elementwise_chunks.h).
inline constexpr int64_t kElementwiseChunk = 1024;

// Computes n elements. x[k] points to the operand of input k. strides[k] is 1, or 0 if one element
// is repeated. `out` may alias an operand of stride 1.
using ElementwiseLoop = void (*)(const void* const* x, const int64_t* strides, void* out,
                                 int64_t n);

// The rule that input shapes must follow, and that pairs their elements.
enum class Pairing {
  // The shapes broadcast to a common shape, the shape of the output.
  kBroadcast,
  // All inputs have as many elements as input 0. The output has the shape of input 0. Elements are
  // paired in row-major order.
  kInOrder,
};

// Runs `loop` over all elements of the inputs. sizes[k] is the element size in bytes that the loop
// expects for input k. It is the size of the input's type, or 4 if the loop computes half and
// bfloat16 in float: the elements are then converted to float, and a half or bfloat16 output is
// converted from float. Returns INVALID_ARGUMENT if the elements of an input have a different size.
// `nanoseconds` is the approximate cost of an element.
absl::Status RunElementwise(
    KernelContext& ctx, absl::Span<const int> sizes, double nanoseconds,
    absl::FunctionRef<void(const void* const* x, const int64_t* strides, void* out, int64_t n)>
        loop,
    Pairing pairing = Pairing::kBroadcast);

// Returns a kernel that runs `loop` on inputs of the types of the node.
std::unique_ptr<OpKernel> NewElementwiseKernel(const KernelConstruction& construction,
                                               ElementwiseLoop loop, absl::Span<const int> sizes,
                                               double nanoseconds,
                                               Pairing pairing = Pairing::kBroadcast);

// ---- Loops over elements ----

namespace internal {

// The functions of loops are copied, so that what they capture stays in registers.

// Returns INVALID_ARGUMENT unless the elements of the first `count` inputs have `size` bytes.
absl::Status CheckElementSizes(const KernelContext& ctx, int count, int size);

template <typename In, typename Out, typename F>
GRADFLOW_CLONES void UnaryRun(F f, const void* const* x, void* out, int64_t n) {
  const In* a = static_cast<const In*>(x[0]);
  Out* result = static_cast<Out*>(out);
  GRADFLOW_SAME_INDEX_LOOP
  for (int64_t i = 0; i < n; ++i) result[i] = static_cast<Out>(f(a[i]));
}

template <typename In, typename Out, typename F>
GRADFLOW_CLONES void BinaryRun(F f, const void* const* x, const int64_t* strides, void* out,
                               int64_t n) {
  const In* a = static_cast<const In*>(x[0]);
  const In* b = static_cast<const In*>(x[1]);
  Out* result = static_cast<Out*>(out);
  if (strides[0] == 0) {
    const In repeated = a[0];
    GRADFLOW_SAME_INDEX_LOOP
    for (int64_t i = 0; i < n; ++i) result[i] = static_cast<Out>(f(repeated, b[i]));
  } else if (strides[1] == 0) {
    const In repeated = b[0];
    GRADFLOW_SAME_INDEX_LOOP
    for (int64_t i = 0; i < n; ++i) result[i] = static_cast<Out>(f(a[i], repeated));
  } else {
    GRADFLOW_SAME_INDEX_LOOP
    for (int64_t i = 0; i < n; ++i) result[i] = static_cast<Out>(f(a[i], b[i]));
  }
}

// F::kFloatLoop: a float loop that computes the same bits as F with the best instruction set. Null
// if F has no such member.
template <typename F, typename = void>
inline constexpr ElementwiseLoop kFloatLoop = nullptr;
template <typename F>
inline constexpr ElementwiseLoop kFloatLoop<F, std::void_t<decltype(F::kFloatLoop)>> =
    F::kFloatLoop;
template <typename F, typename In, typename Out>
inline constexpr bool kHasFloatLoop =
    std::is_same_v<In, float>&& std::is_same_v<Out, float>&& kFloatLoop<F> != nullptr;

template <typename F, typename In, typename Out>
void UnaryLoop(const void* const* x, const int64_t*, void* out, int64_t n) {
  UnaryRun<In, Out>(F(), x, out, n);
}
template <typename F, typename In, typename Out>
void BinaryLoop(const void* const* x, const int64_t* strides, void* out, int64_t n) {
  BinaryRun<In, Out>(F(), x, strides, out, n);
}

// The loop of F: kFloatLoop<F> if it exists and In and Out are float.
template <typename F, typename In, typename Out>
inline constexpr ElementwiseLoop kUnaryLoop = [] {
  if constexpr (kHasFloatLoop<F, In, Out>) {
    return kFloatLoop<F>;
  } else {
    return UnaryLoop<F, In, Out>;
  }
}();
template <typename F, typename In, typename Out>
inline constexpr ElementwiseLoop kBinaryLoop = [] {
  if constexpr (kHasFloatLoop<F, In, Out>) {
    return kFloatLoop<F>;
  } else {
    return BinaryLoop<F, In, Out>;
  }
}();

}  // namespace internal

// Sets each element of output 0 to f(x), where x is the corresponding element of input 0.
template <typename In, typename Out = In, typename F>
absl::Status Unary(KernelContext& ctx, F f, double nanoseconds = kCheapNanoseconds) {
  return RunElementwise(ctx, {sizeof(ComputeType<In>)}, nanoseconds,
                        [f](const void* const* x, const int64_t*, void* out, int64_t n) {
                          internal::UnaryRun<ComputeType<In>, ComputeType<Out>>(f, x, out, n);
                        });
}

// Sets each element of output 0 to f(x, y), where x and y are the corresponding elements of inputs
// 0 and 1, broadcast to a common shape.
template <typename In, typename Out = In, typename F>
absl::Status Binary(KernelContext& ctx, F f, double nanoseconds = kCheapNanoseconds) {
  if (absl::Status status = internal::CheckElementSizes(ctx, 2, sizeof(In)); !status.ok()) {
    return status;
  }
  constexpr int kSize = sizeof(ComputeType<In>);
  return RunElementwise(ctx, {kSize, kSize}, nanoseconds,
                        [f](const void* const* x, const int64_t* strides, void* out, int64_t n) {
                          internal::BinaryRun<ComputeType<In>, ComputeType<Out>>(f, x, strides, out,
                                                                                 n);
                        });
}

// ---- Registration ----

// KernelFactories of kernels that run Loop on one or two inputs. The elements of an input have
// `Size` bytes; the cost of an element is `Picoseconds`.
template <ElementwiseLoop Loop, int Size, int Picoseconds>
absl::StatusOr<std::unique_ptr<OpKernel>> MakeUnaryKernel(const KernelConstruction& construction) {
  return NewElementwiseKernel(construction, Loop, {Size}, Picoseconds / 1000.0);
}
template <ElementwiseLoop Loop, int Size, int Picoseconds, Pairing kPairing = Pairing::kBroadcast>
absl::StatusOr<std::unique_ptr<OpKernel>> MakeBinaryKernel(const KernelConstruction& construction) {
  return NewElementwiseKernel(construction, Loop, {Size, Size}, Picoseconds / 1000.0, kPairing);
}

namespace internal {

template <typename F, typename = void>
inline constexpr int kPicoseconds = static_cast<int>(kCheapNanoseconds * 1000);
template <typename F>
inline constexpr int kPicoseconds<F, std::void_t<decltype(F::kNanoseconds)>> =
    static_cast<int>(F::kNanoseconds * 1000);

template <typename F, typename In, typename Out>
inline constexpr KernelFactory kUnaryFactory =
    MakeUnaryKernel<kUnaryLoop<F, ComputeType<In>, ComputeType<Out>>, sizeof(ComputeType<In>),
                    kPicoseconds<F>>;
template <typename F, typename In, typename Out>
inline constexpr KernelFactory kBinaryFactory =
    MakeBinaryKernel<kBinaryLoop<F, ComputeType<In>, ComputeType<Out>>, sizeof(ComputeType<In>),
                     kPicoseconds<F>>;

}  // namespace internal

// Registers kernels of `op` that compute F: one kernel for each type Ts of attribute T. Elements
// are computed as Storage<Ts>; types with the same Storage share an instantiation. The cost of an
// element is F::kNanoseconds, or kCheapNanoseconds if F has no such member.
template <typename F, template <typename> class Storage, typename... Ts>
void RegisterUnaryKernels(Registry& registry, absl::string_view op, TypeList<Ts...>) {
  (registry.Kernel(op, internal::kUnaryFactory<F, Storage<Ts>, Storage<Ts>>).template Type<Ts>("T"),
   ...);
}
template <typename F, template <typename> class Storage, typename... Ts>
void RegisterBinaryKernels(Registry& registry, absl::string_view op, TypeList<Ts...>) {
  (registry.Kernel(op, internal::kBinaryFactory<F, Storage<Ts>, Storage<Ts>>)
       .template Type<Ts>("T"),
   ...);
}
// Registers kernels of predicates, whose output is bool.
template <typename F, template <typename> class Storage, typename... Ts>
void RegisterUnaryPredicates(Registry& registry, absl::string_view op, TypeList<Ts...>) {
  (registry.Kernel(op, internal::kUnaryFactory<F, Storage<Ts>, bool>).template Type<Ts>("T"), ...);
}
template <typename F, template <typename> class Storage, typename... Ts>
void RegisterBinaryPredicates(Registry& registry, absl::string_view op, TypeList<Ts...>) {
  (registry.Kernel(op, internal::kBinaryFactory<F, Storage<Ts>, bool>).template Type<Ts>("T"), ...);
}

}  // namespace gradflow

#endif  // GRADFLOW_OPS_COMMON_ELEMENTWISE_H_
