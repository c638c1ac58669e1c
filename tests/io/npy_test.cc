#include "gradflow/io/npy.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "gradflow/testing/status_matchers.h"
#include "tests/core/shorthands.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace {

using ::gradflow::testing::BytesOf;
using ::gradflow::testing::IsOk;
using ::gradflow::testing::kInvalidArgument;
using ::gradflow::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Little(size_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

// Returns a file of the given version with the given header.
std::string File(const std::string& header, const std::string& data, int version = 1) {
  return "\x93NUMPY" + Little(version, 1) + Little(0, 1) +
         Little(header.size(), version == 1 ? 2 : 4) + header + data;
}

std::string Dict(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }";
}

// Returns a file padded like NumPy's: the data starts at a multiple of 64 bytes.
std::string AlignedFile(const std::string& dict, const std::string& data) {
  std::string header = dict;
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  return File(header + "\n", data);
}

// Reverses the bytes of each word of `size` bytes.
std::string Swapped(std::string bytes, size_t size) {
  for (size_t i = 0; i < bytes.size(); i += size) {
    std::reverse(bytes.begin() + i, bytes.begin() + i + size);
  }
  return bytes;
}

struct NpyType {
  DataType dtype;
  const char* name;
  size_t word;
  std::string bytes;  // of two elements
};

std::vector<NpyType> NpyTypes() {
  return {
      {DT_BOOL, "b1", 1, std::string("\1\0", 2)},
      {DT_INT8, "i1", 1, BytesOf<int8_t>({-128, 1})},
      {DT_UINT8, "u1", 1, BytesOf<uint8_t>({255, 1})},
      {DT_INT16, "i2", 2, BytesOf<int16_t>({-32768, 258})},
      {DT_UINT16, "u2", 2, BytesOf<uint16_t>({65535, 258})},
      {DT_INT32, "i4", 4, BytesOf<int32_t>({-5, 0x01020304})},
      {DT_UINT32, "u4", 4, BytesOf<uint32_t>({0xfffffffe, 0x01020304})},
      {DT_INT64, "i8", 8, BytesOf<int64_t>({-5, 0x0102030405060708})},
      {DT_UINT64, "u8", 8, BytesOf<uint64_t>({~uint64_t{1}, 0x0102030405060708})},
      {DT_HALF, "f2", 2, BytesOf<uint16_t>({0x3c01, 0xfc00})},
      {DT_FLOAT, "f4", 4, BytesOf<float>({1.1f, -0.0f})},
      {DT_DOUBLE, "f8", 8, BytesOf<double>({1.1, -1e300})},
      {DT_COMPLEX64, "c8", 4, BytesOf<float>({1.1f, 2.2f, 3.3f, 4.4f})},
      {DT_COMPLEX128, "c16", 8, BytesOf<double>({1.1, 2.2, 3.3, 4.4})},
  };
}

TEST(ParseNpy, ReadsEveryTypeInEitherByteOrder) {
  for (const NpyType& c : NpyTypes()) {
    for (const std::string order : {"<", ">", "=", "|", ""}) {
      SCOPED_TRACE(order + c.name);
      const std::string data = order == ">" ? Swapped(c.bytes, c.word) : c.bytes;
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor,
                                    ParseNpy(File(Dict(order + c.name, "(2,)"), data)));
      EXPECT_EQ(tensor.dtype(), c.dtype);
      EXPECT_EQ(tensor.shape(), TensorShape({2}));
      EXPECT_EQ(tensor.tensor_data(), c.bytes);
    }
  }
}

TEST(ParseNpy, ReadsEveryVersion) {
  for (const int version : {1, 2, 3}) {
    GRADFLOW_ASSERT_OK_AND_ASSIGN(
        const Tensor tensor,
        ParseNpy(File(Dict("<f4", "(2, 1)"), BytesOf<float>({1, 2}), version)));
    EXPECT_EQ(tensor.DebugString(), "Tensor<type: float shape: [2,1] values: [1][2]>") << version;
  }
}

TEST(ParseNpy, ReadsAHeaderLongerThanVersionOneHas) {
  const std::string header = Dict("<f4", "()") + std::string(100000, ' ') + "\n";
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor,
                                ParseNpy(File(header, BytesOf<float>({7}), 2)));
  EXPECT_EQ(tensor.scalar<float>()(), 7);
}

