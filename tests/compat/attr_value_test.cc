// Tests of attribute values: setting, hashing, placeholders, and reading of values that are
// messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/status_matchers.h"

namespace tensorflow {
namespace attr_value_test {

using ::tensorflow::testing::StatusIs;
using ::testing::HasSubstr;

TensorShapeProto Shape(const std::vector<int64_t>& sizes) {
  TensorShapeProto proto;
  TensorShape(sizes).AsProto(&proto);
  return proto;
}

TensorProto TensorOf(int32 value) {
  TensorProto proto;
  test::AsScalar<int32>(value).AsProtoField(&proto);
  return proto;
}

// Returns a function with the attributes a0, a1, ... for the values.
NameAttrList Function(const std::string& name, const std::vector<AttrValue>& values = {}) {
  NameAttrList function;
  function.set_name(name);
  for (const AttrValue& value : values) {
    (*function.mutable_attr())[absl::StrCat("a", function.attr_size())] = value;
  }
  return function;
}

AttrValue Placeholder(const std::string& name) {
  AttrValue value;
  value.set_placeholder(name);
  return value;
}

template <typename T>
AttrValue Value(const T& value) {
  AttrValue attr;
  SetAttrValue(value, &attr);
  return attr;
}

TEST(SetAttrValue, StoresMessages) {
  EXPECT_EQ(Value(Shape({2, 3})).shape().DebugString(), Shape({2, 3}).DebugString());
  EXPECT_EQ(Value(TensorOf(4)).tensor().DebugString(), TensorOf(4).DebugString());
  EXPECT_EQ(Value(Function("f")).func().name(), "f");
}

TEST(SetAttrValue, ReplacesTheValueByAList) {
  const std::vector<const char*> texts = {"x", "y"};
  const std::vector<double> reals = {1.5, -2};
  const std::vector<TensorShape> shapes = {TensorShape({2}), TensorShape()};
  const std::vector<TensorShapeProto> shape_protos = {Shape({4}), Shape({})};
  const std::vector<TensorProto> tensors = {TensorOf(1), TensorOf(2)};
  const std::vector<NameAttrList> functions = {Function("f"), Function("g")};
  const struct {
    std::function<void(AttrValue*)> set;
    const char* text;
  } cases[] = {
      {[&](AttrValue* v) { SetAttrValue(gtl::ArraySlice<const char*>(texts), v); },
       "list { s: \"x\" s: \"y\" }"},
      {[&](AttrValue* v) { SetAttrValue(gtl::ArraySlice<double>(reals), v); },
       "list { f: 1.5 f: -2 }"},
      {[&](AttrValue* v) { SetAttrValue(gtl::ArraySlice<TensorShape>(shapes), v); },
       "list { shape { dim { size: 2 } } shape { } }"},
      {[&](AttrValue* v) { SetAttrValue(gtl::ArraySlice<TensorShapeProto>(shape_protos), v); },
       "list { shape { dim { size: 4 } } shape { } }"},
      {[&](AttrValue* v) { SetAttrValue(gtl::ArraySlice<TensorProto>(tensors), v); },
       "list { tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 } "
       "tensor { dtype: DT_INT32 tensor_shape { } int_val: 2 } }"},
      {[&](AttrValue* v) { SetAttrValue(gtl::ArraySlice<NameAttrList>(functions), v); },
       "list { func { name: \"f\" } func { name: \"g\" } }"},
      {[&](AttrValue* v) {
         SetAttrValue({true, false}, v);
       },
       "list { b: true b: false }"},
      {[&](AttrValue* v) {
         MoveAttrValue({"x", "y"}, v);
       },
       "list { s: \"x\" s: \"y\" }"},
  };
  for (const auto& c : cases) {
    // The call must remove existing elements of any type.
    AttrValue value;
    value.mutable_list()->add_i(7);
    value.mutable_list()->add_func()->set_name("old");
    c.set(&value);
    EXPECT_EQ(value.ShortDebugString(), c.text);
  }
}

// Values of all types that differ from each other.
std::vector<AttrValue> DifferentValues() {
  std::vector<AttrValue> values = {AttrValue(),
                                   Value("x"),
                                   Value("y"),
                                   Value(1),
                                   Value(2),
                                   Value(1.0f),
                                   Value(2.0f),
                                   Value(true),
                                   Value(false),
                                   Value(DT_FLOAT),
                                   Value(DT_DOUBLE),
                                   Value(Shape({})),
                                   Value(Shape({1, 2})),
                                   Value(Shape({2, 1})),
                                   Value(Shape({2})),
                                   Value(PartialTensorShape()),
                                   Value(TensorOf(1)),
                                   Value(TensorOf(2)),
                                   Placeholder("x"),
                                   Placeholder("y"),
                                   Value(Function("f")),
                                   Value(Function("g")),
                                   Value(Function("f", {Value(1)})),
                                   Value(Function("f", {Value(2)})),
                                   Value(Function("f", {Value(1), Value(2)})),
                                   Value(Function("f", {Value(2), Value(2)})),
                                   Value(Function("f", {Value(2), Value(1)}))};
  Tensor floats = test::AsTensor<float>({0, 0});
  values.push_back(Value(floats));
  values.push_back(Value(test::AsTensor<int32>({0, 0})));
  values.push_back(Value(test::AsTensor<float>({0, 0}, {1, 2})));
  // Adds an empty list, which has no type, and a list of one element for each kind of value.
  AttrValue empty;
  empty.mutable_list();
  const size_t singles = values.size();
  values.push_back(empty);
  for (size_t i = 0; i < singles; ++i) {
    AttrValue list;
    AttrValue::ListValue* const l = list.mutable_list();
    const AttrValue& v = values[i];
    if (v.value_case() == AttrValue::kS) l->add_s(v.s());
    if (v.value_case() == AttrValue::kI) l->add_i(v.i() + 10);
    if (v.value_case() == AttrValue::kF) l->add_f(v.f() + 0.5f);
    if (v.value_case() == AttrValue::kB) l->add_b(v.b());
    if (v.value_case() == AttrValue::kType) l->add_type(static_cast<DataType>(v.type() + 20));
    if (v.shape().dim_size() > 0) *l->add_shape() = v.shape();
    if (v.value_case() == AttrValue::kTensor) *l->add_tensor() = v.tensor();
    if (v.value_case() == AttrValue::kFunc) *l->add_func() = v.func();
    if (list.list().ByteSizeLong() > 0) values.push_back(list);
  }
  AttrValue two;
  two.mutable_list()->add_s("x");
  two.mutable_list()->add_s("y");
  values.push_back(two);
  std::swap(*two.mutable_list()->mutable_s(0), *two.mutable_list()->mutable_s(1));
  values.push_back(two);
  return values;
}

TEST(AttrValueHash, DiffersForDifferentValues) {
  const std::vector<AttrValue> values = DifferentValues();
  ASSERT_GT(values.size(), 55u);
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = 0; j < values.size(); ++j) {
      EXPECT_EQ(AttrValueHash(values[i]) == AttrValueHash(values[j]), i == j)
          << values[i].ShortDebugString() << " and " << values[j].ShortDebugString();
    }
    EXPECT_EQ(FastAttrValueHash(values[i]), AttrValueHash(values[i]));
    EXPECT_EQ(AttrValueHash(AttrValue(values[i])), AttrValueHash(values[i]));
  }
}

