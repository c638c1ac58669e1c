// InferenceContext: the argument of shape functions, with TensorFlow's interface.
//
// Handles refer to shapes and dimensions that the context owns. Two handles of the same dimension
// are SameHandle(), even if its size is unknown. gradflow passes plain shapes between the nodes of
// a graph, so equal unknown dimensions of different nodes are not tracked.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_SHAPE_INFERENCE_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_SHAPE_INFERENCE_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gradflow/core/op_def_util.h"
#include "gradflow/core/shape_context.h"
#include "tensorflow/core/framework/full_type.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/framework/tensor_shape.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/gtl/array_slice.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {
namespace shape_inference {

class InferenceContext;
class ShapeInferenceTestutil;

// A dimension. Its size is read through InferenceContext.
class Dimension {
 public:
  Dimension(const Dimension&) = delete;
  Dimension& operator=(const Dimension&) = delete;
  // For the context, which owns all dimensions.
  explicit Dimension(int64 value) : value_(value) {}

 private:
  friend class InferenceContext;
  const int64 value_;
};

class DimensionHandle {
 public:
  DimensionHandle() = default;
  bool SameHandle(DimensionHandle d) const { return ptr_ == d.ptr_; }
  std::size_t Handle() const { return reinterpret_cast<std::size_t>(ptr_); }

 private:
  friend class InferenceContext;
  friend struct DimensionOrConstant;
  friend class ShapeInferenceTest;
  friend class ShapeInferenceTestutil;
  DimensionHandle(const Dimension* dim) : ptr_(dim) {}  // NOLINT: for the context
  const Dimension* operator->() const { return ptr_; }
  bool IsSet() const { return ptr_ != nullptr; }

  const Dimension* ptr_ = nullptr;
};

// A shape. Its dimensions are read through InferenceContext.
class Shape {
 public:
  Shape(const Shape&) = delete;
  Shape& operator=(const Shape&) = delete;
  // For the context, which owns all shapes. Create a shape of unknown rank, and a shape with the
  // given dimensions.
  Shape() : rank_(-1) {}
  explicit Shape(const std::vector<DimensionHandle>& dims)
      : rank_(static_cast<int32>(dims.size())), dims_(dims) {}

 private:
  friend class InferenceContext;
  const int32 rank_;
  const std::vector<DimensionHandle> dims_;
};

// A default-constructed handle has unknown rank.
class ShapeHandle {
 public:
  ShapeHandle() = default;
  bool SameHandle(ShapeHandle s) const { return ptr_ == s.ptr_; }
  std::size_t Handle() const { return reinterpret_cast<std::size_t>(ptr_); }

 private:
  friend class InferenceContext;
  friend class ShapeInferenceTest;
  friend class ShapeInferenceTestutil;
  ShapeHandle(const Shape* shape) : ptr_(shape) {}  // NOLINT: for the context
  const Shape* operator->() const { return ptr_; }
  bool IsSet() const { return ptr_ != nullptr; }

  const Shape* ptr_ = nullptr;
};

// An operand of arithmetic on dimensions.
struct DimensionOrConstant {
  DimensionOrConstant(DimensionHandle dim) : dim(dim) {}  // NOLINT: as in TensorFlow
  DimensionOrConstant(int64 val) : val(val) {             // NOLINT: as in TensorFlow
    DCHECK(val >= -1) << "Dimension must be non-negative or equal to "
                         "InferenceContext::kUnknownDim but got "
                      << val;
  }
  // If not set, the operand is `val`.
  DimensionHandle dim;
  int64 val = -1;
};

// The shape and type of a value behind a resource handle.
struct ShapeAndType {
  ShapeAndType() = default;
  ShapeAndType(ShapeHandle s, DataType t) : shape(s), dtype(t) {}
  ShapeAndType(ShapeHandle s, DataType t, FullTypeDef full_type)
      : shape(s), dtype(t), type(std::move(full_type)) {}

  ShapeHandle shape;
  DataType dtype = DT_INVALID;
  FullTypeDef type;
};

class InferenceContext {
 public:
  static constexpr int64 kUnknownDim = -1;
  static constexpr int32 kUnknownRank = -1;

