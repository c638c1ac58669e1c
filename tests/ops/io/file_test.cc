#include <filesystem>
#include <fstream>
#include <string>

#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"
#include "tests/testing/folder_fixture.h"

namespace gradflow {
namespace testing {
namespace {

// Each test has a new folder.
class FileOps : public ::testing::Test {
 protected:
  FileOps() {
    folder_ = std::filesystem::path(::testing::TempDir()) /
              ("gradflow_file_ops_" + std::to_string(reinterpret_cast<uintptr_t>(this)));
    std::filesystem::create_directories(folder_);
  }
  ~FileOps() override { std::filesystem::remove_all(folder_); }
  std::string Path(const std::string& name) const { return (folder_ / name).string(); }
  static absl::StatusOr<Tensor> Read(const std::string& path) {
    return OpTester("ReadFile").Input(Tensor(tstring(path))).RunOne();
  }
  static absl::Status Write(const std::string& path, const std::string& contents) {
    return OpTester("WriteFile")
        .Input(Tensor(tstring(path)))
        .Input(Tensor(tstring(contents)))
        .Run()
        .status();
  }
  static absl::StatusOr<Tensor> Match(const Tensor& pattern) {
    return OpTester("MatchingFiles").Input(pattern).ShapeIsData().RunOne();
  }

  std::filesystem::path folder_;
};

TEST_F(FileOps, ReadWhatTheyWrite) {
  const std::string bytes("some\0bytes\n", 11);
  GRADFLOW_EXPECT_OK(Write(Path("a"), bytes));
  EXPECT_THAT(Read(Path("a")), TensorEq(Tensor(tstring(bytes))));
  GRADFLOW_EXPECT_OK(Write(Path("a"), ""));
  EXPECT_THAT(Read(Path("a")), TensorEq(Tensor(tstring(""))));
  GRADFLOW_EXPECT_OK(Write(Path("new/folders/b"), "b"));
  EXPECT_THAT(Read(Path("new/folders/b")), TensorEq(Tensor(tstring("b"))));
}

TEST_F(FileOps, FindPaths) {
  for (const char* const name :
       {"b1.txt", "a2.txt", "c.png", "sub/d1.txt", "sub/e.txt", ".hidden"}) {
    GRADFLOW_ASSERT_OK(Write(Path(name), "x"));
  }
  const auto matches = [&](const std::string& pattern, const std::vector<std::string>& names) {
    std::vector<tstring> expected;
    for (const std::string& name : names) expected.push_back(Path(name));
    Tensor paths(DT_STRING, {static_cast<int64_t>(expected.size())});
    std::copy(expected.begin(), expected.end(), paths.flat<tstring>().begin());
    EXPECT_THAT(Match(Tensor(tstring(Path(pattern)))), TensorEq(paths)) << pattern;
  };
  matches("*.txt", {"a2.txt", "b1.txt"});
  matches("?[0-9].txt", {"a2.txt", "b1.txt"});
  matches("[!a]*.txt", {"b1.txt"});
  matches("*/*1*", {"sub/d1.txt"});
  matches("s*b/e.txt", {"sub/e.txt"});
  matches("c.png", {"c.png"});
  matches("none", {});
  matches("none/*", {});
  matches("c\\.png", {"c.png"});
  // Two patterns in one call.
  Tensor two(DT_STRING, {2});
  two.flat<tstring>()(0) = Path("c*");
  two.flat<tstring>()(1) = Path("a*");
  const auto both = Match(two);
  ASSERT_TRUE(both.ok()) << both.status();
  ASSERT_EQ(both->NumElements(), 2);
  EXPECT_EQ(both->flat<tstring>()(0), Path("a2.txt"));
  EXPECT_EQ(both->flat<tstring>()(1), Path("c.png"));
  EXPECT_THAT(Match(Tensor(DT_STRING, {0})), TensorEq(Tensor(DT_STRING, {0})));
}

TEST_F(FileOps, RejectBadPaths) {
  EXPECT_THAT(Read(Path("none")),
              StatusIs(absl::StatusCode::kNotFound, ::testing::HasSubstr("none': cannot open")));
  EXPECT_THAT(Read(folder_.string()),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("found a directory")));
  EXPECT_THAT(Write(folder_.string(), "x"),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("found a directory")));
  for (const std::string& path : {std::string(), std::string("a\0b", 3)}) {
    EXPECT_THAT(Read(path), StatusIs(kInvalidArgument, ::testing::HasSubstr("must be a path")));
    EXPECT_THAT(Write(path, "x"),
                StatusIs(kInvalidArgument, ::testing::HasSubstr("must be a path")));
  }
  GRADFLOW_ASSERT_OK(Write(Path("file"), "x"));
  EXPECT_FALSE(Write(Path("file/below"), "x").ok());
  EXPECT_THAT(Match(Tensor(tstring(std::string("a\0b*", 4)))),
              StatusIs(kInvalidArgument, ::testing::HasSubstr("a character of code 0")));
  ExpectErrors({{"vector", OpTester("ReadFile").Input<tstring>({"a"}), "filename"},
                {"matrix", OpTester("MatchingFiles").Input(Tensor(DT_STRING, {1, 1})),
                 "Shape must be at most rank 1 but is rank 2: pattern has shape [1,1]"}});
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