TEST(ParseNpy, ReadsAnyOrderOfKeysAndWhiteSpace) {
  for (const char* header : {
           "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }          \n",
           "{'shape': (2, 3), 'fortran_order': False, 'descr': '<i2'}",
           "{'fortran_order':False,'shape':(2,3),'descr':'<i2',}",
           " \t{ \"descr\" : \"<i2\" ,\n \"fortran_order\" : False , 'shape' : ( 2 , 3 , ) } \n\n",
           "{'descr': '<i2', 'fortran_order': False, 'shape': (2L, 3L), }",
       }) {
    SCOPED_TRACE(header);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor,
                                  ParseNpy(File(header, BytesOf<int16_t>({0, 1, 2, 3, 4, 5}))));
    EXPECT_EQ(tensor.shape(), TensorShape({2, 3}));
    EXPECT_EQ(tensor.matrix<int16_t>()(1, 0), 3);
  }
}

TEST(ParseNpy, ReadsShapes) {
  const std::pair<const char*, TensorShape> cases[] = {
      {"()", {}},
      {"( )", {}},
      {"(1,)", {1}},
      {"(1, 1)", {1, 1}},
      {"(1, 1,)", {1, 1}},
      {"(0,)", {0}},
      {"(3, 0, 2)", {3, 0, 2}},
      {"(9223372036854775807, 0)", {std::numeric_limits<int64_t>::max(), 0}}};
  for (const auto& [text, shape] : cases) {
    const std::string data(shape.num_elements() * 4, '\0');
    for (const bool fortran : {false, true}) {
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor,
                                    ParseNpy(File(Dict("<f4", text, fortran), data)));
      EXPECT_EQ(tensor.shape(), shape) << text;
    }
  }
}

// Returns the column-major index of the element with row-major index `index`.
int64_t FortranIndex(const TensorShape& shape, int64_t index) {
  int64_t result = 0;
  int64_t stride = shape.num_elements();
  for (int d = shape.dims() - 1; d >= 0; --d) {
    stride /= shape.dim_size(d);
    result += index % shape.dim_size(d) * stride;
    index /= shape.dim_size(d);
  }
  return result;
}

TEST(ParseNpy, TransposesFortranOrder) {
  for (const TensorShape& shape :
       {TensorShape({5}), TensorShape({2, 3}), TensorShape({1, 7}), TensorShape({7, 1}),
        TensorShape({3, 1, 2}), TensorShape({2, 3, 4, 5}), TensorShape({1, 40, 50}),
        TensorShape({70, 3, 45}), TensorShape({33, 32}), TensorShape({2, 1, 300, 1, 2}),
        TensorShape({31, 2, 2, 65})}) {
    std::string text = "(";
    for (const int64_t dim : shape.dim_sizes()) text += std::to_string(dim) + ",";
    text += ")";
    for (const auto& [name, word, parts] :
         {std::tuple("i1", 1, 1), std::tuple("u2", 2, 1), std::tuple("u4", 4, 1),
          std::tuple("u8", 8, 1), std::tuple("c8", 4, 2), std::tuple("c16", 8, 2)}) {
      SCOPED_TRACE(text + " " + name);
      // Each part of element i is i, truncated to the width of the part.
      std::string column_major, row_major;
      const auto append = [&, word = word, parts = parts](std::string* out, int64_t value) {
        for (int p = 0; p < parts; ++p) *out += Little(value, word);
      };
      for (int64_t i = 0; i < shape.num_elements(); ++i) {
        append(&column_major, i);
        append(&row_major, FortranIndex(shape, i));
      }
      GRADFLOW_ASSERT_OK_AND_ASSIGN(
          const Tensor little,
          ParseNpy(File(Dict(std::string("<") + name, text, true), column_major)));
      EXPECT_EQ(little.shape(), shape);
      EXPECT_TRUE(little.tensor_data() == row_major);
      GRADFLOW_ASSERT_OK_AND_ASSIGN(
          const Tensor big,
          ParseNpy(File(Dict(std::string(">") + name, text, true), Swapped(column_major, word))));
      EXPECT_TRUE(big.tensor_data() == row_major);
    }
  }
}

TEST(ParseNpy, AnyByteButZeroIsTrue) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor,
                                ParseNpy(File(Dict("|b1", "(4,)"), std::string("\0\1\2\377", 4))));
  EXPECT_EQ(tensor.tensor_data(), std::string("\0\1\1\1", 4));
}

