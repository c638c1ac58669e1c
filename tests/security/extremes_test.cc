// Tests of files that require excessive resources. Each must fail quickly. docs/security.md lists
// the times.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/scope.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::kInvalidArgument;
using ::gradflow::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

NodeDef* AddNode(const std::string& name, const std::string& op, GraphDef* def) {
  NodeDef* node = def->add_node();
  node->set_name(name);
  node->set_op(op);
  return node;
}

// Adds a constant of zeros.
void AddZeros(const std::string& name, const std::vector<int64_t>& dims, GraphDef* def) {
  NodeDef* node = AddNode(name, "Const", def);
  AddNodeAttr("dtype", DT_FLOAT, node);
  TensorProto* tensor = (*node->mutable_attr())["value"].mutable_tensor();
  tensor->set_dtype(DT_FLOAT);
  for (const int64_t dim : dims) tensor->mutable_tensor_shape()->add_dim()->set_size(dim);
}

void AddNeg(const std::string& name, const std::string& input, GraphDef* def) {
  NodeDef* node = AddNode(name, "Neg", def);
  node->add_input(input);
  AddNodeAttr("T", DT_FLOAT, node);
}

// Imports the bytes of `def` and fetches `fetch`.
absl::StatusOr<Tensor> LoadAndRun(const GraphDef& def, const std::string& fetch,
                                  const SessionOptions& options = {}) {
  const absl::StatusOr<GraphDef> read = ParseGraphDef(def.SerializeAsString());
  if (!read.ok()) return read.status();
  absl::StatusOr<std::unique_ptr<Session>> session = Session::Make(options);
  if (!session.ok()) return session.status();
  absl::Status status = (*session)->Create(*read);
  std::vector<Tensor> outputs;
  if (status.ok()) status = (*session)->Run({}, {fetch}, {}, &outputs);
  if (!status.ok()) return status;
  return outputs[0];
}

TEST(Extremes, SmallFileMayNotHaveAHugeTensor) {
  GraphDef def;
  AddZeros("c", {int64_t{1} << 60}, &def);
  ASSERT_LE(def.ByteSizeLong(), 100);
  EXPECT_THAT(
      LoadAndRun(def, "c"),
      StatusIs(kInvalidArgument, StartsWith("node 'c' (Const): attribute 'value' is a tensor of "
                                            "type float and shape [1152921504606846976]")));
  // Other dimensions also fail. With a higher limit, the import succeeds without allocating.
  GraphDef split;
  AddZeros("c", {int64_t{1} << 31, int64_t{1} << 31, 4}, &split);
  EXPECT_THAT(LoadAndRun(split, "c"),
              StatusIs(kInvalidArgument, HasSubstr("has more elements than fit in an int64")));

  ImportGraphDefOptions no_limit;
  no_limit.limits.max_constant_bytes = std::numeric_limits<int64_t>::max();
  Graph graph;
  EXPECT_THAT(ImportGraphDef(no_limit, def, &graph), IsOk());
}

// The session limits the memory of a run, whether an op computes the value or the file repeats it.
TEST(Extremes, SmallFileMayNotExceedTheSessionsMemory) {
  SessionOptions options;
  options.tensor_memory_limit_bytes = 32 << 20;
  GraphDef def;
  // The constant also exceeds the limit on constant folding.
  AddZeros("zeros", {16 << 20}, &def);
  AddZeros("few", {1 << 10}, &def);
  AddNeg("neg", "zeros", &def);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto session, Session::Make(options));
  GRADFLOW_ASSERT_OK(session->Create(def));
  std::vector<Tensor> outputs;
  for (int run = 0; run < 3; ++run) {
    EXPECT_THAT(session->Run({}, {"neg"}, {}, &outputs),
                StatusIs(absl::StatusCode::kResourceExhausted, StartsWith("node 'zeros' (Const)")));
    // The session remains usable.
    GRADFLOW_EXPECT_OK(session->Run({}, {"few"}, {}, &outputs));
  }
  outputs.clear();
  EXPECT_EQ(session->MemoryStats().bytes_in_use, 0);
}

