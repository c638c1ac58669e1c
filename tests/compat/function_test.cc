// Tests of functions: instances, libraries, call frames and stack traces.
#include "tensorflow/core/framework/function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/function_testlib.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/graph/graph_debug_info_builder.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/stack_frame.h"

namespace tensorflow {
namespace function_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using FDH = FunctionDefHelper;
using test::function::Attrs;

absl::Status LookUp(const std::string& op, const OpDef** def) {
  return OpRegistry::Global()->LookUpOpDef(op, def);
}

// Returns the text of the instance, or the error message.
std::string Instance(const FunctionDef& function, AttrSlice attrs = AttrSlice()) {
  InstantiationResult result;
  const absl::Status status = InstantiateFunction(function, attrs, LookUp, &result);
  return status.ok() ? DebugString(result.nodes) : std::string(status.message());
}

TEST(InstantiateFunction, ReplacesPlaceholdersAndConnectsNodes) {
  const FunctionDef function =
      FDH::Create("F", {"x: N * T", "k: int32"}, {"sum: T", "parts: N * T"},
                  {"T: {float, double}", "N: int = 2"},
                  {{{"all"}, "AddN", {"x"}, {{"N", "$N"}, {"T", "$T"}}},
                   {{"wait"}, "NoOp", {"^k", "^all"}, {}},
                   {{"each"},
                    "IdentityN",
                    {"x:1", "all:sum:0", "^wait"},
                    {{"T", std::vector<DataType>{DT_FLOAT, DT_FLOAT}}}}},
                  {{"sum", "all:sum"}, {"parts", "each:output"}});
  EXPECT_EQ(DebugString(function), R"(
F[T:{float, double}, N:int](x:N*T, k:int32) -> (sum:T, parts:N*T) {
  all = AddN[N=$N, T=$T](x)
  wait = NoOp() @ k, all
  each = IdentityN[T={float, float}](x:1, all:sum:0) @ wait
  return parts = each:output
  return sum = all:sum
}
)");
  EXPECT_EQ(Instance(function, Attrs({{"T", DT_FLOAT}, {"N", 2}})), R"(
(x_0:float, x_1:float, k:int32) -> (all:float, each:float, each:1:float) {
  all = AddN[N=2, T=float](x_0, x_1)
  wait = NoOp() @ k, all
  each = IdentityN[T={float, float}](x_1, all) @ wait
}
)");
  EXPECT_THAT(Instance(function, Attrs({{"N", 2}})),
              HasSubstr("Attr T is not found from Op<name=F"));
  EXPECT_THAT(Instance(function, Attrs({{"T", DT_FLOAT}, {"N", int64{1} << 60}})),
              HasSubstr("argument 'x' is a list of 1152921504606846976 tensors"));
  EXPECT_THAT(Instance(function, Attrs({{"T", DT_FLOAT}, {"N", -1}})),
              HasSubstr("list of -1 tensors"));
}

TEST(InstantiateFunction, MarksArgumentsAndResults) {
  FunctionDef function = test::function::XTimesTwoInt32();
  (*(*function.mutable_arg_attr())[0].mutable_attr())["_note"].set_i(7);
  (*function.mutable_resource_arg_unique_id())[0] = 3;
  InstantiationResult result;
  TF_ASSERT_OK(InstantiateFunction(function, AttrSlice(), LookUp, &result));
  ASSERT_EQ(result.nodes.size(), 5);
  EXPECT_EQ(result.arg_types, DataTypeVector{DT_INT32});
  EXPECT_EQ(result.ret_types, DataTypeVector{DT_INT32});
  EXPECT_EQ(result.nodes[0].op(), "_Arg");
  EXPECT_EQ(result.nodes[0].attr().at("_note").i(), 7);
  EXPECT_EQ(result.nodes[0].attr().at("_resource_arg_unique_id").i(), 3);
  EXPECT_EQ(result.nodes[4].op(), "_Retval");
  EXPECT_EQ(result.nodes[4].name(), "y_RetVal");
  (*function.mutable_attr())[FunctionLibraryDefinition::kIntsOnDeviceAttr].set_b(true);
  TF_ASSERT_OK(InstantiateFunction(function, AttrSlice(), LookUp, &result));
  EXPECT_EQ(result.nodes[0].op(), "_DeviceArg");
  EXPECT_EQ(result.nodes[4].op(), "_DeviceRetval");
}

TEST(InstantiateFunction, RejectsInvalidFunctions) {
  const auto of = [](std::vector<FDH::Node> nodes, const std::string& ret = "n:sum",
                     const std::vector<std::string>& args = {"x: float", "i: int32"}) {
    return Instance(FDH::Create("F", args, {"y: float"}, {}, nodes, {{"y", ret}}));
  };
  const auto add = [](std::vector<std::string> inputs, int n) {
    return FDH::Node{{"n"}, "AddN", std::move(inputs), {{"N", n}, {"T", DT_FLOAT}}};
  };
  EXPECT_THAT(of({add({"x"}, 1)}), HasSubstr("AddN[N=1, T=float](x)"));
  const struct {
    std::vector<FDH::Node> nodes;
    std::string ret;
    std::string error;
  } cases[] = {
      {{add({"x", "x", "x"}, 2)},
       "n:sum",
       "Expected input[2] == 'x' to be a control input.\n\tIn {{node n}}"},
      {{add({"x"}, 2)}, "n:sum", "Attempt to access beyond input size: 1 >= 1"},
      {{add({"z"}, 1)}, "n:sum", "input z is not found: {{node n}}"},
      {{add({"x", "i"}, 2)},
       "n:sum",
       "input inputs[1] expected type float != int32, the type of i[0]"},
      {{add({"x", "^z"}, 1)}, "n:sum", "input[1] == '^z', is not found."},
      {{add({"x"}, 1), add({"x"}, 1)}, "n:sum", "Duplicated ret name: n"},
      {{add({"x"}, 1)}, "m:sum", "Return y -> m:sum is not found.\n\tIn function output y:float"},
      {{add({"x"}, 1)}, "i", "Invalid ret types y : float vs. int32"},
      {{{{"n"}, "AddN", {"x"}, {{"T", "$U"}}}}, "n:sum", "Failed to bind all placeholders in $U"},
      {{{{"n"}, "IdentityN", {"x"}, {}}}, "n:output", "type list attr not found: T"},
      {{{{"n"}, "NoSuchOp", {"x"}, {}}}, "n:output", "NoSuchOp"},
  };
  for (const auto& c : cases) EXPECT_THAT(of(c.nodes, c.ret), HasSubstr(c.error));
  EXPECT_THAT(of({}, "x", {"x: float", "x: float"}), HasSubstr("Duplicated arg name: x"));
  EXPECT_THAT(Instance(FDH::Create("F", {}, {"y: float"}, {}, {}, {})),
              HasSubstr("Return y missing."));
}

// A placeholder of two bytes in a node stands for the whole attribute.
TEST(InstantiateFunction, BoundsTheBytesOfTheInstance) {
  std::vector<FDH::Node> nodes;
  for (int i = 0; i < 300; ++i) {
    nodes.push_back({{absl::StrCat("n", i)}, "NoOp", {}, {{"_text", "$S"}}});
  }
  const FunctionDef function = FDH::Create("F", {}, {}, {"S: string"}, nodes, {});
  InstantiationResult result;
  TF_EXPECT_OK(
      InstantiateFunction(function, Attrs({{"S", std::string(1000, 'x')}}), LookUp, &result));
  EXPECT_EQ(
      InstantiateFunction(function, Attrs({{"S", std::string(1 << 20, 'x')}}), LookUp, &result)
          .code(),
      error::RESOURCE_EXHAUSTED);
}

// A small function makes many nodes, inputs or copies of an attribute.
TEST(InstantiateFunction, BoundsNodesThatListsMultiply) {
  const auto instantiate = [](const FunctionDef& function, int n) {
    InstantiationResult result;
    return InstantiateFunction(function, Attrs({{"N", n}}), LookUp, &result).code();
  };
  FunctionDef attributes = FDH::Create("F", {"x: N*float"}, {}, {"N: int"}, {}, {});
  (*(*attributes.mutable_arg_attr())[0].mutable_attr())["_a"].set_s(std::string(1 << 20, 'x'));
  EXPECT_EQ(instantiate(attributes, 10), error::OK);
  EXPECT_EQ(instantiate(attributes, 1500), error::RESOURCE_EXHAUSTED);

  std::vector<FDH::Node> sums;
  for (int i = 0; i < 20; ++i) {
    sums.push_back({{absl::StrCat("n", i)}, "AddN", {"x"}, {{"N", "$N"}, {"T", DT_FLOAT}}});
  }
  const FunctionDef inputs = FDH::Create("F", {"x: N*float"}, {}, {"N: int"}, sums, {});
  EXPECT_EQ(instantiate(inputs, 10), error::OK);
  EXPECT_EQ(instantiate(inputs, 200000), error::RESOURCE_EXHAUSTED);

  std::vector<std::string> results;
  std::vector<std::pair<std::string, std::string>> returns;
  for (int i = 0; i < 20; ++i) {
    results.push_back(absl::StrCat("y", i, ": N*float"));
    returns.emplace_back(absl::StrCat("y", i), "x");
  }
  const FunctionDef outputs = FDH::Create("F", {"x: N*float"}, results, {"N: int"}, {}, returns);
  EXPECT_EQ(instantiate(outputs, 10), error::OK);
  EXPECT_EQ(instantiate(outputs, 200000), error::RESOURCE_EXHAUSTED);
}

// The default of an attribute contains a placeholder with the name of the attribute.
TEST(InstantiateFunction, SubstitutesOnce) {
  FunctionDef function = FDH::Create("F", {}, {}, {}, {{{"n"}, "NoOp", {}, {{"_f", "$S"}}}}, {});
  OpDef::AttrDef* const attr = function.mutable_signature()->add_attr();
  attr->set_name("S");
  attr->set_type("func");
  attr->mutable_default_value()->mutable_func()->set_name("g");
  (*attr->mutable_default_value()->mutable_func()->mutable_attr())["a"].set_placeholder("S");
  InstantiationResult result;
  TF_ASSERT_OK(InstantiateFunction(function, AttrSlice(), LookUp, &result));
  ASSERT_EQ(result.nodes.size(), 1);
  EXPECT_EQ(result.nodes[0].attr().at("_f").func().attr().at("a").placeholder(), "S");
}

TEST(FunctionDefHelper, AnArgumentAndAResultMayHaveOneName) {
  const FunctionDef function = FDH::Create("F", {"x: float"}, {"x: float"}, {}, {}, {{"x", "x"}});
  EXPECT_EQ(Instance(function), "\n(x:float) -> (x:float) {\n}\n");
}

TEST(FunctionDefs, AreComparedAndHashed) {
  const FunctionDef one = test::function::XTimesTwo();
  EXPECT_TRUE(FunctionDefsEqual(one, test::function::XTimesTwo()));
  EXPECT_EQ(FunctionDefHash(one), FunctionDefHash(test::function::XTimesTwo()));
  std::vector<FunctionDef> others(5, one);
  others[0].mutable_signature()->set_name("G");
  others[1].mutable_node_def(0)->set_name("n");
  (*others[2].mutable_ret())["y"] = "y:z:1";
  (*others[3].mutable_attr())["a"].set_b(true);
  (*others[4].mutable_control_ret())["c"] = "two";
  for (const FunctionDef& other : others) {
    EXPECT_FALSE(FunctionDefsEqual(one, other));
    EXPECT_NE(FunctionDefHash(one), FunctionDefHash(other));
  }
  FunctionDef unset = one;
  (*unset.mutable_attr())["a"];
  EXPECT_TRUE(FunctionDefsEqual(one, unset));
}

// Returns a library of these functions.
FunctionLibraryDefinition Library(const std::vector<FunctionDef>& functions) {
  FunctionDefLibrary library;
  for (const FunctionDef& function : functions) *library.add_function() = function;
  return FunctionLibraryDefinition(OpRegistry::Global(), library);
}

GradientDef Gradient(const std::string& function, const std::string& gradient) {
  GradientDef def;
  def.set_function_name(function);
  def.set_gradient_func(gradient);
  return def;
}

TEST(FunctionLibraryDefinition, FindsFunctionsThenOps) {
  const FunctionLibraryDefinition library = Library({test::function::XTimesTwo()});
  EXPECT_TRUE(library.Contains("XTimesTwo"));
  EXPECT_FALSE(library.Contains("Add"));
  EXPECT_EQ(library.Find("Add"), nullptr);
  const OpDef* op = nullptr;
  TF_ASSERT_OK(library.LookUpOpDef("XTimesTwo", &op));
  EXPECT_EQ(op->output_arg(0).name(), "y");
  TF_ASSERT_OK(library.LookUpOpDef("Add", &op));
  EXPECT_FALSE(library.LookUpOpDef("NoSuchOp", &op).ok());
  const OpRegistrationData* data = nullptr;
  TF_ASSERT_OK(library.LookUp("XTimesTwo", &data));
  EXPECT_TRUE(data->is_function_op);
  EXPECT_EQ(library.UniqueFunctionName("f"), "f1");
  EXPECT_EQ(library.FindRecord("XTimesTwo")->mutable_fdef().status().code(),
            error::PERMISSION_DENIED);
}

TEST(FunctionLibraryDefinition, AddsAllOrNothing) {
  FunctionLibraryDefinition library = Library({test::function::XTimesTwo()});
  TF_EXPECT_OK(library.AddFunctionDef(test::function::XTimesTwo()));
  TF_EXPECT_OK(library.AddLibrary(library));
  FunctionDef renamed = test::function::XAddX();
  renamed.mutable_signature()->set_name("XTimesTwo");
  const FunctionLibraryDefinition conflict = Library({test::function::XAddY(), renamed});
  EXPECT_THAT(std::string(library.AddLibrary(conflict).message()),
              HasSubstr("'XTimesTwo' because a different function"));
  EXPECT_FALSE(library.Contains("XAddY"));
  renamed.mutable_signature()->set_name("Add");
  EXPECT_THAT(std::string(library.AddFunctionDef(renamed).message()),
              HasSubstr("'Add' because an op with the same name"));

  TF_EXPECT_OK(library.AddGradientDef(Gradient("XTimesTwo", "XAddX")));
  FunctionDefLibrary gradients;
  *gradients.add_function() = test::function::XAddY();
  *gradients.add_gradient() = Gradient("XAddY", "XAddX");
  *gradients.add_gradient() = Gradient("XTimesTwo", "XAddY");
  EXPECT_EQ(library.AddLibrary(gradients).code(), error::INVALID_ARGUMENT);
  EXPECT_THAT(library.ListFunctionNames(), ElementsAre("XTimesTwo"));
  EXPECT_EQ(library.FindGradient("XAddY"), "");
  TF_EXPECT_OK(library.ReplaceGradient(Gradient("XTimesTwo", "XAddY")));
  TF_EXPECT_OK(library.AddLibrary(gradients));
  EXPECT_EQ(library.ToProto().gradient_size(), 2);
}

TEST(FunctionLibraryDefinition, ReplacesAndRemoves) {
  FunctionLibraryDefinition library = Library({test::function::XAddX(), test::function::XAddY()});
  TF_EXPECT_OK(library.ReplaceFunction("XAddX", test::function::XTimesTwo()));
  EXPECT_THAT(library.ListFunctionNames(), ElementsAre("XAddY", "XTimesTwo"));
  FunctionDef changed = test::function::XAddX();
  changed.mutable_signature()->set_name("XAddY");
  TF_EXPECT_OK(library.ReplaceFunction("XAddY", changed));
  EXPECT_EQ(library.Find("XAddY")->signature().input_arg_size(), 1);
  EXPECT_EQ(library.ReplaceFunction("XAddX", changed).code(), error::INVALID_ARGUMENT);
  const FunctionLibraryDefinition copy(library);
  TF_EXPECT_OK(library.RemoveFunction("XAddY"));
  EXPECT_EQ(library.RemoveFunction("XAddY").code(), error::INVALID_ARGUMENT);
  EXPECT_TRUE(copy.Contains("XAddY"));
  TF_EXPECT_OK(library.AddGradientDef(Gradient("XTimesTwo", "XAddX")));
  FunctionLibraryDefinition assigned(OpRegistry::Global());
  assigned = std::move(library);
  EXPECT_EQ(assigned.num_functions(), 1);
  EXPECT_EQ(assigned.FindGradient("XTimesTwo"), "XAddX");
  assigned.Clear();
  EXPECT_EQ(assigned.num_functions(), 0);
}

TEST(FunctionLibraryDefinition, ReachesThroughCallsAttributesAndGradients) {
  FunctionDef caller =
      FDH::Create("Caller", {"x: float"}, {"y: float"}, {},
                  {{{"y"}, "XTimesFour", {"x"}, {{"T", DT_FLOAT}}}}, {{"y", "y:y"}});
  FunctionDef other = test::function::XAddX();
  other.mutable_signature()->set_name("Other");
  (*other.mutable_attr())["api_implements"].set_s("interface");
  (*caller.mutable_attr())["api_implements"].set_s("interface");
  FunctionLibraryDefinition library =
      Library({caller, other, test::function::XTimesFour(), test::function::XTimesTwo(),
               test::function::XAddX(), test::function::XAddY()});
  TF_ASSERT_OK(library.AddGradientDef(Gradient("XTimesTwo", "XAddX")));
  const GraphDef graph = test::function::GDef(
      {test::function::NDef("n", "PartitionedCall", {}, {{"f", FDH::FunctionRef("Caller")}})});
  const FunctionLibraryDefinition reached = library.ReachableDefinitions(graph);
  EXPECT_THAT(reached.ListFunctionNames(),
              ElementsAre("Caller", "Other", "XTimesFour", "XTimesTwo", "XAddX"));
  EXPECT_EQ(reached.FindGradient("XTimesTwo"), "XAddX");
  EXPECT_EQ(library.ReachableDefinitions("XTimesFour")->num_functions(), 3);
  EXPECT_EQ(library.ReachableDefinitions("none").status().code(), error::NOT_FOUND);
}

TEST(FunctionLibraryDefinition, CopiesOnlyWithinOneRegistry) {
  const FunctionLibraryDefinition library = Library({test::function::XTimesTwo()});
  FunctionLibraryDefinition copy(OpRegistry::Global());
  TF_EXPECT_OK(copy.CopyFunctionDefFrom("XTimesTwo", library));
  EXPECT_EQ(copy.CopyFunctionDefFrom("none", library).code(), error::INVALID_ARGUMENT);
  FunctionLibraryDefinition other(&copy);
  const absl::Status status = other.CopyFunctionDefFrom("XTimesTwo", library);
  EXPECT_EQ(status.code(), error::INVALID_ARGUMENT);
  EXPECT_THAT(std::string(status.message()), HasSubstr("different default registries"));
}

TEST(FunctionLibraryDefinition, ReadsAttributesOfCallees) {
  FunctionDef one = test::function::XTimesTwo();
  (*one.mutable_attr())["note"].set_i(1);
  FunctionDef two = test::function::XAddX();
  (*two.mutable_attr())["note"].set_i(2);
  FunctionLibraryDefinition library = Library({one, two});
  int note = 0;
  TF_ASSERT_OK(library.GetAttr(test::function::NDef("n", "XTimesTwo", {}), "note", &note));
  EXPECT_EQ(note, 1);
  const NodeDef gradient = test::function::NDef("n", FunctionLibraryDefinition::kGradientOp, {},
                                                {{"f", FDH::FunctionRef("XTimesTwo")}});
  TF_ASSERT_OK(library.AddGradientDef(Gradient("XTimesTwo", "XAddX")));
  TF_ASSERT_OK(library.GetAttr(gradient, "note", &note));
  EXPECT_EQ(note, 2);
  EXPECT_EQ(library.GetAttr(test::function::NDef("n", "Add", {}), "note", &note).code(),
            error::INVALID_ARGUMENT);
}

TEST(FunctionLibraryDefinition, MakesOptimizedGraphsOnLookUp) {
  FunctionLibraryDefinition library = Library({});
  int made = 0;
  library.AddOptimizedFunctionGraph("f", [&]() -> absl::StatusOr<OptimizedFunctionGraph> {
    ++made;
    return errors::Aborted("no");
  });
  EXPECT_TRUE(library.HasOptimizedFunctionGraph("f"));
  EXPECT_EQ(made, 0);
  EXPECT_EQ(library.FindOptimizedFunctionGraph("f")->status().code(), error::ABORTED);
  EXPECT_FALSE(library.FindOptimizedFunctionGraph("g").has_value());
}

TEST(FunctionCallFrame, ChecksNumbersAndTypes) {
  FunctionCallFrame frame({DT_FLOAT}, {DT_INT32, DT_INT32});
  const Tensor x = test::AsScalar<float>(1), y = test::AsScalar<int32>(2);
  EXPECT_EQ(frame.SetArgs({}).code(), error::INVALID_ARGUMENT);
  EXPECT_EQ(frame.SetArgs({y}).code(), error::INVALID_ARGUMENT);
  TF_ASSERT_OK(frame.SetArgs({x}));
  const Tensor* arg = nullptr;
  EXPECT_EQ(frame.GetArg(1, &arg).code(), error::INVALID_ARGUMENT);
  TF_ASSERT_OK(frame.GetArg(0, &arg));
  test::ExpectEqual(*arg, x);
  EXPECT_EQ(frame.SetRetval(-1, y).code(), error::INVALID_ARGUMENT);
  EXPECT_EQ(frame.SetRetval(0, x).code(), error::INVALID_ARGUMENT);
  TF_ASSERT_OK(frame.SetRetval(0, y));
  EXPECT_EQ(frame.SetRetval(0, y).code(), error::INTERNAL);
  std::vector<Tensor> results;
  EXPECT_EQ(frame.GetRetvals(&results).code(), error::INTERNAL);
  TF_ASSERT_OK(frame.ConsumeRetvals(&results, /*allow_dead_tensors=*/true));
  test::ExpectEqual(results[0], y);
  EXPECT_FALSE(results[1].IsInitialized());
}

TEST(CallFrameInterface, MovesNoArgumentsByDefault) {
  FunctionCallFrame frame({DT_FLOAT}, {});
  TF_ASSERT_OK(frame.SetArgs({test::AsScalar<float>(1)}));
  EXPECT_FALSE(frame.CanConsumeArg(0));
  Tensor value = test::AsScalar<float>(2);
  frame.ConsumeArg(0, &value);
  test::ExpectEqual(value, test::AsScalar<float>(2));
}

TEST(Canonicalize, SortsAttributes) {
  EXPECT_EQ(Canonicalize("F", Attrs({{"b", true}, {"T", DT_FLOAT}, {"_executor", "x"}})),
            "F[T=float,_executor=x,b=true]");
  FunctionLibraryRuntime::InstantiateOptions options;
  options.target = "/cpu:0";
  options.input_devices = {"a", ""};
  EXPECT_EQ(Canonicalize("F", AttrSlice(), options),
            "F[_input_dev0=a,_input_dev1=,_target=/cpu:0]");
  options.executor_type = "o";
  EXPECT_EQ(Canonicalize("F", Attrs({{"_executor", "x"}}), options),
            "F[_executor=o,_input_dev0=a,_input_dev1=,_target=/cpu:0]");
  options.input_devices.resize(11);
  EXPECT_THAT(Canonicalize("F", AttrSlice(), options), HasSubstr("_input_dev9=,_input_dev10=,"));
  EXPECT_NE(Canonicalize("F", Attrs({{"s", "one"}})), Canonicalize("F", Attrs({{"s", "two"}})));
}

TEST(GetFunctionResourceInputDevice, ListsTheDevicesOfACompositeOne) {
  FunctionDef function = test::function::Swap();
  (*(*function.mutable_arg_attr())[1].mutable_attr())["_composite_device"].set_s("all");
  Tensor handles(DT_RESOURCE, TensorShape({2}));
  for (int i = 0; i < 2; ++i) {
    ResourceHandle handle;
    handle.set_device(absl::StrCat("d", i));
    handles.span<gradflow::ResourceHandle>()[i] = handle;
  }
  absl::flat_hash_map<std::string, std::vector<std::string>> composite;
  EXPECT_EQ(GetFunctionResourceInputDevice(handles, 0, function, &composite), "d0");
  EXPECT_TRUE(composite.empty());
  EXPECT_EQ(GetFunctionResourceInputDevice(handles, 1, function, &composite), "all");
  EXPECT_THAT(composite["all"], ElementsAre("d0", "d1"));
}

TEST(StackTraces, HaveTexts) {
  const std::vector<StackFrame> frames = {{"<embedded x>", 1, "f"},
                                          {"dir/sub/a.cc", 2, "g"},
                                          {"dir/sub/tensorflow/python/b.py", 3, "h"}};
  const FrozenStackTrace trace(frames);
  EXPECT_EQ(trace.LastUserFrame(), frames[2]);
  EXPECT_EQ(trace.GetUserFrames(-1), frames);
  EXPECT_THAT(trace.GetUserFrames(1), ElementsAre(frames[0]));
  AbstractStackTrace::TracePrintingOptions options;
  options.filter_common_prefix = true;
  EXPECT_EQ(trace.ToString(options),
            "File \"<embedded x>\", line 1, in f\nFile \"a.cc\", line 2, in g\n"
            "File \"tensorflow/python/b.py\", line 3, in h");
  options.drop_internal_frames = true;
  EXPECT_THAT(trace.ToString(options), ::testing::Not(HasSubstr("b.py")));
  EXPECT_EQ(FrozenStackTrace(std::vector<StackFrame>()).LastUserFrame(), StackFrame());
}

TEST(StackTraces, AreStoredWithTheGraph) {
  const auto trace = std::make_shared<FrozenStackTrace>(
      std::vector<StackFrame>{{"a.cc", 1, "f"}, {"b.cc", 2, "g"}});
  const auto inner = std::make_shared<FrozenStackTrace>(
      std::vector<StackFrame>{{"a.cc", 1, "f"}, {"a.cc", 3, "h"}});
  GraphDebugInfoBuilder builder;
  builder.AccumulateStackTracesMap({{"two", trace}, {"scale", trace}}, "@XTimesTwo");
  builder.AccumulateStackTrace(inner, "y@XTimesTwo");
  const GraphDebugInfo info = builder.Build();
  EXPECT_EQ(info.files_size(), 2);
  EXPECT_EQ(info.frames_by_id_size(), 3);
  EXPECT_EQ(info.traces_by_id_size(), 2);
  GraphDef graph = test::function::GDef({}, {test::function::XTimesTwo()});
  *graph.mutable_debug_info() = info;
  const FunctionLibraryDefinition library(OpRegistry::Global(), graph);
  const StackTracesMap* const traces = library.GetStackTraces("XTimesTwo");
  ASSERT_NE(traces, nullptr);
  ASSERT_EQ(traces->size(), 3);
  EXPECT_EQ(traces->at("y")->ToString({}),
            "File \"a.cc\", line 1, in f\nFile \"a.cc\", line 3, in h");
  EXPECT_EQ(traces->at("two"), traces->at("scale"));
  // The frames refer to files that do not exist, and node "z" refers to a trace that does not
  // exist.
  GraphDebugInfo broken = info;
  broken.clear_files();
  (*broken.mutable_name_to_trace_id())["z"] = 99;
  const StackTracesMap loaded = LoadTracesFromDebugInfo(broken);
  EXPECT_EQ(loaded.size(), 3);
  EXPECT_THAT(loaded.at("y@XTimesTwo")->ToString({}), HasSubstr("<UNKNOWN_FILE_NAME>"));
  EXPECT_FALSE(LoadTracesFromDebugInfoStr("\xff").ok());
}

// A frame of three bytes refers to a long file name.
TEST(StackTraces, HaveLimitedSize) {
  GraphDebugInfo info;
  info.add_files(std::string(1 << 20, 'f'));
  (*info.mutable_frames_by_id())[1].set_file_index(0);
  const auto add_trace = [&](uint64_t id, int frames) {
    GraphDebugInfo::StackTrace& trace = (*info.mutable_traces_by_id())[id];
    for (int i = 0; i < frames; ++i) trace.add_frame_id(1);
    (*info.mutable_name_to_trace_id())[absl::StrCat("n", id)] = id;
  };
  add_trace(1, 300);
  EXPECT_THAT(LoadTracesFromDebugInfo(info), ::testing::IsEmpty());
  info.clear_traces_by_id();
  for (uint64_t id = 1; id <= 10; ++id) add_trace(id, 40);
  EXPECT_EQ(LoadTracesFromDebugInfo(info).size(), 6);
  // A trace that is too large does not use up the limit for other traces.
  add_trace(11, 300);
  EXPECT_EQ(LoadTracesFromDebugInfo(info).size(), 6);
}

}  // namespace function_test
}  // namespace tensorflow
