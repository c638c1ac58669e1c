// InferenceContext: what a shape function sees of a node, by TensorFlow's names.
//
// Dimensions are sizes, -1 where unknown: two unknown dimensions are not known to be equal, which
// TensorFlow keeps track of.
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

// A shape that an InferenceContext owns. One that is not set is of unknown rank.
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

// What the arithmetic on dimensions takes.
struct DimensionOrConstant {
  DimensionOrConstant(DimensionHandle d) : dim(d) {}  // NOLINT: as in TensorFlow
  DimensionOrConstant(int64 value) : val(value) {}    // NOLINT: as in TensorFlow
  // Set, or else `val` counts.
  DimensionHandle dim;
  int64 val = -1;
};

class InferenceContext {
 public:
  static constexpr int64 kUnknownDim = -1;
  static constexpr int32 kUnknownRank = -1;

  // Borrows `context`, to which set_output writes.
  explicit InferenceContext(gradflow::ShapeContext& context) : context_(context) {}
  InferenceContext(const InferenceContext&) = delete;
  InferenceContext& operator=(const InferenceContext&) = delete;

  // ---- Inputs, attributes, outputs ----

  int num_inputs() const { return context_.num_inputs(); }
  int num_outputs() const { return context_.num_outputs(); }
  // Unknown if there is no input i: how many there are may be up to the graph.
  ShapeHandle input(int i) const {
    return i >= 0 && i < num_inputs() ? ShapeHandle(&context_.input(i)) : ShapeHandle();
  }
  // The inputs of an argument, by its name.
  absl::Status input(StringPiece name, std::vector<ShapeHandle>* shapes) const;
  // Null if the value is not known when the graph is built.
  const Tensor* input_tensor(int i) const {
    return i >= 0 && i < num_inputs() ? context_.input_tensor(i) : nullptr;
  }
  ShapeHandle output(int i) const {
    return i >= 0 && i < num_outputs() ? ShapeHandle(&context_.output(i)) : ShapeHandle();
  }
  // Of an output that the node does not have, nothing is kept.
  void set_output(int i, ShapeHandle shape) {
    if (i >= 0 && i < num_outputs()) context_.set_output(i, Value(shape));
  }
  absl::Status set_output(StringPiece name, const std::vector<ShapeHandle>& shapes);

  AttrSlice attrs() const { return AttrSlice(context_.def()); }
  template <typename T>
  absl::Status GetAttr(StringPiece name, T* value) const {
    return context_.GetAttr(name, value);
  }

  // ---- Looking at shapes and dimensions ----

  static bool RankKnown(ShapeHandle s) { return Rank(s) >= 0; }
  // -1 if unknown.
  static int32 Rank(ShapeHandle s) { return s.IsSet() ? s.shape_->dims() : kUnknownRank; }
  // Dimension i, from the end if it is negative; unknown if the rank is, or there is none.
  DimensionHandle Dim(ShapeHandle s, int64 i) const;
  // As Dim, by TensorFlow for a known rank alone.
  DimensionHandle DimKnownRank(ShapeHandle s, int64 i) const { return Dim(s, i); }
  static int64 Value(DimensionOrConstant d) { return d.dim.is_set_ ? d.dim.size_ : d.val; }
  static bool ValueKnown(DimensionOrConstant d) { return Value(d) >= 0; }
  bool FullyDefined(ShapeHandle s) const;
  // Unknown if a dimension is.
  DimensionHandle NumElements(ShapeHandle s) const;
  // "[2,?]", "?"
  std::string DebugString(ShapeHandle s) const;
  std::string DebugString(DimensionHandle d) const;

  // ---- Demands. INVALID_ARGUMENT if they contradict what is known; otherwise *out is what is
  // known with them ----

  absl::Status WithRank(ShapeHandle s, int64 rank, ShapeHandle* out);
  absl::Status WithRankAtLeast(ShapeHandle s, int64 rank, ShapeHandle* out);
  absl::Status WithRankAtMost(ShapeHandle s, int64 rank, ShapeHandle* out);
  absl::Status WithValue(DimensionHandle d, int64 value, DimensionHandle* out);
  absl::Status Merge(DimensionHandle a, DimensionHandle b, DimensionHandle* out);
  absl::Status Merge(ShapeHandle a, ShapeHandle b, ShapeHandle* out);
  // `prefix` merged with the first dimensions of `s`.
  absl::Status MergePrefix(ShapeHandle s, ShapeHandle prefix, ShapeHandle* s_out,
                           ShapeHandle* prefix_out);

  // ---- Making shapes ----

  ShapeHandle MakeShape(const std::vector<DimensionHandle>& dims);
  ShapeHandle MakeShape(std::initializer_list<DimensionOrConstant> dims);
  ShapeHandle UnknownShape() { return ShapeHandle(); }
  ShapeHandle UnknownShapeOfRank(int64 rank);
  ShapeHandle Scalar() { return Own(PartialTensorShape(TensorShape())); }
  ShapeHandle Vector(DimensionOrConstant dim) { return MakeShape({dim}); }
  ShapeHandle Matrix(DimensionOrConstant a, DimensionOrConstant b) { return MakeShape({a, b}); }
  // The shape that input i, a vector of sizes, holds.
  absl::Status MakeShapeFromShapeTensor(int i, ShapeHandle* out);
  absl::Status MakeShapeFromPartialTensorShape(const PartialTensorShape& shape, ShapeHandle* out);
  absl::Status MakeShapeFromTensorShape(const TensorShape& shape, ShapeHandle* out);
  absl::Status MakeShapeFromShapeProto(const TensorShapeProto& proto, ShapeHandle* out);
  // Dimensions from `start` up to `end`, from the end of the shape if negative.
  absl::Status Subshape(ShapeHandle s, int64 start, ShapeHandle* out);
  absl::Status Subshape(ShapeHandle s, int64 start, int64 end, ShapeHandle* out);
  absl::Status Concatenate(ShapeHandle a, ShapeHandle b, ShapeHandle* out);
  absl::Status ReplaceDim(ShapeHandle s, int64 i, DimensionHandle dim, ShapeHandle* out);

  // ---- Making dimensions; unknown where an operand is ----

  DimensionHandle MakeDim(DimensionOrConstant d) { return DimensionHandle(Value(d)); }
  DimensionHandle UnknownDim() { return DimensionHandle(kUnknownDim); }
  // The value of input i, a scalar.
  absl::Status MakeDimForScalarInput(int i, DimensionHandle* out);
  absl::Status GetScalarFromTensor(const Tensor* tensor, int64* value);
  absl::Status Add(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out);
  absl::Status Subtract(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out);
  absl::Status Multiply(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out);
  absl::Status Divide(DimensionHandle a, DimensionOrConstant b, bool evenly_divisible,
                      DimensionHandle* out);
  absl::Status Min(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out);
  absl::Status Max(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out);

  // What stands behind this context. Not in TensorFlow.
  gradflow::ShapeContext& shape_context() const { return context_; }

 private:
  const PartialTensorShape& Value(ShapeHandle s) const;
  ShapeHandle Own(PartialTensorShape shape);

  gradflow::ShapeContext& context_;
  // A deque, since handles point to its elements.
  std::deque<PartialTensorShape> shapes_;
};

}  // namespace shape_inference

using OpShapeInferenceFn = std::function<Status(shape_inference::InferenceContext*)>;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_SHAPE_INFERENCE_H_
