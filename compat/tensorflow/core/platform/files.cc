// Files of Env.
#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/platform/env.h"

namespace tensorflow {
namespace {

namespace fs = std::filesystem;

absl::Status ErrnoError(const std::string& path, int error) {
  return absl::ErrnoToStatus(error, absl::StrCat("'", path, "'"));
}

// An open file. Retries calls that a signal interrupts.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : path_(path) {
    do {
      fd_ = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
    } while (fd_ < 0 && errno == EINTR);
    if (fd_ < 0) open_status_ = ErrnoError(path, errno);
  }
  ~Descriptor() { Close().IgnoreError(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  const absl::Status& open_status() const { return open_status_; }
  const std::string& path() const { return path_; }
  int fd() const { return fd_; }
  absl::Status Error() const { return ErrnoError(path_, errno); }
  absl::Status Close() {
    if (fd_ < 0) return absl::OkStatus();
    const int result = ::close(std::exchange(fd_, -1));
    return result == 0 ? absl::OkStatus() : Error();
  }

 private:
  const std::string path_;
  int fd_;
  absl::Status open_status_;
};

class LocalRandomAccessFile final : public RandomAccessFile {
 public:
  using RandomAccessFile::Read;
  explicit LocalRandomAccessFile(const std::string& path) : file_(path, O_RDONLY) {}
  const absl::Status& open_status() const { return file_.open_status(); }

  absl::Status Read(uint64 offset, size_t n, absl::string_view* result,
                    char* scratch) const override {
    size_t done = 0;
    while (done < n) {
      const ssize_t count =
          ::pread(file_.fd(), scratch + done, n - done, static_cast<off_t>(offset + done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        *result = absl::string_view(scratch, done);
        return file_.Error();
      }
      if (count == 0) break;
      done += static_cast<size_t>(count);
    }
    *result = absl::string_view(scratch, done);
    if (done == n) return absl::OkStatus();
    return errors::OutOfRange("'", file_.path(), "': the file has ", done, " bytes from offset ",
                              offset, ", expected ", n);
  }
  absl::Status Name(absl::string_view* result) const override {
    return *result = file_.path(), absl::OkStatus();
  }

 private:
  const Descriptor file_;
};

// A file that buffers small writes.
class LocalWritableFile final : public WritableFile {
 public:
  LocalWritableFile(const std::string& path, int flags) : file_(path, O_WRONLY | O_CREAT | flags) {
    if (file_.fd() < 0) return;
    const off_t end = ::lseek(file_.fd(), 0, SEEK_END);
    position_ = end < 0 ? 0 : end;
  }
  ~LocalWritableFile() override { Close().IgnoreError(); }
  const absl::Status& open_status() const { return file_.open_status(); }

  absl::Status Append(absl::string_view data) override {
    if (file_.fd() < 0) return errors::FailedPrecondition("'", file_.path(), "': is closed");
    buffer_.append(data.data(), data.size());
    position_ += static_cast<int64>(data.size());
    return buffer_.size() < kBufferBytes ? absl::OkStatus() : Flush();
  }
  absl::Status Flush() override {
    size_t done = 0;
    while (done < buffer_.size()) {
      const ssize_t count = ::write(file_.fd(), buffer_.data() + done, buffer_.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        const absl::Status status = file_.Error();
        buffer_.erase(0, done);
        return status;
      }
      done += static_cast<size_t>(count);
    }
    buffer_.clear();
    return absl::OkStatus();
  }
  absl::Status Sync() override {
    TF_RETURN_IF_ERROR(Flush());
    return ::fsync(file_.fd()) == 0 ? absl::OkStatus() : file_.Error();
  }
  absl::Status Close() override {
    absl::Status status = Flush();
    buffer_.clear();
    status.Update(file_.Close());
    return status;
  }
  absl::Status Name(absl::string_view* result) const override {
    return *result = file_.path(), absl::OkStatus();
  }
  absl::Status Tell(int64* position) override { return *position = position_, absl::OkStatus(); }

 private:
  static constexpr size_t kBufferBytes = size_t{1} << 16;

  Descriptor file_;
  std::string buffer_;
  int64 position_ = 0;
};

class FileInMemory final : public ReadOnlyMemoryRegion {
 public:
  explicit FileInMemory(std::string bytes) : bytes_(std::move(bytes)) {}
  const void* data() override { return bytes_.data(); }
  uint64 length() override { return bytes_.size(); }

 private:
  const std::string bytes_;
};

// Stores an open file in *result, or returns the error from opening it.
template <typename File, typename Result>
absl::Status TakeIfOpen(std::unique_ptr<File> file, Result* result) {
  if (!file->open_status().ok()) return file->open_status();
  *result = std::move(file);
  return absl::OkStatus();
}

}  // namespace

absl::Status RandomAccessFile::Read(uint64, size_t, absl::string_view*, char*) const {
  return errors::Unimplemented("this file cannot be read");
}

absl::Status RandomAccessFile::Name(absl::string_view*) const {
  return errors::Unimplemented("this file does not know its name");
}

absl::Status WritableFile::Name(absl::string_view*) const {
  return errors::Unimplemented("this file does not know its name");
}

absl::Status WritableFile::Tell(int64* position) {
  *position = -1;
  return errors::Unimplemented("this file does not know its position");
}

absl::Status Env::NewRandomAccessFile(const std::string& path,
                                      std::unique_ptr<RandomAccessFile>* result) {
  return TakeIfOpen(std::make_unique<LocalRandomAccessFile>(path), result);
}

absl::Status Env::NewWritableFile(const std::string& path, std::unique_ptr<WritableFile>* result) {
  return TakeIfOpen(std::make_unique<LocalWritableFile>(path, O_TRUNC), result);
}

absl::Status Env::NewAppendableFile(const std::string& path,
                                    std::unique_ptr<WritableFile>* result) {
  return TakeIfOpen(std::make_unique<LocalWritableFile>(path, O_APPEND), result);
}

absl::Status Env::NewReadOnlyMemoryRegionFromFile(const std::string& path,
                                                  std::unique_ptr<ReadOnlyMemoryRegion>* result) {
  std::string bytes;
  TF_RETURN_IF_ERROR(ReadFileToString(this, path, &bytes));
  if (bytes.empty()) return errors::InvalidArgument("'", path, "': is empty");
  *result = std::make_unique<FileInMemory>(std::move(bytes));
  return absl::OkStatus();
}

absl::Status Env::GetMatchingPaths(const std::string& pattern, std::vector<std::string>* results) {
  glob_t found{};
  const int status = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> paths;
  if (status == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  if (status != 0 && status != GLOB_NOMATCH) {
    return errors::Unknown("'", pattern, "': cannot be searched");
  }
  std::sort(paths.begin(), paths.end());
  *results = std::move(paths);
  return absl::OkStatus();
}

absl::Status Env::Stat(const std::string& path, FileStatistics* stat) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) return ErrnoError(path, errno);
  stat->length = found.st_size;
  stat->mtime_nsec = int64{found.st_mtim.tv_sec} * 1000000000 + found.st_mtim.tv_nsec;
  stat->is_directory = S_ISDIR(found.st_mode);
  return absl::OkStatus();
}

absl::Status Env::CopyFile(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  return error ? ErrnoError(from, error.value()) : absl::OkStatus();
}

absl::Status Env::DeleteRecursively(const std::string& path, int64* undeleted_files,
                                    int64* undeleted_dirs) {
  *undeleted_files = 0;
  *undeleted_dirs = 0;
  std::error_code error;
  if (!fs::exists(path, error)) {
    *undeleted_dirs = 1;
    return errors::NotFound("'", path, "': does not exist");
  }
  fs::remove_all(path, error);
  if (!error) return absl::OkStatus();
  const absl::Status status = ErrnoError(path, error.value());
  if (fs::is_directory(path, error)) *undeleted_dirs = 1;
  for (fs::recursive_directory_iterator i(path, error), end; !error && i != end;
       i.increment(error)) {
    ++*(i->is_directory(error) ? undeleted_dirs : undeleted_files);
  }
  return status;
}

bool Env::LocalTempFilename(std::string* filename) {
  const char* const folder = std::getenv("TMPDIR");
  std::string name = absl::StrCat(folder != nullptr ? folder : "/tmp", "/gradflow_XXXXXX");
  const int fd = ::mkstemp(name.data());
  if (fd < 0) return false;
  ::close(fd);
  ::unlink(name.c_str());
  *filename = std::move(name);
  return true;
}

}  // namespace tensorflow
