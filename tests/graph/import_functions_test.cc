// Tests of the errors of ImportGraphDef in functions. Their nodes are checked when they are
// instantiated (function_library_test.cc).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/import.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/graph/toy_graph_ops.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::kInvalidArgument;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::ToyGraphDef;
using ::gradflow::testing::ToyGraphRegistry;
using ::testing::HasSubstr;
using ::testing::StartsWith;

absl::Status ImportFunctions(const std::string& functions,
                             const ImportGraphDefOptions& options = {}) {
  Graph graph(ToyGraphRegistry());
  const GraphDef def = ToyGraphDef(absl::StrCat("library { ", functions, " }"));
  absl::Status status = ImportGraphDef(options, def, &graph);
  EXPECT_EQ(graph.def().library().function_size(), status.ok() ? def.library().function_size() : 0);
  return status;
}

// Return the text of a function F: Signature() adds `more` inside the signature, Function() after
// it.
std::string Signature(absl::string_view more) {
  return absl::StrCat("function { signature { name: 'F' ", more, " } }");
}
std::string Function(absl::string_view more) {
  return absl::StrCat("function { signature { name: 'F' } ", more, " }");
}

struct BadFunction {
  const char* name;
  std::string functions;
  std::string error;
};

void ExpectRefused(const std::vector<BadFunction>& functions,
                   const ImportGraphDefOptions& options = {}) {
  for (const BadFunction& bad : functions) {
    SCOPED_TRACE(bad.name);
    EXPECT_THAT(ImportFunctions(bad.functions, options),
                StatusIs(kInvalidArgument, StartsWith(bad.error)));
  }
}

TEST(ImportFunctions, NamesMustBeSetAndDiffer) {
  ExpectRefused({
      {"function without a name", "function {}", "function 0 of the graph has no name"},
      {"functions of one name", Function("") + Function(""),
       "function 'F': another function has the same name"},
      {"attributes of one name", Signature("attr { name: 'T' } attr { name: 'T' }"),
       "function 'F': attribute 'T' is declared twice"},
      {"arguments of one name", Signature("input_arg { name: 'x' } input_arg { name: 'x' }"),
       "function 'F': argument 'x' is declared twice"},
      {"results of one name", Signature("output_arg { name: 'y' } output_arg { name: 'y' }"),
       "function 'F': result 'y' is declared twice"},
      {"attribute without a name", Function("attr { key: '' value { i: 1 } }"),
       "function 'F': an attribute has no name"},
      {"attribute of an argument without a name",
       Function("arg_attr { key: 3 value { attr { key: '' value { i: 1 } } } }"),
       "function 'F': argument 3: an attribute has no name"},
      {"result from nowhere", Function("ret { key: 'y' value: '' }"),
       "function 'F': the source of its result 'y' is empty"},
      {"control output from nowhere", Function("control_ret { key: 'z' value: '' }"),
       "function 'F': the source of its control output 'z' is empty"},
      {"node without a name", Function("node_def { op: 'NoOp' }"),
       "function 'F': its node 0 has no name"},
      {"node without an op", Function("node_def { name: 'n' }"),
       "function 'F': node 'n' (): the node has no op"},
      {"nodes of one name",
       Function("node_def { name: 'n' op: 'NoOp' } node_def { name: 'n' op: 'NoOp' }"),
       "function 'F': node 'n' (NoOp): another node has the same name"},
      {"input without a name", Function("node_def { name: 'n' op: 'NoOp' input: '' }"),
       "function 'F': node 'n' (NoOp): the name of an input is empty"},
      {"attribute of a node without a name",
       Function("node_def { name: 'n' op: 'NoOp' attr { key: '' } }"),
       "function 'F': node 'n' (NoOp): an attribute has no name"},
  });
}

