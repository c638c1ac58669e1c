// InferenceContext: the argument of shape functions, with TensorFlow's interface.
//
// Dimensions are sizes, or -1 if unknown. Unlike TensorFlow, does not track which unknown
// dimensions are equal.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_SHAPE_INFERENCE_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_SHAPE_INFERENCE_H_

#include <deque>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "gradflow/core/shape_context.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace shape_inference {

class InferenceContext;

// A handle to a shape owned by an InferenceContext. A default-constructed handle has unknown rank.
class ShapeHandle {
 public:
  ShapeHandle() = default;
  bool SameHandle(ShapeHandle other) const { return shape_ == other.shape_; }
  bool IsSet() const { return shape_ != nullptr; }

 private:
  friend class InferenceContext;
  explicit ShapeHandle(const PartialTensorShape* shape) : shape_(shape) {}
  const PartialTensorShape* shape_ = nullptr;
};

class DimensionHandle {
 public:
  DimensionHandle() = default;
  bool IsSet() const { return is_set_; }

 private:
  friend class InferenceContext;
  explicit DimensionHandle(int64 size) : is_set_(true), size_(size) {}
  bool is_set_ = false;
  int64 size_ = -1;
};

// An operand of arithmetic on dimensions.
struct DimensionOrConstant {
  DimensionOrConstant(DimensionHandle d) : dim(d) {}  // NOLINT: as in TensorFlow
  DimensionOrConstant(int64 value) : val(value) {}    // NOLINT: as in TensorFlow
  // If not set, `val` is the operand.
  DimensionHandle dim;
  int64 val = -1;
};

class InferenceContext {
 public:
  static constexpr int64 kUnknownDim = -1;
  static constexpr int32 kUnknownRank = -1;

  // Borrows `context`. set_output writes to it.
  explicit InferenceContext(gradflow::ShapeContext& context) : context_(context) {}
  InferenceContext(const InferenceContext&) = delete;
  InferenceContext& operator=(const InferenceContext&) = delete;

  // ---- Inputs, attributes, outputs ----

  int num_inputs() const { return context_.num_inputs(); }
  int num_outputs() const { return context_.num_outputs(); }
  // If there is no input or output i, the shape is unknown, and status() an error, which the shape
  // function then returns.
  ShapeHandle input(int i) const {
    return HasInput(i) ? ShapeHandle(&context_.input(i)) : ShapeHandle();
  }
  // Stores the shapes of the inputs of argument `name`.
  absl::Status input(StringPiece name, std::vector<ShapeHandle>* shapes) const;
  // Returns null if the value is not known when the graph is built.
  const Tensor* input_tensor(int i) const {
    return HasInput(i) ? context_.input_tensor(i) : nullptr;
  }
  ShapeHandle output(int i) const {
    return HasOutput(i) ? ShapeHandle(&context_.output(i)) : ShapeHandle();
  }
  void set_output(int i, ShapeHandle shape) {
    if (HasOutput(i)) context_.set_output(i, Value(shape));
  }
  absl::Status set_output(StringPiece name, const std::vector<ShapeHandle>& shapes);

  AttrSlice attrs() const { return AttrSlice(context_.def()); }
  template <typename T>
  absl::Status GetAttr(StringPiece name, T* value) const {
    return context_.GetAttr(name, value);
  }

  // ---- Access to shapes and dimensions ----

  static bool RankKnown(ShapeHandle s) { return Rank(s) >= 0; }
  // Returns -1 if unknown.
  static int32 Rank(ShapeHandle s) { return s.IsSet() ? s.shape_->dims() : kUnknownRank; }
  // Returns dimension i, counted from the end if negative. Unknown if the rank is unknown or there
  // is no such dimension.
  DimensionHandle Dim(ShapeHandle s, int64 i) const;
  // Returns Dim(s, i). TensorFlow requires a known rank.
  DimensionHandle DimKnownRank(ShapeHandle s, int64 i) const { return Dim(s, i); }
  static int64 Value(DimensionOrConstant d) { return d.dim.is_set_ ? d.dim.size_ : d.val; }
  static bool ValueKnown(DimensionOrConstant d) { return Value(d) >= 0; }
  bool FullyDefined(ShapeHandle s) const;
  // Returns an unknown size if any dimension is unknown.
  DimensionHandle NumElements(ShapeHandle s) const;
  // Return "[2,?]" and "?".
  std::string DebugString(ShapeHandle s) const;
  std::string DebugString(DimensionHandle d) const;

