// Tests of texts of functions and their instances, call frames, and function libraries.
#include "tensorflow/core/framework/function_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/function_testlib.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/graph/graph_debug_info_builder.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/lib/hash/hash.h"
#include "tensorflow/core/platform/stack_frame.h"
#include "tensorflow/core/platform/status_matchers.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow {
namespace function_library_test {

using ::tensorflow::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using FDH = FunctionDefHelper;
using Library = FunctionLibraryDefinition;
using test::function::Attrs;
using test::function::GDef;
using test::function::NDef;

absl::Status LookUp(const std::string& op, const OpDef** def) {
  return OpRegistry::Global()->LookUpOpDef(op, def);
}

// ---- FunctionDefHelper ----

TEST(FunctionDefHelperNodes, HaveNamesAndOrigins) {
  FDH::Node node{{"r", "s"}, "Op", {"x"}, {{"p", "$P"}, {"q", "Q"}}, {"c"}, "/cpu:0"};
  EXPECT_EQ(SummarizeNodeDef(node.ToNodeDef()),
            "{{node r}} = Op[p=$P, q=\"Q\", _device=\"/cpu:0\"](x, ^c)");
  EXPECT_FALSE(node.ToNodeDef().has_experimental_debug_info());
  node.name = "n";
  EXPECT_EQ(node.ToNodeDef().name(), "n");
  FDH::Node other = node;
  node.original_node_names = {"a", "b"};
  EXPECT_EQ(node.ToNodeDef().experimental_debug_info().ShortDebugString(),
            "original_node_names: \"a\" original_node_names: \"b\"");
  other.original_func_names = {"f"};
  EXPECT_EQ(other.ToNodeDef().experimental_debug_info().ShortDebugString(),
            "original_func_names: \"f\"");
  EXPECT_DEATH(FDH::Node({{}, "Op"}).ToNodeDef(), "a node of op Op has no name");
}

TEST(FunctionDefHelperDefine, NamesTheOutputsOfNodes) {
  const FunctionDef function = FDH::Define(
      {"x: float"}, {"last: float", "where: int32"}, {},
      {FDH::Const("axis", 0),
       {{"first", "last"}, "Split", {"axis", "x"}, {{"num_split", 2}, {"T", DT_FLOAT}}},
       {{"values", "where"}, "Unique", {"last"}, {{"T", DT_FLOAT}, {"out_idx", DT_INT32}}},
       {{"all"}, "Identity", {"first"}, {{"T", DT_FLOAT}}, {"values"}}});
  EXPECT_EQ(function.signature().name(), "_");
  EXPECT_EQ(function.node_def(1).input(0), "axis:output:0");
  EXPECT_EQ(function.node_def(2).input(0), "first:output:1");
  EXPECT_EQ(function.node_def(3).input(0), "first:output:0");
  EXPECT_EQ(function.node_def(3).input(1), "^values");
  EXPECT_EQ(function.ret().at("last"), "first:output:1");
  EXPECT_EQ(function.ret().at("where"), "values:idx:0");
  const NodeDef list = FDH::Const("c", gtl::ArraySlice<int32>({4, 5})).ToNodeDef();
  EXPECT_EQ(list.attr().at("dtype").type(), DT_INT32);
  Tensor value;
  TF_ASSERT_OK(GetNodeAttr(list, "value", &value));
  test::ExpectTensorEqual<int32>(value, test::AsTensor<int32>({4, 5}));
}

TEST(FunctionDefHelperDefine, EndsTheProgramOnErrors) {
  const FDH::Node neg{{"y"}, "Neg", {"z"}, {{"T", DT_FLOAT}}};
  EXPECT_DEATH(FDH::Define("F", {"x: float"}, {"y: float"}, {}, {neg}), "'z' is not a value of F");
  EXPECT_DEATH(FDH::Define("F", {"x: float"}, {"y: float"}, {}, {}), "'y' is not a value of F");
  EXPECT_DEATH(FDH::Define("F", {}, {}, {}, {{{"y"}, "NoSuchOp", {}}}), "NoSuchOp");
  EXPECT_DEATH(FDH::Define("F", {}, {}, {}, {{{"y"}, "IdentityN", {}}}), "attribute");
  EXPECT_DEATH(FDH::Create("F", {"x: T"}, {}, {}, {}, {}), "Reference to unknown attr 'T'");
}

// ---- Texts ----

TEST(FunctionTexts, ShowSignaturesAttributesAndDevices) {
  const FunctionDef function =
      FDH::Create("F", {"r: Ref(T)", "l: N * int32", "m: L"}, {"y: T"},
                  {"T: {float, double}", "N: int", "L: list(type)", "s: string"},
                  {{{"n"},
                    "Op",
                    {"r", "^c"},
                    {{"f", FDH::FunctionRef("g", {{"b", 1}, {"a", DT_FLOAT}})},
                     {"h", FDH::FunctionRef("h")},
                     {"t", DataTypeVector{DT_FLOAT, DT_INT32}},
                     {"one", DataTypeVector{DT_HALF}},
                     {"e", DataTypeVector()},
                     {"s", "x"}},
                    {},
                    "/job:w/device:CPU:0"},
                   {{"c"}, "NoOp", {}, {{"i", 1}}, {}, "bad"},
                   {{"d"}, "NoOp", {}, {}, {}, "/cpu:0"}},
                  {{"y", "n:z"}}, {{"done", "c"}, {"all", "d"}});
  const std::string text = R"(
F[T:{float, double}, N:int, L:list(type), s:string](r:Ref(T), l:N*int32, m:L) -> (y:T) {
  n = Op[e=[], f=g[a=float, b=1], h=h, one={half}, s="x", t={float, int32}, device=CPU:0](r) @ c
  c = NoOp[i=1, device=<FAILED_TO_PARSE>]()
  d = NoOp()
  @return all = d
  @return done = c
  return y = n:z
}
)";
  EXPECT_EQ(DebugString(function), text);
  const FunctionDef one = FDH::Create("G", {}, {}, {"N: int"}, {}, {});
  EXPECT_EQ(DebugString(one), "\nG[N:int]() -> () {\n}\n");
  EXPECT_EQ(
      DebugStringWhole(GDef({NDef("a", "NoOp", {}), NDef("b", "Neg", {"x:1"})}, {function, one})),
      absl::StrCat(text, "\nG[N:int]() -> () {\n}\n", "\na = NoOp()\nb = Neg(x:1)\n"));
}

