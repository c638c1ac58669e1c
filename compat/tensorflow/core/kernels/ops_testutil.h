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

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/match.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/fake_input.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/kernels/kernel_run.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/lib/gtl/array_slice.h"
#include "tensorflow/core/lib/gtl/stl_util.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/mutex.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/test.h"
#include "tensorflow/core/platform/threadpool.h"
#include "tensorflow/core/public/session_options.h"
#include "tensorflow/core/public/version.h"

namespace tensorflow {

namespace test {

// Stores the default attributes of each output in *attrs.
inline void SetOutputAttrs(OpKernelContext::Params* params,
                           std::vector<AllocatorAttributes>* attrs) {
  attrs->assign(params->op_kernel->num_outputs(), AllocatorAttributes());
  params->output_attr_array = attrs->data();
}

}  // namespace test

class OpsTestBase : public ::testing::Test {
 public:
  OpsTestBase() : own_device_(std::make_unique<Device>()), device_(own_device_.get()) {}
  ~OpsTestBase() override { gtl::STLDeleteElements(&tensors_); }
  OpsTestBase(const OpsTestBase&) = delete;
  OpsTestBase& operator=(const OpsTestBase&) = delete;

  NodeDef* node_def() { return &node_def_; }
  void set_node_def(const NodeDef& node_def) { node_def_.CopyFrom(node_def); }
  // Fails the test for devices other than the CPU.
  void SetDevice(const DeviceType& type) { ASSERT_EQ(type.type_string(), DEVICE_CPU); }
  void SetDevice(const DeviceType& type, std::unique_ptr<Device> device) {
    SetDevice(type);
    ASSERT_NE(device, nullptr);
    own_device_ = std::move(device);
    device_ = own_device_.get();
  }

  // Creates the kernel of *node_def().
  absl::Status InitOp() {
    context_ = nullptr;
    const absl::Status status = run_.Init(&node_def_);
    input_types_ = run_.input_types();
    return status;
  }
  absl::Status InitOpWithGraphVersion(int) { return InitOp(); }

  // Adds the next input in the order of the definition. Converts the values to its type. Fails the
  // test if the conversion is not possible.
  template <typename T>
  void AddInput(const TensorShape& shape, std::function<T(int)> x_mapping) {
    if (Tensor* input = AddInput(DataTypeToEnum<T>::v(), shape)) test::FillFn<T>(input, x_mapping);
  }
  template <typename T>
  void AddInputFromArray(const TensorShape& shape, gtl::ArraySlice<T> data) {
    if (Tensor* input = AddInput(DataTypeToEnum<T>::v(), shape)) test::FillValues<T>(input, data);
  }
  template <typename T, typename SrcType>
  void AddInputFromList(const TensorShape& shape, std::initializer_list<SrcType> data) {
    if (Tensor* input = AddInput(DataTypeToEnum<T>::v(), shape)) {
      test::FillValues<T, SrcType>(input, data);
    }
  }

  // Adds a handle to a resource. The kernel's manager takes over the resource. An empty container
  // means the default container.
  template <typename T>
  void AddResourceInput(const std::string& container, const std::string& name, T* resource) {
    ResourceMgr* const manager = run_.resources();
    const std::string& in = container.empty() ? manager->default_container() : container;
    TF_EXPECT_OK(manager->Create(in, name, resource));
    if (Tensor* input = AddInput(DT_RESOURCE, TensorShape({}))) {
      input->span<gradflow::ResourceHandle>()[0] = MakeResourceHandle<T>(in, name, *device_);
    }
  }

  absl::Status RunOpKernel() {
    step_container_ = std::make_unique<ScopedStepContainer>(
        0, [this](const std::string& name) { return run_.resources()->Cleanup(name); });
    std::vector<Tensor*> inputs;
    for (const TensorValue& input : inputs_) inputs.push_back(input.tensor);
    context_ = nullptr;
    const absl::Status status = run_.Run(inputs);
    if (status.ok()) context_ = std::make_unique<RunOutputs>(run_.TakeOutputs());
    return status;
  }

  const Tensor& GetInput(int i) const { return *inputs_[i].tensor; }
  TensorValue mutable_input(int i) { return inputs_[i]; }
  // Returns output i of the last run; null if the run failed, or if the output does not exist or is
  // in a branch that is not taken.
  Tensor* GetOutput(int i) {
    const bool exists = context_ != nullptr && i >= 0 && i < static_cast<int>(context_->size());
    if (!exists || (*context_)[i].dtype() == DT_INVALID) return nullptr;
    return &(*context_)[i];
  }
  // Returns an allocator for the test: `Tensor expected(allocator(), DT_FLOAT, shape)`.
  Allocator* allocator() { return cpu_allocator(); }
  const DataTypeVector& output_types() const { return run_.output_types(); }
  // Returns the required type of input i.
  DataType input_type(int i) const { return run_.input_type(i); }

 protected:
  // Adds the next input, uninitialised. Fails the test and returns null if it has another type.
  Tensor* AddInput(DataType dtype, const TensorShape& shape) {
    const DataType expected = run_.input_type(inputs_.size());
    EXPECT_EQ(DataTypeString(dtype), DataTypeString(BaseType(expected)))
        << "input " << inputs_.size();
    if (dtype != BaseType(expected)) return nullptr;
    tensors_.push_back(new Tensor(dtype, shape));
    inputs_.push_back({IsRefType(expected) ? &lock_for_refs_ : nullptr, tensors_.back()});
    return tensors_.back();
  }

 private:
  std::unique_ptr<Device> own_device_;

 protected:
  Device* device_;
  NodeDef node_def_;
  // The types of the inputs, valid after InitOp.
  DataTypeVector input_types_;
  mutex lock_for_refs_;
  // The inputs. Clear them before running the kernel on other inputs.
  absl::InlinedVector<TensorValue, 4> inputs_;
  // The tensors that the fixture owns.
  std::vector<Tensor*> tensors_;

 private:
  compat_internal::KernelRun run_;

 protected:
  // The outputs of the last run. Tests can release them with reset(). Null if the run failed.
  using RunOutputs = std::vector<Tensor>;
  std::unique_ptr<RunOutputs> context_;
  // The resources of the last run.
  std::unique_ptr<ScopedStepContainer> step_container_;
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_KERNELS_OPS_TESTUTIL_H_