TEST(ParseNpy, RejectsInvalidFiles) {
  const std::string good = Dict("<f4", "(2,)");
  const std::string data(8, '\0');
  const struct {
    std::string bytes;
    const char* text;
  } cases[] = {
      {"", "expected a .npy file, but it is empty"},
      {"hello world", "expected a .npy file, but its first bytes are 'hello '"},
      {"PK\3\4 a zip file, as .npz is", "first bytes are 'PK\\x03\\x04 a', not '\\x93NUMPY'"},
      {"\x93NUM", "at least 12 bytes, but it has 4"},
      {std::string("\x93NUMPY\1\0\1", 9), "at least 10 bytes, but it has 9"},
      {std::string("\x93NUMPY\2\0\1\0\0", 11), "at least 12 bytes, but it has 11"},
      {File(good, data, 4), "expected .npy version 1.0, 2.0 or 3.0, but found 4.0"},
      {File(good, data, 0), "but found 0.0"},
      {std::string("\x93NUMPY\1\1\0\0\0\0", 12), "but found 1.1"},
      {std::string("\x93NUMPY\2\0\1\0\x10\0", 12),
       "header of at most 1048576 bytes, but its length is 1048577"},
      {std::string("\x93NUMPY\3\0\377\377\377\377", 12), "its length is 4294967295"},
      {std::string("\x93NUMPY\1\0\x76\0{'de", 14), "a header of 118 bytes, but only 4 follow"},
      // Sizes.
      {File(good, data.substr(1)),
       "expected 2 elements of 4 bytes (type float, shape [2]), but found 7 bytes"},
      {File(good, ""), "but found 0 bytes"},
      {File(good, data + "x"), "but found 9 bytes"},
      {File(Dict("<f4", "(0,)"), "x"), "but found 1 bytes"},
      {File(Dict("<f8", "(4611686018427387904,)"), data), "but found 8 bytes"},
      {File(Dict("<f4", "(4294967296, 4294967296)"), data), "more elements than fit in an int64"},
      // Types.
      {File(Dict("<U5", "(2,)"), data), "expected 2 elements of 20 bytes (type string, shape [2])"},
      {File(Dict("|S0", "(1,)"), ""), "but found descr '|S0'"},
      {File(Dict("|S-4", "(1,)"), data), "but found descr '|S-4'"},
      {File(Dict("|S99999999999", "(0,)"), ""), "but found descr '|S99999999999'"},
      {File(Dict("<U1", "(1,)"), std::string("\0\0\x11\0", 4)),
       "expected Unicode characters, but found 1114112"},
      {File(Dict("|O", "(1,)"), data), "but found descr '|O'"},
      {File(Dict("|V2", "(4,)"), data), "but found descr '|V2'"},
      {File(Dict("<M8[ns]", "(1,)"), data), "but found descr '<M8[ns]'"},
      {File(Dict("<f16", "(1,)"), data), "but found descr '<f16'"},
      {File(Dict("", "(1,)"), data), "but found descr"},
      {File(Dict("<", "(1,)"), data), "but found descr '<'"},
      {File(Dict("<<f4", "(2,)"), data), "but found descr '<<f4'"},
      {File("{'descr': [('a', '<f4'), ('b', '<f4')], 'fortran_order': False, 'shape': (1,), }",
            data),
       "found descr '[('a', '<f4'), ('b', '<f4')], 'fortran_o...', a structured type"},
      // Keys.
      {File("{'descr': '<f4', 'fortran_order': False, }", data), "has no key 'shape'"},
      {File("{'descr': '<f4', 'shape': (2,), }", data), "has no key 'fortran_order'"},
      {File("{}", data), "has no key 'descr'"},
      {File("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", data),
       "each once, but found 'descr'"},
      {File("{'descr': '<f4', 'order': False, 'shape': (2,)}", data), "but found 'order'"},
      // Grammar.
      {File("", data), "expected '{' at byte 0 of the header, but found nothing"},
      {File("[1]", data), "expected '{' at byte 0 of the header, but found '[1]'"},
      {File("{descr: '<f4'}", data), "expected a string in quotes at byte 1"},
      {File("{'descr", data), "a string in quotes, without escapes"},
      {File("{'descr': '<f\\x34'}", data), "without escapes"},
      {File("{'descr' '<f4'}", data), "expected ':' at byte 9"},
      {File("{'descr': 4}", data), "expected a string in quotes at byte 10"},
      {File("{'descr': '<f4' 'shape': (2,)}", data), "expected ',' or '}' at byte 16"},
      {File("{'descr': '<f4',, 'shape': (2,)}", data), "expected a string in quotes at byte 16"},
      {File("{'descr': '<f4', 'fortran_order': false, 'shape': (2,)}", data),
       "expected True or False at byte 34"},
      {File("{'descr': '<f4', 'fortran_order': Falsely, 'shape': (2,)}", data),
       "expected ',' or '}'"},
      {File(good + "x", data), "expected the end of the header at byte 57"},
      {File(good.substr(0, good.size() - 1), data), "but found nothing"},
      {File(Dict("<f4", "2"), data), "expected a tuple as shape"},
      {File(Dict("<f4", "[2]"), data), "expected a tuple as shape"},
      {File(Dict("<f4", "(2)"), data), "',' in a tuple of one dimension"},
      {File(Dict("<f4", "(2 1)"), data), "expected ',' or ')'"},
      {File(Dict("<f4", "(,)"), data), "expected a dimension"},
      {File(Dict("<f4", "(2,,)"), data), "expected a dimension"},
      {File(Dict("<f4", "(-2,)"), data), "expected a dimension (a 64-bit integer of at least 0)"},
      {File(Dict("<f4", "(2.0,)"), data), "expected ',' or ')'"},
      {File(Dict("<f4", "(None,)"), data), "expected a dimension"},
      {File(Dict("<f4", "(9223372036854775808,)"), data), "expected a dimension"},
      {File(Dict("<f4", "(2,"), data), "expected a dimension"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    EXPECT_THAT(ParseNpy(c.bytes), StatusIs(kInvalidArgument, HasSubstr(c.text)));
  }
  std::string many = "(";
  for (int i = 0; i <= kMaxDims; ++i) many += "1, ";
  EXPECT_THAT(ParseNpy(File(Dict("<f4", many + ")"), data)),
              StatusIs(kInvalidArgument, HasSubstr("at most 254 dimensions, but this has 255")));
}

TEST(ParseNpy, EveryPrefixAndEveryChangedByteIsSafe) {
  const std::string file = AlignedFile(Dict("<f4", "(2, 3)"), std::string(24, '\1'));
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_THAT(ParseNpy(file.substr(0, size)), StatusIs(kInvalidArgument)) << size;
  }
  for (size_t i = 0; i < file.size() - 24; ++i) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = file;
      changed[i] = static_cast<char>(byte);
      const absl::StatusOr<Tensor> tensor = ParseNpy(changed);
      // Some changes lead to another valid header with the same data size.
      if (tensor.ok()) {
        const bool is_text = tensor->dtype() == DT_STRING;
        EXPECT_TRUE(is_text || tensor->TotalBytes() == 24u);
      } else {
        EXPECT_THAT(tensor, StatusIs(kInvalidArgument));
      }
    }
  }
}