TEST(FunctionTexts, ShowInstances) {
  const GraphDef graph =
      GDef({NDef("b", "_Arg", {}, {{"T", DT_INT32}, {"index", 1}}, "/device:GPU:2"),
            NDef("a", "_Arg", {"ignored"}, {{"T", DT_FLOAT}}),
            NDef("c", "_DeviceArg", {}, {{"T", DT_BOOL}, {"index", 2}}), NDef("n", "Neg", {"a"}),
            NDef("r", "_Retval", {"n"}, {{"T", DT_FLOAT}, {"index", 1}}),
            NDef("s", "_DeviceRetval", {}, {{"T", DT_HALF}, {"index", 0}})});
  EXPECT_EQ(DebugString(graph),
            "\n(a:float, b:int32@GPU:2, c:bool) -> (s:half, n:float) {\n"
            "  n = Neg(a)\n}\n");
}

TEST(FunctionTexts, ShowTestFunctions) {
  const std::string types = "[T:{float, double, int32, int64}]";
  EXPECT_EQ(DebugString(test::function::XTimes16()),
            absl::StrCat("\nXTimes16", types,
                         "(x:T) -> (y:T) {\n  x2 = XTimesFour[T=$T](x)\n"
                         "  y = XTimesFour[T=$T](x2:y:0)\n"
                         "  return y = y:y:0\n}\n"));
  EXPECT_EQ(DebugString(test::function::XTimesFourInt32()),
            "\nXTimesFourInt32(x:int32) -> (y:int32) {\n  x2 = XTimesTwoInt32(x)\n"
            "  y = XTimesTwoInt32(x2:y:0)\n  return y = y:y:0\n}\n");
  EXPECT_EQ(DebugString(test::function::WXPlusB()),
            "\nWXPlusB[T:{float, double}](w:T, x:T, b:T) -> (y:T) {\n"
            "  mm = MatMul[T=$T, transpose_a=false, transpose_b=false](w, x)\n"
            "  y = Add[T=$T](mm:product:0, b)\n  return y = y:z:0\n}\n");
  EXPECT_EQ(DebugString(test::function::Swap()),
            "\nSwap[T:{float, double, resource}](i0:T, i1:T) -> (o0:T, o1:T) {\n"
            "  o0 = Identity[T=$T](i1)\n  o1 = Identity[T=$T](i0)\n"
            "  return o0 = o0:output:0\n  return o1 = o1:output:0\n}\n");
  EXPECT_EQ(DebugString(test::function::XAddY()),
            absl::StrCat("\nXAddY", types,
                         "(x:T, y:T) -> (z:T) {\n  z = Add[T=$T](x, y)\n"
                         "  return z = z:z:0\n}\n"));
  Tensor two;
  TF_ASSERT_OK(GetNodeAttr(test::function::XTimesTwo().node_def(0), "value", &two));
  test::ExpectEqual(two, test::AsScalar<int64>(2));
  EXPECT_EQ(GDef({}).versions().producer(), TF_GRAPH_DEF_VERSION);
}

