#include "gradflow/graph/scope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/graph/unique_names.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/graph/toy_graph_ops.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::NewToyScope;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::ToyGraphRegistry;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Output Neg(const Scope& scope, const Input& x) {
  return OpBuilder(scope, "Neg").Input(x).Finish().output(0);
}

std::string NameOf(const Scope& scope, const std::string& op = "op") {
  return scope.GetUniqueNameForOp(op);
}

// ---- Names ----

TEST(ScopeNames, OpsAreNumberedFromTheSecondOn) {
  const Scope root = NewToyScope();
  EXPECT_EQ(NameOf(root, "Add"), "Add");
  EXPECT_EQ(NameOf(root, "Add"), "Add_1");
  EXPECT_EQ(NameOf(root, "Add"), "Add_2");
  EXPECT_EQ(NameOf(root, "Mul"), "Mul");
}

TEST(ScopeNames, NumberedNamesAreAlsoTaken) {
  const Scope root = NewToyScope();
  EXPECT_EQ(NameOf(root, "a"), "a");
  EXPECT_EQ(NameOf(root, "a"), "a_1");
  EXPECT_EQ(NameOf(root, "a_1"), "a_1_1");
  EXPECT_EQ(NameOf(root, "a_2"), "a_2");
  EXPECT_EQ(NameOf(root, "a"), "a_3");
  EXPECT_EQ(NameOf(root, "a_2"), "a_2_1");
  EXPECT_EQ(NameOf(root, "a_03"), "a_03");
  EXPECT_EQ(NameOf(root, "a_0"), "a_0");
}

TEST(ScopeNames, SubScopesAreUniqueWithinTheirParent) {
  const Scope root = NewToyScope();
  const Scope first = root.NewSubScope("s");
  const Scope second = root.NewSubScope("s");
  EXPECT_EQ(NameOf(first), "s/op");
  EXPECT_EQ(NameOf(first), "s/op_1");
  EXPECT_EQ(NameOf(second), "s_1/op");
  EXPECT_EQ(NameOf(second.NewSubScope("s")), "s_1/s/op");
  EXPECT_EQ(NameOf(second.NewSubScope("s")), "s_1/s_1/op");
  EXPECT_EQ(NameOf(root.NewSubScope("t").NewSubScope("u")), "t/u/op");
}

TEST(ScopeNames, OpsAndSubScopesShareNames) {
  const Scope root = NewToyScope();
  root.NewSubScope("s");
  EXPECT_EQ(NameOf(root, "s"), "s_1");
  EXPECT_EQ(NameOf(root.NewSubScope("s")), "s_2/op");
}

TEST(ScopeNames, SubScopeWithoutNameKeepsTheParentsNames) {
  const Scope root = NewToyScope();
  EXPECT_EQ(NameOf(root.NewSubScope("").NewSubScope("")), "op");
  EXPECT_EQ(NameOf(root.NewSubScope("")), "op_1");
  EXPECT_EQ(NameOf(root), "op_2");
}

TEST(ScopeNames, WithOpNameNamesOpsUntilReplaced) {
  const Scope root = NewToyScope();
  EXPECT_EQ(NameOf(root.WithOpName("x")), "x");
  EXPECT_EQ(NameOf(root.WithOpName("x")), "x_1");
  EXPECT_EQ(NameOf(root.WithOpName("x").WithOpName("y")), "y");
  EXPECT_EQ(NameOf(root.WithOpName("y").WithDevice("/cpu:0")), "y_1");
  EXPECT_EQ(NameOf(root.WithOpName("")), "op");
  const Scope sub = root.WithOpName("z").NewSubScope("s");
  EXPECT_EQ(NameOf(sub), "s/op");
  EXPECT_EQ(NameOf(sub.WithOpName("w")), "s/w");
}