  // Creates the context of a node with the given inputs. `input_tensors` and
  // `input_tensors_as_shapes` may have fewer elements than there are inputs. Missing and null
  // elements are unknown. If the definition and the attributes contradict each other,
  // construction_status() is an error. Borrows the node and the tensors.
  InferenceContext(
      int graph_def_version, const AttrSlice& attrs, const OpDef& op_def,
      const std::vector<ShapeHandle>& input_shapes, const std::vector<const Tensor*>& input_tensors,
      const std::vector<ShapeHandle>& input_tensors_as_shapes,
      std::vector<std::unique_ptr<std::vector<ShapeAndType>>> input_handle_shapes_and_types);
  InferenceContext(
      int graph_def_version, const AttrSlice& attrs, const OpDef& op_def,
      const std::vector<PartialTensorShape>& input_shapes,
      const std::vector<const Tensor*>& input_tensors,
      const std::vector<PartialTensorShape>& input_tensors_as_shapes,
      const std::vector<std::unique_ptr<std::vector<std::pair<PartialTensorShape, DataType>>>>&
          input_handle_shapes_and_types);
  // Creates the context of a node in a gradflow graph. Borrows `context`. Not in TensorFlow.
  explicit InferenceContext(gradflow::ShapeContext& context);
  InferenceContext(const InferenceContext&) = delete;
  InferenceContext& operator=(const InferenceContext&) = delete;
  ~InferenceContext();

  const absl::Status& construction_status() const { return construction_status_; }
  // Calls fn(this). Adds the node, its inputs, and the values that `fn` requested to an error.
  absl::Status Run(const std::function<absl::Status(InferenceContext* c)>& fn);

  // ---- Inputs, attributes, outputs ----

  int num_inputs() const { return static_cast<int>(inputs_.size()); }
  int num_outputs() const { return static_cast<int>(outputs_.size()); }
  // If there is no input or output i, the shape is unknown, and status() is an error. The caller of
  // the shape function then returns the error.
  ShapeHandle input(int64 i) const { return HasInput(i) ? inputs_[i] : ShapeHandle(); }
  ShapeHandle output(int64 i) const { return HasOutput(i) ? outputs_[i] : ShapeHandle(); }
  void SetInput(int i, ShapeHandle shape) {
    if (HasInput(i)) inputs_[i] = shape;
  }
  void set_output(int i, ShapeHandle shape) {
    if (HasOutput(i)) outputs_[i] = shape;
  }
  // Store (set) the shapes of the tensors of an argument. Return INVALID_ARGUMENT if the argument
  // does not exist.
  absl::Status input(absl::string_view name, std::vector<ShapeHandle>* shapes) const;
  absl::Status output(absl::string_view name, std::vector<ShapeHandle>* shapes) const;
  absl::Status set_output(absl::string_view name, const std::vector<ShapeHandle>& shapes);
  // Adds outputs of unknown shape. Returns INVALID_ARGUMENT if there are more than
  // `new_output_size`.
  absl::Status ExpandOutputs(int new_output_size);

  // Returns null if the value is unknown when the graph is built.
  const Tensor* input_tensor(int i);
  void request_input_tensor(int i) {
    if (HasInput(i)) requested_tensor_[i] = true;
  }
  bool requested_input_tensor(int i) const { return HasInput(i) && requested_tensor_[i]; }
  void request_input_tensor_as_partial_shape(int i) {
    if (HasInput(i)) requested_partial_shape_[i] = true;
  }
  bool requested_input_tensor_as_partial_shape(int i) const {
    return HasInput(i) && requested_partial_shape_[i];
  }
  void set_input_tensors(const std::vector<const Tensor*>& tensors) {
    input_tensors_ = tensors;
    input_tensors_.resize(inputs_.size());
  }
  void set_input_tensors_as_shapes(const std::vector<ShapeHandle>& shapes) {
    input_tensors_as_shapes_ = shapes;
  }
  const std::vector<ShapeHandle>& input_tensors_as_shapes() const {
    return input_tensors_as_shapes_;
  }

