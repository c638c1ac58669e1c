// Tests of output to a terminal. Texts from graphs, checkpoints and paths are untrusted, so they
// must not move the cursor or change the title.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/scope.h"
#include "gradflow/io/checkpoint.h"
#include "gradflow/io/file.h"
#include "gradflow/io/npy.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/tools/command_line_fixture.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Erases the line, sets the title, moves up, and returns to the first column. U+009B is a control
// sequence in a single character.
constexpr char kHostile[] =
    "\x1b[2K\x1b]0;title\x07\x1b[1A\rok    \xc2\x9b"
    "1m all passed\x7f";

class TerminalTest : public CommandLineFixture {
 protected:
  // Runs the program with a terminal as standard output and error. Returns its output without the
  // carriage returns that a terminal adds.
  static std::string OnTerminal(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), GRADFLOW_PROGRAM_gradflow_cli);
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const internal::FileDescriptor terminal(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    EXPECT_GE(terminal.get(), 0) << "the system has no terminals";
    EXPECT_EQ(grantpt(terminal.get()), 0);
    EXPECT_EQ(unlockpt(terminal.get()), 0);
    char name[256];
    EXPECT_EQ(ptsname_r(terminal.get(), name, sizeof(name)), 0);
    // Stays open until the program has ended, so that no output is lost.
    internal::FileDescriptor other(open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
    EXPECT_GE(other.get(), 0);
    const pid_t child = fork();
    if (child == 0) {
      dup2(other.get(), STDOUT_FILENO);
      dup2(other.get(), STDERR_FILENO);
      execv(argv[0], argv.data());
      _exit(127);
    }
    EXPECT_TRUE(other.Close());
    std::string text;
    char buffer[4096];
    // read() fails with EIO when the last process has closed the terminal.
    for (ssize_t n = 0; (n = read(terminal.get(), buffer, sizeof(buffer))) > 0;) {
      text.append(buffer, n);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 127);
    return absl::StrReplaceAll(text, {{"\r\n", "\n"}});
  }

  static void ExpectHarmless(const std::string& text) {
    EXPECT_THAT(text, HasSubstr("all passed"));
    for (const char* control : {"\x1b", "\x07", "\r", "\x7f", "\xc2\x9b"}) {
      EXPECT_THAT(text, Not(HasSubstr(control)));
    }
  }

  std::string Write(const Scope& scope, const std::string& name) const {
    GraphDef graph;
    GRADFLOW_EXPECT_OK(scope.ToGraphDef(&graph));
    const std::string path = File(name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    GRADFLOW_EXPECT_OK(WriteGraphDef(path, graph));
    return path;
  }
  // Returns a graph with an output `y` that prints to both streams.
  static Scope PrintingGraph() {
    const Scope scope = Scope::NewRootScope();
    const Output text = ops::Const(scope, std::string(kHostile));
    const Operation out =
        ops::PrintV2(scope, text, ops::PrintV2::OutputStream("stdout").End(kHostile)).operation;
    const Operation err = ops::PrintV2(scope, text).operation;
    const Output printed =
        ops::Print(scope.WithControlDependencies({out, err}), ops::Const(scope, {1.0F}), {text},
                   ops::Print::Message(kHostile))
            .output;
    ops::Identity(scope.WithOpName("y"), printed);
    return scope;
  }
};

TEST_F(TerminalTest, PrintsOfGraphsAreEscaped) {
  const std::string graph = Write(PrintingGraph(), "graph.pb");
  const std::string text = OnTerminal({"run", graph});
  ExpectHarmless(text);
  EXPECT_THAT(text, HasSubstr("\\x1b[2K\\x1b]0;title\\x07\\x1b[1A\\x0dok    \\xc2\\x9b1m"));
  // An option prints raw text. Files and pipes always get raw text.
  EXPECT_THAT(OnTerminal({"run", "--raw-prints", graph}), HasSubstr(kHostile));
  const ProcessResult piped = Gradflow({"run", graph});
  EXPECT_EQ(piped.exit_code, 0);
  EXPECT_THAT(piped.out, HasSubstr(kHostile));
  EXPECT_THAT(piped.err, HasSubstr(absl::StrCat(kHostile, "[")));
}

TEST_F(TerminalTest, LineBreaksAndTabsArePrinted) {
  const Scope scope = Scope::NewRootScope();
  ops::PrintV2(scope.WithOpName("print"), ops::Const(scope, std::string("a\tb\nc")));
  EXPECT_EQ(OnTerminal({"run", Write(scope, "graph.pb"), "--target", "print"}), "a\tb\nc\n");
}

TEST_F(TerminalTest, GoldenCasesCannotFakeTheirResult) {
  Write(PrintingGraph(), "case/graph.pb");
  std::filesystem::create_directories(File("case/expected"));
  GRADFLOW_ASSERT_OK(WriteNpy(File("case/expected/y.npy"), AsTensor<float>({2})));
  const std::string text = OnTerminal({"test", File("case")});
  ExpectHarmless(text);
  EXPECT_THAT(text, HasSubstr("FAIL"));
}

// Names and paths in the output of all commands.
TEST_F(TerminalTest, NamesAndPathsAreEscaped) {
  GraphDef named;
  NodeDef& node = *named.add_node();
  node.set_name(kHostile);
  node.set_op(absl::StrCat("Op", kHostile));
  const std::string path = File("named.pb");
  WriteFile(path, named.SerializeAsString());
  ExpectHarmless(OnTerminal({"inspect", path}));
  ExpectHarmless(OnTerminal({"run", path}));
  ExpectHarmless(OnTerminal({"convert", path, File("out.cc")}));
  ExpectHarmless(OnTerminal({"run", File(kHostile)}));
  ExpectHarmless(OnTerminal({"test", File(kHostile)}));
  ExpectHarmless(OnTerminal({"checkpoint", File(kHostile)}));
  ExpectHarmless(OnTerminal({"run", path, "--plugin", File(kHostile)}));
  ExpectHarmless(OnTerminal({"run", path, "--allow-read", File(kHostile)}));
  GRADFLOW_ASSERT_OK(WriteCheckpoint(File("ckpt"), {{kHostile, AsTensor<float>({1}), ""}}));
  ExpectHarmless(OnTerminal({"checkpoint", File("ckpt")}));
  ExpectHarmless(OnTerminal({"checkpoint", File("ckpt"), "--tensor", kHostile}));
  // The folder of a case has a hostile name.
  Write(PrintingGraph(), absl::StrCat("cases/", kHostile, "/graph.pb"));
  ExpectHarmless(OnTerminal({"test", File("cases")}));
  // A string in a result.
  const Scope scope = Scope::NewRootScope();
  ops::Const(scope.WithOpName("c"), std::string(kHostile));
  ExpectHarmless(OnTerminal({"run", Write(scope, "strings.pb"), "--fetch", "c"}));
  // A name that the command line repeats.
  ExpectHarmless(OnTerminal({"run", File("strings.pb"), "--fetch", kHostile}));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
