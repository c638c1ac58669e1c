// Gradients of calls, branches and loops, compared with central differences.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/gradients/gradients.h"
#include "gradflow/graph/function_builder.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/ops/functional_ops.h"
#include "gradflow/ops/list_ops.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/function.pb.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/testing/gradient_checker.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"

namespace gradflow {
namespace {

using ::gradflow::testing::AsScalar;
using ::gradflow::testing::AsTensor;
using ::gradflow::testing::CheckGradients;
using ::gradflow::testing::GradientOptions;
using ::gradflow::testing::GraphFunction;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::TensorEq;
using ::gradflow::testing::TensorNear;
using ::testing::AllOf;
using ::testing::HasSubstr;

NameAttrList Named(const std::string& name) {
  NameAttrList function;
  function.set_name(name);
  return function;
}

GradientOptions SecondOrder() {
  GradientOptions options;
  options.second_order = true;
  return options;
}

// Adds the function `name`, whose nodes `nodes` adds.
void Define(const Scope& scope, const std::string& name, const DataTypeVector& types,
            const GraphFunction& nodes) {
  FunctionBuilder builder(name, scope);
  OutputList args;
  for (size_t i = 0; i < types.size(); ++i) {
    args.push_back(builder.Arg(absl::StrCat("arg", i), types[i]));
  }
  const OutputList results = nodes(builder.scope(), args);
  for (size_t i = 0; i < results.size(); ++i) {
    builder.Result(absl::StrCat("result", i), results[i]);
  }
  GRADFLOW_ASSERT_OK(builder.AddTo(scope));
}

const DataTypeVector kTwo = {DT_DOUBLE, DT_DOUBLE};

// (x, y) -> (x sin(y), x^2 + y).
void DefineSine(const Scope& scope) {
  Define(scope, "sine", kTwo, [](const Scope& s, const OutputList& x) -> OutputList {
    return {ops::Mul(s, x[0], ops::Sin(s, x[1])), ops::Add(s, ops::Square(s, x[0]), x[1])};
  });
}

const std::vector<Tensor>& Values() {
  static const auto& values =
      *new std::vector<Tensor>{AsTensor<double>({0.5, -1.25}), AsTensor<double>({0.75, 2})};
  return values;
}

TEST(FunctionGradients, DifferentiateCalls) {
  for (const std::string op : {"PartitionedCall", "StatefulPartitionedCall", "sine"}) {
    const GraphFunction calls = [&](const Scope& s, const OutputList& x) -> OutputList {
      DefineSine(s);
      OpBuilder call(s, op);
      if (op == "sine") {
        const Operation named = call.Input(x[0]).Input(x[1]).Finish();
        return {named.output(0), named.output(1)};
      }
      const Operation made =
          call.Input(InputList(x)).Attr("Tout", kTwo).Attr("f", Named("sine")).Finish();
      return {made.output(0), made.output(1)};
    };
    EXPECT_TRUE(CheckGradients(calls, Values(), SecondOrder())) << op;
  }
}

TEST(FunctionGradients, DifferentiateNestedCalls) {
  const GraphFunction calls = [](const Scope& s, const OutputList& x) -> OutputList {
    DefineSine(s);
    // The second result of the inner call is unused.
    Define(s, "outer", kTwo, [](const Scope& f, const OutputList& args) -> OutputList {
      const auto first = ops::PartitionedCall(f, {args[0], args[1]}, kTwo, Named("sine"));
      const auto second = ops::PartitionedCall(f, {first[0], args[1]}, kTwo, Named("sine"));
      return {ops::Exp(f, second[1]), args[0]};
    });
    const auto outer = ops::StatefulPartitionedCall(s, {x[0], x[1]}, kTwo, Named("outer"));
    const auto again = ops::StatefulPartitionedCall(s, {outer[0], outer[1]}, kTwo, Named("outer"));
    return {ops::Tanh(s, again[0]), again[1]};
  };
  EXPECT_TRUE(CheckGradients(calls, Values(), SecondOrder()));
}

// Equal calls share one gradient function. It has only the nodes and arguments that it needs.
TEST(FunctionGradients, AddOneFunctionForEqualCalls) {
  const Scope s = Scope::NewRootScope();
  DefineSine(s);
  Output x = ops::Placeholder(s.WithOpName("x"), DT_DOUBLE);
  Output y = x;
  const Output angle = ops::Const(s, 0.5);
  for (int i = 0; i < 20; ++i) {
    y = ops::PartitionedCall(s, {y, angle}, kTwo, Named("sine"))[0];
  }
  std::vector<Output> dxs;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(s, {y}, {x}, &dxs));
  ASSERT_EQ(s.graph()->def().library().function_size(), 2);
  const FunctionDef& gradient = s.graph()->def().library().function(1);
  EXPECT_EQ(gradient.signature().name(), "sine_gradient");
  // dx0 = dy0 sin(x1), where dy0 and x1 have any shape.
  ASSERT_EQ(gradient.signature().output_arg_size(), 1);
  EXPECT_EQ(gradient.signature().output_arg(0).name(), "dx0");
  for (const NodeDef& node : gradient.node_def()) EXPECT_NE(node.op(), "Square");
  ClientSession session(s);
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session.Run({{x, AsScalar<double>(1)}}, {dxs[0]}, &outputs));
  EXPECT_NEAR(outputs[0].scalar<double>()(), std::pow(std::sin(0.5), 20), 1e-12);
}

