#include "gradflow/graph/constant_evaluator.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/graph_impl.h"
#include "gradflow/graph/node_kernel.h"

namespace gradflow::internal {

// The way to find the outputs of a node.
struct ConstantEvaluator::Rule {
  enum Kind {
    // The outputs follow from the shapes of the inputs: their dimensions, number of elements, or
    // rank.
    kShape,
    kSize,
    kRank,
    // The output follows from the shape of the variable whose handle is the input.
    kVariableShape,
    // The kernel computes the outputs. Each element of the outputs is an element of a moved input,
    // or the result of a conversion that keeps 0 and 1. All inputs are moved except the first
    // `first` and the last `last` inputs, such as axes. All elements of these other inputs must be
    // known.
    kMove,
    // The kernel computes the outputs. All elements of all inputs must be known.
    kCompute,
  };

  bool Moves(int input, int num_inputs) const {
    return kind == kMove && input >= first && input < num_inputs - last;
  }

  Kind kind = kCompute;
  int first = 0;
  int last = 0;
};

namespace {

// The types of known values.
using Types =
    ConcatTypes<ConcatTypes<TypeList<bool>, IntegerTypes>::type, TypeList<float, double>>::type;

bool IsKnowable(DataType dtype) {
  return DispatchType(Types(), dtype, [](auto) {});
}

// Returns the number of elements of an output, or -1 if the number is unknown or too large or
// values of the type cannot be known.
int64_t KnowableElements(const Node& node, int output) {
  if (!IsKnowable(node.output_type(output))) return -1;
  const int64_t elements = node.output_shape(output).num_elements();
  return elements <= ConstantEvaluator::kMaxElements ? elements : -1;
}

// Returns a tensor filled with `value`, which is 0 or 1.
absl::StatusOr<Tensor> Filled(DataType dtype, const TensorShape& shape, int value) {
  GRADFLOW_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(dtype, shape));
  DispatchType(Types(), dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::fill_n(tensor.flat<T>().data(), tensor.NumElements(), static_cast<T>(value));
  });
  return tensor;
}

// Returns the number of elements that are not 0.
int64_t CountNonzero(const Tensor& tensor) {
  int64_t count = 0;
  DispatchType(Types(), tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto elements = tensor.flat<T>();
    count = tensor.NumElements() -
            std::count(elements.data(), elements.data() + tensor.NumElements(), T());
  });
  return count;
}

}  // namespace

