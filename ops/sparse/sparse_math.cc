// Arithmetic of sparse tensors: sums, products, maxima and reductions.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/ops/common/accumulate.h"
#include "gradflow/ops/common/element_copy.h"
#include "gradflow/ops/common/indices.h"
#include "gradflow/ops/common/strided_copy.h"
#include "gradflow/ops/sparse/sparse_inputs.h"
#include "gradflow/proto/node_def.pb.h"

namespace gradflow::sparse_math {
namespace {

char* Element(Tensor* tensor, int64_t i) {
  return static_cast<char*>(tensor->raw_data()) + i * DataTypeSize(tensor->dtype());
}
const char* Element(const Tensor& tensor, int64_t i) {
  return static_cast<const char*>(tensor.raw_data()) + i * DataTypeSize(tensor.dtype());
}

// Combines element `to_at` with element `from_at`.
void Combine(AccumulateFn fn, Tensor* to, int64_t to_at, const Tensor& from, int64_t from_at) {
  fn(Element(to, to_at), 1, Element(from, from_at), 1, 1);
}

// Returns an error if any element of an integer tensor is 0.
absl::Status CheckDivisors(const Tensor& divisors) {
  if (!DataTypeIsInteger(divisors.dtype())) return absl::OkStatus();
  bool has_zero = false;
  DispatchType(IntegerTypes(), divisors.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto elements = divisors.span<T>();
    has_zero = std::find(elements.begin(), elements.end(), T(0)) != elements.end();
  });
  return has_zero ? errors::InvalidArgument("dense must not contain 0 if integers are divided")
                  : absl::OkStatus();
}

// ---- SparseDenseCwiseAdd, SparseDenseCwiseMul, SparseDenseCwiseDiv ----

absl::Status CwiseShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSparseShapes(c, 0, 1, 2));
  c.set_output(0, PartialTensorShape({std::max(c.Dim(0, 0), c.Dim(1, 0))}));
  return absl::OkStatus();
}

class CwiseKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    const std::string& op = construction.def().op();
    accumulation_ = op == "SparseDenseCwiseAdd"   ? Accumulation::kAdd
                    : op == "SparseDenseCwiseMul" ? Accumulation::kMul
                                                  : Accumulation::kDiv;
    fn_ = FindAccumulation(accumulation_, construction.output_type(0));
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const SparseInput in,
                              ReadSparse(ctx, "sp_", SparseOrder::kAny, 0, 1, 2));
    const Tensor& dense = ctx.input(3);
    if (dense.dtype() != in.values->dtype()) {
      return errors::InvalidArgument("dense must have the type of sp_values");
    }
    // The dense tensor is broadcast to the shape of the sparse tensor. The sparse tensor is not
    // broadcast.
    DimVector strides(in.rank, 0);
    bool fits = dense.dims() <= in.rank;
    int64_t stride = 1;
    for (int d = dense.dims() - 1; d >= 0 && fits; --d) {
      const int to = d + in.rank - dense.dims();
      fits = dense.dim_size(d) == 1 || dense.dim_size(d) == in.shape.dim_size(to);
      if (dense.dim_size(d) > 1) strides[to] = stride;
      // The product of some sizes may overflow if another size is 0.
      stride = dense.NumElements() == 0 ? 0 : stride * dense.dim_size(d);
    }
    if (!fits) {
      return errors::InvalidArgument("dense must broadcast to the shape of the sparse tensor, ",
                                     in.shape.DebugString(), ", but has shape ",
                                     dense.shape().DebugString());
    }
    if (accumulation_ == Accumulation::kDiv) GRADFLOW_RETURN_IF_ERROR(CheckDivisors(dense));
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {in.size}, &output));
    ParallelFor(ctx, in.size, BlockSizeForCost(5 + 3.0 * in.rank), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t at = 0;
        for (int d = 0; d < in.rank; ++d) at += in.index(i)[d] * strides[d];
        CopyElements(*in.values, i, 1, output, i);
        Combine(fn_, output, i, dense, at);
      }
    });
    return absl::OkStatus();
  }

 private:
  Accumulation accumulation_ = Accumulation::kAdd;
  AccumulateFn fn_ = nullptr;
};

// ---- SparseTensorDenseAdd ----

absl::Status TensorDenseAddShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSparseShapes(c, 0, 1, 2));
  c.set_output(0, c.input(3));
  return absl::OkStatus();
}

