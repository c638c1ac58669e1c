// UseIntegers: computes with 8-bit integers between fake-quantization nodes.
//
// The pass visits the nodes in topological order and learns two things about their values:
//
//   - A value has integers if 8-bit integers stand for it exactly: the result of a
//   fake-quantization
//     node with a constant range, or a node that only moves such values.
//   - A pending value is a function of such values that a kernel can compute from their integers:
//     the product with constant weights, or a sum of two tensors, or a function of each element,
//     and the nodes after it, each of which has a single reader.
//
// If a fake-quantization node reads a pending value, a kernel computes the integers of its result.
// Other products become kernels that compute the float value from the integers. Nodes that read
// floats read dequantized integers.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/fused_steps.h"
#include "gradflow/core/integer_kernels.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/node_kernel.h"
#include "gradflow/graph/tables.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/runtime/plan/integer_steps.h"
#include "gradflow/runtime/plan/op_traits.h"
#include "gradflow/runtime/plan/passes.h"
#include "gradflow/runtime/plan/plan_report.h"
#include "gradflow/runtime/plan/plan_rewriter.h"

namespace gradflow {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kNone = -1;

// The integers of a value.
struct IntegerValue {
  PlanGraph::Value value;
  IntegerFormat format;
  // The values that it is computed from.
  std::vector<int> sources;
  // True if a node of the plan reads the integers.
  bool is_read = false;
};

// A value that a kernel can compute from integers.
struct PendingValue {
  enum Kind { kProduct, kPair, kTable };
  Kind kind = kProduct;
  // Indexes of the integers that it is computed from.
  std::vector<int> inputs;
  // The nodes that compute it.
  std::vector<int32_t> nodes;
  // Nodes that move the elements of the value of nodes.back(). They keep their order, and so they
  // may also move the integers.
  std::vector<int32_t> moves;
  bool is_done = false;

  // kProduct: for each output channel, value = sum * multiplier + offset.
  const IntegerProductKernel* product = nullptr;
  Tensor weights;
  int rank = 0;
  std::vector<double> multiplier;
  std::vector<double> offset;
  // kPair.
  bool multiplies = false;
  const OpKernel* in_float = nullptr;
  // kProduct and kPair: the clamp of the value.
  double lowest = -kInfinity;
  double highest = kInfinity;

  bool is_clamped() const { return lowest != -kInfinity || highest != kInfinity; }
};

// Constant weights, as integers of type int16.
struct QuantizedWeights {
  Tensor integers;
  // Element i has the scale scales[i / stride % scales.size()].
  std::vector<double> scales;
  int64_t stride = 1;
};

bool IsOneOf(const std::string& op, std::initializer_list<absl::string_view> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

bool AreFinite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](double value) { return std::isfinite(static_cast<float>(value)); });
}

std::vector<float> ToFloats(const std::vector<double>& values, double divisor) {
  std::vector<float> floats;
  for (const double value : values) floats.push_back(static_cast<float>(value / divisor));
  return floats;
}

class IntegerPlanner {
 public:
  IntegerPlanner(const PassContext& context, PlanGraph* graph)
      : context_(context), rewriter_(context, graph), graph_(*graph) {}

