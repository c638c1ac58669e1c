// Tests of the command line with invalid files: error messages, and no partial outputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/graph/export.h"
#include "gradflow/io/npy.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/tools/command_line_fixture.h"

namespace gradflow {
namespace {

using ::gradflow::testing::FileExists;
using ::gradflow::testing::ProcessResult;
using ::gradflow::testing::ReadFile;
using ::gradflow::testing::WriteFile;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class HostileFilesTest : public testing::CommandLineFixture {
 protected:
  void SetUp() override {
    const Scope root = Scope::NewRootScope();
    const Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
    ops::Neg(root.WithOpName("y"), x);
    ops::Fill(root.WithOpName("huge"), ops::Const(root.WithOpName("dims"), {1 << 30, 1 << 20}),
              1.0f);
    GraphDef graph;
    GRADFLOW_ASSERT_OK(root.ToGraphDef(&graph));
    GRADFLOW_ASSERT_OK(WriteGraphDef(File("good.pb"), graph));
    GRADFLOW_ASSERT_OK(WriteGraphDef(File("good.pbtxt"), graph));
    GRADFLOW_ASSERT_OK(WriteNpy(File("good.npy"), Tensor(1.5f)));

    const std::string bytes = ReadFile(File("good.pb"));
    WriteFile(File("cut.pb"), bytes.substr(0, bytes.size() - 1));
    WriteFile(File("cut.pbtxt"), "node { name: 'n'");
    const std::string npy = ReadFile(File("good.npy"));
    WriteFile(File("cut.npy"), npy.substr(0, npy.size() - 1));
    for (const char* kind : {".pb", ".pbtxt", ".npy"}) {
      WriteFile(File(absl::StrCat("empty", kind)), "");
      WriteFile(File(absl::StrCat("noise", kind)), "\x89PNG\r\n\x1a\n");
      WriteFile(File(absl::StrCat("large", kind)), "x");
      std::filesystem::resize_file(File(absl::StrCat("large", kind)), uint64_t{1} << 33);  // sparse
      std::filesystem::create_directory(File(absl::StrCat("folder", kind)));
      ASSERT_EQ(mkfifo(File(absl::StrCat("pipe", kind)).c_str(), 0600), 0);
    }
  }

  // Expects a single line that names the file, and no other output.
  static void ExpectFailure(const ProcessResult& result, const std::string& code,
                            const std::string& file, const std::string& text) {
    CommandLineFixture::ExpectFailure(result, code,
                                      AllOf(HasSubstr("'" + file + "'"), HasSubstr(text)));
  }
};

struct BadFile {
  const char* name;
  const char* error;
};
constexpr BadFile kBadFiles[] = {
    {"empty", "empty"},
    {"cut", ""},
    {"noise", ""},
    {"large", "8589934592"},
    {"folder", "expected a regular file, but found a directory"},
    {"pipe", "expected a regular file, but found a pipe"},
};

TEST_F(HostileFilesTest, EveryCommandReportsTheFaultOfAGraph) {
  const std::string out = File("out.pb");
  for (const char* kind : {".pb", ".pbtxt"}) {
    for (const BadFile& bad : kBadFiles) {
      const std::string file = File(absl::StrCat(bad.name, kind));
      SCOPED_TRACE(file);
      const std::vector<std::vector<std::string>> commands = {
          {"run", file}, {"bench", file}, {"inspect", file}, {"convert", file, out}};
      for (const auto& command : commands) {
        ExpectFailure(Gradflow(command), "INVALID_ARGUMENT", file, bad.error);
      }
    }
  }
  EXPECT_FALSE(FileExists(out));
}

TEST_F(HostileFilesTest, RunReportsTheFaultOfAFeed) {
  const std::string out = File("out.npy");
  for (const BadFile& bad : kBadFiles) {
    const std::string file = File(absl::StrCat(bad.name, ".npy"));
    SCOPED_TRACE(file);
    const std::string error = bad.name == std::string("large") ? "" : bad.error;
    ExpectFailure(Gradflow({"run", File("good.pb"), "--feed", "x=" + file, "--fetch", "y=" + out}),
                  "INVALID_ARGUMENT", file, error);
  }
  EXPECT_FALSE(FileExists(out));
}

// Existing files do not change, and no temporary file remains.
TEST_F(HostileFilesTest, OutputsThatCannotBeWrittenLeaveNothing) {
  const std::vector<std::string> run = {"run", File("good.pb"), "--feed", "x=" + File("good.npy")};
  for (const char* out : {"folder", "pipe"}) {
    std::vector<std::string> command = run;
    const std::string file = File(absl::StrCat(out, ".npy"));
    command.insert(command.end(), {"--fetch", "y=" + file});
    ExpectFailure(Gradflow(command), "INVALID_ARGUMENT", file, "expected a regular file");
    const std::string graph = File(absl::StrCat(out, ".pb"));
    ExpectFailure(Gradflow({"convert", File("good.pb"), graph}), "INVALID_ARGUMENT", graph,
                  "expected a regular file");
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  }
}

TEST_F(HostileFilesTest, AFailedOutputDoesNotChangeTheOthers) {
  const std::string old = File("old.npy");
  WriteFile(old, "old");
  const ProcessResult result =
      Gradflow({"run", File("good.pb"), "--feed", "x=" + File("good.npy"), "--fetch", "y=" + old,
                "--fetch", "x=" + File("nowhere/x.npy")});
  ExpectFailure(result, "NOT_FOUND", File("nowhere/x.npy"), "cannot write");
  EXPECT_EQ(ReadFile(old), "old");
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  }
}

TEST_F(HostileFilesTest, TensorBeyondTheLimitIsAnError) {
  const std::vector<std::string> run = {
      "run", File("good.pb"), "--feed", "x=" + File("good.npy"), "--fetch", "y"};
  std::vector<std::string> limited = run;
  limited.insert(limited.end(), {"--memory-limit", "1"});
  EXPECT_EQ(Gradflow(run).exit_code, 0);
  const ProcessResult result = Gradflow(limited);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(StartsWith("RESOURCE_EXHAUSTED: node 'y' (Neg): "),
                                HasSubstr("tensor_memory_limit_bytes")));
}

TEST_F(HostileFilesTest, TensorBeyondMemoryIsAnErrorAndWritesNothing) {
  const std::string out = File("out.npy");
  const ProcessResult result = Gradflow({"run", File("good.pb"), "--fetch", "huge=" + out});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, StartsWith("RESOURCE_EXHAUSTED: node 'huge' (Fill): "));
  EXPECT_FALSE(FileExists(out));
}

}  // namespace
}  // namespace gradflow