absl::Status TensorDenseAdd(KernelContext& ctx) {
  const Tensor& b = ctx.input(3);
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "a_indices", 2));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(2, "a_shape", TensorShape({b.dims()})));
  const int64_t size = ctx.input(0).dim_size(0);
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(0, "a_indices", TensorShape({size, b.dims()})));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(1, "a_values", TensorShape({size})));
  if (ctx.input_dtype(1) != b.dtype()) {
    return errors::InvalidArgument("a_values and b must have the same type");
  }
  const IndexReader shape(ctx.input(2));
  const IndexReader indices(ctx.input(0));
  for (int d = 0; d < b.dims(); ++d) {
    if (shape[d] != b.dim_size(d)) {
      return errors::InvalidArgument("b must have the shape of the sparse tensor, whose dimension ",
                                     d, " is ", shape[d], ", but has shape ",
                                     b.shape().DebugString());
    }
  }
  for (int64_t i = 0; i < size * b.dims(); ++i) {
    const int64_t d = i % b.dims();
    if (indices[i] < 0 || indices[i] >= shape[d]) {
      return errors::InvalidArgument("a_indices[", i / b.dims(), ",", d, "] is ", indices[i],
                                     ", but the dimension is ", shape[d]);
    }
  }
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.ForwardInputOrAllocateOutput(3, 0, b.shape(), &output));
  if (output->raw_data() != b.raw_data()) CopyElements(b, 0, b.NumElements(), output, 0);
  const AccumulateFn add = FindAccumulation(Accumulation::kAdd, b.dtype());
  for (int64_t i = 0; i < size; ++i) {
    int64_t at = 0;
    for (int d = 0; d < b.dims(); ++d) at = at * b.dim_size(d) + indices[i * b.dims() + d];
    Combine(add, output, at, ctx.input(1), i);
  }
  return absl::OkStatus();
}

// ---- Reductions ----

// Returns true for each dimension that `axes`, input 3, reduces.
absl::StatusOr<std::vector<bool>> ReducedDims(const Tensor& axes, int rank) {
  std::vector<bool> reduced(rank);
  const IndexReader reader(axes);
  for (int64_t k = 0; k < axes.NumElements(); ++k) {
    GRADFLOW_ASSIGN_OR_RETURN(const int axis, CanonicalAxis("reduction_axes", reader[k], rank));
    reduced[axis] = true;
  }
  return reduced;
}

absl::Status ReduceShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSparseShapes(c, 0, 1, 2));
  bool keep_dims = false;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("keep_dims", &keep_dims));
  const PartialTensorShape in = c.input_as_shape(2);
  const Tensor* const axes = c.input_tensor(3);
  const bool known = axes != nullptr && !in.unknown_rank();
  DimVector dims;
  if (known) {
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<bool> reduced, ReducedDims(*axes, in.dims()));
    for (int d = 0; d < in.dims(); ++d) {
      if (!reduced[d] || keep_dims) dims.push_back(reduced[d] ? 1 : in.dim_size(d));
    }
  }
  if (c.num_outputs() == 1) {
    if (known) c.set_output(0, PartialTensorShape(dims));
    return absl::OkStatus();
  }
  const int64_t rank = known ? static_cast<int64_t>(dims.size()) : -1;
  c.set_output(0, PartialTensorShape({-1, rank}));
  c.set_output(1, PartialTensorShape({-1}));
  c.set_output(2, PartialTensorShape({rank}));
  return absl::OkStatus();
}

template <bool IsMax, bool IsSparse>
class ReduceKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    fn_ = FindAccumulation(IsMax ? Accumulation::kMax : Accumulation::kAdd,
                           construction.input_type(1));
    return construction.GetAttr("keep_dims", &keep_dims_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const SparseInput in,
                              ReadSparse(ctx, "input_", SparseOrder::kAny, 0, 1, 2));
    if (ctx.input(3).dims() > 1) {
      return errors::InvalidArgument("reduction_axes must be a scalar or a vector, but has shape ",
                                     ctx.input(3).shape().DebugString());
    }
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<bool> reduced, ReducedDims(ctx.input(3), in.rank));
    DimVector dims;
    DimVector strides(in.rank, 0);
    for (int d = 0; d < in.rank; ++d) {
      if (!reduced[d] || keep_dims_) dims.push_back(reduced[d] ? 1 : in.shape.dim_size(d));
    }
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims));
    int64_t stride = 1;
    for (int d = in.rank - 1; d >= 0; --d) {
      if (reduced[d]) continue;
      strides[d] = stride;
      stride = shape.num_elements() == 0 ? 0 : stride * in.shape.dim_size(d);
    }
    // The values as pairs (place in the result, index of the value), sorted.
    Tensor sorted;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {in.size, 2}, &sorted));
    auto* const values = reinterpret_cast<Value*>(sorted.raw_data());
    for (int64_t i = 0; i < in.size; ++i) {
      int64_t place = 0;
      for (int d = 0; d < in.rank; ++d) place += in.index(i)[d] * strides[d];
      values[i] = {place, i};
    }
    const auto less = [](const Value& a, const Value& b) {
      return a.place != b.place ? a.place < b.place : a.position < b.position;
    };
    if (!std::is_sorted(values, values + in.size, less)) {
      std::sort(values, values + in.size, less);
    }
    if (ctx.ShouldStop()) return StoppedError();
    if (!IsSparse) {
      Tensor* output = nullptr;
      GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
      SetZero(ctx.run(), output);
      Reduce(in, values, [&](int64_t place) { return std::make_pair(output, place); });
      return absl::OkStatus();
    }
    int64_t groups = 0;
    for (int64_t i = 0; i < in.size; ++i) {
      groups += i == 0 || values[i].place != values[i - 1].place ? 1 : 0;
    }
    const int rank = shape.dims();
    Tensor* indices = nullptr;
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(AllocateSparse(ctx, 0, 1, groups, rank, 0, &indices, &output));
    GRADFLOW_RETURN_IF_ERROR(SetShapeOutput(ctx, 2, dims));
    int64_t next = 0;
    Reduce(in, values, [&](int64_t place) {
      int64_t rest = place;
      for (int d = rank - 1; d >= 0; --d) {
        indices->span<int64_t>()[next * rank + d] = rest % dims[d];
        rest /= dims[d];
      }
      return std::make_pair(output, next++);
    });
    return absl::OkStatus();
  }

 private:
  struct Value {
    int64_t place;
    int64_t position;
  };

  // Reduces the values of each place. `target` returns the element of the result.
  template <typename Target>
  void Reduce(const SparseInput& in, const Value* values, const Target& target) const {
    std::pair<Tensor*, int64_t> to;
    for (int64_t i = 0; i < in.size; ++i) {
      if (i == 0 || values[i].place != values[i - 1].place) {
        to = target(values[i].place);
        CopyElements(*in.values, values[i].position, 1, to.first, to.second);
      } else {
        Combine(fn_, to.first, to.second, *in.values, values[i].position);
      }
    }
  }

  AccumulateFn fn_ = nullptr;
  bool keep_dims_ = false;
};