TEST(FunctionGradients, DifferentiateBranches) {
  for (const bool taken : {true, false}) {
    const GraphFunction branches = [&](const Scope& s, const OutputList& x) -> OutputList {
      DefineSine(s);
      // Does not depend on the first argument.
      Define(s, "other", kTwo, [](const Scope& f, const OutputList& args) -> OutputList {
        return {ops::Exp(f, args[1]), ops::ZerosLike(f, args[1])};
      });
      const auto branch =
          ops::If(s, ops::Const(s, taken), {x[0], x[1]}, kTwo, Named("sine"), Named("other"));
      return {branch[0], branch[1]};
    };
    EXPECT_TRUE(CheckGradients(branches, Values(), SecondOrder())) << taken;
  }
  for (const int index : {0, 1, 2, 7}) {
    const GraphFunction branches = [&](const Scope& s, const OutputList& x) -> OutputList {
      DefineSine(s);
      Define(s, "swap", kTwo, [](const Scope&, const OutputList& args) -> OutputList {
        return {args[1], args[0]};
      });
      Define(s, "tanh", kTwo, [](const Scope& f, const OutputList& args) -> OutputList {
        return {ops::Tanh(f, args[0]), ops::Mul(f, args[0], args[1])};
      });
      const auto branch = ops::Case(s, ops::Const(s, index), {x[0], x[1]}, kTwo,
                                    {Named("sine"), Named("swap"), Named("tanh")});
      return {branch[0], branch[1]};
    };
    EXPECT_TRUE(CheckGradients(branches, Values(), SecondOrder())) << index;
  }
}

// while i < n: x = x sin(y) + w, y = y + x w; w is fixed and n is a number.
OutputList AddLoop(const Scope& s, int n, const OutputList& x, const OutputList& w) {
  const DataTypeVector types = {DT_INT32, DT_DOUBLE, DT_DOUBLE, DT_DOUBLE};
  Define(s, absl::StrCat("less", n), types,
         [&](const Scope& f, const OutputList& args) -> OutputList {
           return {ops::Less(f, args[0], n)};
         });
  Define(s, absl::StrCat("step", n), types,
         [&](const Scope& f, const OutputList& args) -> OutputList {
           const Output next = ops::Add(f, ops::Mul(f, args[1], ops::Sin(f, args[2])), args[3]);
           const Output y = ops::Add(f, args[2], ops::Mul(f, args[1], args[3]));
           return {ops::Add(f, args[0], 1), next, y, ops::Identity(f, args[3])};
         });
  const auto loop = ops::While(s, {ops::Const(s, 0), x[0], x[1], w[0]},
                               Named(absl::StrCat("less", n)), Named(absl::StrCat("step", n)));
  return {loop[1], loop[2], loop[3]};
}

