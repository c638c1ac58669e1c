#include "gradflow/training/quantize_graph.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/node_def.pb.h"

namespace gradflow::training {
namespace {

constexpr float kSymmetricLevels = 127;

bool IsOneOf(absl::string_view op, std::initializer_list<absl::string_view> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

// Ops that only move the elements of their first input.
bool MovesElements(absl::string_view op) {
  return IsOneOf(op, {"DepthToSpace", "ExpandDims", "Identity", "MaxPool", "MirrorPad", "Pad",
                      "Reshape", "ResizeNearestNeighbor", "Slice", "SpaceToDepth", "Squeeze",
                      "StridedSlice", "Transpose"});
}

// Returns the node of a data input that reads a first output; empty for any other input.
absl::string_view NodeOfInput(absl::string_view input) {
  if (absl::StartsWith(input, "^")) return "";
  const size_t colon = input.find(':');
  if (colon == absl::string_view::npos) return input;
  return input.substr(colon) == ":0" ? input.substr(0, colon) : "";
}

template <typename T>
T AttrOr(const NodeDef& node, absl::string_view name, T value) {
  T found;
  return GetNodeAttr(node, name, &found).ok() ? found : value;
}

NodeDef MakeNode(std::string name, const char* op, std::vector<std::string> inputs) {
  NodeDef node;
  node.set_name(std::move(name));
  node.set_op(op);
  for (std::string& input : inputs) node.add_input(std::move(input));
  return node;
}

NodeDef MakeConstant(std::string name, const Tensor& value) {
  NodeDef node = MakeNode(std::move(name), "Const", {});
  (*node.mutable_attr())["dtype"].set_type(value.dtype());
  value.AsProtoTensorContent((*node.mutable_attr())["value"].mutable_tensor());
  return node;
}

Tensor Floats(const std::vector<float>& values, bool is_scalar = false) {
  Tensor tensor(DT_FLOAT,
                is_scalar ? TensorShape() : TensorShape({static_cast<int64_t>(values.size())}));
  std::copy(values.begin(), values.end(), tensor.flat<float>().data());
  return tensor;
}

}  // namespace

// ---- Ranges ----

void RangeCalibrator::Add(const Tensor& values) {
  if (values.dtype() != DT_FLOAT || !values.IsInitialized()) return;
  std::vector<float> finite;
  double min = 0;
  double max = 0;
  for (const float x : values.flat<float>()) {
    if (!std::isfinite(x)) continue;
    if (method_ == RangeMethod::kPercentile) finite.push_back(x);
    if (method_ == RangeMethod::kLeastSquares) histogram_.Add(x);
    min = std::min<double>(min, x);
    max = std::max<double>(max, x);
  }
  if (method_ == RangeMethod::kPercentile && !finite.empty()) {
    const double outside = std::clamp((1 - percentile_ / 100) / 2, 0.0, 0.5);
    const auto at = static_cast<std::ptrdiff_t>(outside * static_cast<double>(finite.size() - 1));
    std::nth_element(finite.begin(), finite.begin() + at, finite.end());
    min = std::min<double>(0, finite[static_cast<size_t>(at)]);
    std::nth_element(finite.begin(), finite.end() - 1 - at, finite.end());
    max = std::max<double>(0, *(finite.end() - 1 - at));
  }
  ++runs_;
  if (method_ == RangeMethod::kMinMax || method_ == RangeMethod::kLeastSquares || runs_ == 1) {
    min_ = std::min(min_, min);
    max_ = std::max(max_, max);
    return;
  }
  constexpr double kMomentum = 0.9;
  const double weight =
      method_ == RangeMethod::kMovingAverage ? 1 - kMomentum : 1 / static_cast<double>(runs_);
  min_ += (min - min_) * weight;
  max_ += (max - max_) * weight;
}

void RangeCalibrator::Merge(const RangeCalibrator& other) {
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  Histogram added = other.histogram_;
  if (added.bound == 0) return;
  histogram_.Extend(added.bound);
  added.Extend(histogram_.bound);
  for (size_t i = 0; i < added.counts.size(); ++i) histogram_.counts[i] += added.counts[i];
}

float RangeCalibrator::min() const { return static_cast<float>(range().min); }

float RangeCalibrator::max() const {
  const Range found = range();
  const auto min = static_cast<float>(found.min);
  const auto max = static_cast<float>(found.max);
  // The scale of smaller ranges is not a normal number.
  constexpr float kLeast = 256 * std::numeric_limits<float>::min();
  return max - min >= kLeast ? max : min + 1;
}

// ---- Least squares ----

namespace {

constexpr int kBins = 8192;

}  // namespace

void RangeCalibrator::Histogram::Extend(double least) {
  if (counts.empty()) {
    counts.assign(kBins, 0);
    bound = std::exp2(std::ceil(std::log2(least)));
  }
  while (bound < least) {
    // Two bins become one. The middle of the range stays a border of bins.
    std::vector<int64_t> wider(kBins);
    for (int i = 0; i < kBins; ++i) wider[kBins / 4 + i / 2] += counts[i];
    counts = std::move(wider);
    bound *= 2;
  }
}

void RangeCalibrator::Histogram::Add(float value) {
  // Rounding does not change 0.
  if (value == 0) return;
  const double magnitude = std::fabs(static_cast<double>(value));
  if (counts.empty() || magnitude > bound) Extend(magnitude);
  const double bin = (value / bound + 1) * (0.5 * kBins);
  ++counts[std::clamp(static_cast<int>(bin), 0, kBins - 1)];
}

RangeCalibrator::Range RangeCalibrator::range() const {
  return method_ == RangeMethod::kLeastSquares && histogram_.bound > 0 ? LeastSquares()
                                                                       : Range{min_, max_};
}

RangeCalibrator::Range RangeCalibrator::LeastSquares() const {
  struct Bin {
    double number;
    double count;
  };
  std::vector<Bin> bins;
  for (int i = 0; i < kBins; ++i) {
    const auto count = static_cast<double>(histogram_.counts[i]);
    if (count > 0) bins.push_back({((i + 0.5) * 2 / kBins - 1) * histogram_.bound, count});
  }
  // The sum of squared errors, with the zero point that fake quantization chooses.
  const auto error = [&](const Range& range) {
    constexpr double kLevels = 255;
    const double scale = (range.max - range.min) / kLevels;
    if (!(scale > 0)) return std::numeric_limits<double>::infinity();
    const double zero = std::round(-range.min / scale);
    double sum = 0;
    for (const Bin& bin : bins) {
      const double level = std::clamp(std::round(bin.number / scale) + zero, 0.0, kLevels);
      const double difference = (level - zero) * scale - bin.number;
      sum += bin.count * difference * difference;
    }
    return sum;
  };
  Range best = {min_, max_};
  double least = error(best);
  // Shrinks both ends together, and then each end.
  constexpr int kSteps = 100;
  const auto search = [&](double of_min, double of_max) {
    const Range from = best;
    for (int i = 1; i < kSteps; ++i) {
      const double part = static_cast<double>(i) / kSteps;
      const Range range = {from.min * (1 - of_min * part), from.max * (1 - of_max * part)};
      const double found = error(range);
      if (found < least) {
        least = found;
        best = range;
      }
    }
  };
  search(1, 1);
  search(1, 0);
  search(0, 1);
  return best;
}

// ---- What to quantize ----

class GraphQuantizer::Finder {
 public:
  explicit Finder(GraphQuantizer* quantizer) : quantizer_(*quantizer), graph_(quantizer->graph_) {}