TEST(Extremes, LargeRepeatedConstantHasItsValueInEveryRun) {
  GraphDef def;
  AddZeros("c", {3, 1 << 20}, &def);
  (*def.mutable_node(0)->mutable_attr())["value"].mutable_tensor()->add_float_val(1);
  (*def.mutable_node(0)->mutable_attr())["value"].mutable_tensor()->add_float_val(2.5);
  AddNeg("neg", "c", &def);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto session, Session::Make(SessionOptions()));
  GRADFLOW_ASSERT_OK(session->Create(def));
  for (int run = 0; run < 3; ++run) {
    std::vector<Tensor> outputs;
    GRADFLOW_ASSERT_OK(session->Run({}, {"c", "neg"}, {}, &outputs));
    EXPECT_EQ(outputs[0].shape(), TensorShape({3, 1 << 20}));
    const auto c = outputs[0].flat<float>();
    EXPECT_EQ(c(0), 1);
    EXPECT_EQ(std::count(c.begin(), c.end(), 2.5f), c.size() - 1);
    const auto neg = outputs[1].flat<float>();
    EXPECT_EQ(std::count(neg.begin(), neg.end(), -2.5f), c.size() - 1);
  }
}

constexpr int kStrings = 1 << 17;

// Makes a small graph whose node "out" repeats the characters of a string.
void MakeLongStrings(absl::string_view how, GraphDef* def) {
  const Scope scope = Scope::NewRootScope();
  const Scope out = scope.WithOpName("out");
  const std::string text(4096, 'x');
  const auto strings = [&](int64_t count, const std::string& s) {
    return Input::Initializer(s, TensorShape({count}));
  };
  if (how == "Const") {
    ops::Const(out, strings(kStrings, text));
  } else if (how == "Fill") {
    ops::Fill(out, {kStrings}, text);
  } else if (how == "Tile") {
    ops::Tile(out, strings(1, text), {kStrings});
  } else if (how == "BroadcastTo") {
    ops::BroadcastTo(out, text, {kStrings});
  } else if (how == "GatherV2") {
    // On average, the strings are short.
    const Output params =
        ops::ConcatV2(scope, InputList{strings(1, text), strings(kStrings, "")}, Input(0));
    ops::GatherV2(out, params, ops::Fill(scope, {kStrings}, 0), 0);
  } else if (how == "SelectV2") {
    ops::SelectV2(out, ops::Fill(scope, {kStrings}, true), text, strings(kStrings, ""));
  } else if (how == "Size of Const") {
    // Constant folding may compute these nodes.
    ops::Size(out, ops::Const(scope, strings(kStrings / 2, text)));
  } else if (how == "Add") {
    ops::Add(out, text, strings(kStrings, ""));
  } else {
    // Repeatedly doubles the string.
    Output sum = ops::Const(scope, text);
    for (int i = 0; i < 40; ++i) sum = ops::Add(scope, sum, sum);
    ops::Identity(out, sum);
  }
  GRADFLOW_ASSERT_OK(scope.ToGraphDef(def));
}