TEST(FunctionGradients, DifferentiateLoops) {
  for (const int n : {0, 1, 2, 5}) {
    const GraphFunction loop = [&](const Scope& s, const OutputList& x) -> OutputList {
      return AddLoop(s, n, x, {x[2]});
    };
    std::vector<Tensor> values = Values();
    values.push_back(AsTensor<double>({0.25, -0.5}));
    EXPECT_TRUE(CheckGradients(loop, values, SecondOrder())) << n;
  }
}

// The gradient needs a variable that no result needs, and the shapes differ between iterations.
TEST(FunctionGradients, DifferentiateLoopsWhoseVariablesChangeShape) {
  const GraphFunction loop = [](const Scope& s, const OutputList& x) -> OutputList {
    const DataTypeVector types = {DT_INT32, DT_DOUBLE};
    Define(s, "less", types, [](const Scope& f, const OutputList& args) -> OutputList {
      return {ops::Less(f, args[0], 3)};
    });
    Define(s, "step", types, [](const Scope& f, const OutputList& args) -> OutputList {
      return {ops::Add(f, args[0], 1),
              ops::ConcatV2(f, {ops::Square(f, args[1]), ops::Sin(f, args[1])}, 0)};
    });
    const auto made = ops::While(s, {ops::Const(s, 0), x[0]}, Named("less"), Named("step"));
    return {made[1]};
  };
  EXPECT_TRUE(CheckGradients(loop, {AsTensor<double>({0.5, -0.25})}, SecondOrder()));
}

TEST(FunctionGradients, DifferentiateLoopsWithinBranchesWithinLoops) {
  const GraphFunction nested = [](const Scope& s, const OutputList& x) -> OutputList {
    Define(s, "loops", kTwo, [](const Scope& f, const OutputList& args) -> OutputList {
      const auto inner = ops::While(f, {ops::Const(f, 0), args[0], args[1], args[0]},
                                    Named("less3"), Named("step3"));
      return {inner[1], inner[2]};
    });
    Define(s, "swap", kTwo, [](const Scope&, const OutputList& args) -> OutputList {
      return {args[1], args[0]};
    });
    // Defines less3 and step3.
    AddLoop(s, 3, x, {x[1]});
    const DataTypeVector types = {DT_INT32, DT_DOUBLE, DT_DOUBLE};
    Define(s, "less", types, [](const Scope& f, const OutputList& args) -> OutputList {
      return {ops::Less(f, args[0], 4)};
    });
    Define(s, "step", types, [](const Scope& f, const OutputList& args) -> OutputList {
      const Output even = ops::Equal(f, ops::FloorMod(f, args[0], 2), 0);
      const auto branch = ops::If(f, even, {args[1], args[2]}, kTwo, Named("loops"), Named("swap"));
      return {ops::Add(f, args[0], 1), branch[0], branch[1]};
    });
    const auto outer = ops::While(s, {ops::Const(s, 0), x[0], x[1]}, Named("less"), Named("step"));
    return {ops::Tanh(s, outer[1]), ops::Tanh(s, outer[2])};
  };
  GradientOptions options;
  options.max_error = 1e-5;
  EXPECT_TRUE(CheckGradients(nested, Values(), options));
}