TEST(ScopeNames, WithOpNameJoinsParts) {
  const Scope root = NewToyScope();
  EXPECT_EQ(NameOf(root.WithOpName("layer", 3, "/", std::string("w"))), "layer3/w");
  EXPECT_EQ(NameOf(root.WithOpName("layer", 3, "/w")), "layer3/w_1");
}

// Two composite ops. One contains the other as its last op.
std::vector<std::string> NamesOfInnerComposite(const Scope& scope) {
  const CompositeOpScopes scopes = scope.GetCompositeOpScopes("inner");
  return {NameOf(scopes.child, "a"), NameOf(scopes.child, "mul"), NameOf(scopes.last, "last")};
}
std::vector<std::string> NamesOfComposite(const Scope& scope) {
  const CompositeOpScopes scopes = scope.GetCompositeOpScopes("linear");
  std::vector<std::string> names = {NameOf(scopes.child, "mul"), NameOf(scopes.child, "bias")};
  for (std::string& name : NamesOfInnerComposite(scopes.last)) names.push_back(std::move(name));
  return names;
}

TEST(ScopeNames, LastOpOfACompositeHasItsName) {
  const Scope root = NewToyScope();
  EXPECT_THAT(NamesOfComposite(root),
              ElementsAre("linear/mul", "linear/bias", "linear/a", "linear/mul_1", "linear"));
  EXPECT_EQ(NameOf(root, "linear"), "linear_1");
  EXPECT_THAT(NamesOfComposite(root), ElementsAre("linear_2/mul", "linear_2/bias", "linear_2/a",
                                                  "linear_2/mul_1", "linear_2"));
  EXPECT_THAT(NamesOfComposite(root.WithOpName("c")),
              ElementsAre("c/mul", "c/bias", "c/a", "c/mul_1", "c"));
  EXPECT_THAT(root.status(), IsOk());
}

TEST(ScopeNames, CompositeInASubScopeIsNamedLikeInTensorFlow) {
  const Scope sub = NewToyScope().NewSubScope("s");
  const CompositeOpScopes scopes = sub.GetCompositeOpScopes("linear");
  EXPECT_EQ(NameOf(scopes.child), "s/linear/op");
  EXPECT_EQ(NameOf(scopes.last), "s_s/linear");
}

TEST(ScopeNames, LastScopeOfACompositeIsForOneOp) {
  const Scope root = NewToyScope();
  const CompositeOpScopes scopes = root.GetCompositeOpScopes("linear");
  EXPECT_EQ(NameOf(scopes.last), "linear");
  EXPECT_EQ(NameOf(scopes.last), "");
  EXPECT_THAT(root.status(),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("'linear', exists already")));
}

TEST(ScopeNames, LastScopeOfACompositeCannotBeRenamed) {
  const Scope root = NewToyScope();
  root.GetCompositeOpScopes("linear").last.WithOpName("other");
  EXPECT_THAT(root.status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("cannot be named 'other'")));
}

TEST(ScopeNames, CompositeNeedsAName) {
  const Scope root = NewToyScope();
  root.GetCompositeOpScopes("");
  EXPECT_THAT(root.status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("a name")));
}

// A reference implementation of UniqueNames. It stores every name.
class AllNames {
 public:
  std::string Take(const std::string& name) {
    if (names_.emplace(name, 0).second) return name;
    std::string unique;
    do {
      unique = absl::StrCat(name, "_", ++names_[name]);
    } while (names_.count(unique) > 0);
    names_.emplace(unique, 0);
    return unique;
  }

 private:
  std::map<std::string, int> names_;
};

TEST(UniqueNames, AgreesWithTheReference) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    internal::UniqueNames names;
    AllNames all;
    std::set<std::string> given;
    for (int i = 0; i < 60; ++i) {
      std::string name = random() % 2 == 0 ? "a" : "b";
      while (random() % 2 == 0) absl::StrAppend(&name, "_", random() % 4);
      if (random() % 20 == 0) name += "_01";
      const std::string unique = names.Take("", name);
      EXPECT_EQ(unique, all.Take(name));
      EXPECT_TRUE(given.insert(unique).second) << unique;
    }
  }
}

