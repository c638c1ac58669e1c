// SetSize, DenseToDenseSetOperation, DenseToSparseSetOperation and SparseToSparseSetOperation: the
// rows of the last dimension of a tensor are sets.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/memory_reservation.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/ops/sparse/sparse_inputs.h"
#include "gradflow/proto/node_def.pb.h"

namespace gradflow::sparse_sets {
namespace {

using SetTypes = TypeList<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, tstring>;

// An element of a set. Strings are borrowed from their tensor.
template <typename T>
using ViewOf = std::conditional_t<std::is_same_v<T, tstring>, absl::string_view, T>;

// The number of a set that does not exist.
constexpr int64_t kNoSet = std::numeric_limits<int64_t>::max();

// The sets of one argument: a dense tensor, or a sparse one whose sets may be missing.
struct SetsInput {
  const Tensor* values = nullptr;
  // The dimensions of the tensor. The last one holds the elements of a set.
  DimVector dims;
  bool is_sparse = false;
  SparseInput sparse;
  // The positions of the values of a sparse tensor in row-major order.
  Tensor order;

  int64_t size() const { return is_sparse ? sparse.size : values->NumElements(); }
};

absl::StatusOr<SetsInput> ReadSets(KernelContext& ctx, absl::string_view name, int first,
                                   bool is_sparse, bool validates) {
  SetsInput sets;
  sets.is_sparse = is_sparse;
  if (is_sparse) {
    GRADFLOW_ASSIGN_OR_RETURN(
        sets.sparse, ReadSparse(ctx, absl::StrCat(name, "_"),
                                validates ? SparseOrder::kSorted : SparseOrder::kAny, first,
                                first + 1, first + 2));
    sets.values = sets.sparse.values;
    sets.dims.assign(sets.sparse.shape.dim_sizes().begin(), sets.sparse.shape.dim_sizes().end());
    GRADFLOW_ASSIGN_OR_RETURN(sets.order, SortedOrder(ctx, sets.sparse));
  } else {
    sets.values = &ctx.input(first);
    sets.dims.assign(sets.values->shape().dim_sizes().begin(),
                     sets.values->shape().dim_sizes().end());
  }
  if (sets.dims.size() >= 2) return sets;
  return errors::InvalidArgument(name, " must have at least 2 dimensions, but has ",
                                 sets.dims.size());
}

// Visits the sets of an argument in row-major order. Sets are numbered in this order.
template <typename T>
class SetsReader {
 public:
  // `sets` must outlive the reader.
  explicit SetsReader(const SetsInput& sets) : sets_(sets), width_(sets.dims.back()) {}

  // Returns the number of the next set that has elements; kNoSet at the end.
  int64_t next() const {
    if (at_ == sets_.size()) return kNoSet;
    return sets_.is_sparse ? SetOf(at_) : at_ / width_;
  }
  // Stores the sorted elements of set `number` and moves to the next set. The set has no elements
  // unless it is next().
  void Take(int64_t number, std::vector<ViewOf<T>>* elements) {
    elements->clear();
    if (next() != number) return;
    const auto values = sets_.values->span<T>();
    if (sets_.is_sparse) {
      for (; at_ < sets_.size() && SetOf(at_) == number; ++at_) {
        elements->push_back(values[Position(at_)]);
      }
    } else {
      for (const int64_t end = at_ + width_; at_ < end; ++at_) elements->push_back(values[at_]);
    }
    std::sort(elements->begin(), elements->end());
    elements->erase(std::unique(elements->begin(), elements->end()), elements->end());
  }

 private:
  int64_t Position(int64_t i) const { return sets_.order.span<int64_t>()[i]; }
  int64_t SetOf(int64_t i) const {
    // A tensor with values has no dimension of size 0.
    return sets_.sparse.Position(Position(i)) / width_;
  }