// ---- Sums of two sparse tensors ----

absl::Status CheckSameDims(const SparseInput& a, const SparseInput& b) {
  if (a.shape == b.shape) return absl::OkStatus();
  return errors::InvalidArgument("both tensors must have the same shape, but have ",
                                 a.shape.DebugString(), " and ", b.shape.DebugString());
}

// Calls fn(i, j) for each index of the union of two sorted lists, in order: i is the position in a,
// j the position in b, or -1 if the list lacks the index.
template <typename Fn>
void Merge(const SparseInput& a, const SparseInput& b, Fn&& fn) {
  int64_t i = 0;
  int64_t j = 0;
  while (i < a.size || j < b.size) {
    int order = 0;
    if (i == a.size) {
      order = 1;
    } else if (j == b.size) {
      order = -1;
    } else {
      const auto x = a.index(i);
      const auto y = b.index(j);
      order = std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end()) ? -1
              : x == y                                                             ? 0
                                                                                   : 1;
    }
    fn(order <= 0 ? i : -1, order >= 0 ? j : -1);
    i += order <= 0 ? 1 : 0;
    j += order >= 0 ? 1 : 0;
  }
}

void CopyIndex(const SparseInput& a, int64_t i, const SparseInput& b, int64_t j, Tensor* to,
               int64_t at) {
  const auto index = i >= 0 ? a.index(i) : b.index(j);
  std::copy(index.begin(), index.end(), to->span<int64_t>().begin() + at * a.rank);
}

absl::Status AddShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSparseShapes(c, 0, 1, 2));
  GRADFLOW_RETURN_IF_ERROR(CheckSparseShapes(c, 3, 4, 5));
  GRADFLOW_RETURN_IF_ERROR(c.CheckSameShape(2, 5));
  const int64_t rank = std::max({c.Dim(0, 1), c.Dim(2, 0), c.Dim(3, 1), c.Dim(5, 0)});
  c.set_output(0, PartialTensorShape({-1, rank}));
  c.set_output(1, PartialTensorShape({-1}));
  if (c.num_outputs() == 3) {
    GRADFLOW_RETURN_IF_ERROR(c.CheckRank(6, 0));
    c.set_output(2, PartialTensorShape({rank}));
  }
  return absl::OkStatus();
}

// Returns true if the magnitude of element i is at least the threshold.
bool ReachesThreshold(const Tensor& sums, int64_t i, const Tensor& threshold) {
  bool reaches = true;
  DispatchType(NumberTypes(), sums.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T sum = sums.span<T>()[i];
    if constexpr (kIsComplex<T>) {
      using Part = typename T::value_type;
      reaches = std::abs(sum) >= threshold.span<Part>()[0];
    } else if constexpr (std::is_integral_v<T>) {
      // The magnitude of the smallest number is the number itself, as in TensorFlow.
      using U = std::make_unsigned_t<T>;
      const T magnitude = sum < 0 ? static_cast<T>(U{0} - static_cast<U>(sum)) : sum;
      reaches = magnitude >= threshold.span<T>()[0];
    } else {
      reaches = std::abs(static_cast<double>(sum)) >= static_cast<double>(threshold.span<T>()[0]);
    }
  });
  return reaches;
}

absl::Status Add(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const SparseInput a,
                            ReadSparse(ctx, "a_", SparseOrder::kSorted, 0, 1, 2));
  GRADFLOW_ASSIGN_OR_RETURN(const SparseInput b,
                            ReadSparse(ctx, "b_", SparseOrder::kSorted, 3, 4, 5));
  GRADFLOW_RETURN_IF_ERROR(CheckSameDims(a, b));
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(6, "thresh"));
  const DataType dtype = a.values->dtype();
  const DataType real = dtype == DT_COMPLEX64    ? DT_FLOAT
                        : dtype == DT_COMPLEX128 ? DT_DOUBLE
                                                 : dtype;
  if (b.values->dtype() != dtype || ctx.input_dtype(6) != real) {
    return errors::InvalidArgument("a_values and b_values must have one type, and thresh the type ",
                                   DataTypeString(real));
  }
  const AccumulateFn add = FindAccumulation(Accumulation::kAdd, dtype);
  // The sums, without the sums that are below the threshold.
  Tensor sums;
  Tensor pairs;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(dtype, {a.size + b.size}, &sums));
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {a.size + b.size, 2}, &pairs));
  const auto pair = pairs.span<int64_t>();
  int64_t count = 0;
  Merge(a, b, [&](int64_t i, int64_t j) {
    CopyElements(i >= 0 ? *a.values : *b.values, i >= 0 ? i : j, 1, &sums, count);
    if (i >= 0 && j >= 0) Combine(add, &sums, count, *b.values, j);
    // Values that only one tensor has are kept, as in TensorFlow.
    if (i >= 0 && j >= 0 && !ReachesThreshold(sums, count, ctx.input(6))) return;
    pair[2 * count] = i;
    pair[2 * count + 1] = j;
    ++count;
  });
  Tensor* indices = nullptr;
  Tensor* values = nullptr;
  GRADFLOW_RETURN_IF_ERROR(AllocateSparse(ctx, 0, 1, count, a.rank, 0, &indices, &values));
  GRADFLOW_RETURN_IF_ERROR(SetShapeOutput(ctx, 2, a.shape.dim_sizes().subspan(0)));
  for (int64_t k = 0; k < count; ++k) CopyIndex(a, pair[2 * k], b, pair[2 * k + 1], indices, k);
  CopyElements(sums, 0, count, values, 0);
  return absl::OkStatus();
}

