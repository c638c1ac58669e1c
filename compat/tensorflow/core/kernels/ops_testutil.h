// OpsTestBase: a GoogleTest fixture that runs one kernel.
//
//   class ReluOpTest : public OpsTestBase {};
//   TEST_F(ReluOpTest, ClampsNegatives) {
//     TF_ASSERT_OK(NodeDefBuilder("op", "Relu").Input(FakeInput(DT_FLOAT)).Finalize(node_def()));
//     TF_ASSERT_OK(InitOp());
//     AddInputFromArray<float>(TensorShape({2}), {-1, 1});
//     TF_ASSERT_OK(RunOpKernel());
//     test::ExpectTensorEqual<float>(*GetOutput(0), test::AsTensor<float>({0, 1}));
//   }
#ifndef GRADFLOW_COMPAT_CORE_KERNELS_OPS_TESTUTIL_H_
#define GRADFLOW_COMPAT_CORE_KERNELS_OPS_TESTUTIL_H_

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <initializer_list>

#include "tensorflow/core/framework/fake_input.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/kernels/kernel_run.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/lib/gtl/array_slice.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/test.h"

namespace tensorflow {

// A mutable input tensor.
struct TensorValue {
  Tensor* tensor = nullptr;
  Tensor* operator->() const { return tensor; }
};

class OpsTestBase : public ::testing::Test {
 protected:
  NodeDef* node_def() { return &node_def_; }
  // Fails the test for devices other than the CPU.
  void SetDevice(const DeviceType& type) { ASSERT_EQ(type.type_string(), DEVICE_CPU); }

  // Creates the kernel of *node_def().
  absl::Status InitOp() { return run_.Init(&node_def_); }

  // Adds the next input in the order of the definition. Converts the values to its type. Fails the
  // test if they cannot be converted.
  template <typename T>
  void AddInput(const TensorShape& shape, std::function<T(int)> x_mapping) {
    if (Tensor* input = NewInput(DataTypeToEnum<T>::v(), shape)) test::FillFn<T>(input, x_mapping);
  }
  template <typename T>
  void AddInputFromArray(const TensorShape& shape, gtl::ArraySlice<T> data) {
    if (Tensor* input = NewInput(DataTypeToEnum<T>::v(), shape)) test::FillValues<T>(input, data);
  }
  template <typename T, typename SrcType>
  void AddInputFromList(const TensorShape& shape, std::initializer_list<SrcType> data) {
    if (Tensor* input = NewInput(DataTypeToEnum<T>::v(), shape)) {
      test::FillValues<T, SrcType>(input, data);
    }
  }

  absl::Status RunOpKernel() { return run_.Run(inputs_); }

  const Tensor& GetInput(int i) const { return inputs_[i]; }
  TensorValue mutable_input(int i) { return TensorValue{&inputs_[i]}; }
  // Returns output i of the last run; null if the run failed or there is no such output.
  Tensor* GetOutput(int i) {
    const bool exists = i >= 0 && i < static_cast<int>(run_.outputs().size());
    return exists ? &run_.outputs()[i] : nullptr;
  }
  // Returns an allocator for the test: `Tensor expected(allocator(), DT_FLOAT, shape)`.
  Allocator* allocator() { return gradflow::SystemAllocator().get(); }
  // Returns the required type of input i.
  DataType input_type(int i) const { return run_.input_type(i); }

  // The inputs. Clear them to run the kernel on others.
  std::deque<Tensor> inputs_;

 private:
  Tensor* NewInput(DataType dtype, const TensorShape& shape) {
    const DataType expected = run_.input_type(inputs_.size());
    EXPECT_EQ(DataTypeString(dtype), DataTypeString(expected)) << "input " << inputs_.size();
    if (dtype != expected) return nullptr;
    return &inputs_.emplace_back(dtype, shape);
  }

  NodeDef node_def_;
  compat_internal::KernelRun run_;
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_KERNELS_OPS_TESTUTIL_H_
