// Computes the gradient of batch normalization in NCHW with the wrapper class, and fetches the same
// tensors with a Session.
#include <cmath>
#include <memory>
#include <vector>

#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/ops/nn_ops.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow/core/util/tensor_format.h"

using namespace std;         // NOLINT: like in programs for TensorFlow
using namespace tensorflow;  // NOLINT

int main() {
  Scope root = Scope::NewRootScope();
  const TensorShape shape = ShapeFromFormat(FORMAT_NCHW, 1, 2, 2, 1);
  Tensor x(DT_FLOAT, shape), dy(DT_FLOAT, shape);
  for (int i = 0; i < 4; ++i) {
    x.flat<float>()(i) = i * i;
    dy.flat<float>()(i) = i + 1;
  }
  // The statistics of x: mean 3.5, variance 12.25.
  auto grad = ops::FusedBatchNormGrad(
      root.WithOpName("grad"), dy, x, {2.f}, {3.5f}, {12.25f},
      ops::FusedBatchNormGrad::DataFormat("NCHW").Epsilon(0.f).IsTraining(true));
  TF_CHECK_OK(root.status());

  vector<Tensor> outputs;
  ClientSession client(root);
  TF_CHECK_OK(client.Run({grad.x_backprop, grad.scale_backprop, grad.offset_backprop}, &outputs));
  CHECK_EQ(outputs[0].shape(), shape);
  // The gradient of x sums to zero. The gradient of the offset is the sum of dy.
  double sum = 0;
  for (int i = 0; i < 4; ++i) sum += outputs[0].flat<float>()(i);
  CHECK_LT(abs(sum), 1e-4);
  CHECK_EQ(outputs[2].vec<float>()(0), 10.f);
  // Computed by hand: the sum of dy * (x - mean) is 15.
  CHECK_LT(abs(outputs[1].vec<float>()(0) - 30.f / 7), 1e-5);
  CHECK_LT(abs(outputs[0].flat<float>()(0) + 12.f / 49), 1e-5);

  GraphDef graph_def;
  TF_CHECK_OK(root.ToGraphDef(&graph_def));
  unique_ptr<Session> session(NewSession(SessionOptions()));
  TF_CHECK_OK(session->Create(graph_def));
  vector<Tensor> named;
  TF_CHECK_OK(session->Run({}, {"grad:1", "grad:2"}, {}, &named));
  CHECK_EQ(named[0].vec<float>()(0), outputs[1].vec<float>()(0));
  const string text = named[1].DebugString();
  LOG(INFO) << text;
  return 0;
}
