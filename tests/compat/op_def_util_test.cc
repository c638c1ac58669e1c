// Tests of op definitions (invalid specs, attribute values, compatible versions), of registries,
// and of comparing, summarizing and downgrading GraphDefs.
#include "tensorflow/core/framework/op_def_util.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/graph_def_util.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_def_builder.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/status_matchers.h"
#include "tensorflow/core/util/equal_graph_def.h"

namespace tensorflow {
namespace op_def_util_test {

using ::tensorflow::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

OpDef Define(OpDefBuilder builder) {
  OpRegistrationData data;
  TF_EXPECT_OK(builder.Finalize(&data));
  return data.op_def;
}
OpDef::AttrDef AttrOf(const std::string& spec) {
  return Define(OpDefBuilder("Test").Attr(spec)).attr(0);
}

TEST(OpDefBuilder, ReadsReferencesListsAndSpaces) {
  const OpDefBuilder builder =
      OpDefBuilder("Test").Attr("n: int").Attr("t: type").Attr("s: string").Attr("l: list(type)");
  const OpDef def = Define(OpDefBuilder(builder)
                               .Input("a: Ref(n * t)")
                               .Input("b_1 : l")
                               .Output("c: Ref( t )")
                               .Output("d: n*int32"));
  EXPECT_EQ(SummarizeOpDef(def),
            "Op<name=Test; signature=a:Ref(n*t), b_1:l -> c:Ref(t), d:n*int32; attr=n:int,min=1; "
            "attr=t:type; attr=s:string; attr=l:list(type),min=1>");
}

TEST(OpDefBuilder, KeepsTheFirstErrorAndTheShapeFunction) {
  const auto fn = [](shape_inference::InferenceContext*) { return absl::OkStatus(); };
  OpRegistrationData data;
  EXPECT_THAT(OpDefBuilder("Test").SetShapeFn(fn).SetShapeFn(fn).Doc("a").Doc("b").Finalize(&data),
              StatusIs(error::INVALID_ARGUMENT, "SetShapeFn called twice for Op Test"));
  EXPECT_EQ(data.shape_inference_fn, nullptr);
  TF_ASSERT_OK(OpDefBuilder("Test").SetShapeFn(fn).Doc("What it does.").Finalize(&data));
  EXPECT_NE(data.shape_inference_fn, nullptr);
  EXPECT_EQ(data.op_def.summary(), "What it does.");
  EXPECT_FALSE(data.op_def.is_distributed_communication());
  EXPECT_THAT(
      OpDefBuilder("Test").Input("x: float").Doc("Sum.\n\nx: It.\ny: None.").Finalize(&data),
      StatusIs(error::INVALID_ARGUMENT,
               MatchesRegex("the documentation describes 'y', .* for Op Test")));
}

TEST(SummarizeOpDef, ListsFlagsAndValues) {
  const OpDef def = Define(OpDefBuilder("Test")
                               .Attr("s: {'a', 'b'} = 'a'")
                               .SetIsCommutative()
                               .SetIsAggregate()
                               .SetIsStateful()
                               .SetAllowsUninitializedInput()
                               .SetIsDistributedCommunication());
  EXPECT_EQ(SummarizeOpDef(def),
            "Op<name=Test; signature= -> ; attr=s:string,default=\"a\",allowed=[\"a\", \"b\"]; "
            "is_commutative=true; is_aggregate=true; is_stateful=true; "
            "allows_uninitialized_input=true; is_distributed_communication=true>");
}

TEST(CheckOpDeprecation, ComparesVersions) {
  TF_EXPECT_OK(CheckOpDeprecation(Define(OpDefBuilder("Test")), 100));
  const OpDef def = Define(OpDefBuilder("Test").Deprecated(10, "Use Other"));
  TF_EXPECT_OK(CheckOpDeprecation(def, 9));
  for (const int version : {10, 11}) {
    EXPECT_THAT(CheckOpDeprecation(def, version),
                StatusIs(error::UNIMPLEMENTED,
                         absl::StrCat("Op Test is not available in GraphDef version ", version,
                                      ". It has been removed in version 10. Use Other.")));
  }
}

// ---- Values of attributes ----

// Sets one value, or adds a list element, of type `type`.
void SetValue(const std::string& type, AttrValue* value) {
  AttrValue::ListValue* const list =
      absl::StartsWith(type, "list(") ? value->mutable_list() : nullptr;
  TensorProto tensor;
  Tensor(1.0f).AsProtoField(&tensor);
  if (type == "string") value->set_s("s");
  if (type == "int") value->set_i(5);
  if (type == "float") value->set_f(5);
  if (type == "bool") value->set_b(true);
  if (type == "type") value->set_type(DT_FLOAT);
  if (type == "shape") value->mutable_shape();
  if (type == "tensor") *value->mutable_tensor() = tensor;
  if (type == "func") value->mutable_func()->set_name("f");
  if (type == "placeholder") value->set_placeholder("p");
  if (type == "list(string)") list->add_s("s");
  if (type == "list(int)") list->add_i(5);
  if (type == "list(float)") list->add_f(5);
  if (type == "list(bool)") list->add_b(true);
  if (type == "list(type)") list->add_type(DT_FLOAT);
  if (type == "list(shape)") list->add_shape();
  if (type == "list(tensor)") *list->add_tensor() = tensor;
  if (type == "list(func)") list->add_func()->set_name("f");
}

TEST(ValidateAttrValue, NamesTheTypeItFinds) {
  const std::vector<std::string> kinds = {"string", "int",   "float",  "bool",
                                          "type",   "shape", "tensor", "func"};
  std::vector<std::string> types = kinds;
  for (const std::string& kind : kinds) types.push_back(absl::StrCat("list(", kind, ")"));
  std::vector<std::string> found = types;
  found.insert(found.end(), {"placeholder", "none", "list(none)"});
  for (const std::string& type : types) {
    const OpDef::AttrDef attr = AttrOf("a: " + type);
    const bool is_list = absl::StartsWith(type, "list(");
    for (const std::string& of : found) {
      SCOPED_TRACE(absl::StrCat(of, " for ", type));
      AttrValue value;
      if (of == "list(none)") value.mutable_list();
      SetValue(of, &value);
      OpDef::AttrDef any_length = attr;
      any_length.set_has_minimum(false);
      if (of == type || (is_list && (of == "none" || of == "list(none)"))) {
        TF_EXPECT_OK(ValidateAttrValue(value, any_length));
      } else {
        EXPECT_THAT(ValidateAttrValue(value, attr),
                    StatusIs(error::INVALID_ARGUMENT,
                             absl::StrCat("AttrValue had value with type '", of, "' when '", type,
                                          "' expected\n\t for attr 'a'")));
      }
    }
  }
}

TEST(ValidateAttrValue, ChecksLimitsAndAllowedValues) {
  const struct {
    const char* spec;
    std::function<void(AttrValue*)> set;
    const char* error;
  } cases[] = {
      {"a: int >= 5", [](AttrValue* v) { v->set_i(5); }, ""},
      {"a: int >= 5", [](AttrValue* v) { v->set_i(4); },
       "Value for attr 'a' of 4 must be at least minimum 5"},
      {"a: list(int) >= 0", [](AttrValue*) {}, ""},
      {"a: list(int) >= 1", [](AttrValue*) {},
       "Length for attr 'a' of 0 must be at least minimum 1"},
      {"a: {float, int32}", [](AttrValue* v) { v->set_type(DT_INT32); }, ""},
      {"a: {float, int32}", [](AttrValue* v) { v->set_type(DT_BOOL); },
       "Value for attr 'a' of bool is not in the list of allowed values: float, int32"},
      {"a: {'x', 'y'}", [](AttrValue* v) { v->set_s("y"); }, ""},
      {"a: type", [](AttrValue* v) { v->set_type(DT_FLOAT_REF); },
       "expected a non-reference type, but found DT_FLOAT_REF\n\t for attr 'a'"},
      {"a: {'x', 'y'}", [](AttrValue* v) { v->set_s("z"); },
       "Value for attr 'a' of \"z\" is not in the list of allowed values: \"x\", \"y\""},
      {"a: list({float, int32})",
       [](AttrValue* v) {
         v->mutable_list()->add_type(DT_INT32);
         v->mutable_list()->add_type(DT_FLOAT);
       },
       ""},
      {"a: list({float, int32})",
       [](AttrValue* v) {
         v->mutable_list()->add_type(DT_FLOAT);
         v->mutable_list()->add_type(DT_BOOL);
       },
       "Value for attr 'a' of bool is not in the list of allowed values: float, int32"},
      {"a: list({'x', 'y'})",
       [](AttrValue* v) {
         v->mutable_list()->add_s("y");
         v->mutable_list()->add_s("z");
       },
       "Value for attr 'a' of \"z\" is not in the list of allowed values: \"x\", \"y\""},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.spec);
    AttrValue value;
    c.set(&value);
    const absl::Status status = ValidateAttrValue(value, AttrOf(c.spec));
    EXPECT_EQ(status.code(), *c.error == 0 ? error::OK : error::INVALID_ARGUMENT);
    EXPECT_EQ(status.message(), c.error);
  }
}

TEST(OpDefParts, AreFoundByName) {
  OpDef def = Define(
      OpDefBuilder("Test").Attr("m: int").Attr("n: int").Input("a: float").Input("b: float"));
  EXPECT_EQ(FindAttrMutable("n", &def), def.mutable_attr(1));
  EXPECT_EQ(FindAttrMutable("o", &def), nullptr);
  EXPECT_EQ(FindInputArg("b", def), &def.input_arg(1));
  EXPECT_EQ(FindInputArg("m", def), nullptr);
}

// ---- Versions of ops ----

// Builds an op with the given attributes.
OpDef Versioned(const std::vector<std::string>& attrs) {
  OpDefBuilder builder("Test");
  for (const std::string& attr : attrs) builder.Attr(attr);
  return Define(builder);
}

TEST(OpDefCompatible, ChecksValuesAndSignatures) {
  using Attrs = std::vector<std::string>;
  const struct {
    Attrs before, after;
    const char* error;
  } cases[] = {
      {{"n: int >= 2"}, {"n: int >= 2"}, ""},
      {{"n: int >= 2"}, {"n: int >= 1"}, ""},
      {{"n: int >= 2"}, {"n: int"}, ""},
      {{"n: int >= 2"}, {"n: int >= 3"}, "Attr 'n' allows fewer values"},
      {{"n: int"}, {"n: int >= 3"}, "Attr 'n' allows fewer values"},
      {{"s: {'a', 'b'}"}, {"s: {'c', 'b', 'a'}"}, ""},
      {{"s: {'a', 'b'}"}, {"s: string"}, ""},
      {{"s: {'a', 'b'}"}, {"s: {'a', 'c'}"}, "Attr 's' allows fewer values"},
      {{"s: string"}, {"s: {'a', 'b'}"}, "Attr 's' allows fewer values"},
      {{"s: string"}, {"s: int"}, "Attr 's' changed type 'string' -> 'int'"},
      {{"s: string"}, {}, "Attr 's' removed"},
      {{}, {"s: string = 'a'"}, ""},
      {{}, {"s: string"}, "Attr 's' added without default"},
  };
  for (const auto& c : cases) {
    const OpDef before = Versioned(c.before), after = Versioned(c.after);
    const absl::Status status = OpDefCompatible(before, after);
    if (*c.error == 0) {
      TF_EXPECT_OK(status);
    } else {
      EXPECT_THAT(status,
                  StatusIs(error::INVALID_ARGUMENT,
                           absl::StrCat(c.error, "; Op 'Test' has changed from: ",
                                        SummarizeOpDef(before), " to: ", SummarizeOpDef(after))));
    }
  }
  const OpDef old_op = Define(OpDefBuilder("Test").Input("a: float").Output("b: float"));
  EXPECT_THAT(
      OpDefCompatible(old_op, Define(OpDefBuilder("Other"))),
      StatusIs(error::INVALID_ARGUMENT, StartsWith("Name mismatch, old: Test new: Other; Op 'O")));
  EXPECT_THAT(
      OpDefCompatible(old_op, Define(OpDefBuilder("Test").Input("a: int32").Output("b: float"))),
      StatusIs(error::INVALID_ARGUMENT, StartsWith("Input signature mismatch; ")));
  EXPECT_THAT(
      OpDefCompatible(old_op, Define(OpDefBuilder("Test").Input("a: float").Output("b: int32"))),
      StatusIs(error::INVALID_ARGUMENT, StartsWith("Output signature mismatch; ")));
}

TEST(OpDefDefaults, MayNotChange) {
  const struct {
    // An attribute of the old and of the new definition, or "" for no attribute.
    std::string before, after;
    const char* added_error;
    const char* error;
  } cases[] = {
      {"n: int = 1", "n: int = 1", "", ""},
      {"n: int", "n: int", "", ""},
      {"n: int = 1", "", "", ""},
      {"n: int = 1", "n: int = 2", "Can't change the default value of attr 'n' from 1 to 2",
       "Attr 'n' has changed it's default value; from 1 to 2"},
      {"n: int = 1", "n: int", "Can't change the default value of attr 'n' from 1 to no default",
       "Attr 'n' has removed it's default; from 1 to no default"},
      {"n: int", "n: int = 2", "Can't change the default value of attr 'n' from no default to 2",
       ""},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.before, " to ", c.after));
    const OpDef none = Versioned({}), before = Versioned({c.before});
    const OpDef after = c.after.empty() ? none : Versioned({c.after});
    EXPECT_EQ(OpDefAddedDefaultsUnchanged(none, before, after).message(), c.added_error);
    EXPECT_EQ(OpDefAttrDefaultsUnchanged(before, after).message(), c.error);
    // Defaults of older attributes may change.
    TF_EXPECT_OK(OpDefAddedDefaultsUnchanged(before, before, after));
  }
}