const ConstantEvaluator::Rule* ConstantEvaluator::FindRule(const Node& node) {
  using Rules = HashMap<absl::string_view, Rule>;
  // Ops whose kernels take time and memory linear in their inputs and outputs. Never destroyed,
  // because graphs in static storage may live until the end.
  static const Rules& rules = *new Rules{
      {"Shape", {Rule::kShape}},
      {"ShapeN", {Rule::kShape}},
      {"Size", {Rule::kSize}},
      {"Rank", {Rule::kRank}},
      {"VariableShape", {Rule::kVariableShape}},

      {"BroadcastTo", {Rule::kMove, 0, 1}},
      {"Cast", {Rule::kMove}},
      {"Concat", {Rule::kMove, 1, 0}},
      {"ConcatV2", {Rule::kMove, 0, 1}},
      {"ExpandDims", {Rule::kMove, 0, 1}},
      {"Fill", {Rule::kMove, 1, 0}},
      {"Gather", {Rule::kMove, 0, 1}},
      {"GatherNd", {Rule::kMove, 0, 1}},
      {"GatherV2", {Rule::kMove, 0, 2}},
      {"Identity", {Rule::kMove}},
      {"IdentityN", {Rule::kMove}},
      {"Pack", {Rule::kMove}},
      {"PreventGradient", {Rule::kMove}},
      {"Reshape", {Rule::kMove, 0, 1}},
      {"ReverseV2", {Rule::kMove, 0, 1}},
      {"Slice", {Rule::kMove, 0, 2}},
      {"Split", {Rule::kMove, 1, 0}},
      {"SplitV", {Rule::kMove, 0, 2}},
      {"Squeeze", {Rule::kMove}},
      {"StopGradient", {Rule::kMove}},
      {"StridedSlice", {Rule::kMove, 0, 3}},
      {"Tile", {Rule::kMove, 0, 1}},
      {"Transpose", {Rule::kMove, 0, 1}},
      {"Unpack", {Rule::kMove}},

      {"Abs", {}},
      {"Add", {}},
      {"AddN", {}},
      {"AddV2", {}},
      {"All", {}},
      {"Any", {}},
      {"BroadcastArgs", {}},
      {"Ceil", {}},
      {"ConcatOffset", {}},
      {"Cumprod", {}},
      {"Cumsum", {}},
      {"Div", {}},
      {"DivNoNan", {}},
      {"DynamicStitch", {}},
      {"Equal", {}},
      {"Floor", {}},
      {"FloorDiv", {}},
      {"FloorMod", {}},
      {"Greater", {}},
      {"GreaterEqual", {}},
      {"InvertPermutation", {}},
      {"Less", {}},
      {"LessEqual", {}},
      {"LogicalAnd", {}},
      {"LogicalNot", {}},
      {"LogicalOr", {}},
      {"Max", {}},
      {"Maximum", {}},
      {"Mean", {}},
      {"Min", {}},
      {"Minimum", {}},
      {"Mod", {}},
      {"Mul", {}},
      {"Neg", {}},
      {"NotEqual", {}},
      {"OnesLike", {}},
      {"Pad", {}},
      {"PadV2", {}},
      {"Pow", {}},
      {"Prod", {}},
      {"Range", {}},
      {"RealDiv", {}},
      {"Rint", {}},
      {"Round", {}},
      {"Select", {}},
      {"SelectV2", {}},
      {"Sign", {}},
      {"Sqrt", {}},
      {"Square", {}},
      {"Sub", {}},
      {"Sum", {}},
      {"TruncateDiv", {}},
      {"TruncateMod", {}},
      {"ZerosLike", {}},
  };
  if (node.num_outputs() == 0 || node.num_outputs() > kMaxElements ||
      node.num_inputs() > kMaxElements) {
    return nullptr;
  }
  int64_t total = 0;
  for (int i = 0; i < node.num_outputs(); ++i) {
    const int64_t elements = KnowableElements(node, i);
    total += elements;
    if (elements < 0 || total > kMaxElements) return nullptr;
  }
  const auto it = rules.find(node.type_string());
  return it == rules.end() ? nullptr : &it->second;
}

const Tensor* ConstantEvaluator::Find(const Node::Source& source) {
  const Node& node = *source.node;
  if (node.IsConstant()) return node.graph().ConstantValue(node, source.output);
  Evaluate(node);
  const View view = Look(source);
  return view.known == nullptr ? view.elements : nullptr;
}

PartialTensorShape ConstantEvaluator::FindShape(const Node::Source& source) {
  Evaluate(*source.node);
  const View view = Look(source);
  if (view.elements == nullptr || view.elements->dims() != 1) return PartialTensorShape();
  const auto count = static_cast<size_t>(view.elements->NumElements());
  if (count > static_cast<size_t>(kMaxDims)) return PartialTensorShape();
  DimVector dims(count, -1);
  const bool is_shape = DispatchType(IndexTypes(), view.elements->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const elements = view.elements->flat<T>().data();
    const T* const known = view.known == nullptr ? nullptr : view.known->flat<T>().data();
    for (size_t i = 0; i < count; ++i) {
      if ((known == nullptr || known[i] != 0) && elements[i] >= 0) dims[i] = elements[i];
    }
  });
  if (!is_shape) return PartialTensorShape();
  // The product of the known dimensions may be too large for a shape.
  absl::StatusOr<PartialTensorShape> shape = PartialTensorShape::Make(dims);
  return shape.ok() ? *std::move(shape)
                    : PartialTensorShape::UnknownOfRank(static_cast<int>(count));
}

void ConstantEvaluator::Forget(int id) {
  const auto it = values_.find(id);
  if (it == values_.end()) return;
  bytes_ -= BytesOf(it->second);
  values_.erase(it);
}

ConstantEvaluator::View ConstantEvaluator::Look(const Node::Source& source) const {
  const Node& node = *source.node;
  if (node.IsConstant()) {
    // Comparisons would take time linear in the characters of a string.
    if (!IsKnowable(node.output_type(source.output))) return {};
    return {node.graph().ConstantValue(node, source.output, kMaxElements), nullptr};
  }
  const auto it = values_.find(node.id());
  if (it == values_.end() || it->second.empty()) return {};
  const Value& value = it->second[static_cast<size_t>(source.output)];
  const auto set = [](const Tensor& tensor) {
    return tensor.dtype() == DT_INVALID ? nullptr : &tensor;
  };
  return {set(value.elements), set(value.known)};
}