// A recurrent network: reads rows of a list, and writes its states to another list.
TEST(FunctionGradients, DifferentiateLoopsThatUpdateLists) {
  const GraphFunction network = [](const Scope& s, const OutputList& x) -> OutputList {
    const DataTypeVector types = {DT_INT32, DT_DOUBLE, DT_VARIANT, DT_VARIANT, DT_DOUBLE};
    Define(s, "less", types, [](const Scope& f, const OutputList& args) -> OutputList {
      return {ops::Less(f, args[0], 3)};
    });
    Define(s, "step", types, [](const Scope& f, const OutputList& args) -> OutputList {
      const Output row = ops::TensorListGetItem(f, args[2], args[0], {2}, DT_DOUBLE);
      const Output state = ops::Tanh(f, ops::Add(f, ops::Mul(f, args[1], args[4]), row));
      return {ops::Add(f, args[0], 1), state, args[2],
              ops::TensorListSetItem(f, args[3], args[0], state), args[4]};
    });
    const Output rows = ops::TensorListFromTensor(s, x[0], {2});
    const Output states = ops::TensorListReserve(s, {2}, 3, DT_DOUBLE);
    const auto loop =
        ops::While(s, {ops::Const(s, 0), x[1], rows, states, x[2]}, Named("less"), Named("step"));
    return {loop[1], ops::TensorListStack(s, loop[3], {2}, DT_DOUBLE)};
  };
  EXPECT_TRUE(CheckGradients(network,
                             {AsTensor<double>({0.5, -1, 0.25, 0.75, -0.5, 1.5}, {3, 2}),
                              AsTensor<double>({0.5, 1}), AsTensor<double>({-0.75, 1.25})},
                             SecondOrder()));
}

// Functions and loops take handles of variables.
TEST(FunctionGradients, ReachVariables) {
  const Scope s = Scope::NewRootScope();
  const Output w = ops::VarHandleOp(s.WithOpName("w"), DT_DOUBLE, TensorShape({2}));
  const Operation init =
      ops::AssignVariableOp(s, w, ops::Const(s, AsTensor<double>({0.5, -0.25}))).operation;
  const DataTypeVector types = {DT_INT32, DT_DOUBLE, DT_RESOURCE};
  Define(s, "less", types, [](const Scope& f, const OutputList& args) -> OutputList {
    return {ops::Less(f, args[0], 3)};
  });
  Define(s, "step", types, [](const Scope& f, const OutputList& args) -> OutputList {
    const Output value = ops::ReadVariableOp(f, args[2], DT_DOUBLE);
    return {ops::Add(f, args[0], 1), ops::Mul(f, ops::Sin(f, args[1]), value), args[2]};
  });
  Define(s, "layer", {DT_DOUBLE, DT_RESOURCE},
         [](const Scope& f, const OutputList& args) -> OutputList {
           const auto loop =
               ops::While(f, {ops::Const(f, 0), args[0], args[1]}, Named("less"), Named("step"));
           return {ops::Mul(f, loop[1], ops::ReadVariableOp(f, args[1], DT_DOUBLE))};
         });
  const Output x = ops::Const(s, AsTensor<double>({0.75, 2}));
  const Output y = ops::StatefulPartitionedCall(s, {x, w}, {DT_DOUBLE}, Named("layer"))[0];
  // The same without functions.
  const Output value = ops::ReadVariableOp(s, w, DT_DOUBLE);
  Output expected = x;
  for (int i = 0; i < 3; ++i) expected = ops::Mul(s, ops::Sin(s, expected), value);
  expected = ops::Mul(s, expected, value);
  GRADFLOW_ASSERT_OK(s.status());
  std::vector<Output> dws, expected_dws;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(s, {y}, {w, x}, &dws));
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(s, {expected}, {w, x}, &expected_dws));
  ClientSession session(s);
  GRADFLOW_ASSERT_OK(session.Run({}, {}, {init}, nullptr));
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session.Run({}, {dws[0], expected_dws[0], dws[1], expected_dws[1]}, &outputs));
  EXPECT_THAT(outputs[0], TensorNear(outputs[1], 1e-12, 1e-12));
  EXPECT_THAT(outputs[2], TensorNear(outputs[3], 1e-12, 1e-12));
}