// For a tensor of more than 32 MiB, only the type and the shape are hashed.
TEST(AttrValueHash, ReadsTensorsOfUpTo32Megabytes) {
  const auto hash = [](int64_t size, int value) {
    TensorProto proto;
    proto.set_dtype(DT_INT8);
    proto.mutable_tensor_shape()->add_dim()->set_size(size);
    proto.add_int_val(value);
    return AttrValueHash(Value(proto));
  };
  constexpr int64_t kLargest = 32 << 20;
  EXPECT_NE(hash(kLargest, 1), hash(kLargest, 2));
  EXPECT_EQ(hash(kLargest + 1, 1), hash(kLargest + 1, 2));
  EXPECT_NE(hash(kLargest + 1, 1), hash(kLargest + 2, 1));
}

TEST(AttrValueHash, TakesTensorsThatAreNotValid) {
  TensorProto proto;
  proto.set_dtype(DT_INT32);
  proto.mutable_tensor_shape()->set_unknown_rank(true);
  EXPECT_EQ(attr_value_util_internal::TensorByteSize(proto), -1);
  EXPECT_NE(AttrValueHash(Value(proto)), AttrValueHash(Value(TensorOf(0))));
  proto.clear_tensor_shape();
  proto.mutable_tensor_shape()->add_dim()->set_size(3);
  EXPECT_EQ(attr_value_util_internal::TensorByteSize(proto), 12);
  proto.mutable_tensor_shape()->add_dim()->set_size(int64_t{1} << 60);
  EXPECT_LT(attr_value_util_internal::TensorByteSize(proto), 0);
}

