#include "gradflow/core/op_def_builder.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/core/shorthands.h"

namespace gradflow {
namespace {

using ::gradflow::testing::Finalized;
using ::gradflow::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Returns the attribute of `spec` in the form that OpDefSignature prints.
std::string AttrText(const std::string& spec) {
  const std::string text = OpDefSignature(Finalized(OpDefBuilder("Op").Attr(spec)));
  return std::string(absl::StripSuffix(absl::StripPrefix(text, "Op() -> () { "), " }"));
}

void ExpectOpDef(const OpDefBuilder& builder, const std::string& expected_text) {
  OpDef expected;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(expected_text, &expected));
  google::protobuf::util::MessageDifferencer differencer;
  std::string difference;
  differencer.ReportDifferencesToString(&difference);
  EXPECT_TRUE(differencer.Compare(expected, Finalized(builder))) << difference;
}

// ---- Rows of op_signatures.txt ----

// Removes and returns the text before `end`, and removes `end`.
std::string TakeUntil(absl::string_view end, absl::string_view* text) {
  const size_t at = text->find(end);
  EXPECT_NE(at, absl::string_view::npos) << *text;
  std::string taken(text->substr(0, at));
  text->remove_prefix(std::min(text->size(), at + end.size()));
  return taken;
}

// Parses "Name(inputs) -> (outputs) { attributes }  [flags]".
OpDefBuilder BuilderFromRow(absl::string_view row) {
  OpDefBuilder builder(TakeUntil("(", &row));
  std::string inputs = TakeUntil(") -> (", &row);
  // An argument may end with ')': "ref: Ref(T)".
  std::string outputs = TakeUntil(absl::StrContains(row, ") {") ? ") { " : ")", &row);
  if (absl::StrContains(row, " }")) {
    for (absl::string_view attr : absl::StrSplit(TakeUntil(" }", &row), "; ")) {
      const bool unknown = absl::ConsumeSuffix(&attr, "= unknown");
      const bool scalar = absl::ConsumeSuffix(&attr, ": shape = []");
      builder.Attr(absl::StrCat(attr, unknown ? "= { unknown_rank: true }" : "",
                                scalar ? ": shape = {}" : ""));
    }
  }
  for (const auto& spec : absl::StrSplit(inputs, ", ", absl::SkipEmpty())) builder.Input(spec);
  for (const auto& spec : absl::StrSplit(outputs, ", ", absl::SkipEmpty())) builder.Output(spec);
  if (absl::StrContains(row, "commutative")) builder.SetIsCommutative();
  if (absl::StrContains(row, "aggregate")) builder.SetIsAggregate();
  if (absl::StrContains(row, "stateful")) builder.SetIsStateful();
  if (absl::StrContains(row, "deprecated")) builder.Deprecated(9, "Use another.");
  return builder;
}

TEST(OpDefBuilder, ReadsAndWritesEverySignature) {
  std::ifstream file(GRADFLOW_TEST_DATA_DIR "/op_signatures.txt");
  ASSERT_TRUE(file.is_open());
  int rows = 0;
  for (std::string row; std::getline(file, row);) {
    if (row.empty() || row[0] == '#') continue;
    // Skips tensor defaults. The row prints the tensor, but a builder reads the text format of a
    // TensorProto.
    if (absl::StrContains(row, ": tensor = ")) continue;
    SCOPED_TRACE(row);
    ++rows;
    OpDef op_def;
    GRADFLOW_ASSERT_OK(BuilderFromRow(row).Finalize(&op_def));
    EXPECT_EQ(OpDefSignature(op_def), row);
  }
  EXPECT_GT(rows, 200);
}

// ---- Attributes ----

TEST(OpDefBuilder, ReadsEveryFormOfAttribute) {
  const struct {
    const char* spec;
    const char* text;
  } cases[] = {
      {"a: int", "a: int"},
      {"a:int", "a: int"},
      {"  a :  int  ", "a: int"},
      {"a: int = -3", "a: int = -3"},
      {"a: int >= -5", "a: int >= -5"},
      {"a: int>=1=3", "a: int >= 1 = 3"},
      {"a: float = -6.0", "a: float = -6.0"},
      {"a: float = 6", "a: float = 6.0"},
      {"a: float = 1e-4", "a: float = 0.0001"},
      {"a: float = 1e-7", "a: float = 1e-07"},
      {"a: float = inf", "a: float = inf"},
      {"a: bool = false", "a: bool = false"},
      {"a: bool = true", "a: bool = true"},
      {"a: string = ''", "a: string = \"\""},
      {"a: string = \"it's = {x}; >= 1\"", "a: string = \"it\\'s = {x}; >= 1\""},
      {"a: string = 'a\\n\"b\"'", "a: string = \"a\\n\\\"b\\\"\""},
      {"a: type", "a: type"},
      {"a: type = DT_FLOAT", "a: type = float"},
      {"a: type = float32", "a: type = float"},
      {"a: {half, float} = float", "a: {half, float} = float"},
      {"a: {float,half}=DT_HALF", "a: {float, half} = half"},
      {"a: {int32, int32, }", "a: {int32, int32}"},
      {"a: {'SAME', \"VALID\"} = 'SAME'", "a: {\"SAME\", \"VALID\"} = \"SAME\""},
      {"a: {'a, }'}", "a: {\"a, }\"}"},
      {"a: quantizedtype", "a: {qint8, quint8, qint32, qint16, quint16}"},
      {"a: {quantizedtype, string}", "a: {qint8, quint8, qint32, qint16, quint16, string}"},
      {"a: realnumbertype = DT_INT8",
       "a: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, "
       "uint64} = int8"},
      {"a: numbertype",
       "a: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, qint32, "
       "bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64}"},
      {"a: list(int)", "a: list(int)"},
      {"a: list( int ) >= 2", "a: list(int) >= 2"},
      {"a: list(int) >= 0 = [ ]", "a: list(int) >= 0 = []"},
      {"a: list(int) = [1, 1,1]", "a: list(int) = [1, 1, 1]"},
      {"a: list(float) = [1, 0.5]", "a: list(float) = [1.0, 0.5]"},
      {"a: list(bool) = [true, false]", "a: list(bool) = [true, false]"},
      {"a: list(string) = []", "a: list(string) = []"},
      {"a: list(string) = ['a]', \"b[\"]", "a: list(string) = [\"a]\", \"b[\"]"},
      {"a: list(type) >= 1", "a: list(type) >= 1"},
      {"a: list(type) = [DT_FLOAT, DT_INT32]", "a: list(type) = [float, int32]"},
      {"a: list(type) = [float, int32]", "a: list(type) = [float, int32]"},
      {"a: list({float, int32}) >= 1", "a: list({float, int32}) >= 1"},
      {"a: list({'a', 'b'}) = ['b']", "a: list({\"a\", \"b\"}) = [\"b\"]"},
      {"a: list(quantizedtype)", "a: list({qint8, quint8, qint32, qint16, quint16})"},
      {"a: shape", "a: shape"},
      {"a: shape = { unknown_rank: true }", "a: shape = unknown"},
      {"a: shape = { dim { size: 2 } dim { size: -1 } }", "a: shape = [2,?]"},
      {"a: shape = {}", "a: shape = []"},
      {"a: list(shape) = [{ unknown_rank: true }, { dim { size: 1 } }]",
       "a: list(shape) = [unknown, [1]]"},
      {"a: tensor", "a: tensor"},
      {"a: tensor = { dtype: DT_INT32 tensor_shape {} int_val: 7 }",
       "a: tensor = Tensor<type: int32 shape: [] values: 7>"},
      {"a: list(tensor) >= 1", "a: list(tensor) >= 1"},
      {"a: func", "a: func"},
      {"a: func = { name: 'F' }", "a: func = F"},
      {"a: list(func)", "a: list(func)"},
      {"list: list(int)", "list: list(int)"},
  };
  for (const auto& c : cases) EXPECT_EQ(AttrText(c.spec), c.text) << c.spec;
}

TEST(OpDefBuilder, KeepsAllOfALongSetOrDefault) {
  const std::string text = "a: string = \"" + std::string(500, 'x') + "\"";
  EXPECT_EQ(AttrText(text), text);
  EXPECT_EQ(AttrText("a: list(int) = [1,2,3,4,5,6,7,8,9,10,11,12]"),
            "a: list(int) = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]");
}

// ---- The message ----

TEST(OpDefBuilder, FillsTheMessage) {
  ExpectOpDef(OpDefBuilder("Pack")
                  .Input("values: N * T")
                  .Output("output: T")
                  .Attr("N: int >= 2")
                  .Attr("T: {half, float} = DT_FLOAT")
                  .Attr("mode: {'a', 'b'} = 'b'")
                  .Attr("axes: list(int) >= 1 = [3]")
                  .SetIsCommutative()
                  .SetIsAggregate()
                  .SetIsStateful()
                  .SetAllowsUninitializedInput()
                  .Deprecated(7, "Use Stack."),
              R"pb(
                name: "Pack"
                input_arg { name: "values" type_attr: "T" number_attr: "N" }
                output_arg { name: "output" type_attr: "T" }
                attr { name: "N" type: "int" has_minimum: true minimum: 2 }
                attr {
                  name: "T"
                  type: "type"
                  default_value { type: DT_FLOAT }
                  allowed_values { list { type: [ DT_HALF, DT_FLOAT ] } }
                }
                attr {
                  name: "mode"
                  type: "string"
                  default_value { s: "b" }
                  allowed_values { list { s: [ "a", "b" ] } }
                }
                attr {
                  name: "axes"
                  type: "list(int)"
                  default_value { list { i: 3 } }
                  has_minimum: true
                  minimum: 1
                }
                deprecation { version: 7 explanation: "Use Stack." }
                is_commutative: true
                is_aggregate: true
                is_stateful: true
                allows_uninitialized_input: true
              )pb");
}

TEST(OpDefBuilder, ReadsEveryFormOfArgument) {
  ExpectOpDef(OpDefBuilder("Args")
                  .Input("a: float")
                  .Input("b:T")
                  .Input("c: Ts")
                  .Input("d: N*int32")
                  .Input("e: Ref(T)")
                  .Output("f: Ref( N * T )")
                  .Output("g: Ref(string)")
                  .Attr("T: type")
                  .Attr("Ts: list(type) >= 0")
                  .Attr("N: int >= 0"),
              R"pb(
                name: "Args"
                input_arg { name: "a" type: DT_FLOAT }
                input_arg { name: "b" type_attr: "T" }
                input_arg { name: "c" type_list_attr: "Ts" }
                input_arg { name: "d" type: DT_INT32 number_attr: "N" }
                input_arg { name: "e" type_attr: "T" is_ref: true }
                output_arg { name: "f" type_attr: "T" number_attr: "N" is_ref: true }
                output_arg { name: "g" type: DT_STRING is_ref: true }
                attr { name: "T" type: "type" }
                attr { name: "Ts" type: "list(type)" has_minimum: true }
                attr { name: "N" type: "int" has_minimum: true }
              )pb");
}

TEST(OpDefBuilder, LengthsOfArgumentsHaveAMinimumOfOne) {
  const OpDef op_def = Finalized(OpDefBuilder("Op")
                                     .Input("a: N * float")
                                     .Output("b: Ts")
                                     .Attr("N: int")
                                     .Attr("Ts: list(type)")
                                     .Attr("other: int"));
  EXPECT_EQ(OpDefSignature(op_def),
            "Op(a: N * float) -> (b: Ts) { N: int >= 1; Ts: list(type) >= 1; other: int }");
}

TEST(OpDefBuilder, MarksOpsOnResourcesStateful) {
  EXPECT_TRUE(Finalized(OpDefBuilder("Op").Input("r: resource")).is_stateful());
  EXPECT_TRUE(Finalized(OpDefBuilder("Op").Output("r: resource")).is_stateful());
  EXPECT_FALSE(Finalized(OpDefBuilder("Op").Input("r: T").Attr("T: type")).is_stateful());
}

TEST(OpDefBuilder, WritesFlagsInOneBracket) {
  EXPECT_EQ(OpDefSignature(Finalized(OpDefBuilder("Op")
                                         .SetIsStateful()
                                         .SetIsAggregate()
                                         .Deprecated(1, "")
                                         .SetIsCommutative())),
            "Op() -> ()  [commutative, aggregate, stateful, deprecated]");
}

// ---- Documentation ----

TEST(OpDefBuilder, SplitsDocumentation) {
  const OpDef op_def = Finalized(
      OpDefBuilder("Op").Input("x: T").Output("y: T").Attr("T: type").Attr("axis: int = 0").Doc(R"(
    Does something.

    First line.
      Indented.
    x: is not described here, for prose follows.
    Note: a colon makes no entry, nor does http://example.com.

    Last line.

    x: The input,
      which goes on
        and on.

    axis:
      From the end if negative.
    y:    The output.
    )"));
  EXPECT_EQ(op_def.summary(), "Does something.");
  EXPECT_EQ(op_def.description(),
            "First line.\n  Indented.\nx: is not described here, for prose follows.\n"
            "Note: a colon makes no entry, nor does http://example.com.\n\nLast line.");
  EXPECT_EQ(op_def.input_arg(0).description(), "The input,\nwhich goes on\n  and on.");
  EXPECT_EQ(op_def.output_arg(0).description(), "The output.");
  EXPECT_EQ(op_def.attr(0).description(), "");
  EXPECT_EQ(op_def.attr(1).description(), "From the end if negative.");
}

TEST(OpDefBuilder, TakesShortDocumentation) {
  const OpDef one = Finalized(OpDefBuilder("Op").Input("x: float").Doc("Only a summary.\r\n"));
  EXPECT_EQ(one.summary(), "Only a summary.");
  EXPECT_EQ(one.description(), "");
  const OpDef two = Finalized(OpDefBuilder("Op").Input("x: float").Doc("Summary.\nx: The input."));
  EXPECT_EQ(two.description(), "");
  EXPECT_EQ(two.input_arg(0).description(), "The input.");
  EXPECT_EQ(Finalized(OpDefBuilder("Op").Doc(" \n\n")).summary(), "");
  EXPECT_EQ(Finalized(OpDefBuilder("Op").Doc("S.\nNote: x\nText: y")).description(),
            "Note: x\nText: y");
}

// ---- Errors ----

TEST(OpDefBuilder, NamesTheErrorOfASpec) {
  const struct {
    OpDefBuilder builder;
    const char* text;
  } cases[] = {
      {OpDefBuilder("Op").Attr(""), "attribute '': expected a name, but found nothing"},
      {OpDefBuilder("Op").Attr("a"), "expected ':', but found nothing"},
      {OpDefBuilder("Op").Attr("a: "), "expected a type of attributes, but found nothing"},
      {OpDefBuilder("Op").Attr("a: in"), "expected a type of attributes, but found 'in'"},
      {OpDefBuilder("Op").Attr("a: int32"), "expected a type of attributes, but found 'int32'"},
      {OpDefBuilder("Op").Attr("a: int 3"), "expected '>=', '=' or the end, but found '3'"},
      {OpDefBuilder("Op").Attr("a: int >= x"), "expected an integer, but found 'x'"},
      {OpDefBuilder("Op").Attr("a: int >= 99999999999999999999"), "expected an integer"},
      {OpDefBuilder("Op").Attr("a: int ="), "expected a default of type int, but found nothing"},
      {OpDefBuilder("Op").Attr("a: int = 1.5"), "expected a default of type int, but found '1.5'"},
      {OpDefBuilder("Op").Attr("a: int = 1 2"), "expected a default of type int"},
      {OpDefBuilder("Op").Attr("a: int = [1]"), "expected a default of type int"},
      {OpDefBuilder("Op").Attr("a: string = x"), "expected a default of type string"},
      {OpDefBuilder("Op").Attr("a: string = 'x"), "expected a default of type string"},
      {OpDefBuilder("Op").Attr("a: type = flaot"), "expected a default of type type"},
      {OpDefBuilder("Op").Attr("a: list(int) = 1"), "expected a default of type list(int)"},
      {OpDefBuilder("Op").Attr("a: list(int) = [1] i: [2]"), "expected a default of type"},
      {OpDefBuilder("Op").Attr("a: list(type) = [float"), "expected a default of type list(type)"},
      {OpDefBuilder("Op").Attr("a: list(type) = [float] x"), "expected a default of type"},
      {OpDefBuilder("Op").Attr("a: shape = { dim { size: -2 } }"), "a default of type shape"},
      {OpDefBuilder("Op").Attr("a: list(int"), "expected ')', but found nothing"},
      {OpDefBuilder("Op").Attr("a: list(list(int))"), "expected a type of attributes"},
      {OpDefBuilder("Op").Attr("a: {}"), "expected a type or a quoted string, but found '}'"},
      {OpDefBuilder("Op").Attr("a: {flaot}"), "expected a type or a quoted string"},
      {OpDefBuilder("Op").Attr("a: {float"), "expected ',' or '}', but found nothing"},
      {OpDefBuilder("Op").Attr("a: {float, 'x'}"), "types or strings, but this holds both"},
      {OpDefBuilder("Op").Attr("a: {'x"), "expected a type or a quoted string"},
      {OpDefBuilder("Op").Input("a"), "input 'a': expected ':', but found nothing"},
      {OpDefBuilder("Op").Input(": float"), "expected a name, but found ': float'"},
      {OpDefBuilder("Op").Input("a: flaot"), "expected a type, or an attribute of type"},
      {OpDefBuilder("Op").Input("a: N").Attr("N: int"), "expected a type, or an attribute"},
      {OpDefBuilder("Op").Input("a: float x"), "expected the end, but found 'x'"},
      {OpDefBuilder("Op").Output("a: Ref(float"), "output 'a: Ref(float': expected ')'"},
      {OpDefBuilder("Op").Input("a: 2 *"), "expected a type, or an attribute"},
      {OpDefBuilder("Op").Input("a: float").Doc("S.\na: A.\nb: B."), "documentation describes 'b'"},
  };
  for (const auto& c : cases) {
    OpDef op_def;
    op_def.set_name("untouched");
    EXPECT_THAT(c.builder.Finalize(&op_def),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("op 'Op': "), HasSubstr(c.text))));
    EXPECT_EQ(op_def.name(), "untouched");
  }
}

