// Golden tests of the wrapper generator with a registry of toy ops. The expected files are in
// tests/data/golden. After an intended change, run this test with GRADFLOW_UPDATE_GOLDEN=1 and
// review the diff.
//
// The golden files are also compiled and used here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "gradflow/codegen/wrapper_generator.h"
#include "gradflow/codegen/wrapper_text.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/graph/scope.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/data/golden/toy_ops.cc"
#include "tests/data/golden/toy_ops.h"

namespace gradflow {
namespace constant {
// Registers Const and HostConst (ops/array/constant.cc).
void Register(Registry& registry);
}  // namespace constant

namespace testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kGoldenDir[] = "tests/data/golden";

const Registry& ToyRegistry() {
  static const Registry* registry = [] {
    auto* r = new Registry;
    constant::Register(*r);
    r->Op("ToySink")
        .Group("toy_ops")
        .Input("x: T")
        .Attr("T: type")
        .Shape(UnknownShape)
        .Doc("Takes a tensor.\n\nx: The tensor.\nT: Its type.");
    r->Op("ToyJoin")
        .Group("toy_ops")
        .Alias("ToyConcat")
        .Alias("ToyGlue")
        .Rename("join_dim", "axis")
        .Input("join_dim: int32")
        .Input("values: N * T")
        .Output("output: T")
        .Attr("N: int >= 1")
        .Attr("T: type")
        .Shape(UnknownShape)
        .Doc(R"(Joins tensors along `join_dim`.

A paragraph that is long enough to be wrapped, since what it says about joining does not fit on one
line of a hundred columns.

    a formula = is left(as it is)

And one more.

join_dim: The dimension.
values: Some tensors.
output: All of them, along `join_dim`.
N: How many.
T: Their type.)");
    r->Op("ToySplit")
        .Group("toy_ops")
        .Input("value: T")
        .Output("first: T")
        .Output("parts: num * T")
        .Output("count: int32")
        .Attr("T: type")
        .Attr("num: int >= 0")
        .Shape(UnknownShape)
        .Doc(
            "Splits.\n\nvalue: A tensor.\nfirst: One.\nparts: The rest.\ncount: Some.\n"
            "num: How many.\nT: Type.");
    r->Op("ToyList")
        .Group("toy_ops")
        .Input("inputs: T")
        .Output("outputs: T")
        .Attr("T: list(type) >= 1")
        .Shape(UnknownShape)
        .Doc("Lists.\n\ninputs: In.\noutputs: Out.\nT: Types.");
    r->Op("ToySource")
        .Group("toy_ops")
        .Output("node: dtype")
        .Attr("dtype: type")
        .Attr("s: string")
        .Attr("i: int")
        .Attr("f: float")
        .Attr("b: bool")
        .Attr("shape: shape")
        .Attr("t: tensor")
        .Attr("ls: list(string)")
        .Attr("li: list(int)")
        .Shape(UnknownShape)
        .Doc("Needs every attribute.");
    r->Op("ToyOptions")
        .Group("toy_ops")
        .Input("default: float")
        .Output("operation: float")
        .Output("output: float")
        .Attr("s: string = 'a\"b'")
        .Attr("num_bits: int = -8")
        .Attr("small: float = 0.1")
        .Attr("large: float = 1e30")
        .Attr("whole: float = 3")
        .Attr("flag: bool = true")
        .Attr("out_type: {int32, int64} = DT_INT64")
        .Attr("shape: shape = { dim { size: 2 } dim { size: -1 } }")
        .Attr("any: shape = { unknown_rank: true }")
        .Attr("strings: list(string) = ['x', 'y']")
        .Attr("axes: list(int) = [1, 2]")
        .Attr("floats: list(float) = []")
        .Attr("bools: list(bool) = [true, false]")
        .Attr("types: list(type) = [DT_FLOAT]")
        .Attr("shapes: list(shape) = []")
        .Attr(
            "color: tensor = { dtype: DT_UINT8 tensor_shape { dim { size: 2 } } int_val: 255 "
            "int_val: 0 }")
        .Attr("toy_options: int = 0")
        .Attr("class: int = 0")
        .Shape(UnknownShape)
        .Doc("Has every kind of default.\n\nnum_bits: The bits.\nclass: A word of C++.");
    r->Op("ToyCall")
        .Group("toy_ops")
        .Input("x: float")
        .Output("y: float")
        .Attr("f: func")
        .Attr("others: list(func)")
        .Shape(UnknownShape)
        .Doc("Calls.\n\nx: In.\ny: Out.\nf: One function.\nothers: More.");
    r->Op("ToyByHand").Group("elsewhere").HandWritten().Output("x: float").Shape(UnknownShape);
    r->Op("_ToyInternal").Output("x: float").Shape(UnknownShape);
    return r;
  }();
  return *registry;
}

TEST(GenerateWrappers, WritesTheGoldenFiles) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<GeneratedFile> files,
                                GenerateWrappers(ToyRegistry(), {"toy_ops"}, kGoldenDir));
  const auto folder = std::filesystem::path(GRADFLOW_TEST_DATA_DIR) / "golden";
  std::vector<std::string> names;
  for (const GeneratedFile& file : files) {
    SCOPED_TRACE(file.name);
    names.push_back(file.name);
    if (std::getenv("GRADFLOW_UPDATE_GOLDEN") != nullptr) {
      GRADFLOW_ASSERT_OK(WriteIfChanged(folder.string(), file));
    }
    std::ifstream golden(folder / file.name);
    std::stringstream content;
    content << golden.rdbuf();
    EXPECT_EQ(file.content, content.str());
  }
  EXPECT_THAT(names, ElementsAre("toy_ops.h", "toy_ops.cc", "standard_ops.h"));
}

