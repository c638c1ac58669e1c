// Tests of the ops on code points. TensorFlow's values are in
// tests/data/tensorflow_values/string_unicode.txt.
#include <string>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

Tensor ManyStringsWithInvalidUtf8(int64_t count) {
  Tensor tensor(DT_STRING, {count});
  for (int64_t i = 0; i < count; ++i) {
    tensor.span<tstring>()[i] = "é€" + std::to_string(i) + std::string(i % 40, 'x') + "\xff";
  }
  return tensor;
}

OpTester ReadWithEncoding(const char* op, const Tensor& input, const std::string& encoding) {
  return OpTester(op).Input(input).Attr("input_encoding", encoding).ShapeIsData();
}

TEST(Unicode, IsReadOnSeveralThreads) {
  const Tensor many = ManyStringsWithInvalidUtf8(20'000);
  for (const char* const encoding : {"UTF-8", "latin1"}) {
    EXPECT_THAT(ReadWithEncoding("UnicodeDecodeWithOffsets", many, encoding).RunEverywhere(),
                IsOk());
    EXPECT_THAT(ReadWithEncoding("UnicodeTranscode", many, encoding)
                    .Attr("output_encoding", "UTF-16-BE")
                    .RunEverywhere(),
                IsOk());
  }
}

TEST(Unicode, EncodingRestoresDecodedStrings) {
  Tensor texts(DT_STRING, {3});
  texts.span<tstring>()[0] = "aé€😀";
  texts.span<tstring>()[2] = std::string("\0\x7f", 2) + "\u07ff\u0800\uffff\U00010000\U0010ffff";
  for (const char* const type : {"UnicodeDecode", "UnicodeDecodeWithOffsets"}) {
    const auto decoded = ReadWithEncoding(type, texts, "UTF-8").Attr("errors", "strict").Run();
    GRADFLOW_ASSERT_OK(decoded.status());
    EXPECT_THAT((*decoded)[0], TensorEq(AsTensor<int64_t>({0, 4, 4, 11})));
    EXPECT_THAT(OpTester("UnicodeEncode")
                    .Input((*decoded)[1])
                    .Input((*decoded)[0])
                    .Attr("output_encoding", "UTF-8")
                    .ShapeIsData()
                    .RunOne(),
                TensorEq(texts));
  }
}

TEST(Unicode, ChecksItsInputs) {
  Tensor bad(DT_STRING, {2});
  bad.span<tstring>()[0] = "a";
  bad.span<tstring>()[1] = "b\xff";
  const auto encode = [](const std::vector<int32_t>& values, const std::vector<int64_t>& splits) {
    return OpTester("UnicodeEncode")
        .Input(AsTensor<int32_t>(values))
        .Input(AsTensor<int64_t>(splits))
        .Attr("output_encoding", "UTF-8")
        .Attr("errors", "strict")
        .ShapeIsData();
  };
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {ReadWithEncoding("UnicodeDecode", bad, "UTF-8").Attr("errors", "strict"),
       "input[1] has a character that is not valid"},
      {ReadWithEncoding("UnicodeTranscode", bad, "US-ASCII")
           .Attr("errors", "strict")
           .Attr("output_encoding", "UTF-8"),
       "input[1] has a character that is not valid"},
      {ReadWithEncoding("UnicodeDecode", bad, "klingon"), "input_encoding 'klingon' is not known"},
      {ReadWithEncoding("UnicodeDecode", bad, std::string(5000, 'x')), "' is not known"},
      {ReadWithEncoding("UnicodeDecode", bad, "UTF-8").Attr("replacement_char", -1),
       "replacement_char must be a code point, but is -1"},
      {encode({97}, {0, 2, 1}),
       "input_splits must begin with 0 and must not decrease or exceed 1, but input_splits[1] is "
       "2"},
      {encode({97}, {0}),
       "input_splits must end with 1, the number of input_values, but ends with 0"},
      {encode({97, 0xd800}, {0, 2}), "input_values[1] is 55296, which is not a character"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(OpTester(c.tester).Run(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
  ExpectErrors({{"splits", encode({97}, {}), "input_splits must not be empty"}});
}

TEST(UnicodeScript, HasICUsNumbers) {
  // Latin, Greek, Han, common, and no character.
  EXPECT_THAT(
      OpTester("UnicodeScript").Input(AsTensor<int32_t>({'a', 0x3b1, 0x4e00, ' ', -5})).RunOne(),
      TensorEq(AsTensor<int32_t>({25, 14, 17, 0, -1})));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
