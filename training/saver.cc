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
#include "gradflow/io/checkpoint_files.h"
#include "gradflow/io/file.h"
#include "gradflow/io/file_pattern.h"
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

// Returns the text of the file that names the checkpoints. Names are relative to the folder.
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

// The names of checkpoints in a state file.
struct State {
  std::string latest;
  std::vector<std::string> all;
};

absl::StatusOr<State> ReadState(const std::string& folder) {
  const std::string path = StateFile(folder);
  const auto read = [&]() -> absl::StatusOr<State> {
    // The file only holds a few names.
    constexpr size_t kMaxBytes = 1 << 20;
    size_t size = 0;
    GRADFLOW_ASSIGN_OR_RETURN(const internal::FileDescriptor file, internal::OpenFile(path, &size));
    if (size > kMaxBytes) return errors::ResourceExhausted("the file has ", size, " bytes");
    std::string text(size, '\0');
    GRADFLOW_RETURN_IF_ERROR(internal::ReadAt(file.get(), 0, text.data(), size));
    State state;
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      const bool is_latest = absl::ConsumePrefix(&line, "model_checkpoint_path: \"");
      if ((!is_latest && !absl::ConsumePrefix(&line, "all_model_checkpoint_paths: \"")) ||
          !absl::ConsumeSuffix(&line, "\"")) {
        continue;
      }
      std::string prefix;
      if (!absl::CUnescape(line, &prefix) || prefix.empty()) continue;
      if (!is_latest) {
        state.all.push_back(prefix);
      } else if (state.latest.empty()) {
        state.latest = prefix;
      }
    }
    if (!state.latest.empty()) return state;
    return errors::InvalidArgument("the file names no checkpoint");
  };
  absl::StatusOr<State> state = read();
  if (!state.ok()) return errors::Prefix(absl::StrCat("'", path, "': "), state.status());
  return state;
}

// Returns the checkpoints in `folder` that its state file names and that exist, oldest first,
// without repetitions. Skips names that lead out of the folder, because the oldest checkpoints will
// be removed.
std::vector<std::string> Existing(const std::string& folder) {
  std::vector<std::string> prefixes;
  const absl::StatusOr<State> state = ReadState(folder);
  if (!state.ok()) return prefixes;
  std::vector<std::string> names = state->all;
  if (std::find(names.begin(), names.end(), state->latest) == names.end()) {
    names.push_back(state->latest);
  }
  for (const fs::path name : names) {
    std::error_code error;
    // In absolute folders, TensorFlow names checkpoints by absolute paths.
    const fs::path here = folder.empty() ? fs::path(".") : fs::path(folder);
    const bool is_here = name == name.filename() ||
                         (name.is_absolute() && fs::equivalent(name.parent_path(), here, error));
    const std::string prefix = (fs::path(folder) / name.filename()).string();
    if (is_here && fs::is_regular_file(internal::IndexFile(prefix), error) &&
        std::find(prefixes.begin(), prefixes.end(), prefix) == prefixes.end()) {
      prefixes.push_back(prefix);
    }
  }
  return prefixes;
}

// Waits until the files of a checkpoint and their directory entries are on the disk.
absl::Status Sync(const std::string& prefix) {
  for (const std::string& file : {internal::DataFile(prefix, 0, 1), internal::IndexFile(prefix)}) {
    const absl::Status status = internal::SyncFile(file);
    if (!status.ok()) return errors::Prefix(absl::StrCat("'", file, "': "), status);
  }
  const std::string folder = fs::path(prefix).parent_path().string();
  return errors::Prefix(absl::StrCat("'", folder, "': "), internal::SyncFolder(folder));
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
  for (const std::string& name : options_.counters) {
    if (!unique.insert(name).second) {
      s.UpdateStatus(errors::InvalidArgument("counter '", name, "' is given twice"));
      return;
    }
    counters_.push_back(
        ops::Placeholder(s.WithOpName("counter"), DT_INT64, ops::Placeholder::Shape({})));
    names.push_back(name);
    types.push_back(DT_INT64);
    values.push_back(counters_.back());
  }
  const Output name_list = Texts(s, names);
  const Output slices = Texts(s, std::vector<std::string>(names.size()));
  save_ = ops::SaveV2(s, prefix_, name_list, slices, values).operation;
  const auto restored = ops::RestoreV2(s, prefix_, name_list, slices, types);
  if (!s.ok()) return;
  // Assigns variables only after all values have been checked to have the right shapes.
  std::vector<Output> checked;
  std::vector<Operation> checks;
  for (size_t i = 0; i < names.size(); ++i) {
    const PartialTensorShape shape = i < variables.size() ? shapes[i] : TensorShape();
    checked.push_back(ops::EnsureShape(s, restored[static_cast<int>(i)], shape));
    checks.emplace_back(checked.back().op());
    if (i >= variables.size()) restored_counters_.push_back(checked.back());
  }
  const Operation all_checked = ops::NoOp(s.WithControlDependencies(checks)).operation;
  const Scope assign = s.WithControlDependencies(std::vector<Operation>{all_checked});
  std::vector<Operation> assignments;
  for (size_t i = 0; i < variables.size(); ++i) {
    // The old value of the variable may have any shape.
    assignments.push_back(is_resource[i] ? AssignVariable(assign, variables[i], checked[i])
                                         : ops::Assign(assign, variables[i], checked[i],
                                                       ops::Assign::ValidateShape(false))
                                               .operation);
  }
  restore_ = ops::NoOp(s.WithControlDependencies(assignments)).operation;
}