void ConstantEvaluator::Evaluate(const Node& node) {
  struct Pending {
    const Node* node;
    const Rule* rule;
    // True if its inputs have been evaluated or are above it in the stack.
    bool is_ready;
  };
  absl::InlinedVector<Pending, 16> pending;
  const auto push = [&](const Node& next) {
    if (next.IsConstant() || values_.find(next.id()) != values_.end()) return;
    if (const Rule* const rule = FindRule(next)) pending.push_back({&next, rule, false});
  };
  push(node);
  int visited = 0;
  while (!pending.empty() && visited <= kMaxNodes && bytes_ < kMaxBytes) {
    const Pending next = pending.back();
    if (values_.find(next.node->id()) != values_.end()) {
      // Another node above it had the same input.
      pending.pop_back();
    } else if (!next.is_ready) {
      pending.back().is_ready = true;
      ++visited;
      if (next.rule->kind != Rule::kMove && next.rule->kind != Rule::kCompute) continue;
      for (const Node::Source& source : next.node->sources()) {
        if (source.output >= 0) push(*source.node);
      }
    } else {
      Values values;
      const absl::Status status =
          CallSafely([&] { return Compute(*next.node, *next.rule, &values); });
      // A run returns the same error unless a feed avoids it.
      Store(*next.node, status.ok() ? std::move(values) : Values());
      pending.pop_back();
    }
  }
  // Gives up the remaining nodes for good, because a later call would take as long.
  if (bytes_ < kMaxBytes) {
    for (const Pending& left : pending) Store(*left.node, Values());
  }
}

void ConstantEvaluator::Store(const Node& node, Values values) {
  const auto is_known = [](const Value& value) { return value.elements.dtype() != DT_INVALID; };
  if (std::none_of(values.begin(), values.end(), is_known)) values = Values();
  const auto [it, is_new] = values_.try_emplace(node.id(), std::move(values));
  if (is_new) bytes_ += BytesOf(it->second);
}

int64_t ConstantEvaluator::BytesOf(const Values& values) {
  // An entry of the table, and an allocation with its header.
  constexpr int64_t kEntry = 64;
  constexpr int64_t kAllocation = 128;
  int64_t bytes = kEntry;
  for (const Value& value : values) {
    bytes += static_cast<int64_t>(sizeof(value));
    for (const Tensor* tensor : {&value.elements, &value.known}) {
      if (tensor->dtype() == DT_INVALID) continue;
      bytes += static_cast<int64_t>(tensor->TotalBytes()) + kAllocation;
    }
  }
  return bytes;
}

absl::Status ConstantEvaluator::SetInts(DataType dtype, const TensorShape& shape,
                                        absl::Span<const int64_t> numbers, Value* value) {
  absl::Status status;
  DispatchType(IndexTypes(), dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto is_known = [](int64_t number) {
      return number >= 0 && number <= int64_t{std::numeric_limits<T>::max()};
    };
    const auto count = static_cast<size_t>(std::count_if(numbers.begin(), numbers.end(), is_known));
    if (count == 0 && !numbers.empty()) return;
    const auto set = [&](Tensor* tensor, auto convert) {
      absl::StatusOr<Tensor> allocated = Tensor::Allocate(dtype, shape);
      status.Update(allocated.status());
      if (!allocated.ok()) return;
      std::transform(numbers.begin(), numbers.end(), allocated->template flat<T>().data(), convert);
      *tensor = *std::move(allocated);
    };
    set(&value->elements, [&](int64_t n) { return static_cast<T>(is_known(n) ? n : 0); });
    if (count < numbers.size()) {
      set(&value->known, [&](int64_t n) { return static_cast<T>(is_known(n) ? 1 : 0); });
    }
  });
  return status;
}