// ---- Instances ----

TEST(Instances, SupportReferencesAndListsOfOne) {
  const FunctionDef function =
      FDH::Create("F", {"r: Ref(T)", "l: N * float"}, {"y: N * float"}, {"T: type", "N: int"},
                  {{{"n"}, "NoOp", {"^l"}, {}}}, {{"y", "l"}});
  InstantiationResult result;
  for (int i = 0; i < 2; ++i) {
    // The call replaces the previous result.
    TF_ASSERT_OK(
        InstantiateFunction(function, Attrs({{"T", DT_INT32}, {"N", 1}}), LookUp, &result));
    EXPECT_THAT(result.arg_types, ElementsAre(DT_INT32, DT_FLOAT));
    EXPECT_THAT(result.ret_types, ElementsAre(DT_FLOAT));
    EXPECT_EQ(DebugString(result.nodes),
              "\n(r:int32_ref, l:float) -> (l:float) {\n  n = NoOp() @ l\n}\n");
    EXPECT_EQ(result.nodes.back().name(), "y_RetVal");
  }
  TF_ASSERT_OK(InstantiateFunction(function, Attrs({{"T", DT_INT32}, {"N", 2}}), LookUp, &result));
  EXPECT_EQ(DebugString(result.nodes),
            "\n(r:int32_ref, l_0:float, l_1:float) -> (l_0:float, l_1:float) {\n"
            "  n = NoOp() @ l_0\n}\n");
  EXPECT_EQ(result.nodes[4].name(), "y_RetVal_0");
  EXPECT_EQ(result.nodes[5].name(), "y_RetVal_1");
  FunctionDef twice = FDH::Create("F", {"r: Ref(float)"}, {}, {}, {}, {});
  twice.mutable_signature()->mutable_input_arg(0)->set_type(DT_FLOAT_REF);
  EXPECT_THAT(InstantiateFunction(twice, AttrSlice(), LookUp, &result),
              StatusIs(error::INVALID_ARGUMENT,
                       "Cannot make a ref type for a ref type float_ref\n\tIn r:Ref(float_ref)"));
  EXPECT_THAT(InstantiateFunction(function, Attrs({{"T", 3}, {"N", 1}}), LookUp, &result),
              StatusIs(error::INVALID_ARGUMENT, ::testing::EndsWith("\n\tfor attr 'T'")));
  EXPECT_THAT(InstantiateFunction(function, Attrs({{"T", DT_FLOAT}, {"N", 0}}), LookUp, &result),
              StatusIs(error::INTERNAL, "Expected a list of at least one dtype\n\tIn l:N*float"));
}