  const SetsInput& sets_;
  const int64_t width_;
  // The next value.
  int64_t at_ = 0;
};

// ---- SetSize ----

absl::Status SetSizeShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSparseShapes(c, 0, 1, 2));
  PartialTensorShape shape = c.input_as_shape(2);
  if (shape.unknown_rank() || shape.dims() < 2) return UnknownShape(c);
  GRADFLOW_RETURN_IF_ERROR(shape.RemoveDimWithStatus(shape.dims() - 1));
  c.set_output(0, shape);
  return absl::OkStatus();
}

class SetSizeKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("validate_indices", &validates_);
  }
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const SetsInput sets,
                              ReadSets(ctx, "set", 0, /*is_sparse=*/true, validates_));
    DimVector dims = sets.dims;
    dims.pop_back();
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims));
    Tensor* sizes = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &sizes));
    const auto out = sizes->span<int32_t>();
    std::fill(out.begin(), out.end(), 0);
    absl::Status status;
    DispatchType(SetTypes(), sets.values->dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      MemoryReservation memory(ctx.allocator().get());
      status = memory.Set(static_cast<double>(sets.size()) * sizeof(ViewOf<T>), "a set");
      if (!status.ok()) return;
      std::vector<ViewOf<T>> elements;
      elements.reserve(sets.size());
      SetsReader<T> reader(sets);
      for (int64_t set = reader.next(); set != kNoSet; set = reader.next()) {
        reader.Take(set, &elements);
        out[set] = static_cast<int32_t>(elements.size());
      }
    });
    return status;
  }

 private:
  bool validates_ = true;
};

// ---- Set operations ----

// Returns the rank of argument 1 or 2; -1 if it is not known.
absl::StatusOr<int64_t> RankOf(ShapeContext& c, int first, bool is_sparse) {
  if (is_sparse) {
    GRADFLOW_RETURN_IF_ERROR(CheckSparseShapes(c, first, first + 1, first + 2));
    const int64_t rank = std::max(c.Dim(first, 1), c.Dim(first + 2, 0));
    if (rank < 0 || rank >= 2) return rank;
    return errors::InvalidArgument(c.input_name(first + 2), " must have at least 2 elements, but ",
                                   "has ", rank);
  }
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(first, 2));
  return c.input(first).unknown_rank() ? -1 : c.input(first).dims();
}

template <bool IsSparse1, bool IsSparse2>
absl::Status SetOperationShape(ShapeContext& c) {
  constexpr int kSecond = IsSparse1 ? 3 : 1;
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t rank1, RankOf(c, 0, IsSparse1));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t rank2, RankOf(c, kSecond, IsSparse2));
  if (rank1 >= 0 && rank2 >= 0 && rank1 != rank2) {
    return errors::InvalidArgument("Shape must be rank ", rank1, " but is rank ", rank2,
                                   ": set1 and set2 must have the same rank");
  }
  const int64_t rank = std::max(rank1, rank2);
  if (!IsSparse1 && !IsSparse2 && rank1 >= 0 && rank2 >= 0) {
    // The last dimensions may differ.
    PartialTensorShape groups1 = c.input(0);
    PartialTensorShape groups2 = c.input(1);
    groups1.set_dim(static_cast<int>(rank - 1), -1);
    groups2.set_dim(static_cast<int>(rank - 1), -1);
    GRADFLOW_RETURN_IF_ERROR(MergeShapes("set1", groups1, "set2", groups2).status());
  }
  c.set_output(0, PartialTensorShape({-1, rank}));
  c.set_output(1, PartialTensorShape({-1}));
  c.set_output(2, PartialTensorShape({rank}));
  return absl::OkStatus();
}

enum class SetOperation { kDifference, kReverseDifference, kIntersection, kUnion };

// Appends the result of an operation on two sorted sets.
template <typename View>
void Operate(SetOperation operation, const std::vector<View>& a, const std::vector<View>& b,
             std::vector<View>* result) {
  const auto to = std::back_inserter(*result);
  switch (operation) {
    case SetOperation::kDifference:
      std::set_difference(a.begin(), a.end(), b.begin(), b.end(), to);
      break;
    case SetOperation::kReverseDifference:
      std::set_difference(b.begin(), b.end(), a.begin(), a.end(), to);
      break;
    case SetOperation::kIntersection:
      std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), to);
      break;
    case SetOperation::kUnion:
      std::set_union(a.begin(), a.end(), b.begin(), b.end(), to);
      break;
  }
}

