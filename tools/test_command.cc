#include "tools/test_command.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gradflow/core/status.h"
#include "gradflow/testing/golden.h"

namespace gradflow::tools {
namespace {

using ::gradflow::testing::FindGoldenCases;
using ::gradflow::testing::GoldenOptions;
using ::gradflow::testing::GoldenResult;
using ::gradflow::testing::RunGoldenCase;
using ::gradflow::testing::Tolerance;
using ::gradflow::testing::UpdateGoldenCase;

absl::StatusOr<GoldenOptions> MakeOptions(const TestFlags& flags) {
  GoldenOptions options;
  options.threads = flags.threads;
  GRADFLOW_ASSIGN_OR_RETURN(options.file_access, MakeFileAccess(flags.files));
  options.memory_limit_bytes = flags.memory_limit;
  options.timeout_ms = std::llround(std::ceil(flags.timeout_seconds * 1000));
  GRADFLOW_ASSIGN_OR_RETURN(options.graph_limits, MakeGraphLimits(flags.graph_limits));
  if (flags.ulps.has_value()) {
    options.tolerance = Tolerance::Ulps(*flags.ulps);
  } else if (flags.atol.has_value() || flags.rtol.has_value()) {
    options.tolerance = Tolerance::Near(flags.atol.value_or(0), flags.rtol.value_or(0));
  }
  return options;
}

std::string Outputs(int count) {
  return absl::StrCat(" (", count, count == 1 ? " output)" : " outputs)");
}

// Returns "grad: 1 of 4 elements differs: [2]: ...; grad:1: ...".
std::string Differences(const GoldenResult& result) {
  std::string text;
  for (const GoldenResult::Difference& difference : result.differences) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", difference.fetch, ": ",
                    difference.diff.Line());
  }
  return text;
}

}  // namespace

absl::Status TestCommand(const TestFlags& flags, std::ostream& out) {
  // Lines of honest cases are shorter.
  constexpr size_t kMaxLine = 4096;
  GRADFLOW_ASSIGN_OR_RETURN(const GoldenOptions options, MakeOptions(flags));
  std::vector<std::string> cases;
  for (const std::string& folder : flags.folders) {
    GRADFLOW_ASSIGN_OR_RETURN(const std::vector<std::string> found,
                              FindGoldenCases(folder, options));
    cases.insert(cases.end(), found.begin(), found.end());
  }
  int failed = 0;
  for (const std::string& folder : cases) {
    const absl::StatusOr<GoldenResult> result =
        flags.update ? UpdateGoldenCase(folder, options) : RunGoldenCase(folder, options);
    if (!result.ok()) {
      // The message begins with the folder of the case.
      const absl::Status& status = result.status();
      out << "FAIL  "
          << errors::Printable(absl::StrReplaceAll(status.message(), {{"\n", "; "}}), kMaxLine)
          << " (" << absl::StatusCodeToString(status.code()) << ")\n";
    } else if (!result->ok()) {
      out << "FAIL  "
          << errors::Printable(absl::StrCat("'", folder, "': ", Differences(*result)), kMaxLine)
          << "\n";
    } else {
      out << (flags.update ? "wrote" : "ok   ") << " '" << errors::Printable(folder, kMaxLine)
          << "'" << Outputs(result->outputs) << "\n";
    }
    out.flush();
    if (!result.ok() || !result->ok()) ++failed;
  }
  if (failed == 0) return absl::OkStatus();
  return errors::FailedPrecondition(failed, " of ", cases.size(),
                                    cases.size() == 1 ? " case failed" : " cases failed");
}

}  // namespace gradflow::tools
