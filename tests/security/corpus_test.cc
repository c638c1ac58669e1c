// Replays the corpora of the fuzzers, including inputs that fuzzers found.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/testing/fuzz_targets.h"
#include "tests/testing/subprocess.h"

namespace gradflow {
namespace {

using ::gradflow::testing::FuzzTarget;
using ::gradflow::testing::FuzzTargets;
using ::gradflow::testing::MutationRandom;
using ::gradflow::testing::ReadFile;

class CorpusTest : public ::testing::TestWithParam<FuzzTarget> {
 protected:
  static std::vector<std::string> Files() {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(
             absl::StrCat(GRADFLOW_TEST_DATA_DIR "/corpus/", GetParam().name))) {
      files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
  }
};

INSTANTIATE_TEST_SUITE_P(Targets, CorpusTest, ::testing::ValuesIn(FuzzTargets()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_P(CorpusTest, ReplaysTheFiles) {
  const std::vector<std::string> files = Files();
  EXPECT_GE(files.size(), 3);
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    GetParam().run(ReadFile(file));
  }
}

// Replays a few mutations of the files.
TEST_P(CorpusTest, ReplaysWithChanges) {
  uint64_t seed = 0;
  for (const std::string& file : Files()) {
    const std::string bytes = ReadFile(file);
    for (int i = 0; i < 10; ++i) {
      MutationRandom random(++seed);
      std::string changed = bytes;
      if (i % 2 == 0 || !GetParam().mutate(&random, &changed)) {
        MutateBytes(&random, &changed);
      }
      SCOPED_TRACE(absl::StrCat(file, " changed with seed ", seed));
      GetParam().run(changed);
    }
  }
}

}  // namespace
}  // namespace gradflow
