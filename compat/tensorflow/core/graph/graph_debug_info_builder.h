// Stack traces of nodes, and the message GraphDebugInfo that stores them.
#ifndef GRADFLOW_COMPAT_CORE_GRAPH_GRAPH_DEBUG_INFO_BUILDER_H_
#define GRADFLOW_COMPAT_CORE_GRAPH_GRAPH_DEBUG_INFO_BUILDER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "tensorflow/core/framework/graph_debug_info.pb.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/platform/stack_frame.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/platform/statusor.h"

namespace tensorflow {

class AbstractStackTrace {
 public:
  struct TracePrintingOptions {
    // No effect: source lines are not available.
    bool show_line_contents = false;
    // Omits the folders that all files share.
    bool filter_common_prefix = false;
    // Omits frames of TensorFlow's Python code.
    bool drop_internal_frames = false;
  };

  virtual ~AbstractStackTrace() = default;
  // Both return all frames, outermost first.
  virtual absl::Span<const StackFrame> ToFrames() const = 0;
  virtual std::vector<StackFrame> ToUncachedFrames() const = 0;
  // Returns the innermost frame of the user's code.
  virtual StackFrame LastUserFrame() const = 0;
  // Returns the outermost `limit` frames of the user's code, or all of them if `limit` is negative.
  virtual std::vector<StackFrame> GetUserFrames(int limit) const = 0;
  // Returns a line per frame: File "name", line N, in function.
  virtual std::string ToString(const TracePrintingOptions& options) const = 0;
};

// A list of frames.
class FrozenStackTrace : public AbstractStackTrace {
 public:
  // Without `user_frames`, all frames belong to the user.
  explicit FrozenStackTrace(absl::Span<const StackFrame> frames,
                            absl::Span<const StackFrame> user_frames = {});
  explicit FrozenStackTrace(std::vector<StackFrame>&& frames);
  FrozenStackTrace(const GraphDebugInfo::StackTrace& stack_trace, const GraphDebugInfo& debug_info);

  absl::Span<const StackFrame> ToFrames() const override { return frames_; }
  std::vector<StackFrame> ToUncachedFrames() const override { return frames_; }
  // Returns an empty frame if there is no such frame.
  StackFrame LastUserFrame() const override;
  std::vector<StackFrame> GetUserFrames(int limit) const override;
  std::string ToString(const TracePrintingOptions& options) const override;

 private:
  const std::vector<StackFrame>& UserFrames() const {
    return user_frames_.empty() ? frames_ : user_frames_;
  }

  std::vector<StackFrame> frames_;
  // Empty if all frames belong to the user.
  std::vector<StackFrame> user_frames_;
};

// Stack traces by node name.
using StackTracesMap = absl::flat_hash_map<std::string, std::shared_ptr<AbstractStackTrace>>;

// Returns the traces of the message. Omits each trace that does not fit into 256 MiB. Every frame
// counts with its file and function name, even if frames share names.
StackTracesMap LoadTracesFromDebugInfo(const GraphDebugInfo& debug_info);
// Returns the traces of a serialized message. Returns INVALID_ARGUMENT unless the text is a
// serialized GraphDebugInfo.
absl::StatusOr<StackTracesMap> LoadTracesFromDebugInfoStr(absl::string_view debug_info_str);
GraphDebugInfo StackTracesMapToGraphDebugInfo(const StackTracesMap& map, bool user_frames = true);

// Collects stack traces in a message that stores each file, frame and trace once.
class GraphDebugInfoBuilder {
 public:
  struct Options {
    bool user_frames = false;
    // For GetUserFrames.
    int user_frames_limit = -1;
  };

  GraphDebugInfoBuilder() = default;
  GraphDebugInfoBuilder(const GraphDebugInfoBuilder&) = delete;
  GraphDebugInfoBuilder& operator=(const GraphDebugInfoBuilder&) = delete;

  // Adds traces. Appends the suffix, usually "@function", to their names.
  void AccumulateStackTracesMap(const StackTracesMap& stack_traces_map,
                                absl::string_view key_suffix, const Options& options);
  void AccumulateStackTracesMap(const StackTracesMap& map, absl::string_view key_suffix = "") {
    AccumulateStackTracesMap(map, key_suffix, Options());
  }
  void AccumulateStackTrace(const std::shared_ptr<AbstractStackTrace>& trace,
                            absl::string_view traces_key, const Options& options);
  void AccumulateStackTrace(const std::shared_ptr<AbstractStackTrace>& trace,
                            absl::string_view traces_key) {
    AccumulateStackTrace(trace, traces_key, Options());
  }
  // Adds the traces of a message. If `prefix` is not empty, appends "@" and `prefix` to each name,
  // in spite of its name.
  void AppendGraphDebugInfo(absl::string_view prefix, const GraphDebugInfo& new_info);
  absl::Status AppendGraphDebugInfoStr(absl::string_view prefix, absl::string_view new_info_str);

  GraphDebugInfo Build() const { return debug_info_; }
  std::string ToGraphDebugInfoStr() const { return debug_info_.SerializeAsString(); }

 private:
  uint64_t FrameId(const StackFrame& frame);

  GraphDebugInfo debug_info_;
  absl::flat_hash_map<std::string, int> files_;
  absl::flat_hash_map<StackFrame, uint64_t> frames_;
  absl::flat_hash_map<std::vector<StackFrame>, uint64_t> traces_;
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_GRAPH_GRAPH_DEBUG_INFO_BUILDER_H_
