// Tests of command line flags: their values, and how they treat the other arguments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/version.h"
#include "gradflow/ops/common/simd.h"
#include "tests/tools/command_line_fixture.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

using Arguments = std::vector<std::string>;

class ArgumentsTest : public CommandLineFixture {
 protected:
  static ProcessResult Run(const Arguments& head, const Arguments& flags, const Arguments& tail) {
    Arguments all = head;
    all.insert(all.end(), flags.begin(), flags.end());
    all.insert(all.end(), tail.begin(), tail.end());
    return Gradflow(all);
  }
};

TEST_F(ArgumentsTest, NumbersHaveRanges) {
  constexpr char kMaxInt[] = "2147483647";
  constexpr char kMaxInt64[] = "9223372036854775807";
  struct Flag {
    std::string name, least, most, more;
  };
  const Flag threads = {"--threads", "0", kMaxInt, "2147483648"};
  const Flag memory = {"--memory-limit", "0", kMaxInt64, "9223372036854775808"};
  const Flag timeout = {"--timeout", "0", "1e9", "1.1e9"};
  struct Command {
    // The arguments before and after a file. After the flags, the command fails.
    Arguments head, tail;
    std::vector<Flag> flags;
  };
  const std::vector<Command> commands = {
      {{"run"}, {"none.pb"}, {threads, memory, timeout}},
      {{"bench"}, {"none.pb"}, {threads, memory, {"--repeat", "1", "1000000", "1000001"}}},
      {{"gradients"}, {"none.pb", "--of", "x", "-o", "out.pb"}, {memory, timeout}},
      {{"inspect"}, {"none.pb"}, {memory, timeout}},
      {{"convert"}, {"none.pb", "out.pb"}, {memory, timeout}},
      {{"view"}, {"none.pb", "-o", "out.html"}, {memory, timeout}},
      {{"freeze"}, {"none.pb", "none", "--outputs", "x", "-o", "out.pb"}, {memory, timeout}},
      {{"checkpoint"}, {"none"}, {memory, timeout}},
      {{"edit"}, {"none.txt"}, {threads, memory, timeout, {"--port", "0", "65535", "65536"}}},
      {{"test"}, {"none"}, {threads, memory, timeout, {"--atol", "0", "1e300", "1e301"}}},
      {{"test"}, {"none"}, {{"--rtol", "0", "1e300", "1.1e300"}}},
      {{"test"}, {"none"}, {{"--ulps", "0", kMaxInt, "2147483648"}}},
  };
  for (const Command& command : commands) {
    Arguments least, most;
    for (const Flag& flag : command.flags) {
      least.insert(least.end(), {flag.name, flag.least});
      most.insert(most.end(), {flag.name, flag.most});
      for (const std::string& value : {flag.more, std::string("-1"), std::string("x")}) {
        const ProcessResult result = Run(command.head, {flag.name, value}, command.tail);
        EXPECT_EQ(result.exit_code, 2) << command.head[0] << " " << flag.name << " " << value;
        EXPECT_THAT(result.err, HasSubstr("but found '" + value + "'"));
      }
    }
    for (const Arguments& flags : {least, most}) {
      const ProcessResult result = Run(command.head, flags, command.tail);
      EXPECT_EQ(result.exit_code, 1) << command.head[0] << " " << flags[1] << result.err;
      EXPECT_THAT(result.err, HasSubstr("none")) << command.head[0];
    }
  }
  EXPECT_EQ(Gradflow({"bench", "none.pb", "--repeat", "0"}).exit_code, 2);
}

