// Tests of parsing: error texts, random messages, and cases where TensorFlow fails. TensorFlow's
// values are in tests/data/tensorflow_values.
#include <zlib.h>

#include <random>
#include <string>
#include <vector>

#include "gradflow/graph/node_builder.h"
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

Tensor Texts(const std::vector<std::string>& values) {
  Tensor tensor(DT_STRING, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.flat<tstring>().begin());
  return tensor;
}

// ---- DecodeCSV ----

OpTester Csv(const std::vector<std::string>& records, const std::vector<Tensor>& defaults) {
  OpTester tester("DecodeCSV");
  return tester.Input(Texts(records)).Inputs(defaults);
}

TEST(DecodeCSV, NamesTheRecordAndTheField) {
  const Tensor one = AsTensor<int32_t>({1});
  const Tensor text = Texts({"d"});
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {Csv({"1,2", "3"}, {one, one}), "record 1: expected 2 fields, but found 1"},
      {Csv({"1", "x"}, {one}), "record 1: field 0 must be of type int32, but is 'x'"},
      {Csv({"a", "a,b"}, {Texts({})}), "record 1: expected 1 fields, but found 2"},
      {Csv({",b"}, {Texts({}), text}), "record 0: field 0 has no value, which is required"},
      {Csv({"a\"b"}, {text}), "record 0: field 0 has a quote, but is not in quotes"},
      {Csv({"a\nb"}, {text}), "record 0: field 0 has a line break, but is not in quotes"},
      {Csv({"\"a"}, {text}), "record 0: field 0 has no closing quote"},
      {Csv({"\"a\"b"}, {text}),
       "record 0: field 0 has a quote that is neither doubled nor at the end of the field"},
      {Csv({"a"}, {text}).Attr("field_delim", ""), "field_delim must be one character, but is ''"},
      {Csv({"a"}, {text}).Attr("select_cols", {0, 1}),
       "select_cols must have 1 elements, one for each output, but has 2"},
      {Csv({"a"}, {text}).Attr("select_cols", {-1}),
       "select_cols must increase and not be negative, but has -1"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(OpTester(c.tester).Run(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
  ExpectErrors({{"default", Csv({"a"}, {Texts({"a", "b"})}), "record_defaults[0] has shape"}});
}

// A hostile text takes linear time: each quote starts a search for the next one.
TEST(DecodeCSV, TakesLinearTime) {
  std::string quotes(400'001, '"');
  EXPECT_THAT(Csv({quotes}, {Texts({"d"})}).RunOnThreads(1),
              StatusIs(kInvalidArgument, HasSubstr("no closing quote")));
  EXPECT_THAT(Csv({quotes + "\""}, {Texts({"d"})}).RunOne(),
              TensorEq(Texts({std::string(200'000, '"')})));
}

// ---- DecodeRaw ----

TEST(DecodeRaw, ChecksLengths) {
  ExpectErrors({{"fixed_length",
                 OpTester("DecodePaddedRaw")
                     .Input(Texts({"a"}))
                     .Input(AsScalar<int32_t>(3))
                     .Attr("out_type", DT_INT16),
                 "fixed_length must be a positive multiple of 2, the size of int16, but is 3"}});
  const auto decode = [](const std::vector<std::string>& strings) {
    return OpTester("DecodeRaw").Input(Texts(strings)).Attr("out_type", DT_INT16).Run();
  };
  EXPECT_THAT(decode({"ab", "c"}),
              StatusIs(kInvalidArgument,
                       "strings must have the same length, but bytes[0] has 2 bytes, and bytes[1] "
                       "has 1"));
  EXPECT_THAT(decode({"abc"}),
              StatusIs(kInvalidArgument,
                       "strings have 3 bytes, expected a multiple of 2, the size of int16"));
  // Any byte but 0 is true.
  EXPECT_THAT(OpTester("DecodeRaw")
                  .Input(Texts({std::string("\2\0", 2)}))
                  .Attr("out_type", DT_BOOL)
                  .ShapeIsData()
                  .RunOne(),
              TensorEq(AsTensor<bool>({true, false}, {1, 2})));
}

// ---- ParseTensor, SerializeTensor ----

TEST(ParseTensor, ReadsWhatSerializeTensorWrites) {
  for (const DataType dtype : TensorTypes()) {
    const Tensor tensor = DistinctTensor(dtype, {3, 5});
    const auto serialized = OpTester("SerializeTensor").Input(tensor).RunOne();
    if (dtype == DT_VARIANT) continue;
    GRADFLOW_ASSERT_OK(serialized.status());
    EXPECT_THAT(
        OpTester("ParseTensor").Input(*serialized).Attr("out_type", dtype).ShapeIsData().RunOne(),
        TensorEq(tensor));
  }
  EXPECT_THAT(OpTester("ParseTensor")
                  .Input(Tensor(tstring("abc")))
                  .Attr("out_type", DT_FLOAT)
                  .ShapeIsData()
                  .Run(),
              StatusIs(kInvalidArgument, "serialized is not a TensorProto"));
}

// ---- ParseExample ----

std::string Field(int number, const std::string& data) {
  std::string field(1, static_cast<char>(8 * number + 2));
  // The length as a varint.
  for (size_t size = data.size();; size >>= 7) {
    field.push_back(static_cast<char>((size & 0x7f) | (size > 0x7f ? 0x80 : 0)));
    if (size <= 0x7f) break;
  }
  return field + data;
}
std::string Feature(const std::string& key, int list, const std::string& values) {
  return Field(1, Field(1, key) + Field(2, Field(list, values)));
}
std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value > 0x7f; value >>= 7) bytes.push_back(static_cast<char>((value & 0x7f) | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

OpTester ParseInts(const Tensor& serialized, const Tensor& default_value,
                   const PartialTensorShape& shape) {
  OpTester tester("ParseExampleV2");
  tester.Input(serialized).Input(Texts({}));
  tester.Input(Texts({"a"})).Input(Texts({"a"})).Input(Texts({"a"})).Input(default_value);
  tester.Attr("num_sparse", 1)
      .Attr("sparse_types", DataTypeVector{DT_INT64})
      .Attr("ragged_value_types", DataTypeVector{DT_INT64})
      .Attr("ragged_split_types", DataTypeVector{DT_INT64})
      .Attr("dense_shapes", std::vector<PartialTensorShape>{shape});
  return tester.ShapeIsData();
}

// One feature in three forms, of random messages with other features between.
TEST(ParseExample, ReadsRandomMessages) {
  std::mt19937_64 random(1);
  constexpr int kExamples = 500;
  std::vector<std::string> messages;
  std::vector<int64_t> values;
  std::vector<int64_t> splits = {0};
  std::vector<int64_t> indices;
  int64_t most = 0;
  for (int i = 0; i < kExamples; ++i) {
    const int64_t count = random() % 5;
    std::string list;
    const bool is_packed = random() % 2 == 0;
    std::string packed;
    for (int64_t k = 0; k < count; ++k) {
      const auto value = static_cast<int64_t>(random() >> (random() % 64));
      (is_packed ? packed : list) += (is_packed ? "" : "\x08") + Varint(value);
      values.push_back(value);
      indices.push_back(i);
      indices.push_back(k);
    }
    if (is_packed) list = Field(1, packed);
    std::string features;
    for (uint64_t other = random() % 3; other > 0; --other) {
      features += Feature("b" + std::to_string(other), 1, Field(1, std::string(200, 'x')));
    }
    if (count > 0) features += Feature("a", 3, list);
    messages.push_back(Field(1, features));
    splits.push_back(static_cast<int64_t>(values.size()));
    most = std::max(most, count);
  }
  OpTester tester = ParseInts(Texts(messages), AsScalar<int64_t>(-1), PartialTensorShape({-1}));
  const auto outputs = tester.RunEverywhere();
  GRADFLOW_ASSERT_OK(outputs.status());
  const auto size = static_cast<int64_t>(values.size());
  EXPECT_THAT((*outputs)[0], TensorEq(AsTensor<int64_t>(indices, {size, 2})));
  EXPECT_THAT((*outputs)[1], TensorEq(AsTensor<int64_t>(values)));
  EXPECT_THAT((*outputs)[2], TensorEq(AsTensor<int64_t>({kExamples, most})));
  EXPECT_THAT((*outputs)[4], TensorEq(AsTensor<int64_t>(values)));
  EXPECT_THAT((*outputs)[5], TensorEq(AsTensor<int64_t>(splits)));
  Tensor dense(DT_INT64, {kExamples, most});
  for (int64_t& element : dense.span<int64_t>()) element = -1;
  for (int64_t k = 0; k < size; ++k) {
    dense.matrix<int64_t>()(indices[2 * k], indices[2 * k + 1]) = values[k];
  }
  EXPECT_THAT((*outputs)[3], TensorEq(dense));
}

TEST(ParseExample, NamesTheExampleAndTheFeature) {
  const std::string good = Field(1, Feature("a", 3, "\x08\x05"));
  const std::string floats = Field(1, Feature("a", 2, Field(1, std::string(4, '\0'))));
  const Tensor none = AsTensor<int64_t>({});
  const PartialTensorShape two({2});
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {ParseInts(Texts({good, "abc"}), AsScalar<int64_t>(0), {-1}),
       "example 1 is not a serialized tf.Example"},
      {ParseInts(Tensor(tstring("abc")), AsScalar<int64_t>(0), {-1}),
       "the example is not a serialized tf.Example"},
      {ParseInts(Texts({good, floats}), AsScalar<int64_t>(0), {-1}),
       "feature 'a' of example 1 must have type int64, but has float"},
      {ParseInts(Texts({good}), none, two),
       "feature 'a' of example 0 has 1 values, expected 2 for shape [2]"},
      {ParseInts(Texts({""}), none, two), "feature 'a' is required, but example 0 lacks it"},
      {ParseInts(Texts({good}), AsScalar<int64_t>(0), {-1, 2}),
       "feature 'a' of example 0 has 1 values, expected a multiple of 2"},
      {ParseInts(Texts({good}), none, {-1}), "dense_defaults[0] must have one element"},
      {ParseInts(Texts({good}), AsTensor<int64_t>({1, 2, 3}), two),
       "dense_defaults[0] must be empty or have shape [2], but has shape [3]"},
      {ParseInts(Texts({good}), none, {2, -1}),
       "dense_shapes[0] has unknown rank or unknown inner dimensions: [2,?]"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(OpTester(c.tester).Run(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
  for (const char* const op : {"ParseExample", "ParseSingleExample"}) {
    EXPECT_TRUE(GlobalRegistry().LookUpOp(op).ok());
  }
}

// The class has a list for each list of outputs.
TEST(ParseExample, HasAClassWithSeveralLists) {
  const Scope scope = Scope::NewRootScope();
  const std::string message = Field(1, Feature("a", 3, "\x08\x05"));
  const ops::ParseExample parsed(
      scope, ops::Const(scope, {tstring(message)}), ops::Const(scope, Texts({})),
      InputList{ops::Const(scope, tstring("a")), ops::Const(scope, tstring("b"))},
      InputList{ops::Const(scope, tstring("a"))}, InputList{ops::Const(scope, int64_t{0})},
      {DT_INT64, DT_INT64}, {TensorShape()});
  GRADFLOW_ASSERT_OK(scope.status());
  ASSERT_EQ(parsed.sparse_indices.size(), 2u);
  ASSERT_EQ(parsed.sparse_values.size(), 2u);
  ASSERT_EQ(parsed.sparse_shapes.size(), 2u);
  ASSERT_EQ(parsed.dense_values.size(), 1u);
  std::vector<Tensor> outputs;
  GRADFLOW_ASSERT_OK(ClientSession(scope).Run(
      {parsed.sparse_values[0], parsed.sparse_values[1], parsed.dense_values[0]}, &outputs));
  EXPECT_THAT(outputs[0], TensorEq(AsTensor<int64_t>({5})));
  EXPECT_THAT(outputs[1], TensorEq(AsTensor<int64_t>({})));
  EXPECT_THAT(outputs[2], TensorEq(AsTensor<int64_t>({5})));
}

// Any prefix of a message and any changed byte is an error or other values.
TEST(ParseExample, SurvivesChangedMessages) {
  const std::string good = Field(1, Feature("b", 1, Field(1, "text")) +
                                        Feature("a", 3, "\x08\x05" + Field(1, "\x01\x02\xff\x01")));
  const auto parse = [](const std::string& message) {
    ParseInts(Texts({message}), AsScalar<int64_t>(0), {-1}).RunOnThreads(1).IgnoreError();
  };
  for (size_t size = 0; size < good.size(); ++size) parse(good.substr(0, size));
  for (size_t at = 0; at < good.size(); ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = good;
      changed[at] = static_cast<char>(byte);
      parse(changed);
    }
  }
}

// ---- ParseSequenceExample ----

std::string Entry(const std::string& key, const std::string& value) {
  return Field(1, Field(1, key) + Field(2, value));
}
// A row of a list of features.
std::string IntRow(const std::string& values) { return Field(1, Field(3, Field(1, values))); }

OpTester ParseLists(const Tensor& serialized, bool may_be_missing) {
  const std::vector<PartialTensorShape> shapes = {PartialTensorShape({2})};
  const DataTypeVector ints = {DT_INT64};
  const DataTypeVector splits = {DT_INT32};
  return OpTester("ParseSequenceExampleV2")
      .Input(serialized)
      .Input(Texts({}))
      .Input(Texts({}))
      .Input(Texts({}))
      .Input(Texts({}))
      .Input(Texts({"s"}))
      .Input(Texts({"d"}))
      .Input(Texts({"r"}))
      .Input(AsTensor<bool>({may_be_missing}))
      .Attr("Nfeature_list_sparse", 1)
      .Attr("Nfeature_list_dense", 1)
      .Attr("feature_list_sparse_types", ints)
      .Attr("feature_list_dense_types", ints)
      .Attr("feature_list_dense_shapes", shapes)
      .Attr("feature_list_ragged_value_types", ints)
      .Attr("feature_list_ragged_split_types", splits)
      .ShapeIsData();
}

TEST(ParseSequenceExample, MakesColumnsOfLists) {
  const std::string rows = IntRow("\x01\x02") + IntRow("\x03\x04");
  const std::string first =
      Field(2, Entry("s", rows + IntRow("\x05")) + Entry("d", rows) + Entry("r", rows));
  const std::string second = Field(2, Entry("r", IntRow("") + IntRow("\x06")));
  const auto outputs = ParseLists(Texts({first, second}), true).Run();
  GRADFLOW_ASSERT_OK(outputs.status());
  const Tensor expected[] = {
      AsTensor<int64_t>({0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 1, 1, 0, 2, 0}, {5, 3}),
      AsTensor<int64_t>({1, 2, 3, 4, 5}),
      AsTensor<int64_t>({2, 3, 2}),
      AsTensor<int64_t>({1, 2, 3, 4, 0, 0, 0, 0}, {2, 2, 2}),
      AsTensor<int64_t>({2, 0}),
      AsTensor<int64_t>({1, 2, 3, 4, 6}),
      AsTensor<int32_t>({0, 2, 4}),
      AsTensor<int32_t>({0, 2, 4, 4, 5}),
  };
  ASSERT_EQ(outputs->size(), 8);
  for (size_t i = 0; i < 8; ++i) EXPECT_THAT((*outputs)[i], TensorEq(expected[i])) << i;
}

TEST(ParseSequenceExample, NamesTheExampleAndTheList) {
  const auto list = [](const std::string& key, const std::string& rows) {
    return Texts({Field(2, Entry(key, rows))});
  };
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {ParseLists(list("x", ""), false), "list 'd' of example 0 is required, but missing"},
      {ParseLists(list("d", IntRow("\x01")), true),
       "row 0 of list 'd' of example 0 has 1 values, expected 2 for shape [2]"},
      {ParseLists(list("s", Field(1, Field(1, Field(1, "text")))), true),
       "row 0 of list 's' of example 0 must have type int64, but has string"},
      {ParseLists(Texts({"\x12\x05"}), true), "example 0 is not a serialized tf."},
      {ParseLists(list("s", "\x0a\x05"), true),
       "list 's' of example 0 is not a serialized list of features"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(OpTester(c.tester).Run(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
}

// The three ops agree on one message.
TEST(ParseSequenceExample, HasThreeForms) {
  const std::string message = Field(2, Entry("s", IntRow("\x01\x02") + IntRow("\x03")));
  const auto lists = [](OpTester tester) {
    return tester.Attr("Nfeature_list_sparse", 1)
        .Attr("feature_list_sparse_types", DataTypeVector({DT_INT64}))
        .ShapeIsData();
  };
  const std::vector<std::string> none;
  const std::vector<std::string> keys = {"s"};
  const auto batch = lists(OpTester("ParseSequenceExample")
                               .Input(Texts({message}))
                               .Input(Texts({}))
                               .Attr("feature_list_dense_missing_assumed_empty", none)
                               .Attr("context_sparse_keys", none)
                               .Attr("context_dense_keys", none)
                               .Attr("feature_list_sparse_keys", keys)
                               .Attr("feature_list_dense_keys", none))
                         .Run();
  const auto single = lists(OpTester("ParseSingleSequenceExample")
                                .Input(Tensor(tstring(message)))
                                .Input(Texts({}))
                                .Input(Tensor(tstring("s")))
                                .Input(Tensor(tstring(""))))
                          .Run();
  GRADFLOW_ASSERT_OK(batch.status());
  GRADFLOW_ASSERT_OK(single.status());
  EXPECT_THAT((*batch)[1], TensorEq(AsTensor<int64_t>({1, 2, 3})));
  EXPECT_THAT((*single)[1], TensorEq(AsTensor<int64_t>({1, 2, 3})));
  EXPECT_THAT((*batch)[2], TensorEq(AsTensor<int64_t>({1, 2, 2})));
  EXPECT_THAT((*single)[2], TensorEq(AsTensor<int64_t>({2, 2})));
}

TEST(ParseSequenceExample, SurvivesChangedMessages) {
  const std::string good = Field(
      2, Entry("s", IntRow("\x01\x02")) + Entry("d", IntRow("\x01\x02")) + Entry("r", IntRow("")));
  const auto parse = [](const std::string& message) {
    ParseLists(Texts({message}), true).RunOnThreads(1).IgnoreError();
  };
  for (size_t size = 0; size < good.size(); ++size) parse(good.substr(0, size));
  for (size_t at = 0; at < good.size(); ++at) {
    for (int byte = 0; byte < 256; byte += 3) {
      std::string changed = good;
      changed[at] = static_cast<char>(byte);
      parse(changed);
    }
  }
}

// ---- DecodeCompressed ----

// 10 MB of zeros in 10 kB stay within the limit of the session.
TEST(DecodeCompressed, ChargesItsResults) {
  std::string packed(20'000, '\0');
  const std::string zeros(10'000'000, '\0');
  uLongf size = packed.size();
  ASSERT_EQ(compress(reinterpret_cast<Bytef*>(&packed[0]), &size,
                     reinterpret_cast<const Bytef*>(zeros.data()), zeros.size()),
            Z_OK);
  packed.resize(size);
  OpTester tester("DecodeCompressed");
  tester.Input(Texts({packed})).Attr("compression_type", "ZLIB");
  EXPECT_THAT(tester.RunOne(), TensorEq(Texts({zeros})));
  const Scope s = Scope::NewRootScope();
  const Output text = ops::Placeholder(s, DT_STRING);
  const Operation decode =
      OpBuilder(s, "DecodeCompressed").Input(text).Attr("compression_type", "ZLIB").Finish();
  GRADFLOW_ASSERT_OK(s.status());
  SessionOptions options;
  options.tensor_memory_limit_bytes = 1 << 20;
  ClientSession session(s, options);
  std::vector<Tensor> outputs;
  EXPECT_THAT(session.Run({{text, Texts({packed})}}, {Output(decode, 0)}, &outputs),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("strings")));
  EXPECT_THAT(
      OpTester("DecodeCompressed").Input(Texts({"abc"})).Attr("compression_type", "GZIP").Run(),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("incorrect header check")));
  EXPECT_THAT(
      OpTester("DecodeCompressed").Input(Texts({"abc"})).Attr("compression_type", "ZSTD").Run(),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("'ZSTD' is not supported")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
