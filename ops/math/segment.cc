// Reductions by segment: the SegmentSum ops, whose ids are sorted; the UnsortedSegmentSum ops; and
// the SparseSegmentSum ops, which gather rows first.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/data_types.h"
#include "gradflow/ops/common/input_checks.h"
#include "gradflow/ops/math/reducers.h"
#include "gradflow/ops/math/segment_rows.h"

namespace gradflow::segment {
namespace {

// ---- Shapes ----

absl::Status CheckRows(const PartialTensorShape& data, const PartialTensorShape& ids) {
  return CheckPrefix("data", data, "segment_ids", ids);
}

absl::Status CheckCount(absl::string_view name, int64_t count) {
  if (count >= 0) return absl::OkStatus();
  return errors::InvalidArgument(name, " is ", count, ", expected at least 0");
}

// Sets *count to the value of input i; -1 if unknown.
absl::Status CountFromInput(ShapeContext& c, int i, int64_t* count) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(i, 0));
  std::vector<int64_t> value;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(i, &value));
  *count = known ? value[0] : -1;
  return known ? CheckCount(c.input_name(i), *count) : absl::OkStatus();
}

// Sets the shape of output 0 to [rows] followed by the dimensions of input 0 from `from` on.
absl::Status SetRows(ShapeContext& c, int64_t rows, int from) {
  DimVector dims = {rows};
  for (int d = from; d < c.input(0).dims(); ++d) dims.push_back(c.Dim(0, d));
  GRADFLOW_ASSIGN_OR_RETURN(PartialTensorShape shape, PartialTensorShape::Make(dims));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// Checks data and segment_ids, a vector (inputs 0 and 1).
absl::Status CheckSorted(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  return CheckRows(c.input(0), c.input(1));
}

// Derives the number of segments from the value of segment_ids, which is input `ids`.
absl::Status SetSortedRows(ShapeContext& c, int ids) {
  std::vector<int64_t> values;
  int64_t rows = -1;
  GRADFLOW_ASSIGN_OR_RETURN(const bool known, c.IntsFromInput(ids, &values));
  if (known) {
    GRADFLOW_RETURN_IF_ERROR(CheckSortedIds("segment_ids", values, -1));
    // An id of the maximum of int64 has no valid number of segments. The kernel reports the error.
    const bool fits = values.empty() || values.back() < std::numeric_limits<int64_t>::max();
    if (fits) rows = values.empty() ? 0 : values.back() + 1;
  }
  if (c.input(0).unknown_rank()) return absl::OkStatus();
  return SetRows(c, rows, 1);
}

absl::Status SortedShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSorted(c));
  return SetSortedRows(c, 1);
}

absl::Status SortedShapeV2(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSorted(c));
  int64_t count = -1;
  GRADFLOW_RETURN_IF_ERROR(CountFromInput(c, 2, &count));
  if (c.input(0).unknown_rank()) return absl::OkStatus();
  return SetRows(c, count, 1);
}

absl::Status UnsortedShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckRows(c.input(0), c.input(1)));
  int64_t count = -1;
  GRADFLOW_RETURN_IF_ERROR(CountFromInput(c, 2, &count));
  if (c.input(0).unknown_rank() || c.input(1).unknown_rank()) return absl::OkStatus();
  return SetRows(c, count, c.input(1).dims());
}

absl::Status CheckSparse(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRankAtLeast(0, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 1));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(2, 1));
  return c.CheckSameShape(1, 2);
}

absl::Status SparseShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSparse(c));
  return SetSortedRows(c, 2);
}

absl::Status SparseShapeWithCount(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(CheckSparse(c));
  int64_t count = -1;
  GRADFLOW_RETURN_IF_ERROR(CountFromInput(c, 3, &count));
  if (c.input(0).unknown_rank()) return absl::OkStatus();
  return SetRows(c, count, 1);
}

// ---- Kernels ----

enum class Reduction { kSum, kMean, kSqrtN, kProd, kMax, kMin };
// The result of a segment without rows: 0, or the reduction of zero elements clamped to finite
// numbers.
enum class Empty { kNeutral, kZero };