TEST(Placeholders, AreFoundInFunctionsAndLists) {
  AttrValue list;
  *list.mutable_list()->add_func() = Function("f");
  EXPECT_FALSE(HasPlaceHolder(list));
  *list.mutable_list()->add_func() = Function("g", {Value(1), Placeholder("P")});
  const struct {
    AttrValue value;
    bool has;
  } cases[] = {{AttrValue(), false},
               {Value("$P"), false},
               {Value(std::vector<int>{1, 2}), false},
               {Placeholder("P"), true},
               {Value(Function("f", {Value(1), Value("P")})), false},
               {Value(Function("f", {Value(1), Placeholder("P")})), true},
               {Value(Function("f", {Value(Function("g", {Placeholder("P")}))})), true},
               {list, true}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.value.ShortDebugString());
    EXPECT_EQ(HasPlaceHolder(c.value), c.has);
    AttrValue value = c.value;
    EXPECT_TRUE(SubstitutePlaceholders(
        [](const std::string& name, AttrValue* v) { return SetAttrValue(name + "!", v), true; },
        &value));
    EXPECT_FALSE(HasPlaceHolder(value));
    EXPECT_EQ(AreAttrValuesEqual(value, c.value), !c.has);
    EXPECT_EQ(value.ShortDebugString().find("\"P!\"") != std::string::npos, c.has);
    value = c.value;
    EXPECT_EQ(SubstitutePlaceholders([](const std::string&, AttrValue*) { return false; }, &value),
              !c.has);
    EXPECT_TRUE(AreAttrValuesEqual(value, c.value));
  }
}

// ---- GetNodeAttr ----

// Reads attribute `name` twice, so that the second read replaces the first value. Returns the text.
template <typename T, typename Text>
std::string Read(const AttrSlice& attrs, const char* name, const Text& text) {
  T value{};
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = GetNodeAttr(attrs, name, &value);
    if (!status.ok()) return status.ToString();
  }
  return text(value);
}

TEST(GetNodeAttr, ReadsMessages) {
  NodeDef node;
  AddNodeAttr("shape", Shape({2, 3}), &node);
  AddNodeAttr("tensor", TensorOf(7), &node);
  AddNodeAttr("func", Function("f"), &node);
  AddNodeAttr("shapes", std::vector<TensorShapeProto>{Shape({2}), Shape({3})}, &node);
  AddNodeAttr("partial", std::vector<PartialTensorShape>{{2}, {-1}}, &node);
  AddNodeAttr("funcs", std::vector<NameAttrList>{Function("f"), Function("g")}, &node);
  AddNodeAttr("strings", {"x", "y"}, &node);
  AddNodeAttr("int", 1, &node);
  const auto name = [](const NameAttrList& f) { return f.name(); };
  const auto pointer_name = [](const NameAttrList* f) { return f->name(); };
  const auto message = [](const auto& m) { return m.ShortDebugString(); };
  const auto pointer_message = [](const auto* m) { return m->ShortDebugString(); };
  const auto join = [](const auto& item) {
    return [item](const auto& list) {
      std::string text;
      for (const auto& i : list) absl::StrAppend(&text, item(i), ";");
      return text;
    };
  };
  const auto text = [](const TensorShape& shape) { return shape.DebugString(); };
  const auto string = [](const std::string* s) { return *s; };
  // Readers by the attribute that they read, with the expected text.
  using Reader = std::function<std::string(const char*)>;
  const auto reader = [&](auto type, auto print) -> Reader {
    return [&node, print](const char* attr) { return Read<decltype(type)>(node, attr, print); };
  };
  const struct {
    const char* attr;
    Reader read;
    const char* text;
  } cases[] = {
      {"shape", reader(TensorShapeProto(), message), "dim { size: 2 } dim { size: 3 }"},
      {"tensor", reader(TensorProto(), message), "dtype: DT_INT32 tensor_shape { } int_val: 7"},
      {"tensor", reader(static_cast<const TensorProto*>(nullptr), pointer_message),
       "dtype: DT_INT32 tensor_shape { } int_val: 7"},
      {"func", reader(NameAttrList(), name), "f"},
      {"func", reader(static_cast<const NameAttrList*>(nullptr), pointer_name), "f"},
      {"funcs", reader(std::vector<NameAttrList>(), join(name)), "f;g;"},
      {"shapes", reader(std::vector<TensorShapeProto>(), join(message)),
       "dim { size: 2 };dim { size: 3 };"},
      {"shapes", reader(std::vector<const TensorShapeProto*>(), join(pointer_message)),
       "dim { size: 2 };dim { size: 3 };"},
      {"shapes", reader(std::vector<TensorShape>(), join(text)), "[2];[3];"},
      {"strings", reader(std::vector<const std::string*>(), join(string)), "x;y;"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.attr);
    EXPECT_EQ(c.read(c.attr), c.text);
    EXPECT_THAT(c.read("int"), HasSubstr("INVALID_ARGUMENT: attribute int: "));
    EXPECT_EQ(c.read("none"), "NOT_FOUND: attribute none is missing");
  }
  std::vector<TensorShape> shapes = {TensorShape({9})};
  EXPECT_THAT(GetNodeAttr(node, "partial", &shapes), StatusIs(error::INVALID_ARGUMENT));
  EXPECT_EQ(shapes.size(), 1u);
}