// The effects of a function are not repeated.
TEST(FunctionGradients, LeaveOutEffects) {
  const Scope s = Scope::NewRootScope();
  const auto variable = [&](const std::string& name, double value) {
    const Output handle = ops::VarHandleOp(s.WithOpName(name), DT_DOUBLE, TensorShape({}),
                                           ops::VarHandleOp::SharedName(name));
    ops::AssignVariableOp(s.WithOpName("init_" + name), handle, ops::Const(s, value));
    return handle;
  };
  const Output w = variable("w", 3);
  const Output calls = variable("calls", 0);
  Define(s, "inner", {DT_DOUBLE, DT_RESOURCE, DT_RESOURCE},
         [](const Scope& f, const OutputList& args) -> OutputList {
           ops::AssignAddVariableOp(f, args[2], ops::Const(f, 1.0));
           return {ops::Mul(f, args[0], ops::ReadVariableOp(f, args[1], DT_DOUBLE))};
         });
  Define(s, "outer", {DT_DOUBLE, DT_RESOURCE, DT_RESOURCE},
         [](const Scope& f, const OutputList& args) -> OutputList {
           const Output inner = ops::StatefulPartitionedCall(f, {args[0], args[1], args[2]},
                                                             {DT_DOUBLE}, Named("inner"))[0];
           return {ops::Square(f, inner)};
         });
  const Output x = ops::Const(s.WithOpName("x"), 5.0);
  const Output y = ops::StatefulPartitionedCall(s, {x, w, calls}, {DT_DOUBLE}, Named("outer"))[0];
  std::vector<Output> dxs;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(s, {y}, {x, w}, &dxs));
  const Output count = ops::ReadVariableOp(s.WithOpName("count"), calls, DT_DOUBLE);
  ClientSession session(s);
  const auto target = [&](const char* name) { return Operation(s.graph()->FindNode(name)); };
  GRADFLOW_ASSERT_OK(session.Run({}, {}, {target("init_w"), target("init_calls")}, nullptr));
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session.Run({}, {y, dxs[0], dxs[1]}, &outputs));
  EXPECT_EQ(outputs[0].scalar<double>()(), 225);
  EXPECT_EQ(outputs[1].scalar<double>()(), 90);
  EXPECT_EQ(outputs[2].scalar<double>()(), 150);
  GRADFLOW_ASSERT_OK(session.Run({}, {count}, &outputs));
  EXPECT_EQ(outputs[0].scalar<double>()(), 1);
}

// A library may declare the gradient function of a function.
TEST(FunctionGradients, MayBeDeclared) {
  const Scope s = Scope::NewRootScope();
  DefineSine(s);
  Define(s, "my_gradient", DataTypeVector(4, DT_DOUBLE),
         [](const Scope& f, const OutputList& args) -> OutputList {
           return {ops::Add(f, args[0], args[2]), ops::Sub(f, args[1], args[3])};
         });
  GraphDef declaration;
  *declaration.mutable_versions() = s.graph()->def().versions();
  GradientDef* const gradient = declaration.mutable_library()->add_gradient();
  gradient->set_function_name("sine");
  gradient->set_gradient_func("my_gradient");
  GRADFLOW_ASSERT_OK(ImportGraphDef({}, std::move(declaration), s.graph()));
  const Output x = ops::Const(s, 3.0);
  const Output y = ops::Const(s, 4.0);
  const auto call = ops::PartitionedCall(s, {x, y}, kTwo, Named("sine"));
  std::vector<Output> dxs;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(s, {call[0]}, {x, y}, {ops::Const(s, 10.0)}, &dxs));
  ClientSession session(s);
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session.Run({}, dxs, &outputs));
  EXPECT_THAT(outputs[0], TensorEq(AsScalar<double>(13)));
  EXPECT_THAT(outputs[1], TensorEq(AsScalar<double>(4)));
}

TEST(FunctionGradients, AreNoneWithoutPath) {
  const Scope s = Scope::NewRootScope();
  Define(s, "f", kTwo, [](const Scope& f, const OutputList& args) -> OutputList {
    return {ops::Floor(f, args[0]), args[1]};
  });
  const Output x = ops::Const(s, 3.0);
  const Output y = ops::Const(s, 4.0);
  const auto call = ops::PartitionedCall(s, {x, y}, kTwo, Named("f"));
  std::vector<Output> dxs;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(s, {call[0], call[1]}, {x}, &dxs));
  EXPECT_TRUE(IsNoGradient(dxs[0]));
  EXPECT_EQ(s.graph()->def().library().function_size(), 1);
}

