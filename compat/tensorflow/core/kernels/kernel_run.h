// The GoogleTest-independent part of OpsTestBase. Internal.
#ifndef GRADFLOW_COMPAT_CORE_KERNELS_KERNEL_RUN_H_
#define GRADFLOW_COMPAT_CORE_KERNELS_KERNEL_RUN_H_

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/resource_manager.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"

namespace tensorflow {

class ResourceMgr;

namespace compat_internal {

// A kernel and its outputs.
class KernelRun {
 public:
  // Sets the node's missing attributes to their defaults, and creates its kernel.
  absl::Status Init(gradflow::NodeDef* node);
  // Returns the required type of input i, or DT_INVALID if it does not exist.
  gradflow::DataType input_type(size_t i) const;
  const gradflow::DataTypeVector& input_types() const { return input_types_; }
  const gradflow::DataTypeVector& output_types() const { return output_types_; }
  // Runs the kernel on `inputs`. The kernel shares them and therefore does not overwrite them. An
  // input of a reference type is the value of a variable, which the kernel may replace.
  absl::Status Run(absl::Span<gradflow::Tensor* const> inputs);
  // Moves out the outputs of the last run. Empty if the run failed. A dead output is not set.
  std::vector<gradflow::Tensor> TakeOutputs() { return std::exchange(outputs_, {}); }
  // Returns the resources of the program's own kernels. All runs share them.
  ResourceMgr* resources();

 private:
  // Must outlive the kernel, which may own resources.
  gradflow::ResourceManager manager_;
  gradflow::DataTypeVector input_types_;
  gradflow::DataTypeVector output_types_;
  std::unique_ptr<gradflow::OpKernel> kernel_;
  std::vector<gradflow::Tensor> outputs_;
};

}  // namespace compat_internal
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_KERNELS_KERNEL_RUN_H_