TEST(OpDefBuilder, ReportsEveryFault) {
  OpDef op_def;
  EXPECT_THAT(OpDefBuilder("Op").Attr("a: ?").Input("b: ?").Output("c").Finalize(&op_def),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("'a: \?'"), HasSubstr("'b: \?'"), HasSubstr("'c'"))));
}

TEST(OpDefBuilder, ValidatesTheDefinition) {
  OpDef op_def;
  EXPECT_THAT(OpDefBuilder("op").Attr("a: int >= 2 = 1").Finalize(&op_def),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("capital letter"),
                             HasSubstr("default of attribute a must be at least 2, but is 1"))));
}

// Parsing arbitrary specs ends with a definition or an error.
TEST(OpDefBuilder, SurvivesDamagedSpecs) {
  const std::string specs[] = {"T: list({float, 'a\\'b'}) >= 3 = [{ dim { size: 2 } }, DT_FLOAT]",
                               "name: Ref(N * T) = \"x\\\"", "s: {'\\x', \"\\777\"} = '\\"};
  for (const std::string& spec : specs) {
    for (size_t i = 0; i <= spec.size(); ++i) {
      for (const std::string& damaged :
           {spec.substr(0, i), spec.substr(i), spec.substr(0, i) + '\0' + spec.substr(i)}) {
        OpDef op_def;
        OpDefBuilder("Op").Attr(damaged).Finalize(&op_def).IgnoreError();
        OpDefBuilder("Op").Input(damaged).Finalize(&op_def).IgnoreError();
      }
    }
  }
}

}  // namespace
}  // namespace gradflow
