#include "tensorflow/core/graph/graph_debug_info_builder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace {

// Returns true for code that is not in a file.
bool IsEmbedded(const StackFrame& frame) { return absl::StrContains(frame.file_name, "<embedded"); }

bool IsInternal(const StackFrame& frame) {
  const std::string& file = frame.file_name;
  return absl::StrContains(file, "tensorflow/python") && !absl::StrContains(file, "keras") &&
         !absl::StrContains(file, "test.py");
}

// Returns the length of the folder prefix that all files share, including the last slash.
size_t CommonFolders(const std::vector<StackFrame>& frames) {
  const std::string* first = nullptr;
  size_t length = 0;
  for (const StackFrame& frame : frames) {
    if (IsEmbedded(frame)) continue;
    if (first == nullptr) {
      first = &frame.file_name;
      length = first->size();
    }
    const auto end = first->begin() + static_cast<ptrdiff_t>(length);
    length = static_cast<size_t>(
        std::mismatch(first->begin(), end, frame.file_name.begin(), frame.file_name.end()).first -
        first->begin());
  }
  if (length == 0) return 0;
  const size_t slash = first->rfind('/', length - 1);
  return slash == std::string::npos ? 0 : slash + 1;
}

// Limits the total size of the traces in a message, because a frame of a few bytes may expand to a
// long text.
class TraceBudget {
 public:
  explicit TraceBudget(const GraphDebugInfo& debug_info) : debug_info_(debug_info) {}

  // Returns false if the trace does not fit.
  bool Charge(const GraphDebugInfo::StackTrace& trace) {
    size_t bytes = 0;
    for (const GraphDebugInfo::FileLineCol& frame : trace.file_line_cols()) {
      bytes += BytesOf(frame);
      if (bytes > left_) return false;
    }
    for (const uint64_t id : trace.frame_id()) {
      const auto frame = debug_info_.frames_by_id().find(id);
      if (frame != debug_info_.frames_by_id().end()) bytes += BytesOf(frame->second);
      if (bytes > left_) return false;
    }
    left_ -= bytes;
    return true;
  }

 private:
  size_t BytesOf(const GraphDebugInfo::FileLineCol& frame) const {
    const int file = frame.file_index();
    const size_t file_bytes =
        file >= 0 && file < debug_info_.files_size() ? debug_info_.files(file).size() : 0;
    return sizeof(StackFrame) + file_bytes + frame.func().size();
  }

  const GraphDebugInfo& debug_info_;
  size_t left_ = size_t{1} << 28;
};

}  // namespace

FrozenStackTrace::FrozenStackTrace(absl::Span<const StackFrame> frames,
                                   absl::Span<const StackFrame> user_frames)
    : frames_(frames.begin(), frames.end()), user_frames_(user_frames.begin(), user_frames.end()) {}

FrozenStackTrace::FrozenStackTrace(std::vector<StackFrame>&& frames) : frames_(std::move(frames)) {}

FrozenStackTrace::FrozenStackTrace(const GraphDebugInfo::StackTrace& stack_trace,
                                   const GraphDebugInfo& debug_info) {
  const auto add = [&](const GraphDebugInfo::FileLineCol& frame) {
    const int file = frame.file_index();
    frames_.emplace_back(file >= 0 && file < debug_info.files_size() ? debug_info.files(file)
                                                                     : "<UNKNOWN_FILE_NAME>",
                         frame.line(), frame.func());
  };
  for (const GraphDebugInfo::FileLineCol& frame : stack_trace.file_line_cols()) add(frame);
  for (const uint64_t id : stack_trace.frame_id()) {
    const auto frame = debug_info.frames_by_id().find(id);
    if (frame != debug_info.frames_by_id().end()) add(frame->second);
  }
}

StackFrame FrozenStackTrace::LastUserFrame() const {
  return UserFrames().empty() ? StackFrame() : UserFrames().back();
}

std::vector<StackFrame> FrozenStackTrace::GetUserFrames(int limit) const {
  std::vector<StackFrame> frames = UserFrames();
  if (limit >= 0 && static_cast<size_t>(limit) < frames.size()) {
    frames.resize(static_cast<size_t>(limit));
  }
  return frames;
}

std::string FrozenStackTrace::ToString(const TracePrintingOptions& options) const {
  const size_t prefix = options.filter_common_prefix ? CommonFolders(frames_) : 0;
  std::string text;
  for (const StackFrame& frame : frames_) {
    if (options.drop_internal_frames && IsInternal(frame)) continue;
    absl::string_view file = frame.file_name;
    if (!IsEmbedded(frame)) file.remove_prefix(prefix);
    absl::StrAppend(&text, text.empty() ? "" : "\n", "File \"", file, "\", line ",
                    frame.line_number, ", in ", frame.function_name);
  }
  return text;
}

