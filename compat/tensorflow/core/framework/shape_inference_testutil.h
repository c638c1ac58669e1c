// ShapeInferenceTestutil, INFER_OK and INFER_ERROR: tests of shape functions.
//
//   INFER_OK(op, "[1,?];[?,3]", "[d0_0,d1_1]");
//
// Inputs and outputs are separated by ';'. An output is
//   ?               an unknown shape that is not the shape of an input
//   in0|in1         the same shape as one of these inputs
//   [1,?,d0_0|d1_2] dimensions: a size, or an unknown dimension that is not an input dimension, or
//                   one of these input dimensions: d0_1 is dimension 1 of input 0
//   e               alone: the shape function must return an error.
// Shape functions of gradflow's own ops see plain shapes, so their outputs are compared by value:
// "in0" stands for any shape that is equal to input 0, and d0_1 for any size that is equal to
// dimension 1 of input 0. Unknown sizes are equal.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_SHAPE_INFERENCE_TESTUTIL_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_SHAPE_INFERENCE_TESTUTIL_H_

// The library compiles these functions with or without GoogleTest.
#if __has_include(<gtest/gtest.h>)
#include <gtest/gtest.h>
#endif

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/strings/strcat.h"
#include "tensorflow/core/platform/types.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow {

struct ShapeInferenceTestOp {
  using ShapeAndType = std::pair<std::string, DataType>;
  explicit ShapeInferenceTestOp(absl::string_view name) : name(name) {}
  std::string name;
  NodeDef node_def;
  // The known inputs. Unknown inputs are null.
  std::vector<const Tensor*> input_tensors;
  std::vector<std::vector<ShapeAndType>*> input_resource_handle_shapes_and_types;
  int graph_def_version = TF_GRAPH_DEF_VERSION;
};

namespace shape_inference {

class ShapeInferenceTestutil {
 public:
  // Returns UNKNOWN, with a description, unless the shape function of the op infers
  // `expected_outs` from `ins`.
  static absl::Status InferShapes(const ShapeInferenceTestOp& op, const std::string& ins,
                                  const std::string& expected_outs);
  static absl::Status InferShapes(const std::string& op, const std::string& ins,
                                  const std::string& expected_outs) {
    return InferShapes(ShapeInferenceTestOp(op), ins, expected_outs);
  }

 private:
  static absl::Status MakeShapeFromString(InferenceContext::ShapeManager* manager,
                                          absl::string_view spec, ShapeHandle* output);
  static absl::Status CheckOutput(InferenceContext* c, int output, absl::string_view expected);
  static absl::Status CheckValues(InferenceContext* c, int output, absl::string_view expected);
};

}  // namespace shape_inference
}  // namespace tensorflow

#define INFER_OK(op, i, o)                                                                \
  EXPECT_EQ(::tensorflow::shape_inference::ShapeInferenceTestutil::InferShapes(op, i, o), \
            ::absl::OkStatus())

#define INFER_ERROR(error_substring, op, i)                                                \
  {                                                                                        \
    const ::absl::Status gradflow_status =                                                 \
        ::tensorflow::shape_inference::ShapeInferenceTestutil::InferShapes(op, i, "e");    \
    EXPECT_FALSE(gradflow_status.ok());                                                    \
    EXPECT_TRUE(::absl::StrContains(gradflow_status.ToString(), error_substring))          \
        << "Expected to see '" << (error_substring) << "' in '" << gradflow_status << "'"; \
  }

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_SHAPE_INFERENCE_TESTUTIL_H_