Reducer MakeReducer(Reduction reduction, DataType dtype) {
  switch (reduction) {
    case Reduction::kSum:
      return SumReducer(dtype);
    case Reduction::kMean:
      return MeanReducer(dtype);
    case Reduction::kSqrtN:
      return SqrtNReducer(dtype);
    case Reduction::kProd:
      return ProdReducer(dtype);
    case Reduction::kMax:
      return MaxReducer(dtype);
    case Reduction::kMin:
      return MinReducer(dtype);
  }
  return {};
}

// The element that fills the rows of empty segments.
struct Element {
  alignas(16) char bytes[16] = {};

  Element() = default;
  Element(Reduction reduction, Empty empty, DataType dtype) {
    DispatchType(NumberTypes(), dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      T value = static_cast<T>(0);
      if (reduction == Reduction::kProd) value = static_cast<T>(1);
      if constexpr (!kIsComplex<T>) {
        if (empty == Empty::kNeutral && reduction == Reduction::kMax) {
          value = std::numeric_limits<T>::lowest();
        }
        if (empty == Empty::kNeutral && reduction == Reduction::kMin) {
          value = std::numeric_limits<T>::max();
        }
      }
      std::memcpy(bytes, &value, sizeof(value));
    });
  }
};

template <Reduction kReduction, Empty kEmpty>
class SegmentKernel : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    reducer_ = MakeReducer(kReduction, construction.output_type(0));
    empty_ = Element(kReduction, kEmpty, construction.output_type(0));
    return absl::OkStatus();
  }

 protected:
  absl::Status CheckType(const KernelContext& ctx) const {
    if (ctx.input_dtype(0) == ctx.expected_output_dtype(0)) return absl::OkStatus();
    return errors::InvalidArgument("data must be of type ",
                                   DataTypeString(ctx.expected_output_dtype(0)), ", but is ",
                                   DataTypeString(ctx.input_dtype(0)));
  }

  // Allocates output 0 with `segments` rows, whose shape is the dimensions of data from `from` on.
  // Sets *width to the number of elements of a row.
  static absl::Status AllocateRows(KernelContext& ctx, int64_t segments, int from, int64_t* width,
                                   Tensor** out) {
    DimVector dims = {segments};
    *width = 1;
    for (int d = from; d < ctx.input(0).dims(); ++d) dims.push_back(ctx.input(0).dim_size(d));
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims));
    // Does not overflow if the output has elements.
    if (shape.num_elements() > 0) *width = shape.num_elements() / segments;
    return ctx.AllocateOutput(0, shape, out);
  }

  absl::Status Reduce(KernelContext& ctx, const SegmentRows& rows, int64_t width,
                      Tensor* out) const {
    return ReduceSegments(ctx, reducer_, rows, width, ctx.input(0), empty_.bytes, out);
  }

  // Reduces rows by sorted ids. The number of segments is input `count_input`; if `count_input` is
  // negative, it is the last id plus one. Row i of the ids is row order[i] of data, or row i if
  // `order` is null.
  absl::Status ReduceSorted(KernelContext& ctx, absl::Span<const int64_t> ids, int count_input,
                            const int64_t* order) const {
    int64_t segments = -1;
    if (count_input >= 0) {
      GRADFLOW_ASSIGN_OR_RETURN(segments, ctx.ScalarInt(count_input, "num_segments"));
      GRADFLOW_RETURN_IF_ERROR(CheckCount("num_segments", segments));
    }
    GRADFLOW_RETURN_IF_ERROR(CheckSortedIds("segment_ids", ids, segments));
    if (count_input < 0) {
      GRADFLOW_ASSIGN_OR_RETURN(segments, CountSegments(ids));
    }
    int64_t width = 0;
    Tensor* out = nullptr;
    GRADFLOW_RETURN_IF_ERROR(AllocateRows(ctx, segments, 1, &width, &out));
    if (out->NumElements() == 0) return absl::OkStatus();
    SegmentRows rows;
    GRADFLOW_RETURN_IF_ERROR(GroupSortedRows(ctx, ids, segments, &rows));
    if (order != nullptr) rows.order = order;
    return Reduce(ctx, rows, width, out);
  }

  bool CanScatter(int64_t segments, int64_t width) const {
    return CanScatterRows(reducer_, segments, width);
  }
  absl::Status Scatter(KernelContext& ctx, absl::Span<const int64_t> ids, int64_t segments,
                       int64_t width, Tensor* out) const {
    return ScatterRows(ctx, reducer_, ids, segments, width, ctx.input(0), empty_.bytes, out);
  }

  // Returns the last id plus one.
  static absl::StatusOr<int64_t> CountSegments(absl::Span<const int64_t> ids) {
    if (ids.empty()) return 0;
    if (ids.back() == std::numeric_limits<int64_t>::max()) {
      return errors::InvalidArgument("segment_ids[", ids.size() - 1,
                                     "] is too large: ", ids.back());
    }
    return ids.back() + 1;
  }

 private:
  Reducer reducer_ = {};
  Element empty_;
};

