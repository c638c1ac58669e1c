// EventsWriter: writes event files for TensorBoard. gradflow/io/events.h writes them with a status
// for each event.
#ifndef GRADFLOW_COMPAT_CORE_UTIL_EVENTS_WRITER_H_
#define GRADFLOW_COMPAT_CORE_UTIL_EVENTS_WRITER_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "gradflow/io/events.h"
#include "tensorflow/core/platform/status.h"
#include "tensorflow/core/util/event.pb.h"

namespace tensorflow {

// Thread safety: none.
class EventsWriter {
 public:
  // The prefix of the version string in the first event of a file, and the version number.
  static constexpr const char* kVersionPrefix = "brain.Event:";
  static constexpr int kCurrentVersion = 2;

  // The file is "<prefix>.out.tfevents.<time>.<host>.<process>.<number><suffix>".
  explicit EventsWriter(const std::string& file_prefix) : prefix_(file_prefix) {}
  EventsWriter(const EventsWriter&) = delete;
  EventsWriter& operator=(const EventsWriter&) = delete;

  // Open a new file unless one is open. Replaces a file that was deleted. The functions below also
  // open a file.
  absl::Status Init();
  absl::Status InitWithSuffix(const std::string& suffix);
  // Returns the name of the file; "" if it cannot be opened.
  std::string FileName();
  // Write immediately. Errors are logged, and returned by the next Flush() or Close().
  void WriteEvent(const Event& event);
  void WriteSerializedEvent(absl::string_view event);
  // Waits until the events are on the disk.
  absl::Status Flush();
  absl::Status Close();

 private:
  const std::string prefix_;
  std::string suffix_;
  std::optional<gradflow::EventWriter> writer_;
  // The first error from writing an event.
  absl::Status status_;
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_UTIL_EVENTS_WRITER_H_
