// Event files, which TensorBoard shows: summaries of steps, and graphs.
//
//   GRADFLOW_ASSIGN_OR_RETURN(EventWriter writer, EventWriter::Open("logs/run1"));
//   GRADFLOW_RETURN_IF_ERROR(writer.AddScalar("loss", step, loss));
//   GRADFLOW_RETURN_IF_ERROR(writer.AddSummary(step, outputs[0].scalar<tstring>()()));
//
// A file is a row of records: the length of a serialized Event in 8 bytes, a masked CRC-32C of the
// length, the event, and a masked CRC-32C of the event. The first event has the version of the
// file.
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

// Thread safety: none. A writer that has been moved from has an empty path, and adding to it is
// FAILED_PRECONDITION.
class EventWriter {
 public:
  // Makes the folder if there is none, and a new file in it,
  // "events.out.tfevents.<time>.<host>.<process>.<number>".
  static absl::StatusOr<EventWriter> Open(const std::string& folder);
  // Makes the file "<prefix>.out.tfevents.<time>.<host>.<process>.<number><suffix>".
  static absl::StatusOr<EventWriter> OpenFile(const std::string& prefix, const std::string& suffix);
  EventWriter(EventWriter&&) noexcept;
  EventWriter& operator=(EventWriter&&) noexcept;
  ~EventWriter();

  // Appends an event. Sets its time unless it has one. If writing fails, the file ends with the
  // event before it. If the process is killed meanwhile, the file may end with a part of an event,
  // which readers leave out.
  absl::Status Add(Event event);
  // Appends a summary, as ScalarSummary and the like return it, or a number.
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