  const AttrSlice& attrs() const { return attrs_; }
  template <typename T>
  absl::Status GetAttr(absl::string_view name, T* value) const {
    return GetNodeAttr(attrs_, name, value);
  }
  absl::Status GetAttr(absl::string_view name, const AttrValue** value) const {
    return attrs_.Find(name, value);
  }
  const AttrValue* GetAttr(absl::string_view name) const { return attrs_.Find(name); }
  int graph_def_version() const { return graph_def_version_; }
  const FullTypeDef& ret_types() const { return ret_types_; }

  // ---- Access to shapes and dimensions ----

  static int32 Rank(ShapeHandle s) { return s.IsSet() ? s->rank_ : kUnknownRank; }
  static bool RankKnown(ShapeHandle s) { return Rank(s) != kUnknownRank; }
  // Returns dimension i. A negative i counts from the end. Unknown if the rank is unknown or the
  // dimension does not exist.
  DimensionHandle Dim(ShapeHandle s, int64 i);
  // Like Dim(), but returns a handle that is not set if the rank is unknown or the dimension does
  // not exist.
  static DimensionHandle DimKnownRank(ShapeHandle s, int64 i);
  static int64 Value(DimensionOrConstant d) { return d.dim.IsSet() ? d.dim->value_ : d.val; }
  static bool ValueKnown(DimensionOrConstant d) { return Value(d) != kUnknownDim; }
  bool FullyDefined(ShapeHandle s) const;
  // Returns an unknown size if a dimension is unknown or the product is too large.
  DimensionHandle NumElements(ShapeHandle s);
  void ShapeHandleToProto(ShapeHandle s, TensorShapeProto* proto) const;
  TensorShapeProto ShapeHandleToProto(ShapeHandle s) const;
  // Return "[2,?]", "?", "[2,?]:float" and "{[2,?]:float, ...}".
  std::string DebugString(ShapeHandle s) const;
  std::string DebugString(DimensionHandle d) const;
  std::string DebugString(const ShapeAndType& shape_and_type) const;
  std::string DebugString(gtl::ArraySlice<ShapeAndType> shapes_and_types) const;
  // Describes the node.
  std::string DebugString() const;

  // ---- Constraints. If the known shapes contradict them, return INVALID_ARGUMENT and reset *out.
  // Otherwise, store the refined shape in *out ----

  absl::Status WithRank(ShapeHandle s, int64 rank, ShapeHandle* out);
  absl::Status WithRankAtLeast(ShapeHandle s, int64 rank, ShapeHandle* out);
  absl::Status WithRankAtMost(ShapeHandle s, int64 rank, ShapeHandle* out);
  absl::Status WithValue(DimensionHandle d, int64 value, DimensionHandle* out);
  absl::Status Merge(DimensionHandle a, DimensionHandle b, DimensionHandle* out);
  absl::Status Merge(ShapeHandle a, ShapeHandle b, ShapeHandle* out);
  // Merges `prefix` with the first dimensions of `s`.
  absl::Status MergePrefix(ShapeHandle s, ShapeHandle prefix, ShapeHandle* s_out,
                           ShapeHandle* prefix_out);
  // The pairs of shapes and dimensions that Merge calls have found to be equal.
  const std::vector<std::pair<ShapeHandle, ShapeHandle>>& MergedShapes() const {
    return merged_shapes_;
  }
  const std::vector<std::pair<DimensionHandle, DimensionHandle>>& MergedDims() const {
    return merged_dims_;
  }
  // Merge (relax) the shape of input i with `shape`. Return false if they cannot be merged (if the
  // input did not change). A relaxed shape keeps the dimensions that both shapes have.
  bool MergeInput(int i, ShapeHandle shape);
  bool RelaxInput(int i, ShapeHandle shape);

  // ---- Construction of shapes ----

