#include "gradflow/ops/common/accumulate.h"

#include <type_traits>
#include <utility>

#include "gradflow/ops/common/elementwise.h"

namespace gradflow {
namespace {

// The type that accumulates elements of type T. Signed and unsigned integers of the same width
// share an instantiation, except for operations that depend on the sign.
template <Accumulation A, typename T>
using Stored = std::conditional_t<A == Accumulation::kMin || A == Accumulation::kMax ||
                                      A == Accumulation::kDiv,
                                  T, WrappingType<T>>;

template <Accumulation A, typename T>
T Accumulated(T to, T from) {
  using C = ComputeType<T>;
  if constexpr (std::is_same_v<T, tstring>) {
    return to + from;
  } else if constexpr (std::is_same_v<T, bool>) {
    return A == Accumulation::kSub ? to != from : to || from;
  } else if constexpr (A == Accumulation::kAdd) {
    return static_cast<T>(static_cast<C>(to) + static_cast<C>(from));
  } else if constexpr (A == Accumulation::kSub) {
    return static_cast<T>(static_cast<C>(to) - static_cast<C>(from));
  } else if constexpr (A == Accumulation::kMul) {
    // Narrow unsigned integers would be promoted to int, which may overflow.
    using Wide = std::conditional_t<std::is_same_v<C, uint16_t>, uint32_t, C>;
    return static_cast<T>(static_cast<Wide>(to) * static_cast<Wide>(from));
  } else if constexpr (A == Accumulation::kDiv) {
    if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
      // The quotient of the smallest integer and -1 wraps around.
      if (from == -1) return static_cast<T>(-static_cast<std::make_unsigned_t<T>>(to));
    }
    return static_cast<T>(static_cast<C>(to) / static_cast<C>(from));
  } else if constexpr (A == Accumulation::kMin) {
    return static_cast<C>(from) < static_cast<C>(to) ? from : to;
  } else {
    return static_cast<C>(from) > static_cast<C>(to) ? from : to;
  }
}

template <Accumulation A, typename T>
void Accumulate(void* to, int64_t to_stride, const void* from, int64_t from_stride, int64_t n) {
  T* a = static_cast<T*>(to);
  const T* b = static_cast<const T*>(from);
  if (to_stride == 1 && from_stride == 1) {
    GRADFLOW_SAME_INDEX_LOOP
    for (int64_t i = 0; i < n; ++i) a[i] = Accumulated<A>(a[i], b[i]);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    T& element = a[i * to_stride];
    element = Accumulated<A>(element, b[i * from_stride]);
  }
}

template <typename E>
void Update(void* to, int64_t to_stride, const void* from, int64_t from_stride, int64_t n) {
  E* a = static_cast<E*>(to);
  const E* b = static_cast<const E*>(from);
  for (int64_t i = 0; i < n; ++i) a[i * to_stride] = b[i * from_stride];
}

using AddTypes = ConcatTypes<NumberTypes, TypeList<bool, tstring>>::type;
using SubTypes = ConcatTypes<NumberTypes, TypeList<bool>>::type;

template <Accumulation A, typename... Ts>
AccumulateFn Find(TypeList<Ts...>, DataType dtype) {
  AccumulateFn fn = nullptr;
  DispatchType(TypeList<Ts...>(), dtype,
               [&](auto tag) { fn = Accumulate<A, Stored<A, typename decltype(tag)::type>>; });
  return fn;
}

}  // namespace

AccumulateFn FindAccumulation(Accumulation accumulation, DataType dtype) {
  switch (accumulation) {
    case Accumulation::kAdd:
      return Find<Accumulation::kAdd>(AddTypes(), dtype);
    case Accumulation::kSub:
      return Find<Accumulation::kSub>(SubTypes(), dtype);
    case Accumulation::kMul:
      return Find<Accumulation::kMul>(NumberTypes(), dtype);
    case Accumulation::kDiv:
      return Find<Accumulation::kDiv>(NumberTypes(), dtype);
    case Accumulation::kMin:
      return Find<Accumulation::kMin>(RealTypes(), dtype);
    case Accumulation::kMax:
      return Find<Accumulation::kMax>(RealTypes(), dtype);
    case Accumulation::kUpdate:
      break;
  }
  AccumulateFn fn = nullptr;
  DispatchElement(dtype, [&](auto tag) { fn = Update<typename decltype(tag)::type>; });
  return fn;
}

DataTypeVector AccumulationTypes(Accumulation accumulation) {
  DataTypeVector types;
  for (const DataType dtype : AllDataTypes()) {
    if (dtype == DT_BOOL || !DataTypeIsPlainBytes(dtype)) continue;
    if (FindAccumulation(accumulation, dtype) != nullptr) types.push_back(dtype);
  }
  return types;
}

void AccumulateStrided(const RunContext& run, AccumulateFn fn, absl::Span<const int64_t> dims,
                       const Tensor& source, StridedLoop::Operand from, Tensor* target,
                       StridedLoop::Operand to) {
  const StridedLoop loop(dims, {std::move(to), std::move(from)});
  const int64_t size = ElementBytes(source.dtype());
  char* target_bytes = static_cast<char*>(target->raw_data());
  const char* source_bytes = static_cast<const char*>(source.raw_data());
  loop.ForEachRun(run, kCheapNanoseconds, [&](const int64_t* offsets, int64_t n) {
    fn(target_bytes + offsets[0] * size, loop.inner_stride(0), source_bytes + offsets[1] * size,
       loop.inner_stride(1), n);
  });
}

}  // namespace gradflow