// kCounted: input 2 is the number of segments.
template <Reduction kReduction, Empty kEmpty, bool kCounted>
class SortedKernel final : public SegmentKernel<kReduction, kEmpty> {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(this->CheckType(ctx));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "segment_ids"));
    GRADFLOW_RETURN_IF_ERROR(CheckRows(ctx.input(0).shape(), ctx.input(1).shape()));
    Tensor storage;
    GRADFLOW_ASSIGN_OR_RETURN(const absl::Span<const int64_t> ids,
                              Int64Elements(ctx, 1, "segment_ids", &storage));
    return this->ReduceSorted(ctx, ids, kCounted ? 2 : -1, nullptr);
  }
};

template <Reduction kReduction>
class UnsortedKernel final : public SegmentKernel<kReduction, Empty::kNeutral> {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(this->CheckType(ctx));
    GRADFLOW_RETURN_IF_ERROR(CheckRows(ctx.input(0).shape(), ctx.input(1).shape()));
    GRADFLOW_ASSIGN_OR_RETURN(const int64_t segments, ctx.ScalarInt(2, "num_segments"));
    GRADFLOW_RETURN_IF_ERROR(CheckCount("num_segments", segments));
    Tensor storage;
    GRADFLOW_ASSIGN_OR_RETURN(const absl::Span<const int64_t> ids,
                              Int64Elements(ctx, 1, "segment_ids", &storage));
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] >= segments) {
        return errors::InvalidArgument("segment_ids[", i, "] is ", ids[i], ", expected less than ",
                                       segments, ", the number of segments");
      }
    }
    int64_t width = 0;
    Tensor* out = nullptr;
    GRADFLOW_RETURN_IF_ERROR(this->AllocateRows(ctx, segments, ctx.input(1).dims(), &width, &out));
    if (out->NumElements() == 0) return absl::OkStatus();
    if (this->CanScatter(segments, width)) return this->Scatter(ctx, ids, segments, width, out);
    SegmentRows rows;
    GRADFLOW_RETURN_IF_ERROR(GroupRows(ctx, ids, segments, &rows));
    return this->Reduce(ctx, rows, width, out);
  }
};

template <Reduction kReduction, bool kCounted>
class SparseSegmentKernel final : public SegmentKernel<kReduction, Empty::kZero> {
 public:
  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(this->CheckType(ctx));
    if (ctx.input(0).dims() < 1) {
      return errors::InvalidArgument("data must have rank 1 at least, but is a scalar");
    }
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(1, "indices"));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckVector(2, "segment_ids"));
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckSameShape(1, "indices", 2, "segment_ids"));
    Tensor storage[2];
    GRADFLOW_ASSIGN_OR_RETURN(const absl::Span<const int64_t> indices,
                              Int64Elements(ctx, 1, "indices", &storage[0]));
    GRADFLOW_ASSIGN_OR_RETURN(const absl::Span<const int64_t> ids,
                              Int64Elements(ctx, 2, "segment_ids", &storage[1]));
    GRADFLOW_RETURN_IF_ERROR(CheckIndices("indices", indices, ctx.input(0).dim_size(0)));
    return this->ReduceSorted(ctx, ids, kCounted ? 3 : -1, indices.data());
  }
};

// ---- Definitions ----

constexpr char kRealTypes[] =
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64}";

// Words for the documentation of an op, which describe the result for a segment.
struct Words {
  absl::string_view verb;
  absl::string_view noun;
  absl::string_view how;
};
constexpr Words kSumWords = {"sum", "sums",
                             "Floats are summed in double, double with compensation. Integers wrap "
                             "around."};
constexpr Words kMeanWords = {"mean", "means",
                              "Floats are summed in double. Means of integers are rounded towards "
                              "0."};
constexpr Words kSqrtNWords = {"sum divided by the square root of the number of rows",
                               "scaled sums", "Floats are summed in double."};