  ShapeHandle MakeShape(const std::vector<DimensionHandle>& dims);
  ShapeHandle MakeShape(std::initializer_list<DimensionOrConstant> dims);
  ShapeHandle UnknownShape();
  // Returns an unknown shape if the rank is negative or more than a shape can have.
  ShapeHandle UnknownShapeOfRank(int64 rank);
  ShapeHandle Scalar() { return MakeShape(std::vector<DimensionHandle>()); }
  ShapeHandle Vector(DimensionOrConstant dim) { return MakeShape({dim}); }
  ShapeHandle Matrix(DimensionOrConstant a, DimensionOrConstant b) { return MakeShape({a, b}); }
  // Creates the shape whose dimensions are the elements of input i, a vector. A scalar -1 means an
  // unknown shape. In the second form, an unknown scalar also means an unknown shape.
  absl::Status MakeShapeFromShapeTensor(int i, ShapeHandle* out);
  absl::Status MakeShapeFromShapeTensorTreatScalarAsUnknownShape(int i, ShapeHandle* out);
  absl::StatusOr<ShapeHandle> MakeShapeFromShapeTensor(const TensorShape& shape);
  // `tensor_shape` is the shape of `tensor`, which is null if the value is unknown.
  absl::Status MakeShapeFromTensor(const Tensor* tensor, ShapeHandle tensor_shape,
                                   ShapeHandle* out);
  absl::Status MakeShapeFromPartialTensorShape(const PartialTensorShape& shape, ShapeHandle* out);
  absl::Status MakeShapeFromTensorShape(const TensorShape& shape, ShapeHandle* out);
  absl::Status MakeShapeFromShapeProto(const TensorShapeProto& proto, ShapeHandle* out);
  // Returns dimensions [start, end) of `s` in steps of `stride`. Negative positions count from the
  // end.
  absl::Status Subshape(ShapeHandle s, int64 start, ShapeHandle* out);
  absl::Status Subshape(ShapeHandle s, int64 start, int64 end, ShapeHandle* out);
  absl::Status Subshape(ShapeHandle s, int64 start, int64 end, int64 stride, ShapeHandle* out);
  absl::Status Concatenate(ShapeHandle a, ShapeHandle b, ShapeHandle* out);
  absl::Status ReplaceDim(ShapeHandle s, int64 i, DimensionHandle dim, ShapeHandle* out);

  // ---- Construction of dimensions. Results are unknown if an operand is unknown ----

  DimensionHandle MakeDim(DimensionOrConstant d) { return shapes_.MakeDim(d); }
  DimensionHandle UnknownDim() { return MakeDim(kUnknownDim); }
  // Creates a dimension from the value of input i, a scalar. The second form counts negative values
  // from `input_rank`.
  absl::Status MakeDimForScalarInput(int i, DimensionHandle* out);
  absl::Status MakeDimForScalarInputWithNegativeIndexing(int i, int input_rank,
                                                         DimensionHandle* out);
  // Store the value of an int32 or int64 scalar, or of element i of a vector.
  absl::Status GetScalarFromTensor(const Tensor* tensor, int64* value);
  absl::Status GetScalarFromTensor(const Tensor* tensor, int64 i, int64* value);
  absl::Status Add(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out);
  absl::Status Subtract(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out);
  absl::Status Multiply(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out);
  absl::Status Divide(DimensionHandle a, DimensionOrConstant b, bool evenly_divisible,
                      DimensionHandle* out);
  absl::Status Min(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out);
  absl::Status Max(DimensionHandle a, DimensionOrConstant b, DimensionHandle* out);

  // ---- The values behind resource handles. Null if they are unknown. Merge and Relax return true
  // if anything has changed ----

  using ShapesAndTypes = std::vector<ShapeAndType>;
  const ShapesAndTypes* input_handle_shapes_and_types(int i) const {
    return HasInput(i) ? input_handles_[i].get() : nullptr;
  }
  const ShapesAndTypes* output_handle_shapes_and_types(int i) const {
    return HasOutput(i) ? output_handles_[i].get() : nullptr;
  }
  void set_input_handle_shapes_and_types(int i, const ShapesAndTypes& values) {
    if (HasInput(i)) input_handles_[i] = std::make_unique<ShapesAndTypes>(values);
  }
  void set_output_handle_shapes_and_types(int i, const ShapesAndTypes& values) {
    if (HasOutput(i)) output_handles_[i] = std::make_unique<ShapesAndTypes>(values);
  }
  TF_MUST_USE_RESULT bool MergeInputHandleShapesAndTypes(int i, const ShapesAndTypes& values);
  TF_MUST_USE_RESULT bool MergeOutputHandleShapesAndTypes(int i, const ShapesAndTypes& values);
  TF_MUST_USE_RESULT bool RelaxInputHandleShapesAndMergeTypes(int i, const ShapesAndTypes& values);
  TF_MUST_USE_RESULT bool RelaxOutputHandleShapesAndMergeTypes(int i, const ShapesAndTypes& values);

