// The first program of TensorFlow's guide to the C++ API: constants, a product and a session.
#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/tensor.h"

int main() {
  using namespace tensorflow;
  using namespace tensorflow::ops;
  Scope root = Scope::NewRootScope();
  auto A = Const(root, {{2.f, 1.f}, {-3.f, 4.f}});
  auto b = Const(root, {{5.f, 7.f}});
  // A b^T
  auto v = MatMul(root.WithOpName("v"), A, b, MatMul::TransposeB(true));
  std::vector<Tensor> outputs;
  ClientSession session(root);
  TF_CHECK_OK(session.Run({v}, &outputs));
  LOG(INFO) << outputs[0].matrix<float>();

  const auto product = outputs[0].matrix<float>();
  CHECK_EQ(product.dimension(0), 2);
  CHECK_EQ(product.dimension(1), 1);
  CHECK_EQ(product(0, 0), 17.f);
  CHECK_EQ(product(1, 0), 13.f);
  return 0;
}
