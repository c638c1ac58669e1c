#include "gradflow/runtime/plan/plan_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/graph/function_builder.h"
#include "gradflow/ops/functional_ops.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensors.h"

namespace gradflow {
namespace {

using ::gradflow::testing::AsTensor;
using ::gradflow::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Returns each change as "name (op) = origins".
std::vector<std::string> Texts(const std::vector<PlanReport::Change>& changes) {
  std::vector<std::string> texts;
  for (const PlanReport::Change& change : changes) {
    texts.push_back(
        absl::StrCat(change.name, " (", change.op, ") = ", absl::StrJoin(change.origins, ", ")));
  }
  return texts;
}

TEST(PlanReport, NamesChangedNodes) {
  const Scope s = Scope::NewRootScope();
  const Output x = ops::Placeholder(s.WithOpName("x"), DT_FLOAT);
  const Output w = ops::Const(s.WithOpName("w"), AsTensor<float>({1, 2, 3, 4}, {2, 2}));
  const Output twice = ops::Add(s.WithOpName("twice"), w, w);
  const Output product = ops::MatMul(s.WithOpName("product"), x, twice);
  const Output relu = ops::Relu(s.WithOpName("relu"), product);
  const Output sign = ops::Sign(s.WithOpName("sign"), x);
  const Output same = ops::Sign(s.WithOpName("same"), x);
  GRADFLOW_ASSERT_OK(s.status());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const PlanReport report,
      ReportPlan(*s.graph(), {"x"}, {relu.name(), sign.name(), same.name()},
                 /*fold_batch_norms=*/false));
  EXPECT_EQ(report.planned_nodes, 3);
  EXPECT_THAT(Texts(report.merged), ElementsAre("sign (Sign) = same"));
  EXPECT_THAT(Texts(report.folded), ElementsAre("twice (Add) = twice"));
  EXPECT_THAT(Texts(report.fused), ElementsAre("relu (FusedMatMul) = product, relu"));
}

TEST(PlanReport, NamesNodesOfFunctionsByTheirPath) {
  const Scope s = Scope::NewRootScope();
  FunctionBuilder f("f");
  const Output arg = f.Arg("arg", DT_FLOAT);
  const Output w = ops::Const(f.scope().WithOpName("w"), 2.f);
  const Output twice = ops::Add(f.scope().WithOpName("twice"), w, w);
  const Output left = ops::Mul(f.scope().WithOpName("left"), arg, twice);
  const Output right = ops::Mul(f.scope().WithOpName("right"), arg, twice);
  f.Result("y", ops::Sub(f.scope().WithOpName("difference"), left, right));
  GRADFLOW_ASSERT_OK(f.AddTo(s));
  NameAttrList function;
  function.set_name("f");
  const Output x = ops::Placeholder(s.WithOpName("x"), DT_FLOAT);
  const auto y = ops::PartitionedCall(s.WithOpName("call"), {x}, {DT_FLOAT}, function);
  GRADFLOW_ASSERT_OK(s.status());
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const PlanReport report,
                                ReportPlan(*s.graph(), {"x"}, {y[0].name()}, false));
  EXPECT_THAT(Texts(report.merged), ElementsAre("call/left (Mul) = call/right"));
  EXPECT_THAT(Texts(report.folded), ElementsAre("call/twice (Add) = call/twice"));
}

TEST(PlanReport, FailsWithThePlan) {
  EXPECT_THAT(ReportPlan(*Scope::NewRootScope().graph(), {}, {"missing"}, false),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("missing")));
}

}  // namespace
}  // namespace gradflow
