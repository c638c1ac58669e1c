// DeviceIndex.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"

namespace gradflow::device_index {
namespace {

class DeviceIndexKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    std::vector<std::string> names;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("device_names", &names));
    index_ = static_cast<int32_t>(
        std::distance(names.begin(), std::find(names.begin(), names.end(), "CPU")));
    return absl::OkStatus();
  }
  absl::Status Compute(KernelContext& ctx) const override {
    Tensor* index = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, TensorShape(), &index));
    index->scalar<int32_t>()() = index_;
    return absl::OkStatus();
  }
  bool IsCheap() const override { return true; }

 private:
  int32_t index_ = 0;
};

}  // namespace

void Register(Registry& registry) {
  registry.Op("DeviceIndex")
      .Group("functional_ops")
      .Output("index: int32")
      .Attr("device_names: list(string)")
      .Stateful()
      .HandWritten()
      .Shape(ScalarShape)
      .Doc(R"(Returns the place of the node's type of device in a list.

Selects the branch of a `Case` that is written for the device. All nodes run on the CPU.

index: The index of "CPU", or the length of the list if it is not there.
device_names: Types of devices, such as "CPU" and "GPU".)");
  registry.Kernel("DeviceIndex", MakeKernel<DeviceIndexKernel>);
}

}  // namespace gradflow::device_index