TEST(Instances, FailWhereTypesAndLengthsDisagree) {
  const auto error = [](const FDH::Node& node) {
    InstantiationResult result;
    const FunctionDef f =
        FDH::Create("F", {"x: N * float", "i: int32"}, {}, {"N: int"}, {node}, {});
    return InstantiateFunction(f, Attrs({{"N", 2}}), LookUp, &result);
  };
  TF_EXPECT_OK(error({{"n"}, "AddN", {"x", "x:1"}, {{"N", 3}, {"T", DT_FLOAT}}}));
  EXPECT_THAT(error({{"n"}, "AddN", {"x"}, {{"N", 1}, {"T", DT_FLOAT}}}),
              StatusIs(error::INVALID_ARGUMENT, HasSubstr("Input x too long for inputs")));
  EXPECT_THAT(error({{"n"}, "AddN", {"x", "x"}, {{"N", 3}, {"T", DT_FLOAT}}}),
              StatusIs(error::INVALID_ARGUMENT, HasSubstr("Input x too long for inputs")));
  EXPECT_THAT(error({{"n"}, "AddN", {"x"}, {{"N", 2}, {"T", DT_HALF}}}),
              StatusIs(error::INVALID_ARGUMENT,
                       HasSubstr("input inputs[0] expected type half != float, the type of x[0]")));
  EXPECT_THAT(error({{"n"}, "AddN", {"x"}, {{"T", DT_FLOAT}}}),
              StatusIs(error::NOT_FOUND, HasSubstr("number attr not found: N")));
  EXPECT_THAT(error({{"n"}, "Neg", {"x:0"}, {}}),
              StatusIs(error::NOT_FOUND, HasSubstr("type attr not found: T")));
}

// A list of 2^20 tensors takes too many bytes. A longer list is refused at once.
TEST(Instances, BoundTheLengthsOfLists) {
  for (const auto& [length, code] :
       {std::pair(1 << 20, error::RESOURCE_EXHAUSTED), {(1 << 20) + 1, error::INVALID_ARGUMENT}}) {
    const FDH::Node node{{"n"}, "Split", {"i", "x"}, {{"num_split", length}, {"T", DT_FLOAT}}};
    InstantiationResult result;
    EXPECT_THAT(InstantiateFunction(FDH::Create("F", {"i: int32", "x: float"}, {}, {}, {node}, {}),
                                    AttrSlice(), LookUp, &result),
                StatusIs(code));
  }
}

TEST(Instances, MayPlaceIntegersOnDevicesByAnAttribute) {
  const FunctionDef function =
      FDH::Create("F", {"i: int32", "f: float"}, {"o: int32"}, {}, {}, {{"o", "i"}});
  InstantiationResult result;
  for (const bool on : {false, true}) {
    TF_ASSERT_OK(
        InstantiateFunction(function, Attrs({{Library::kIntsOnDeviceAttr, on}}), LookUp, &result));
    EXPECT_EQ(result.nodes[0].op(), on ? "_DeviceArg" : "_Arg");
    EXPECT_EQ(result.nodes[1].op(), "_Arg");
    EXPECT_EQ(result.nodes[2].op(), on ? "_DeviceRetval" : "_Retval");
  }
}

TEST(FunctionDefsEqual, ComparesAttributesByNameAndValue) {
  FunctionDef one = test::function::XAddX();
  (*one.mutable_attr())["a"].set_b(true);
  std::vector<FunctionDef> others(4, test::function::XAddX());
  (*others[0].mutable_attr())["a"].set_b(false);
  (*others[1].mutable_attr())["b"].set_b(true);
  (*others[2].mutable_attr())["a"].set_b(true);
  (*others[2].mutable_attr())["b"].set_b(true);
  for (const FunctionDef& other : others) {
    EXPECT_FALSE(FunctionDefsEqual(one, other));
    EXPECT_FALSE(FunctionDefsEqual(other, one));
    EXPECT_NE(FunctionDefHash(one), FunctionDefHash(other));
  }
  others[3] = one;
  (*others[3].mutable_attr())["unset"];
  EXPECT_TRUE(FunctionDefsEqual(others[3], one));
  EXPECT_EQ(FunctionDefHash(others[3]), FunctionDefHash(one));
}

