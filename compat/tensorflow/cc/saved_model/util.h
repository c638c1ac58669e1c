// Helpers for programs that serve SavedModels.
#ifndef GRADFLOW_COMPAT_CC_SAVED_MODEL_UTIL_H_
#define GRADFLOW_COMPAT_CC_SAVED_MODEL_UTIL_H_

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/platform/protobuf.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"
#include "tensorflow/core/protobuf/saved_model.pb.h"

namespace tensorflow::saved_model {

// Returns "2" for a model with one graph that has the objects of the exporting program, and "1" for
// other models.
std::string GetWriteVersion(const SavedModel& saved_model);

std::set<std::string> GetMapKeys(const protobuf::Map<std::string, TensorProto>& map);

// Appends the feeds of a signature: the tensors of a request by the names of the signature, or the
// signature's defaults. Returns INVALID_ARGUMENT if the request lacks an input without a default,
// has an unknown input, or has a malformed tensor.
absl::Status GetInputValues(const SignatureDef& signature,
                            const protobuf::Map<std::string, TensorProto>& request_inputs,
                            std::vector<std::pair<std::string, Tensor>>& inputs);

}  // namespace tensorflow::saved_model

#endif  // GRADFLOW_COMPAT_CC_SAVED_MODEL_UTIL_H_
