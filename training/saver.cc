#include "gradflow/training/saver.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/const_op.h"
#include "gradflow/io/file.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/ops/io_ops.h"
#include "gradflow/ops/no_op.h"
#include "gradflow/ops/state_ops.h"
#include "gradflow/training/variables.h"

namespace gradflow {
namespace training {
namespace {

namespace fs = std::filesystem;

Output Texts(const Scope& scope, const std::vector<std::string>& texts) {
  Tensor tensor(DT_STRING, {static_cast<int64_t>(texts.size())});
  for (size_t i = 0; i < texts.size(); ++i) tensor.flat<tstring>()(i) = texts[i];
  return ops::Const(scope, Input::Initializer(tensor));
}

std::string StateFile(const fs::path& folder) { return (folder / "checkpoint").string(); }

// Returns the text of the file that names the checkpoints, relative to its folder.
std::string StateText(const std::vector<std::string>& checkpoints) {
  const auto quoted = [](const std::string& prefix) {
    return absl::StrCat("\"", absl::CEscape(fs::path(prefix).filename().string()), "\"\n");
  };
  std::string text = absl::StrCat("model_checkpoint_path: ", quoted(checkpoints.back()));
  for (const std::string& prefix : checkpoints) {
    absl::StrAppend(&text, "all_model_checkpoint_paths: ", quoted(prefix));
  }
  return text;
}

// Removes the files of a checkpoint. What cannot be removed remains.
void Remove(const std::string& prefix) {
  std::error_code error;
  fs::remove(prefix + ".index", error);
  fs::remove(prefix + ".data-00000-of-00001", error);
}

}  // namespace

Saver::Saver(const Scope& scope, const std::vector<Output>& variables, const SaverOptions& options)
    : options_(options) {
  const Scope s = scope.NewSubScope("save");
  prefix_ = ops::Placeholder(s.WithOpName("prefix"), DT_STRING);
  std::vector<std::string> names;
  std::set<std::string> unique;
  std::vector<Output> values;
  DataTypeVector types;
  std::vector<PartialTensorShape> shapes;
  std::vector<bool> is_resource;
  for (const Output& variable : variables) {
    const absl::StatusOr<VariableInfo> info = InfoOf(variable);
    if (info.ok() && !unique.insert(info->name).second) {
      s.UpdateStatus(errors::InvalidArgument("variable '", info->name, "' is given twice"));
    }
    if (!info.ok()) s.UpdateStatus(info.status());
    if (!s.ok()) return;
    names.push_back(info->name);
    types.push_back(info->dtype);
    shapes.push_back(info->shape);
    is_resource.push_back(info->is_resource);
    values.push_back(ReadVariable(s, variable));
  }
  if (names.empty()) {
    s.UpdateStatus(errors::InvalidArgument("a saver needs a variable"));
    return;
  }
  const Output name_list = Texts(s, names);
  const Output slices = Texts(s, std::vector<std::string>(names.size()));
  save_ = ops::SaveV2(s, prefix_, name_list, slices, values).operation;
  const auto restored = ops::RestoreV2(s, prefix_, name_list, slices, types);
  if (!s.ok()) return;
  // No variable is assigned before all values have the right shapes.
  std::vector<Output> checked;
  std::vector<Operation> checks;
  for (size_t i = 0; i < variables.size(); ++i) {
    checked.push_back(ops::EnsureShape(s, restored[static_cast<int>(i)], shapes[i]));
    checks.emplace_back(checked.back().op());
  }
  const Operation all_checked = ops::NoOp(s.WithControlDependencies(checks)).operation;
  const Scope assign = s.WithControlDependencies(std::vector<Operation>{all_checked});
  std::vector<Operation> assignments;
  for (size_t i = 0; i < variables.size(); ++i) {
    // The old value of a variable may have any shape.
    assignments.push_back(is_resource[i] ? AssignVariable(assign, variables[i], checked[i])
                                         : ops::Assign(assign, variables[i], checked[i],
                                                       ops::Assign::ValidateShape(false))
                                               .operation);
  }
  restore_ = ops::NoOp(s.WithControlDependencies(assignments)).operation;
}

absl::Status Saver::Save(const ClientSession& session, const std::string& prefix, int64_t step) {
  const std::string path = absl::StrCat(prefix, "-", step);
  GRADFLOW_RETURN_IF_ERROR(session.Run({{prefix_, path}}, {}, {save_}, nullptr));
  std::vector<std::string> kept = checkpoints_;
  kept.erase(std::remove(kept.begin(), kept.end(), path), kept.end());
  kept.push_back(path);
  std::vector<std::string> removed;
  while (options_.max_to_keep > 0 && kept.size() > static_cast<size_t>(options_.max_to_keep)) {
    removed.push_back(kept.front());
    kept.erase(kept.begin());
  }
  const std::string file = StateFile(fs::path(prefix).parent_path());
  const absl::Status status = internal::WriteFile(file, {StateText(kept)});
  if (!status.ok()) return errors::Prefix(absl::StrCat("'", file, "': "), status);
  checkpoints_ = std::move(kept);
  for (const std::string& old : removed) Remove(old);
  return absl::OkStatus();
}

absl::Status Saver::Restore(const ClientSession& session, const std::string& prefix) const {
  return session.Run({{prefix_, prefix}}, {}, {restore_}, nullptr);
}

absl::StatusOr<std::string> LatestCheckpoint(const std::string& folder) {
  const std::string path = StateFile(folder);
  const auto read = [&]() -> absl::StatusOr<std::string> {
    // The file has a few names.
    constexpr size_t kMaxBytes = 1 << 20;
    size_t size = 0;
    GRADFLOW_ASSIGN_OR_RETURN(const internal::FileDescriptor file, internal::OpenFile(path, &size));
    if (size > kMaxBytes) return errors::ResourceExhausted("the file has ", size, " bytes");
    std::string text(size, '\0');
    GRADFLOW_RETURN_IF_ERROR(internal::ReadAt(file.get(), 0, text.data(), size));
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      if (!absl::ConsumePrefix(&line, "model_checkpoint_path: \"") ||
          !absl::ConsumeSuffix(&line, "\"")) {
        continue;
      }
      std::string prefix;
      if (!absl::CUnescape(line, &prefix)) break;
      return fs::path(prefix).is_absolute() ? prefix : (fs::path(folder) / prefix).string();
    }
    return errors::InvalidArgument("the file names no checkpoint");
  };
  absl::StatusOr<std::string> prefix = read();
  if (!prefix.ok()) return errors::Prefix(absl::StrCat("'", path, "': "), prefix.status());
  return prefix;
}

}  // namespace training
}  // namespace gradflow
