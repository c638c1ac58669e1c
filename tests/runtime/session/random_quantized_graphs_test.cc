// Runs random quantized graphs with integer inference: networks with random ranges, whose nodes,
// attributes, constants and edges are mutated. A mutated graph may be invalid, but a graph that
// runs in float must also run in integers, without errors of sanitizers.
// GRADFLOW_QUANTIZED_GRAPHS sets the number of graphs, and GRADFLOW_FIRST_QUANTIZED_GRAPH the seed
// of the first graph.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/graph.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/runtime/random_programs.h"

namespace gradflow {
namespace {

using ::gradflow::testing::NumPrograms;
using ::gradflow::testing::OptionsFor;
using ::gradflow::testing::RandomTensor;

constexpr int kSize = 6;
constexpr int kDepth = 5;

class RandomNetwork {
 public:
  explicit RandomNetwork(uint32_t seed) : random_(seed) {}

  GraphDef Build() {
    Output x = Quantize(ops::Placeholder(scope_.WithOpName("x"), DT_FLOAT));
    const int layers = Pick(1, 4);
    for (int i = 0; i < layers; ++i) x = Quantize(Layer(x));
    const Output flat = ops::Reshape(scope_, x, {1, -1});
    const Output product = ops::MatMul(scope_, flat, flat, ops::MatMul::TransposeB(true));
    ops::Identity(scope_.WithOpName("y"), Pick(0, 2) == 0 ? x : Quantize(product));
    GRADFLOW_EXPECT_OK(scope_.status());
    return scope_.graph()->def();
  }

  // Changes a node of the graph.
  void Mutate(GraphDef* graph) {
    NodeDef& node = *graph->mutable_node(Pick(0, graph->node_size() - 1));
    switch (Pick(0, 5)) {
      case 0:
        if (node.input_size() == 0) return MutateAttr(&node);
        *node.mutable_input(Pick(0, node.input_size() - 1)) = NameOf(*graph);
        return;
      case 1:
        *node.add_input() = absl::StrCat("^", NameOf(*graph));
        return;
      case 2:
        node.set_op(graph->node(Pick(0, graph->node_size() - 1)).op());
        return;
      default:
        return MutateAttr(&node);
    }
  }

  int Pick(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<uint32_t>(high - low + 1));
  }

 private:
  Output Constant(const TensorShape& shape) {
    return ops::Const(scope_, RandomTensor(DT_FLOAT, shape, -1, 1, random_()));
  }

  Output Quantize(const Output& x) {
    const float min = -static_cast<float>(Pick(0, 40)) / 10;
    const float max = static_cast<float>(Pick(1, 40)) / 10;
    switch (Pick(0, 3)) {
      case 0:
        return ops::FakeQuantWithMinMaxArgs(scope_, x,
                                            ops::FakeQuantWithMinMaxArgs::Min(min)
                                                .Max(max)
                                                .NumBits(Pick(2, 9))
                                                .NarrowRange(Pick(0, 1) == 0));
      case 1:
        return ops::QuantizeAndDequantizeV2(
            scope_, x, min, max,
            ops::QuantizeAndDequantizeV2::RangeGiven(true).NumBits(Pick(2, 8)));
      default:
        return ops::FakeQuantWithMinMaxVars(scope_, x, min, max,
                                            ops::FakeQuantWithMinMaxVars::NumBits(Pick(2, 8)));
    }
  }

  Output Weights(const TensorShape& shape) {
    const TensorShape channels = {shape.dim_size(shape.dims() - 1)};
    if (Pick(0, 1) == 0) return Quantize(Constant(shape));
    const Output max = ops::Const(scope_, RandomTensor(DT_FLOAT, channels, 0.5, 1, random_()));
    return ops::FakeQuantWithMinMaxVarsPerChannel(scope_, Constant(shape), ops::Neg(scope_, max),
                                                  max);
  }

  // Keeps the shape [1, kSize, kSize, kDepth].
  Output Layer(const Output& x) {
    const Scope& s = scope_;
    switch (Pick(0, 11)) {
      case 0:
        return ops::BiasAdd(
            s, ops::Conv2D(s, x, Weights({3, 3, kDepth, kDepth}), {1, 1, 1, 1}, "SAME"),
            Constant({kDepth}));
      case 1:
        return ops::Relu6(
            s, ops::DepthwiseConv2dNative(s, x, Weights({3, 3, kDepth, 1}), {1, 1, 1, 1}, "SAME"));
      case 2:
        return ops::AvgPool(s, x, {1, 3, 3, 1}, {1, 1, 1, 1}, "SAME");
      case 3:
        return ops::MaxPool(s, x, {1, 3, 3, 1}, {1, 1, 1, 1}, "SAME");
      case 4:
        return ops::Relu(s, ops::AddV2(s, x, Quantize(ops::Sigmoid(s, x))));
      case 5:
        return ops::Softmax(s, x);
      case 6:
        return ops::Mul(s, x, Quantize(ops::Mean(s, x, {1, 2}, ops::Mean::KeepDims(true))));
      case 7: {
        const Output half = ops::Slice(s, x, {0, 0, 0, 0}, {1, kSize / 2, kSize, kDepth});
        return ops::Concat(s, {half, Quantize(ops::Tanh(s, half))}, 1);
      }
      case 8: {
        const Output scores = ops::BatchMatMulV2(s, x, x, ops::BatchMatMulV2::AdjY(true));
        return ops::BatchMatMulV2(s, Quantize(ops::Mul(s, scores, 0.5f)), x);
      }
      case 9: {
        const Output rows = ops::Reshape(s, x, {kSize * kSize, kDepth});
        return ops::Reshape(s, ops::MatMul(s, rows, Weights({kDepth, kDepth})),
                            {1, kSize, kSize, kDepth});
      }
      case 10: {
        const Output padded = ops::Pad(s, x, {{0, 0}, {1, 1}, {1, 1}, {0, 0}});
        return ops::Conv2D(s, padded, Weights({3, 3, kDepth, kDepth}), {1, 1, 1, 1}, "VALID");
      }
      default:
        return ops::Transpose(s, ops::ResizeNearestNeighbor(s, x, {kSize, kSize}), {0, 2, 1, 3});
    }
  }

