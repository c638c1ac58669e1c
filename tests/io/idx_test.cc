// Tests of IDX files: plain and compressed, complete and damaged.
#include "gradflow/io/idx.h"

#include <zlib.h>

#include <string>
#include <vector>

#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/testing/folder_fixture.h"
#include "tests/testing/subprocess.h"

namespace gradflow {
namespace {

using ::gradflow::testing::AsTensor;
using ::gradflow::testing::StatusIs;
using ::gradflow::testing::TensorEq;
using ::testing::AllOf;
using ::testing::HasSubstr;

class IdxTest : public ::gradflow::testing::FolderFixture {
 protected:
  absl::StatusOr<Tensor> Read(const std::string& bytes) {
    ::gradflow::testing::WriteFile(File("x"), bytes);
    return ReadIdx(File("x"));
  }
  absl::Status ErrorOf(const std::string& bytes) { return Read(bytes).status(); }
  std::string Compressed(const std::string& bytes) {
    const std::string path = File("x.gz");
    const gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), bytes.size());
    gzclose(file);
    return ::gradflow::testing::ReadFile(path);
  }
};

std::string Header(int type, const std::vector<int64_t>& dims) {
  std::string bytes = {0, 0, static_cast<char>(type), static_cast<char>(dims.size())};
  for (const int64_t dim : dims) {
    for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<char>(dim >> shift));
  }
  return bytes;
}
// Appends an element of `size` bytes, big-endian.
void Append(std::string* bytes, uint64_t bits, int size) {
  for (int i = size - 1; i >= 0; --i) bytes->push_back(static_cast<char>(bits >> (8 * i)));
}
template <typename T, typename Bits>
std::string FileOf(int type, const std::vector<T>& values) {
  std::string bytes = Header(type, {static_cast<int64_t>(values.size())});
  for (const T value : values) {
    Bits bits;
    std::memcpy(&bits, &value, sizeof(bits));
    Append(&bytes, bits, sizeof(bits));
  }
  return bytes;
}

TEST_F(IdxTest, ReadsAllTypesPlainAndCompressed) {
  const std::vector<std::pair<std::string, Tensor>> files = {
      {FileOf<uint8_t, uint8_t>(8, {1, 255}), AsTensor<uint8_t>({1, 255})},
      {FileOf<int8_t, uint8_t>(9, {-1, 127}), AsTensor<int8_t>({-1, 127})},
      {FileOf<int16_t, uint16_t>(0xB, {-2, 0x0102}), AsTensor<int16_t>({-2, 0x0102})},
      {FileOf<int32_t, uint32_t>(0xC, {-3, 0x01020304}), AsTensor<int32_t>({-3, 0x01020304})},
      {FileOf<float, uint32_t>(0xD, {1.5f, -0.1f}), AsTensor<float>({1.5f, -0.1f})},
      {FileOf<double, uint64_t>(0xE, {1.5, -0.1}), AsTensor<double>({1.5, -0.1})},
      {Header(8, {2, 0, 3}), Tensor(DT_UINT8, {2, 0, 3})},
      {Header(8, {}) + "\x07", Tensor(uint8_t{7})},
      {Header(8, {2, 3}) + std::string("\1\2\3\4\5\6"),
       AsTensor<uint8_t>({1, 2, 3, 4, 5, 6}, {2, 3})},
  };
  for (const auto& [bytes, expected] : files) {
    SCOPED_TRACE(expected.DebugString());
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor plain, Read(bytes));
    EXPECT_THAT(plain, TensorEq(expected));
    GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor compressed, Read(Compressed(bytes)));
    EXPECT_THAT(compressed, TensorEq(expected));
  }
}

TEST_F(IdxTest, RejectsInvalidFiles) {
  EXPECT_THAT(ReadIdx(File("none")).status(),
              StatusIs(absl::StatusCode::kNotFound, AllOf(HasSubstr("/none'"), HasSubstr("open"))));
  EXPECT_THAT(ReadIdx(folder()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("found a directory")));
  const auto is = [](const std::string& text) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
  };
  for (const std::string& bytes :
       {std::string(), std::string("\0\0\x8", 3), std::string("\0\1\x8\0", 4), Header(7, {1})}) {
    EXPECT_THAT(ErrorOf(bytes), is("begins with two zeros"));
  }
  EXPECT_THAT(ErrorOf(Header(8, {1, 2}).substr(0, 11)), is("in its header, which has 2 dim"));
  EXPECT_THAT(ErrorOf(Header(8, {4}) + "abc"), is("expected 4 bytes of elements for shape [4]"));
  EXPECT_THAT(ErrorOf(Header(8, {4}) + "abcde"), is("found more"));
  // The sizes in the header are not trusted.
  const std::string huge = Header(0xE, {0xFFFFFFFF, 0xFFFFFF});
  EXPECT_THAT(ErrorOf(huge), is("more than the 12 bytes of the file can hold"));
  EXPECT_THAT(ErrorOf(Compressed(huge)), is("bytes of the file can hold"));
  EXPECT_THAT(ErrorOf(Header(8, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF})),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ErrorOf(Header(8, std::vector<int64_t>(255, 1)) + "x"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(IdxTest, EveryTruncationAndFlippedByteIsNoticed) {
  std::string contents = Header(8, {500});
  for (int i = 0; i < 500; ++i) contents.push_back(static_cast<char>(i * i / 7));
  const std::string bytes = Compressed(contents);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(Read(bytes.substr(0, size)).ok()) << size;
  }
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const Tensor expected, Read(bytes));
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(~damaged[i]);
    // The gzip header has bytes that do not matter, such as the time.
    const absl::StatusOr<Tensor> read = Read(damaged);
    EXPECT_TRUE(i < 10 || !read.ok()) << i;
    if (read.ok()) {
      EXPECT_THAT(*read, TensorEq(expected)) << i;
    }
  }
}

}  // namespace
}  // namespace gradflow
