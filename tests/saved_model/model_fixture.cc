#include "tests/saved_model/model_fixture.h"

#include <filesystem>
#include <fstream>

#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensors.h"

namespace gradflow::testing {

const char kAssetNodes[] = R"(
    node { name: "path" op: "Const" attr { key: "dtype" value { type: DT_STRING } }
           attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape { } string_val: "lost" } } } }
    node { name: "file" op: "ReadFile" input: "path" }
    node { name: "text" op: "VarHandleOp" attr { key: "dtype" value { type: DT_STRING } }
           attr { key: "shape" value { shape { } } } }
    node { name: "init" op: "AssignVariableOp" input: "text" input: "file"
           attr { key: "dtype" value { type: DT_STRING } } }
    node { name: "read_text" op: "ReadVariableOp" input: "text" attr { key: "dtype" value { type: DT_STRING } } }
)";

std::string ScaleModelText() {
  return R"(
saved_model_schema_version: 1
meta_graphs {
  meta_info_def { tags: "serve" }
  graph_def {
    versions { producer: 1882 }
    node { name: "x" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { dim { size: 2 } } } } }
    node { name: "n" op: "Placeholder" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { } } } }
    node { name: "w" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { dim { size: 2 } } } }
           attr { key: "shared_name" value { s: "the_w" } } }
    node { name: "v" op: "VarHandleOp" attr { key: "dtype" value { type: DT_FLOAT } }
           attr { key: "shape" value { shape { } } } }
    node { name: "scale_call" op: "StatefulPartitionedCall" input: "x" input: "w"
           attr { key: "Tin" value { list { type: DT_FLOAT type: DT_RESOURCE } } }
           attr { key: "Tout" value { list { type: DT_FLOAT } } }
           attr { key: "f" value { func { name: "scale" } } } }
    node { name: "add_call" op: "StatefulPartitionedCall" input: "x" input: "w"
           attr { key: "Tin" value { list { type: DT_FLOAT type: DT_RESOURCE } } }
           attr { key: "Tout" value { list { type: DT_FLOAT } } }
           attr { key: "f" value { func { name: "add" } } } }
    node { name: "read_v" op: "ReadVariableOp" input: "v" attr { key: "dtype" value { type: DT_FLOAT } } }
    node { name: "z" op: "AddV2" input: "read_v" input: "n" attr { key: "T" value { type: DT_FLOAT } } }
    node { name: "saver_filename" op: "Placeholder" attr { key: "dtype" value { type: DT_STRING } }
           attr { key: "shape" value { shape { } } } }
    node { name: "restore_call" op: "StatefulPartitionedCall" input: "saver_filename" input: "w" input: "v"
           attr { key: "Tin" value { list { type: DT_STRING type: DT_RESOURCE type: DT_RESOURCE } } }
           attr { key: "Tout" value { list { type: DT_STRING } } }
           attr { key: "f" value { func { name: "restore" } } } }
    library {
      function {
        signature { name: "scale" input_arg { name: "x" type: DT_FLOAT } input_arg { name: "w" type: DT_RESOURCE }
                    output_arg { name: "y" type: DT_FLOAT } is_stateful: true }
        node_def { name: "read" op: "ReadVariableOp" input: "w" attr { key: "dtype" value { type: DT_FLOAT } } }
        node_def { name: "mul" op: "Mul" input: "x" input: "read:value:0" attr { key: "T" value { type: DT_FLOAT } } }
        ret { key: "y" value: "mul:z:0" }
      }
      function {
        signature { name: "add" input_arg { name: "x" type: DT_FLOAT } input_arg { name: "w" type: DT_RESOURCE }
                    output_arg { name: "total" type: DT_FLOAT } is_stateful: true }
        node_def { name: "assign" op: "AssignAddVariableOp" input: "w" input: "x"
                   attr { key: "dtype" value { type: DT_FLOAT } } }
        node_def { name: "read" op: "ReadVariableOp" input: "w" input: "^assign"
                   attr { key: "dtype" value { type: DT_FLOAT } } }
        ret { key: "total" value: "read:value:0" }
      }
      function {
        signature { name: "restore" input_arg { name: "prefix" type: DT_STRING }
                    input_arg { name: "w" type: DT_RESOURCE } input_arg { name: "v" type: DT_RESOURCE }
                    output_arg { name: "done" type: DT_STRING } is_stateful: true control_output: "assign_w" control_output: "assign_v" }
        node_def { name: "names" op: "Const" attr { key: "dtype" value { type: DT_STRING } }
                   attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape { dim { size: 2 } }
                          string_val: "w_key" string_val: "v_key" } } } }
        node_def { name: "slices" op: "Const" attr { key: "dtype" value { type: DT_STRING } }
                   attr { key: "value" value { tensor { dtype: DT_STRING tensor_shape { dim { size: 2 } }
                          string_val: "" string_val: "" } } } }
        node_def { name: "tensors" op: "RestoreV2" input: "prefix" input: "names:output:0" input: "slices:output:0"
                   attr { key: "dtypes" value { list { type: DT_FLOAT type: DT_FLOAT } } } }
        node_def { name: "copy" op: "Identity" input: "tensors:tensors:1" attr { key: "T" value { type: DT_FLOAT } } }
        node_def { name: "assign_w" op: "AssignVariableOp" input: "w" input: "tensors:tensors:0"
                   attr { key: "dtype" value { type: DT_FLOAT } } }
        node_def { name: "assign_v" op: "AssignVariableOp" input: "v" input: "copy:output:0"
                   attr { key: "dtype" value { type: DT_FLOAT } } }
        ret { key: "done" value: "prefix" }
        control_ret { key: "assign_w" value: "assign_w" }
        control_ret { key: "assign_v" value: "assign_v" }
      }
    }
  }
  saver_def { filename_tensor_name: "saver_filename:0" restore_op_name: "restore_call" version: V2 }
  signature_def { key: "serving_default" value {
    inputs { key: "x" value { name: "x:0" dtype: DT_FLOAT tensor_shape { dim { size: 2 } } } }
    outputs { key: "y" value { name: "scale_call:0" dtype: DT_FLOAT tensor_shape { dim { size: 2 } } } }
    method_name: "tensorflow/serving/predict" } }
  signature_def { key: "add" value {
    inputs { key: "x" value { name: "x:0" dtype: DT_FLOAT tensor_shape { dim { size: 2 } } } }
    outputs { key: "total" value { name: "add_call:0" dtype: DT_FLOAT tensor_shape { dim { size: 2 } } } } } }
  signature_def { key: "defaults" value {
    inputs { key: "n" value { name: "n:0" dtype: DT_FLOAT tensor_shape { } } }
    outputs { key: "z" value { name: "z:0" dtype: DT_FLOAT tensor_shape { } } }
    defaults { key: "n" value { dtype: DT_FLOAT tensor_shape { } float_val: 5 } } } }
}
)";
}

