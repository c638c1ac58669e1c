// EditDistance.
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/ops/common/element_equality.h"
#include "gradflow/ops/common/strided_copy.h"

namespace gradflow::edit_distance {
namespace {

// The inputs are two sparse tensors. Each consists of a matrix `indices` with the index of each
// value, a vector `values`, and a vector `shape`. The last dimension contains the sequences.
constexpr const char* kNames[] = {"hypothesis", "truth"};

// Returns INVALID_ARGUMENT unless the three parts of the sparse tensor `name` may match.
absl::Status CheckParts(absl::string_view name, const PartialTensorShape& indices,
                        const PartialTensorShape& values, const PartialTensorShape& shape) {
  const PartialTensorShape* const parts[] = {&indices, &values, &shape};
  const char* const suffixes[] = {"_indices", "_values", "_shape"};
  const int ranks[] = {2, 1, 1};
  for (int i = 0; i < 3; ++i) {
    if (parts[i]->unknown_rank() || parts[i]->dims() == ranks[i]) continue;
    return errors::InvalidArgument(name, suffixes[i], " must have rank ", ranks[i],
                                   ", but has shape ", parts[i]->DebugString());
  }
  const int64_t rank = shape.unknown_rank() ? -1 : shape.dim_size(0);
  if (rank >= 0 && (rank < 2 || rank > kMaxDims)) {
    return errors::InvalidArgument(name, "_shape must have 2 to ", kMaxDims,
                                   " elements, a batch and a sequence, but has ", rank);
  }
  const PartialTensorShape expected = {values.unknown_rank() ? -1 : values.dim_size(0), rank};
  if (indices.IsCompatibleWith(expected)) return absl::OkStatus();
  return errors::InvalidArgument(name, "_indices has shape ", indices.DebugString(), ", expected ",
                                 expected.DebugString(), ", by ", name, "_values and ", name,
                                 "_shape");
}

// Returns the batch shape of both tensors: the larger size of each dimension, without the last
// dimension.
absl::StatusOr<TensorShape> BatchShape(absl::Span<const int64_t> a, absl::Span<const int64_t> b) {
  if (a.size() != b.size()) {
    return errors::InvalidArgument("hypothesis_shape and truth_shape must have the same length, ",
                                   "but have ", a.size(), " and ", b.size(), " elements");
  }
  DimVector dims;
  for (size_t d = 0; d < a.size(); ++d) {
    if (a[d] < 0 || b[d] < 0) {
      return errors::InvalidArgument(a[d] < 0 ? kNames[0] : kNames[1], "_shape[", d,
                                     "] must not be negative, but is ", std::min(a[d], b[d]));
    }
    if (d + 1 < a.size()) dims.push_back(std::max(a[d], b[d]));
  }
  return TensorShape::Make(dims);
}

absl::Status EditDistanceShape(ShapeContext& c) {
  for (int i = 0; i < 2; ++i) {
    GRADFLOW_RETURN_IF_ERROR(
        CheckParts(kNames[i], c.input(3 * i), c.input(3 * i + 1), c.input(3 * i + 2)));
  }
  std::vector<int64_t> shapes[2];
  GRADFLOW_ASSIGN_OR_RETURN(const bool first_known, c.IntsFromInput(2, &shapes[0]));
  GRADFLOW_ASSIGN_OR_RETURN(const bool second_known, c.IntsFromInput(5, &shapes[1]));
  if (!first_known || !second_known) return absl::OkStatus();
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, BatchShape(shapes[0], shapes[1]));
  c.set_output(0, shape);
  return absl::OkStatus();
}

// The sequences of a sparse tensor: runs of values whose indices differ only in the last dimension.
class Sequences {
 public:
  Sequences(const KernelContext& ctx, int first_input, const TensorShape& batch)
      : indices_(ctx.input(first_input).span<int64_t>()),
        size_(ctx.input(first_input + 1).NumElements()),
        rank_(ctx.input(first_input + 2).NumElements()),
        batch_(batch),
        strides_(RowMajorStrides(batch.dim_sizes())) {}

  // Returns INVALID_ARGUMENT unless the batch indices are in range and in row-major order. The
  // indices of the last dimension are not checked: the order of the rows is the order of a
  // sequence.
  absl::Status Check(absl::string_view name) const {
    for (int64_t i = 0; i < size_; ++i) {
      for (int64_t d = 0; d + 1 < rank_; ++d) {
        const int64_t index = indices_[i * rank_ + d];
        if (index < 0 || index >= batch_.dim_size(static_cast<int>(d))) {
          return errors::InvalidArgument(name, "_indices[", i, ",", d, "] = ", index,
                                         " is not in [0, ", batch_.dim_size(static_cast<int>(d)),
                                         ")");
        }
      }
      if (i > 0 && Batch(i) < Batch(i - 1)) {
        return errors::InvalidArgument(name, "_indices must be in row-major order, but row ", i,
                                       " precedes row ", i - 1);
      }
    }
    return absl::OkStatus();
  }

  bool done() const { return begin_ == size_; }
  // The batch index of the current sequence, and the range of its values. REQUIRES: !done()
  int64_t batch() const { return Batch(begin_); }
  int64_t begin() const { return begin_; }
  int64_t end() const { return end_; }
  // Moves to the first sequence, then to the following ones.
  void Next() {
    begin_ = end_;
    if (begin_ == size_) return;
    end_ = begin_ + 1;
    while (end_ < size_ && Batch(end_) == Batch(begin_)) ++end_;
  }

