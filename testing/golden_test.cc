#include "gradflow/testing/golden_test.h"

#include <filesystem>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace gradflow {
namespace testing {

namespace fs = std::filesystem;

std::vector<GoldenCase> GoldenCases(const std::string& folder) {
  const absl::StatusOr<std::vector<std::string>> folders = FindGoldenCases(folder);
  // Running this case returns the same error.
  if (!folders.ok()) return {{folder, "cannot_be_listed"}};
  std::vector<GoldenCase> cases;
  std::set<std::string> names;
  for (const std::string& path : *folders) {
    const fs::path whole = fs::path(path).lexically_normal();
    std::string name = whole.lexically_relative(fs::path(folder).lexically_normal()).string();
    if (name.empty() || name == ".") {
      name = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
    }
    for (char& c : name) {
      if (!absl::ascii_isalnum(c)) c = '_';
    }
    // "a/b" and "a_b" give the same name, and a numbered name may equal the name for "a_b_2".
    std::string unique = name;
    for (int use = 2; !names.insert(unique).second; ++use) unique = absl::StrCat(name, "_", use);
    cases.push_back({path, unique});
  }
  return cases;
}

std::string GoldenCaseName(const ::testing::TestParamInfo<GoldenCase>& info) {
  return info.param.name;
}

void PrintTo(const GoldenCase& golden, std::ostream* os) { *os << golden.folder; }

void GoldenTest::RunAndCompare(const GoldenOptions& options) {
  const absl::StatusOr<GoldenResult> result = RunGoldenCase(GetParam().folder, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->ok()) << result->Text();
}

}  // namespace testing
}  // namespace gradflow