// ---- Calls ----

TEST(FunctionCallFrames, DescribeErrors) {
  FunctionCallFrame frame({DT_FLOAT, DT_INT32}, {DT_INT32});
  const Tensor real = test::AsScalar<float>(1), number = test::AsScalar<int32>(2);
  EXPECT_EQ(frame.num_args(), 2u);
  EXPECT_EQ(frame.num_retvals(), 1u);
  EXPECT_EQ(frame.SetArgs({real}).message(), "Expects 2 arguments, but 1 is provided");
  EXPECT_EQ(frame.SetArgs({real, real}).message(),
            "Expects arg[1] to be int32 but float is provided");
  const Tensor* arg = nullptr;
  EXPECT_EQ(frame.GetArg(0, &arg).message(), "GetArg 0 is not within [0, 0)");
  TF_ASSERT_OK(frame.SetArgs({real, number}));
  EXPECT_EQ(frame.GetArg(2, &arg).message(), "GetArg 2 is not within [0, 2)");
  EXPECT_EQ(frame.GetArg(-1, &arg).code(), error::INVALID_ARGUMENT);
  TF_ASSERT_OK(frame.GetArg(1, &arg));
  test::ExpectEqual(*arg, number);

  std::vector<Tensor> results = {real, real};
  EXPECT_THAT(frame.ConsumeRetvals(&results, /*allow_dead_tensors=*/false),
              StatusIs(error::INTERNAL, "Retval[0] does not have value"));
  EXPECT_TRUE(results.empty());
  EXPECT_EQ(frame.SetRetval(1, number).message(), "SetRetval 1 is not within [0, 1)");
  EXPECT_EQ(frame.SetRetval(0, real).message(),
            "Expects ret[0] to be int32, but float is provided.");
  TF_ASSERT_OK(frame.SetRetval(0, number));
  EXPECT_EQ(frame.SetRetval(0, number).message(), "Retval[0] has already been set.");
  for (int i = 0; i < 3; ++i) {
    TF_ASSERT_OK(i < 2 ? frame.GetRetvals(&results) : frame.ConsumeRetvals(&results, false));
    ASSERT_EQ(results.size(), 1u);
    test::ExpectEqual(results[0], number);
  }
}

TEST(Canonicalized, NamesHaveFunctionsHashesAndDevices) {
  EXPECT_EQ(
      Canonicalize(
          "F", Attrs({{"f", FDH::FunctionRef("g", {{"T", DT_FLOAT}})}, {"s", "one"}, {"i", 3}})),
      absl::StrCat("F[f=g[T=float],i=3,s=", Hash64("one"), "]"));
  FunctionLibraryRuntime::InstantiateOptions options;
  options.output_devices = {"a\n"};
  options.state_handle = "h";
  options.target = "t\n";
  EXPECT_EQ(Canonicalize("F", AttrSlice(), options),
            "F[_output_dev0=a\\n,_state_handle=h,_target=t\\n]");
  EXPECT_EQ(Canonicalize("F", AttrSlice()), "F[]");
}

TEST(ResourceInputDevice, IsTheDeviceOfTheFirstHandle) {
  FunctionDef function = test::function::Swap();
  auto& attr = (*(*function.mutable_arg_attr())[0].mutable_attr())["_composite_device"];
  absl::flat_hash_map<std::string, std::vector<std::string>> composite;
  const Tensor number = test::AsScalar<int32>(1);
  EXPECT_EQ(GetFunctionResourceInputDevice(number, 1, function, &composite), "");
  EXPECT_EQ(GetFunctionResourceInputDevice(number, 0, function, &composite), "");
  EXPECT_TRUE(composite.empty());
  attr.set_s("all");
  EXPECT_EQ(GetFunctionResourceInputDevice(number, 0, function, &composite), "all");
  EXPECT_THAT(composite.at("all"), ElementsAre());
}

// ---- Libraries ----

GradientDef Gradient(const std::string& function, const std::string& gradient) {
  GradientDef def;
  def.set_function_name(function);
  def.set_gradient_func(gradient);
  return def;
}

