// Event files, which TensorBoard shows: summaries of steps, and graphs.
//
//   GRADFLOW_ASSIGN_OR_RETURN(EventWriter writer, EventWriter::Open("logs/run1"));
//   GRADFLOW_RETURN_IF_ERROR(writer.AddScalar("loss", step, loss));
//   GRADFLOW_RETURN_IF_ERROR(writer.AddSummary(step, outputs[0].scalar<tstring>()()));
//
// A file is a sequence of records: the length of a serialized Event in 8 bytes, a masked CRC-32C of
// the length, the event, and a masked CRC-32C of the event. The first event holds the version of
// the format.
#ifndef GRADFLOW_IO_EVENTS_H_
#define GRADFLOW_IO_EVENTS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

#pragma GCC visibility push(default)
namespace gradflow {

class Event;

// Thread safety: not thread-safe. A moved-from writer has an empty path, and adding to it returns
// FAILED_PRECONDITION.
class EventWriter {
 public:
  // Makes the folder if it does not exist, and a new file in the folder,
  // "events.out.tfevents.<time>.<host>.<process>.<number>".
  static absl::StatusOr<EventWriter> Open(const std::string& folder);
  // Makes the file "<prefix>.out.tfevents.<time>.<host>.<process>.<number><suffix>".
  static absl::StatusOr<EventWriter> OpenFile(const std::string& prefix, const std::string& suffix);
  EventWriter(EventWriter&&) noexcept;
  EventWriter& operator=(EventWriter&&) noexcept;
  ~EventWriter();

  // Appends an event. Sets its time if it is not set. If writing fails, the file ends with the
  // previous event. If the process is killed during the call, the file may end with an incomplete
  // event, which readers ignore.
  absl::Status Add(Event event);
  // Append a serialized summary, such as the result of ScalarSummary, or a number.
  absl::Status AddSummary(int64_t step, absl::string_view serialized_summary);
  absl::Status AddScalar(absl::string_view tag, int64_t step, float value);
  // Waits until the file is on the disk.
  absl::Status Sync();

  // The name of the file.
  const std::string& path() const;

 private:
  struct Impl;
  explicit EventWriter(std::unique_ptr<Impl> impl);
  absl::Status CheckOpen() const;

  std::unique_ptr<Impl> impl_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_IO_EVENTS_H_
