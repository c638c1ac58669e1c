// CommandLineFixture: a GoogleTest fixture that runs the command line as a process, with a folder
// for files.
#ifndef GRADFLOW_TESTS_TOOLS_COMMAND_LINE_FIXTURE_H_
#define GRADFLOW_TESTS_TOOLS_COMMAND_LINE_FIXTURE_H_

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/folder_fixture.h"
#include "tests/testing/subprocess.h"

namespace gradflow {
namespace testing {

class CommandLineFixture : public FolderFixture {
 protected:
  static ProcessResult Gradflow(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), GRADFLOW_PROGRAM_gradflow_cli);
    return RunProcess(arguments);
  }

  // Expects exit status 1 and a single line "CODE: text".
  static void ExpectFailure(const ProcessResult& result, const std::string& code,
                            const ::testing::Matcher<std::string>& text) {
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_THAT(result.out, ::testing::IsEmpty());
    EXPECT_THAT(result.err, ::testing::AllOf(::testing::StartsWith(code + ": "), text));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }
};

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_TOOLS_COMMAND_LINE_FIXTURE_H_