  // ---- Constraints. Return INVALID_ARGUMENT if they contradict the known shapes; otherwise store
  // the refined shape in *out ----

  absl::Status WithRank(ShapeHandle s, int64 rank, ShapeHandle* out);
  absl::Status WithRankAtLeast(ShapeHandle s, int64 rank, ShapeHandle* out);
  absl::Status WithRankAtMost(ShapeHandle s, int64 rank, ShapeHandle* out);
  absl::Status WithValue(DimensionHandle d, int64 value, DimensionHandle* out);
  absl::Status Merge(DimensionHandle a, DimensionHandle b, DimensionHandle* out);
  absl::Status Merge(ShapeHandle a, ShapeHandle b, ShapeHandle* out);
  // Merges `prefix` with the first dimensions of `s`.
  absl::Status MergePrefix(ShapeHandle s, ShapeHandle prefix, ShapeHandle* s_out,
                           ShapeHandle* prefix_out);

  // ---- Construction of shapes ----

  ShapeHandle MakeShape(const std::vector<DimensionHandle>& dims);
  ShapeHandle MakeShape(std::initializer_list<DimensionOrConstant> dims);
  ShapeHandle UnknownShape() { return ShapeHandle(); }
  ShapeHandle UnknownShapeOfRank(int64 rank);
  ShapeHandle Scalar() { return Own(PartialTensorShape(TensorShape())); }
  ShapeHandle Vector(DimensionOrConstant dim) { return MakeShape({dim}); }
  ShapeHandle Matrix(DimensionOrConstant a, DimensionOrConstant b) { return MakeShape({a, b}); }
  // Makes the shape whose dimensions are the elements of input i, a vector.
  absl::Status MakeShapeFromShapeTensor(int i, ShapeHandle* out);
  absl::Status MakeShapeFromPartialTensorShape(const PartialTensorShape& shape, ShapeHandle* out);
  absl::Status MakeShapeFromTensorShape(const TensorShape& shape, ShapeHandle* out);
  absl::Status MakeShapeFromShapeProto(const TensorShapeProto& proto, ShapeHandle* out);
  // Dimensions [start, end) of `s`. Negative positions count from the end.
  absl::Status Subshape(ShapeHandle s, int64 start, ShapeHandle* out);
  absl::Status Subshape(ShapeHandle s, int64 start, int64 end, ShapeHandle* out);
  absl::Status Concatenate(ShapeHandle a, ShapeHandle b, ShapeHandle* out);
  absl::Status ReplaceDim(ShapeHandle s, int64 i, DimensionHandle dim, ShapeHandle* out);

  // ---- Construction of dimensions. Results are unknown if an operand is unknown ----

  DimensionHandle MakeDim(DimensionOrConstant d) { return DimensionHandle(Value(d)); }
  DimensionHandle UnknownDim() { return DimensionHandle(kUnknownDim); }
  // Makes a dimension of the value of input i, a scalar.
  absl::Status MakeDimForScalarInput(int i, DimensionHandle* out);
  absl::Status GetScalarFromTensor(const Tensor* tensor, int64* value);
  absl::Status Add(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out);
  absl::Status Subtract(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out);
  absl::Status Multiply(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out);
  absl::Status Divide(DimensionHandle a, DimensionOrConstant b, bool evenly_divisible,
                      DimensionHandle* out);
  absl::Status Min(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out);
  absl::Status Max(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out);

  // Returns the underlying context. Not in TensorFlow.
  gradflow::ShapeContext& shape_context() const { return context_; }
  // Returns the first use of an input or output that does not exist, as INTERNAL.
  const absl::Status& status() const { return status_; }

 private:
  bool HasInput(int i) const { return Has("input", i, num_inputs()); }
  bool HasOutput(int i) const { return Has("output", i, num_outputs()); }
  bool Has(StringPiece kind, int i, int count) const;
  const PartialTensorShape& Value(ShapeHandle s) const;
  ShapeHandle Own(PartialTensorShape shape);

  gradflow::ShapeContext& context_;
  mutable absl::Status status_;
  // A deque, as handles point to its elements.
  std::deque<PartialTensorShape> shapes_;
};

}  // namespace shape_inference

using OpShapeInferenceFn = std::function<absl::Status(shape_inference::InferenceContext*)>;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_SHAPE_INFERENCE_H_
