// SavedModelFixture: writes small SavedModels for tests.
#ifndef GRADFLOW_TESTS_SAVED_MODEL_MODEL_FIXTURE_H_
#define GRADFLOW_TESTS_SAVED_MODEL_MODEL_FIXTURE_H_

#include <string>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "gradflow/core/tensor.h"
#include "gradflow/io/checkpoint.h"
#include "gradflow/proto/saved_model.pb.h"
#include "gradflow/saved_model/loader.h"
#include "tests/testing/folder_fixture.h"

namespace gradflow::testing {

// The text of a model with one graph of the tags "serve". Its signatures, as a program of
// TensorFlow 2 exports them:
//
//   serving_default  y = w * x, for a variable w of shape [2]
//   add              w += x, total = w
//   defaults         z = v + n; the input n is 5 by default, and the variable v is a scalar
//
// The function "restore" restores both variables from the tensors "w_key" and "v_key".
std::string ScaleModelText();

// The text of nodes that read an asset. The constant "path" gets the path of the asset, the node
// "init" assigns the content of the file to the variable "text", and "read_text" reads it.
extern const char kAssetNodes[];

class SavedModelFixture : public FolderFixture {
 protected:
  // Writes saved_model.pbtxt.
  void WriteText(const std::string& text);
  // Writes ScaleModelText() and its variables, w = [2, 3] and v = 10.
  void WriteScaleModel();
  void WriteVariables(const std::vector<CheckpointTensor>& tensors);
  // Writes a file below the folder of the model.
  void WriteFile(const std::string& name, const std::string& content);

  // Loads the model of the folder into bundle_.
  absl::Status Load(const SessionOptions& options = SessionOptions(),
                    const std::unordered_set<std::string>& tags = {"serve"});
  // Calls a signature of the loaded model.
  absl::StatusOr<NamedTensors> Call(const std::string& signature, const NamedTensors& inputs);

  SavedModelBundle bundle_;
};

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_SAVED_MODEL_MODEL_FIXTURE_H_