TEST(ImportFunctions, NodesNeedValidNodeNames) {
  const std::string error =
      "): the name must begin with a letter, a digit or '.', and continue with these, '_', '-', "
      "'/' "
      "and '>'";
  for (const char* name : {"a b", "__a", "_/a", "/a", "-a", "a:0", "^a", "a\\n"}) {
    EXPECT_THAT(ImportFunctions(Function(absl::StrCat("node_def { name: '", name, "' op: 'X' }"))),
                StatusIs(kInvalidArgument, HasSubstr(error)))
        << name;
  }
  EXPECT_THAT(ImportFunctions(Function("node_def { name: 'a b' op: 'NoOp' }")),
              StatusIs(kInvalidArgument, absl::StrCat("function 'F': node 'a b' (NoOp", error)));
}

TEST(ImportFunctions, NamesHaveLimitedLength) {
  const std::string longest(15, 'n');
  const std::string name(16, 'n');
  const std::string quoted = absl::StrCat("'", name, "'");
  const std::string error =
      absl::StrCat(" ", quoted, " has 16 bytes, expected at most 15 (GraphLimits::max_name_bytes)");
  const struct {
    std::string function;
    std::string error;
  } cases[] = {
      {Signature("attr { name: @ }"), "the name of attribute"},
      {Signature("input_arg { name: @ }"), "the name of argument"},
      {Signature("output_arg { name: @ }"), "the name of result"},
      {Signature("control_output: @"), "the name of control output"},
      {Function("attr { key: @ value { i: 1 } }"), "the name of attribute"},
      {Function("arg_attr { key: 3 value { attr { key: @ value { i: 1 } } } }"),
       "argument 3: the name of attribute"},
      {Function("ret { key: @ value: 'n:y:0' }"), "the name of its result"},
      {Function("ret { key: 'y' value: @ }"), "the source of its result"},
      {Function("control_ret { key: @ value: 'n' }"), "the name of its control output"},
      {Function("control_ret { key: 'z' value: @ }"), "the source of its control output"},
      {Function("node_def { name: @ op: 'NoOp' }"),
       absl::StrCat("node ", quoted, " (NoOp): the name")},
      {Function("node_def { name: 'n' op: @ }"), absl::StrCat("node 'n' (", name, "): the op")},
      {Function("node_def { name: 'n' op: 'NoOp' device: @ }"), "node 'n' (NoOp): the device"},
      {Function("node_def { name: 'n' op: 'NoOp' input: @ }"), "node 'n' (NoOp): the input"},
      {Function("node_def { name: 'n' op: 'NoOp' attr { key: @ } }"),
       "node 'n' (NoOp): the name of attribute"},
  };
  ImportGraphDefOptions options;
  options.limits.max_name_bytes = 15;
  for (const auto& test : cases) {
    SCOPED_TRACE(test.function);
    EXPECT_THAT(ImportFunctions(absl::StrReplaceAll(test.function, {{"@", quoted}}), options),
                StatusIs(kInvalidArgument, absl::StrCat("function 'F': ", test.error, error)));
    EXPECT_THAT(
        ImportFunctions(
            absl::StrReplaceAll(test.function, {{"@", absl::StrCat("'", longest, "'")}}), options),
        IsOk());
  }
  EXPECT_THAT(ImportFunctions(Function("ret { key: 'y' value: 'n\\377' }")),
              StatusIs(kInvalidArgument,
                       "function 'F': the source of its result 'n\\377' is not valid UTF-8"));
}

// ---- Attributes ----

// A function with an attribute of value "@", and the prefix of error messages about the attribute.
struct Place {
  const char* function;
  const char* begin;
};
constexpr Place kPlaces[] = {
    {"function { signature { name: 'F' } attr { key: 'a' value { @ } } }", ""},
    {"function { signature { name: 'F' } arg_attr { key: 3 value { attr { key: 'a' value { @ } } } "
     "} }",
     "argument 3: "},
    {"function { signature { name: 'F' attr { name: 'a' default_value { @ } } } }",
     "in its signature: "},
    {"function { signature { name: 'F' attr { name: 'a' allowed_values { @ } } } }",
     "in its signature: "},
    {"function { signature { name: 'F' } node_def { name: 'n' op: 'X' attr { key: 'a' value { @ } "
     "} } }",
     "node 'n' (X): "},
};

