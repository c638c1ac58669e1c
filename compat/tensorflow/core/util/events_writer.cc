#include "tensorflow/core/util/events_writer.h"

#include <unistd.h>

#include <utility>

#include "gradflow/proto/event.pb.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {

absl::Status EventsWriter::Init() {
  if (writer_.has_value() && access(writer_->path().c_str(), F_OK) == 0) return absl::OkStatus();
  absl::StatusOr<gradflow::EventWriter> writer = gradflow::EventWriter::OpenFile(prefix_, suffix_);
  if (!writer.ok()) return writer.status();
  writer_.emplace(*std::move(writer));
  return absl::OkStatus();
}

absl::Status EventsWriter::InitWithSuffix(const std::string& suffix) {
  suffix_ = suffix;
  return Init();
}

std::string EventsWriter::FileName() {
  if (const absl::Status status = Init(); !status.ok()) {
    LOG(ERROR) << status;
    return "";
  }
  return writer_->path();
}

void EventsWriter::WriteEvent(const Event& event) {
  absl::Status status = Init();
  if (status.ok()) status = writer_->Add(event);
  if (status.ok()) return;
  LOG(ERROR) << status;
  status_.Update(status);
}

void EventsWriter::WriteSerializedEvent(absl::string_view event) {
  Event parsed;
  if (parsed.ParseFromString(std::string(event))) return WriteEvent(parsed);
  const absl::Status status =
      errors::InvalidArgument("expected a serialized Event, found ", event.size(), " other bytes");
  LOG(ERROR) << status;
  status_.Update(status);
}

absl::Status EventsWriter::Flush() {
  absl::Status status = std::exchange(status_, absl::OkStatus());
  if (writer_.has_value()) status.Update(writer_->Sync());
  return status;
}

absl::Status EventsWriter::Close() {
  const absl::Status status = Flush();
  writer_.reset();
  return status;
}

}  // namespace tensorflow