// A repeatable flag takes a single value and leaves the other arguments to the command.
TEST_F(ArgumentsTest, FlagsTakeOneValue) {
  struct Command {
    Arguments head, tail;
    bool has_plugins, has_limits;
  };
  const Arguments graph = {"g.pb"};
  for (const Command& command :
       std::vector<Command>{{{"run"}, graph, true, true},
                            {{"bench"}, graph, true, true},
                            {{"inspect"}, graph, true, true},
                            {{"gradients", "--of", "x", "-o", "o.pb"}, graph, true, true},
                            {{"freeze", "--outputs", "x", "-o", "o.pb"}, {"g.pb", "c"}, true, true},
                            {{"ops"}, {"Neg"}, true, false},
                            {{"convert"}, {"g.pb", "o.pb"}, false, true},
                            {{"view", "-o", "o.html"}, graph, true, true},
                            {{"edit"}, graph, true, true},
                            {{"test"}, {"folder"}, true, true}}) {
    SCOPED_TRACE(command.head[0]);
    if (command.has_plugins) {
      ExpectFailure(Run(command.head, {"--plugin", "no_plugin.so"}, command.tail), "NOT_FOUND",
                    HasSubstr("no_plugin.so"));
    }
    if (command.has_limits) {
      ExpectFailure(
          Run(command.head, {"--graph-limit", "max_nodes=1", "--graph-limit", "max_nodes=x"},
              command.tail),
          "INVALID_ARGUMENT", HasSubstr("--graph-limit 'max_nodes=x' must be NAME=NUMBER"));
    }
  }
  for (const char* command : {"run", "bench"}) {
    for (const char* flag : {"--feed", "--fetch", "--target"}) {
      ExpectFailure(Gradflow({command, flag, "a", flag, "b", "none.pb"}), "NOT_FOUND",
                    HasSubstr("none.pb"));
    }
  }
  ExpectFailure(Gradflow({"gradients", "--of", "x", "-o", "o.pb", "--check", "a=b", "none.pb"}),
                "NOT_FOUND", HasSubstr("none.pb"));
}

TEST_F(ArgumentsTest, FlagsAreRequiredOrExcludeEachOther) {
  for (const Arguments& arguments : std::vector<Arguments>{
           {"gradients", "g.pb", "--of", "x"},
           {"gradients", "g.pb", "-o", "o.pb"},
           {"gradients", "--of", "x", "-o", "o.pb"},
           {"gradients", "--of", "x", "-o", "o.pb", "--check", "a=b", "c=d", "e"},
           {"freeze", "g.pb", "c", "--outputs", "x"},
           {"checkpoint"},
           {"checkpoint", "c", "-o", "o.npy"},
           {"checkpoint", "c", "--diff", "d", "--tensor", "t"},
           {"view", "-o", "o.html"},
           {"view", "g.pb"},
           {"inspect"},
           {"inspect", "g.pb", "--fast"},
           {"bench"},
           {"test"},
           {"run", "g.pb", "--timeout"}}) {
    EXPECT_EQ(Gradflow(arguments).exit_code, 2) << arguments[0] << " " << arguments.back();
  }
}

TEST_F(ArgumentsTest, VersionListsLibrariesAndTheInstructionSet) {
  const ProcessResult result = Gradflow({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, IsEmpty());
  constexpr char kThree[] = "[0-9]+\\.[0-9]+\\.[0-9]+";
  const auto line = [](const std::string& name, const std::string& version) {
    return MatchesRegex(name + " +" + version);
  };
  EXPECT_THAT(
      std::vector<std::string>(absl::StrSplit(result.out, '\n')),
      ElementsAre("gradflow " GRADFLOW_VERSION_STRING, line("Abseil", "[0-9]+\\.[0-9]+"),
                  line("Protocol Buffers", kThree), line("oneTBB", "20[0-9]+\\.[0-9]+.*"),
                  line("Highway", kThree), line("SLEEF", kThree),
                  line("oneDNN", absl::StrCat("(", kThree, "|none)")),
                  line("BLAS", "((BLIS [0-9]|OpenBLAS [0-9]|lib.*\\.so).*|none)"),
                  line("LAPACK", absl::StrCat("(", kThree, "|none)")), line("zlib", "[0-9.]+"),
                  line("libpng", kThree), line("libjpeg", "(turbo )?[0-9.]+"),
                  line("giflib", kThree), line("libwebp", kThree),
                  line("SIMD", CurrentSimdTarget() + " \\(this processor has " +
                                   absl::StrJoin(SimdTargets(), ", ") + "\\)"),
                  ""));
}

TEST_F(ArgumentsTest, VersionShowsTheSelectedInstructionSet) {
  const char* const before = std::getenv("GRADFLOW_SIMD");
  const std::string saved = before == nullptr ? "" : before;
  setenv("GRADFLOW_SIMD", "scalar", 1);
  const ProcessResult result = Gradflow({"--version"});
  setenv("GRADFLOW_SIMD", saved.c_str(), 1);
  EXPECT_THAT(result.out, ::testing::ContainsRegex("SIMD +scalar \\(this processor has .*scalar"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
