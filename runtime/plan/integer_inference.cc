// UseIntegers: computes with 8-bit integers between fake-quantization nodes.
//
// The pass visits the nodes in topological order and learns two things about their values:
//
//   - A value has integers if 8-bit integers stand for it exactly. A fake-quantization node with a
//     constant range computes it, or a node that only moves such values.
//   - A pending value is computed from integers by one kernel, which is not yet made. It is a
//     product with constant weights, a pair (the sum or product of two tensors), a table (a
//     function of each element), or a form (the form in integers of another kernel). Biases,
//     activations and moves after it join it if each has a single reader.
//
// If a fake-quantization node reads a pending value, one kernel computes the integers of the
// fake-quantization node. A product that no such node reads becomes a kernel that returns floats.
// Nodes that read floats read dequantized integers.
//
// The new kernels wait for all control inputs of the nodes that they replace. A node that would
// vanish without a kernel, such as a cast, is kept if it has control inputs.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/fixed_point.h"
#include "gradflow/core/fused_steps.h"
#include "gradflow/core/integer_kernels.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/tables.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/runtime/plan/constant_runner.h"
#include "gradflow/runtime/plan/integer_steps.h"
#include "gradflow/runtime/plan/op_traits.h"
#include "gradflow/runtime/plan/passes.h"
#include "gradflow/runtime/plan/plan_report.h"
#include "gradflow/runtime/plan/plan_rewriter.h"
#include "gradflow/runtime/plan/tflite_rounding.h"

namespace gradflow {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr char kTooLarge[] = "its results exceed the range of its format";
constexpr int kNone = -1;

// A uint8 tensor of the plan, and its format.
struct IntegerValue {
  PlanGraph::Value value;
  IntegerFormat format;
  // Indexes in integer_values_ of the integers that it is computed from.
  std::vector<int> sources;
  // True if a product computes the integers.
  bool is_computed = false;
  // True if a product uses the integers, directly or through other kernels. A fake-quantization
  // node is replaced only if its integers are computed or read. Otherwise Prune() removes the
  // kernels that nothing uses.
  bool is_read = false;
};

// A value that a kernel can compute from integers.
struct PendingValue {
  enum Kind { kProduct, kPair, kTable, kForm, kConcat };
  Kind kind = kProduct;
  // Indexes of the integers that it is computed from.
  std::vector<int> inputs;
  // The nodes that compute it, in topological order.
  std::vector<int32_t> nodes;
  // Nodes after nodes.back() that copy elements, or take their maximum (MaxPool). Quantization is
  // monotonic, so these nodes may work on the integers instead.
  std::vector<int32_t> moves;
  bool is_done = false;

  // kProduct: for each output channel, value = sum * multiplier + offset.
  const IntegerProductKernel* product = nullptr;
  Tensor weights;
  int rank = 0;
  // kProduct and kForm. A form has a single multiplier, and the offset is 0.
  std::vector<double> multiplier;
  std::vector<double> offset;
  // kProduct, with the rounding of TensorFlow Lite: the scales of the offsets.
  std::vector<double> offset_scale;
  const IntegerFormKernel* form = nullptr;
  // kPair: the product of the two tensors if true, otherwise their sum.
  bool multiplies = false;
  // The clamp of the value. Tables and concatenations have no clamp.
  double lowest = -kInfinity;
  double highest = kInfinity;

  bool is_clamped() const { return lowest != -kInfinity || highest != kInfinity; }
  bool may_be_clamped() const { return kind != kTable && kind != kConcat; }
};

// Constant weights, as integers of type int16.
struct QuantizedWeights {
  Tensor integers;
  // Element i has the scale scales[i / stride % scales.size()].
  std::vector<double> scales;
  // The scales before they are rounded to float.
  std::vector<double> range_scales;
  int64_t stride = 1;
};

// The roles of ops in the pass. Kernels tell about products, tables and other forms in integers.
enum OpRole : uint32_t {
  // Moves the elements of its first input, or of all inputs if it concatenates.
  kMoves = 1 << 0,
  kConcatenates = 1 << 1,
  kPadsZeros = 1 << 2,
  // Keeps the order of elements.
  kReshapes = 1 << 3,
  kAdds = 1 << 4,
  kSubtracts = 1 << 5,
  kMultiplies = 1 << 6,
  kDivides = 1 << 7,
  // The constant has an element for each channel.
  kIsBias = 1 << 8,
  kNormalizes = 1 << 9,
  kRelu = 1 << 10,
  kRelu6 = 1 << 11,
  kCasts = 1 << 12,
  kSigmoid = 1 << 13,
  kTanh = 1 << 14,
};

uint32_t RolesOf(absl::string_view op) {
  constexpr struct {
    absl::string_view op;
    uint32_t roles;
  } kOps[] = {
      {"Add", kAdds},
      {"AddV2", kAdds},
      {"BiasAdd", kAdds | kIsBias},
      {"Cast", kCasts},
      {"ConcatV2", kMoves | kConcatenates},
      {"DepthToSpace", kMoves},
      {"ExpandDims", kMoves | kReshapes},
      {"FusedBatchNorm", kNormalizes},
      {"FusedBatchNormV2", kNormalizes},
      {"FusedBatchNormV3", kNormalizes},
      {"Gather", kMoves},
      {"GatherV2", kMoves},
      {"Identity", kMoves | kReshapes},
      {"MaxPool", kMoves},
      {"MirrorPad", kMoves},
      {"Mul", kMultiplies},
      {"Pad", kMoves | kPadsZeros},
      {"RealDiv", kDivides},
      {"Relu", kRelu},
      {"Relu6", kRelu6},
      {"Reshape", kMoves | kReshapes},
      {"ResizeNearestNeighbor", kMoves},
      {"Reverse", kMoves},
      {"ReverseV2", kMoves},
      {"Sigmoid", kSigmoid},
      {"Slice", kMoves},
      {"SpaceToDepth", kMoves},
      {"Squeeze", kMoves | kReshapes},
      {"StridedSlice", kMoves},
      {"Sub", kSubtracts},
      {"Tanh", kTanh},
      {"Tile", kMoves},
      {"Transpose", kMoves},
  };
  for (const auto& known : kOps) {
    if (known.op == op) return known.roles;
  }
  return 0;
}

bool AreFinite(const std::vector<double>& values, double divisor = 1) {
  return std::all_of(values.begin(), values.end(), [&](double value) {
    return std::isfinite(static_cast<float>(value / divisor));
  });
}

std::vector<float> ToFloats(const std::vector<double>& values, double divisor) {
  std::vector<float> floats;
  for (const double value : values) floats.push_back(static_cast<float>(value / divisor));
  return floats;
}

class IntegerPlanner {
 public:
  IntegerPlanner(const PassContext& context, PlanGraph* graph)
      : context_(context),
        tflite_(context.options.tflite_rounding),
        rewriter_(context, graph),
        runner_(context, context.options.max_folded_bytes),
        graph_(*graph) {}