  absl::Status Plan() {
    integers_.assign(static_cast<size_t>(graph_.num_nodes()), kNone);
    pending_.assign(static_cast<size_t>(graph_.num_nodes()), kNone);
    for (const int32_t node : rewriter_.order()) {
      GRADFLOW_RETURN_IF_ERROR(rewriter_.CheckStop(node));
      // Kernels of constants would copy them.
      if (graph_.num_inputs(node) == 0 || !graph_.is_original(node) || graph_.stateful(node) ||
          graph_.device(node) != 0) {
        continue;
      }
      GRADFLOW_ASSIGN_OR_RETURN(const OpKernel* const kernel, rewriter_.KernelOf(node));
      if (kernel != nullptr) Visit(node, *kernel);
    }
    for (size_t i = 0; i < pending_values_.size(); ++i) {
      PendingValue& pending = pending_values_[i];
      if (pending.is_done || pending.kind != PendingValue::kProduct) continue;
      const int32_t last = pending.nodes.back();
      PlanGraph::NewNode added;
      if (MakeProduct(&pending, nullptr, &added)) rewriter_.Replace(last, std::move(added));
    }
    for (const auto& [node, integers] : quantizers_) {
      const IntegerValue& value = integer_values_[static_cast<size_t>(integers)];
      if (!value.is_read && !computed_[static_cast<size_t>(integers)]) continue;
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
    if (const auto* const product = dynamic_cast<const IntegerProductKernel*>(&kernel)) {
      return VisitProduct(node, *product);
    }
    if (graph_.output_types(node)[0] != DT_FLOAT) return;
    const std::string& op = graph_.origin(node).type_string();
    if (ReadsBytes(node, op) || Moves(node, op) || Extends(node, op)) return;
    if (IsOneOf(op, {"Add", "AddV2", "Mul"}) && BeginsPair(node, op, kernel)) return;
    if (IsElementwise(node, kernel)) return;
    for (int i = 0; i < graph_.num_inputs(node); ++i) {
      if (IntegersOf(graph_.edge(node, i)) != kNone) {
        return Report(node, "there is no kernel of integers");
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
  // Returns the pending value that only `reader` reads, or null.
  PendingValue* PendingOf(PlanGraph::Value value, int32_t reader) {
    if (value.is_feed() || value.output != 0 ||
        static_cast<size_t>(value.node) >= pending_.size()) {
      return nullptr;
    }
    const int found = pending_[static_cast<size_t>(value.node)];
    if (found == kNone || rewriter_.OnlyReader(value.node) != reader) return nullptr;
    return &pending_values_[static_cast<size_t>(found)];
  }

  int AddIntegers(PlanGraph::Value value, const IntegerFormat& format, std::vector<int> sources,
                  bool is_computed = false) {
    integer_values_.push_back({value, format, std::move(sources), false});
    computed_.push_back(is_computed);
    return static_cast<int>(integer_values_.size()) - 1;
  }

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

  // Computes a node outside of a run.
  absl::StatusOr<Tensor> Compute(int32_t node, const OpKernel& kernel, std::vector<Tensor> inputs) {
    RunContext run;
    run.max_loop_threads = 1;
    std::vector<Tensor> outputs;
    GRADFLOW_RETURN_IF_ERROR(internal::RunNodeKernel(graph_.origin(node), kernel,
                                                     absl::MakeSpan(inputs), run, &outputs));
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
    const IntegerFormat format = formats->formats[0];
    int& result = integers_[static_cast<size_t>(node)];
    if (PendingValue* const pending = PendingOf(x, node)) {
      result = Quantize(pending, node, kernel, inputs, format);
    } else if (const int source = IntegersOf(x); source != kNone) {
      PendingValue same;
      same.kind = PendingValue::kTable;
      same.inputs = {source};
      result = integer_values_[static_cast<size_t>(source)].format == format
                   ? source
                   : Quantize(&same, node, kernel, inputs, format);
      if (result == source) return;
    }
    if (result == kNone) {
      PlanGraph::NewNode added = rewriter_.NewNodeFor({node}, "Quantize");
      added.kernel = quantizer.MakeQuantize(inputs);
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
    PlanGraph::NewNode added;
    switch (pending->kind) {
      case PendingValue::kProduct:
        if (!MakeProduct(pending, &format, &added)) return kNone;
        break;
      case PendingValue::kPair:
        MakePair(*pending, format, &added);
        break;
      case PendingValue::kTable:
        if (!MakeTable(*pending, quantizer, kernel, ranges, format, &added)) return kNone;
        break;
    }
    pending->is_done = true;
    added.output_types = {DT_UINT8};
    PlanGraph::Value value = {graph_.AddNode(std::move(added)), 0};
    for (const int32_t move : pending->moves) {
      const absl::StatusOr<PlanGraph::Value> moved = MoveIntegers(move, {value}, format);
      // Moves() has already made such a kernel.
      if (!moved.ok()) return kNone;
      value = *moved;
    }
    if (pending->kind == PendingValue::kProduct) {
      MarkRead(pending->inputs);
      return AddIntegers(value, format, {}, /*is_computed=*/true);
    }
    return AddIntegers(value, format, pending->inputs);
  }

  // ---- Products ----

  void VisitProduct(int32_t node, const IntegerProductKernel& product) {
    if (graph_.output_types(node)[0] != DT_FLOAT || graph_.num_inputs(node) != 2) return;
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
    const double scale = integer_values_[static_cast<size_t>(input)].format.scale;
    for (int64_t c = 0; c < channels->count; ++c) {
      pending.multiplier.push_back(scale * weights->scales[static_cast<size_t>(c % scales)]);
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
      result.scales = {1};
      GRADFLOW_RETURN_IF_ERROR(CheckFirstUse(constant));
      GRADFLOW_RETURN_IF_ERROR(SetIntegers(weights, &result));
      return result;
    }
    // Nodes that reshape the weights keep the order of elements.
    constexpr size_t kMaxReshapes = 8;
    std::vector<int32_t> reshapes;
    while (!value.is_feed() && value.output == 0 && reshapes.size() < kMaxReshapes &&
           graph_.is_original(value.node) &&
           IsOneOf(graph_.origin(value.node).type_string(),
                   {"Identity", "Reshape", "Squeeze", "ExpandDims"})) {
      reshapes.push_back(value.node);
      value = graph_.edge(value.node, 0);
    }
    if (value.is_feed() || value.output != 0) {
      return errors::Unimplemented("its weights are not constant");
    }
    GRADFLOW_ASSIGN_OR_RETURN(const OpKernel* const kernel, rewriter_.KernelOf(value.node));
    const auto* const quantizer = dynamic_cast<const QuantizingKernel*>(kernel);
    if (quantizer == nullptr) return errors::Unimplemented("its weights are not quantized");
    std::vector<Tensor> inputs;
    if (!ConstantRanges(value.node, &inputs) ||
        !rewriter_.ConstantOf(graph_.edge(value.node, 0), &inputs[0], &constant)) {
      return errors::Unimplemented("its weights are not constant");
    }
    GRADFLOW_RETURN_IF_ERROR(CheckFirstUse(constant));
    GRADFLOW_ASSIGN_OR_RETURN(const QuantizingKernel::Formats formats,
                              quantizer->FormatsOf(inputs));
    if (formats.formats.empty()) return errors::Unimplemented("its weights have no channels");
    for (const IntegerFormat& format : formats.formats) result.scales.push_back(format.scale);
    const int rank = inputs[0].dims();
    const int axis = formats.axis < 0 ? rank - 1 : formats.axis;
    for (int d = axis + 1; d < rank; ++d) result.stride *= inputs[0].dim_size(d);
    if (result.scales.size() > 1 &&
        (axis >= rank || inputs[0].dim_size(axis) != static_cast<int64_t>(result.scales.size()))) {
      return errors::Unimplemented("the ranges of its weights do not fit");
    }
    GRADFLOW_ASSIGN_OR_RETURN(weights, Compute(value.node, *kernel, std::move(inputs)));
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
  absl::Status CheckFirstUse(int32_t weights) {
    if (packed_.insert(weights).second) return absl::OkStatus();
    return errors::Unimplemented("another node has the same weights");
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
  bool MakeProduct(PendingValue* pending, const IntegerFormat* format, PlanGraph::NewNode* added) {
    const IntegerValue& input = integer_values_[static_cast<size_t>(pending->inputs[0])];
    IntegerProductArgs args;
    args.weights = pending->weights;
    args.zero_point = input.format.zero_point;
    const double step = format == nullptr ? 1 : format->scale;
    args.result.multiplier = ToFloats(pending->multiplier, step);
    args.result.offset = ToFloats(pending->offset, step);
    args.result.is_float = format == nullptr;
    SetClamp(*pending, format, &args.result.lowest, &args.result.highest);
    if (format != nullptr) args.result.zero_point = format->zero_point;
    const bool finite = std::all_of(args.result.multiplier.begin(), args.result.multiplier.end(),
                                    [](float value) { return std::isfinite(value); }) &&
                        std::all_of(args.result.offset.begin(), args.result.offset.end(),
                                    [](float value) { return std::isfinite(value); });
    auto kernel = finite ? pending->product->MakeIntegerProduct(args)
                         : errors::Unimplemented("its results exceed the range of its format");
    pending->is_done = true;
    if (!kernel.ok()) {
      Report(pending->nodes[0], kernel.status().message());
      return false;
    }
    *added = rewriter_.NewNodeFor(
        pending->nodes, absl::StrCat("Integer", graph_.origin(pending->nodes[0]).type_string()));
    added->kernel = *std::move(kernel);
    added->inputs = {input.value};
    MarkRead(pending->inputs);
    return true;
  }

  // Sets the clamp of a value in steps of the format; in floats if `format` is null.
  static void SetClamp(const PendingValue& pending, const IntegerFormat* format, float* lowest,
                       float* highest) {
    constexpr double kMax = std::numeric_limits<float>::max();
    const double step = format == nullptr ? 1 : format->scale;
    const double first = format == nullptr ? -kMax : -format->zero_point;
    const double last = format == nullptr ? kMax : format->highest - format->zero_point;
    *lowest = static_cast<float>(std::clamp(pending.lowest / step, first, last));
    *highest = static_cast<float>(std::clamp(pending.highest / step, first, last));
  }

  // ---- Nodes after a product or pair ----

  // Returns true if the node extends a pending value.
  bool Extends(int32_t node, const std::string& op) {
    if (!rewriter_.use(node).first_output) return false;
    for (int i = 0; i < std::min(graph_.num_inputs(node), 2); ++i) {
      PendingValue* const pending = PendingOf(graph_.edge(node, i), node);
      if (pending == nullptr || pending->kind == PendingValue::kTable || !pending->moves.empty() ||
          (i > 0 && !IsOneOf(op, {"Add", "AddV2", "Mul"}))) {
        continue;
      }
      if (!Clamps(op, pending) && !AddsConstant(node, op, i, pending) &&
          !Normalizes(node, op, pending)) {
        continue;
      }
      pending->nodes.push_back(node);
      pending_[static_cast<size_t>(node)] =
          pending_[static_cast<size_t>(graph_.edge(node, i).node)];
      return true;
    }
    return false;
  }

  static bool Clamps(const std::string& op, PendingValue* pending) {
    if (!IsOneOf(op, {"Relu", "Relu6"})) return false;
    constexpr double kSix = 6;
    const double highest = op == "Relu6" ? kSix : kInfinity;
    pending->lowest = std::clamp<double>(pending->lowest, 0, highest);
    pending->highest = std::clamp<double>(pending->highest, 0, highest);
    return true;
  }

  // Adds or multiplies a constant of each output channel.
  bool AddsConstant(int32_t node, const std::string& op, int input, PendingValue* pending) {
    if (!IsOneOf(op, {"BiasAdd", "Add", "AddV2", "Sub", "Mul"}) || !TakesAffine(node, *pending)) {
      return false;
    }
    std::vector<double> constant;
    if (!RowOf(graph_.edge(node, 1 - input), *pending, op == "BiasAdd", &constant)) return false;
    std::vector<double> multiplier = pending->multiplier;
    std::vector<double> offset = pending->offset;
    for (size_t c = 0; c < offset.size(); ++c) {
      if (op == "Mul") {
        multiplier[c] *= constant[c];
        offset[c] *= constant[c];
      } else {
        offset[c] += op == "Sub" ? -constant[c] : constant[c];
      }
    }
    return SetAffine(std::move(multiplier), std::move(offset), pending);
  }

  // Applies a batch normalization in inference.
  bool Normalizes(int32_t node, const std::string& op, PendingValue* pending) {
    if (!IsOneOf(op, {"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"}) ||
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
      if (!RowOf(graph_.edge(node, i + 1), *pending, /*is_vector=*/true, &rows[i])) return false;
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

  // Returns true if the node may scale and shift the value.
  bool TakesAffine(int32_t node, const PendingValue& pending) const {
    std::string format;
    const bool channels_last =
        !GetNodeAttr(graph_.origin(node).def(), "data_format", &format).ok() || format == "NHWC";
    return channels_last && pending.kind == PendingValue::kProduct && !pending.is_clamped();
  }

  static bool SetAffine(std::vector<double> multiplier, std::vector<double> offset,
                        PendingValue* pending) {
    if (!AreFinite(multiplier) || !AreFinite(offset)) return false;
    pending->multiplier = std::move(multiplier);
    pending->offset = std::move(offset);
    return true;
  }

  // Sets *row to a constant with an element for each channel or, unless `is_vector` is true, a
  // single element or leading dimensions of 1.
  bool RowOf(PlanGraph::Value value, const PendingValue& pending, bool is_vector,
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

  bool BeginsPair(int32_t node, const std::string& op, const OpKernel& kernel) {
    const int a = IntegersOf(graph_.edge(node, 0));
    const int b = IntegersOf(graph_.edge(node, 1));
    if (a == kNone || b == kNone) return false;
    PendingValue pending;
    pending.kind = PendingValue::kPair;
    pending.inputs = {a, b};
    pending.nodes = {node};
    pending.multiplies = op == "Mul";
    pending.in_float = &kernel;
    AddPending(node, std::move(pending));
    return true;
  }

  void MakePair(const PendingValue& pending, const IntegerFormat& format,
                PlanGraph::NewNode* added) {
    const IntegerValue& a = integer_values_[static_cast<size_t>(pending.inputs[0])];
    const IntegerValue& b = integer_values_[static_cast<size_t>(pending.inputs[1])];
    IntegerPair pair;
    pair.formats[0] = a.format;
    pair.formats[1] = b.format;
    pair.multiplies = pending.multiplies;
    pair.format = format;
    SetClamp(pending, &format, &pair.lowest, &pair.highest);
    pair.in_float = pending.in_float;
    *added = rewriter_.NewNodeFor(
        pending.nodes, absl::StrCat("Integer", graph_.origin(pending.nodes[0]).type_string()));
    added->kernel = MakeIntegerPair(pair);
    added->inputs = {a.value, b.value};
  }

  // ---- Functions of each element ----

  // Returns true if the node computes a function of each element of a value with integers.
  bool IsElementwise(int32_t node, const OpKernel& kernel) {
    const auto* const step = dynamic_cast<const StepKernel*>(&kernel);
    if (step == nullptr || graph_.output_types(node).size() != 1) return false;
    int input = kNone;
    for (int i = 0; i < graph_.num_inputs(node); ++i) {
      const PlanGraph::Value value = graph_.edge(node, i);
      const PendingValue* const pending = PendingOf(value, node);
      const bool is_table = pending != nullptr && pending->kind == PendingValue::kTable;
      Tensor constant;
      if (is_table || IntegersOf(value) != kNone) {
        if (input != kNone) return false;
        input = i;
      } else if (!ConstantOf(value, &constant) || constant.dims() != 0) {
        return false;
      }
    }
    if (input == kNone || !step->CanBeStep(input)) return false;
    const PlanGraph::Value value = graph_.edge(node, input);
    if (PendingValue* const pending = PendingOf(value, node)) {
      if (!pending->moves.empty()) return false;
      pending->nodes.push_back(node);
      pending_[static_cast<size_t>(node)] = pending_[static_cast<size_t>(value.node)];
      return true;
    }
    PendingValue pending;
    pending.kind = PendingValue::kTable;
    pending.inputs = {IntegersOf(value)};
    pending.nodes = {node};
    AddPending(node, std::move(pending));
    return true;
  }

  // Computes the integer of the result for each integer of the input.
  bool MakeTable(const PendingValue& pending, int32_t quantizer, const OpKernel& kernel,
                 const std::vector<Tensor>& ranges, const IntegerFormat& format,
                 PlanGraph::NewNode* added) {
    const IntegerValue& input = integer_values_[static_cast<size_t>(pending.inputs[0])];
    const NumberTable numbers = NumbersOf(input.format);
    Tensor values(DT_FLOAT, {static_cast<int64_t>(numbers.size())});
    std::copy(numbers.begin(), numbers.end(), values.flat<float>().data());
    for (const int32_t node : pending.nodes) {
      std::vector<Tensor> inputs(static_cast<size_t>(graph_.num_inputs(node)));
      bool found = false;
      for (int i = 0; i < graph_.num_inputs(node); ++i) {
        Tensor constant;
        if (ConstantOf(graph_.edge(node, i), &constant)) {
          inputs[static_cast<size_t>(i)] = constant;
        } else {
          if (std::exchange(found, true)) return false;
          inputs[static_cast<size_t>(i)] = values;
        }
      }
      const absl::StatusOr<const OpKernel*> step = rewriter_.KernelOf(node);
      if (!found || !step.ok() || *step == nullptr) return false;
      absl::StatusOr<Tensor> computed = Compute(node, **step, std::move(inputs));
      if (!computed.ok() || computed->NumElements() != values.NumElements()) return false;
      values = *std::move(computed);
    }
    std::vector<Tensor> inputs = ranges;
    inputs[0] = values;
    const absl::StatusOr<Tensor> rounded = Compute(quantizer, kernel, std::move(inputs));
    if (!rounded.ok()) return false;
    IntegerTable table;
    for (size_t q = 0; q < table.size(); ++q) {
      const float steps = rounded->flat<float>()(static_cast<int64_t>(q)) / format.scale;
      table[q] = static_cast<uint8_t>(
          std::isnan(steps) ? format.zero_point
                            : static_cast<int32_t>(std::nearbyint(steps)) + format.zero_point);
    }
    std::vector<int32_t> nodes = pending.nodes;
    if (nodes.empty()) nodes = {quantizer};
    *added = rewriter_.NewNodeFor(nodes, "IntegerLookUp");
    added->kernel = MakeLookUp(table);
    added->inputs = {input.value};
    return true;
  }

  // ---- Nodes that move elements ----

  // Returns true if the node converts bytes to floats, possibly scaled.
  bool ReadsBytes(int32_t node, const std::string& op) {
    if (op == "Cast" && graph_.origin(node).input_type(0) == DT_UINT8) {
      integers_[static_cast<size_t>(node)] = AddIntegers(graph_.edge(node, 0), {}, {});
      return true;
    }
    if (op != "Mul") return false;
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
      integers_[static_cast<size_t>(node)] = AddIntegers(bytes.value, format, {source});
      return true;
    }
    return false;
  }

  // Returns true if the node moves integers or the elements of a pending value.
  bool Moves(int32_t node, const std::string& op) {
    if (!IsOneOf(op, {"ConcatV2", "DepthToSpace", "ExpandDims", "Gather", "GatherV2", "Identity",
                      "MaxPool", "MirrorPad", "Pad", "Reshape", "ResizeNearestNeighbor", "Reverse",
                      "ReverseV2", "Slice", "SpaceToDepth", "Squeeze", "StridedSlice", "Tile",
                      "Transpose"})) {
      return false;
    }
    std::vector<PlanGraph::Value> values;
    std::vector<int> sources;
    const Node& origin = graph_.origin(node);
    for (int i = 0; i < graph_.num_inputs(node) && origin.input_type(i) == DT_FLOAT; ++i) {
      const int source = IntegersOf(graph_.edge(node, i));
      if (source == kNone) {
        PendingValue* const pending = PendingOf(graph_.edge(node, i), node);
        if (pending == nullptr || i > 0 || op == "ConcatV2" || !MakeTypedKernel(node).ok()) {
          return false;
        }
        pending->moves.push_back(node);
        pending_[static_cast<size_t>(node)] =
            pending_[static_cast<size_t>(graph_.edge(node, i).node)];
        return true;
      }
      if (i > 0 && !(integer_values_[static_cast<size_t>(source)].format ==
                     integer_values_[static_cast<size_t>(sources[0])].format)) {
        Report(node, "its inputs have different ranges");
        return false;
      }
      values.push_back(integer_values_[static_cast<size_t>(source)].value);
      sources.push_back(source);
    }
    if (sources.empty()) return false;
    const IntegerFormat format = integer_values_[static_cast<size_t>(sources[0])].format;
    const absl::StatusOr<PlanGraph::Value> moved = MoveIntegers(node, values, format);
    if (!moved.ok()) return false;
    integers_[static_cast<size_t>(node)] = AddIntegers(*moved, format, std::move(sources));
    return true;
  }

  // Makes the kernel of a node for integers.
  absl::StatusOr<std::shared_ptr<const OpKernel>> MakeTypedKernel(int32_t node) {
    const Node& origin = graph_.origin(node);
    NodeDef def = origin.def();
    const bool is_pad = def.op() == "Pad";
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

  // Adds a node that moves the integers `values` as `node` moves floats.
  absl::StatusOr<PlanGraph::Value> MoveIntegers(int32_t node,
                                                const std::vector<PlanGraph::Value>& values,
                                                const IntegerFormat& format) {
    GRADFLOW_ASSIGN_OR_RETURN(std::shared_ptr<const OpKernel> kernel, MakeTypedKernel(node));
    const std::string& op = graph_.origin(node).type_string();
    PlanGraph::NewNode added = rewriter_.NewNodeFor({node}, absl::StrCat("Integer", op));
    added.kernel = std::move(kernel);
    added.output_types = {DT_UINT8};
    added.inputs = values;
    for (int i = static_cast<int>(values.size()); i < graph_.num_inputs(node); ++i) {
      added.inputs.push_back(graph_.edge(node, i));
    }
    if (op == "Pad") {
      // The integer of 0.
      Tensor zero(DT_UINT8, TensorShape());
      zero.scalar<uint8_t>()() = static_cast<uint8_t>(format.zero_point);
      PlanNodeLabel label = added.label;
      label.op = "ZeroPoint";
      added.inputs.push_back(rewriter_.AddConstant(std::move(label), zero, added.device));
    }
    return PlanGraph::Value{graph_.AddNode(std::move(added)), 0};
  }

  const PassContext& context_;
  PlanRewriter rewriter_;
  PlanGraph& graph_;
  // For each node, the index of the integers of its first output and of its pending value, or
  // kNone.
  std::vector<int> integers_;
  std::vector<int> pending_;
  std::vector<IntegerValue> integer_values_;
  // For each of integer_values_, true if a product computes them.
  std::vector<bool> computed_;
  std::vector<PendingValue> pending_values_;
  // The constants that are weights of products.
  internal::HashSet<int32_t> packed_;
  // Fake-quantization nodes and the integers of their results.
  std::vector<std::pair<int32_t, int>> quantizers_;
};

}  // namespace

absl::Status UseIntegers(const PassContext& context, PlanGraph* graph) {
  if (!context.options.integer_inference) return absl::OkStatus();
  return IntegerPlanner(context, graph).Plan();
}

}  // namespace gradflow