  absl::Status Find() {
    for (int i = 0; i < graph_.node_size(); ++i) {
      const NodeDef& node = graph_.node(i);
      if (absl::StartsWith(node.op(), "FakeQuant")) {
        return errors::InvalidArgument("node '", node.name(), "' (", node.op(),
                                       ") already quantizes the graph");
      }
      nodes_.emplace(node.name(), i);
      for (const std::string& input : node.input()) {
        if (!absl::StartsWith(input, "^")) readers_[std::string(NodeOfInput(input))].push_back(i);
      }
    }
    for (int i = 0; i < graph_.node_size(); ++i) {
      if (!IsProduct(graph_.node(i))) continue;
      quantizer_.products_.push_back(i);
      results_.insert(EndOf(i));
    }
    if (quantizer_.products_.empty()) {
      return errors::InvalidArgument(
          "the graph has no convolution or matrix product with constant ",
          "weights; freeze it first");
    }
    for (const int product : quantizer_.products_) {
      std::vector<size_t> group;
      Mark(graph_.node(product).input(0), &group);
      quantizer_.input_tensors_.push_back(group.empty() ? kNoTensor : group[0]);
    }
    // Additions and means may read each other.
    constexpr int kMaxPasses = 100;
    bool found = true;
    for (int pass = 0; found && pass < kMaxPasses; ++pass) {
      found = false;
      for (int i = 0; i < graph_.node_size(); ++i) {
        found = FindAddition(i) || found;
        found = FindMean(i) || found;
      }
    }
    for (size_t i = 0; i < quantizer_.groups_.size(); ++i) {
      quantizer_.groups_[i] = FirstOfGroup(i);
    }
    return absl::OkStatus();
  }