absl::Status AddGradShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 1));
  for (int i = 1; i < 4; ++i) GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 2));
  c.set_output(0, PartialTensorShape({c.Dim(1, 0)}));
  c.set_output(1, PartialTensorShape({c.Dim(2, 0)}));
  return absl::OkStatus();
}

absl::Status AddGrad(KernelContext& ctx) {
  const Tensor& grad = ctx.input(0);
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(0, "backprop_val_grad"));
  const char* const names[] = {"", "a_indices", "b_indices", "sum_indices"};
  for (int i = 1; i < 4; ++i) GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(i, names[i], 2));
  const int64_t rank = ctx.input(3).dim_size(1);
  const int64_t size = ctx.input(3).dim_size(0);
  for (int i = 1; i < 3; ++i) {
    GRADFLOW_RETURN_IF_ERROR(
        ctx.CheckShape(i, names[i], TensorShape({ctx.input(i).dim_size(0), rank})));
  }
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(0, "backprop_val_grad", TensorShape({size})));
  const auto sums = ctx.input(3).span<int64_t>();
  for (int i = 1; i < 3; ++i) {
    const auto indices = ctx.input(i).span<int64_t>();
    const int64_t count = ctx.input(i).dim_size(0);
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(i - 1, {count}, &output));
    SetZero(ctx.run(), output);
    // Both lists are sorted. The second list lacks the sums below the threshold.
    int64_t s = 0;
    for (int64_t k = 0; k < count && s < size; ++k) {
      const auto index = indices.subspan(k * rank, rank);
      while (s < size) {
        const auto sum = sums.subspan(s * rank, rank);
        if (!std::lexicographical_compare(sum.begin(), sum.end(), index.begin(), index.end())) {
          if (sum == index) CopyElements(grad, s, 1, output, k);
          break;
        }
        ++s;
      }
    }
  }
  return absl::OkStatus();
}

class ExtremumKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    fn_ = FindAccumulation(
        construction.def().op() == "SparseSparseMaximum" ? Accumulation::kMax : Accumulation::kMin,
        construction.output_type(1));
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const SparseInput a,
                              ReadSparse(ctx, "a_", SparseOrder::kSorted, 0, 1, 2));
    GRADFLOW_ASSIGN_OR_RETURN(const SparseInput b,
                              ReadSparse(ctx, "b_", SparseOrder::kSorted, 3, 4, 5));
    GRADFLOW_RETURN_IF_ERROR(CheckSameDims(a, b));
    if (a.values->dtype() != b.values->dtype()) {
      return errors::InvalidArgument("a_values and b_values must have the same type");
    }
    int64_t count = 0;
    Merge(a, b, [&](int64_t, int64_t) { ++count; });
    Tensor* indices = nullptr;
    Tensor* values = nullptr;
    GRADFLOW_RETURN_IF_ERROR(AllocateSparse(ctx, 0, 1, count, a.rank, 0, &indices, &values));
    // A value that is missing is 0.
    Tensor zero;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(a.values->dtype(), {1}, &zero));
    SetZero(ctx.run(), &zero);
    int64_t next = 0;
    Merge(a, b, [&](int64_t i, int64_t j) {
      CopyIndex(a, i, b, j, indices, next);
      CopyElements(i >= 0 ? *a.values : zero, std::max<int64_t>(i, 0), 1, values, next);
      Combine(fn_, values, next, j >= 0 ? *b.values : zero, std::max<int64_t>(j, 0));
      ++next;
    });
    return absl::OkStatus();
  }

 private:
  AccumulateFn fn_ = nullptr;
};

// ---- SparseTensorDenseMatMul ----

absl::Status MatMulShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSparseShapes(c, 0, 1, 2));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(3, 2));
  bool adjoint_a = false;
  bool adjoint_b = false;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("adjoint_a", &adjoint_a));
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("adjoint_b", &adjoint_b));
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape a,
                            c.ShapeFromInput(2, /*allow_unknown=*/true));
  const bool known = !a.unknown_rank();
  GRADFLOW_RETURN_IF_ERROR(CheckRank("the sparse matrix", a, 2));
  GRADFLOW_RETURN_IF_ERROR(
      MergeDims("the sparse matrix", a, adjoint_a ? 0 : 1, "b", c.input(3), adjoint_b ? 1 : 0)
          .status());
  c.set_output(0, PartialTensorShape(
                      {known ? a.dim_size(adjoint_a ? 1 : 0) : -1, c.Dim(3, adjoint_b ? 0 : 1)}));
  return absl::OkStatus();
}

