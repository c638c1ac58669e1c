// Compares ops with TensorFlow's results in tests/data/tensorflow_values/*.txt.
// tests/data/tensorflow_values.py wrote the files and describes their rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/testing/op_rows.h"

namespace gradflow {
namespace testing {
namespace {

// Returns the names of the files, without ".txt".
std::vector<std::string> Families() {
  std::vector<std::string> names;
  const std::filesystem::path folder = GRADFLOW_TEST_DATA_DIR "/tensorflow_values";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".txt") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Parses "", "2 ulps" or "atol 1e-6 rtol 1e-5".
Tolerance ParseTolerance(const std::string& text) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  int64_t ulps = 0;
  double atol = 0;
  double rtol = 0;
  if (words.empty()) return Tolerance::Exact();
  if (words.size() == 2 && words[1] == "ulps" && absl::SimpleAtoi(words[0], &ulps)) {
    return Tolerance::Ulps(ulps);
  }
  if (words.size() == 4 && words[0] == "atol" && absl::SimpleAtod(words[1], &atol) &&
      words[2] == "rtol" && absl::SimpleAtod(words[3], &rtol)) {
    return Tolerance::Near(atol, rtol);
  }
  ADD_FAILURE() << "'" << text << "' is no tolerance";
  return Tolerance::Exact();
}

class TensorFlowValues : public ::testing::TestWithParam<std::string> {};

TEST_P(TensorFlowValues, Agree) {
  const std::string path = GRADFLOW_TEST_DATA_DIR "/tensorflow_values/" + GetParam() + ".txt";
  for (const std::vector<std::string>& row : ReadRows(path)) {
    ASSERT_EQ(row.size(), 5) << row[0];
    SCOPED_TRACE(row[0] + " | " + row[1] + " | " + row[2].substr(0, 200));
    const std::vector<Tensor> inputs = ParseTensors(row[2]);
    NodeDef node;
    SetRowAttrs(row[0], row[1], inputs, &node);
    OpTester op(row[0]);
    op.Inputs(inputs);
    for (const auto& attr : node.attr()) op.Attr(attr.first, attr.second);
    // Shapes may depend on values, like the output shape of Unique.
    const auto outputs = op.ShapeIsData().Run();
    if (!row[3].empty() && row[3].find('[') == std::string::npos) {
      EXPECT_EQ(absl::StatusCodeToString(outputs.status().code()), row[3]) << outputs.status();
      continue;
    }
    GRADFLOW_EXPECT_OK(outputs);
    if (!outputs.ok()) continue;
    const std::vector<std::string> expected = absl::StrSplit(row[3], "; ", absl::SkipEmpty());
    ASSERT_EQ(outputs->size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      // TensorFlow leaves this output uninitialized.
      if (expected[i] == "?") continue;
      EXPECT_THAT((*outputs)[i], TensorNear(ParseTensor(expected[i]), ParseTolerance(row[4])))
          << "output " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, TensorFlowValues, ::testing::ValuesIn(Families()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace testing
}  // namespace gradflow