template <bool IsSparse1, bool IsSparse2>
class SetOperationKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("validate_indices", &validates_));
    std::string name;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("set_operation", &name));
    const std::string lower = absl::AsciiStrToLower(name);
    for (const auto& [known, operation] : kOperations) {
      if (lower != known) continue;
      operation_ = operation;
      return absl::OkStatus();
    }
    return errors::InvalidArgument(
        "set_operation must be a-b, b-a, intersection or union, but is '", errors::Printable(name),
        "'");
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const SetsInput a, ReadSets(ctx, "set1", 0, IsSparse1, validates_));
    GRADFLOW_ASSIGN_OR_RETURN(const SetsInput b,
                              ReadSets(ctx, "set2", IsSparse1 ? 3 : 1, IsSparse2, validates_));
    if (a.values->dtype() != b.values->dtype()) {
      return errors::InvalidArgument("both sets must have the same type");
    }
    if (a.dims.size() != b.dims.size() ||
        !std::equal(a.dims.begin(), a.dims.end() - 1, b.dims.begin())) {
      return errors::InvalidArgument(
          "set1 and set2 must have the same shape except for the last dimension, but have shapes ",
          PartialTensorShape(a.dims).DebugString(), " and ",
          PartialTensorShape(b.dims).DebugString());
    }
    absl::Status status;
    DispatchType(SetTypes(), a.values->dtype(),
                 [&](auto tag) { status = Combine<typename decltype(tag)::type>(ctx, a, b); });
    return status;
  }

 private:
  static constexpr std::pair<absl::string_view, SetOperation> kOperations[] = {
      {"a-b", SetOperation::kDifference},
      {"b-a", SetOperation::kReverseDifference},
      {"intersection", SetOperation::kIntersection},
      {"union", SetOperation::kUnion}};

  template <typename T>
  absl::Status Combine(KernelContext& ctx, const SetsInput& a, const SetsInput& b) const {
    using View = ViewOf<T>;
    // A set with elements in the result: its number, and the end of its elements.
    struct Set {
      int64_t number;
      int64_t end;
    };
    const double most = static_cast<double>(a.size()) + static_cast<double>(b.size());
    MemoryReservation memory(ctx.allocator().get());
    GRADFLOW_RETURN_IF_ERROR(memory.Set(most * (2 * sizeof(View) + sizeof(Set)), "sets"));
    std::vector<View> a_elements;
    std::vector<View> b_elements;
    std::vector<View> result;
    std::vector<Set> sets;
    result.reserve(a.size() + b.size());
    SetsReader<T> a_reader(a);
    SetsReader<T> b_reader(b);
    int64_t largest = 0;
    for (int64_t k = 0;; ++k) {
      if ((k & 0xfff) == 0xfff && ctx.ShouldStop()) return StoppedError();
      const int64_t number = std::min(a_reader.next(), b_reader.next());
      if (number == kNoSet) break;
      const auto begin = static_cast<int64_t>(result.size());
      a_reader.Take(number, &a_elements);
      b_reader.Take(number, &b_elements);
      Operate(operation_, a_elements, b_elements, &result);
      const auto end = static_cast<int64_t>(result.size());
      if (end == begin) continue;
      sets.push_back({number, end});
      largest = std::max(largest, end - begin);
    }
    double bytes = 0;
    if constexpr (std::is_same_v<T, tstring>) {
      for (const View& element : result) bytes += static_cast<double>(element.size());
    }
    DimVector dims = a.dims;
    dims.back() = largest;
    GRADFLOW_RETURN_IF_ERROR(TensorShape::Make(dims).status());
    const auto rank = static_cast<int>(dims.size());
    Tensor* indices = nullptr;
    Tensor* values = nullptr;
    GRADFLOW_RETURN_IF_ERROR(AllocateSparse(ctx, 0, 1, static_cast<int64_t>(result.size()), rank,
                                            bytes, &indices, &values));
    GRADFLOW_RETURN_IF_ERROR(SetShapeOutput(ctx, 2, dims));
    const auto index = indices->span<int64_t>();
    int64_t next = 0;
    for (const Set& set : sets) {
      for (const int64_t begin = next; next < set.end; ++next) {
        values->span<T>()[next] = T(result[next]);
        index[next * rank + rank - 1] = next - begin;
        int64_t rest = set.number;
        for (int d = rank - 2; d >= 0; --d) {
          index[next * rank + d] = rest % dims[d];
          rest /= dims[d];
        }
      }
    }
    return absl::OkStatus();
  }

  SetOperation operation_ = SetOperation::kUnion;
  bool validates_ = true;
};

