// Runs SavedModels that tests/interop/saved_models.py has exported from TensorFlow.
#ifndef GRADFLOW_TESTS_SAVED_MODEL_EXPORTED_MODEL_H_
#define GRADFLOW_TESTS_SAVED_MODEL_EXPORTED_MODEL_H_

#include <string>

#include "absl/status/statusor.h"

namespace gradflow::testing {

// Options of RunExportedModel.
struct ExportedModelOptions {
  // False for SessionOptions::freeze_variables = false.
  bool freezes = true;
  // If not empty, the folder to write the model to, with its values after the calls.
  std::string written;
};

// Loads the SavedModel FOLDER/model and makes the calls of FOLDER/calls.txt: lines "tolerance T",
// "call SIGNATURE", "feed INPUT FILE.npy" and "expect OUTPUT FILE.npy". Returns the largest
// difference of an output, relative to its largest element. Returns FAILED_PRECONDITION if it
// exceeds the tolerance.
absl::StatusOr<double> RunExportedModel(const std::string& folder,
                                        const ExportedModelOptions& options = {});

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_SAVED_MODEL_EXPORTED_MODEL_H_