TEST(OpDefDescriptions, AreRemoved) {
  OpDef def = Define(OpDefBuilder("Test")
                         .Input("a: float")
                         .Output("b: float")
                         .Attr("n: int")
                         .Deprecated(3, "why")
                         .Doc("s\n\nd"));
  def.mutable_input_arg(0)->set_description("d");
  def.mutable_output_arg(0)->set_description("d");
  def.mutable_attr(0)->set_description("d");
  OpDef plain = def;
  RemoveNonDeprecationDescriptionsFromOpDef(&plain);
  EXPECT_EQ(plain.deprecation().explanation(), "why");
  OpList list;
  *list.add_op() = def;
  list.add_op()->set_description("d");
  RemoveDescriptionsFromOpList(&list);
  EXPECT_EQ(list.op(0).deprecation().explanation(), "");
  EXPECT_EQ(list.op(0).deprecation().version(), 3);
  EXPECT_FALSE(list.op(1).has_deprecation());
  EXPECT_EQ(list.op(1).description(), "");
  for (const OpDef* op : {static_cast<const OpDef*>(&plain), &list.op(0)}) {
    EXPECT_EQ(absl::StrCat(op->summary(), op->description(), op->input_arg(0).description(),
                           op->output_arg(0).description(), op->attr(0).description()),
              "");
    EXPECT_EQ(op->attr(0).name(), "n");
  }
}

