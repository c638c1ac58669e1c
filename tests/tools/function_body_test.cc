// Tests of converting function bodies to graphs.
#include "tools/view/function_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/registry.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/import.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow::tools {
namespace {

using ::testing::ElementsAre;

const OpDef* FindTestOp(const std::string& op) {
  // A function with more outputs than the converter counts.
  static const OpDef* const wide = [] {
    auto* const def = new OpDef();
    for (int i = 0; i < 300; ++i) def->add_output_arg()->set_name(absl::StrCat("o", i));
    return def;
  }();
  if (op == "Wide") return wide;
  const OpRegistration* const registration = GlobalRegistry().FindOp(op);
  return registration == nullptr ? nullptr : &registration->def();
}

FunctionDef ParsedFunction(const std::string& text) {
  absl::StatusOr<GraphDef> graph =
      ParseGraphDefText(absl::StrCat("library { function { ", text, " } }"));
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? graph->library().function(0) : FunctionDef();
}

TEST(FunctionNames, ResolveInputs) {
  const FunctionDef function = ParsedFunction(R"(
    signature { name: 'f' input_arg { name: 'a' type: DT_FLOAT }
                input_arg { name: 'b' type: DT_FLOAT } }
    node_def { name: 'neg' op: 'Neg' }
    node_def { name: 'split' op: 'Split' attr { key: 'num_split' value { i: 3 } } }
    node_def { name: 'norm' op: 'FusedBatchNormV3' }
    node_def { name: 'both' op: 'IdentityN'
               attr { key: 'T' value { list { type: DT_FLOAT type: DT_INT32 } } } }
    node_def { name: 'restore' op: 'TwoLists' attr { key: 'T' value { list { type: [1, 3] } } }
               attr { key: 'N' value { i: 4 } } attr { key: 'M' value { i: -5 } }
               attr { key: 'L' value { i: 4611686018427387904 } } }
    node_def { name: 'odd' op: 'Odd' }
    node_def { name: 'wide' op: 'Wide' })");
  static const OpDef* const two_lists = [] {
    auto* const def = new OpDef();
    def->add_output_arg()->set_name("types");
    def->mutable_output_arg(0)->set_type_list_attr("T");
    for (const char* name : {"N", "M", "L"}) {
      OpDef::ArgDef* const arg = def->add_output_arg();
      arg->set_name(name);
      arg->set_number_attr(name);
    }
    def->add_output_arg()->set_name("last");
    return def;
  }();
  const FunctionNames names(function, [](const std::string& op) {
    return op == "TwoLists" ? two_lists : FindTestOp(op);
  });
  const std::vector<std::pair<std::string, std::pair<int, int>>> cases = {
      {"a", {0, 0}},
      {"b", {1, 0}},
      {"b:0", {1, 0}},
      {"b:2", {1, 2}},
      {"b:c", {1, 0}},
      {"^b", {1, -1}},
      {"none", {-1, 0}},
      {"^none", {-1, 0}},
      {"", {-1, 0}},
      {"neg", {2, 0}},
      {"neg:y", {2, 0}},
      {"neg:y:0", {2, 0}},
      {"neg:y:-3", {2, 0}},
      {"^neg", {2, -1}},
      {"split:output", {3, 0}},
      {"split:output:2", {3, 2}},
      {"split:none:2", {3, 5}},
      {"norm:batch_mean:0", {4, 1}},
      {"norm:reserve_space_3:0", {4, 5}},
      {"both:output:1", {5, 1}},
      {"restore:types:1", {6, 1}},
      {"restore:N:1", {6, 3}},
      {"restore:M:0", {6, 6}},
      {"restore:L:1", {6, 7}},
      {"restore:last:0", {6, 1 << 20}},
      {"odd:y:2", {7, 2}},
      {"odd:2", {7, 0}},
      {"wide:o1:0", {8, 1}},
      {"wide:o255:0", {8, 255}},
      {"wide:o299:0", {8, 256}},
  };
  for (const auto& [input, place] : cases) {
    const InputSource source = names.Resolve(input);
    EXPECT_EQ(std::pair(source.node, source.output), place) << input;
  }
}

TEST(ControlOutputs, ListTheSignatureFirst) {
  EXPECT_THAT(
      ControlOutputs(ParsedFunction("signature { name: 'f' control_output: ['b', 'a', 'b'] } "
                                    "control_ret { key: 'z' value: 'n' } "
                                    "control_ret { key: 'a' value: 'n' } "
                                    "control_ret { key: 'c' value: 'n' }")),
      ElementsAre("b", "a", "c", "z"));
}

TEST(FunctionGraph, HasArgumentsNodesResultsAndControlOutputs) {
  const GraphDef graph = FunctionGraph(ParsedFunction(R"(
    signature { name: 'f'
      input_arg { name: 'a' type: DT_FLOAT } input_arg { name: 'b' type: DT_INT32 }
      input_arg { name: 'c' type: DT_HALF } input_arg { name: 'd' type: DT_BOOL }
      output_arg { name: 'n' type: DT_FLOAT } output_arg { name: 'r' type: DT_INT32 }
      output_arg { name: 'none' type: DT_INT32 } control_output: 'n' control_output: 'lost' }
    node_def { name: 'n' op: 'Neg' input: 'a:0' input: '^b' input: 'where:y:0' }
    node_def { name: 'n_0' op: 'Split' input: 'b' input: 'n:y:0'
               attr { key: 'num_split' value { i: 2 } } }
    ret { key: 'n' value: 'n_0:output:1' } ret { key: 'r' value: 'b' }
    control_ret { key: 'n' value: 'n' }
    arg_attr { key: 0 value { attr { key: '_output_shapes'
                                     value { list { shape { dim { size: 4 } } } } } } }
    arg_attr { key: 1 value { attr { key: '_output_shapes' value { shape { } } } } }
    arg_attr { key: 2 value { attr { key: 'other' value { shape { } } } } }
    arg_attr { key: 3 value { attr { key: '_output_shapes'
                                     value { list { shape { } shape { } } } } } })"),
                                       FindTestOp);
  std::string actual;
  for (const NodeDef& node : graph.node()) {
    absl::StrAppend(&actual, node.ShortDebugString(), "\n");
  }
  // Nodes have the names of the function if these are free.
  EXPECT_EQ(actual,
            R"(name: "a" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } } attr )"
            R"({ key: "shape" value { shape { dim { size: 4 } } } })"
            "\n"
            R"(name: "b" op: "Placeholder" attr { key: "dtype" value { type: DT_INT32 } } attr )"
            R"({ key: "shape" value { shape { } } })"
            "\n"
            R"(name: "c" op: "Placeholder" attr { key: "dtype" value { type: DT_HALF } })"
            "\n"
            R"(name: "d" op: "Placeholder" attr { key: "dtype" value { type: DT_BOOL } })"
            "\n"
            R"(name: "n" op: "Neg" input: "a" input: "^b" input: "where:y:0")"
            "\n"
            R"(name: "n_0" op: "Split" input: "b" input: "n" attr { key: "num_split" value { i:)"
            " 2 } }\n"
            R"(name: "n_1" op: "Identity" input: "n_0:1" attr { key: "T" value { type: DT_FLOAT)"
            " } }\n"
            R"(name: "r" op: "Identity" input: "b" attr { key: "T" value { type: DT_INT32 } })"
            "\n"
            R"(name: "none" op: "Identity" input: "" attr { key: "T" value { type: DT_INT32 } })"
            "\n"
            R"(name: "n_2" op: "NoOp" input: "^n")"
            "\n"
            R"(name: "lost" op: "NoOp")"
            "\n");
}

}  // namespace
}  // namespace gradflow::tools