// ---- Strings ----

std::vector<std::string> Strings(const Tensor& tensor) {
  const auto span = tensor.span<tstring>();
  return std::vector<std::string>(span.begin(), span.end());
}

TEST(NpyStrings, AreReadWithoutTheZerosAtTheirEnd) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(
      const Tensor bytes,
      ParseNpy(File(Dict("|S3", "(2, 2)"), std::string("abca\0\0\0\0\0\0b\0", 12))));
  EXPECT_EQ(bytes.dtype(), DT_STRING);
  EXPECT_EQ(bytes.shape(), TensorShape({2, 2}));
  EXPECT_THAT(Strings(bytes), ElementsAre("abc", "a", "", std::string("\0b", 2)));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor columns,
                                ParseNpy(File(Dict("|S1", "(2, 3)", /*fortran=*/true), "adbecf")));
  EXPECT_THAT(Strings(columns), ElementsAre("a", "b", "c", "d", "e", "f"));
}

TEST(NpyStrings, ConvertUnicodeToUtf8) {
  // "a", e with an acute accent, the euro sign, and a violin clef.
  const std::string little("a\0\0\0\xe9\0\0\0\xac\x20\0\0\x1e\xd1\x01\0", 16);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor text, ParseNpy(File(Dict("<U4", "()"), little)));
  EXPECT_THAT(Strings(text), ElementsAre("a\xc3\xa9\xe2\x82\xac\xf0\x9d\x84\x9e"));
  const std::string big("\0\0\0a\0\0\0\0", 8);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor short_text, ParseNpy(File(Dict(">U2", "(1,)"), big)));
  EXPECT_THAT(Strings(short_text), ElementsAre("a"));
}