TEST(AttrDefs, AreComparedAndHashed) {
  const OpDef::AttrDef attr = AttrOf("n: int >= 1 = 2");
  EXPECT_TRUE(AttrDefEqual(attr, attr));
  std::vector<OpDef::AttrDef> others = {AttrOf("m: int >= 1 = 2"),
                                        AttrOf("n: int >= 2 = 2"),
                                        AttrOf("n: int >= 1 = 3"),
                                        AttrOf("n: int >= 1"),
                                        attr,
                                        attr};
  others[4].mutable_allowed_values();
  others[5].mutable_allowed_values()->set_i(2);
  for (const OpDef::AttrDef& other : others) {
    EXPECT_FALSE(AttrDefEqual(attr, other));
    EXPECT_FALSE(AttrDefEqual(other, attr));
    EXPECT_NE(AttrDefHash(attr), AttrDefHash(other));
  }
  EXPECT_FALSE(AttrDefEqual(others[4], others[5]));
  // Lists with two attributes of the same name never compare equal.
  const auto list = [](const std::vector<OpDef::AttrDef>& attrs) {
    OpDef def;
    for (const OpDef::AttrDef& a : attrs) *def.add_attr() = a;
    return def.attr();
  };
  EXPECT_FALSE(RepeatedAttrDefEqual(list({attr, attr}), list({attr, attr})));
  EXPECT_FALSE(RepeatedAttrDefEqual(list({attr, others[0]}), list({attr, attr})));
  EXPECT_FALSE(RepeatedAttrDefEqual(list({attr}), list({})));
  EXPECT_NE(RepeatedAttrDefHash(list({attr, others[0]})), RepeatedAttrDefHash(list({others[0]})));
}

