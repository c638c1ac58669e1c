// Runs the calls of a SavedModel that tests/interop/saved_models.py has exported.
//
//   run_saved_models FOLDER [no-freeze | WRITTEN]
//   run_saved_models --make FOLDER
//
// Prints "agrees", with the largest difference relative to the largest element, or what differs or
// is missing (tests/saved_model/exported_model.h). With WRITTEN, the name of a folder to make,
// writes the model with its values after the calls. --make writes the SavedModel FOLDER/model,
// whose graph has variables of both kinds, and its calls.
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/io/npy.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/saved_model/builder.h"
#include "tests/saved_model/exported_model.h"

namespace gradflow {
namespace {

absl::Status Run(const std::string& folder, const std::string& option) {
  testing::ExportedModelOptions options;
  options.freezes = option.empty();
  if (option != "no-freeze") options.written = option;
  GRADFLOW_ASSIGN_OR_RETURN(const double difference, testing::RunExportedModel(folder, options));
  std::cout << "agrees, " << difference << "\n";
  return absl::OkStatus();
}

// Writes a model of a scope, and its calls.
absl::Status Make(const std::string& folder) {
  const Scope root = Scope::NewRootScope();
  const Output x =
      ops::Placeholder(root.WithOpName("x"), DT_FLOAT, ops::Placeholder::Shape({-1, 3}));
  const Output w = ops::VarHandleOp(root.WithOpName("w"), DT_FLOAT, TensorShape({3, 2}));
  const Output b = ops::Variable(root.WithOpName("b"), TensorShape({2}), DT_FLOAT);
  const Output read = ops::ReadVariableOp(root, w, DT_FLOAT);
  const Output y =
      ops::Relu(root.WithOpName("y"), ops::BiasAdd(root, ops::MatMul(root, x, read), b));
  const ops::AssignVariableOp assign_w(root, w,
                                       ops::Const(root, {{1.f, -2.f}, {0.5f, 0.25f}, {3.f, 1.f}}));
  const Output assign_b = ops::Assign(root, b, ops::Const(root, {0.5f, -1.f}));
  const ops::AssignAddVariableOp add(root.WithOpName("add"), w,
                                     ops::Const(root, {{1.f, 1.f}, {1.f, 1.f}, {1.f, 1.f}}));
  const Output after = ops::ReadVariableOp(
      root.WithControlDependencies({add.operation}).WithOpName("after"), w, DT_FLOAT);
  if (!root.ok()) return root.status();
  const ClientSession session(root);
  std::vector<Tensor> outputs;
  GRADFLOW_RETURN_IF_ERROR(session.Run({}, {assign_b}, {assign_w.operation}, &outputs));
  SavedModelBuilder builder(folder + "/model");
  GRADFLOW_RETURN_IF_ERROR(
      builder.AddGraph(root, session.resources(), {"serve"},
                       {{"serving_default", {{"x", x}}, {{"y", y}}}, {"add", {}, {{"w", after}}}}));
  GRADFLOW_RETURN_IF_ERROR(builder.Save(/*replace=*/true));
  Tensor value(DT_FLOAT, {2, 3});
  for (int i = 0; i < 6; ++i) value.flat<float>()(i) = static_cast<float>(i) - 2.f;
  GRADFLOW_RETURN_IF_ERROR(WriteNpy(folder + "/x.npy", value));
  std::ofstream calls(folder + "/calls.txt");
  calls << "tolerance 1e-6\n";
  for (int i = 0; i < 2; ++i) {
    GRADFLOW_RETURN_IF_ERROR(session.Run({{x, value}}, {y}, &outputs));
    GRADFLOW_RETURN_IF_ERROR(WriteNpy(absl::StrCat(folder, "/y", i, ".npy"), outputs[0]));
    calls << "call serving_default\nfeed x x.npy\nexpect y y" << i << ".npy\n";
    if (i == 1) break;
    GRADFLOW_RETURN_IF_ERROR(session.Run({after}, &outputs));
    GRADFLOW_RETURN_IF_ERROR(WriteNpy(folder + "/w.npy", outputs[0]));
    calls << "call add\nexpect w w.npy\n";
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace gradflow

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: run_saved_models FOLDER [no-freeze | WRITTEN]\n";
    return 2;
  }
  const bool makes = std::string(argv[1]) == "--make" && argc > 2;
  const absl::Status status =
      makes ? gradflow::Make(argv[2]) : gradflow::Run(argv[1], argc > 2 ? argv[2] : "");
  if (status.ok()) return 0;
  std::cout << gradflow::errors::Printable(status.ToString(), 400) << "\n";
  return 1;
}
