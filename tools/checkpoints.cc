#include "tools/checkpoints.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gradflow/core/status.h"
#include "gradflow/training/saver.h"

namespace gradflow::tools {

absl::StatusOr<Checkpoint> OpenCheckpoint(const std::string& argument) {
  std::error_code error;
  if (std::filesystem::is_directory(argument, error)) {
    GRADFLOW_ASSIGN_OR_RETURN(const std::string prefix, training::LatestCheckpoint(argument));
    return Checkpoint::Open(prefix);
  }
  return Checkpoint::Open(std::string(absl::StripSuffix(argument, ".index")));
}

bool IsVariable(const NodeDef& node, VariableNode* variable) {
  const bool is_resource = node.op() == "VarHandleOp";
  if (!is_resource && node.op() != "Variable" && node.op() != "VariableV2") return false;
  const auto& attrs = node.attr();
  const auto shared_name = attrs.find("shared_name");
  const auto dtype = attrs.find("dtype");
  variable->node = node.name();
  variable->name = shared_name == attrs.end() || shared_name->second.s().empty()
                       ? node.name()
                       : shared_name->second.s();
  variable->dtype = dtype == attrs.end() ? DT_INVALID : dtype->second.type();
  variable->is_resource = is_resource;
  variable->shape = PartialTensorShape();
  if (const auto shape = attrs.find("shape"); shape != attrs.end()) {
    // The import has checked it.
    absl::StatusOr<PartialTensorShape> made = PartialTensorShape::Make(shape->second.shape());
    if (made.ok()) variable->shape = *std::move(made);
  }
  return true;
}

absl::StatusOr<Tensor> ReadVariable(const Checkpoint& checkpoint, const VariableNode& variable) {
  const absl::StatusOr<Checkpoint::Info> info = checkpoint.Find(variable.name);
  if (!info.ok()) {
    return errors::Prefix(absl::StrCat("variable '", variable.node, "': "), info.status());
  }
  if (info->dtype != variable.dtype) {
    return errors::InvalidArgument("variable '", variable.node, "' has type ",
                                   DataTypeString(variable.dtype), ", but in the checkpoint ",
                                   DataTypeString(info->dtype));
  }
  if (!variable.shape.IsCompatibleWith(PartialTensorShape(info->shape))) {
    return errors::InvalidArgument("variable '", variable.node, "' has shape ",
                                   variable.shape.DebugString(), ", but in the checkpoint ",
                                   info->shape.DebugString());
  }
  return checkpoint.Read(variable.name);
}

}  // namespace gradflow::tools