uint64_t GraphDebugInfoBuilder::FrameId(const StackFrame& frame) {
  const auto [it, is_new] = frames_.try_emplace(frame, frames_.size());
  if (!is_new) return it->second;
  const auto [file, is_new_file] =
      files_.try_emplace(frame.file_name, static_cast<int>(files_.size()));
  if (is_new_file) debug_info_.add_files(frame.file_name);
  GraphDebugInfo::FileLineCol& stored = (*debug_info_.mutable_frames_by_id())[it->second];
  stored.set_file_index(file->second);
  stored.set_line(frame.line_number);
  stored.set_func(frame.function_name);
  return it->second;
}

void GraphDebugInfoBuilder::AccumulateStackTrace(const std::shared_ptr<AbstractStackTrace>& trace,
                                                 absl::string_view traces_key,
                                                 const Options& options) {
  std::vector<StackFrame> frames = options.user_frames
                                       ? trace->GetUserFrames(options.user_frames_limit)
                                       : trace->ToUncachedFrames();
  const auto [it, is_new] = traces_.try_emplace(std::move(frames), traces_.size());
  if (is_new) {
    GraphDebugInfo::StackTrace& stored = (*debug_info_.mutable_traces_by_id())[it->second];
    for (const StackFrame& frame : it->first) stored.add_frame_id(FrameId(frame));
  }
  (*debug_info_.mutable_name_to_trace_id())[std::string(traces_key)] = it->second;
}

void GraphDebugInfoBuilder::AccumulateStackTracesMap(const StackTracesMap& stack_traces_map,
                                                     absl::string_view key_suffix,
                                                     const Options& options) {
  for (const auto& [name, trace] : stack_traces_map) {
    if (trace != nullptr) AccumulateStackTrace(trace, absl::StrCat(name, key_suffix), options);
  }
}

void GraphDebugInfoBuilder::AppendGraphDebugInfo(absl::string_view prefix,
                                                 const GraphDebugInfo& new_info) {
  AccumulateStackTracesMap(LoadTracesFromDebugInfo(new_info),
                           prefix.empty() ? "" : absl::StrCat("@", prefix));
}

absl::Status GraphDebugInfoBuilder::AppendGraphDebugInfoStr(absl::string_view prefix,
                                                            absl::string_view new_info_str) {
  GraphDebugInfo info;
  if (!info.ParseFromString(std::string(new_info_str))) {
    return errors::InvalidArgument("Failed to parse GraphDebugInfo proto.");
  }
  AppendGraphDebugInfo(prefix, info);
  return absl::OkStatus();
}

StackTracesMap LoadTracesFromDebugInfo(const GraphDebugInfo& debug_info) {
  StackTracesMap traces;
  TraceBudget budget(debug_info);
  // Traces that have several names are shared.
  absl::flat_hash_map<uint64_t, std::shared_ptr<AbstractStackTrace>> by_id;
  for (const auto& [name, id] : debug_info.name_to_trace_id()) {
    const auto stored = debug_info.traces_by_id().find(id);
    if (stored == debug_info.traces_by_id().end()) continue;
    const auto [trace, is_new] = by_id.try_emplace(id);
    if (is_new && budget.Charge(stored->second)) {
      trace->second = std::make_shared<FrozenStackTrace>(stored->second, debug_info);
    }
    if (trace->second != nullptr) traces[name] = trace->second;
  }
  for (const auto& [name, trace] : debug_info.traces()) {
    if (budget.Charge(trace)) traces[name] = std::make_shared<FrozenStackTrace>(trace, debug_info);
  }
  return traces;
}

absl::StatusOr<StackTracesMap> LoadTracesFromDebugInfoStr(absl::string_view debug_info_str) {
  GraphDebugInfo info;
  if (!info.ParseFromString(std::string(debug_info_str))) {
    return errors::InvalidArgument("Failed to parse GraphDebugInfo proto.");
  }
  return LoadTracesFromDebugInfo(info);
}

GraphDebugInfo StackTracesMapToGraphDebugInfo(const StackTracesMap& map, bool user_frames) {
  GraphDebugInfoBuilder builder;
  GraphDebugInfoBuilder::Options options;
  options.user_frames = user_frames;
  builder.AccumulateStackTracesMap(map, "", options);
  return builder.Build();
}

}  // namespace tensorflow