// ---- Registries ----

TEST(OpRegistry, CallsItsWatcher) {
  OpRegistry registry;
  std::vector<std::string> seen;
  bool keep = true;
  const OpRegistry::Watcher watcher = [&](const absl::Status& status, const OpDef& def) {
    seen.push_back(absl::StrCat(def.name(), " ", absl::StatusCodeToString(status.code())));
    return keep ? status : absl::OkStatus();
  };
  TF_EXPECT_OK(registry.SetWatcher(watcher));
  EXPECT_THAT(registry.SetWatcher(watcher),
              StatusIs(error::ALREADY_EXISTS, "the registry has a watcher already"));
  const auto add = [&](const std::string& name) {
    registry.Register([name](OpRegistrationData* data) {
      data->op_def.set_name(name);
      return name == "Bad" ? errors::Aborted("bad") : OpDefBuilder(name).Finalize(data);
    });
  };
  keep = false;
  add("One");
  add("One");
  TF_EXPECT_OK(registry.ProcessRegistrations());
  keep = true;
  add("Bad");
  EXPECT_THAT(seen, ElementsAre("One OK", "One ALREADY_EXISTS", "Bad ABORTED"));
  TF_EXPECT_OK(registry.SetWatcher(nullptr));
  add("_Two");
  EXPECT_EQ(seen.size(), 3u);
  TF_EXPECT_OK(registry.SetWatcher(watcher));
  add("One");
  // The first error stays.
  EXPECT_THAT(registry.ProcessRegistrations(), StatusIs(error::ABORTED, "bad"));

  EXPECT_EQ(registry.DebugString(false), "Op<name=One; signature= -> >\n");
  EXPECT_EQ(registry.DebugString(true),
            "Op<name=One; signature= -> >\nOp<name=_Two; signature= -> >\n");
  OpList ops;
  ops.add_op()->set_name("before");
  registry.Export(false, &ops);
  ASSERT_EQ(ops.op_size(), 1);
  EXPECT_EQ(ops.op(0).name(), "One");
  std::vector<OpDef> defs(5);
  registry.GetRegisteredOps(&defs);
  EXPECT_EQ(defs.size(), 2u);
}

