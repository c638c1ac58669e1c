// OpKernelBuilderTest: a GoogleTest fixture that creates kernels from node attributes.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_OP_KERNEL_TEST_BASE_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_OP_KERNEL_TEST_BASE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/fake_input.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/lib/strings/str_util.h"
#include "tensorflow/core/lib/strings/strcat.h"
#include "tensorflow/core/platform/test.h"
#include "tensorflow/core/public/version.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tensorflow {

// The device types of the tested kernels.
inline std::vector<DeviceType> DeviceTypes() {
  return {DeviceType(DEVICE_GPU), DeviceType(DEVICE_CPU)};
}

class OpKernelBuilderTest : public ::testing::Test {
 protected:
  // Returns a node of the op. Each attribute is "name|type|value", with the value in text format.
  static NodeDef CreateNodeDef(const std::string& op, const std::vector<std::string>& attrs) {
    NodeDef node;
    node.set_op(op);
    node.set_name(op + "-op");
    for (const std::string& attr : attrs) {
      const std::vector<std::string> parts = absl::StrSplit(attr, '|');
      AttrValue value;
      EXPECT_TRUE(parts.size() == 3 && ParseAttrValue(parts[1], parts[2], &value)) << attr;
      (*node.mutable_attr())[parts[0]] = value;
    }
    return node;
  }

  // Creates a kernel, whose op must have no outputs. Checks that the kernel is listed for the
  // device.
  std::unique_ptr<OpKernel> ExpectSuccess(const std::string& op, const DeviceType& device_type,
                                          const std::vector<std::string>& attrs,
                                          DataTypeSlice input_types = {}) {
    const NodeDef node = WithInputs(CreateNodeDef(op, attrs), input_types.size());
    absl::StatusOr<std::unique_ptr<OpKernel>> kernel = CreateOpKernel(device_type, node);
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    if (!kernel.ok()) return nullptr;
    EXPECT_EQ((*kernel)->num_inputs(), static_cast<int>(input_types.size()));
    EXPECT_EQ((*kernel)->num_outputs(), 0);
    PrioritizedDeviceTypeVector devices;
    TF_EXPECT_OK(SupportedDeviceTypesForNode(DeviceTypes(), node, &devices));
    EXPECT_TRUE(Has(devices, device_type)) << device_type;
    return *std::move(kernel);
  }

  // Expects an error with this code. Also expects that no kernel is listed if none is found.
  void ExpectFailure(const std::string& op, const DeviceType& device_type,
                     const std::vector<std::string>& attrs, error::Code code) {
    const NodeDef node = CreateNodeDef(op, attrs);
    const absl::Status status = CreateOpKernel(device_type, node).status();
    EXPECT_EQ(status.code(), code) << status;
    PrioritizedDeviceTypeVector devices;
    const absl::Status listed = SupportedDeviceTypesForNode(DeviceTypes(), node, &devices);
    if (status.code() == error::NOT_FOUND) {
      TF_EXPECT_OK(listed);
      EXPECT_FALSE(Has(devices, device_type)) << device_type;
    } else {
      EXPECT_EQ(listed.code(), status.code()) << listed;
    }
  }

  // Returns the class of the kernel, "not found", or the error.
  std::string GetKernelClassName(const std::string& op, const DeviceType& device_type,
                                 const std::vector<std::string>& attrs,
                                 DataTypeSlice input_types = {}) {
    const NodeDef node = WithInputs(CreateNodeDef(op, attrs), input_types.size());
    std::string name;
    const absl::Status status = FindKernelDef(device_type, node, nullptr, &name);
    if (status.code() == error::NOT_FOUND) return "not found";
    return status.ok() ? name : status.ToString();
  }

 private:
  static NodeDef WithInputs(NodeDef node, size_t count) {
    for (size_t i = 0; i < count; ++i) node.add_input("a:0");
    return node;
  }
  static bool Has(const PrioritizedDeviceTypeVector& devices, const DeviceType& device_type) {
    return std::any_of(devices.begin(), devices.end(),
                       [&](const auto& device) { return device.first == device_type; });
  }
};

// A kernel that reports its class.
class BaseKernel : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext*) override {}
  virtual int Which() const = 0;
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_OP_KERNEL_TEST_BASE_H_