// Returns the conjugate of a complex number if `conjugates`.
template <typename T>
T Conjugate(T x, bool conjugates) {
  if constexpr (kIsComplex<T>) return conjugates ? std::conj(x) : x;
  return x;
}

using MatMulTypes = TypeList<bfloat16, half, float, double, int32_t, complex64, complex128>;

// The product of a sparse matrix, given by its entries, and a dense matrix. Each element is the sum
// in the order of the entries, on any number of threads.
template <typename T, typename Index>
class Product {
 public:
  // 16-bit floats are summed in float.
  using Sum = std::conditional_t<kIsFloat16<T>, float,
                                 std::conditional_t<std::is_same_v<T, int32_t>, uint32_t, T>>;

  // `b` has the rows of the second factor. `columns` is the number of their elements.
  Product(const Tensor& indices, const Tensor& values, bool adjoint, const T* b, Sum* sums,
          int64_t columns)
      : indices_(static_cast<const Index*>(indices.raw_data())),
        values_(values.span<T>()),
        size_(values.NumElements()),
        adjoint_(adjoint),
        b_(b),
        sums_(sums),
        columns_(columns) {}

  // Sets *sorted to whether the rows of the product do not decrease. Returns INVALID_ARGUMENT if an
  // index is not within `dims`, the shape of the sparse matrix.
  absl::Status CheckIndices(const KernelContext& ctx, absl::Span<const int64_t> dims,
                            bool* sorted) const {
    FirstBadIndex bad;
    FirstBadIndex unsorted;
    ParallelFor(ctx, size_, BlockSizeForCost(1), [&](int64_t begin, int64_t end) {
      bool within = true;
      bool increases = true;
      for (int64_t i = begin; i < end; ++i) {
        within &= IsWithin(i, dims);
        increases &= i == 0 || Row(i) >= Row(i - 1);
      }
      if (!increases) unsorted.Found(begin);
      if (within) return;
      int64_t i = begin;
      while (IsWithin(i, dims)) ++i;
      bad.Found(i);
    });
    *sorted = !unsorted.any();
    if (!bad.any()) return absl::OkStatus();
    const int64_t i = bad.first();
    const int column = IsInRange(indices_[2 * i], dims[0]) ? 1 : 0;
    return errors::InvalidArgument("a_indices[", i, ",", column, "] is ", indices_[2 * i + column],
                                   ", but the dimension is ", dims[column]);
  }

  // Adds the products of all entries to the sums. REQUIRES: the indices have been checked
  void AddAll(const KernelContext& ctx, bool sorted) const {
    if (sorted) {
      // A block ends where a row ends, so no two blocks write to one row.
      const double cost = 3 + 0.3 * static_cast<double>(columns_);
      ParallelFor(ctx, size_, BlockSizeForCost(cost), [&](int64_t begin, int64_t end) {
        Add(ctx, RowStart(begin), RowStart(end), 0, columns_);
      });
      return;
    }
    // Each block of columns reads all entries.
    constexpr int64_t kMinWidth = 64;
    const double cost = static_cast<double>(size_);
    ParallelFor(ctx, columns_, std::max(kMinWidth, BlockSizeForCost(cost)),
                [&](int64_t begin, int64_t end) { Add(ctx, 0, size_, begin, end); });
  }

 private:
  // A negative index is a large unsigned number.
  static bool IsInRange(Index index, int64_t size) {
    return static_cast<uint64_t>(index) < static_cast<uint64_t>(size);
  }
  bool IsWithin(int64_t i, absl::Span<const int64_t> dims) const {
    return IsInRange(indices_[2 * i], dims[0]) && IsInRange(indices_[2 * i + 1], dims[1]);
  }
  // The row of the product, and of the second factor, of an entry.
  Index Row(int64_t i) const { return indices_[2 * i + (adjoint_ ? 1 : 0)]; }
  Index Inner(int64_t i) const { return indices_[2 * i + (adjoint_ ? 0 : 1)]; }
  // Returns the first entry from i on with which a row begins.
  int64_t RowStart(int64_t i) const {
    while (i > 0 && i < size_ && Row(i) == Row(i - 1)) ++i;
    return i;
  }

  // Adds the products of entries [begin, end) to columns [first, last).
  void Add(const KernelContext& ctx, int64_t begin, int64_t end, int64_t first,
           int64_t last) const {
    if (columns_ == 1) {
      for (int64_t i = begin; i < end; ++i) {
        if ((i & 0xfff) == 0xfff && ctx.ShouldStop()) return;
        sums_[Row(i)] +=
            static_cast<Sum>(Conjugate(values_[i], adjoint_)) * static_cast<Sum>(b_[Inner(i)]);
      }
      return;
    }
    // The rows of the second factor are far apart, so the processor does not fetch them early.
    constexpr int64_t kAhead = 8;
    for (int64_t i = begin; i < end; ++i) {
      if ((i & 0xfff) == 0xfff && ctx.ShouldStop()) return;
      if (i + kAhead < end) __builtin_prefetch(b_ + Inner(i + kAhead) * columns_ + first);
      const Sum a = static_cast<Sum>(Conjugate(values_[i], adjoint_));
      Sum* __restrict const to = sums_ + Row(i) * columns_;
      const T* __restrict const from = b_ + Inner(i) * columns_;
      for (int64_t c = first; c < last; ++c) to[c] += a * static_cast<Sum>(from[c]);
    }
  }