constexpr Words kProdWords = {"product", "products",
                              "Floats and complex numbers are multiplied in double. Integers wrap "
                              "around."};
constexpr Words kMaxWords = {"maximum", "maxima", "If any element is NaN, the maximum is NaN."};
constexpr Words kMinWords = {"minimum", "minima", "If any element is NaN, the minimum is NaN."};

const Words& WordsOf(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return kSumWords;
    case Reduction::kMean:
      return kMeanWords;
    case Reduction::kSqrtN:
      return kSqrtNWords;
    case Reduction::kProd:
      return kProdWords;
    case Reduction::kMax:
      return kMaxWords;
    case Reduction::kMin:
      break;
  }
  return kMinWords;
}

bool IsOrder(Reduction reduction) {
  return reduction == Reduction::kMax || reduction == Reduction::kMin;
}

std::string EmptyInWords(Reduction reduction, Empty empty) {
  if (reduction == Reduction::kProd) return "1";
  if (empty == Empty::kNeutral && reduction == Reduction::kMax) {
    return "the lowest finite value of the type";
  }
  if (empty == Empty::kNeutral && reduction == Reduction::kMin) {
    return "the largest finite value of the type";
  }
  return "0";
}

DataTypeVector TypesOf(Reduction reduction) {
  return IsOrder(reduction) ? DataTypesOf(RealTypes()) : DataTypesOf(NumberTypes());
}

template <Reduction kReduction>
void RegisterDense(Registry& registry, absl::string_view name, bool has_v2) {
  const Words& words = WordsOf(kReduction);
  const std::string type = IsOrder(kReduction) ? kRealTypes : "T: numbertype";
  const DataTypeVector types = TypesOf(kReduction);
  const std::string op = absl::StrCat("Segment", name);
  registry.Op(op)
      .Group("math_ops")
      .Input("data: T")
      .Input("segment_ids: Tindices")
      .Output("output: T")
      .Attr(type)
      .Attr("Tindices: {int32, int64}")
      .Shape(SortedShape)
      .Doc(absl::StrCat("Computes the ", words.verb,
                        " of the rows of each segment of a tensor.\n\n", words.how,
                        " A segment without rows has ", EmptyInWords(kReduction, Empty::kZero), R"(.

data: A tensor with a row, of any rank, for each id.
segment_ids: A vector of the segments of the rows, sorted and not negative.
output: The )",
                        words.noun, R"(, a row for each segment up to the last id.
T: The type of `data` and `output`.
Tindices: The type of the ids.)"));
  registry.Kernel(op, MakeKernel<SortedKernel<kReduction, Empty::kZero, false>>).Types("T", types);
  if (!has_v2) return;
  registry.Op(op + "V2")
      .Group("math_ops")
      .Input("data: T")
      .Input("segment_ids: Tindices")
      .Input("num_segments: Tnumsegments")
      .Output("output: T")
      .Attr(type)
      .Attr("Tindices: {int32, int64}")
      .Attr("Tnumsegments: {int32, int64} = DT_INT32")
      .Shape(SortedShapeV2)
      .Doc(absl::StrCat("Computes the ", words.verb,
                        " of the rows of each of a number of segments.\n\n", words.how,
                        " A segment without rows has ", EmptyInWords(kReduction, Empty::kNeutral),
                        R"(.

data: A tensor with a row, of any rank, for each id.
segment_ids: A vector of the segments of the rows, sorted, each in [0, num_segments).
num_segments: A scalar: the number of segments.
output: The )",
                        words.noun, R"(, a row for each segment.
T: The type of `data` and `output`.
Tindices: The type of the ids.
Tnumsegments: The type of the number of segments.)"));
  registry.Kernel(op + "V2", MakeKernel<SortedKernel<kReduction, Empty::kNeutral, true>>)
      .Types("T", types);
}