 private:
  // Returns the index of a node, or -1.
  int IndexOf(absl::string_view name) const {
    const auto found = nodes_.find(std::string(name));
    return found == nodes_.end() ? -1 : found->second;
  }

  // Returns the constant that an input reads, directly or through Identity nodes; otherwise null.
  const NodeDef* ConstantOf(absl::string_view input) const {
    constexpr int kMaxIdentities = 16;
    for (int i = 0; i < kMaxIdentities; ++i) {
      const int index = IndexOf(NodeOfInput(input));
      if (index < 0) return nullptr;
      const NodeDef& node = graph_.node(index);
      if (node.op() == "Const") return &node;
      if (node.op() != "Identity" || node.input_size() != 1) return nullptr;
      input = node.input(0);
    }
    return nullptr;
  }

  bool IsProduct(const NodeDef& node) const {
    if (!IsOneOf(node.op(), {"Conv2D", "DepthwiseConv2dNative", "MatMul"}) ||
        node.input_size() < 2 || AttrOr(node, "T", DT_INVALID) != DT_FLOAT ||
        AttrOr<std::string>(node, "data_format", "NHWC") != "NHWC" ||
        AttrOr(node, "transpose_a", false)) {
      return false;
    }
    const NodeDef* const weights = ConstantOf(node.input(1));
    return weights != nullptr && AttrOr(*weights, "dtype", DT_INVALID) == DT_FLOAT &&
           ConstantOf(node.input(0)) == nullptr;
  }

  // Returns the last node of the chain of biases, normalizations and ReLUs after a node.
  int EndOf(int node) const {
    bool clamped = false;
    for (int steps = 0; steps < graph_.node_size(); ++steps) {
      const auto found = readers_.find(graph_.node(node).name());
      if (found == readers_.end() || found->second.size() != 1) return node;
      const NodeDef& next = graph_.node(found->second[0]);
      const bool clamps = IsOneOf(next.op(), {"Relu", "Relu6"});
      if (!clamps && (clamped || !IsAffine(next))) return node;
      clamped = clamped || clamps;
      node = found->second[0];
    }
    return node;
  }

  // Returns true if all but one of the inputs are constants of an affine step.
  bool IsAffine(const NodeDef& node) const {
    if (!IsOneOf(node.op(), {"Add", "AddV2", "BiasAdd", "FusedBatchNorm", "FusedBatchNormV2",
                             "FusedBatchNormV3", "Mul", "Sub"})) {
      return false;
    }
    int variable = 0;
    for (const std::string& input : node.input()) variable += ConstantOf(input) == nullptr;
    return variable == 1;
  }