TEST(NpyStrings, AreWrittenWithTheWidthOfTheLongest) {
  Tensor tensor(DT_STRING, {3});
  tensor.flat<tstring>()(0) = "one";
  tensor.flat<tstring>()(2) = "three";
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::string header, FormatNpyHeader(tensor));
  EXPECT_THAT(header, HasSubstr("'descr': '|S5'"));
  std::string storage;
  const std::string elements(FormatNpyElements(tensor, &storage));
  EXPECT_EQ(elements, std::string("one\0\0\0\0\0\0\0three", 15));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor read, ParseNpy(header + elements));
  EXPECT_THAT(Strings(read), ElementsAre("one", "", "three"));
}

TEST(NpyStrings, ThatTheFormCannotHoldAreErrors) {
  Tensor tensor(DT_STRING, {1});
  tensor.flat<tstring>()(0) = tstring(absl::string_view("a\0", 2));
  EXPECT_THAT(FormatNpyHeader(tensor),
              StatusIs(kInvalidArgument,
                       "a string that ends in a zero byte cannot be written to a .npy file"));
  Tensor wide(DT_STRING, {1 << 16});
  wide.flat<tstring>()(7) = tstring(std::string(1 << 16, 'x'));
  EXPECT_THAT(FormatNpyHeader(wide),
              StatusIs(kInvalidArgument, HasSubstr("65536 strings of 65536 bytes take more")));
}

// ---- Written headers ----

TEST(FormatNpyHeader, MatchesNumPy) {
  // np.save("x.npy", np.zeros((3, 4), np.float32)) starts with these 128 bytes.
  const std::string dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }";
  EXPECT_THAT(FormatNpyHeader(Tensor(DT_FLOAT, {3, 4})),
              gradflow::testing::IsOkAndHolds(std::string("\x93NUMPY\1\0\x76\0", 10) + dict +
                                              std::string(117 - dict.size(), ' ') + "\n"));
}

TEST(FormatNpyHeader, NamesEveryType) {
  std::vector<std::pair<DataType, std::string>> cases = {{DT_BFLOAT16, "<u2"}};
  for (const NpyType& c : NpyTypes()) {
    cases.emplace_back(c.dtype, (c.bytes.size() == 2 ? "|" : "<") + std::string(c.name));
  }
  for (const auto& [dtype, descr] : cases) {
    EXPECT_THAT(FormatNpyHeader(Tensor(dtype, {})),
                gradflow::testing::IsOkAndHolds(HasSubstr("{'descr': '" + descr + "', ")))
        << DataTypeString(dtype);
  }
}

TEST(FormatNpyHeader, WritesShapesAsTuples) {
  const std::pair<TensorShape, const char*> cases[] = {
      {{}, "()"}, {{5}, "(5,)"}, {{0}, "(0,)"}, {{2, 3, 4}, "(2, 3, 4)"}};
  for (const auto& [shape, text] : cases) {
    EXPECT_THAT(
        FormatNpyHeader(Tensor(DT_FLOAT, shape)),
        gradflow::testing::IsOkAndHolds(HasSubstr(std::string("'shape': ") + text + ", }")));
  }
}

TEST(FormatNpyHeader, ElementsStartAtAMultipleOf64Bytes) {
  for (int rank = 0; rank <= kMaxDims; ++rank) {
    const Tensor tensor(DT_FLOAT, TensorShape(std::vector<int64_t>(rank, 1)));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::string header, FormatNpyHeader(tensor));
    ASSERT_EQ(header.size() % 64, 0u) << rank;
    ASSERT_EQ(header.back(), '\n') << rank;
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor read, ParseNpy(header + std::string(4, '\0')));
    ASSERT_EQ(read.shape(), tensor.shape());
  }
}

TEST(FormatNpyHeader, RefusesTypesThatNumPyDoesNotHave) {
  for (const DataType dtype :
       {DT_QINT8, DT_QUINT16, DT_QINT32, DT_FLOAT8_E5M2, DT_INT4, DT_UINT2}) {
    EXPECT_THAT(FormatNpyHeader(Tensor(dtype, {1})),
                StatusIs(kInvalidArgument,
                         "a tensor of type " + DataTypeString(dtype) +
                             " cannot be written to a .npy file: NumPy has no such type"));
  }
  EXPECT_THAT(FormatNpyHeader(Tensor(DT_FLOAT, {-1})),
              StatusIs(kInvalidArgument, HasSubstr("not initialized")));
}

// ---- Files ----

class NpyFile : public ::testing::Test {
 protected:
  NpyFile() {
    std::string name = ::testing::TempDir() + "/npy_test_XXXXXX";
    if (mkdtemp(name.data()) == nullptr) std::abort();
    folder_ = name + "/";
  }
  ~NpyFile() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name = "x.npy") const { return folder_ + name; }
  std::string Put(const std::string& bytes) const {
    std::ofstream(Path(), std::ios::binary) << bytes;
    return Path();
  }
  static std::string Get(const std::string& path) {
    std::ostringstream bytes;
    bytes << std::ifstream(path, std::ios::binary).rdbuf();
    return bytes.str();
  }
  // Returns the names of the files in the folder.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

 private:
  std::string folder_;
};

