// A node for tests of InferenceContext, and texts of shapes and errors.
#ifndef GRADFLOW_TESTS_COMPAT_INFERENCE_NODE_H_
#define GRADFLOW_TESTS_COMPAT_INFERENCE_NODE_H_

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/op_def_builder.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/lib/core/status_test_util.h"

namespace tensorflow {
namespace shape_inference {
namespace inference_context_test {

using Dim = DimensionHandle;
using Inputs = std::vector<PartialTensorShape>;
using PlainValues = std::vector<std::pair<PartialTensorShape, DataType>>;

inline constexpr int64 kMax = std::numeric_limits<int64>::max();
inline constexpr int64 kMaxRank = 254;

// The context of a node with the arguments "first", a tensor, and "rest", a list.
struct TestNode {
  explicit TestNode(const Inputs& inputs, const std::vector<const Tensor*>& tensors = {},
                    const std::vector<PartialTensorShape>& as_shapes = {},
                    const std::vector<std::unique_ptr<PlainValues>>& values = {},
                    int64 length = -1) {
    node.set_name("node");
    node.set_op("Test");
    (*node.mutable_attr())["N"].set_i(length < 0 ? static_cast<int64>(inputs.size()) - 1 : length);
    context = std::make_unique<InferenceContext>(7, node, OpDefOfTest(), inputs, tensors, as_shapes,
                                                 values);
  }
  static OpDef OpDefOfTest() {
    OpRegistrationData data;
    TF_CHECK_OK(OpDefBuilder("Test")
                    .Input("first: int32")
                    .Input("rest: N * int32")
                    .Output("one: int32")
                    .Output("many: N * int32")
                    .Attr("N: int >= 0")
                    .Finalize(&data));
    return data.op_def;
  }
  InferenceContext* operator->() { return context.get(); }
  InferenceContext& operator*() { return *context; }

  NodeDef node;
  std::unique_ptr<InferenceContext> context;
};

// Returns the text of the shape that `call` stores. If the call fails, returns the error and
// expects that no shape is stored.
template <typename Call>
std::string ShapeOf(InferenceContext& c, Call call) {
  ShapeHandle out = c.Vector(99);
  const absl::Status status = call(&out);
  if (status.ok()) return c.DebugString(out);
  EXPECT_EQ(status.code(), error::INVALID_ARGUMENT);
  EXPECT_TRUE(out.SameHandle(ShapeHandle())) << status;
  return std::string(status.message());
}

template <typename Call>
std::string DimOf(InferenceContext& c, Call call) {
  Dim out;
  const absl::Status status = call(&out);
  if (status.ok()) return c.DebugString(out);
  EXPECT_EQ(status.code(), error::INVALID_ARGUMENT);
  return std::string(status.message());
}

}  // namespace inference_context_test
}  // namespace shape_inference
}  // namespace tensorflow

#endif  // GRADFLOW_TESTS_COMPAT_INFERENCE_NODE_H_