  absl::Status Plan() {
    integers_.assign(static_cast<size_t>(graph_.num_nodes()), kNone);
    pending_.assign(static_cast<size_t>(graph_.num_nodes()), kNone);
    for (const int32_t node : rewriter_.order()) {
      GRADFLOW_RETURN_IF_ERROR(rewriter_.CheckStop(node));
      // Skips constants, whose kernels would copy the values, nodes that a pass has made or
      // changed, stateful nodes, and nodes of other devices.
      if (graph_.num_inputs(node) == 0 || !graph_.is_original(node) || graph_.stateful(node) ||
          graph_.device(node) != 0) {
        continue;
      }
      GRADFLOW_ASSIGN_OR_RETURN(const OpKernel* const kernel, rewriter_.KernelOf(node));
      if (kernel != nullptr) Visit(node, *kernel);
      if (runner_.is_stopped()) return runner_.StopError(graph_.origin_at_site(node));
    }
    for (PendingValue& pending : pending_values_) {
      if (pending.is_done) continue;
      const int32_t last = pending.nodes.back();
      if (pending.kind != PendingValue::kProduct) {
        // Not reported if a larger table or a fake-quantization node uses it.
        if (pending.kind != PendingValue::kTable || used_tables_.count(last) == 0) {
          Report(pending.kind == PendingValue::kTable ? last : pending.nodes[0],
                 "no fake-quantization node reads its result");
        }
        continue;
      }
      PlanGraph::NewNode added;
      if (MakeProduct(pending, nullptr, &added)) rewriter_.Replace(last, std::move(added));
    }
    for (const auto& [node, integers] : quantizers_) {
      const IntegerValue& value = integer_values_[static_cast<size_t>(integers)];
      if (!value.is_read && !value.is_computed) continue;
      PlanGraph::NewNode added = rewriter_.NewNodeFor({node}, "Dequantize");
      added.kernel = MakeDequantize(value.format);
      added.inputs = {value.value};
      rewriter_.Replace(node, std::move(added));
    }
    GRADFLOW_RETURN_IF_ERROR(graph_.Prune());
    rewriter_.DropUnreadConstants();
    return absl::OkStatus();
  }

 private:
  void Visit(int32_t node, const OpKernel& kernel) {
    if (const auto* const quantizer = dynamic_cast<const QuantizingKernel*>(&kernel)) {
      return VisitQuantizer(node, kernel, *quantizer);
    }
    if (graph_.output_types(node)[0] != DT_FLOAT) return;
    if (const auto* const form = dynamic_cast<const IntegerFormKernel*>(&kernel)) {
      if (TryForm(node, *form)) return;
    }
    if (const auto* const product = dynamic_cast<const IntegerProductKernel*>(&kernel)) {
      return VisitProduct(node, *product);
    }
    const uint32_t roles = RolesOf(graph_.origin(node).type_string());
    if (TryBytes(node, roles) || TryMove(node, roles) || TryExtend(node, roles)) return;
    if (TryPair(node, roles) || TryTable(node, kernel)) return;
    for (int i = 0; i < graph_.num_inputs(node); ++i) {
      if (IntegersOf(graph_.edge(node, i)) != kNone) {
        return Report(node, "this op has no integer kernel");
      }
    }
  }

  // ---- What is known about values ----

  // Returns the index of the integers of a value, or kNone.
  int IntegersOf(PlanGraph::Value value) const {
    if (value.is_feed() || value.output != 0) return kNone;
    return static_cast<size_t>(value.node) < integers_.size()
               ? integers_[static_cast<size_t>(value.node)]
               : kNone;
  }
  // Returns the pending value of `value` if `reader` is its only reader; otherwise null.
  PendingValue* PendingOf(PlanGraph::Value value, int32_t reader) {
    if (value.is_feed() || value.output != 0 ||
        static_cast<size_t>(value.node) >= pending_.size()) {
      return nullptr;
    }
    const int found = pending_[static_cast<size_t>(value.node)];
    if (found == kNone || rewriter_.OnlyReader(value.node) != reader) return nullptr;
    return &pending_values_[static_cast<size_t>(found)];
  }

  // Returns the pending table of a value, or null. Tables may have any number of readers: each of
  // them computes the nodes of the table anew.
  PendingValue* TableOf(PlanGraph::Value value) {
    if (value.is_feed() || value.output != 0 ||
        static_cast<size_t>(value.node) >= pending_.size()) {
      return nullptr;
    }
    const int found = pending_[static_cast<size_t>(value.node)];
    if (found == kNone) return nullptr;
    PendingValue& pending = pending_values_[static_cast<size_t>(found)];
    return pending.kind == PendingValue::kTable && pending.moves.empty() ? &pending : nullptr;
  }

  const IntegerValue& integers(int index) const {
    return integer_values_[static_cast<size_t>(index)];
  }

  int AddIntegers(PlanGraph::Value value, const IntegerFormat& format, std::vector<int> sources,
                  bool is_computed = false) {
    integer_values_.push_back({value, format, std::move(sources), is_computed, false});
    return static_cast<int>(integer_values_.size()) - 1;
  }

  bool HasControls(int32_t node) const { return graph_.num_edges(node) > graph_.num_inputs(node); }

  // Marks integers and everything that they are computed from.
  void MarkRead(const std::vector<int>& values) {
    std::vector<int> left = values;
    while (!left.empty()) {
      IntegerValue& value = integer_values_[static_cast<size_t>(left.back())];
      left.pop_back();
      if (std::exchange(value.is_read, true)) continue;
      left.insert(left.end(), value.sources.begin(), value.sources.end());
    }
  }

  // Adds to the report why a node computes in floats.
  void Report(int32_t node, absl::string_view why) {
    PlanReport* const report = context_.options.report;
    if (report == nullptr) return;
    report->in_float.push_back({graph_.origin_at_site(node).name(),
                                graph_.origin(node).type_string(),
                                {std::string(why)}});
  }

  bool ConstantOf(PlanGraph::Value value, Tensor* constant) {
    return rewriter_.ConstantOf(value, constant);
  }

  // Computes output 0 of a node.
  absl::StatusOr<Tensor> Compute(int32_t node, const OpKernel& kernel, std::vector<Tensor> inputs) {
    std::vector<Tensor> outputs;
    GRADFLOW_RETURN_IF_ERROR(
        runner_.Run(graph_.origin(node), kernel, absl::MakeSpan(inputs), &outputs));
    return std::move(outputs[0]);
  }

  // ---- Fake quantization ----

  // Sets the elements of *inputs, except the first, to the constant inputs of a node.
  bool ConstantRanges(int32_t node, std::vector<Tensor>* inputs) {
    inputs->assign(static_cast<size_t>(graph_.num_inputs(node)), Tensor(Tensor::Unset{}));
    for (int i = 1; i < graph_.num_inputs(node); ++i) {
      if (!ConstantOf(graph_.edge(node, i), &(*inputs)[static_cast<size_t>(i)])) return false;
    }
    return true;
  }