TEST(UniqueNames, TakesNamesThatLookLikeNumbers) {
  for (const char* name : {"", "_", "_1", "1", "a_", "a_+1", "a_ 1", "a_99999999999999999999"}) {
    internal::UniqueNames names;
    names.Take("", "a");
    EXPECT_EQ(names.Take("", name), name);
    EXPECT_EQ(names.Take("s", name), absl::StrCat("s/", name, "_1"));
  }
}

// ---- Properties of scopes' ops ----

TEST(Scope, RecordsNodesInTheGraph) {
  const Scope root = NewToyScope();
  const Output x = ops::Const(root.WithOpName("x"), 1.5f);
  const Output y = Neg(root, x);
  ASSERT_THAT(root.status(), IsOk());
  GraphDef graph_def;
  ASSERT_THAT(root.ToGraphDef(&graph_def), IsOk());
  ASSERT_EQ(graph_def.node_size(), 2);
  EXPECT_EQ(graph_def.node(0).name(), "x");
  EXPECT_EQ(graph_def.node(1).name(), "Neg");
  EXPECT_EQ(graph_def.node(1).op(), "Neg");
  EXPECT_THAT(graph_def.node(1).input(), ElementsAre("x"));
  EXPECT_EQ(graph_def.node(1).attr().at("T").type(), DT_FLOAT);
  EXPECT_EQ(graph_def.versions().producer(), kGraphDefVersion);
  EXPECT_EQ(root.graph()->FindNode("Neg"), y.node());
  EXPECT_EQ(root.graph_as_shared_ptr().get(), root.graph());
}

TEST(Scope, ControlDependenciesAddUp) {
  const Scope root = NewToyScope();
  const Operation a = OpBuilder(root.WithOpName("a"), "NoOp").Finish();
  const Operation b = OpBuilder(root.WithOpName("b"), "NoOp").Finish();
  const Output c = ops::Const(root.WithOpName("c"), 1.0f);
  const Scope after = root.WithControlDependencies({a, b}).WithControlDependencies(c);
  EXPECT_THAT(after.control_deps(), ElementsAre(a, b, c.op()));
  EXPECT_THAT(Neg(after.WithControlDependencies({a}), c).node()->def().input(),
              ElementsAre("c", "^a", "^b", "^c"));
  EXPECT_THAT(after.WithNoControlDependencies().control_deps(), ElementsAre());
  EXPECT_THAT(Neg(after.WithNoControlDependencies(), c).node()->def().input(), ElementsAre("c"));
  // The Const of a value also has the control inputs.
  EXPECT_THAT(ops::AsNodeOut(after, 2.0f).node->def().input(), ElementsAre("^a", "^b", "^c"));
  EXPECT_THAT(root.control_deps(), ElementsAre());
  EXPECT_THAT(root.status(), IsOk());
}

TEST(Scope, EmptyControlDependencyIsAnError) {
  const Scope root = NewToyScope();
  OpBuilder(root.WithControlDependencies({Operation()}), "NoOp").Finish();
  EXPECT_THAT(root.status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "node 'NoOp' (NoOp): a control dependency is an empty operation"));
}

TEST(Scope, AssignedDeviceWinsOverDevice) {
  const Scope root = NewToyScope();
  const Scope device = root.WithDevice("/cpu:1");
  EXPECT_EQ(ops::Const(root, 1).node()->requested_device(), "");
  EXPECT_EQ(ops::Const(device, 1).node()->requested_device(), "/cpu:1");
  EXPECT_EQ(ops::Const(device.NewSubScope("s").WithOpName("x"), 1).node()->def().device(),
            "/cpu:1");
  EXPECT_EQ(ops::Const(device.WithAssignedDevice("/cpu:2"), 1).node()->def().device(), "/cpu:2");
}