void SavedModelFixture::WriteText(const std::string& text) { WriteFile("saved_model.pbtxt", text); }

void SavedModelFixture::WriteScaleModel() {
  WriteText(ScaleModelText());
  WriteVariables({{"w_key", AsTensor<float>({2, 3}), ""}, {"v_key", AsScalar<float>(10), ""}});
}

void SavedModelFixture::WriteVariables(const std::vector<CheckpointTensor>& tensors) {
  ASSERT_THAT(WriteCheckpoint(File("variables/variables"), tensors), IsOk());
}

void SavedModelFixture::WriteFile(const std::string& name, const std::string& content) {
  std::filesystem::create_directories(std::filesystem::path(File(name)).parent_path());
  std::ofstream(File(name), std::ios::binary) << content;
}

absl::Status SavedModelFixture::Load(const SessionOptions& options,
                                     const std::unordered_set<std::string>& tags) {
  return LoadSavedModel(options, RunOptions(), folder(), tags, &bundle_);
}

absl::StatusOr<NamedTensors> SavedModelFixture::Call(const std::string& signature,
                                                     const NamedTensors& inputs) {
  absl::StatusOr<Signature> found = bundle_.signature(signature);
  if (!found.ok()) return found.status();
  absl::StatusOr<SignatureCallable> callable = found->MakeCallable();
  if (!callable.ok()) return callable.status();
  return (*callable)(inputs);
}

}  // namespace gradflow::testing