  void VisitQuantizer(int32_t node, const OpKernel& kernel, const QuantizingKernel& quantizer) {
    const PlanGraph::Value x = graph_.edge(node, 0);
    // FindWeights() reads the ranges of weights.
    if (Tensor weights; ConstantOf(x, &weights)) return;
    std::vector<Tensor> inputs;
    if (!ConstantRanges(node, &inputs)) return Report(node, "its range is not constant");
    const absl::StatusOr<QuantizingKernel::Formats> formats = quantizer.FormatsOf(inputs);
    if (!formats.ok()) return Report(node, formats.status().message());
    if (formats->formats.size() != 1) return Report(node, "its channels have different ranges");
    const IntegerFormat format = tflite_ ? TfLiteFormat(formats->formats[0]) : formats->formats[0];
    int& result = integers_[static_cast<size_t>(node)];
    if (PendingValue* const pending = PendingOf(x, node)) {
      result = Quantize(pending, node, kernel, inputs, format);
    } else if (const PendingValue* const table = TableOf(x)) {
      PendingValue copy = *table;
      used_tables_.insert(x.node);
      result = Quantize(&copy, node, kernel, inputs, format);
    } else if (const int source = IntegersOf(x); source != kNone) {
      if (integers(source).format == format && !HasControls(node)) {
        result = source;
        return;
      }
      PendingValue same;
      same.kind = PendingValue::kTable;
      same.inputs = {source};
      result = Quantize(&same, node, kernel, inputs, format);
    }
    if (result == kNone) {
      PlanGraph::NewNode added = rewriter_.NewNodeFor({node}, "Quantize");
      added.kernel = tflite_ ? MakeTfLiteQuantize(format) : quantizer.MakeQuantize(inputs);
      added.inputs = {x};
      added.output_types = {DT_UINT8};
      result = AddIntegers({graph_.AddNode(std::move(added)), 0}, format, {});
    }
    quantizers_.emplace_back(node, result);
  }

  // Adds the kernel of a pending value that computes the integers of the result of the node
  // `quantizer`. Returns the integers, or kNone if there is no such kernel.
  int Quantize(PendingValue* pending, int32_t quantizer, const OpKernel& kernel,
               const std::vector<Tensor>& ranges, const IntegerFormat& format) {
    // A value that has no kernel in integers stays in float, and the reason is reported once.
    pending->is_done = true;
    PlanGraph::NewNode added;
    switch (pending->kind) {
      case PendingValue::kProduct:
        if (!MakeProduct(*pending, &format, &added)) return kNone;
        break;
      case PendingValue::kPair:
        if (!MakePair(*pending, format, &added)) return kNone;
        break;
      case PendingValue::kTable:
        if (!MakeTable(*pending, quantizer, kernel, ranges, format, &added)) return kNone;
        break;
      case PendingValue::kForm:
        if (!MakeForm(*pending, format, &added)) return kNone;
        break;
      case PendingValue::kConcat:
        if (!MakeConcat(*pending, quantizer, kernel, ranges, format, &added)) return kNone;
        break;
    }
    // The reader of the integers does not read the quantizer's result.
    if (pending->kind != PendingValue::kTable || !pending->nodes.empty()) {
      const PlanGraph::NewNode controls = rewriter_.NewNodeFor({quantizer}, "");
      added.control_inputs.insert(added.control_inputs.end(), controls.control_inputs.begin(),
                                  controls.control_inputs.end());
    }
    added.output_types = {DT_UINT8};
    PlanGraph::Value value = {graph_.AddNode(std::move(added)), 0};
    for (const int32_t move : pending->moves) {
      const absl::StatusOr<PlanGraph::NewNode> moved = MoveIntegers(move, {value}, format);
      // TryMove() has already made such a kernel.
      if (!moved.ok()) return kNone;
      value = {graph_.AddNode(*moved), 0};
    }
    const bool is_product =
        pending->kind == PendingValue::kProduct ||
        (pending->kind == PendingValue::kForm && pending->form->IsIntegerProduct());
    if (is_product) {
      MarkRead(pending->inputs);
      return AddIntegers(value, format, {}, /*is_computed=*/true);
    }
    return AddIntegers(value, format, pending->inputs);
  }

  // ---- Products ----

  void VisitProduct(int32_t node, const IntegerProductKernel& product) {
    if (graph_.num_inputs(node) != 2) return;
    const int input = IntegersOf(graph_.edge(node, 0));
    if (input == kNone) return Report(node, "its input is not quantized");
    const absl::StatusOr<QuantizedWeights> weights = FindWeights(graph_.edge(node, 1));
    if (!weights.ok()) return Report(node, weights.status().message());
    const absl::StatusOr<IntegerProductKernel::Channels> channels =
        product.IntegerChannels(weights->integers.shape());
    if (!channels.ok()) return Report(node, channels.status().message());
    const auto scales = static_cast<int64_t>(weights->scales.size());
    if (scales != 1 && (weights->stride != channels->stride || channels->count % scales != 0)) {
      return Report(node, "the ranges of its weights are not ranges of output channels");
    }
    PendingValue pending;
    pending.inputs = {input};
    pending.nodes = {node};
    pending.product = &product;
    pending.weights = weights->integers;
    pending.rank = channels->rank;
    const IntegerFormat& format = integers(input).format;
    // TensorFlow Lite multiplies the scales of a matrix product in float.
    const bool in_float = tflite_ && channels->rank == 2 && scales == 1;
    for (int64_t c = 0; c < channels->count; ++c) {
      const auto at = static_cast<size_t>(c % scales);
      const double product = format.scale * weights->scales[at];
      pending.multiplier.push_back(in_float ? static_cast<float>(product) : product);
      pending.offset_scale.push_back(RangeScale(format) * weights->range_scales[at]);
    }
    pending.offset.resize(pending.multiplier.size());
    AddPending(node, std::move(pending));
  }

  void AddPending(int32_t node, PendingValue pending) {
    pending_[static_cast<size_t>(node)] = static_cast<int>(pending_values_.size());
    pending_values_.push_back(std::move(pending));
  }