  const Index* const indices_;
  const absl::Span<const T> values_;
  const int64_t size_;
  const bool adjoint_;
  const T* const b_;
  Sum* const sums_;
  const int64_t columns_;
};

// Returns the adjoint of a matrix.
template <typename T>
absl::StatusOr<Tensor> Adjoint(KernelContext& ctx, const Tensor& matrix) {
  const int64_t rows = matrix.dim_size(0);
  const int64_t columns = matrix.dim_size(1);
  Tensor adjoint;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(matrix.dtype(), {columns, rows}, &adjoint));
  const auto from = matrix.span<T>();
  const auto to = adjoint.span<T>();
  ParallelFor(ctx, columns, BlockSizeForCost(2.0 * static_cast<double>(rows)),
              [&](int64_t begin, int64_t end) {
                for (int64_t r = 0; r < rows; ++r) {
                  for (int64_t c = begin; c < end; ++c) {
                    to[c * rows + r] = Conjugate(from[r * columns + c], true);
                  }
                }
              });
  return adjoint;
}

class SparseDenseMatMulKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("adjoint_a", &adjoint_a_));
    return construction.GetAttr("adjoint_b", &adjoint_b_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    const Tensor& b = ctx.input(3);
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "a_indices", 2));
    const int64_t size = ctx.input(0).dim_size(0);
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(0, "a_indices", TensorShape({size, 2})));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(1, "a_values", TensorShape({size})));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckShape(2, "a_shape", TensorShape({2})));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(3, "b", 2));
    GRADFLOW_ASSIGN_OR_RETURN(const DimVector a, ctx.Ints(2, "a_shape"));
    const int64_t rows = a[adjoint_a_ ? 1 : 0];
    const int64_t inner = a[adjoint_a_ ? 0 : 1];
    if (inner != b.dim_size(adjoint_b_ ? 1 : 0)) {
      return errors::InvalidArgument("a matrix with ", inner, " columns cannot be multiplied by a ",
                                     "matrix with ", b.dim_size(adjoint_b_ ? 1 : 0), " rows");
    }
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape,
                              TensorShape::Make({rows, b.dim_size(adjoint_b_ ? 0 : 1)}));
    if (ctx.input_dtype(1) != b.dtype()) {
      return errors::InvalidArgument("a_values and b must have the same type");
    }
    absl::Status status;
    DispatchType(MatMulTypes(), b.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      status = ctx.input_dtype(0) == DT_INT32 ? Multiply<T, int32_t>(ctx, a, shape)
                                              : Multiply<T, int64_t>(ctx, a, shape);
    });
    return status;
  }

 private:
  template <typename T, typename Index>
  absl::Status Multiply(KernelContext& ctx, absl::Span<const int64_t> a,
                        const TensorShape& shape) const {
    using Sum = typename Product<T, Index>::Sum;
    Tensor b = ctx.input(3);
    if (adjoint_b_) {
      GRADFLOW_ASSIGN_OR_RETURN(b, Adjoint<T>(ctx, b));
    }
    Tensor* product = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &product));
    Tensor sums = *product;
    constexpr bool kInPlace = sizeof(Sum) == sizeof(T);
    if (!kInPlace) GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_FLOAT, shape, &sums));
    SetZero(ctx.run(), &sums);
    auto* const sum = static_cast<Sum*>(sums.raw_data());
    const Product<T, Index> entries(ctx.input(0), ctx.input(1), adjoint_a_, b.span<T>().data(), sum,
                                    shape.dim_size(1));
    bool sorted = false;
    GRADFLOW_RETURN_IF_ERROR(entries.CheckIndices(ctx, a, &sorted));
    if (ctx.ShouldStop()) return StoppedError();
    entries.AddAll(ctx, sorted);
    if constexpr (!kInPlace) {
      const auto out = product->span<T>();
      ParallelFor(ctx, shape.num_elements(), BlockSizeForCost(1), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) out[i] = static_cast<T>(sum[i]);
      });
    }
    return absl::OkStatus();
  }

  bool adjoint_a_ = false;
  bool adjoint_b_ = false;
};

// ---- SparseSoftmax ----

absl::Status SoftmaxShape(ShapeContext& c) { return CwiseShape(c); }