TEST(Extremes, RepeatedCharactersMayNotExceedTheSessionsLimit) {
  for (const char* how : {"Const", "Size of Const", "Fill", "Tile", "BroadcastTo", "GatherV2",
                          "SelectV2", "Add", "Add of sums"}) {
    SCOPED_TRACE(how);
    GraphDef def;
    MakeLongStrings(how, &def);
    EXPECT_LE(def.ByteSizeLong(), 20'000);
    SessionOptions options;
    // The strings fit into the limit, but not their characters.
    options.tensor_memory_limit_bytes = 64 << 20;
    options.graph_limits.max_constant_bytes = int64_t{1} << 30;
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto session, Session::Make(options));
    GRADFLOW_ASSERT_OK(session->Create(def));
    std::vector<Tensor> outputs;
    // The run fails before the allocation, and the error names the output.
    const char* const text = absl::StrContains(how, "Const")
                                 ? "): out of memory for the "
                                 : "): output 0: out of memory for the ";
    EXPECT_THAT(session->Run({}, {"out"}, {}, &outputs),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         AllOf(StartsWith("node '"), HasSubstr(text),
                               HasSubstr(" characters of a tensor of strings"))));
    EXPECT_EQ(session->MemoryStats().bytes_in_use, 0);
    EXPECT_LE(session->MemoryStats().peak_bytes_in_use, 64 << 20);
  }
}

TEST(Extremes, ChainOf200000NodesRuns) {
  constexpr int kNodes = 200'000;
  for (const bool reversed : {false, true}) {
    GraphDef def;
    AddZeros("n0", {}, &def);
    const auto name = [&](int i) { return absl::StrCat("n", i); };
    for (int i = 1; i < kNodes; ++i) AddNeg(name(i), name(i - 1), &def);
    if (reversed) std::reverse(def.mutable_node()->begin(), def.mutable_node()->end());
    EXPECT_THAT(LoadAndRun(def, name(kNodes - 1)), IsOk());
  }
}

// A thousand bytes ask for twenty million outputs.
TEST(Extremes, ManyNodesMayNotHaveAMillionOutputs) {
  GraphDef def;
  AddZeros("axis", {}, &def);
  AddZeros("x", {1 << 20}, &def);
  auto& axis = *def.mutable_node(0)->mutable_attr();
  axis["dtype"].set_type(DT_INT32);
  axis["value"].mutable_tensor()->set_dtype(DT_INT32);
  for (int i = 0; i < 20; ++i) {
    NodeDef* split = AddNode(absl::StrCat("split", i), "Split", &def);
    AddNodeAttr("num_split", 1 << 20, split);
    AddNodeAttr("T", DT_FLOAT, split);
    split->add_input("axis");
    split->add_input("x");
  }
  EXPECT_THAT(LoadAndRun(def, "split0:7"),
              StatusIs(kInvalidArgument,
                       "node 'split1' (Split): with this node, the list outputs of the graph have "
                       "2097150 elements, expected at most 1048576 "
                       "(GraphLimits::max_list_outputs)"));
}

// The limits apply to the whole graph of a session, even if many calls extend it.
TEST(Extremes, ManyExtendsShareTheLimits) {
  const auto limits = [](auto set) {
    SessionOptions options;
    set(&options.graph_limits);
    return options;
  };
  const auto graph = [](int i) {
    GraphDef def;
    AddZeros(absl::StrCat("x", i), {4}, &def);
    NodeDef* const split = AddNode(absl::StrCat("s", i), "Unpack", &def);
    AddNodeAttr("num", 4, split);
    AddNodeAttr("T", DT_FLOAT, split);
    split->add_input(absl::StrCat("x", i));
    FunctionDef* const function = def.mutable_library()->add_function();
    function->mutable_signature()->set_name(absl::StrCat("f", i));
    NodeDef* const node = function->add_node_def();
    node->set_name("n");
    node->set_op("NoOp");
    return def;
  };
  const auto one = static_cast<int64_t>(graph(0).ByteSizeLong());
  const struct {
    const char* name;
    SessionOptions options;
  } cases[] = {
      {"max_nodes", limits([](GraphLimits* l) { l->max_nodes = 3 * 3; })},
      {"max_functions", limits([](GraphLimits* l) { l->max_functions = 3; })},
      {"max_list_outputs", limits([](GraphLimits* l) { l->max_list_outputs = 3 * 3; })},
      {"max_constant_bytes", limits([](GraphLimits* l) { l->max_constant_bytes = 3 * 16; })},
      // The graph also has default attributes.
      {"max_file_bytes", limits([&](GraphLimits* l) { l->max_file_bytes = 3 * one + 100; })},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const auto session, Session::Make(c.options));
    for (int i = 0; i < 3; ++i) GRADFLOW_ASSERT_OK(session->Extend(graph(i)));
    // A failed call does not count against the limits.
    for (int repeat = 0; repeat < 2; ++repeat) {
      EXPECT_THAT(session->Extend(graph(3)),
                  StatusIs(kInvalidArgument, HasSubstr(absl::StrCat("GraphLimits::", c.name))));
    }
    std::vector<Tensor> outputs;
    EXPECT_THAT(session->Run({}, {"s2:3"}, {}, &outputs), IsOk());
  }
}

