// Tests of copying graphs without the values of large constants.
#include "tools/light_graph.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <string>

#include "gradflow/core/attributes.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/core/types.h"
#include "gradflow/testing/status_matchers.h"

namespace gradflow::tools {
namespace {

using ::google::protobuf::util::MessageDifferencer;

// Returns a constant with the bytes 1, 2, 3, ... of 7 bits.
GraphDef Constant(DataType type, int64_t size) {
  GraphDef graph;
  NodeDef* const node = graph.add_node();
  node->set_name("c");
  node->set_op("Const");
  (*node->mutable_attr())["dtype"].set_type(type);
  TensorProto* const proto = (*node->mutable_attr())["value"].mutable_tensor();
  proto->set_dtype(type);
  proto->mutable_tensor_shape()->add_dim()->set_size(size);
  std::string* const content = proto->mutable_tensor_content();
  for (int64_t i = 0; i < size * DataTypeSize(type); ++i) {
    content->push_back(static_cast<char>((i + 1) % 127));
  }
  return graph;
}

const AttrValue& Value(const GraphDef& graph) { return graph.node(0).attr().at("value"); }

class LightGraph : public ::testing::TestWithParam<DataType> {};

TEST_P(LightGraph, HasTheSummaryOfTheGraph) {
  GraphDef graph = Constant(GetParam(), kMaxLightElements + 1);
  const GraphDef before = graph;
  const GraphDef light = LightCopy(&graph);
  EXPECT_TRUE(MessageDifferencer::Equals(graph, before));
  EXPECT_LT(light.ByteSizeLong(), 2000);
  GRADFLOW_EXPECT_OK(ValidateTensorProto(Value(light).tensor()));
  EXPECT_EQ(SummarizeAttrValue(Value(light)), SummarizeAttrValue(Value(graph)));
}

INSTANTIATE_TEST_SUITE_P(Types, LightGraph,
                         ::testing::Values(DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16, DT_INT8,
                                           DT_QINT8, DT_UINT8, DT_QUINT8, DT_INT32, DT_QINT32,
                                           DT_INT64),
                         [](const auto& info) { return DataTypeString(info.param); });

TEST(LightGraph, ShortensConstantsOfFunctions) {
  const GraphDef constant = Constant(DT_FLOAT, kMaxLightElements + 1);
  GraphDef graph;
  *graph.mutable_library()->add_function()->add_node_def() = constant.node(0);
  const GraphDef before = graph;
  const GraphDef light = LightCopy(&graph);
  EXPECT_TRUE(MessageDifferencer::Equals(graph, before));
  EXPECT_LT(light.ByteSizeLong(), 2000);
}

TEST(LightGraph, KeepsConstantsThatShapesAreInferredFrom) {
  GraphDef graph = Constant(DT_INT64, kMaxLightElements);
  EXPECT_TRUE(MessageDifferencer::Equals(LightCopy(&graph), graph));
}

TEST(LightGraph, KeepsConstantsOfOtherTypes) {
  GraphDef graph = Constant(DT_COMPLEX64, kMaxLightElements + 1);
  EXPECT_TRUE(MessageDifferencer::Equals(LightCopy(&graph), graph));
}

TEST(LightGraph, KeepsErrors) {
  GraphDef graph = Constant(DT_FLOAT, kMaxLightElements + 1);
  (*graph.mutable_node(0)->mutable_attr())["value"]
      .mutable_tensor()
      ->mutable_tensor_content()
      ->pop_back();
  EXPECT_TRUE(MessageDifferencer::Equals(LightCopy(&graph), graph));
}

// The copy has the first 64 values of the constant and repeats the last of them.
TEST(LightGraph, HasTheFirstValuesOfLargeConstants) {
  GraphDef graph = Constant(DT_INT8, kMaxLightElements + 1);
  GraphDef small = Constant(DT_INT8, kMaxLightElements);
  *graph.add_node() = small.node(0);
  const GraphDef light = LightCopy(&graph);
  const TensorProto& large = Value(light).tensor();
  EXPECT_EQ(large.tensor_content(), "");
  ASSERT_EQ(large.int_val_size(), 64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(large.int_val(i), i + 1);
  EXPECT_TRUE(MessageDifferencer::Equals(light.node(1), small.node(0)));
}

// A constant with few elements may have more bytes than the limit.
TEST(LightGraph, KeepsConstantsOfFewElements) {
  GraphDef graph = Constant(DT_DOUBLE, kMaxLightElements / 4);
  EXPECT_TRUE(MessageDifferencer::Equals(LightCopy(&graph), graph));
  // The constant repeats one value.
  graph = Constant(DT_FLOAT, 2 * kMaxLightElements);
  TensorProto* const repeated = (*graph.mutable_node(0)->mutable_attr())["value"].mutable_tensor();
  repeated->clear_tensor_content();
  repeated->add_float_val(3);
  EXPECT_TRUE(MessageDifferencer::Equals(LightCopy(&graph), graph));
  // The shape of the constant is wrong.
  graph = Constant(DT_FLOAT, kMaxLightElements + 1);
  (*graph.mutable_node(0)->mutable_attr())["value"]
      .mutable_tensor()
      ->mutable_tensor_shape()
      ->mutable_dim(0)
      ->set_size(-2);
  EXPECT_TRUE(MessageDifferencer::Equals(LightCopy(&graph), graph));
}

}  // namespace
}  // namespace gradflow::tools