absl::Status ImportAttr(const Place& place, const std::string& value,
                        const ImportGraphDefOptions& options = {}) {
  return ImportFunctions(absl::StrReplaceAll(place.function, {{"@", value}}), options);
}

TEST(ImportFunctions, AttributesAreCheckedLikeNodeAttributes) {
  const std::string tensor =
      "tensor { dtype: DT_FLOAT tensor_shape { dim { size: 3 } } tensor_content: 'abc' }";
  const std::string tensor_error =
      ": expected tensor_content of 3 elements of 4 bytes (type float, shape [3]), but found 3 "
      "bytes";
  std::string nested = "i: 1";
  for (int i = 0; i < 33; ++i) {
    nested = absl::StrCat("func { name: 'f' attr { key: 'b' value { ", nested, " } } }");
  }
  const std::vector<std::pair<std::string, std::string>> values = {
      {"f: nan", " is NaN, expected a number (ImportGraphDefOptions::allow_nan_attributes)"},
      {"list { f: [ 1, nan ] }", " is NaN, expected a number"},
      {"func { attr { key: 'b' value { f: nan } } }", " is NaN, expected a number"},
      {tensor, tensor_error},
      {absl::StrCat("list { ", tensor, " }"), tensor_error},
      {absl::StrCat("func { attr { key: 'b' value { list { ", tensor, " } } } }"), tensor_error},
      {"tensor { dtype: DT_RESOURCE }", ": no tensor can have type resource"},
      {"tensor { dtype: DT_FLOAT tensor_shape { dim { size: -5 } } }",
       ": dimension -5 of shape [-5] is negative"},
      {"tensor { dtype: DT_FLOAT tensor_shape { dim { size: 1152921504606846976 } } }",
       " is a tensor of type float and shape [1152921504606846976], with 4611686018427387904 "
       "bytes, but the constants of a graph have at most 2147483648 together"},
      {nested, ": functions in attributes of functions are nested deeper than 32 levels"},
  };
  for (const Place& place : kPlaces) {
    for (const auto& [value, error] : values) {
      SCOPED_TRACE(absl::StrCat(place.function, ": ", value));
      EXPECT_THAT(ImportAttr(place, value),
                  StatusIs(kInvalidArgument, StartsWith(absl::StrCat("function 'F': ", place.begin,
                                                                     "attribute 'a'", error))));
    }
    SCOPED_TRACE(place.function);
    ImportGraphDefOptions options;
    options.limits.max_list_length = 2;
    EXPECT_THAT(ImportAttr(place, "list { i: [ 1, 2 ] }", options), IsOk());
    EXPECT_THAT(ImportAttr(place, "list { i: [ 1, 2, 3 ] }", options),
                StatusIs(kInvalidArgument,
                         absl::StrCat("function 'F': ", place.begin,
                                      "the list of attribute 'a' is too long, found 3, expected at "
                                      "most 2 (GraphLimits::max_list_length)")));
    options.allow_nan_attributes = true;
    EXPECT_THAT(ImportAttr(place, "f: nan", options), IsOk());
  }
}