  // Returns the tensor whose elements an input reads, through nodes that only move elements.
  int OriginOf(absl::string_view input) {
    // Many inputs may read the same long chain of nodes, so the chain's nodes keep the result.
    std::vector<int> chain;
    int origin = -1;
    for (int steps = 0; steps < graph_.node_size(); ++steps) {
      const int index = IndexOf(NodeOfInput(input));
      if (index < 0) break;
      const NodeDef& node = graph_.node(index);
      if (!MovesElements(node.op()) || node.input_size() == 0) {
        origin = index;
        break;
      }
      const auto [it, is_new] = origins_.emplace(index, -1);
      if (!is_new) {
        origin = it->second;
        break;
      }
      chain.push_back(index);
      input = node.input(0);
    }
    for (const int index : chain) origins_[index] = origin;
    return origin;
  }

  // Returns the first tensor of a group: the member that is its own parent.
  size_t FirstOfGroup(size_t tensor) {
    std::vector<size_t>& groups = quantizer_.groups_;
    while (groups[tensor] != tensor) {
      groups[tensor] = groups[groups[tensor]];
      tensor = groups[tensor];
    }
    return tensor;
  }

  // Quantizes the tensor of an input. Tensors of a group share a range.
  void Mark(absl::string_view input, std::vector<size_t>* group) {
    std::vector<absl::string_view> inputs = {input};
    std::set<int> visited;
    while (!inputs.empty()) {
      const int origin = OriginOf(inputs.back());
      inputs.pop_back();
      if (origin < 0 || !visited.insert(origin).second) continue;
      const NodeDef& node = graph_.node(origin);
      if (node.op() == "ConcatV2") {
        for (int i = 0; i + 1 < node.input_size(); ++i) inputs.push_back(node.input(i));
        continue;
      }
      if (node.op() == "Const" || HasBytes(node)) continue;
      const auto [it, is_new] = tensors_.emplace(origin, quantizer_.tensors_.size());
      if (is_new) {
        quantizer_.tensors_.push_back(node.name());
        quantizer_.groups_.push_back(it->second);
      }
      group->push_back(it->second);
    }
    // Joins the groups of all members.
    for (size_t i = 1; i < group->size(); ++i) {
      const size_t a = FirstOfGroup((*group)[i]);
      const size_t b = FirstOfGroup((*group)[0]);
      quantizer_.groups_[std::max(a, b)] = std::min(a, b);
    }
  }

  // Returns true for bytes that were converted to float, possibly scaled, which are integers.
  bool HasBytes(const NodeDef& node) const {
    if (node.op() == "Cast") return AttrOr(node, "SrcT", DT_INVALID) == DT_UINT8;
    if (node.op() != "Mul" || node.input_size() < 2) return false;
    for (int i = 0; i < 2; ++i) {
      const int source = IndexOf(NodeOfInput(node.input(i)));
      if (source >= 0 && graph_.node(source).op() == "Cast" &&
          AttrOr(graph_.node(source), "SrcT", DT_INVALID) == DT_UINT8 &&
          ConstantOf(node.input(1 - i)) != nullptr) {
        return true;
      }
    }
    return false;
  }

  // Returns true if the input reads the result of a product, an addition or a mean, or a tensor
  // that gets a range.
  bool ReadsResult(absl::string_view input) {
    const int origin = OriginOf(input);
    return origin >= 0 && (results_.count(origin) > 0 || tensors_.count(origin) > 0);
  }

  // Quantizes the inputs of a node that adds two results. Returns false for other nodes, and for
  // nodes that it has already found.
  bool FindAddition(int i) {
    const NodeDef& node = graph_.node(i);
    if (!IsOneOf(node.op(), {"Add", "AddV2"}) || node.input_size() < 2 ||
        AttrOr(node, "T", DT_INVALID) != DT_FLOAT || additions_.count(i) > 0 ||
        !ReadsResult(node.input(0)) || !ReadsResult(node.input(1))) {
      return false;
    }
    additions_.insert(i);
    results_.insert(EndOf(i));
    for (int k = 0; k < 2; ++k) {
      std::vector<size_t> group;
      Mark(node.input(k), &group);
    }
    return true;
  }

