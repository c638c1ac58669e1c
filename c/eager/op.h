// TFE_Op: an op with inputs and attributes.
#ifndef GRADFLOW_C_EAGER_OP_H_
#define GRADFLOW_C_EAGER_OP_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "gradflow/c/eager/context.h"
#include "gradflow/core/tensor.h"
#include "gradflow/proto/attr_value.pb.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/eager/c_api_experimental.h"

struct TFE_Op;

// The attributes of an op, which TFE_OpGetAttrs() returns.
struct TFE_OpAttrs {
  std::string op;
  // Sorted by the time of their setting. The first value of a name counts.
  std::vector<std::pair<std::string, gradflow::AttrValue>> values;
};

struct TFE_Op {
  // The calls that added inputs: a list of `size` inputs, or one input (kSingle).
  static constexpr int kSingle = -1;

  // Keeps the first error until the op is executed.
  void Update(const absl::Status& new_status) {
    if (status.ok()) status = new_status;
  }

  TFE_Context* context = nullptr;
  // The definition of the op or function.
  std::shared_ptr<const gradflow::OpDef> op_def;
  TFE_OpAttrs attrs;
  std::string device;
  // The inputs; each element of a list counts.
  absl::InlinedVector<gradflow::Tensor, 4> inputs;
  absl::InlinedVector<int, 4> arguments;
  // Handles that TFE_OpGetFlatInput() has returned, by input.
  std::vector<std::unique_ptr<TFE_TensorHandle>> handles;
  TFE_CancellationManager* cancellation = nullptr;
  absl::Status status;
  // Identifies the op and its attributes.
  std::string key;
};

namespace gradflow::capi {

// Starts an op anew.
absl::Status ResetOp(TFE_Context* context, absl::string_view name, TFE_Op* op);
// Sets an attribute.
void SetOpAttr(absl::string_view name, AttrValue value, TFE_Op* op);

}  // namespace gradflow::capi

#endif  // GRADFLOW_C_EAGER_OP_H_