TEST_F(NpyFile, ReadsSmallFilesIntoMemory) {
  for (const NpyType& c : NpyTypes()) {
    for (const bool fortran : {false, true}) {
      SCOPED_TRACE(c.name);
      Put(AlignedFile(Dict((c.word == 1 ? ">" : "<") + std::string(c.name), "(2, 1)", fortran),
                      c.bytes));
      GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor, ReadNpy(Path()));
      EXPECT_EQ(tensor.shape(), TensorShape({2, 1}));
      // Later changes to the file have no effect.
      std::filesystem::resize_file(Path(), 0);
      EXPECT_EQ(tensor.tensor_data(), c.bytes);
      EXPECT_TRUE(tensor.CanBeReused());
      EXPECT_TRUE(tensor.IsAligned());
      const Tensor slice = tensor.Slice(1, 2);
      EXPECT_EQ(slice.tensor_data(), c.bytes.substr(c.bytes.size() / 2));
    }
  }
}

// The minimum size of mapped files.
constexpr size_t kLarge = size_t{64} << 20;

TEST_F(NpyFile, MapsLargeFilesThatNeedNoConversion) {
  std::string unaligned = Dict("<i4", "(16777216,)");
  while ((10 + unaligned.size()) % 4 != 2) unaligned += " ";
  const struct {
    const char* what;
    std::string header;
    size_t size;
    std::string end;  // The last bytes; the others are 0.
    bool mapped;
    std::string read_end;
  } cases[] = {
      {"float", AlignedFile(Dict("<f4", "(16777216, 1)"), ""), kLarge, "\1\2", true, "\1\2"},
      {"one dimension", AlignedFile(Dict("<i8", "(1, 8388608)", true), ""), kLarge, "\1", true,
       "\1"},
      {"bytes", AlignedFile(Dict(">u1", "(67108864,)"), ""), kLarge, "\1", true, "\1"},
      {"bool", AlignedFile(Dict("|b1", "(67108864,)"), ""), kLarge, "\1", true, "\1"},
      {"almost large", AlignedFile(Dict("|u1", "(67108863,)"), ""), kLarge - 1, "\1", false, "\1"},
      {"byte order", AlignedFile(Dict(">u2", "(33554432,)"), ""), kLarge, "\1\2", false, "\2\1"},
      {"memory order", AlignedFile(Dict("<u2", "(16777216, 2)", true), ""), kLarge, "\1\2", false,
       "\1\2"},
      {"bool values", AlignedFile(Dict("|b1", "(67108864,)"), ""), kLarge, "\2", false, "\1"},
      {"alignment", File(unaligned, ""), kLarge, "\1", false, "\1"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    // A sparse file is fast to create and takes no space.
    Put(c.header);
    std::filesystem::resize_file(Path(), c.header.size() + c.size - c.end.size());
    std::ofstream(Path(), std::ios::binary | std::ios::app) << c.end;
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor, ReadNpy(Path()));
    // The elements outlive the file name and are read-only.
    std::filesystem::remove(Path());
    EXPECT_EQ(tensor.CanBeReused(), !c.mapped);
    EXPECT_TRUE(tensor.IsAligned());
    const absl::string_view bytes = tensor.tensor_data();
    ASSERT_EQ(bytes.size(), c.size);
    EXPECT_EQ(bytes.substr(c.size - c.end.size()), c.read_end);
    EXPECT_EQ(bytes.find_first_not_of('\0'), c.size - c.end.size());
  }
}

TEST_F(NpyFile, ReadsFilesThatNeedConversion) {
  std::string unaligned = Dict("<i4", "(2,)");
  while ((10 + unaligned.size()) % 4 != 2) unaligned += " ";
  const struct {
    const char* what;
    std::string file;
    std::string bytes;
  } cases[] = {
      {"byte order", AlignedFile(Dict(">i2", "(2,)"), std::string("\0\1\0\2", 4)),
       BytesOf<int16_t>({1, 2})},
      {"memory order", AlignedFile(Dict("<i2", "(2, 2)", true), BytesOf<int16_t>({1, 2, 3, 4})),
       BytesOf<int16_t>({1, 3, 2, 4})},
      {"bool values", AlignedFile(Dict("|b1", "(2,)"), "\1\2"), "\1\1"},
      {"alignment", File(unaligned, BytesOf<int32_t>({5, 6})), BytesOf<int32_t>({5, 6})},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.what);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor, ReadNpy(Put(c.file)));
    EXPECT_EQ(tensor.tensor_data(), c.bytes);
    EXPECT_TRUE(tensor.CanBeReused());
    EXPECT_TRUE(tensor.IsAligned());
  }
}

