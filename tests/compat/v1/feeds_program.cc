// Feeds and fetches like in TensorFlow's guide, and an op with several fetched outputs.
#include <iostream>
#include <vector>

#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/framework/ops.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/const_op.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/platform/init_main.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace {

using ops::Add;
using ops::Const;
using ops::FakeQuantWithMinMaxVarsGradient;
using ops::Placeholder;

Status AddThree() {
  Scope root = Scope::NewRootScope();
  auto a = Placeholder(root, DT_INT32);
  auto b = Const(root, 3, {2, 2});
  auto c = Add(root, a, b);
  ClientSession session(root);
  std::vector<Tensor> outputs;
  TF_RETURN_IF_ERROR(session.Run({{a, {{1, 2}, {3, 4}}}}, {c}, &outputs));
  const auto sum = outputs[0].matrix<int32>();
  for (int i = 0; i < 4; ++i) {
    if (sum(i / 2, i % 2) != i + 4) {
      return errors::Internal("element ", i, " of ", outputs[0].DebugString());
    }
  }
  // A placeholder that is not fed is an error. Uses old and current accessor names.
  const Status unfed = session.Run({c}, &outputs);
  if (unfed.code() != error::INVALID_ARGUMENT) return errors::Internal(unfed.ToString());
  if (unfed.error_message().find("fed") == string::npos) {
    return errors::Internal(unfed.error_message());
  }
  return Status::OK();
}

Status QuantisationGradient() {
  Scope root = Scope::NewRootScope();
  auto gradients = Placeholder(root, DT_FLOAT);
  auto inputs = Placeholder(root, DT_FLOAT, Placeholder::Shape({3}));
  auto grad = FakeQuantWithMinMaxVarsGradient(
      root.WithOpName("grad"), gradients, inputs, -1.f, 1.f,
      FakeQuantWithMinMaxVarsGradient::NumBits(8).NarrowRange(false));
  TF_RETURN_IF_ERROR(root.status());
  std::vector<Tensor> outputs;
  ClientSession session(root);
  TF_RETURN_IF_ERROR(session.Run(
      {{gradients, {1.f, 2.f, 3.f}}, {inputs, {-5.f, 0.f, 5.f}}},
      {grad.backprops_wrt_input, grad.backprop_wrt_min, grad.backprop_wrt_max}, &outputs));
  const auto dx = outputs[0].vec<float>();
  CHECK_EQ(dx(0), 0);
  CHECK_EQ(dx(1), 2);
  CHECK_EQ(dx(2), 0);
  CHECK_EQ(outputs[1].scalar<float>()(), 1);
  CHECK_EQ(outputs[2].scalar<float>()(), 3);
  return Status::OK();
}

}  // namespace
}  // namespace tensorflow

int main(int argc, char** argv) {
  tensorflow::port::InitMain(argv[0], &argc, &argv);
  TF_CHECK_OK(tensorflow::AddThree());
  const tensorflow::Status status = tensorflow::QuantisationGradient();
  if (!status.ok()) {
    std::cerr << status << std::endl;
    return 1;
  }
  return 0;
}
