// A library of ops that uses only TensorFlow's names, like repositories of custom ops. The kernel
// is registered before its op, as can happen if they are in different files.
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"

using namespace tensorflow;

class PluginZeroOutOp : public OpKernel {
 public:
  explicit PluginZeroOutOp(OpKernelConstruction* context) : OpKernel(context) {}
  void Compute(OpKernelContext* context) override {
    const Tensor& input = context->input(0);
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, input.shape(), &output));
    const auto in = input.flat<int32>();
    auto out = output->flat<int32>();
    for (int i = 0; i < in.size(); ++i) out(i) = i == 0 ? in(i) : 0;
  }
};

REGISTER_KERNEL_BUILDER(Name("PluginZeroOut").Device(DEVICE_CPU), PluginZeroOutOp);

REGISTER_OP("PluginZeroOut")
    .Input("to_zero: int32")
    .Output("zeroed: int32")
    .SetShapeFn([](::tensorflow::shape_inference::InferenceContext* c) {
      c->set_output(0, c->input(0));
      return absl::OkStatus();
    });