TEST_F(NpyFile, ReadsEmptyTensors) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor tensor,
                                ReadNpy(Put(AlignedFile(Dict("<f4", "(0, 3)"), ""))));
  EXPECT_EQ(tensor.shape(), TensorShape({0, 3}));
  EXPECT_TRUE(tensor.IsInitialized());
}

TEST_F(NpyFile, ReadsLikeParseNpy) {
  // Every prefix of a file fails with the same errors as bytes in memory.
  const std::string file = AlignedFile(Dict("<f4", "(2,)"), std::string(8, '\1'));
  for (size_t size = 0; size < file.size(); ++size) {
    const std::string cut = file.substr(0, size);
    const absl::Status parsed = ParseNpy(cut).status();
    ASSERT_THAT(parsed, StatusIs(kInvalidArgument));
    ASSERT_THAT(ReadNpy(Put(cut)),
                StatusIs(kInvalidArgument, "'" + Path() + "': " + std::string(parsed.message())));
  }
  EXPECT_THAT(ReadNpy(Put(file + "x")), StatusIs(kInvalidArgument, HasSubstr("but found 9 bytes")));
}

TEST_F(NpyFile, RejectsIrregularFiles) {
  EXPECT_THAT(ReadNpy(Path("missing.npy")),
              StatusIs(absl::StatusCode::kNotFound,
                       "'" + Path("missing.npy") + "': cannot open: No such file or directory"));
  EXPECT_THAT(ReadNpy(""), StatusIs(absl::StatusCode::kNotFound, HasSubstr("cannot open")));
  EXPECT_THAT(ReadNpy(Path("")),
              StatusIs(kInvalidArgument, "'" + Path("") +
                                             "': expected a regular file, but found a "
                                             "directory"));
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  EXPECT_THAT(ReadNpy(Path("fifo")), StatusIs(kInvalidArgument, HasSubstr("but found a pipe")));
  EXPECT_THAT(ReadNpy("/dev/zero"), StatusIs(kInvalidArgument, HasSubstr("but found a device")));
  Put("x");
  EXPECT_FALSE(ReadNpy(Path("x.npy/y")).ok());
}

TEST_F(NpyFile, WritesWhatItReads) {
  for (const NpyType& c : NpyTypes()) {
    SCOPED_TRACE(c.name);
    GRADFLOW_ASSERT_OK_AND_ASSIGN(
        const Tensor tensor, ParseNpy(File(Dict("<" + std::string(c.name), "(1, 2)"), c.bytes)));
    GRADFLOW_ASSERT_OK(WriteNpy(Path(), tensor));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor read, ReadNpy(Path()));
    EXPECT_EQ(read.dtype(), c.dtype);
    EXPECT_EQ(read.shape(), TensorShape({1, 2}));
    EXPECT_EQ(read.tensor_data(), c.bytes);
  }
  EXPECT_THAT(Names(), ElementsAre("x.npy"));
}

TEST_F(NpyFile, WritesHeaderAndElements) {
  Tensor tensor(DT_BFLOAT16, {4});
  for (int i = 0; i < 4; ++i) tensor.flat<bfloat16>()(i) = bfloat16(i);
  const Tensor slice = tensor.Slice(1, 3);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::string header, FormatNpyHeader(slice));
  GRADFLOW_ASSERT_OK(WriteNpy(Path(), slice));
  EXPECT_EQ(Get(Path()), header + BytesOf<uint16_t>({0x3f80, 0x4000}));
  GRADFLOW_ASSERT_OK(WriteNpy(Path(), Tensor(DT_INT64, {0})));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor empty, ReadNpy(Path()));
  EXPECT_EQ(empty.DebugString(), "Tensor<type: int64 shape: [0] values: >");
}