// Adds the gradient of a call of "f" and returns its error.
absl::Status GradientError(const Scope& s) {
  const Output x = ops::Const(s, 3.0);
  const Output w = ops::VarHandleOp(s, DT_DOUBLE, TensorShape({}));
  const auto call =
      ops::StatefulPartitionedCall(s.WithOpName("call"), {x, w}, {DT_DOUBLE}, Named("f"));
  GRADFLOW_EXPECT_OK(s.status());
  std::vector<Output> dxs;
  return AddSymbolicGradients(s, {call[0]}, {x}, &dxs);
}

TEST(FunctionGradients, StateWhyTheyDoNotExist) {
  struct ErrorCase {
    const char* text;
    GraphFunction nodes;
  };
  const std::vector<ErrorCase> cases = {
      {"the gradient needs the values of 'random' (RandomUniform) in a function, which cannot be "
       "computed again because the op is stateful",
       [](const Scope& f, const OutputList& args) -> OutputList {
         const Output random =
             ops::RandomUniform(f.WithOpName("random"), ops::Shape(f, args[0]), DT_DOUBLE);
         return {ops::Mul(f, args[0], random)};
       }},
      {"the gradient needs the value that 'read' (ReadVariableOp) has read from a variable, which "
       "the function also writes",
       [](const Scope& f, const OutputList& args) -> OutputList {
         const Output read = ops::ReadVariableOp(f.WithOpName("read"), args[1], DT_DOUBLE);
         ops::AssignVariableOp(f.WithControlDependencies(read), args[1], args[0]);
         return {ops::Mul(f, args[0], read)};
       }},
      {"no gradient function is registered for For (node 'for')",
       [](const Scope& f, const OutputList& args) -> OutputList {
         return {ops::For(f.WithOpName("for"), 0, 2, 1, {args[0]}, Named("body"))[0]};
       }},
  };
  for (const ErrorCase& c : cases) {
    const Scope s = Scope::NewRootScope();
    Define(s, "f", {DT_DOUBLE, DT_RESOURCE}, c.nodes);
    EXPECT_THAT(
        GradientError(s),
        StatusIs(absl::StatusCode::kUnimplemented,
                 AllOf(HasSubstr("node 'call' (StatefulPartitionedCall): "), HasSubstr(c.text))));
  }
}

TEST(FunctionGradients, ReplaceSymbolicGradients) {
  const Scope s = Scope::NewRootScope();
  Define(s, "f", {DT_DOUBLE, DT_INT32}, [](const Scope& f, const OutputList& args) -> OutputList {
    return {ops::Mul(f, args[0], ops::Sin(f, args[0])), args[1]};
  });
  // A function that computes a gradient.
  const DataTypeVector types = {DT_DOUBLE, DT_INT32};
  Define(s, "g", types, [&](const Scope& f, const OutputList& args) -> OutputList {
    return {ops::SymbolicGradient(f, {args[0], args[1], args[0], args[1]}, types, Named("f"))[0]};
  });
  const Output x = ops::Const(s, 0.5);
  const Output n = ops::Const(s, 7);
  const auto direct = ops::SymbolicGradient(s.WithOpName("direct"), {x, n, ops::Const(s, 3.0), n},
                                            types, Named("f"));
  ops::PartitionedCall(s.WithOpName("in_function"), {x, n}, {DT_DOUBLE}, Named("g"));
  GraphDef graph;
  GRADFLOW_ASSERT_OK(s.ToGraphDef(&graph));
  {
    ClientSession session(s);
    EXPECT_THAT(session.Run({}, {direct[0]}, nullptr),
                StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("ExpandSymbolicGradients")));
  }
  GRADFLOW_ASSERT_OK(ExpandSymbolicGradients(&graph));
  EXPECT_EQ(graph.library().function_size(), 3);
  const Scope expanded = Scope::NewRootScope();
  GRADFLOW_ASSERT_OK(ImportGraphDef({}, std::move(graph), expanded.graph()));
  const auto output = [&](const char* name, int i) {
    return Output(expanded.graph()->FindNode(name), i);
  };
  ClientSession session(expanded);
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(session.Run(
      {}, {output("direct", 0), output("direct", 1), output("in_function", 0)}, &outputs));
  const double derivative = std::sin(0.5) + 0.5 * std::cos(0.5);
  EXPECT_NEAR(outputs[0].scalar<double>()(), 3 * derivative, 1e-12);
  EXPECT_EQ(outputs[1].scalar<int32_t>()(), 0);
  EXPECT_NEAR(outputs[2].scalar<double>()(), 0.5 * derivative, 1e-12);
  graph.Clear();
  NodeDef* const node = graph.add_node();
  node->set_name("n");
  node->set_op("SymbolicGradient");
  AddNodeAttr("f", Named("missing"), node);
  EXPECT_THAT(ExpandSymbolicGradients(&graph),
              StatusIs(absl::StatusCode::kNotFound,
                       "node 'n' (SymbolicGradient): function 'missing': the graph has no function "
                       "of this name"));
}