  // Returns constant weights as integers: the result of a fake-quantization node, possibly
  // reshaped, or integers that are stored as floats. The status says why there are none.
  absl::StatusOr<QuantizedWeights> FindWeights(PlanGraph::Value value) {
    QuantizedWeights result;
    Tensor weights;
    int32_t constant = kNone;
    if (rewriter_.ConstantOf(value, &weights, &constant)) {
      result.scales = result.range_scales = {1};
      GRADFLOW_RETURN_IF_ERROR(UseWeights(constant, weights));
      GRADFLOW_RETURN_IF_ERROR(SetIntegers(weights, &result));
      return result;
    }
    // Nodes that reshape the weights keep the order of elements.
    constexpr size_t kMaxReshapes = 8;
    std::vector<int32_t> reshapes;
    while (!value.is_feed() && value.output == 0 && reshapes.size() < kMaxReshapes &&
           graph_.is_original(value.node) && !HasControls(value.node) &&
           (RolesOf(graph_.origin(value.node).type_string()) & kReshapes) != 0) {
      reshapes.push_back(value.node);
      value = graph_.edge(value.node, 0);
    }
    if (value.is_feed() || value.output != 0) {
      return errors::Unimplemented("its weights are not constant");
    }
    GRADFLOW_ASSIGN_OR_RETURN(const OpKernel* const kernel, rewriter_.KernelOf(value.node));
    const auto* const quantizer = dynamic_cast<const QuantizingKernel*>(kernel);
    if (quantizer == nullptr) return errors::Unimplemented("its weights are not quantized");
    if (HasControls(value.node)) return errors::Unimplemented("its weights have control inputs");
    std::vector<Tensor> inputs;
    if (!ConstantRanges(value.node, &inputs) ||
        !rewriter_.ConstantOf(graph_.edge(value.node, 0), &inputs[0], &constant)) {
      return errors::Unimplemented("its weights are not constant");
    }
    GRADFLOW_RETURN_IF_ERROR(UseWeights(constant, inputs[0]));
    GRADFLOW_ASSIGN_OR_RETURN(QuantizingKernel::Formats formats, quantizer->FormatsOf(inputs));
    if (formats.formats.empty()) return errors::Unimplemented("its weights have no channels");
    for (IntegerFormat& format : formats.formats) {
      if (tflite_) format = TfLiteFormat(format);
      result.scales.push_back(format.scale);
      result.range_scales.push_back(RangeScale(format));
    }
    const int rank = inputs[0].dims();
    const int axis = formats.axis < 0 ? rank - 1 : formats.axis;
    for (int d = axis + 1; d < rank; ++d) result.stride *= inputs[0].dim_size(d);
    if (result.scales.size() > 1 &&
        (axis >= rank || inputs[0].dim_size(axis) != static_cast<int64_t>(result.scales.size()))) {
      return errors::Unimplemented("the ranges of its weights do not fit");
    }
    if (tflite_) {
      GRADFLOW_ASSIGN_OR_RETURN(weights, RoundLikeTfLite(inputs[0], formats.formats, result));
    } else {
      GRADFLOW_ASSIGN_OR_RETURN(weights, Compute(value.node, *kernel, std::move(inputs)));
    }
    for (; !reshapes.empty(); reshapes.pop_back()) {
      const int32_t reshape = reshapes.back();
      std::vector<Tensor> reshaped;
      if (!ConstantRanges(reshape, &reshaped)) {
        return errors::Unimplemented("the shape of its weights is not constant");
      }
      reshaped[0] = weights;
      GRADFLOW_ASSIGN_OR_RETURN(const OpKernel* const reshaping, rewriter_.KernelOf(reshape));
      if (reshaping == nullptr) return errors::Unimplemented("its weights are not constant");
      GRADFLOW_ASSIGN_OR_RETURN(weights, Compute(reshape, *reshaping, std::move(reshaped)));
    }
    GRADFLOW_RETURN_IF_ERROR(SetIntegers(weights, &result));
    return result;
  }

  // Returns an error if another product has the same weights: each product packs a copy, so a small
  // graph could take any amount of memory.
  absl::Status UseWeights(int32_t constant, const Tensor& weights) {
    if (!packed_.insert(constant).second) {
      return errors::Unimplemented("another node has the same weights");
    }
    runner_.AllowConstant(static_cast<int64_t>(weights.TotalBytes()));
    return absl::OkStatus();
  }

  // Rounds float weights to the levels of their formats.
  static absl::StatusOr<Tensor> RoundLikeTfLite(const Tensor& weights,
                                                const std::vector<IntegerFormat>& formats,
                                                const QuantizedWeights& layout) {
    GRADFLOW_ASSIGN_OR_RETURN(Tensor rounded, Tensor::Allocate(DT_FLOAT, weights.shape()));
    const absl::Span<const float> from = weights.flat<float>();
    auto* const to = static_cast<float*>(rounded.raw_data());
    const auto stride = static_cast<size_t>(layout.stride);
    for (size_t i = 0; i < from.size(); ++i) {
      const size_t c = i / stride % formats.size();
      to[i] = static_cast<float>(TfLiteSteps(from[i], layout.range_scales[c], formats[c]) *
                                 layout.scales[c]);
    }
    return rounded;
  }

  // Divides weights by their scales.
  static absl::Status SetIntegers(const Tensor& weights, QuantizedWeights* result) {
    if (weights.dtype() != DT_FLOAT) return errors::Unimplemented("its weights are not float");
    GRADFLOW_ASSIGN_OR_RETURN(result->integers, Tensor::Allocate(DT_INT16, weights.shape()));
    const auto* const from = static_cast<const float*>(weights.raw_data());
    auto* const to = static_cast<int16_t*>(result->integers.raw_data());
    const auto scales = static_cast<int64_t>(result->scales.size());
    for (int64_t i = 0; i < weights.NumElements(); ++i) {
      const double integer =
          from[i] / result->scales[static_cast<size_t>(i / result->stride % scales)];
      constexpr double kMax = 255;
      constexpr double kTolerance = 1e-3;
      // NaN is not an integer.
      if (!(std::abs(integer) <= kMax + kTolerance) ||
          std::abs(integer - std::nearbyint(integer)) > kTolerance) {
        return errors::Unimplemented("its weights are not quantized to 8 bits");
      }
      to[i] = static_cast<int16_t>(std::nearbyint(integer));
    }
    return absl::OkStatus();
  }

  // Sets *added to the kernel of a product that computes integers, or floats if `format` is null.
  bool MakeProduct(const PendingValue& pending, const IntegerFormat* format,
                   PlanGraph::NewNode* added) {
    const IntegerValue& input = integers(pending.inputs[0]);
    IntegerProductArgs args;
    args.weights = pending.weights;
    args.zero_point = input.format.zero_point;
    const double step = format == nullptr ? 1 : format->scale;
    args.result.multiplier = ToFloats(pending.multiplier, step);
    args.result.offset = ToFloats(pending.offset, step);
    args.result.is_float = format == nullptr;
    SetClamp(pending, format, &args.result.lowest, &args.result.highest);
    if (format != nullptr) args.result.zero_point = format->zero_point;
    bool finite = AreFinite(pending.multiplier, step) && AreFinite(pending.offset, step);
    if (tflite_ && format != nullptr) {
      finite = finite && SetFixedPoint(pending, step, &args.result);
      // TensorFlow Lite rounds fully connected layers once.
      args.result.rounds_once = pending.rank == 2;
    }
    auto kernel =
        finite ? pending.product->MakeIntegerProduct(args) : errors::Unimplemented(kTooLarge);
    if (!kernel.ok()) {
      Report(pending.nodes[0], kernel.status().message());
      return false;
    }
    *added = NewIntegerNode(pending.nodes);
    added->kernel = *std::move(kernel);
    added->inputs = {input.value};
    MarkRead(pending.inputs);
    return true;
  }