  std::string NameOf(const GraphDef& graph) {
    return graph.node(Pick(0, graph.node_size() - 1)).name();
  }

  void MutateAttr(NodeDef* node) {
    if (node->attr_size() == 0) return;
    auto it = node->mutable_attr()->begin();
    std::advance(it, Pick(0, node->attr_size() - 1));
    AttrValue& attr = it->second;
    constexpr int64_t kInts[] = {-1, 0, 1, 2, 3, 8, 9, 100, std::numeric_limits<int32_t>::max()};
    constexpr float kFloats[] = {0,
                                 -1,
                                 1,
                                 3e38f,
                                 1e-40f,
                                 std::numeric_limits<float>::infinity(),
                                 std::numeric_limits<float>::quiet_NaN()};
    const int64_t number = kInts[Pick(0, std::size(kInts) - 1)];
    const float real = kFloats[Pick(0, std::size(kFloats) - 1)];
    switch (attr.value_case()) {
      case AttrValue::kI:
        return attr.set_i(number);
      case AttrValue::kF:
        return attr.set_f(real);
      case AttrValue::kB:
        return attr.set_b(!attr.b());
      case AttrValue::kS: {
        const char* const texts[] = {"SAME", "VALID", "NCHW", "NHWC", "EXPLICIT", "HALF_UP"};
        return attr.set_s(texts[Pick(0, std::size(texts) - 1)]);
      }
      case AttrValue::kType: {
        constexpr DataType kTypes[] = {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_INT32, DT_INT64, DT_UINT8};
        return attr.set_type(kTypes[Pick(0, std::size(kTypes) - 1)]);
      }
      case AttrValue::kList:
        if (attr.list().i_size() == 0) return attr.mutable_list()->add_i(number);
        return attr.mutable_list()->set_i(Pick(0, attr.list().i_size() - 1), number);
      case AttrValue::kTensor: {
        TensorProto& tensor = *attr.mutable_tensor();
        if (tensor.tensor_shape().dim_size() > 0 && Pick(0, 2) == 0) {
          tensor.mutable_tensor_shape()
              ->mutable_dim(Pick(0, tensor.tensor_shape().dim_size() - 1))
              ->set_size(Pick(0, 7));
        } else if (tensor.dtype() == DT_FLOAT && !tensor.tensor_content().empty()) {
          std::string& content = *tensor.mutable_tensor_content();
          const int i = Pick(0, static_cast<int>(content.size() / sizeof(real)) - 1);
          content.replace(static_cast<size_t>(i) * sizeof(real), sizeof(real),
                          reinterpret_cast<const char*>(&real), sizeof(real));
        } else if (tensor.float_val_size() > 0) {
          tensor.set_float_val(Pick(0, tensor.float_val_size() - 1), real);
        } else if (tensor.int_val_size() > 0) {
          tensor.set_int_val(Pick(0, tensor.int_val_size() - 1), static_cast<int32_t>(number));
        } else if (!tensor.tensor_content().empty()) {
          std::string& content = *tensor.mutable_tensor_content();
          content[static_cast<size_t>(Pick(0, static_cast<int>(content.size()) - 1))] =
              static_cast<char>(Pick(0, 255));
        }
        return;
      }
      default:
        return;
    }
  }

  std::mt19937 random_;
  Scope scope_ = Scope::NewRootScope();
};

absl::Status RunGraph(const GraphDef& graph, bool integers, bool tflite_rounding,
                      std::vector<Tensor>* outputs) {
  SessionOptions options = OptionsFor(1);
  options.integer_inference = integers;
  options.tflite_rounding = tflite_rounding;
  options.tensor_memory_limit_bytes = int64_t{64} << 20;
  GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Make(options));
  GRADFLOW_RETURN_IF_ERROR(session->Create(graph));
  const Tensor x = RandomTensor(DT_FLOAT, {1, kSize, kSize, kDepth}, -4, 4, 1);
  return session->Run({{"x", x}}, {"y"}, {}, outputs);
}

TEST(RandomQuantizedGraphs, RunInIntegersIfTheyRunInFloat) {
  const int graphs = NumPrograms("GRADFLOW_QUANTIZED_GRAPHS", 400);
  const int first = NumPrograms("GRADFLOW_FIRST_QUANTIZED_GRAPH", 0);
  int valid = 0;
  for (int i = first; i < first + graphs; ++i) {
    SCOPED_TRACE(absl::StrCat("graph ", i));
    RandomNetwork network(static_cast<uint32_t>(i));
    GraphDef graph = network.Build();
    const int mutations = network.Pick(0, 3);
    for (int m = 0; m < mutations; ++m) network.Mutate(&graph);
    std::vector<Tensor> in_float;
    std::vector<Tensor> in_integers;
    const absl::Status status = RunGraph(graph, false, false, &in_float);
    const absl::Status found = RunGraph(graph, true, network.Pick(0, 1) == 0, &in_integers);
    if (!status.ok()) continue;
    ++valid;
    GRADFLOW_ASSERT_OK(found);
    ASSERT_EQ(in_integers[0].dtype(), in_float[0].dtype());
    ASSERT_EQ(in_integers[0].shape(), in_float[0].shape());
  }
  EXPECT_GT(valid, graphs / 4);
}

}  // namespace
}  // namespace gradflow
