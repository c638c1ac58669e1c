#include "gradflow/io/events.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gradflow/core/status.h"
#include "gradflow/io/coding.h"
#include "gradflow/io/crc32c.h"
#include "gradflow/io/file.h"
#include "gradflow/io/file_pattern.h"
#include "gradflow/proto/event.pb.h"

namespace gradflow {
namespace {

double SecondsNow() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string HostName() {
  char name[256] = "";
  if (gethostname(name, sizeof(name) - 1) != 0) return "unknown";
  return name;
}

}  // namespace

struct EventWriter::Impl {
  std::string path;
  internal::FileDescriptor file;
};

EventWriter::EventWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
EventWriter::EventWriter(EventWriter&&) noexcept = default;
EventWriter& EventWriter::operator=(EventWriter&&) noexcept = default;
EventWriter::~EventWriter() = default;

absl::StatusOr<EventWriter> EventWriter::Open(const std::string& folder) {
  return OpenFile(absl::StrCat(folder, "/events"), "");
}

absl::StatusOr<EventWriter> EventWriter::OpenFile(const std::string& prefix,
                                                  const std::string& suffix) {
  const std::string folder = prefix.substr(0, prefix.find_last_of('/'));
  GRADFLOW_RETURN_IF_ERROR(
      errors::Prefix(absl::StrCat("'", folder, "': "), internal::MakeFolders(prefix)));
  static std::atomic<int> counter{0};
  auto impl = std::make_unique<Impl>();
  // Never continues another writer's file.
  for (int attempt = 0; attempt < 1000 && impl->file.get() < 0; ++attempt) {
    impl->path = absl::StrCat(prefix, ".out.tfevents.",
                              absl::StrFormat("%010d", static_cast<int64_t>(SecondsNow())), ".",
                              HostName(), ".", getpid(), ".", counter.fetch_add(1), suffix);
    impl->file = internal::FileDescriptor(
        open(impl->path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
    if (impl->file.get() < 0 && errno != EEXIST) break;
  }
  if (impl->file.get() < 0) {
    const int reason = errno;
    return absl::ErrnoToStatus(reason, absl::StrCat("'", impl->path, "': cannot write"));
  }
  EventWriter writer(std::move(impl));
  Event version;
  version.set_file_version("brain.Event:2");
  GRADFLOW_RETURN_IF_ERROR(writer.Add(std::move(version)));
  return writer;
}

absl::Status EventWriter::CheckOpen() const {
  if (impl_ != nullptr) return absl::OkStatus();
  return errors::FailedPrecondition("the event writer has been moved from");
}

absl::Status EventWriter::Add(Event event) {
  GRADFLOW_RETURN_IF_ERROR(CheckOpen());
  if (event.wall_time() == 0) event.set_wall_time(SecondsNow());
  std::string bytes;
  if (!event.SerializeToString(&bytes)) {
    return errors::InvalidArgument("an event of ", event.ByteSizeLong(),
                                   " bytes cannot be serialized");
  }
  std::string record;
  record.reserve(bytes.size() + 16);
  internal::AppendFixed(bytes.size(), 8, &record);
  internal::AppendFixed(internal::MaskCrc(internal::ExtendCrc32c(0, record)), 4, &record);
  record += bytes;
  internal::AppendFixed(internal::MaskCrc(internal::ExtendCrc32c(0, bytes)), 4, &record);
  const int file = impl_->file.get();
  const off_t end = lseek(file, 0, SEEK_END);
  const absl::Status status = internal::WriteAll(file, {record});
  // Records after an incomplete record could not be read.
  if (!status.ok() && end >= 0 && ftruncate(file, end) != 0) {
    return errors::Prefix(absl::StrCat("'", impl_->path, "', which ends in a part of an event: "),
                          status);
  }
  return errors::Prefix(absl::StrCat("'", impl_->path, "': "), status);
}

absl::Status EventWriter::AddSummary(int64_t step, absl::string_view serialized_summary) {
  Event event;
  event.set_step(step);
  // Protocol Buffers counts bytes with an int.
  if (serialized_summary.size() > static_cast<size_t>(std::numeric_limits<int>::max()) ||
      !event.mutable_summary()->ParseFromArray(serialized_summary.data(),
                                               static_cast<int>(serialized_summary.size()))) {
    return errors::InvalidArgument("expected a serialized Summary, found ",
                                   serialized_summary.size(), " other bytes");
  }
  return Add(std::move(event));
}

absl::Status EventWriter::AddScalar(absl::string_view tag, int64_t step, float value) {
  Event event;
  event.set_step(step);
  Summary::Value* const added = event.mutable_summary()->add_value();
  added->set_tag(std::string(tag));
  added->set_simple_value(value);
  return Add(std::move(event));
}

absl::Status EventWriter::Sync() {
  GRADFLOW_RETURN_IF_ERROR(CheckOpen());
  return errors::Prefix(absl::StrCat("'", impl_->path, "': "), internal::SyncFile(impl_->path));
}

const std::string& EventWriter::path() const {
  static const auto* const none = new std::string;
  return impl_ == nullptr ? *none : impl_->path;
}

}  // namespace gradflow
