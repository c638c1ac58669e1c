// run_model MODEL INPUT INPUT.npy OUTPUT OUTPUT.npy [--fast]: runs a GraphDef.
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "gradflow/graph/import.h"
#include "gradflow/io/npy.h"
#include "gradflow/runtime/session/session.h"

namespace {

absl::Status Run(const std::vector<std::string>& args, bool fast) {
  gradflow::SessionOptions options;
  options.fold_batch_norms = fast;
  absl::StatusOr<std::unique_ptr<gradflow::Session>> session = gradflow::Session::Make(options);
  if (!session.ok()) return session.status();
  absl::StatusOr<gradflow::GraphDef> graph = gradflow::ReadGraphDef(args[0]);
  if (!graph.ok()) return graph.status();
  if (absl::Status status = (*session)->Create(*std::move(graph)); !status.ok()) return status;
  absl::StatusOr<gradflow::Tensor> input = gradflow::ReadNpy(args[2]);
  if (!input.ok()) return input.status();
  std::vector<gradflow::Tensor> outputs;
  absl::Status status = (*session)->Run({{args[1], *input}}, {args[3]}, {}, &outputs);
  if (!status.ok()) return status;
  return gradflow::WriteNpy(args[4], outputs[0]);
}

}  // namespace

int main(int argc, char** argv) {
  const bool fast = argc == 7 && std::strcmp(argv[6], "--fast") == 0;
  if (argc != 6 && !fast) {
    std::cerr << "usage: run_model MODEL INPUT INPUT.npy OUTPUT OUTPUT.npy [--fast]\n";
    return 2;
  }
  const absl::Status status = Run(std::vector<std::string>(argv + 1, argv + 6), fast);
  if (!status.ok()) {
    std::cerr << status << "\n";
    return 1;
  }
  return 0;
}
