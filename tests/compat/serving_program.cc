// Loads and runs a graph with TensorFlow's current names: text and binary files, concurrent runs of
// a session, callables, and run options.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.pb.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/path.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/statusor.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow/core/public/session_options.h"

namespace {

namespace tf = tensorflow;

absl::StatusOr<tf::GraphDef> BuildGraph() {
  const tf::Scope scope = tf::Scope::NewRootScope();
  auto x = tf::ops::Placeholder(scope.WithOpName("x"), tf::DT_DOUBLE);
  auto y = tf::ops::Mul(scope.WithOpName("y"), x, tf::ops::Const(scope, 2.0));
  tf::ops::Identity(scope.WithOpName("z"), y);
  tf::GraphDef graph;
  TF_RETURN_IF_ERROR(scope.ToGraphDef(&graph));
  return graph;
}

absl::Status RoundTrip(tf::GraphDef* graph) {
  tf::Env* env = tf::Env::Default();
  const std::string dir = absl::StrCat("serving_", env->NowMicros());
  TF_RETURN_IF_ERROR(env->CreateDir(dir));
  const std::string text = tf::io::JoinPath(dir, "graph.pbtxt");
  const std::string binary = tf::io::JoinPath(dir, "graph.pb");
  TF_RETURN_IF_ERROR(tf::WriteTextProto(env, text, *graph));
  tf::GraphDef from_text;
  TF_RETURN_IF_ERROR(tf::ReadTextProto(env, text, &from_text));
  TF_RETURN_IF_ERROR(tf::WriteBinaryProto(env, binary, from_text));
  TF_RETURN_IF_ERROR(tf::ReadBinaryProto(env, binary, graph));
  std::vector<std::string> files;
  TF_RETURN_IF_ERROR(env->GetChildren(dir, &files));
  if (files != std::vector<std::string>{"graph.pb", "graph.pbtxt"}) {
    return tf::errors::Internal(files.size(), " files");
  }
  // A text file is not a binary file.
  if (tf::ReadBinaryProto(env, text, &from_text).ok()) return tf::errors::Internal("was read");
  for (const std::string& file : files) {
    TF_RETURN_IF_ERROR(env->DeleteFile(tf::io::JoinPath(dir, file)));
  }
  return env->DeleteDir(dir);
}

absl::Status Serve() {
  TF_ASSIGN_OR_RETURN(tf::GraphDef graph, BuildGraph());
  TF_RETURN_IF_ERROR(RoundTrip(&graph));
  tf::Session* raw_session;
  TF_RETURN_IF_ERROR(tf::NewSession(tf::SessionOptions(), &raw_session));
  const std::unique_ptr<tf::Session> session(raw_session);
  TF_RETURN_IF_ERROR(session->Create(graph));

  std::vector<std::thread> threads;
  std::vector<absl::Status> statuses(4);
  std::vector<double> results(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      std::vector<tf::Tensor> outputs;
      tf::RunOptions options;
      options.set_timeout_in_ms(60000);
      tf::RunMetadata metadata;
      statuses[i] = session->Run(options, {{"x", tf::Tensor(static_cast<double>(i))}}, {"z"}, {},
                                 &outputs, &metadata);
      if (statuses[i].ok()) results[i] = outputs[0].scalar<double>()();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 4; ++i) {
    TF_RETURN_IF_ERROR(statuses[i]);
    CHECK_EQ(results[i], 2 * i);
  }

  tf::CallableOptions callable;
  callable.add_feed("x:0");
  callable.add_fetch("y:0");
  tf::Session::CallableHandle handle;
  TF_RETURN_IF_ERROR(session->MakeCallable(callable, &handle));
  std::vector<tf::Tensor> outputs;
  TF_RETURN_IF_ERROR(session->RunCallable(handle, {tf::Tensor(21.0)}, &outputs, nullptr));
  CHECK_EQ(outputs[0].scalar<double>()(), 42.0);
  TF_RETURN_IF_ERROR(session->ReleaseCallable(handle));

  const absl::Status unknown = session->Run({}, {"nothing"}, {}, &outputs);
  CHECK(absl::IsNotFound(unknown)) << unknown;
  return session->Close();
}

}  // namespace

int main() {
  const absl::Status status = Serve();
  if (!status.ok()) LOG(FATAL) << status;
  return 0;
}