  // Quantizes the input of a pool or mean of results whose own result gets a range. Returns false
  // if nothing is new.
  bool FindMean(int i) {
    const NodeDef& node = graph_.node(i);
    const bool is_pool = node.op() == "AvgPool";
    if ((!is_pool && node.op() != "Mean") || node.input_size() == 0 ||
        AttrOr(node, "T", DT_INVALID) != DT_FLOAT || means_.count(i) > 0 ||
        !ReadsResult(node.input(0))) {
      return false;
    }
    const bool is_new = results_.insert(i).second;
    const auto result = tensors_.find(i);
    if (result == tensors_.end()) return is_new;
    means_.insert(i);
    std::vector<size_t> group;
    if (is_pool) group.push_back(result->second);
    Mark(node.input(0), &group);
    return true;
  }

  GraphQuantizer& quantizer_;
  const GraphDef& graph_;
  std::map<std::string, int> nodes_;
  // The nodes that read a node's outputs, once for each input. Readers of other outputs than the
  // first are listed for the node "".
  std::map<std::string, std::vector<int>> readers_;
  // The last nodes of products and additions, and means of such results.
  std::set<int> results_;
  std::set<int> additions_;
  std::set<int> means_;
  // The results of OriginOf() for nodes that move elements.
  std::map<int, int> origins_;
  // The index in tensors_ of each node to quantize.
  std::map<int, size_t> tensors_;
};

absl::StatusOr<GraphQuantizer> GraphQuantizer::Make(const GraphDef& graph) {
  GraphQuantizer quantizer;
  quantizer.graph_ = graph;
  GRADFLOW_RETURN_IF_ERROR(Finder(&quantizer).Find());
  return quantizer;
}

// ---- Insertion ----

namespace {

// Adds nodes with names that no other node has.
class NodeAdder {
 public:
  explicit NodeAdder(GraphDef* graph) : graph_(*graph) {
    for (const NodeDef& node : graph_.node()) names_.insert(node.name());
  }
  // Adds the node and returns its name, which may have a suffix.
  std::string Add(NodeDef node) {
    const std::string wanted = node.name();
    for (int i = 1; !names_.insert(node.name()).second; ++i) {
      node.set_name(absl::StrCat(wanted, "_", i));
    }
    *graph_.add_node() = node;
    return node.name();
  }