// Adds the arguments of a set operation, with their documentation.
void AddSets(Registry::OpRegistrar& op, const std::string& name, bool is_sparse, std::string* doc) {
  if (is_sparse) {
    op.Input(absl::StrCat(name, "_indices: int64"))
        .Input(absl::StrCat(name, "_values: T"))
        .Input(absl::StrCat(name, "_shape: int64"));
    absl::StrAppend(doc, name, "_indices: The index of each value, a row of a matrix.\n", name,
                    "_values: The values, a vector.\n", name, "_shape: The shape.\n");
  } else {
    op.Input(absl::StrCat(name, ": T"));
    absl::StrAppend(doc, name, ": A dense tensor.\n");
  }
}

constexpr const char* kTypes = "T: {int8, int16, int32, int64, uint8, uint16, string}";
constexpr const char* kValidateDoc =
    "validate_indices: If true, indices of sparse tensors must be in row-major order.\n"
    "T: The type of the values.";

template <bool IsSparse1, bool IsSparse2>
void RegisterSetOperation(Registry& registry) {
  const std::string name = absl::StrCat(IsSparse1 ? "Sparse" : "Dense", "To",
                                        IsSparse2 ? "Sparse" : "Dense", "SetOperation");
  {
    Registry::OpRegistrar op = registry.Op(name);
    op.Group("sparse_ops");
    std::string doc =
        R"(Combines each set of a tensor with the set at the same place of another tensor.

The last dimension of a tensor holds the elements of a set. The other dimensions of both tensors are
equal.

)";
    AddSets(op, "set1", IsSparse1, &doc);
    AddSets(op, "set2", IsSparse2, &doc);
    absl::StrAppend(&doc,
                    R"(result_indices: The index of each value of the result, in row-major order.
result_values: The elements of the sets. The elements of a set increase.
result_shape: The shape of the result. The last dimension is the size of the largest set.
set_operation: "a-b", "b-a", "intersection" or "union", in letters of any case.
)",
                    kValidateDoc);
    op.Output("result_indices: int64")
        .Output("result_values: T")
        .Output("result_shape: int64")
        .Attr("set_operation: string")
        .Attr("validate_indices: bool = true")
        .Attr(kTypes)
        .Shape(SetOperationShape<IsSparse1, IsSparse2>)
        .Doc(doc);
  }
  registry.Kernel(name, MakeKernel<SetOperationKernel<IsSparse1, IsSparse2>>);
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("SetSize")
      .Group("sparse_ops")
      .Input("set_indices: int64")
      .Input("set_values: T")
      .Input("set_shape: int64")
      .Output("size: int32")
      .Attr("validate_indices: bool = true")
      .Attr(kTypes)
      .Shape(SetSizeShape)
      .Doc(absl::StrCat(R"(Counts the different values of each row of the last dimension.

set_indices: The index of each value, a row of a matrix.
set_values: The values, a vector.
set_shape: The shape, of at least two dimensions.
size: The counts. Its shape is `set_shape` without the last dimension.
)",
                        kValidateDoc));
  registry.Kernel("SetSize", MakeKernel<SetSizeKernel>);
  RegisterSetOperation<false, false>(registry);
  RegisterSetOperation<false, true>(registry);
  RegisterSetOperation<true, true>(registry);
}

}  // namespace gradflow::sparse_sets
