// Recordings of TensorFlow's own tests of control flow agree (tests/interop/record_tests.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <string>

#include "gradflow/testing/status_matchers.h"
#include "tests/recordings/replay.h"

namespace gradflow::testing {
namespace {

class RecordingsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(RecordingsTest, AgreesWithTensorFlow) {
  for (const int threads : {1, 4}) EXPECT_THAT(ReplayRecording(GetParam(), threads), IsOk());
}

std::string NameOf(const ::testing::TestParamInfo<std::string>& info) {
  const std::filesystem::path path(info.param);
  std::string name = path.parent_path().filename().string() + "_" + path.filename().string();
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Samples, RecordingsTest,
                         ::testing::ValuesIn(FindRecordings(GRADFLOW_RECORDINGS_DIR)), NameOf);

TEST(Recordings, ThereAreAtLeast200) {
  EXPECT_GE(FindRecordings(GRADFLOW_RECORDINGS_DIR).size(), 200u);
}

}  // namespace
}  // namespace gradflow::testing