  // ---- For the callers of shape functions. Not in TensorFlow ----

  // Returns INTERNAL for the first use of an input or output that does not exist.
  const absl::Status& status() const { return status_; }
  // Returns a plain shape, or an error if it has too many dimensions or elements.
  absl::StatusOr<PartialTensorShape> PlainShape(ShapeHandle s) const;

 private:
  friend class ShapeInferenceTest;
  friend class ShapeInferenceTestutil;

  // Owns shapes and dimensions.
  class ShapeManager {
   public:
    ShapeHandle MakeShape(const std::vector<DimensionHandle>& dims) {
      return &shapes_.emplace_back(dims);
    }
    ShapeHandle UnknownShape() { return &shapes_.emplace_back(); }
    DimensionHandle MakeDim(DimensionOrConstant d) {
      if (d.dim.IsSet()) return d.dim;
      return &dims_.emplace_back(d.val);
    }

   private:
    // Deques, because handles point to their elements.
    std::deque<Shape> shapes_;
    std::deque<Dimension> dims_;
  };

  bool HasInput(int64 i) const { return Has("input", i, num_inputs()); }
  bool HasOutput(int64 i) const { return Has("output", i, num_outputs()); }
  bool Has(absl::string_view kind, int64 i, int count) const;
  ShapeHandle Own(const PartialTensorShape& shape);
  // Sets everything except the inputs.
  void Init(const OpDef& op_def, const std::vector<const Tensor*>& input_tensors);
  // Finds the ranges of the arguments, unless they are known already.
  absl::Status FindRanges() const;
  absl::Status AttachContext(const absl::Status& status);
  absl::Status MakeShape(const Tensor* tensor, ShapeHandle tensor_shape, bool scalar_is_unknown,
                         ShapeHandle* out);
  absl::Status MakeShapeFromInput(int i, bool scalar_is_unknown, ShapeHandle* out);

  void Relax(DimensionHandle d_old, DimensionHandle d_new, DimensionHandle* out);
  void Relax(ShapeHandle s_old, ShapeHandle s_new, ShapeHandle* out);
  void ForgetMerges();
  using Handles = std::vector<std::unique_ptr<ShapesAndTypes>>;
  bool Update(Handles* handles, int i, const ShapesAndTypes& values, bool relax);

  // Null if the context was created without it.
  gradflow::ShapeContext* const context_ = nullptr;
  const int graph_def_version_ = 0;
  const AttrSlice attrs_;
  ShapeManager shapes_;
  std::vector<ShapeHandle> inputs_;
  std::vector<ShapeHandle> outputs_;
  std::vector<const Tensor*> input_tensors_;
  std::vector<ShapeHandle> input_tensors_as_shapes_;
  std::vector<bool> requested_tensor_;
  std::vector<bool> requested_partial_shape_;
  Handles input_handles_;
  Handles output_handles_;
  FullTypeDef ret_types_;
  mutable bool has_ranges_ = false;
  mutable gradflow::NameRangeMap input_ranges_;
  mutable gradflow::NameRangeMap output_ranges_;
  std::vector<std::pair<ShapeHandle, ShapeHandle>> merged_shapes_;
  std::vector<std::pair<DimensionHandle, DimensionHandle>> merged_dims_;
  absl::Status construction_status_;
  mutable absl::Status status_;
};

// Calls a gradflow shape function of op `op_def`. The function sees plain shapes, so the outputs
// have new dimensions. Not in TensorFlow.
absl::Status CallPlainShapeFn(gradflow::ShapeFn fn, const OpDef& op_def, InferenceContext* c);
// Returns true if the shape function of the op in the global registry is a plain one. Not in
// TensorFlow.
bool HasPlainShapeFn(const std::string& op_name);

}  // namespace shape_inference

using OpShapeInferenceFn = std::function<absl::Status(shape_inference::InferenceContext*)>;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_SHAPE_INFERENCE_H_
