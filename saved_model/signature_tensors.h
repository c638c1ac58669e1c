// SignatureTensors: the inputs or outputs of a signature. Internal.
#ifndef GRADFLOW_SAVED_MODEL_SIGNATURE_TENSORS_H_
#define GRADFLOW_SAVED_MODEL_SIGNATURE_TENSORS_H_

#include <google/protobuf/map.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gradflow/proto/meta_graph.pb.h"
#include "gradflow/saved_model/signature.h"

namespace gradflow::internal {

// Returns the tensors in the order of their names. Returns INVALID_ARGUMENT if a message is
// malformed or two tensors have the same name.
absl::StatusOr<std::vector<SignatureTensor>> SignatureTensors(
    const google::protobuf::Map<std::string, TensorInfo>& infos);

}  // namespace gradflow::internal

#endif  // GRADFLOW_SAVED_MODEL_SIGNATURE_TENSORS_H_