// Each function calls the function below it twice.
TEST(FunctionGradients, AreBoundedIfFunctionsCallEachOtherManyTimes) {
  const auto add = [](const Scope& s, int levels, bool branches) {
    Define(s, "f0", {DT_DOUBLE, DT_RESOURCE},
           [](const Scope& f, const OutputList& args) { return OutputList{ops::Sin(f, args[0])}; });
    for (int i = 1; i <= levels; ++i) {
      const NameAttrList below = Named(absl::StrCat("f", i - 1));
      Define(s, i == levels ? "f" : absl::StrCat("f", i), {DT_DOUBLE, DT_RESOURCE},
             [&](const Scope& f, const OutputList& args) {
               if (!branches) {
                 const Output y =
                     ops::StatefulPartitionedCall(f, {args[0], args[1]}, {DT_DOUBLE}, below)[0];
                 return OutputList{
                     ops::StatefulPartitionedCall(f, {y, args[1]}, {DT_DOUBLE}, below)[0]};
               }
               const Output positive = ops::Greater(f, args[0], ops::Const(f, 0.0));
               return OutputList{
                   ops::If(f, positive, {args[0], args[1]}, {DT_DOUBLE}, below, below)[0]};
             });
    }
  };
  Scope s = Scope::NewRootScope();
  add(s, 50, true);
  GRADFLOW_EXPECT_OK(GradientError(s));
  s = Scope::NewRootScope();
  add(s, 150, true);
  EXPECT_THAT(GradientError(s), StatusIs(absl::StatusCode::kUnimplemented,
                                         HasSubstr("nested deeper than 100 levels")));
  s = Scope::NewRootScope();
  add(s, 40, false);
  EXPECT_THAT(GradientError(s),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       HasSubstr("the gradients of functions have more than 200000 nodes")));
}

TEST(FunctionGradients, AreUnimplementedForRecursions) {
  const Scope s = Scope::NewRootScope();
  Define(s, "same", {DT_DOUBLE, DT_RESOURCE},
         [](const Scope&, const OutputList& args) -> OutputList { return {args[0]}; });
  Define(s, "step", {DT_DOUBLE, DT_RESOURCE},
         [](const Scope& f, const OutputList& args) -> OutputList {
           const Output half = ops::Mul(f, args[0], ops::Const(f, 0.5));
           return {ops::StatefulPartitionedCall(f, {half, args[1]}, {DT_DOUBLE}, Named("f"))[0]};
         });
  Define(
      s, "f", {DT_DOUBLE, DT_RESOURCE}, [](const Scope& f, const OutputList& args) -> OutputList {
        const Output ends = ops::Less(f, args[0], ops::Const(f, 1.0));
        return {ops::If(f, ends, {args[0], args[1]}, {DT_DOUBLE}, Named("same"), Named("step"))[0]};
      });
  EXPECT_THAT(GradientError(s), StatusIs(absl::StatusCode::kUnimplemented,
                                         HasSubstr("calls itself; gradients of recursions are "
                                                   "not supported")));
}

}  // namespace
}  // namespace gradflow