  // Sets the factors of a product with the rounding of TensorFlow Lite. Returns false if a factor
  // is too large.
  static bool SetFixedPoint(const PendingValue& pending, double step, IntegerResult* result) {
    constexpr double kMax = std::numeric_limits<int32_t>::max();
    for (size_t c = 0; c < pending.multiplier.size(); ++c) {
      const double factor = pending.multiplier[c] / step;
      if (!CanScale(pending.multiplier[c], step)) return false;
      // The factor multiplies the offset, so a factor of 0 would lose the offset.
      if (factor == 0 && pending.offset[c] != 0) return false;
      const double offset = std::round(pending.offset[c] / pending.offset_scale[c]);
      // NaN is not less either.
      if (!(std::abs(offset) < kMax)) return false;
      result->fixed.push_back(ToFixedPoint(factor));
      result->fixed_offset.push_back(static_cast<int32_t>(offset));
    }
    return true;
  }

  // Sets the clamp of a value in steps of the format; in floats if `format` is null.
  void SetClamp(const PendingValue& pending, const IntegerFormat* format, float* lowest,
                float* highest) const {
    constexpr double kMax = std::numeric_limits<float>::max();
    const double step = format == nullptr ? 1 : format->scale;
    const double first = format == nullptr ? -kMax : -format->zero_point;
    const double last = format == nullptr ? kMax : format->highest - format->zero_point;
    const auto clamp = [&](double bound) {
      const auto steps = static_cast<float>(std::clamp(bound / step, first, last));
      return tflite_ && format != nullptr ? std::round(steps) : steps;
    };
    *lowest = clamp(pending.lowest);
    *highest = clamp(pending.highest);
  }

  // ---- Nodes after a product or pair ----

  // Adds the node to the pending value that it reads. Returns false if it does not fit.
  bool TryExtend(int32_t node, uint32_t roles) {
    if (!rewriter_.use(node).first_output) return false;
    for (int i = 0; i < std::min(graph_.num_inputs(node), 2); ++i) {
      PendingValue* const pending = PendingOf(graph_.edge(node, i), node);
      if (pending == nullptr || !pending->may_be_clamped() || !pending->moves.empty() ||
          (i > 0 && (roles & (kAdds | kMultiplies)) == 0)) {
        continue;
      }
      if (!Clamps(roles, pending) && !TryConstant(node, roles, i, pending) &&
          !TryBatchNorm(node, roles, pending)) {
        continue;
      }
      pending->nodes.push_back(node);
      pending_[static_cast<size_t>(node)] =
          pending_[static_cast<size_t>(graph_.edge(node, i).node)];
      return true;
    }
    return false;
  }

  static bool Clamps(uint32_t roles, PendingValue* pending) {
    if ((roles & (kRelu | kRelu6)) == 0) return false;
    constexpr double kSix = 6;
    const double highest = (roles & kRelu6) != 0 ? kSix : kInfinity;
    pending->lowest = std::clamp<double>(pending->lowest, 0, highest);
    pending->highest = std::clamp<double>(pending->highest, 0, highest);
    return true;
  }

  // Adds or multiplies a constant of each output channel.
  bool TryConstant(int32_t node, uint32_t roles, int input, PendingValue* pending) {
    constexpr uint32_t kFactors = kMultiplies | kDivides;
    constexpr uint32_t kTerms = kAdds | kSubtracts;
    const uint32_t allowed = pending->kind == PendingValue::kForm ? kFactors : kFactors | kTerms;
    if ((roles & allowed) == 0 || !TakesAffine(node, *pending)) return false;
    std::vector<double> constant;
    if (!ChannelValues(graph_.edge(node, 1 - input), *pending, (roles & kIsBias) != 0, &constant)) {
      return false;
    }
    std::vector<double> multiplier = pending->multiplier;
    std::vector<double> offset = pending->offset;
    for (size_t c = 0; c < offset.size(); ++c) {
      if ((roles & kFactors) != 0) {
        const double factor = (roles & kDivides) != 0 ? 1 / constant[c] : constant[c];
        multiplier[c] *= factor;
        offset[c] *= factor;
      } else {
        offset[c] += (roles & kSubtracts) != 0 ? -constant[c] : constant[c];
      }
    }
    return SetAffine(std::move(multiplier), std::move(offset), pending);
  }

  // Applies a batch normalization in inference.
  bool TryBatchNorm(int32_t node, uint32_t roles, PendingValue* pending) {
    if ((roles & kNormalizes) == 0 || pending->kind != PendingValue::kProduct ||
        !TakesAffine(node, *pending)) {
      return false;
    }
    const NodeDef& def = graph_.origin(node).def();
    bool is_training = true;
    float epsilon = 0;
    if (!GetNodeAttr(def, "is_training", &is_training).ok() || is_training ||
        !GetNodeAttr(def, "epsilon", &epsilon).ok()) {
      return false;
    }
    std::vector<double> rows[4];
    for (int i = 0; i < 4; ++i) {
      if (!ChannelValues(graph_.edge(node, i + 1), *pending, /*is_vector=*/true, &rows[i]))
        return false;
    }
    const auto& [scale, shift, mean, variance] = rows;
    std::vector<double> multiplier = pending->multiplier;
    std::vector<double> offset = pending->offset;
    for (size_t c = 0; c < offset.size(); ++c) {
      const double factor = scale[c] / std::sqrt(variance[c] + epsilon);
      multiplier[c] *= factor;
      offset[c] = (offset[c] - mean[c]) * factor + shift[c];
    }
    return SetAffine(std::move(multiplier), std::move(offset), pending);
  }

  // Returns true if the pending value can absorb a scale and an offset for each channel.
  bool TakesAffine(int32_t node, const PendingValue& pending) const {
    std::string format;
    const bool channels_last =
        !GetNodeAttr(graph_.origin(node).def(), "data_format", &format).ok() || format == "NHWC";
    return channels_last && !pending.multiplier.empty() && !pending.is_clamped();
  }

  static bool SetAffine(std::vector<double> multiplier, std::vector<double> offset,
                        PendingValue* pending) {
    if (!AreFinite(multiplier) || !AreFinite(offset)) return false;
    for (size_t c = 0; c < pending->offset_scale.size(); ++c) {
      // The scale of a channel whose products are multiplied by 0 does not matter.
      if (multiplier[c] != 0) pending->offset_scale[c] *= multiplier[c] / pending->multiplier[c];
    }
    pending->multiplier = std::move(multiplier);
    pending->offset = std::move(offset);
    return true;
  }

  // Sets *row to a constant with an element for each channel or, unless `is_vector` is true, a
  // single element or leading dimensions of 1.
  bool ChannelValues(PlanGraph::Value value, const PendingValue& pending, bool is_vector,
                     std::vector<double>* row) {
    Tensor constant;
    if (!ConstantOf(value, &constant) || constant.dtype() != DT_FLOAT) return false;
    const auto channels = static_cast<int64_t>(pending.offset.size());
    const bool is_row = constant.NumElements() == channels && constant.dims() > 0 &&
                        constant.dim_size(constant.dims() - 1) == channels;
    const bool is_single = constant.NumElements() == 1;
    if (is_vector ? !is_row || constant.dims() != 1
                  : (!is_row && !is_single) || constant.dims() > pending.rank) {
      return false;
    }
    const auto* const from = static_cast<const float*>(constant.raw_data());
    for (int64_t c = 0; c < channels; ++c) row->push_back(from[is_row ? c : 0]);
    return true;
  }