 private:
  GraphDef& graph_;
  std::set<std::string> names_;
};

// Adds a node that rounds `input` to the levels of a range, and returns its name.
std::string AddFakeQuant(const std::string& name, const char* op, const std::string& input,
                         const Tensor& min, const Tensor& max, bool narrow_range,
                         NodeAdder* adder) {
  NodeDef node = MakeNode(name, op,
                          {input, adder->Add(MakeConstant(absl::StrCat(name, "/min"), min)),
                           adder->Add(MakeConstant(absl::StrCat(name, "/max"), max))});
  (*node.mutable_attr())["num_bits"].set_i(8);
  (*node.mutable_attr())["narrow_range"].set_b(narrow_range);
  return adder->Add(std::move(node));
}

// Adds a node that reshapes floats, and returns its name.
std::string AddReshape(const std::string& name, const std::string& input,
                       const std::vector<int64_t>& shape, NodeAdder* adder) {
  Tensor dims(DT_INT64, {static_cast<int64_t>(shape.size())});
  std::copy(shape.begin(), shape.end(), dims.flat<int64_t>().data());
  NodeDef node = MakeNode(name, "Reshape",
                          {input, adder->Add(MakeConstant(absl::StrCat(name, "/shape"), dims))});
  (*node.mutable_attr())["T"].set_type(DT_FLOAT);
  (*node.mutable_attr())["Tshape"].set_type(DT_INT64);
  return adder->Add(std::move(node));
}

// Returns the rank of the weights, the input and the result of a product.
int RankOf(const NodeDef& product) { return product.op() == "MatMul" ? 2 : 4; }

// Returns the number of output channels of a product. Returns INVALID_ARGUMENT if the weights have
// another rank than weights of the op, or if they have no elements.
absl::StatusOr<int64_t> OutputChannels(const NodeDef& product, const Tensor& weights) {
  const int rank = RankOf(product);
  if (weights.dims() != rank || weights.NumElements() == 0) {
    return errors::InvalidArgument("node '", product.name(), "' (", product.op(),
                                   "): the weights have shape ", weights.shape().DebugString());
  }
  if (product.op() == "DepthwiseConv2dNative") return weights.dim_size(2) * weights.dim_size(3);
  return weights.dim_size(AttrOr(product, "transpose_b", false) ? 0 : rank - 1);
}

// Rounds the weights of a product and returns the name of the rounded weights.
absl::StatusOr<std::string> AddRoundedWeights(const NodeDef& product, const Tensor& weights,
                                              NodeAdder* adder) {
  const std::string name = absl::StrCat(product.name(), "/weights_quantized");
  const bool depthwise = product.op() == "DepthwiseConv2dNative";
  GRADFLOW_ASSIGN_OR_RETURN(int64_t channels, OutputChannels(product, weights));
  // Fake quantization has ranges of the last dimension only.
  if (AttrOr(product, "transpose_b", false)) channels = 1;
  std::vector<float> max(static_cast<size_t>(channels));
  const absl::Span<const float> values = weights.flat<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    float& most = max[i % max.size()];
    if (!std::isfinite(values[i])) {
      return errors::InvalidArgument("node '", product.name(), "' (", product.op(),
                                     "): a weight is ", values[i]);
    }
    most = std::max(most, std::abs(values[i]));
  }
  // A channel whose weights are all 0 may have any range. A tiny scale would make its bias exceed
  // the integers of TensorFlow Lite.
  const float largest = *std::max_element(max.begin(), max.end());
  // The scale must be a normal number.
  constexpr float kLeast = kSymmetricLevels * 1e-30f;
  for (float& most : max) most = std::max(most == 0 ? largest : most, kLeast);
  std::vector<float> min;
  for (const float most : max) min.push_back(-most);
  const std::string& input = product.input(1);
  if (channels == 1) {
    return AddFakeQuant(name, "FakeQuantWithMinMaxVars", input, Floats(min, true),
                        Floats(max, true), true, adder);
  }
  constexpr char kPerChannel[] = "FakeQuantWithMinMaxVarsPerChannel";
  if (!depthwise) {
    return AddFakeQuant(name, kPerChannel, input, Floats(min), Floats(max), true, adder);
  }
  // TensorFlow Lite's converter accepts only this shape, because it reshapes the filter to the same
  // shape.
  const std::string flat =
      AddReshape(absl::StrCat(name, "/flat"), input,
                 {1, weights.dim_size(0), weights.dim_size(1), channels}, adder);
  const std::string rounded = AddFakeQuant(absl::StrCat(name, "/rounded"), kPerChannel, flat,
                                           Floats(min), Floats(max), true, adder);
  std::vector<int64_t> shape;
  for (int d = 0; d < weights.dims(); ++d) shape.push_back(weights.dim_size(d));
  return AddReshape(name, rounded, shape, adder);
}

// Returns the constant weights of a product, directly or through Identity nodes.
absl::StatusOr<Tensor> WeightsOf(const std::map<std::string, const NodeDef*>& nodes,
                                 const NodeDef& product) {
  const NodeDef* weights = nodes.at(std::string(NodeOfInput(product.input(1))));
  while (weights->op() == "Identity") {
    weights = nodes.at(std::string(NodeOfInput(weights->input(0))));
  }
  Tensor value;
  GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(*weights, "value", &value));
  return value;
}

std::map<std::string, const NodeDef*> NodesByName(const GraphDef& graph) {
  std::map<std::string, const NodeDef*> nodes;
  for (const NodeDef& node : graph.node()) nodes.emplace(node.name(), &node);
  return nodes;
}

// Rounds an activation to its range, and returns the name of the rounded activation.
std::string AddRoundedActivation(const std::string& name, const std::string& input,
                                 const RangeCalibrator& range, NodeAdder* adder) {
  return AddFakeQuant(name, "FakeQuantWithMinMaxVars", input, Floats({range.min()}, true),
                      Floats({range.max()}, true), false, adder);
}

// Adds a node of a float op with a type attribute T.
std::string AddFloatNode(std::string name, const char* op, std::vector<std::string> inputs,
                         NodeAdder* adder) {
  NodeDef node = MakeNode(std::move(name), op, std::move(inputs));
  (*node.mutable_attr())["T"].set_type(DT_FLOAT);
  return adder->Add(std::move(node));
}

// Adds the mean over the first `axes` axes.
std::string AddMean(const std::string& name, const std::string& input, int axes, NodeAdder* adder) {
  Tensor indices(DT_INT32, {axes});
  for (int i = 0; i < axes; ++i) indices.flat<int32_t>()(i) = i;
  NodeDef node = MakeNode(name, "Mean",
                          {input, adder->Add(MakeConstant(absl::StrCat(name, "/axes"), indices))});
  (*node.mutable_attr())["T"].set_type(DT_FLOAT);
  (*node.mutable_attr())["Tidx"].set_type(DT_INT32);
  return adder->Add(std::move(node));
}

}  // namespace

