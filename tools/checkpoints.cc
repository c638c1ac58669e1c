#include "tools/checkpoints.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gradflow/core/status.h"
#include "gradflow/training/saver.h"

namespace gradflow::tools {

absl::StatusOr<Checkpoint> OpenCheckpoint(const std::string& argument,
                                          const std::shared_ptr<Allocator>& allocator) {
  std::error_code error;
  if (std::filesystem::is_directory(argument, error)) {
    GRADFLOW_ASSIGN_OR_RETURN(const std::string prefix, training::LatestCheckpoint(argument));
    return Checkpoint::Open(prefix, allocator);
  }
  return Checkpoint::Open(std::string(absl::StripSuffix(argument, ".index")), allocator);
}

bool IsVariable(const NodeDef& node, VariableNode* variable) {
  absl::StatusOr<training::VariableInfo> info = training::InfoOf(node);
  if (!info.ok()) return false;
  *variable = {node.name(), *std::move(info)};
  return true;
}

absl::StatusOr<Tensor> ReadVariable(const Checkpoint& checkpoint, const VariableNode& variable,
                                    const std::shared_ptr<Allocator>& allocator) {
  const absl::StatusOr<Checkpoint::Info> info = checkpoint.Find(variable.info.name);
  if (!info.ok()) {
    return errors::Prefix(absl::StrCat("variable '", variable.node, "': "), info.status());
  }
  if (info->dtype != variable.info.dtype) {
    return errors::InvalidArgument("variable '", variable.node, "' has type ",
                                   DataTypeString(variable.info.dtype), ", but in the checkpoint ",
                                   DataTypeString(info->dtype));
  }
  if (!variable.info.shape.IsCompatibleWith(PartialTensorShape(info->shape))) {
    return errors::InvalidArgument("variable '", variable.node, "' has shape ",
                                   variable.info.shape.DebugString(), ", but in the checkpoint ",
                                   info->shape.DebugString());
  }
  return checkpoint.Read(variable.info.name, {}, allocator);
}

}  // namespace gradflow::tools