  // ---- Sums and products of two tensors ----

  bool TryPair(int32_t node, uint32_t roles) {
    if ((roles & (kAdds | kMultiplies)) == 0 || (roles & kIsBias) != 0) return false;
    const int a = IntegersOf(graph_.edge(node, 0));
    const int b = IntegersOf(graph_.edge(node, 1));
    if (a == kNone || b == kNone) return false;
    PendingValue pending;
    pending.kind = PendingValue::kPair;
    pending.inputs = {a, b};
    pending.nodes = {node};
    pending.multiplies = (roles & kMultiplies) != 0;
    AddPending(node, std::move(pending));
    return true;
  }

  bool MakePair(const PendingValue& pending, const IntegerFormat& format,
                PlanGraph::NewNode* added) {
    const IntegerValue& a = integers(pending.inputs[0]);
    const IntegerValue& b = integers(pending.inputs[1]);
    const double largest = pending.multiplies ? static_cast<double>(a.format.scale) * b.format.scale
                                              : std::max(a.format.scale, b.format.scale);
    if (!CanScale(largest, format)) {
      Report(pending.nodes[0], kTooLarge);
      return false;
    }
    IntegerPair pair;
    pair.formats[0] = a.format;
    pair.formats[1] = b.format;
    pair.multiplies = pending.multiplies;
    pair.format = format;
    SetClamp(pending, &format, &pair.lowest, &pair.highest);
    pair.tflite_rounding = tflite_;
    *added = NewIntegerNode(pending.nodes);
    added->kernel = MakeIntegerPair(pair);
    added->inputs = {a.value, b.value};
    return true;
  }

  // Returns true if steps of size `scale` can be converted to steps of the format.
  static bool CanScale(double scale, const IntegerFormat& format) {
    return CanScale(scale, static_cast<double>(format.scale));
  }
  static bool CanScale(double scale, double step) {
    // The comparison is false for NaN.
    return std::abs(scale) / step < FixedPoint::kMaxFactor;
  }

  // Returns a node of the plan that computes in integers.
  PlanGraph::NewNode NewIntegerNode(absl::Span<const int32_t> nodes) const {
    return rewriter_.NewNodeFor(nodes,
                                absl::StrCat("Integer", graph_.origin(nodes[0]).type_string()));
  }

  // ---- Other forms in integers ----

  // Adds a pending form. Returns false unless all float inputs have integers.
  bool TryForm(int32_t node, const IntegerFormKernel& form) {
    PendingValue pending;
    pending.kind = PendingValue::kForm;
    for (int i = 0; i < graph_.num_inputs(node); ++i) {
      if (graph_.origin(node).input_type(i) != DT_FLOAT) break;
      pending.inputs.push_back(IntegersOf(graph_.edge(node, i)));
      if (pending.inputs.back() == kNone) return false;
    }
    if (pending.inputs.empty()) return false;
    pending.nodes = {node};
    pending.form = &form;
    pending.multiplier = {1};
    pending.offset = {0};
    AddPending(node, std::move(pending));
    return true;
  }

  bool MakeForm(const PendingValue& pending, const IntegerFormat& format,
                PlanGraph::NewNode* added) {
    IntegerFormKernel::Args args;
    const int32_t node = pending.nodes[0];
    *added = NewIntegerNode(pending.nodes);
    for (int i = 0; i < graph_.num_inputs(node); ++i) {
      added->inputs.push_back(graph_.edge(node, i));
    }
    double scale = 1;
    for (size_t i = 0; i < pending.inputs.size(); ++i) {
      args.inputs.push_back(integers(pending.inputs[i]).format);
      added->inputs[i] = integers(pending.inputs[i]).value;
      scale *= args.inputs.back().scale;
    }
    // A softmax multiplies its results by the factor only, so both products are checked.
    const double factor = pending.multiplier[0];
    if (!CanScale(factor * scale, format) || !CanScale(factor, format)) {
      Report(node, kTooLarge);
      return false;
    }
    const bool is_fixed =
        tflite_ && pending.nodes.size() == 1 && pending.form->HasTfLiteSigmoidFormat();
    args.format = is_fixed ? TfLiteSigmoidFormat() : format;
    args.factor = factor;
    SetClamp(pending, &args.format, &args.lowest, &args.highest);
    args.tflite_rounding = tflite_;
    absl::StatusOr<std::shared_ptr<const OpKernel>> kernel = pending.form->MakeIntegerForm(args);
    if (!kernel.ok()) {
      Report(node, kernel.status().message());
      return false;
    }
    added->kernel = *std::move(kernel);
    if (is_fixed && !(args.format == format)) {
      added->output_types = {DT_UINT8};
      const PlanGraph::Value fixed = {graph_.AddNode(std::move(*added)), 0};
      *added = rewriter_.NewNodeFor(pending.nodes, "IntegerLookUp");
      added->kernel = MakeLookUp(TfLiteRequantize(args.format, format));
      added->inputs = {fixed};
    }
    return true;
  }

  // Converts the integers of all inputs to the format, and concatenates them.
  bool MakeConcat(const PendingValue& pending, int32_t quantizer, const OpKernel& kernel,
                  const std::vector<Tensor>& ranges, const IntegerFormat& format,
                  PlanGraph::NewNode* added) {
    std::vector<PlanGraph::Value> values;
    for (const int input : pending.inputs) {
      values.push_back(integers(input).value);
      if (integers(input).format == format) continue;
      PendingValue same;
      same.kind = PendingValue::kTable;
      same.inputs = {input};
      PlanGraph::NewNode table;
      if (!MakeTable(same, quantizer, kernel, ranges, format, &table)) return false;
      table.output_types = {DT_UINT8};
      values.back() = {graph_.AddNode(std::move(table)), 0};
    }
    absl::StatusOr<PlanGraph::NewNode> moved = MoveIntegers(pending.nodes[0], values, format);
    if (!moved.ok()) {
      Report(pending.nodes[0], moved.status().message());
      return false;
    }
    *added = *std::move(moved);
    return true;
  }

  // ---- Functions of each element ----