TEST(GenerateWrappers, RejectsOpsWithoutAWrapper) {
  const auto generate = [](void (*add)(Registry&)) {
    Registry registry;
    add(registry);
    return GenerateWrappers(registry, {"array_ops", "math_ops"}).status();
  };
  EXPECT_THAT(generate([](Registry& r) { r.Op("Stray").Group("strays").Output("x: float"); }),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "op 'Stray' is in group 'strays', expected one of array_ops, math_ops"));
  EXPECT_THAT(generate([](Registry& r) {
                r.Op("Call").Group("math_ops").Output("x: float").Attr("f: func = { name: 'g' }");
              }),
              StatusIs(absl::StatusCode::kUnimplemented,
                       "op 'Call': attribute 'f': a default of type 'func' has no C++ literal"));
  EXPECT_THAT(generate([](Registry& r) { r.Op("Bad").Output("no spec"); }),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("Bad")));
}

TEST(GenerateWrappers, WritesOnlyFilesThatChange) {
  const std::string folder = ::testing::TempDir();
  const auto path = std::filesystem::path(folder) / "generate_wrappers_test.txt";
  std::filesystem::remove(path);
  GRADFLOW_ASSERT_OK(WriteIfChanged(folder, {"generate_wrappers_test.txt", "one"}));
  const auto long_ago = std::filesystem::last_write_time(path) - std::chrono::hours(1);
  std::filesystem::last_write_time(path, long_ago);
  GRADFLOW_ASSERT_OK(WriteIfChanged(folder, {"generate_wrappers_test.txt", "one"}));
  EXPECT_EQ(std::filesystem::last_write_time(path), long_ago);
  GRADFLOW_ASSERT_OK(WriteIfChanged(folder, {"generate_wrappers_test.txt", "two"}));
  EXPECT_NE(std::filesystem::last_write_time(path), long_ago);
  std::filesystem::remove(path);
  EXPECT_THAT(WriteIfChanged("/nonexistent", {"x", "y"}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("/nonexistent/x")));
}

TEST(WrapperText, MakesCamelCase) {
  EXPECT_EQ(CamelCase("num_bits"), "NumBits");
  EXPECT_EQ(CamelCase("T"), "T");
  EXPECT_EQ(CamelCase("SrcT"), "SrcT");
}

TEST(WrapperText, WrapsComments) {
  EXPECT_EQ(Comment("  ", ""), "");
  EXPECT_EQ(Comment("  ", "One\ntwo.\n\n* a\n* b\n"), "  // One two.\n  //\n  // * a\n  // * b\n");
  const std::string word(60, 'w');
  EXPECT_EQ(ItemComment("", "x", word + "\n" + word), "// * x: " + word + "\n//   " + word + "\n");
}

// ---- The generated classes ----

template <typename T>
T AttrOf(const Operation& op, absl::string_view name) {
  T value{};
  GRADFLOW_EXPECT_OK(op.node()->GetAttr(name, &value));
  return value;
}

TEST(ToyWrappers, ForwardRequiredAttributes) {
  const Scope scope = Scope::NewRootScope(ToyRegistry());
  const ops::ToySource source(scope, DT_HALF, "text", -3, 0.5f, true, {2, -1}, Tensor(1.5),
                              {"a", "b"}, {1, 2});
  GRADFLOW_ASSERT_OK(scope.status());
  // "node" is also the name of the accessor.
  EXPECT_EQ(source.node_.type(), DT_HALF);
  EXPECT_EQ(source.node(), source.operation.node());
  EXPECT_EQ(AttrOf<std::string>(source.operation, "s"), "text");
  EXPECT_EQ(AttrOf<int64_t>(source.operation, "i"), -3);
  EXPECT_EQ(AttrOf<float>(source.operation, "f"), 0.5f);
  EXPECT_TRUE(AttrOf<bool>(source.operation, "b"));
  EXPECT_EQ(AttrOf<PartialTensorShape>(source.operation, "shape").DebugString(), "[2,?]");
  EXPECT_EQ(AttrOf<Tensor>(source.operation, "t").scalar<double>()(), 1.5);
  EXPECT_THAT(AttrOf<std::vector<std::string>>(source.operation, "ls"), ElementsAre("a", "b"));
  EXPECT_THAT(AttrOf<std::vector<int64_t>>(source.operation, "li"), ElementsAre(1, 2));
}