absl::Status Saver::Save(const ClientSession& session, const std::string& prefix, int64_t step,
                         const std::vector<int64_t>& counters) {
  if (counters.size() != options_.counters.size()) {
    return errors::InvalidArgument("expected ", options_.counters.size(), " counters, found ",
                                   counters.size());
  }
  const std::string folder = fs::path(prefix).parent_path().string();
  const auto at_folder = [&](const absl::Status& status) {
    return errors::Prefix(absl::StrCat("'", folder, "': "), status);
  };
  GRADFLOW_RETURN_IF_ERROR(at_folder(internal::MakeFolders(prefix)));
  // The lock keeps other savers from choosing a name or changing the list of checkpoints.
  const absl::StatusOr<internal::FileDescriptor> lock = internal::LockFolder(folder);
  if (!lock.ok()) return at_folder(lock.status());
  internal::RemoveStaleFiles(folder);
  std::vector<std::string> kept = Existing(folder);
  const std::string name = absl::StrCat(prefix, "-", step);
  std::string path = name;
  const auto is_kept = [&] {
    return std::any_of(kept.begin(), kept.end(), [&](const std::string& other) {
      return fs::path(other).filename() == fs::path(path).filename();
    });
  };
  for (int i = 1; is_kept(); ++i) path = absl::StrCat(name, "-", i);
  ClientSession::FeedType feeds = {{prefix_, path}};
  for (size_t i = 0; i < counters.size(); ++i) feeds.emplace(counters_[i], counters[i]);
  GRADFLOW_RETURN_IF_ERROR(session.Run(feeds, {}, {save_}, nullptr));
  GRADFLOW_RETURN_IF_ERROR(Sync(path));
  kept.push_back(path);
  std::vector<std::string> removed;
  while (options_.max_to_keep > 0 && kept.size() > static_cast<size_t>(options_.max_to_keep)) {
    removed.push_back(kept.front());
    kept.erase(kept.begin());
  }
  const std::string file = StateFile(folder);
  absl::Status status = internal::WriteFile(file, {StateText(kept)}, /*sync=*/true);
  if (status.ok()) status = internal::SyncFolder(folder);
  if (!status.ok()) return errors::Prefix(absl::StrCat("'", file, "': "), status);
  checkpoints_ = std::move(kept);
  for (const std::string& old : removed) internal::RemoveCheckpoint(old);
  return absl::OkStatus();
}

absl::Status Saver::Restore(const ClientSession& session, const std::string& prefix,
                            std::vector<int64_t>* counters) const {
  std::vector<Tensor> values;
  GRADFLOW_RETURN_IF_ERROR(
      session.Run({{prefix_, prefix}}, restored_counters_, {restore_}, &values));
  if (counters == nullptr) return absl::OkStatus();
  counters->clear();
  for (const Tensor& value : values) counters->push_back(value.scalar<int64_t>()());
  return absl::OkStatus();
}

absl::StatusOr<std::string> LatestCheckpoint(const std::string& folder) {
  GRADFLOW_ASSIGN_OR_RETURN(const State state, ReadState(folder));
  const fs::path prefix = state.latest;
  return prefix.is_absolute() ? prefix.string() : (fs::path(folder) / prefix).string();
}

}  // namespace training
}  // namespace gradflow