// Shape functions see the values of constants, and a few bytes may repeat many values.
TEST(Extremes, ShapesNeedFewValuesOfLargeConstants) {
  GraphDef def;
  for (int i = 0; i < 1000; ++i) {
    AddZeros(absl::StrCat("axes", i), {1 << 16}, &def);
    auto& attrs = *def.mutable_node(def.node_size() - 1)->mutable_attr();
    attrs["dtype"].set_type(DT_INT64);
    attrs["value"].mutable_tensor()->set_dtype(DT_INT64);
  }
  Graph graph;
  GRADFLOW_ASSERT_OK(ImportGraphDef({}, def, &graph));
  int decoded = 0;
  for (int i = 0; i < 1000; ++i) decoded += graph.ConstantValue(*graph.node(i), 0) != nullptr;
  EXPECT_EQ(decoded, 64);
  EXPECT_NE(graph.ConstantValue(*graph.node(0), 0), nullptr);
}

TEST(Extremes, NodeWith100000InputsRuns) {
  constexpr int kInputs = 100'000;
  GraphDef def;
  AddZeros("one", {}, &def);
  (*def.mutable_node(0)->mutable_attr())["value"].mutable_tensor()->add_float_val(1);
  NodeDef* sum = AddNode("sum", "AddN", &def);
  AddNodeAttr("T", DT_FLOAT, sum);
  AddNodeAttr("N", kInputs, sum);
  for (int i = 0; i < kInputs; ++i) sum->add_input("one");
  NodeDef* waits = AddNode("waits", "Identity", &def);
  AddNodeAttr("T", DT_FLOAT, waits);
  waits->add_input("sum");
  for (int i = 0; i < kInputs; ++i) waits->add_input("^one");
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor result, LoadAndRun(def, "waits"));
  EXPECT_EQ(result.scalar<float>()(), kInputs);

  // One input has another type, and another input is missing.
  GraphDef wrong = def;
  NodeDef* text = AddNode("text", "Placeholder", &wrong);
  AddNodeAttr("dtype", DT_INT32, text);
  wrong.mutable_node(1)->set_input(77'777, "text");
  EXPECT_THAT(LoadAndRun(wrong, "sum"),
              StatusIs(kInvalidArgument,
                       "node 'sum' (AddN): input inputs[77777] ('text') has type int32, "
                       "expected float (attribute T)"));
  def.mutable_node(1)->mutable_input()->RemoveLast();
  EXPECT_THAT(
      LoadAndRun(def, "sum"),
      StatusIs(kInvalidArgument, HasSubstr("expected 100000 inputs (inputs), but found 99999")));
}