TEST(ToyWrappers, PassFunctionsOn) {
  const Scope scope = Scope::NewRootScope(ToyRegistry());
  NameAttrList function;
  function.set_name("g");
  const ops::ToyCall call(scope, 1.f, function, {function, function});
  GRADFLOW_ASSERT_OK(scope.status());
  EXPECT_EQ(AttrOf<NameAttrList>(call.operation, "f").name(), "g");
  EXPECT_EQ(AttrOf<std::vector<NameAttrList>>(call.operation, "others").size(), 2u);
}

TEST(ToyWrappers, HaveTheDefaultsOfTheDefinition) {
  const Scope scope = Scope::NewRootScope(ToyRegistry());
  const ops::ToyOptions recorded(scope, 1.f);
  // Without attributes, the defaults of the definition apply.
  const Operation plain = OpBuilder(scope, "ToyOptions").Input(2.f).Finish();
  GRADFLOW_ASSERT_OK(scope.status());
  for (const auto& attr : plain.node()->op_def().attr()) {
    EXPECT_TRUE(AreAttrValuesEqual(*FindNodeAttr(recorded.operation.node()->def(), attr.name()),
                                   *FindNodeAttr(plain.node()->def(), attr.name())))
        << attr.name();
  }
}

TEST(ToyWrappers, SetOptionalAttributes) {
  const Scope scope = Scope::NewRootScope(ToyRegistry());
  const auto attrs = ops::ToyOptions::NumBits(3)
                         .S("text")
                         .Axes({4, 5, 6})
                         .Strings({"z"})
                         .Bools({})
                         .Shapes({PartialTensorShape({3})})
                         .OutType(DT_INT32)
                         .Class(7)
                         .ToyOptions_(8);
  const ops::ToyOptions options(scope, 1.f, attrs);
  GRADFLOW_ASSERT_OK(scope.status());
  EXPECT_EQ(AttrOf<std::string>(options.operation, "s"), "text");
  EXPECT_EQ(AttrOf<int64_t>(options.operation, "num_bits"), 3);
  EXPECT_THAT(AttrOf<std::vector<int64_t>>(options.operation, "axes"), ElementsAre(4, 5, 6));
  EXPECT_THAT(AttrOf<std::vector<std::string>>(options.operation, "strings"), ElementsAre("z"));
  EXPECT_THAT(AttrOf<std::vector<bool>>(options.operation, "bools"), ElementsAre());
  EXPECT_EQ(AttrOf<std::vector<PartialTensorShape>>(options.operation, "shapes").size(), 1);
  EXPECT_EQ(AttrOf<DataType>(options.operation, "out_type"), DT_INT32);
  EXPECT_EQ(AttrOf<int64_t>(options.operation, "class"), 7);
  EXPECT_EQ(AttrOf<int64_t>(options.operation, "toy_options"), 8);
  EXPECT_EQ(options.operation_.index(), 0);
  EXPECT_EQ(options.output.index(), 1);
}

TEST(ToyWrappers, TakeAndReturnLists) {
  const Scope scope = Scope::NewRootScope(ToyRegistry());
  const ops::ToyConcat joined(scope, 0, {1.f, 2.f, 3.f});
  const ops::ToySplit split(scope, joined, 2);
  const ops::ToyList list(scope, {split.count, split.parts[1]});
  const Operation sink = ops::ToySink(scope, list[1]);
  GRADFLOW_ASSERT_OK(scope.status());
  EXPECT_EQ(joined.operation.num_inputs(), 4);
  EXPECT_EQ(split.first.index(), 0);
  ASSERT_EQ(split.parts.size(), 2);
  EXPECT_EQ(split.parts[0].index(), 1);
  EXPECT_EQ(split.parts[1].index(), 2);
  EXPECT_EQ(split.count.index(), 3);
  ASSERT_EQ(list.outputs.size(), 2);
  EXPECT_EQ(list[0].type(), DT_INT32);
  EXPECT_EQ(list[1].type(), DT_FLOAT);
  EXPECT_EQ(sink.input(0), list[1]);
}

TEST(ToyWrappers, AreEmptyOnAFailedScope) {
  const Scope scope = Scope::NewRootScope(ToyRegistry());
  scope.UpdateStatus(absl::InternalError("failed before"));
  const ops::ToySplit split(scope, 1.f, 3);
  EXPECT_EQ(split.operation.node(), nullptr);
  EXPECT_EQ(split.first.node(), nullptr);
  EXPECT_TRUE(split.parts.empty());
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