std::vector<std::string> GraphQuantizer::products() const {
  std::vector<std::string> names;
  for (const int product : products_) names.push_back(graph_.node(product).name());
  return names;
}

absl::StatusOr<std::vector<RangeCalibrator>> GraphQuantizer::JoinedRanges(
    const std::vector<RangeCalibrator>& ranges) const {
  if (ranges.size() != tensors_.size()) {
    return errors::InvalidArgument("expected ", tensors_.size(), " ranges, found ", ranges.size());
  }
  // The first tensor of a group comes before the other tensors of the group.
  std::vector<RangeCalibrator> joined = ranges;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (groups_[i] != i) joined[groups_[i]].Merge(ranges[i]);
  }
  for (size_t i = 0; i < ranges.size(); ++i) joined[i] = joined[groups_[i]];
  return joined;
}

absl::StatusOr<GraphDef> GraphQuantizer::Quantize(const std::vector<RangeCalibrator>& ranges,
                                                  const std::vector<Tensor>& corrections) const {
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<RangeCalibrator> joined, JoinedRanges(ranges));
  if (!corrections.empty() && corrections.size() != products_.size()) {
    return errors::InvalidArgument("expected ", products_.size(), " corrections, found ",
                                   corrections.size());
  }
  GraphDef result = graph_;
  NodeAdder adder(&result);
  // The weights.
  const std::map<std::string, const NodeDef*> nodes = NodesByName(graph_);
  for (const int product : products_) {
    GRADFLOW_ASSIGN_OR_RETURN(const Tensor weights, WeightsOf(nodes, graph_.node(product)));
    GRADFLOW_ASSIGN_OR_RETURN(const std::string rounded,
                              AddRoundedWeights(graph_.node(product), weights, &adder));
    *result.mutable_node(product)->mutable_input(1) = rounded;
  }
  // The activations.
  std::map<std::string, std::string> rounded;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    rounded[tensors_[i]] = AddRoundedActivation(absl::StrCat(tensors_[i], "/quantized"),
                                                tensors_[i], joined[i], &adder);
  }
  for (int i = 0; i < graph_.node_size(); ++i) {
    for (std::string& input : *result.mutable_node(i)->mutable_input()) {
      const auto found = rounded.find(std::string(NodeOfInput(input)));
      if (found != rounded.end()) input = found->second;
    }
  }
  // The corrections. The corrected result takes the name of the product.
  for (size_t i = 0; i < corrections.size(); ++i) {
    const Tensor& correction = corrections[i];
    const std::string& name = graph_.node(products_[i]).name();
    GRADFLOW_ASSIGN_OR_RETURN(const Tensor weights, WeightsOf(nodes, graph_.node(products_[i])));
    GRADFLOW_ASSIGN_OR_RETURN(const int64_t channels,
                              OutputChannels(graph_.node(products_[i]), weights));
    if (correction.dtype() != DT_FLOAT || correction.shape() != TensorShape({channels})) {
      return errors::InvalidArgument(
          "the correction of node '", name, "' must be a vector of ", channels, " floats, but is ",
          DataTypeString(correction.dtype()), " ", correction.shape().DebugString());
    }
    NodeDef product = *result.mutable_node(products_[i]);
    product.set_name(absl::StrCat(name, "/uncorrected"));
    const std::string uncorrected = adder.Add(std::move(product));
    const std::string bias =
        adder.Add(MakeConstant(absl::StrCat(name, "/bias_correction"), correction));
    NodeDef sum = MakeNode(name, "BiasAdd", {uncorrected, bias});
    sum.set_device(graph_.node(products_[i]).device());
    (*sum.mutable_attr())["T"].set_type(DT_FLOAT);
    *result.mutable_node(products_[i]) = std::move(sum);
  }
  return result;
}

