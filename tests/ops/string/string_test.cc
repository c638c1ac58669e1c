// Tests of strings: the values that TensorFlow computes are in tests/data/tensorflow_values. Here
// are errors, long inputs, limits of memory, and shape inference.
#include <string>
#include <vector>

#include "gradflow/core/variant.h"
#include "gradflow/graph/scope.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

Tensor Text(const std::string& text) { return Tensor(tstring(text)); }
Tensor Texts(const std::vector<std::string>& values, const TensorShape& shape) {
  Tensor tensor(DT_STRING, shape);
  std::copy(values.begin(), values.end(), tensor.flat<tstring>().begin());
  return tensor;
}
Tensor Texts(const std::vector<std::string>& values) {
  return Texts(values, {static_cast<int64_t>(values.size())});
}
// Many different strings of up to 40 characters.
Tensor ManyTexts(int64_t count) {
  Tensor tensor(DT_STRING, {count});
  for (int64_t i = 0; i < count; ++i) {
    tensor.flat<tstring>()(i) =
        std::string(static_cast<size_t>(i % 37), static_cast<char>('a' + i % 26)) + " " +
        std::to_string(i);
  }
  return tensor;
}
OpTester Op(const char* op, const std::vector<Tensor>& inputs) {
  OpTester tester(op);
  tester.Inputs(inputs);
  return tester;
}