  // Returns true if the node computes a function of each element of a value with integers. Several
  // inputs may be functions of the same elements.
  bool TryTable(int32_t node, const OpKernel& kernel) {
    const auto* const step = dynamic_cast<const StepKernel*>(&kernel);
    if (step == nullptr || graph_.output_types(node).size() != 1) return false;
    constexpr size_t kMaxNodes = 32;
    PendingValue pending;
    pending.kind = PendingValue::kTable;
    bool can_be_step = false;
    // The tables that this table continues.
    std::vector<int32_t> used;
    for (int i = 0; i < graph_.num_inputs(node); ++i) {
      const PlanGraph::Value value = graph_.edge(node, i);
      const PendingValue* const table = TableOf(value);
      const int source = table != nullptr ? table->inputs[0] : IntegersOf(value);
      Tensor constant;
      if (source != kNone) {
        if (!pending.inputs.empty() && pending.inputs[0] != source) return false;
        pending.inputs = {source};
        can_be_step = can_be_step || step->CanBeStep(i);
      } else if (!ConstantOf(value, &constant) || constant.dims() != 0) {
        return false;
      }
      if (table == nullptr) continue;
      used.push_back(value.node);
      for (const int32_t other : table->nodes) {
        if (std::find(pending.nodes.begin(), pending.nodes.end(), other) == pending.nodes.end()) {
          pending.nodes.push_back(other);
        }
      }
    }
    if (!can_be_step || pending.nodes.size() >= kMaxNodes) return false;
    used_tables_.insert(used.begin(), used.end());
    pending.nodes.push_back(node);
    AddPending(node, std::move(pending));
    return true;
  }

  // Sets *added to a kernel that looks up the integer of the result for each integer of the input.
  bool MakeTable(const PendingValue& pending, int32_t quantizer, const OpKernel& kernel,
                 const std::vector<Tensor>& ranges, const IntegerFormat& format,
                 PlanGraph::NewNode* added) {
    const IntegerValue& input = integers(pending.inputs[0]);
    std::vector<int32_t> nodes = pending.nodes;
    if (nodes.empty()) nodes = {quantizer};
    IntegerTable table;
    if (!tflite_ || !RequantizesLikeTfLite(pending, format, &table)) {
      const absl::StatusOr<Tensor> values = ComputeTable(pending);
      if (!values.ok()) return CannotMakeTable(nodes, values.status());
      if (tflite_) {
        table = TfLiteTableOf(pending, values->flat<float>(), format);
      } else {
        std::vector<Tensor> inputs = ranges;
        inputs[0] = *values;
        const absl::StatusOr<Tensor> rounded = Compute(quantizer, kernel, std::move(inputs));
        if (!rounded.ok()) return CannotMakeTable(nodes, rounded.status());
        for (size_t q = 0; q < table.size(); ++q) {
          const float steps = rounded->flat<float>()(static_cast<int64_t>(q)) / format.scale;
          table[q] = static_cast<uint8_t>(
              std::isnan(steps) ? format.zero_point
                                : static_cast<int32_t>(std::nearbyint(steps)) + format.zero_point);
        }
      }
    }
    *added = rewriter_.NewNodeFor(nodes, "IntegerLookUp");
    added->kernel = MakeLookUp(table);
    added->inputs = {input.value};
    return true;
  }

  // Reports the last node of a table that cannot be computed. Returns false.
  bool CannotMakeTable(const std::vector<int32_t>& nodes, const absl::Status& status) {
    Report(nodes.back(), status.message());
    return false;
  }

  // Returns the integers of the values of a table. TensorFlow Lite rounds the results of some ops
  // to a fixed format first, and then converts the integers.
  IntegerTable TfLiteTableOf(const PendingValue& pending, absl::Span<const float> values,
                             const IntegerFormat& format) const {
    IntegerFormat fixed = format;
    if (pending.nodes.size() == 1) {
      const uint32_t roles = RolesOf(graph_.origin(pending.nodes[0]).type_string());
      if ((roles & kSigmoid) != 0) fixed = TfLiteSigmoidFormat();
      if ((roles & kTanh) != 0) fixed = TfLiteTanhFormat();
    }
    if (fixed == format || !CanScale(fixed.scale, format)) return TfLiteTable(values, format);
    IntegerTable table = TfLiteTable(values, fixed);
    const IntegerTable converted = TfLiteRequantize(fixed, format);
    for (uint8_t& q : table) q = converted[q];
    return table;
  }

  // Sets *table if TensorFlow Lite computes the nodes by scaling integers: a quantizer or a ReLU.
  bool RequantizesLikeTfLite(const PendingValue& pending, const IntegerFormat& format,
                             IntegerTable* table) const {
    PendingValue clamped;
    const float from = integers(pending.inputs[0]).format.scale;
    double factor = static_cast<double>(from) / format.scale;
    if (!pending.nodes.empty()) {
      const uint32_t roles = RolesOf(graph_.origin(pending.nodes[0]).type_string());
      if (pending.nodes.size() > 1 || !Clamps(roles, &clamped)) return false;
      factor = from / format.scale;
    }
    float lowest = 0;
    float highest = 0;
    SetClamp(clamped, &format, &lowest, &highest);
    if (!CanScale(factor, 1)) return false;
    *table = TfLiteRequantize(integers(pending.inputs[0]).format, format, factor, lowest, highest);
    return true;
  }

  // Computes the nodes of a table for all integers of the input.
  absl::StatusOr<Tensor> ComputeTable(const PendingValue& pending) {
    const NumberTable numbers = NumbersOf(integers(pending.inputs[0]).format);
    Tensor source(DT_FLOAT, {static_cast<int64_t>(numbers.size())});
    std::copy(numbers.begin(), numbers.end(), source.flat<float>().data());
    if (pending.nodes.empty()) return source;
    internal::HashMap<int32_t, Tensor> values;
    for (const int32_t node : pending.nodes) {
      std::vector<Tensor> inputs;
      for (int i = 0; i < graph_.num_inputs(node); ++i) {
        const PlanGraph::Value value = graph_.edge(node, i);
        Tensor constant;
        const auto found = values.find(value.node);
        if (found != values.end()) {
          inputs.push_back(found->second);
        } else if (ConstantOf(value, &constant)) {
          inputs.push_back(constant);
        } else {
          inputs.push_back(source);
        }
      }
      const uint32_t roles = RolesOf(graph_.origin(node).type_string());
      Tensor& result = values[node];
      if (tflite_ && (roles & (kSigmoid | kTanh)) != 0) {
        // TensorFlow Lite calls the C library.
        result = Tensor(DT_FLOAT, source.shape());
        const absl::Span<const float> x = inputs[0].flat<float>();
        for (size_t q = 0; q < x.size(); ++q) {
          result.span<float>()[q] =
              (roles & kTanh) != 0 ? std::tanh(x[q]) : 1 / (1 + std::exp(-x[q]));
        }
        continue;
      }
      GRADFLOW_ASSIGN_OR_RETURN(const OpKernel* const kernel, rewriter_.KernelOf(node));
      if (kernel == nullptr) return errors::Internal("a node of a table has no kernel");
      GRADFLOW_ASSIGN_OR_RETURN(result, Compute(node, *kernel, std::move(inputs)));
      if (result.NumElements() != source.NumElements() || result.dtype() != DT_FLOAT) {
        return errors::Internal("a node of a table has another shape");
      }
    }
    return values[pending.nodes.back()];
  }

  // ---- Nodes that move elements ----

