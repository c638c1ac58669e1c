#include "tensorflow/core/framework/function_testlib.h"

#include "absl/strings/str_cat.h"
#include "gradflow/graph/graph.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace test {
namespace function {
namespace {

using FDH = FunctionDefHelper;

const std::vector<std::string>& NumberTypes() {
  static const auto& types = *new std::vector<std::string>{"T: {float, double, int32, int64}"};
  return types;
}

// The function x -> y = x * 2, for numbers of any type, or of a single type.
FunctionDef Twice(const std::string& name, const std::string& type,
                  const std::vector<std::string>& attrs,
                  const FunctionDefHelper::AttrValueWrapper& attr) {
  return FDH::Define(name, {absl::StrCat("x: ", type)}, {absl::StrCat("y: ", type)}, attrs,
                     {FDH::Const<int64>("two", 2),
                      {{"scale"}, "Cast", {"two"}, {{"SrcT", DT_INT64}, {"DstT", attr}}},
                      {{"y"}, "Mul", {"x", "scale"}, {{"T", attr}}}});
}

// The function x -> y = callee(callee(x)).
FunctionDef CalledTwice(const std::string& name, const std::string& callee) {
  return FDH::Create(
      name, {"x: T"}, {"y: T"}, NumberTypes(),
      {{{"x2"}, callee, {"x"}, {{"T", "$T"}}}, {{"y"}, callee, {"x2:y:0"}, {{"T", "$T"}}}},
      {{"y", "y:y:0"}});
}

}  // namespace

NodeDef NDef(absl::string_view name, absl::string_view op, gtl::ArraySlice<std::string> inputs,
             gtl::ArraySlice<std::pair<std::string, FunctionDefHelper::AttrValueWrapper>> attrs,
             const std::string& device) {
  NodeDef node;
  node.set_name(std::string(name));
  node.set_op(std::string(op));
  for (const std::string& input : inputs) node.add_input(input);
  node.set_device(device);
  for (const auto& [attr, value] : attrs) (*node.mutable_attr())[attr] = value.proto;
  return node;
}

GraphDef GDef(gtl::ArraySlice<NodeDef> nodes, gtl::ArraySlice<FunctionDef> funcs) {
  GraphDef graph;
  graph.mutable_versions()->set_producer(gradflow::kGraphDefVersion);
  for (const NodeDef& node : nodes) *graph.add_node() = node;
  for (const FunctionDef& function : funcs) *graph.mutable_library()->add_function() = function;
  return graph;
}

FunctionDef XTimesTwo() { return Twice("XTimesTwo", "T", NumberTypes(), "$T"); }
FunctionDef XTimesTwoInt32() { return Twice("XTimesTwoInt32", "int32", {}, DT_INT32); }
FunctionDef XTimesFour() { return CalledTwice("XTimesFour", "XTimesTwo"); }
FunctionDef XTimes16() { return CalledTwice("XTimes16", "XTimesFour"); }

FunctionDef NonZero() {
  return FDH::Define("NonZero", {"x: T"}, {"y: T"}, {"T: {float, double, int32, int64, string}"},
                     {{{"y"}, "Identity", {"x"}, {{"T", "$T"}}}});
}

FunctionDef XTimesFourInt32() {
  return FDH::Create("XTimesFourInt32", {"x: int32"}, {"y: int32"}, {},
                     {{{"x2"}, "XTimesTwoInt32", {"x"}}, {{"y"}, "XTimesTwoInt32", {"x2:y:0"}}},
                     {{"y", "y:y:0"}});
}

FunctionDef XAddX() {
  return FDH::Define("XAddX", {"x: T"}, {"z: T"}, NumberTypes(),
                     {{{"z"}, "Add", {"x", "x"}, {{"T", "$T"}}}});
}

FunctionDef XAddY() {
  return FDH::Define("XAddY", {"x: T", "y: T"}, {"z: T"}, NumberTypes(),
                     {{{"z"}, "Add", {"x", "y"}, {{"T", "$T"}}}});
}

FunctionDef WXPlusB() {
  return FDH::Define("WXPlusB", {"w: T", "x: T", "b: T"}, {"y: T"}, {"T: {float, double}"},
                     {{{"mm"},
                       "MatMul",
                       {"w", "x"},
                       {{"T", "$T"}, {"transpose_a", false}, {"transpose_b", false}}},
                      {{"y"}, "Add", {"mm", "b"}, {{"T", "$T"}}}});
}

FunctionDef Swap() {
  return FDH::Define(
      "Swap", {"i0: T", "i1: T"}, {"o0: T", "o1: T"}, {"T: {float, double, resource}"},
      {{{"o0"}, "Identity", {"i1"}, {{"T", "$T"}}}, {{"o1"}, "Identity", {"i0"}, {{"T", "$T"}}}});
}

}  // namespace function
}  // namespace test
}  // namespace tensorflow
