// Loads a frozen graph from a file and runs it by node names, like image classifiers do. Uses the
// names of TensorFlow 1.15.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/cc/ops/const_op.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/graph/default_device.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/lib/io/path.h"
#include "tensorflow/core/lib/strings/strcat.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/init_main.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/types.h"
#include "tensorflow/core/public/session.h"

using tensorflow::int32;
using tensorflow::Status;
using tensorflow::string;
using tensorflow::Tensor;

namespace {

// Writes a graph of one layer with constant weights.
Status WriteFrozenGraph(const string& path) {
  tensorflow::Scope root = tensorflow::Scope::NewRootScope();
  using namespace tensorflow::ops;  // NOLINT(build/namespaces)
  auto input = Placeholder(root.WithOpName("input"), tensorflow::DT_FLOAT);
  auto weights = Const(root.WithOpName("weights"), {{1.f, -1.f}, {2.f, 1.f}});
  auto product = MatMul(root.WithOpName("product"), input, weights);
  Relu(root.WithOpName("output"), product);
  tensorflow::GraphDef graph_def;
  TF_RETURN_IF_ERROR(root.ToGraphDef(&graph_def));
  return WriteBinaryProto(tensorflow::Env::Default(), path, graph_def);
}

Status LoadGraph(const string& graph_file_name, std::unique_ptr<tensorflow::Session>* session) {
  tensorflow::GraphDef graph_def;
  Status load_graph_status =
      ReadBinaryProto(tensorflow::Env::Default(), graph_file_name, &graph_def);
  if (!load_graph_status.ok()) {
    return tensorflow::errors::NotFound("Failed to load compute graph at '", graph_file_name, "'");
  }
  tensorflow::graph::SetDefaultDevice("/cpu:0", &graph_def);
  tensorflow::SessionOptions options;
  options.config.set_intra_op_parallelism_threads(2);
  session->reset(tensorflow::NewSession(options));
  Status session_create_status = (*session)->Create(graph_def);
  if (!session_create_status.ok()) {
    return session_create_status;
  }
  return Status::OK();
}

}  // namespace

int main(int argc, char* argv[]) {
  tensorflow::port::InitMain(argv[0], &argc, &argv);
  auto* env = tensorflow::Env::Default();
  const string dir =
      tensorflow::io::JoinPath(".", tensorflow::strings::StrCat("frozen_graph_", env->NowMicros()));
  TF_CHECK_OK(env->RecursivelyCreateDir(dir));
  const string graph_path = tensorflow::io::JoinPath(dir, "frozen.pb");
  TF_CHECK_OK(WriteFrozenGraph(graph_path));

  std::unique_ptr<tensorflow::Session> session;
  Status load_graph_status = LoadGraph(graph_path, &session);
  if (!load_graph_status.ok()) {
    LOG(ERROR) << load_graph_status;
    return -1;
  }
  Tensor image(tensorflow::DT_FLOAT, tensorflow::TensorShape({1, 2}));
  image.matrix<float>()(0, 0) = 3;
  image.matrix<float>()(0, 1) = 1;
  std::vector<Tensor> outputs;
  Status run_status = session->Run({{"input", image}}, {"output:0"}, {}, &outputs);
  if (!run_status.ok()) {
    LOG(ERROR) << "Running model failed: " << run_status.error_message();
    return -1;
  }
  CHECK_EQ(outputs.size(), 1u);
  CHECK_EQ(outputs[0].matrix<float>()(0, 0), 5);
  CHECK_EQ(outputs[0].matrix<float>()(0, 1), 0);
  TF_CHECK_OK(session->Close());

  // Missing files are reported.
  TF_CHECK_OK(env->DeleteFile(graph_path));
  TF_CHECK_OK(env->DeleteDir(dir));
  std::unique_ptr<tensorflow::Session> none;
  const Status missing = LoadGraph(graph_path, &none);
  CHECK(tensorflow::errors::IsNotFound(missing)) << missing;
  tensorflow::GraphDef graph_def;
  const Status no_file = ReadBinaryProto(env, graph_path, &graph_def);
  CHECK(tensorflow::errors::IsNotFound(no_file)) << no_file;
  const Status folder = ReadBinaryProto(env, "/", &graph_def);
  CHECK(!folder.ok() && !tensorflow::errors::IsNotFound(folder)) << folder;
  return 0;
}
