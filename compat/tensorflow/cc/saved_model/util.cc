#include "tensorflow/cc/saved_model/util.h"

#include "absl/strings/str_join.h"
#include "gradflow/core/status.h"

namespace tensorflow::saved_model {

std::string GetWriteVersion(const SavedModel& saved_model) {
  const bool has_objects =
      saved_model.meta_graphs_size() == 1 && saved_model.meta_graphs(0).has_object_graph_def();
  return has_objects ? "2" : "1";
}

std::set<std::string> GetMapKeys(const protobuf::Map<std::string, TensorProto>& map) {
  std::set<std::string> keys;
  for (const auto& [key, value] : map) keys.insert(key);
  return keys;
}

absl::Status GetInputValues(const SignatureDef& signature,
                            const protobuf::Map<std::string, TensorProto>& request_inputs,
                            std::vector<std::pair<std::string, Tensor>>& inputs) {
  using gradflow::errors::InvalidArgument;
  using gradflow::errors::Printable;
  for (const auto& [name, value] : request_inputs) {
    if (signature.inputs().count(name) == 0) {
      return InvalidArgument("the signature has no input '", Printable(name), "'");
    }
  }
  for (const auto& [name, info] : signature.inputs()) {
    auto value = request_inputs.find(name);
    if (value == request_inputs.end()) {
      value = signature.defaults().find(name);
      if (value == signature.defaults().end()) {
        return InvalidArgument("input '", Printable(name),
                               "' is missing and has no default; the request has ",
                               Printable(absl::StrJoin(GetMapKeys(request_inputs), ", ")));
      }
    }
    Tensor tensor;
    if (!tensor.FromProto(value->second)) {
      return InvalidArgument("input '", Printable(name), "' is not a valid tensor");
    }
    inputs.emplace_back(info.name(), std::move(tensor));
  }
  return absl::OkStatus();
}

}  // namespace tensorflow::saved_model