 private:
  int64_t Batch(int64_t i) const {
    int64_t batch = 0;
    for (int64_t d = 0; d + 1 < rank_; ++d) batch += indices_[i * rank_ + d] * strides_[d];
    return batch;
  }

  const absl::Span<const int64_t> indices_;
  const int64_t size_;
  const int64_t rank_;
  const TensorShape& batch_;
  const DimVector strides_;
  int64_t begin_ = 0;
  int64_t end_ = 0;
};

class EditDistanceKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return construction.GetAttr("normalize", &normalize_);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    DimVector shapes[2];
    for (int i = 0; i < 2; ++i) {
      GRADFLOW_RETURN_IF_ERROR(CheckParts(kNames[i], ctx.input(3 * i).shape(),
                                          ctx.input(3 * i + 1).shape(),
                                          ctx.input(3 * i + 2).shape()));
      GRADFLOW_ASSIGN_OR_RETURN(shapes[i], ctx.Ints(3 * i + 2, absl::StrCat(kNames[i], "_shape")));
    }
    GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, BatchShape(shapes[0], shapes[1]));
    Sequences hypotheses(ctx, 0, shape);
    Sequences truths(ctx, 3, shape);
    GRADFLOW_RETURN_IF_ERROR(hypotheses.Check(kNames[0]));
    GRADFLOW_RETURN_IF_ERROR(truths.Check(kNames[1]));
    hypotheses.Next();
    truths.Next();
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape, &output));
    SetZero(ctx.run(), output);
    const absl::Span<float> distances = output->span<float>();
    Tensor row;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT64, {ctx.input(4).NumElements() + 1}, &row));
    while (!hypotheses.done() || !truths.done()) {
      if (ctx.ShouldStop()) return absl::CancelledError("the run is stopped");
      const bool has_hypothesis =
          !hypotheses.done() && (truths.done() || hypotheses.batch() <= truths.batch());
      const bool has_truth =
          !truths.done() && (hypotheses.done() || truths.batch() <= hypotheses.batch());
      const int64_t batch = has_truth ? truths.batch() : hypotheses.batch();
      const int64_t length = has_truth ? truths.end() - truths.begin() : 0;
      float distance;
      if (has_hypothesis && has_truth) {
        distance = static_cast<float>(Distance(ctx, hypotheses, truths, row.span<int64_t>()));
      } else {
        distance = static_cast<float>(has_truth ? length : hypotheses.end() - hypotheses.begin());
      }
      if (normalize_) {
        distance = length == 0 ? std::numeric_limits<float>::infinity()
                               : distance / static_cast<float>(length);
      }
      distances[batch] = distance;
      if (has_hypothesis) hypotheses.Next();
      if (has_truth) truths.Next();
    }
    return absl::OkStatus();
  }

 private:
  // Returns the minimum number of insertions, deletions and replacements between the current
  // sequences (Levenshtein distance). `row` holds a row of the table of distances between prefixes.
  static int64_t Distance(const KernelContext& ctx, const Sequences& hypothesis,
                          const Sequences& truth, absl::Span<int64_t> row) {
    const Tensor& a = ctx.input(1);
    const Tensor& b = ctx.input(4);
    const ElementEquality equality = FindElementEquality(a.dtype());
    const int64_t length = truth.end() - truth.begin();
    for (int64_t j = 0; j <= length; ++j) row[j] = j;
    for (int64_t i = hypothesis.begin(); i < hypothesis.end() && !ctx.ShouldStop(); ++i) {
      int64_t diagonal = row[0]++;
      for (int64_t j = 0; j < length; ++j) {
        const bool same = equality.equal(a.raw_data(), i, b.raw_data(), truth.begin() + j);
        const int64_t replaced = diagonal + (same ? 0 : 1);
        diagonal = row[j + 1];
        row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
      }
    }
    return row[length];
  }

  bool normalize_ = true;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("EditDistance")
      .Group("array_ops")
      .Input("hypothesis_indices: int64")
      .Input("hypothesis_values: T")
      .Input("hypothesis_shape: int64")
      .Input("truth_indices: int64")
      .Input("truth_values: T")
      .Input("truth_shape: int64")
      .Output("output: float")
      .Attr("normalize: bool = true")
      .Attr("T: type")
      .Shape(EditDistanceShape)
      .Doc(R"(Returns the Levenshtein distances between sequences.

Hypotheses and truths are sparse tensors. Their last dimension is the dimension of the sequences.

hypothesis_indices: A matrix with the index of each value of the hypotheses, in row-major order.
hypothesis_values: The values of the hypotheses.
hypothesis_shape: The shape of the hypotheses.
truth_indices: A matrix with the index of each value of the truths, in row-major order.
truth_values: The values of the truths.
truth_shape: The shape of the truths, of the same length as `hypothesis_shape`.
output: The distances, in the shape of the batch.
normalize: Divides each distance by the length of the truth. If the length is 0, the distance is 0
  for an empty hypothesis and otherwise infinite.
T: The type of the values.)");
  registry.Kernel("EditDistance", MakeKernel<EditDistanceKernel>);
}

}  // namespace gradflow::edit_distance