template <Reduction kReduction>
void RegisterUnsorted(Registry& registry, absl::string_view name) {
  const Words& words = WordsOf(kReduction);
  const std::string op = absl::StrCat("UnsortedSegment", name);
  registry.Op(op)
      .Group("math_ops")
      .Input("data: T")
      .Input("segment_ids: Tindices")
      .Input("num_segments: Tnumsegments")
      .Output("output: T")
      .Attr(IsOrder(kReduction) ? kRealTypes : "T: numbertype")
      .Attr(kReduction == Reduction::kSum ? "Tindices: {int16, int32, int64}"
                                          : "Tindices: {int32, int64}")
      .Attr("Tnumsegments: {int32, int64} = DT_INT32")
      .Shape(UnsortedShape)
      .Doc(absl::StrCat("Computes the ", words.verb,
                        " of the rows of each segment, in any order of the rows.\n\n", words.how,
                        " A segment without rows has ", EmptyInWords(kReduction, Empty::kNeutral),
                        R"(.

data: A tensor whose shape starts with the shape of `segment_ids`. The rest is the shape of a row.
segment_ids: The segments of the rows, each less than `num_segments`. A row with a negative id is
  ignored.
num_segments: A scalar: the number of segments.
output: The )",
                        words.noun, R"(, a row for each segment.
T: The type of `data` and `output`.
Tindices: The type of the ids.
Tnumsegments: The type of the number of segments.)"));
  registry.Kernel(op, MakeKernel<UnsortedKernel<kReduction>>).Types("T", TypesOf(kReduction));
}

template <Reduction kReduction>
void RegisterSparse(Registry& registry, absl::string_view name) {
  const Words& words = WordsOf(kReduction);
  const bool is_sum = kReduction == Reduction::kSum;
  const DataTypeVector types = is_sum ? DataTypesOf(RealTypes()) : DataTypesOf(FloatingTypes());
  for (const bool counted : {false, true}) {
    const std::string op = absl::StrCat("SparseSegment", name, counted ? "WithNumSegments" : "");
    auto builder = registry.Op(op);
    builder.Group("math_ops")
        .Input("data: T")
        .Input("indices: Tidx")
        .Input("segment_ids: Tsegmentids");
    if (counted) builder.Input("num_segments: Tnumsegments");
    builder.Output("output: T")
        .Attr(is_sum ? kRealTypes : "T: {bfloat16, half, float, double}")
        .Attr("Tidx: {int32, int64} = DT_INT32");
    if (counted) builder.Attr("Tnumsegments: {int32, int64} = DT_INT32");
    builder.Attr("Tsegmentids: {int32, int64} = DT_INT32")
        .Attr("sparse_gradient: bool = false")
        .Shape(counted ? SparseShapeWithCount : SparseShape)
        .Doc(absl::StrCat("Computes the ", words.verb,
                          " of selected rows of a tensor, by segment.\n\n", words.how,
                          R"( A segment without rows has 0.

data: A tensor of rows, of any rank.
indices: A vector of the rows that are selected.
segment_ids: The segments of the selected rows, sorted and not negative)",
                          counted ? ", each less than `num_segments`.\nnum_segments: A scalar: the "
                                    "number of segments.\n"
                                  : ".\n",
                          "output: The ", words.noun,
                          counted ? ", a row for each segment.\n"
                                  : ", a row for each segment up to the last id.\n",
                          R"(T: The type of `data` and `output`.
Tidx: The type of the indices.
)",
                          counted ? "Tnumsegments: The type of the number of segments.\n" : "",
                          R"(Tsegmentids: The type of the ids.
sparse_gradient: Has no effect on the output: selects the gradient op.)"));
  }
  const std::string op = absl::StrCat("SparseSegment", name);
  registry.Kernel(op, MakeKernel<SparseSegmentKernel<kReduction, false>>).Types("T", types);
  registry.Kernel(op + "WithNumSegments", MakeKernel<SparseSegmentKernel<kReduction, true>>)
      .Types("T", types);
}

}  // namespace

void Register(Registry& registry) {
  RegisterDense<Reduction::kSum>(registry, "Sum", true);
  RegisterDense<Reduction::kMean>(registry, "Mean", false);
  RegisterDense<Reduction::kProd>(registry, "Prod", true);
  RegisterDense<Reduction::kMax>(registry, "Max", true);
  RegisterDense<Reduction::kMin>(registry, "Min", true);
  RegisterUnsorted<Reduction::kSum>(registry, "Sum");
  RegisterUnsorted<Reduction::kProd>(registry, "Prod");
  RegisterUnsorted<Reduction::kMax>(registry, "Max");
  RegisterUnsorted<Reduction::kMin>(registry, "Min");
  RegisterSparse<Reduction::kSum>(registry, "Sum");
  RegisterSparse<Reduction::kMean>(registry, "Mean");
  RegisterSparse<Reduction::kSqrtN>(registry, "SqrtN");
}

}  // namespace gradflow::segment