FunctionDef Named(const std::string& name, FunctionDef function = test::function::XAddX()) {
  function.mutable_signature()->set_name(name);
  return function;
}

FunctionDefLibrary Functions(const std::vector<FunctionDef>& functions,
                             const std::vector<GradientDef>& gradients = {}) {
  FunctionDefLibrary library;
  for (const FunctionDef& function : functions) *library.add_function() = function;
  for (const GradientDef& gradient : gradients) *library.add_gradient() = gradient;
  return library;
}

TEST(FunctionLibraries, LeaveOutFunctionsThatTheyCannotAdd) {
  const Library library(OpRegistry::Global(),
                        Functions({Named("f"), Named("f", test::function::XAddY()), Named("Add"),
                                   Named("g"), Named("g")},
                                  {Gradient("f", "g"), Gradient("f", "h"), Gradient("g", "h")}));
  EXPECT_THAT(library.ListFunctionNames(), ElementsAre("f", "g"));
  EXPECT_EQ(library.num_functions(), 2u);
  EXPECT_EQ(library.Find("f")->signature().input_arg_size(), 1);
  EXPECT_EQ(library.FindGradient("f"), "g");
  const FunctionDefLibrary proto = library.ToProto();
  ASSERT_EQ(proto.gradient_size(), 2);
  EXPECT_EQ(proto.gradient(0).ShortDebugString(), "function_name: \"f\" gradient_func: \"g\"");
  EXPECT_EQ(proto.gradient(1).ShortDebugString(), "function_name: \"g\" gradient_func: \"h\"");
  EXPECT_EQ(proto.function(1).signature().name(), "g");
}

TEST(FunctionLibraries, DescribeWhyTheyRefuse) {
  Library library(OpRegistry::Global(), Functions({Named("f")}, {Gradient("f", "g")}));
  const auto refused = [](const absl::Status& status, const char* text) {
    EXPECT_THAT(status, StatusIs(error::INVALID_ARGUMENT, text));
  };
  refused(
      library.AddFunctionDef(Named("f", test::function::XAddY())),
      "Cannot add function 'f' because a different function with the same name already exists.");
  refused(library.AddFunctionDef(Named("Add")),
          "Cannot add function 'Add' because an op with the same name already exists.");
  refused(library.AddGradientDef(Gradient("f", "h")),
          "Cannot assign gradient function 'h' to 'f' because it already has gradient function "
          "'g'");
  TF_EXPECT_OK(library.AddGradientDef(Gradient("f", "g")));
  refused(library.ReplaceFunction("g", Named("g")), "Tried to replace non-existent function 'g'.");
  refused(library.RemoveFunction("g"), "Tried to remove non-existent function 'g'.");
  refused(library.CopyFunctionDefFrom("g", library),
          "Cannot copy the function 'g', which the other library does not have");
  EXPECT_THAT(library.ReachableDefinitions("g").status(),
              StatusIs(error::NOT_FOUND, "the library has no function 'g'"));
  // If the new name is taken, the function does not change.
  TF_EXPECT_OK(library.AddFunctionDef(Named("g")));
  refused(
      library.ReplaceFunction("f", Named("g", test::function::XAddY())),
      "Cannot add function 'g' because a different function with the same name already exists.");
  EXPECT_THAT(library.ListFunctionNames(), ElementsAre("f", "g"));
  int value = 0;
  refused(library.GetAttr(NDef("n", Library::kGradientOp, {}), "a", &value),
          "No attr a is defined: SymbolicGradient is not a function of the library");
}