absl::Status ConstantEvaluator::ComputeShapes(const Node& node, const Rule& rule, Values* values) {
  values->resize(static_cast<size_t>(node.num_outputs()));
  // An op of this name in a program's registry may have more outputs than inputs.
  const int count = std::min(node.num_inputs(), node.num_outputs());
  for (int i = 0; i < count; ++i) {
    const Node::Source& source = node.sources()[static_cast<size_t>(i)];
    PartialTensorShape shape = source.node->output_shape(source.output);
    if (rule.kind == Rule::kVariableShape) {
      DataType dtype;
      shape = PartialTensorShape();
      FindVariable(source.node, &dtype, &shape);
    }
    if (shape.unknown_rank()) continue;
    DimVector numbers;
    switch (rule.kind) {
      case Rule::kSize:
        numbers.push_back(shape.num_elements());
        break;
      case Rule::kRank:
        numbers.push_back(shape.dims());
        break;
      default:
        numbers.assign(shape.dim_sizes().begin(), shape.dim_sizes().end());
    }
    TensorShape output;
    if (!node.output_shape(i).AsTensorShape(&output) ||
        output.num_elements() != static_cast<int64_t>(numbers.size())) {
      continue;
    }
    GRADFLOW_RETURN_IF_ERROR(SetInts(node.output_type(i), output, numbers, &(*values)[i]));
  }
  return absl::OkStatus();
}

absl::Status ConstantEvaluator::Compute(const Node& node, const Rule& rule, Values* values) const {
  if (rule.kind != Rule::kMove && rule.kind != Rule::kCompute) {
    return ComputeShapes(node, rule, values);
  }
  const int count = node.num_inputs();
  absl::InlinedVector<Tensor, 4> inputs;
  bool any = false;
  bool all = true;
  for (int i = 0; i < count; ++i) {
    const Node::Source& source = node.sources()[static_cast<size_t>(i)];
    const View view = Look(source);
    const bool is_known = view.elements != nullptr && view.known == nullptr;
    all = all && is_known;
    any = any || (rule.Moves(i, count) && view.elements != nullptr);
    if (!is_known && !rule.Moves(i, count)) return absl::OkStatus();
    if (view.elements != nullptr) {
      inputs.push_back(*view.elements);
      continue;
    }
    TensorShape shape;
    if (KnowableElements(*source.node, source.output) < 0 ||
        !source.node->output_shape(source.output).AsTensorShape(&shape)) {
      return absl::OkStatus();
    }
    GRADFLOW_ASSIGN_OR_RETURN(inputs.emplace_back(),
                              Filled(source.node->output_type(source.output), shape, 0));
  }
  if (!any && !all) return absl::OkStatus();
  // The inputs, with the masks of known elements in place of the moved inputs.
  absl::InlinedVector<Tensor, 4> known;
  for (int i = 0; i < count && !all; ++i) {
    const View view = Look(node.sources()[static_cast<size_t>(i)]);
    if (!rule.Moves(i, count)) {
      known.push_back(inputs[i]);
    } else if (view.known != nullptr) {
      known.push_back(*view.known);
    } else {
      GRADFLOW_ASSIGN_OR_RETURN(known.emplace_back(), Filled(inputs[i].dtype(), inputs[i].shape(),
                                                             view.elements != nullptr ? 1 : 0));
    }
  }

  GRADFLOW_ASSIGN_OR_RETURN(const KernelRegistration* const registration,
                            node.graph().registry().FindKernel(node.def()));
  GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<OpKernel> kernel,
                            MakeNodeKernel(node, *registration));
  if (kernel->AsAsync() != nullptr) return absl::OkStatus();
  RunContext run;
  run.max_loop_threads = 1;
  std::vector<Tensor> elements;
  GRADFLOW_RETURN_IF_ERROR(RunNodeKernel(node, *kernel, absl::MakeSpan(inputs), run, &elements));
  std::vector<Tensor> masks;
  if (!all) {
    GRADFLOW_RETURN_IF_ERROR(RunNodeKernel(node, *kernel, absl::MakeSpan(known), run, &masks));
  }
  values->resize(elements.size());
  for (size_t i = 0; i < elements.size(); ++i) {
    if (node.output_shape(static_cast<int>(i)) != PartialTensorShape(elements[i].shape())) continue;
    Value& value = (*values)[i];
    const int64_t known_elements = all ? elements[i].NumElements() : CountNonzero(masks[i]);
    if (known_elements == 0 && elements[i].NumElements() > 0) continue;
    value.elements = std::move(elements[i]);
    if (known_elements < value.elements.NumElements()) value.known = std::move(masks[i]);
  }
  return absl::OkStatus();
}

}  // namespace gradflow::internal