TEST(Scope, KernelLabelIsAnAttribute) {
  const Scope root = NewToyScope();
  const Output x = ops::Const(root, 1.0f);
  std::string label;
  ASSERT_THAT(Neg(root.WithKernelLabel("fast"), x).node()->GetAttr("_kernel", &label), IsOk());
  EXPECT_EQ(label, "fast");
  EXPECT_EQ(Neg(root, x).node()->def().attr().count("_kernel"), 0);
}

std::vector<std::string> Colocation(const Output& output) {
  std::vector<std::string> entries;
  output.node()->GetAttr("_class", &entries).IgnoreError();
  return entries;
}

TEST(Scope, ColocationNamesTheGroupOfTheOtherNode) {
  const Scope root = NewToyScope();
  const Output a = ops::Const(root.WithOpName("a"), 1.0f);
  const Output b = ops::Const(root.WithOpName("b"), 1.0f);
  const Scope with_b = root.ColocateWith(b);
  const Output c = Neg(with_b.WithOpName("c"), b);
  EXPECT_THAT(Colocation(a), ElementsAre());
  EXPECT_THAT(Colocation(c), ElementsAre("loc:@b"));
  // The node is colocated with the group of c, not with c itself.
  EXPECT_THAT(Colocation(Neg(root.ColocateWith(c), c)), ElementsAre("loc:@b"));
  EXPECT_THAT(Colocation(Neg(with_b.ColocateWith(a.op()).ColocateWith(b), c)),
              ElementsAre("loc:@a", "loc:@b"));
  EXPECT_THAT(Colocation(Neg(with_b.ClearColocation(), c)), ElementsAre());
  EXPECT_THAT(root.status(), IsOk());
}

TEST(Scope, ColocationWithNothingIsAnError) {
  const Scope root = NewToyScope();
  EXPECT_FALSE(root.ColocateWith(Output()).ok());
  EXPECT_THAT(root.status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("empty operation")));
}

// ---- Status ----

TEST(Scope, FirstErrorStays) {
  const Scope root = NewToyScope();
  const Scope sub = root.NewSubScope("s").WithOpName("x");
  sub.UpdateStatus(absl::OkStatus());
  EXPECT_TRUE(root.ok());
  sub.UpdateStatus(absl::NotFoundError("first"));
  root.UpdateStatus(absl::InternalError("second"));
  root.UpdateStatus(absl::OkStatus());
  for (const Scope& scope : {root, sub, root.WithDevice("d")}) {
    EXPECT_FALSE(scope.ok());
    EXPECT_THAT(scope.status(), StatusIs(absl::StatusCode::kNotFound, "first"));
  }
  GraphDef graph_def;
  EXPECT_THAT(root.ToGraphDef(&graph_def), StatusIs(absl::StatusCode::kNotFound, "first"));
}

TEST(Scope, OpsOfAFailedScopeDoNothing) {
  const Scope root = NewToyScope();
  const Output x = ops::Const(root, 1.0f);
  root.UpdateStatus(absl::NotFoundError("failed"));
  EXPECT_EQ(ops::Const(root, 2.0f), Output());
  EXPECT_EQ(ops::Const<double>(root, 2), Output());
  EXPECT_EQ(Neg(root, x), Output());
  EXPECT_EQ(Neg(root, 3.0f), Output());
  EXPECT_EQ(Neg(root, Output()), Output());
  EXPECT_EQ(OpBuilder(root, "None").Input(InputList{x, 1.0f}).Attr("a", 1).Finish(), Operation());
  EXPECT_EQ(root.graph()->num_nodes(), 1);
  EXPECT_THAT(root.status(), StatusIs(absl::StatusCode::kNotFound, "failed"));
}

TEST(Scope, ErrorsNameTheNode) {
  const Scope root = NewToyScope();
  Neg(root.NewSubScope("s").WithOpName("x"), "text");
  EXPECT_THAT(root.status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("node 's/x' (Neg): "), HasSubstr("attribute T"))));
}

