// Runs SavedModels of TensorFlow. tests/interop/saved_models.py has exported and packed them.
#include "tests/saved_model/exported_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "gradflow/testing/status_matchers.h"
#include "tests/testing/folder_fixture.h"

namespace gradflow {
namespace {

namespace fs = std::filesystem;

using ::gradflow::testing::ExportedModelOptions;
using ::gradflow::testing::IsOk;
using ::gradflow::testing::RunExportedModel;

std::vector<std::string> ExportedModels() {
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(GRADFLOW_SAVED_MODELS_DIR)) {
    folders.push_back(entry.path().string());
  }
  return folders;
}

using ExportedModelTest = testing::FolderFixture;

TEST_F(ExportedModelTest, AgreesWithTensorFlow) {
  EXPECT_GE(ExportedModels().size(), 19u);
  for (const std::string& folder : ExportedModels()) {
    EXPECT_THAT(RunExportedModel(folder), IsOk()) << folder;
  }
}

TEST_F(ExportedModelTest, AgreesWithoutFrozenVariables) {
  ExportedModelOptions options;
  options.freezes = false;
  for (const std::string& folder : ExportedModels()) {
    EXPECT_THAT(RunExportedModel(folder, options), IsOk()) << folder;
  }
}

// A trained model is trained on after it was written.
TEST_F(ExportedModelTest, KeepsItsSignaturesWhenWritten) {
  for (const char* const name : {"vae", "lstm", "v1_reference"}) {
    const std::string folder = std::string(GRADFLOW_SAVED_MODELS_DIR "/") + name;
    const std::string copy = File(name);
    fs::copy(folder, copy, fs::copy_options::recursive);
    fs::remove_all(copy + "/model");
    ExportedModelOptions options;
    options.written = copy + "/model";
    ASSERT_THAT(RunExportedModel(folder, options), IsOk());
    // The calls of these models change no state.
    EXPECT_THAT(RunExportedModel(copy), IsOk()) << name;
  }
}

}  // namespace
}  // namespace gradflow