// Lists of functions nested in attributes of functions.
TEST(Extremes, RejectsAListNested10000Deep) {
  constexpr int kDepth = 10'000;
  std::string text;
  for (int i = 0; i < kDepth; ++i) text += "list { func { attr { key: 'a' value { ";
  for (int i = 0; i < kDepth; ++i) text += "} } } }";
  EXPECT_THAT(
      ParseGraphDefText(absl::StrCat("node { name: 'n' attr { key: 'v' value { ", text, "} } }")),
      StatusIs(kInvalidArgument, AllOf(StartsWith("expected a GraphDef as text: line 1, column "),
                                       HasSubstr("deep"))));

  // Builds the binary file from the inside out: appends in reverse order and then reverses the
  // bytes.
  std::string backwards;
  const auto wrap = [&backwards](int field) {
    const size_t size = backwards.size();
    std::string length;
    for (size_t rest = size; rest >= 0x80; rest >>= 7) {
      length.push_back(static_cast<char>(rest | 0x80));
    }
    length.push_back(static_cast<char>(size >> (7 * length.size())));
    backwards.append(length.rbegin(), length.rend());
    backwards.push_back(static_cast<char>(field << 3 | 2));
  };
  for (int i = 0; i < kDepth; ++i) {
    for (const int field : {2, 2, 9, 1}) wrap(field);
  }
  for (const int field : {2, 5, 1}) wrap(field);
  std::reverse(backwards.begin(), backwards.end());
  EXPECT_THAT(
      ParseGraphDef(backwards),
      StatusIs(kInvalidArgument, AllOf(HasSubstr("in node[0].attr[''].value.list.func[0].attr['']"),
                                       HasSubstr("messages are nested deeper than 100 levels "
                                                 "(GraphLimits::max_depth)"))));
}

TEST(Extremes, RejectsACycleOf100000Nodes) {
  constexpr int kNodes = 100'000;
  GraphDef def;
  for (int i = 0; i < kNodes; ++i) {
    AddNeg(absl::StrCat("n", i), absl::StrCat("n", (i + 1) % kNodes), &def);
  }
  EXPECT_THAT(LoadAndRun(def, "n0"),
              StatusIs(kInvalidArgument, AllOf(StartsWith("the graph has a cycle: 'n"),
                                               HasSubstr(" -> (99991 more) -> 'n"))));
}

TEST(Extremes, RejectsANameOf10Megabytes) {
  const std::string name(10'000'000, 'n');
  const std::string error =
      "has 10000000 bytes, expected at most 10000 (GraphLimits::max_name_bytes)";
  GraphDef def;
  AddZeros(name, {}, &def);
  absl::StatusOr<Tensor> result = LoadAndRun(def, "n");
  EXPECT_THAT(result, StatusIs(kInvalidArgument, HasSubstr(absl::StrCat("...' ", error))));
  EXPECT_LT(result.status().message().size(), 1000);

  GraphDef op;
  AddNode("n", name, &op);
  EXPECT_THAT(LoadAndRun(op, "n"), StatusIs(kInvalidArgument, HasSubstr(error)));
  GraphDef attr;
  AddZeros("n", {}, &attr);
  AddNodeAttr("_" + name.substr(1), 1, attr.mutable_node(0));
  EXPECT_THAT(LoadAndRun(attr, "n"), StatusIs(kInvalidArgument, HasSubstr(error)));
  GraphDef input;
  AddNeg("n", name, &input);
  result = LoadAndRun(input, "n");
  EXPECT_THAT(result, StatusIs(kInvalidArgument, HasSubstr("...' names no node of the graph")));
  EXPECT_LT(result.status().message().size(), 1000);
  // The caller may use names of any length in calls.
  GraphDef good;
  AddZeros("n", {}, &good);
  EXPECT_THAT(LoadAndRun(good, name), StatusIs(absl::StatusCode::kNotFound));
}

// The messages of this file would take a hundred times its size in memory.
TEST(Extremes, RejectsAFileOfEmptyMessages) {
  std::string bytes;
  for (int i = 0; i < 20'000'000; ++i) bytes += std::string("\x0a\0", 2);
  GraphLimits limits;
  limits.max_message_bytes = int64_t{1} << 30;
  EXPECT_THAT(
      ParseGraphDef(bytes, limits),
      StatusIs(kInvalidArgument, HasSubstr("the file would take more than 1073741824 bytes")));
}

}  // namespace
}  // namespace gradflow