TEST_F(NpyFile, ReplacesAFileThatIsStillMapped) {
  const std::string header = AlignedFile(Dict("<f4", "(16777216,)"), "");
  Put(header);
  std::filesystem::resize_file(Path(), header.size() + kLarge);
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor before, ReadNpy(Path()));
  EXPECT_FALSE(before.CanBeReused());
  GRADFLOW_ASSERT_OK(WriteNpy(Path(), Tensor(2.0f)));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor after, ReadNpy(Path()));
  EXPECT_EQ(before.flat<float>()(16777215), 0);
  EXPECT_EQ(after.scalar<float>()(), 2);
}

TEST_F(NpyFile, WritesThroughALink) {
  Put("old");
  ASSERT_EQ(symlink("x.npy", Path("link").c_str()), 0);
  GRADFLOW_ASSERT_OK(WriteNpy(Path("link"), Tensor(1.0f)));
  EXPECT_TRUE(std::filesystem::is_symlink(Path("link")));
  EXPECT_THAT(ReadNpy(Path()), IsOk());
}

TEST_F(NpyFile, WritesNamesOfMaximumLength) {
  const std::string path = Path(std::string(255, 'x'));
  GRADFLOW_ASSERT_OK(WriteNpy(path, Tensor(1.0f)));
  EXPECT_THAT(ReadNpy(path), IsOk());
}

TEST_F(NpyFile, FilesHaveDefaultPermissions) {
  const mode_t mask = umask(027);
  const absl::Status status = WriteNpy(Path(), Tensor(1.0f));
  umask(mask);
  GRADFLOW_ASSERT_OK(status);
  struct stat info;
  ASSERT_EQ(stat(Path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640u);
  // The new file has the permissions of the replaced file.
  for (const mode_t mode : {0600, 0666}) {
    ASSERT_EQ(chmod(Path().c_str(), mode), 0);
    GRADFLOW_ASSERT_OK(WriteNpy(Path(), Tensor(2.0f)));
    ASSERT_EQ(stat(Path().c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, mode);
  }
}

TEST_F(NpyFile, FailedWritesLeaveNothing) {
  EXPECT_THAT(WriteNpy(Path("no/folder.npy"), Tensor(1.0f)),
              StatusIs(absl::StatusCode::kNotFound, "'" + Path("no/folder.npy") +
                                                        "': cannot write: No such file or "
                                                        "directory"));
  EXPECT_THAT(
      WriteNpy(Path(), Tensor(DT_QINT8, {1})),
      StatusIs(kInvalidArgument, AllOf(StartsWith("'" + Path() + "'"), HasSubstr("type qint8"))));
  EXPECT_THAT(WriteNpy(Path(""), Tensor(1.0f)),
              StatusIs(kInvalidArgument, HasSubstr("a directory")));
  EXPECT_THAT(WriteNpy("/dev/null", Tensor(1.0f)),
              StatusIs(kInvalidArgument, HasSubstr("a device")));
  EXPECT_THAT(Names(), ElementsAre());
}

TEST_F(NpyFile, ReportsMissingPermissions) {
  Put("private");
  ASSERT_EQ(chmod(Path().c_str(), 0), 0);
  ASSERT_EQ(chmod(Path("").c_str(), 0500), 0);
  // Permissions do not apply to root, so the test drops its privileges.
  const bool is_root = geteuid() == 0;
  if (is_root && seteuid(65534) != 0) GTEST_SKIP() << "root cannot be somebody else here";
  const absl::Status read = ReadNpy(Path()).status();
  const absl::Status written = WriteNpy(Path("y.npy"), Tensor(1.0f));
  ASSERT_EQ(seteuid(is_root ? 0 : geteuid()), 0);
  ASSERT_EQ(chmod(Path("").c_str(), 0700), 0);
  EXPECT_THAT(read, StatusIs(absl::StatusCode::kPermissionDenied,
                             "'" + Path() + "': cannot open: Permission denied"));
  EXPECT_THAT(written, StatusIs(absl::StatusCode::kPermissionDenied,
                                "'" + Path("y.npy") + "': cannot write: Permission denied"));
  EXPECT_THAT(Names(), ElementsAre("x.npy"));
}

TEST_F(NpyFile, AFullDiskLeavesTheOldFile) {
  Put("old");
  // With a limit on the file size, a write fails in the middle like on a full disk.
  rlimit old_limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const rlimit limit = {4096, old_limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  Tensor tensor(DT_FLOAT, {100000});
  tensor.flat<float>().setZero();
  const absl::Status status = WriteNpy(Path(), tensor);
  std::signal(SIGXFSZ, old_handler);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot write: File too large"));
  EXPECT_EQ(Get(Path()), "old");
  EXPECT_THAT(Names(), ElementsAre("x.npy"));
}

}  // namespace
}  // namespace gradflow
