// Base classes for kernels with one or two inputs of the same type.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_NUMERIC_OP_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_NUMERIC_OP_H_

#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {

// A kernel with one input and one output of type T.
template <class T>
class UnaryOp : public OpKernel {
 public:
  explicit UnaryOp(OpKernelConstruction* context) : OpKernel(context) {
    const DataType dtype = DataTypeToEnum<T>::v();
    OP_REQUIRES_OK(context, context->MatchSignature({dtype}, {dtype}));
  }
};

// A kernel with two inputs and one output of type T.
template <class T>
class BinaryOp : public OpKernel {
 public:
  explicit BinaryOp(OpKernelConstruction* context) : OpKernel(context) {
    const DataType dtype = DataTypeToEnum<T>::v();
    OP_REQUIRES_OK(context, context->MatchSignature({dtype, dtype}, {dtype}));
  }
};

// CHILD must have `void Operate(OpKernelContext*, const Tensor& input, Tensor* output)`. The output
// has the shape of the input and may share its buffer.
template <class T, class CHILD>
class UnaryElementWiseOp : public UnaryOp<T> {
 public:
  using ::tensorflow::UnaryOp<T>::UnaryOp;
  void Compute(OpKernelContext* context) override {
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context, context->forward_input_or_allocate_output(
                                {0}, 0, context->input(0).shape(), &output));
    static_cast<CHILD*>(this)->Operate(context, context->input(0), output);
  }
};

// CHILD must have `template <int NDIMS> void Operate(OpKernelContext*, const Tensor& a, const
// Tensor& b, Tensor* output)`. The tensors have the same shape, with at most 8 dimensions.
template <class T, class CHILD>
class BinaryElementWiseOp : public BinaryOp<T> {
 public:
  using ::tensorflow::BinaryOp<T>::BinaryOp;
  void Compute(OpKernelContext* context) override {
    const Tensor& a = context->input(0);
    const Tensor& b = context->input(1);
    if (!context->ValidateInputsAreSameShape(this)) return;
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context,
                   context->forward_input_or_allocate_output({0, 1}, 0, a.shape(), &output));
    OperateFrom<0>(context, a, b, output);
  }

 private:
  // Calls the child's Operate<NDIMS> for the rank of `a`, which is at least N.
  template <int N>
  void OperateFrom(OpKernelContext* context, const Tensor& a, const Tensor& b, Tensor* output) {
    if constexpr (N > 8) {
      context->SetStatus(
          errors::InvalidArgument("inputs must have at most 8 dimensions, but have ", a.dims()));
    } else if (a.dims() == N) {
      static_cast<CHILD*>(this)->template Operate<N>(context, a, b, output);
    } else {
      OperateFrom<N + 1>(context, a, b, output);
    }
  }
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_NUMERIC_OP_H_
