// Reductions along axes, for ops such as Sum. Their inputs are a tensor and the axes. The attribute
// keep_dims keeps reduced axes with size 1.
//
// An op defines a Policy: the operations on elements of one type. Everything else is independent of
// the type. The order of combining elements depends only on the shape, so results have the same
// bits for any number of threads and on any machine.
#ifndef GRADFLOW_OPS_MATH_REDUCTION_H_
#define GRADFLOW_OPS_MATH_REDUCTION_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/types.h"

namespace gradflow {

// A Policy as functions on arrays. An accumulator holds the combination of the elements that were
// added to it.
struct Reducer {
  // The maximum of accumulator_size, in bytes.
  static constexpr size_t kMaxAccumulatorSize = 16;

  size_t element_size;
  size_t accumulator_size;
  // The number of parts of an element that are reduced independently: 2 for complex numbers.
  int parts;
  // Initializes n accumulators.
  void (*clear)(int64_t n, void* accumulators);
  // Adds x[r * row_stride + j * stride] to accumulator j for all r in [0, rows), in order, and all
  // j in [0, n).
  void (*add)(const void* x, int64_t rows, int64_t row_stride, int64_t n, int64_t stride,
              void* accumulators);
  // Combines accumulator j of `from` into accumulator j for all j in [0, n).
  void (*merge)(const void* from, int64_t n, void* accumulators);
  // Sets out[j] to the result of accumulator j, which combines `count` elements.
  void (*finish)(const void* accumulators, int64_t count, int64_t n, void* out);
  // True if the reduction of a single element equals the element.
  bool keeps_one = true;
};

// Sets output 0 to input 0 reduced over the axes of input 1.
absl::Status Reduce(KernelContext& ctx, const Reducer& reducer, bool keep_dims);
// Sets `output` to `input` reduced over all dimensions d with reduced[d] == true.
// REQUIRES: `output` has the type of `input` and its remaining dimensions
absl::Status ReduceTensor(KernelContext& ctx, const Reducer& reducer, const Tensor& input,
                          const std::vector<bool>& reduced, Tensor* output);

namespace internal {

// The prefetch distance in bytes. Hardware prefetchers stop at the end of a page.
inline constexpr int64_t kPrefetchBytes = 2048;

// Prefetches n elements.
template <typename Element>
inline void Prefetch(const Element* x, int64_t n) {
  const char* bytes = reinterpret_cast<const char*>(x);
  for (int64_t i = 0; i < n * static_cast<int64_t>(sizeof(Element)); i += 64) {
    __builtin_prefetch(bytes + i);
  }
}

// Adds four rows at a time, so that accumulators are loaded and stored once per four rows.
template <typename Policy, typename Element, typename Accumulator>
inline void AddRows(const Element* x, int64_t rows, int64_t row_stride, int64_t n, int64_t stride,
                    Accumulator* accumulators) {
  // The distance in rows of prefetches.
  int64_t ahead = rows;
  if (stride == 1 && rows >= 8) {
    const int64_t row_bytes = std::max<int64_t>(1, n * static_cast<int64_t>(sizeof(Element)));
    ahead = 4 * (1 + kPrefetchBytes / (4 * row_bytes));
  }
  for (; rows >= 4; rows -= 4, x += 4 * row_stride) {
    if (rows > ahead) {
      for (int64_t r = 0; r < 4; ++r) Prefetch(x + (ahead + r) * row_stride, n);
    }
    for (int64_t j = 0; j < n; ++j) {
      const Element* element = x + j * stride;
      Accumulator a = accumulators[j];
      Policy::Add(element[0], &a);
      Policy::Add(element[row_stride], &a);
      Policy::Add(element[2 * row_stride], &a);
      Policy::Add(element[3 * row_stride], &a);
      accumulators[j] = a;
    }
  }
  for (; rows > 0; --rows, x += row_stride) {
    for (int64_t j = 0; j < n; ++j) Policy::Add(x[j * stride], &accumulators[j]);
  }
}

template <typename Policy>
void AddContiguousRows(const typename Policy::Element* x, int64_t rows, int64_t row_stride,
                       int64_t n, typename Policy::Accumulator* accumulators) {
  AddRows<Policy>(x, rows, row_stride, n, 1, accumulators);
}

}  // namespace internal

// Returns the Reducer of a Policy. The Policy defines
//   using Element, using Accumulator   (of a part, if elements have several parts)
//   static Accumulator Nothing();
//   static void Add(Element x, Accumulator* a);
//   static void Merge(const Accumulator& from, Accumulator* a);
//   static Element Finish(const Accumulator& a, int64_t count);
// kRows adds rows of contiguous elements, and may use vectors.
template <typename Policy, auto kRows = internal::AddContiguousRows<Policy>>
constexpr Reducer MakeReducer(int parts = 1) {
  using Element = typename Policy::Element;
  using Accumulator = typename Policy::Accumulator;
  static_assert(sizeof(Accumulator) <= Reducer::kMaxAccumulatorSize);
  return {sizeof(Element),
          sizeof(Accumulator),
          parts,
          [](int64_t n, void* accumulators) {
            auto* a = static_cast<Accumulator*>(accumulators);
            for (int64_t j = 0; j < n; ++j) a[j] = Policy::Nothing();
          },
          [](const void* x, int64_t rows, int64_t row_stride, int64_t n, int64_t stride,
             void* accumulators) {
            const auto* elements = static_cast<const Element*>(x);
            auto* a = static_cast<Accumulator*>(accumulators);
            if (stride == 1) {
              kRows(elements, rows, row_stride, n, a);
            } else {
              internal::AddRows<Policy>(elements, rows, row_stride, n, stride, a);
            }
          },
          [](const void* from, int64_t n, void* accumulators) {
            auto* a = static_cast<Accumulator*>(accumulators);
            const auto* b = static_cast<const Accumulator*>(from);
            for (int64_t j = 0; j < n; ++j) Policy::Merge(b[j], &a[j]);
          },
          [](const void* accumulators, int64_t count, int64_t n, void* out) {
            const auto* a = static_cast<const Accumulator*>(accumulators);
            auto* result = static_cast<Element*>(out);
            for (int64_t j = 0; j < n; ++j) result[j] = Policy::Finish(a[j], count);
          }};
}

// Make returns the Reducer for an element type.
template <Reducer (*Make)(DataType)>
class ReductionKernel : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    reducer_ = Make(construction.output_type(0));
    return construction.GetAttr("keep_dims", &keep_dims_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    return Reduce(ctx, reducer_, keep_dims_);
  }

 protected:
  bool keep_dims() const { return keep_dims_; }

 private:
  Reducer reducer_ = {};
  bool keep_dims_ = false;
};

// Registers the definition of a reduction op. `alias` may be empty. `types` is the set of allowed
// types T, in the syntax of specs. If `types` is empty, the op reduces bool.
void RegisterReductionOp(Registry& registry, absl::string_view op, absl::string_view alias,
                         absl::string_view types, absl::string_view doc);

}  // namespace gradflow

#endif  // GRADFLOW_OPS_MATH_REDUCTION_H_