TEST(OpRegistry, LooksUpOps) {
  OpList list;
  list.add_op()->set_name("One");
  list.add_op()->set_name("One");
  list.mutable_op(1)->set_is_stateful(true);
  const OpListOpRegistry of_list(&list);
  OpRegistry own;
  own.Register([](OpRegistrationData* data) { return OpDefBuilder("One").Finalize(data); });
  const OpRegistryInterface* registries[] = {&of_list, &own};
  for (const OpRegistryInterface* registry : registries) {
    const OpDef* def = nullptr;
    TF_ASSERT_OK(registry->LookUpOpDef("One", &def));
    EXPECT_EQ(def->name(), "One");
    EXPECT_FALSE(def->is_stateful());
    const OpRegistrationData* data = nullptr;
    TF_ASSERT_OK(registry->LookUp("One", &data));
    EXPECT_EQ(&data->op_def, def);
    EXPECT_THAT(registry->LookUpOpDef("Two", &def),
                StatusIs(error::NOT_FOUND, "Op type not registered 'Two'"));
    EXPECT_EQ(def, nullptr);
    EXPECT_EQ(registry->LookUp("Two", &data).code(), error::NOT_FOUND);
    EXPECT_EQ(data, nullptr);
  }
  EXPECT_NE(of_list.LookUp("One"), nullptr);
  EXPECT_EQ(of_list.LookUp("Two"), nullptr);
  const OpDef* def = nullptr;
  EXPECT_THAT(OpRegistry::Global()->LookUpOpDef("MatMull", &def),
              StatusIs(error::NOT_FOUND, StartsWith("Op type not registered 'MatMull': ")));
}

// ---- Graphs ----

TEST(GraphDefUtil, SummarizesAndValidates) {
  GraphDef graph;
  graph.mutable_versions()->set_producer(7);
  graph.add_node()->set_name("a");
  graph.mutable_node(0)->set_op("Op");
  graph.add_node()->set_name("b");
  graph.mutable_library()->add_function()->mutable_signature()->set_name("f");
  EXPECT_EQ(SummarizeGraphDef(graph),
            "versions = producer: 7;\n{{node a}} = Op[]();\n{{node b}} = []();\n"
            "signature { name: \"f\" };\n");
  TF_EXPECT_OK(ValidateExternalGraphDefSyntax(graph));
  graph.mutable_node(1)->set_name("_b");
  EXPECT_THAT(ValidateExternalGraphDefSyntax(graph),
              StatusIs(error::INVALID_ARGUMENT, HasSubstr("Illegal op name '_b'")));
}