TEST(Scope, InvalidNamesAreErrors) {
  const Scope root = NewToyScope();
  ops::Const(root.WithOpName("a b"), 1);
  EXPECT_THAT(root.status(), StatusIs(absl::StatusCode::kInvalidArgument,
                                      HasSubstr("node 'a b' (Const): the name must begin with")));
}

TEST(ScopeDeathTest, ExitOnErrorPrintsAndAborts) {
  ::testing::FLAGS_gtest_death_test_style = ::gradflow::testing::kDeathTestStyle;
  const Scope root = NewToyScope();
  const Scope strict = root.ExitOnError();
  strict.UpdateStatus(absl::OkStatus());
  EXPECT_DEATH(strict.NewSubScope("s").UpdateStatus(absl::NotFoundError("the reason")),
               "NOT_FOUND: the reason");
  root.UpdateStatus(absl::NotFoundError("kept"));
  EXPECT_FALSE(root.ok());
}

// ---- Shapes and other graphs ----

TEST(Scope, InfersShapesUnlessDisabled) {
  const Scope root = NewToyScope();
  EXPECT_EQ(Neg(root, ops::Const(root, 1.0f, {2, 3})).node()->output_shape(0).DebugString(),
            "[2,3]");
  const Scope blind = Scope::DisabledShapeInferenceScope(ToyGraphRegistry()).NewSubScope("s");
  const Output a = ops::Const(blind, 1.0f, {2, 3});
  const Output product = OpBuilder(blind, "MatMul").Input(a).Input(a).Finish().output(0);
  EXPECT_THAT(blind.status(), IsOk());
  EXPECT_TRUE(product.node()->output_shape(0).unknown_rank());
}

TEST(Scope, ShapeErrorsNameTheNode) {
  const Scope root = NewToyScope();
  const Output a = ops::Const(root, 1.0f, {2, 3});
  OpBuilder(root, "MatMul").Input(a).Input(a).Finish();
  EXPECT_THAT(root.status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "node 'MatMul' (MatMul): a and b must agree, but have shapes [2,3] and "
                       "[2,3]"));
  EXPECT_EQ(root.graph()->FindNode("MatMul"), nullptr);
}

TEST(Scope, GoesIntoAnotherGraph) {
  const Scope root = NewToyScope();
  Neg(root, 1.0f);
  Graph graph(ToyGraphRegistry());
  ASSERT_THAT(root.ToGraph(&graph), IsOk());
  EXPECT_NE(graph.FindNode("Neg"), nullptr);
  EXPECT_THAT(root.ToGraph(&graph), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(Scope, CopiesShareTheGraph) {
  Scope copy = NewToyScope();
  {
    const Scope root = NewToyScope();
    copy = root;
    ops::Const(root, 1);
  }
  EXPECT_EQ(NameOf(copy, "Const"), "Const_1");
  EXPECT_EQ(copy.graph()->num_nodes(), 1);
}

TEST(Scope, CanBeUsedAfterItIsMovedFrom) {
  Scope root = NewToyScope();
  const Scope named = root.NewSubScope("s").WithDevice("/cpu:0");
  Scope moved = named;
  Scope taken = std::move(moved);
  for (const Scope* scope : {&taken, &moved}) {
    EXPECT_TRUE(scope->ok());
    EXPECT_THAT(scope->status(), IsOk());
    EXPECT_EQ(scope->graph(), root.graph());
    EXPECT_NE(NameOf(*scope, "Const"), "");
    EXPECT_THAT(scope->WithOpName("n").GetUniqueNameForOp("x"), ::testing::StartsWith("s/n"));
  }
  Scope assigned = NewToyScope();
  assigned = std::move(taken);
  taken.UpdateStatus(absl::NotFoundError("mine"));
  EXPECT_THAT(root.status(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(assigned.status(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(ops::Const(moved, 1.0f).node(), nullptr);
}

}  // namespace
}  // namespace gradflow