absl::Status Softmax(KernelContext& ctx) {
  GRADFLOW_ASSIGN_OR_RETURN(const SparseInput in,
                            ReadSparse(ctx, "sp_", SparseOrder::kAny, 0, 1, 2));
  if (in.rank < 2) {
    return errors::InvalidArgument("sp_shape must have at least 2 elements, but has ", in.rank);
  }
  GRADFLOW_ASSIGN_OR_RETURN(const Tensor order, SortedOrder(ctx, in));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {in.size}, &output));
  const auto position = order.span<int64_t>();
  const auto same_row = [&](int64_t i, int64_t j) {
    return in.index(position[i]).first(in.rank - 1) == in.index(position[j]).first(in.rank - 1);
  };
  DispatchType(TypeList<bfloat16, half, float, double>(), in.values->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using F = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const auto x = in.values->span<T>();
    const auto y = output->span<T>();
    for (int64_t begin = 0; begin < in.size;) {
      int64_t end = begin + 1;
      while (end < in.size && same_row(begin, end)) ++end;
      F most = static_cast<F>(x[position[begin]]);
      for (int64_t i = begin; i < end; ++i) most = std::max(most, static_cast<F>(x[position[i]]));
      F sum = 0;
      for (int64_t i = begin; i < end; ++i) {
        const F e = std::exp(static_cast<F>(x[position[i]]) - most);
        sum += e;
      }
      // The results are in row-major order.
      for (int64_t i = begin; i < end; ++i) {
        y[i] = static_cast<T>(std::exp(static_cast<F>(x[position[i]]) - most) / sum);
      }
      begin = end;
    }
  });
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  for (const char* op : {"SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv"}) {
    const absl::string_view name(op);
    const char* const what = name == "SparseDenseCwiseAdd"   ? "Adds a dense tensor to"
                             : name == "SparseDenseCwiseMul" ? "Multiplies by a dense tensor"
                                                             : "Divides by a dense tensor";
    registry.Op(op)
        .Group("sparse_ops")
        .Input("sp_indices: int64")
        .Input("sp_values: T")
        .Input("sp_shape: int64")
        .Input("dense: T")
        .Output("output: T")
        .Attr("T: numbertype")
        .Shape(CwiseShape)
        .Doc(absl::StrCat(what, R"( the values of a sparse tensor.

Elements of the dense tensor at other places have no effect.

sp_indices: The index of each value, a row of a matrix.
sp_values: The values, a vector.
sp_shape: The shape of the sparse tensor.
dense: The dense tensor, which is broadcast to the shape of the sparse one.
output: The new values.
T: The type of the values.)"));
    registry.Kernel(op, MakeKernel<CwiseKernel>).Types("T", AccumulationTypes(Accumulation::kMin));
  }
  registry.Op("SparseTensorDenseAdd")
      .Group("sparse_ops")
      .Input("a_indices: Tindices")
      .Input("a_values: T")
      .Input("a_shape: Tindices")
      .Input("b: T")
      .Output("output: T")
      .Attr("T: numbertype")
      .Attr("Tindices: {int32, int64}")
      .Shape(TensorDenseAddShape)
      .Doc(R"(Adds a sparse tensor to a dense one.

a_indices: The index of each value, a row of a matrix.
a_values: The values, a vector.
a_shape: The shape, which is the shape of `b`.
b: The dense tensor.
output: The sum, a dense tensor.
T: The type of the values.
Tindices: The type of the indices.)");
  registry.Kernel("SparseTensorDenseAdd", MakeFunctionKernel<TensorDenseAdd>)
      .Types("T", AccumulationTypes(Accumulation::kAdd));

  for (const bool is_max : {false, true}) {
    for (const bool is_sparse : {false, true}) {
      const std::string name =
          absl::StrCat("SparseReduce", is_max ? "Max" : "Sum", is_sparse ? "Sparse" : "");
      {
        Registry::OpRegistrar op = registry.Op(name);
        op.Group("sparse_ops")
            .Input("input_indices: int64")
            .Input("input_values: T")
            .Input("input_shape: int64")
            .Input("reduction_axes: int32");
        if (is_sparse) {
          op.Output("output_indices: int64")
              .Output("output_values: T")
              .Output("output_shape: int64");
        } else {
          op.Output("output: T");
        }
        op.Attr("keep_dims: bool = false")
            .Attr(is_max ? "T: realnumbertype" : "T: numbertype")
            .Shape(ReduceShape)
            .Doc(absl::StrCat(
                "Returns the ", is_max ? "maximum" : "sum",
                " of the values of a sparse tensor along dimensions.\n\n", "Places without a value",
                is_max ? " do not count" : " count as 0", ". A result without values ",
                is_sparse ? "has no index.\n\n" : "is 0.\n\n",
                "input_indices: The index of each value, a row of a matrix.\n"
                "input_values: The values, a vector.\n"
                "input_shape: The shape.\n"
                "reduction_axes: The dimensions; negative numbers count from the end. Empty for "
                "none.\n",
                is_sparse ? "output_indices: The indices of the result.\n"
                            "output_values: The values of the result.\n"
                            "output_shape: The shape of the result.\n"
                          : "output: The result, a dense tensor.\n",
                "keep_dims: If true, reduced dimensions remain with size 1.\n"
                "T: The type of the values."));
      }
      const KernelFactory factory = is_max ? (is_sparse ? MakeKernel<ReduceKernel<true, true>>
                                                        : MakeKernel<ReduceKernel<true, false>>)
                                           : (is_sparse ? MakeKernel<ReduceKernel<false, true>>
                                                        : MakeKernel<ReduceKernel<false, false>>);
      registry.Kernel(name, factory)
          .Types("T", AccumulationTypes(is_max ? Accumulation::kMax : Accumulation::kAdd));
    }
  }

  registry.Op("SparseAdd")
      .Group("sparse_ops")
      .Input("a_indices: int64")
      .Input("a_values: T")
      .Input("a_shape: int64")
      .Input("b_indices: int64")
      .Input("b_values: T")
      .Input("b_shape: int64")
      .Input("thresh: Treal")
      .Output("sum_indices: int64")
      .Output("sum_values: T")
      .Output("sum_shape: int64")
      .Attr("T: numbertype")
      .Attr("Treal: realnumbertype")
      .Shape(AddShape)
      .Doc(R"(Adds two sparse tensors of one shape.

a_indices: The indices of the first tensor, in row-major order.
a_values: Its values.
a_shape: Its shape.
b_indices: The indices of the second tensor, in row-major order.
b_values: Its values.
b_shape: Its shape.
thresh: A scalar. Sums of two values whose magnitude is smaller are left out.
sum_indices: The indices of the sum, in row-major order.
sum_values: The values of the sum.
sum_shape: The shape.
T: The type of the values.
Treal: The type of the magnitudes.)");
  DataTypeVector add_types;
  for (const DataType dtype : AccumulationTypes(Accumulation::kAdd)) add_types.push_back(dtype);
  registry.Kernel("SparseAdd", MakeFunctionKernel<Add>).Types("T", add_types);
  registry.Op("SparseAddGrad")
      .Group("sparse_ops")
      .Input("backprop_val_grad: T")
      .Input("a_indices: int64")
      .Input("b_indices: int64")
      .Input("sum_indices: int64")
      .Output("a_val_grad: T")
      .Output("b_val_grad: T")
      .Attr("T: numbertype")
      .Shape(AddGradShape)
      .Doc(R"(Returns the gradients of the values of SparseAdd.

backprop_val_grad: The gradient of the values of the sum.
a_indices: The indices of the first tensor.
b_indices: The indices of the second tensor.
sum_indices: The indices of the sum.
a_val_grad: The gradient of the values of the first tensor; 0 for sums that are left out.
b_val_grad: The gradient of the values of the second tensor.
T: The type of the values.)");
  registry.Kernel("SparseAddGrad", MakeFunctionKernel<AddGrad>).Types("T", add_types);
  for (const bool is_max : {false, true}) {
    const char* const op = is_max ? "SparseSparseMaximum" : "SparseSparseMinimum";
    registry.Op(op)
        .Group("sparse_ops")
        .Input("a_indices: int64")
        .Input("a_values: T")
        .Input("a_shape: int64")
        .Input("b_indices: int64")
        .Input("b_values: T")
        .Input("b_shape: int64")
        .Output("output_indices: int64")
        .Output("output_values: T")
        .Attr(is_max ? "T: realnumbertype" : "T: numbertype")
        .Shape(AddShape)
        .Doc(absl::StrCat("Returns the ", is_max ? "larger" : "smaller",
                          R"( values of two sparse tensors of one shape. A missing value is 0.

a_indices: The indices of the first tensor, in row-major order.
a_values: Its values.
a_shape: Its shape.
b_indices: The indices of the second tensor, in row-major order.
b_values: Its values.
b_shape: Its shape.
output_indices: The indices of either tensor, in row-major order.
output_values: The values.
T: The type of the values.)"));
    registry.Kernel(op, MakeKernel<ExtremumKernel>)
        .Types("T", AccumulationTypes(Accumulation::kMin));
  }
  registry.Op("SparseTensorDenseMatMul")
      .Group("sparse_ops")
      .Input("a_indices: Tindices")
      .Input("a_values: T")
      .Input("a_shape: int64")
      .Input("b: T")
      .Output("product: T")
      .Attr("T: type")
      .Attr("Tindices: {int32, int64} = DT_INT64")
      .Attr("adjoint_a: bool = false")
      .Attr("adjoint_b: bool = false")
      .Shape(MatMulShape)
      .Doc(R"(Multiplies a sparse matrix by a dense one.

a_indices: The row and column of each value.
a_values: The values, a vector.
a_shape: The shape of the sparse matrix.
b: The dense matrix.
product: The product, a dense matrix. Each element is a sum in the order of the values.
T: The type of the values.
Tindices: The type of the indices.
adjoint_a: If true, multiplies the adjoint of the sparse matrix.
adjoint_b: If true, multiplies by the adjoint of the dense matrix.)");
  registry.Kernel("SparseTensorDenseMatMul", MakeKernel<SparseDenseMatMulKernel>)
      .Types("T",
             {DT_BFLOAT16, DT_HALF, DT_FLOAT, DT_DOUBLE, DT_INT32, DT_COMPLEX64, DT_COMPLEX128});
  registry.Op("SparseSoftmax")
      .Group("sparse_ops")
      .Input("sp_indices: int64")
      .Input("sp_values: T")
      .Input("sp_shape: int64")
      .Output("output: T")
      .Attr("T: {half, float, double}")
      .Shape(SoftmaxShape)
      .Doc(R"(Returns the softmax of the values of each row of the last dimension.

Places without a value do not count.

sp_indices: The index of each value, a row of a matrix.
sp_values: The values, a vector.
sp_shape: The shape, of at least two dimensions.
output: The results, in the row-major order of the indices.
T: The type of the values.)");
  registry.Kernel("SparseSoftmax", MakeFunctionKernel<Softmax>);
}

}  // namespace gradflow::sparse_math