TEST(GraphDefUtil, RemovesDefaultsThatTheConsumerDoesNotKnow) {
  OpList newer, older;
  *newer.add_op() =
      Define(OpDefBuilder("Op").Attr("old: int = 1").Attr("new: int = 2").Attr("needed: int"));
  *newer.add_op() = Define(OpDefBuilder("New"));
  *older.add_op() = Define(OpDefBuilder("Op").Attr("old: int = 1"));
  const OpListOpRegistry producer(&newer), consumer(&older);
  const auto node = [](const std::vector<std::pair<const char*, int>>& attrs) {
    NodeDef def;
    def.set_name("n");
    def.set_op("Op");
    for (const auto& [name, value] : attrs) AddNodeAttr(name, value, &def);
    return def;
  };
  GraphDef graph;
  *graph.add_node() = node({{"old", 1}, {"new", 2}, {"_hidden", 3}});
  *graph.add_node() = node({{"old", 1}, {"new", 3}, {"needed", 0}});
  graph.add_node()->set_op("f");
  FunctionDef* const function = graph.mutable_library()->add_function();
  function->mutable_signature()->set_name("f");
  *function->add_node_def() = node({{"new", 2}});
  GraphDef same = graph;
  std::set<std::pair<std::string, std::string>> removed;
  TF_ASSERT_OK(RemoveNewDefaultAttrsFromGraphDef(&graph, consumer, producer, &removed));
  EXPECT_THAT(removed, ElementsAre(std::pair("Op", "new")));
  EXPECT_EQ(AttrSlice(graph.node(0)).DebugString(), "_hidden=3\nold=1");
  EXPECT_EQ(AttrSlice(graph.node(1)).DebugString(), "needed=0\nnew=3\nold=1");
  EXPECT_EQ(graph.library().function(0).node_def(0).attr_size(), 0);
  TF_ASSERT_OK(RemoveNewDefaultAttrsFromGraphDef(&same, consumer, producer, nullptr));
  EXPECT_EQ(same.node(0).attr_size(), 2);

  *graph.add_node() = node({{"none", 1}});
  EXPECT_THAT(RemoveNewDefaultAttrsFromGraphDef(&graph, consumer, producer, &removed),
              StatusIs(error::INVALID_ARGUMENT,
                       absl::StrCat(
                           "Attr 'none' missing in producer's OpDef: ", SummarizeOpDef(newer.op(0)),
                           " but found in node: {{node n}}")));
  graph.mutable_node(3)->set_op("New");
  EXPECT_THAT(RemoveNewDefaultAttrsFromGraphDef(&graph, consumer, producer, &removed),
              StatusIs(error::NOT_FOUND, "Op type not registered 'New'"));
  EXPECT_THAT(RemoveNewDefaultAttrsFromGraphDef(&graph, producer, consumer, &removed),
              StatusIs(error::NOT_FOUND, "Op type not registered 'New'"));
  // Nodes of functions are also checked.
  graph.mutable_node()->RemoveLast();
  AddNodeAttr("none", 1, graph.mutable_library()->mutable_function(0)->mutable_node_def(0));
  EXPECT_THAT(RemoveNewDefaultAttrsFromGraphDef(&graph, consumer, producer, nullptr),
              StatusIs(error::INVALID_ARGUMENT, HasSubstr("Attr 'none' missing")));
}

TEST(GraphDefUtil, AddsDefaultsFromAnOffset) {
  OpList ops;
  *ops.add_op() = Define(OpDefBuilder("Op").Attr("n: int = 3"));
  const OpListOpRegistry registry(&ops);
  GraphDef graph;
  graph.add_node()->set_op("Op");
  for (const int offset : {-1, 2}) {
    EXPECT_THAT(AddDefaultAttrsToGraphDef(&graph, registry, offset),
                StatusIs(error::INVALID_ARGUMENT,
                         absl::StrCat("Tried to add default attrs to GraphDef starting at offset ",
                                      offset, " with total nodes in graph: 1")));
  }
  TF_EXPECT_OK(AddDefaultAttrsToGraphDef(&graph, registry, 1));
  EXPECT_EQ(graph.node(0).attr_size(), 0);
  TF_EXPECT_OK(AddDefaultAttrsToGraphDef(&graph, registry, 0));
  EXPECT_EQ(graph.node(0).attr().at("n").i(), 3);
}