TEST(AttrSlice, FindsAndPrintsAttributes) {
  NodeDef node;
  node.set_name("n");
  node.set_op("Op");
  AddNodeAttr("b", 2, &node);
  AddNodeAttr("a", 1, &node);
  AddNodeAttr("s", "text", &node);
  const AttrSlice of_node(node), of_map(&node.attr());
  for (const AttrSlice& attrs : {of_node, of_map}) {
    const AttrValue* value = nullptr;
    TF_EXPECT_OK(attrs.Find("b", &value));
    EXPECT_EQ(value, &node.attr().at("b"));
    TF_EXPECT_OK(attrs.FindByString("a", &value));
    EXPECT_EQ(value, &node.attr().at("a"));
    EXPECT_EQ(attrs.DebugString(), "a=1\nb=2\ns=\"text\"");
    EXPECT_EQ(GetNodeAttrString(attrs, "s"), "text");
    EXPECT_EQ(GetNodeAttrString(attrs, "a"), "");
  }
  const AttrValue* value = &node.attr().at("a");
  EXPECT_THAT(of_map.Find("c", &value),
              StatusIs(error::NOT_FOUND, "No attr named 'c' in NodeDef:"));
  EXPECT_EQ(value, nullptr);
  // Hidden attributes are looked up often, so their error lacks the node's text.
  EXPECT_THAT(of_node.Find("c", &value),
              StatusIs(error::NOT_FOUND, "No attr named 'c' in NodeDef:\n\t [[{{node n}}]]"));
  EXPECT_THAT(of_node.Find("_c", &value),
              StatusIs(error::NOT_FOUND, "No attr named '_c' in NodeDef:"));
  EXPECT_EQ(of_node.SummarizeNode(), SummarizeNodeDef(node));
  EXPECT_THAT(of_map.SummarizeNode(), HasSubstr("[{{node }} = [a=1, b=2, s=\"text\"]()]"));
}

TEST(AttrSlice, ComparesNamesAndValues) {
  NodeDef a, same, other_name, other_value, more;
  for (NodeDef* node : {&a, &same, &other_value, &more}) AddNodeAttr("i", 1, node);
  AddNodeAttr("j", 1, &other_name);
  other_value.mutable_attr()->at("i").set_i(2);
  AddNodeAttr("j", 1, &more);
  AttrSlice::Scratch scratch;
  EXPECT_TRUE(AttrSlice(a).EqualAttrs(same, &scratch));
  for (const NodeDef* other : {&other_name, &other_value, &more}) {
    EXPECT_FALSE(AttrSlice(a).EqualAttrs(*other, &scratch));
    EXPECT_FALSE(AttrSlice(*other).EqualAttrs(a, &scratch));
  }
}

}  // namespace attr_value_test
}  // namespace tensorflow