// Each op is compared with a plain loop, on inputs that several threads share.
TEST(Strings, AreMadeOnSeveralThreads) {
  const Tensor many = ManyTexts(20'000);
  const auto in = many.span<tstring>();
  const auto expect = [&](OpTester tester, auto fn) {
    Tensor expected(DT_STRING, many.shape());
    for (size_t i = 0; i < in.size(); ++i) expected.span<tstring>()[i] = fn(in[i]);
    EXPECT_THAT(tester.RunEverywhere(), IsOk());
    EXPECT_THAT(tester.RunOne(), TensorEq(expected));
  };
  const auto upper = [](std::string text) {
    for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return text;
  };
  expect(Op("StringUpper", {many}), upper);
  expect(Op("StringUpper", {many}).Attr("encoding", "utf-8"), upper);
  expect(Op("StringLower", {many}), [](const std::string& text) { return text; });
  expect(Op("StringStrip", {many}),
         [](std::string text) { return text[0] == ' ' ? text.substr(1) : text; });
  expect(Op("StringJoin", {many, Text("/")}), [](const std::string& text) { return text + "/"; });
  expect(Op("Substr", {many, AsScalar<int32_t>(-2), AsScalar<int32_t>(1)}),
         [](const std::string& text) { return text.substr(text.size() - 2, 1); });
  expect(Op("StaticRegexReplace", {many}).Attr("pattern", "a+").Attr("rewrite", "<\\0>"),
         [](const std::string& text) {
           return text[0] == 'a'
                      ? "<" + text.substr(0, text.find(' ')) + ">" + text.substr(text.find(' '))
                      : text;
         });
}

TEST(Strings, HaveShapesOfTheirInputs) {
  const Tensor matrix = Texts({"a", "b", "c", "d"}, {2, 2});
  for (const char* const op :
       {"StringLower", "StringUpper", "StringStrip", "EncodeBase64", "StringLength", "AsString"}) {
    EXPECT_THAT(Op(op, {matrix}).InferShape(), IsOk()) << op;
    EXPECT_THAT(Op(op, {matrix}).RunOne(), IsOk()) << op;
  }
  EXPECT_THAT(Op("StringJoin", {matrix, Text("x")}).InferShape()->DebugString(), "[2,2]");
  const auto split = Op("StringSplitV2", {Texts({"a b"}), Text("")}).InferShapes();
  GRADFLOW_ASSERT_OK(split.status());
  EXPECT_EQ((*split)[0].DebugString(), "[?,2]");
  EXPECT_EQ((*split)[1].DebugString(), "[?]");
  EXPECT_EQ((*split)[2].DebugString(), "[2]");
}

TEST(Strings, CheckTheirInputs) {
  const Tensor ab = Texts({"a", "b"});
  ExpectErrors({
      {"join", Op("StringJoin", {ab, Texts({"c"})}),
       "Dimension 0 in both shapes must be equal, but are 2 and 1: an earlier input has shape [2], "
       "and inputs[1] has shape [1]"},
      {"split rank", Op("StringSplitV2", {Text("a"), Text(",")}),
       "Shape must be rank 1 but is rank 0: input has shape []"},
      {"split separator", Op("StringSplit", {ab, ab}).Attr("skip_empty", true),
       "Shape must be rank 0 but is rank 1: delimiter has shape [2]"},
      {"substr", Op("Substr", {ab, AsTensor<int32_t>({1, 2}), AsScalar<int32_t>(1)}),
       "Shapes must be equal rank, but are 1 and 0: pos has shape [2], and len has shape []"},
      {"substr shapes",
       Op("Substr", {ab, AsTensor<int32_t>({1, 2, 3}), AsTensor<int32_t>({1, 1, 1})}),
       "cannot be broadcast"},
      {"regex", Op("RegexFullMatch", {ab, ab}),
       "Shape must be rank 0 but is rank 1: pattern has shape [2]"},
      {"rewrite", Op("RegexReplace", {ab, Text("a"), ab}),
       "Shape must be rank 0 but is rank 1: rewrite has shape [2]"},
      {"segments",
       Op("UnsortedSegmentJoin", {ab, AsTensor<int32_t>({0, 1}), AsScalar<int32_t>(-1)}),
       "num_segments must not be negative, but is -1"},
      {"ids", Op("UnsortedSegmentJoin", {ab, AsTensor<int32_t>({0}), AsScalar<int32_t>(1)}),
       "Dimensions must be equal, but are 2 and 1: inputs has shape [2], and segment_ids has shape "
       "[1]"},
      {"ids scalar", Op("UnsortedSegmentJoin", {ab, AsScalar<int32_t>(0), AsScalar<int32_t>(1)}),
       "Shape must be at least rank 1 but is rank 0: segment_ids has shape []"},
      {"duplicate", Op("ReduceJoin", {ab, AsTensor<int32_t>({0, -1})}),
       "reduction_indices names dimension 0 twice"},
  });
  const struct {
    OpTester tester;
    absl::StatusCode code;
    const char* error;
  } cases[] = {
      {Op("ReduceJoin", {ab, AsTensor<int32_t>({1})}), absl::StatusCode::kOutOfRange,
       "reduction_indices has 1, which is not a dimension of inputs, of rank 1"},
      {Op("StringToNumber", {Texts({"1", "x"})}), kInvalidArgument,
       "string_tensor[1] must be a number of type float, but is 'x'"},
      {Op("Substr", {ab, AsScalar<int32_t>(2), AsScalar<int32_t>(1)}), kInvalidArgument,
       "pos is 2, which is outside of the string 'a'"},
      {Op("DecodeBase64", {Text("a/")}), kInvalidArgument,
       "expected characters of web-safe base64, but found '/'"},
      {Op("StringLower", {ab}).Attr("encoding", "latin1"), kInvalidArgument,
       "encoding must be '' or 'utf-8', but is 'latin1'"},
      {Op("RegexFullMatch", {ab, Text("(")}), kInvalidArgument,
       "pattern '(' is not a regular expression: missing ): ("},
      {Op("StaticRegexFullMatch", {ab}).Attr("pattern", "("), kInvalidArgument,
       "pattern '(' is not a regular expression: missing ): ("},
      {Op("RegexReplace", {ab, Text("a"), Text("\\1")}), kInvalidArgument,
       "rewrite '\\1' does not fit the pattern: "},
      {Op("StringToHashBucketStrong", {ab}).Attr("num_buckets", 3).Attr("key", {1}),
       kInvalidArgument, "key must have 2 elements, but has 1"},
      {Op("StringToHashBucket", {ab}).Attr("num_buckets", 0), kInvalidArgument, "num_buckets"},
      {Op("StringToHashBucketFast", {ab}).Attr("num_buckets", 0), kInvalidArgument, "num_buckets"},
      {Op("AsString", {AsTensor<int32_t>({1})}).Attr("precision", 2), kInvalidArgument,
       "precision must be negative for type int32, but is 2"},
      {Op("AsString", {AsTensor<float>({1})}).Attr("shortest", true).Attr("scientific", true),
       kInvalidArgument, "scientific and shortest must not both be true"},
      {Op("AsString", {ab}).Attr("fill", "x"), kInvalidArgument,
       "fill must be '', ' ', '+', '-' or '0', but is 'x'"},
      {Op("StringFormat", {ab}).Attr("template", "no"), kInvalidArgument,
       "template has 0 placeholders, but there are 1 inputs"},
  };
  for (const auto& c : cases) {
    OpTester tester = c.tester;
    EXPECT_THAT(tester.Run(), StatusIs(c.code, HasSubstr(c.error))) << tester.node().op();
  }
}

TEST(StringNGrams, ChecksItsSplitsAndWidths) {
  const auto op = [](const std::vector<int64_t>& splits, int64_t width, int64_t pad) {
    return Op("StringNGrams", {Texts({"a", "b"}), AsTensor<int64_t>(splits)})
        .Attr("separator", "")
        .Attr("ngram_widths", {width})
        .Attr("left_pad", "")
        .Attr("right_pad", "")
        .Attr("pad_width", pad)
        .Attr("preserve_short_sequences", false)
        .ShapeIsData();
  };
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {op({0, 3}, 1, 0), "data_splits must begin with 0 and must not decrease or exceed 2"},
      {op({1, 2}, 1, 0), "but data_splits[0] is 1"},
      {op({0, 1}, 1, 0), "data_splits must end with the number of elements of data, 2"},
      {op({0, 2}, 0, 0), "ngram_widths must be positive"},
      {op({0, 2}, 1, int64_t{1} << 41), "pad_width must be at most 2^40"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(OpTester(c.tester).Run(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
}

TEST(AsString, WritesVariantsAndWideNumbers) {
  Tensor variants(DT_VARIANT, {1});
  variants.span<Variant>()[0] = Variant(7);
  EXPECT_THAT(Op("AsString", {variants}).RunOne(),
              TensorEq(Texts({"Variant<type: int value: 7>"})));
  EXPECT_THAT(Op("AsString", {AsTensor<int32_t>({5})}).Attr("width", 5000).RunOne(),
              TensorEq(Texts({std::string(4999, ' ') + "5"})));
  EXPECT_THAT(Op("AsString", {AsTensor<float>({5})}).Attr("precision", 500).RunOne(),
              TensorEq(Texts({"5." + std::string(500, '0')})));
}

// Memory is charged before strings are made.
TEST(Strings, StayWithinTheMemoryLimit) {
  SessionOptions options;
  options.tensor_memory_limit_bytes = 1 << 20;
  const Scope s = Scope::NewRootScope();
  const Output text = ops::Placeholder(s, DT_STRING);
  const Output grown =
      ops::StaticRegexReplace(s, text, "a", "\\0\\0\\0\\0\\0\\0\\0\\0" + std::string(100, 'x'));
  const Output wide = ops::AsString(s, 1, ops::AsString::Width(100'000'000));
  const Output joined = ops::StringJoin(s, std::vector<Output>(100, text));
  GRADFLOW_ASSERT_OK(s.status());
  ClientSession session(s, options);
  std::vector<Tensor> outputs;
  const Tensor letters = Text(std::string(50'000, 'a'));
  for (const Output& output : {grown, wide, joined}) {
    EXPECT_THAT(session.Run({{text, letters}}, {output}, &outputs),
                StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("out of memory")));
  }
}

// A pattern that takes backtracking matchers exponential time.
TEST(Regex, TakesLinearTime) {
  const Tensor text = Text(std::string(100'000, 'a'));
  EXPECT_THAT(Op("RegexFullMatch", {text, Text("(a|aa)*(a|aa)*(a|a?)*b")}).RunOne(),
              TensorEq(Tensor(false)));
  EXPECT_THAT(Op("RegexReplace", {text, Text("(a*)*b"), Text("")}).RunOne(), TensorEq(text));
}

// A search that compares the separator at each place would take quadratic time.
TEST(StringSplitV2, TakesLinearTime) {
  constexpr size_t kSize = 4'000'000;
  const std::string text(kSize, 'a');
  const auto outputs =
      Op("StringSplitV2", {Texts({text}), Text(std::string(kSize / 2, 'a') + "b")}).RunOnThreads(1);
  GRADFLOW_ASSERT_OK(outputs.status());
  EXPECT_THAT((*outputs)[1], TensorEq(Texts({text})));
}

// Pads without characters would be counted one by one.
TEST(StringNGrams, SkipsEmptyPads) {
  const auto outputs = Op("StringNGrams", {Texts({"a", "b"}), AsTensor<int64_t>({0, 2})})
                           .Attr("separator", "")
                           .Attr("ngram_widths", absl::Span<const int64_t>())
                           .Attr("left_pad", "")
                           .Attr("right_pad", "")
                           .Attr("pad_width", int64_t{1} << 40)
                           .Attr("preserve_short_sequences", true)
                           .RunOnThreads(1);
  GRADFLOW_ASSERT_OK(outputs.status());
  EXPECT_THAT((*outputs)[0], TensorEq(Texts({"ab"})));
}

// A match is charged if it occurs: a long rewrite of few matches needs little memory.
TEST(Regex, ChargesMatches) {
  SessionOptions options;
  options.tensor_memory_limit_bytes = 1 << 20;
  const Scope s = Scope::NewRootScope();
  const Output text = ops::Placeholder(s, DT_STRING);
  const Output replaced = ops::StaticRegexReplace(s, text, "b", std::string(1000, 'x'));
  GRADFLOW_ASSERT_OK(s.status());
  ClientSession session(s, options);
  std::vector<Tensor> outputs;
  const std::string letters(50'000, 'a');
  GRADFLOW_ASSERT_OK(session.Run({{text, Text(letters + "b")}}, {replaced}, &outputs));
  EXPECT_THAT(outputs[0], TensorEq(Text(letters + std::string(1000, 'x'))));
  EXPECT_THAT(session.Run({{text, Text(std::string(5000, 'b'))}}, {replaced}, &outputs),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("strings")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