absl::StatusOr<GraphQuantizer::ErrorGraph> GraphQuantizer::MeasureErrors(
    const std::vector<RangeCalibrator>& ranges) const {
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<RangeCalibrator> joined, JoinedRanges(ranges));
  ErrorGraph result;
  result.graph = graph_;
  NodeAdder adder(&result.graph);
  const std::map<std::string, const NodeDef*> nodes = NodesByName(graph_);
  for (size_t i = 0; i < products_.size(); ++i) {
    const NodeDef& product = graph_.node(products_[i]);
    const std::string& name = product.name();
    GRADFLOW_ASSIGN_OR_RETURN(const Tensor weights, WeightsOf(nodes, product));
    GRADFLOW_ASSIGN_OR_RETURN(const std::string rounded,
                              AddRoundedWeights(product, weights, &adder));
    NodeDef copy = product;
    copy.set_name(absl::StrCat(name, "/quantized_product"));
    *copy.mutable_input(1) = rounded;
    // Nodes between the tensor with the range and the product only move elements, so the input
    // itself may be rounded instead. Inputs without a range are integers.
    if (input_tensors_[i] != kNoTensor) {
      *copy.mutable_input(0) =
          AddRoundedActivation(absl::StrCat(name, "/input_quantized"), product.input(0),
                               joined[input_tensors_[i]], &adder);
    }
    const std::string quantized = adder.Add(std::move(copy));
    const std::string error =
        AddFloatNode(absl::StrCat(name, "/error"), "Sub", {name, quantized}, &adder);
    const std::string squared_error =
        AddFloatNode(absl::StrCat(name, "/error/squared"), "Square", {error}, &adder);
    const std::string squared_result =
        AddFloatNode(absl::StrCat(name, "/result/squared"), "Square", {name}, &adder);
    const int rank = RankOf(product);
    ErrorTensors tensors;
    tensors.mean = AddMean(absl::StrCat(name, "/error/mean"), error, rank - 1, &adder);
    tensors.squared_error =
        AddMean(absl::StrCat(name, "/error/mean_square"), squared_error, rank, &adder);
    tensors.squared_result =
        AddMean(absl::StrCat(name, "/result/mean_square"), squared_result, rank, &adder);
    result.products.push_back(std::move(tensors));
  }
  return result;
}

}  // namespace gradflow::training