TEST(FunctionLibraries, KeepOldGradientsIfOneIsRefused) {
  Library library(OpRegistry::Global(), Functions({}, {Gradient("f", "g")}));
  EXPECT_FALSE(library
                   .AddLibrary(Functions({}, {Gradient("a", "b"), Gradient("f", "g"),
                                              Gradient("f", "h"), Gradient("c", "d")}))
                   .ok());
  EXPECT_EQ(library.FindGradient("f"), "g");
  EXPECT_EQ(library.FindGradient("a"), "");
  EXPECT_EQ(library.FindGradient("c"), "");
  // Existing functions also stay.
  TF_ASSERT_OK(library.AddFunctionDef(Named("a")));
  EXPECT_FALSE(library.AddLibrary(Functions({Named("a"), Named("b"), Named("Add")})).ok());
  EXPECT_THAT(library.ListFunctionNames(), ElementsAre("a"));
  const Library other(OpRegistry::Global(), Functions({Named("b")}, {Gradient("b", "a")}));
  TF_ASSERT_OK(library.AddLibrary(other));
  EXPECT_THAT(library.ListFunctionNames(), ElementsAre("a", "b"));
  EXPECT_EQ(library.FindGradient("b"), "a");
}

TEST(FunctionLibraries, AreCopiedAndMovedCompletely) {
  OpList none;
  const OpListOpRegistry registry(&none);
  Library library(&registry, Functions({Named("f")}, {Gradient("f", "g")}));
  OptimizedFunctionGraph graph;
  graph.set_name("optimized");
  library.AddOptimizedFunctionGraph("f", graph);
  // The graph that was added first stays.
  library.AddOptimizedFunctionGraph("f", OptimizedFunctionGraph());
  const Library copy(library);
  Library moved(OpRegistry::Global(), Functions({Named("old")}));
  moved = std::move(library);
  moved = static_cast<Library&&>(moved);
  for (const Library* l : {&copy, static_cast<const Library*>(&moved)}) {
    EXPECT_EQ(l->default_registry(), &registry);
    EXPECT_THAT(l->ListFunctionNames(), ElementsAre("f"));
    EXPECT_TRUE(l->Contains("f"));
    EXPECT_FALSE(l->Contains("old"));
    EXPECT_EQ(l->FindGradient("f"), "g");
    ASSERT_TRUE(l->FindOptimizedFunctionGraph("f").has_value());
    EXPECT_EQ((*l->FindOptimizedFunctionGraph("f"))->name(), "optimized");
  }
  moved.Clear();
  for (const Library* l : {&library, &moved}) {
    EXPECT_THAT(l->ListFunctionNames(), ElementsAre());
    EXPECT_FALSE(l->Contains("f"));
    EXPECT_EQ(l->FindGradient("f"), "");
    EXPECT_FALSE(l->HasOptimizedFunctionGraph("f"));
  }
}

TEST(FunctionLibraries, CopyAFunctionWithItsGradient) {
  const Library library(OpRegistry::Global(),
                        Functions({Named("f"), Named("g")}, {Gradient("f", "g")}));
  Library copy(OpRegistry::Global());
  TF_EXPECT_OK(copy.CopyFunctionDefFrom("f", library));
  TF_EXPECT_OK(copy.CopyFunctionDefFrom("g", library));
  EXPECT_EQ(copy.FindGradient("f"), "g");
  EXPECT_EQ(copy.ToProto().gradient_size(), 1);
  Library conflict(OpRegistry::Global(), Functions({Named("f", test::function::XAddY())}));
  EXPECT_EQ(conflict.CopyFunctionDefFrom("f", library).code(), error::INVALID_ARGUMENT);
  EXPECT_EQ(conflict.FindGradient("f"), "");
}

TEST(FunctionLibraries, FindFreeNames) {
  const Library library(OpRegistry::Global(), Functions({Named("f"), Named("f3"), Named("f4")}));
  EXPECT_EQ(library.UniqueFunctionName("f"), "f5");
  EXPECT_EQ(library.UniqueFunctionName("g"), "g3");
}