  // Gives the result integers if the node converts bytes to floats or scales such floats. Returns
  // false for other nodes.
  bool TryBytes(int32_t node, uint32_t roles) {
    if (HasControls(node)) return false;
    if ((roles & kCasts) != 0 && graph_.origin(node).input_type(0) == DT_UINT8) {
      integers_[static_cast<size_t>(node)] = AddIntegers(graph_.edge(node, 0), {}, {});
      return true;
    }
    if ((roles & kMultiplies) == 0) return false;
    for (int i = 0; i < 2; ++i) {
      const int source = IntegersOf(graph_.edge(node, i));
      Tensor factor;
      if (source == kNone || !ConstantOf(graph_.edge(node, 1 - i), &factor) || factor.dims() != 0 ||
          factor.dtype() != DT_FLOAT) {
        continue;
      }
      const IntegerValue& bytes = integer_values_[static_cast<size_t>(source)];
      const float scale = factor.scalar<float>()();
      // A product with another scale would round twice.
      if (bytes.format.scale != 1 || !(scale >= std::numeric_limits<float>::min()) ||
          !std::isfinite(scale * 255)) {
        continue;
      }
      IntegerFormat format = bytes.format;
      format.scale = scale;
      // Clears the range, because RangeScale() would compute the old scale from it.
      format.min = format.max = 0;
      integers_[static_cast<size_t>(node)] = AddIntegers(bytes.value, format, {source});
      return true;
    }
    return false;
  }

  // Moves the integers of the input, or adds the node to the moves of the pending value that it
  // reads. Returns false if the node does not fit.
  bool TryMove(int32_t node, uint32_t roles) {
    if ((roles & kMoves) == 0) return false;
    bool same_format = true;
    std::vector<PlanGraph::Value> values;
    std::vector<int> sources;
    const Node& origin = graph_.origin(node);
    for (int i = 0; i < graph_.num_inputs(node) && origin.input_type(i) == DT_FLOAT; ++i) {
      const int source = IntegersOf(graph_.edge(node, i));
      if (source == kNone) {
        PendingValue* const pending = PendingOf(graph_.edge(node, i), node);
        if (pending == nullptr || i > 0 || (roles & kConcatenates) != 0 ||
            !MakeTypedKernel(node).ok()) {
          return false;
        }
        pending->moves.push_back(node);
        pending_[static_cast<size_t>(node)] =
            pending_[static_cast<size_t>(graph_.edge(node, i).node)];
        return true;
      }
      values.push_back(integers(source).value);
      sources.push_back(source);
      same_format = same_format && integers(source).format == integers(sources[0]).format;
    }
    if (sources.empty()) return false;
    if (!same_format) {
      PendingValue pending;
      pending.kind = PendingValue::kConcat;
      pending.inputs = std::move(sources);
      pending.nodes = {node};
      AddPending(node, std::move(pending));
      return true;
    }
    const IntegerFormat format = integers(sources[0]).format;
    absl::StatusOr<PlanGraph::NewNode> moved = MoveIntegers(node, values, format);
    if (!moved.ok()) return false;
    const PlanGraph::Value value = {graph_.AddNode(*std::move(moved)), 0};
    integers_[static_cast<size_t>(node)] = AddIntegers(value, format, std::move(sources));
    return true;
  }

  // Makes the kernel of a node for integers.
  absl::StatusOr<std::shared_ptr<const OpKernel>> MakeTypedKernel(int32_t node) {
    const Node& origin = graph_.origin(node);
    NodeDef def = origin.def();
    const bool is_pad = (RolesOf(def.op()) & kPadsZeros) != 0;
    if (is_pad) def.set_op("PadV2");
    (*def.mutable_attr())["T"].set_type(DT_UINT8);
    if (def.attr().count("Tparams") > 0) (*def.mutable_attr())["Tparams"].set_type(DT_UINT8);
    const Registry& registry = origin.graph().registry();
    GRADFLOW_ASSIGN_OR_RETURN(const OpRegistration* const op, registry.LookUpOp(def.op()));
    GRADFLOW_ASSIGN_OR_RETURN(const KernelRegistration* const registration,
                              registry.FindKernel(def));
    DataTypeVector inputs;
    for (int i = 0; i < origin.num_inputs(); ++i) {
      const DataType dtype = origin.input_type(i);
      inputs.push_back(dtype == DT_FLOAT ? DT_UINT8 : dtype);
    }
    if (is_pad) inputs.push_back(DT_UINT8);
    constexpr DataType kOutputs[] = {DT_UINT8};
    GRADFLOW_ASSIGN_OR_RETURN(
        std::unique_ptr<OpKernel> kernel,
        registration->factory(KernelConstruction(def, op->def(), inputs, kOutputs)));
    return std::shared_ptr<const OpKernel>(std::move(kernel));
  }

  // Returns a node that moves the integers `values` as `node` moves floats.
  absl::StatusOr<PlanGraph::NewNode> MoveIntegers(int32_t node,
                                                  const std::vector<PlanGraph::Value>& values,
                                                  const IntegerFormat& format) {
    GRADFLOW_ASSIGN_OR_RETURN(std::shared_ptr<const OpKernel> kernel, MakeTypedKernel(node));
    PlanGraph::NewNode added = NewIntegerNode({node});
    added.kernel = std::move(kernel);
    added.output_types = {DT_UINT8};
    added.inputs = values;
    for (int i = static_cast<int>(values.size()); i < graph_.num_inputs(node); ++i) {
      added.inputs.push_back(graph_.edge(node, i));
    }
    if ((RolesOf(graph_.origin(node).type_string()) & kPadsZeros) != 0) {
      // The integer of 0.
      Tensor zero(DT_UINT8, TensorShape());
      zero.scalar<uint8_t>()() = static_cast<uint8_t>(format.zero_point);
      PlanNodeLabel label = added.label;
      label.op = "ZeroPoint";
      added.inputs.push_back(rewriter_.AddConstant(std::move(label), zero, added.device));
    }
    return added;
  }

  const PassContext& context_;
  // Rounds as TensorFlow Lite does.
  const bool tflite_;
  PlanRewriter rewriter_;
  ConstantRunner runner_;
  PlanGraph& graph_;
  // For each node, the index of the integers of its first output and of its pending value, or
  // kNone.
  std::vector<int> integers_;
  std::vector<int> pending_;
  std::vector<IntegerValue> integer_values_;
  std::vector<PendingValue> pending_values_;
  // The constants that are weights of products.
  internal::HashSet<int32_t> packed_;
  // The last nodes of the tables that other tables or fake-quantization nodes use.
  internal::HashSet<int32_t> used_tables_;
  // Fake-quantization nodes and the integers of their results.
  std::vector<std::pair<int32_t, int>> quantizers_;
};

}  // namespace

absl::Status UseIntegers(const PassContext& context, PlanGraph* graph) {
  if (!context.options.integer_inference) return absl::OkStatus();
  return IntegerPlanner(context, graph).Plan();
}

}  // namespace gradflow
