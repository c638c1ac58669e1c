#include "gradflow/graph/tensor_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gradflow/graph/const_op.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/graph/scope.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/graph/toy_graph_ops.h"

namespace gradflow {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::NewToyScope;
using ::testing::ElementsAre;

TEST(UnusedOutputs, AreOutputsThatNoNodeReads) {
  const Scope root = NewToyScope();
  const Output x = ops::Const(root.WithOpName("x"), 1.0f);
  const Operation a = OpBuilder(root.WithOpName("a"), "Pair").Input(x).Finish();
  const Operation b = OpBuilder(root.WithOpName("b"), "Pair").Input(a.output(1)).Finish();
  OpBuilder(root.WithOpName("c"), "Neg").Input(b.output(0)).Finish();
  OpBuilder(root.WithOpName("d"), "Pair").Input(x).Finish();
  ASSERT_THAT(root.status(), IsOk());
  EXPECT_THAT(UnusedOutputs(*root.graph()), ElementsAre("a", "b:1", "c", "d", "d:1"));
  // A control input uses no output.
  const Scope after = root.WithControlDependencies(x);
  OpBuilder(after.WithOpName("e"), "NoOp").Finish();
  EXPECT_THAT(UnusedOutputs(*root.graph()), ElementsAre("a", "b:1", "c", "d", "d:1"));
}

TEST(UnusedOutputs, AreEmptyForAnEmptyGraph) {
  EXPECT_THAT(UnusedOutputs(*NewToyScope().graph()), ElementsAre());
}

}  // namespace
}  // namespace gradflow