TEST(FunctionLibraries, ReachFromGraphsAndListsOfFunctions) {
  const FunctionDef caller = FDH::Create("caller", {}, {}, {}, {{{"n"}, "f", {}, {}}}, {});
  AttrValue list;
  list.mutable_list()->add_func()->set_name("g");
  list.mutable_list()->add_func()->set_name("h");
  const Library library(OpRegistry::Global(),
                        Functions({Named("f"), Named("g"), Named("h"), Named("i"), caller}));
  Graph graph(OpRegistry::Global());
  for (const char* name : {"a", "b"}) {
    Node* node = nullptr;
    TF_ASSERT_OK(NodeBuilder(name, "NoOp").Finalize(&graph, &node));
  }
  EXPECT_EQ(library.ReachableDefinitions(graph).num_functions(), 0u);
  TF_ASSERT_OK(graph.AddNode(NDef("c", "NoOp", {}, {{"_f", FDH::FunctionRef("caller")}})).status());
  EXPECT_THAT(library.ReachableDefinitions(graph).ListFunctionNames(), ElementsAre("f", "caller"));
  GraphDef def = GDef({NDef("n", "NoOp", {})});
  (*def.mutable_node(0)->mutable_attr())["_l"] = list;
  EXPECT_THAT(library.ReachableDefinitions(def).ListFunctionNames(), ElementsAre("g", "h"));
  EXPECT_THAT(library.ReachableDefinitions(caller).ListFunctionNames(), ElementsAre("f"));
}

TEST(FunctionLibraries, ReadAttributesOfGradientsOrFunctions) {
  FunctionDef function = Named("f");
  (*function.mutable_attr())["a"].set_i(3);
  const Library library(OpRegistry::Global(), Functions({function}));
  int value = 0;
  TF_EXPECT_OK(library.GetAttr(NDef("n", Library::kGradientOp, {}, {{"f", FDH::FunctionRef("f")}}),
                               "a", &value));
  EXPECT_EQ(value, 3);
}

TEST(FunctionLibraries, KeepStackTraces) {
  const auto trace =
      std::make_shared<FrozenStackTrace>(std::vector<StackFrame>{{"a.cc", 1, "main"}});
  const StackTracesMap map = {{"n", trace}};
  Library library(OpRegistry::Global(), Functions({Named("f"), Named("g")}), {{"f", map}});
  ASSERT_NE(library.GetStackTraces("f"), nullptr);
  EXPECT_EQ(library.GetStackTraces("f")->count("n"), 1u);
  EXPECT_TRUE(library.GetStackTraces("g")->empty());
  EXPECT_EQ(library.GetStackTraces("h"), nullptr);
  TF_EXPECT_OK(library.ReplaceFunction("g", Named("g"), map));
  TF_EXPECT_OK(library.AddFunctionDef(Named("h"), map));
  TF_EXPECT_OK(library.AddLibrary(Functions({Named("i")}), {{"i", map}}));
  for (const char* name : {"g", "h", "i"}) {
    EXPECT_EQ(library.GetStackTraces(name)->count("n"), 1u) << name;
  }
  // A trace belongs to a function if its name has the form "node@function".
  GraphDebugInfoBuilder builder;
  for (const char* name : {"n@f", "x@y@f", "n@other", "n"})
    builder.AccumulateStackTrace(trace, name);
  const GraphDebugInfo info = builder.Build();
  const auto traces =
      Library::CreateStackTracesForFunctionDefLibrary(Functions({Named("f"), Named("n")}), info);
  ASSERT_EQ(traces.size(), 1u);
  EXPECT_EQ(traces.at("f").size(), 2u);
  EXPECT_EQ(traces.at("f").count("n"), 1u);
  EXPECT_EQ(traces.at("f").count("x@y"), 1u);
  GraphDebugInfo no_files = info;
  no_files.clear_files();
  EXPECT_TRUE(
      Library::CreateStackTracesForFunctionDefLibrary(Functions({Named("f")}), no_files).empty());
}

TEST(FunctionRecords, ChangeUntilTheyAreFinal) {
  const core::RefCountPtr<FunctionRecord> record(new FunctionRecord(Named("f"), {}, false));
  const absl::StatusOr<FunctionDef*> def = record->mutable_fdef();
  TF_ASSERT_OK(def.status());
  EXPECT_EQ(*def, &record->fdef());
  EXPECT_TRUE(record->op_registration_data().is_function_op);
  record->finalize();
  EXPECT_THAT(record->mutable_fdef().status(),
              StatusIs(error::PERMISSION_DENIED, "function 'f' is finalized"));
}

}  // namespace function_library_test
}  // namespace tensorflow