TEST(ImportFunctions, ConstantsCountTogetherWithTheGraphsConstants) {
  const std::string functions = absl::StrReplaceAll(
      R"(function {
           signature { name: 'F' attr { name: 'a' default_value { @ } allowed_values { @ } } }
           attr { key: 'a' value { @ } }
           arg_attr { key: 3 value { attr { key: 'a' value { @ } } } }
           node_def { name: 'n' op: 'X' attr { key: 'a' value { @ } } } })",
      {{"@", "tensor { dtype: DT_FLOAT tensor_shape { dim { size: 5 } } }"}});
  ImportGraphDefOptions options;
  options.limits.max_constant_bytes = 100;
  EXPECT_THAT(ImportFunctions(functions, options), IsOk());
  options.limits.max_constant_bytes = 99;
  EXPECT_THAT(ImportFunctions(functions, options),
              StatusIs(kInvalidArgument,
                       "function 'F': node 'n' (X): attribute 'a' is a tensor of type float "
                       "and shape [5], with 20 bytes, but the constants of a graph have at most 99 "
                       "together (GraphLimits::max_constant_bytes), of which 19 are left"));
}

// ---- Calls ----

TEST(ImportFunctions, FunctionsMustNotCallThemselves) {
  const auto function = [](const std::string& name, const std::vector<std::string>& ops) {
    std::string text = absl::StrCat("function { signature { name: '", name, "' }");
    for (size_t i = 0; i < ops.size(); ++i) {
      absl::StrAppend(&text, " node_def { name: 'n", i, "' op: '", ops[i], "' }");
    }
    return text + " } ";
  };
  std::string many;
  for (int i = 0; i < 12; ++i) {
    many += function(absl::StrCat("F", i), {absl::StrCat("F", (i + 1) % 12)});
  }
  ExpectRefused({
      {"itself", function("F", {"F", "F"}), "a function of the graph calls itself: 'F' -> 'F'"},
      {"each other", function("F", {"G"}) + function("G", {"NoOp", "F"}),
       "a function of the graph calls itself: 'F' -> 'G' -> 'F'"},
      {"many", many,
       "a function of the graph calls itself: 'F0' -> 'F1' -> 'F2' -> 'F3' -> 'F4' -> 'F5' -> 'F6' "
       "-> 'F7' -> 'F8' -> 'F9' -> ... -> 'F0'"},
  });
}

TEST(ImportFunctions, AcceptsFunctionsThatTensorFlowWrites) {
  EXPECT_THAT(ImportFunctions(R"(
    function {
      signature {
        name: '__inference_call_12'
        input_arg { name: 'x' type_attr: 'T' } input_arg { name: 'w' type: DT_RESOURCE }
        output_arg { name: 'y' type_attr: 'T' } output_arg { name: 'same' type_attr: 'T' }
        control_output: 'done'
        attr { name: 'T' type: 'type' default_value { type: DT_FLOAT }
               allowed_values { list { type: [ DT_FLOAT, DT_HALF ] } } } }
      attr { key: '_input_shapes' value { list { shape { unknown_rank: true } shape {} } } }
      arg_attr { key: 0 value { attr { key: '_user_specified_name' value { s: 'x' } } } }
      arg_attr { key: 1 value { attr { key: '_user_specified_name' value { s: 'w' } } } }
      resource_arg_unique_id { key: 1 value: 0 }
      node_def { name: 'layer/MatMul_1' op: 'MatMul' input: 'x' input: 'ReadVariableOp:value:0'
                 input: '^.a-b>c' attr { key: 'T' value { placeholder: 'T' } } }
      node_def { name: 'ReadVariableOp' op: 'ReadVariableOp' input: 'w' }
      node_def { name: '.a-b>c' op: 'NoOp' }
      node_def { name: '0' op: 'Later' attr { key: 'dtype' value { type: 1000 } }
                 attr { key: 'value' value { tensor { dtype: DT_INT32 int_val: 1 } } } }
      ret { key: 'y' value: 'layer/MatMul_1:product:0' } ret { key: 'same' value: 'x' }
      control_ret { key: 'done' value: '.a-b>c' } }
    function { signature { name: 'F' } node_def { name: 'n' op: '__inference_call_12' }
               node_def { name: 'm' op: '__inference_call_12' } })"),
              IsOk());
}

}  // namespace
}  // namespace gradflow