TEST(EqualNodeDef, DescribesTheFirstDifference) {
  NodeDef node;
  node.set_name("n");
  node.set_op("Op");
  node.set_device("/cpu:0");
  for (const char* input : {"a", "b:0", "^d", "^c"}) node.add_input(input);
  AddNodeAttr("i", 1, &node);
  AddNodeAttr("_hidden", 1, &node);
  const struct {
    std::function<void(NodeDef*)> change;
    const char* diff;
  } cases[] = {
      {[](NodeDef* n) { n->set_input(0, "a:0"); }, ""},
      {[](NodeDef* n) { n->set_input(1, "b"); }, ""},
      {[](NodeDef* n) { n->mutable_input()->SwapElements(2, 3); }, ""},
      {[](NodeDef* n) { AddNodeAttr("_other", 1, n); }, ""},
      {[](NodeDef* n) { n->mutable_attr()->at("_hidden").set_i(2); }, ""},
      {[](NodeDef* n) { n->set_name("m"); },
       "Node named 'm' has name 'm' that does not match expected 'n'"},
      {[](NodeDef* n) { n->set_op("Other"); },
       "Node named 'n' has op 'Other' that does not match expected 'Op'"},
      {[](NodeDef* n) { n->set_device("/gpu:0"); },
       "Node named 'n' has device '/gpu:0' that does not match expected '/cpu:0'"},
      {[](NodeDef* n) { n->add_input("^e"); }, "Node named 'n' has 5 inputs, expected 4"},
      {[](NodeDef* n) { n->mutable_input()->SwapElements(0, 1); },
       "Node named 'n' has input 0 'b' that does not match expected 'a'"},
      {[](NodeDef* n) { n->set_input(1, "b:1"); },
       "Node named 'n' has input 1 'b:1' that does not match expected 'b'"},
      {[](NodeDef* n) { n->set_input(2, "^e"); },
       "Node named 'n' has input 3 '^e' that does not match expected '^d'"},
      {[](NodeDef* n) { n->mutable_attr()->at("i").set_i(2); },
       "Node named 'n' has attr 'i' with value 2 in actual, but 1 in expected"},
      {[](NodeDef* n) { AddNodeAttr("j", 2, n); },
       "Node named 'n' has attr 'j' with value 2 in actual, which expected does not have"},
      {[](NodeDef* n) { n->mutable_attr()->erase("i"); },
       "Node named 'n' has attr 'i' with value 1 in expected, which actual does not have"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.diff);
    NodeDef changed = node;
    c.change(&changed);
    const bool equal = *c.diff == 0;
    std::string diff;
    EXPECT_EQ(EqualNodeDef(changed, node, &diff), equal);
    EXPECT_EQ(diff, c.diff);
    EXPECT_EQ(EqualNodeDef(changed, node, nullptr), equal);
    EXPECT_EQ(NodeDefHash(changed) == NodeDefHash(node), equal);
  }
}

TEST(EqualGraphDef, NamesNodesThatAreMissing) {
  GraphDef one, two;
  one.add_node()->set_name("a");
  two = one;
  two.add_node()->set_name("b");
  std::string diff;
  EXPECT_FALSE(EqualGraphDef(one, two, &diff));
  EXPECT_EQ(diff, "Did not find expected node '{{node b}} = []()'");
  EXPECT_FALSE(EqualGraphDef(two, one, &diff));
  EXPECT_EQ(diff, "Found unexpected node '{{node b}} = []()'");
  EXPECT_NE(GraphDefHash(one), GraphDefHash(two));
  EqualGraphDefOptions all;
  all.ignore_internal_attrs = false;
  two = one;
  AddNodeAttr("_hidden", 1, two.mutable_node(0));
  EXPECT_EQ(GraphDefHash(one), GraphDefHash(two));
  EXPECT_NE(GraphDefHash(one, all), GraphDefHash(two, all));
}

}  // namespace op_def_util_test
}  // namespace tensorflow
