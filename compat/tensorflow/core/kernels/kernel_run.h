// The part of OpsTestBase that needs no GoogleTest. Not for users.
#ifndef GRADFLOW_COMPAT_CORE_KERNELS_KERNEL_RUN_H_
#define GRADFLOW_COMPAT_CORE_KERNELS_KERNEL_RUN_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/tensor.h"
#include "gradflow/core/types.h"

namespace tensorflow {
namespace compat_internal {

// One kernel and what it has made.
class KernelRun {
 public:
  // Makes the kernel of the node, with defaults filled in.
  absl::Status Init(gradflow::NodeDef* node);
  // The type that input i is to have, or DT_INVALID if there is none.
  gradflow::DataType input_type(size_t i) const;
  // Runs it on copies of the inputs' handles, so that it changes none of them.
  absl::Status Run(const std::deque<gradflow::Tensor>& inputs);
  std::vector<gradflow::Tensor>& outputs() { return outputs_; }

 private:
  gradflow::DataTypeVector input_types_;
  gradflow::DataTypeVector output_types_;
  std::unique_ptr<gradflow::OpKernel> kernel_;
  std::vector<gradflow::Tensor> outputs_;
};

}  // namespace compat_internal
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_KERNELS_KERNEL_RUN_H_
