// ImmutableConst: a constant in a file.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"

namespace gradflow::immutable_const {
namespace {

// A file that is open for reading.
class File {
 public:
  // Opens regular files only: a pipe or a device may have no end.
  static absl::StatusOr<File> Open(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return errors::NotFound("'", path, "' could not be opened: ", strerror(errno));
    File file(fd);
    struct stat info = {};
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
      return errors::InvalidArgument("'", path, "' must be a regular file");
    }
    file.size_ = info.st_size;
    return file;
  }
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}
  File& operator=(File&&) = delete;

  int64_t size() const { return size_; }
  // Returns the number of bytes read, fewer if the file has become shorter.
  int64_t Read(char* to, int64_t bytes) const {
    int64_t done = 0;
    while (done < bytes) {
      const ssize_t count = read(fd_, to + done, bytes - done);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;
      done += count;
    }
    return done;
  }

 private:
  explicit File(int fd) : fd_(fd) {}

  int fd_;
  int64_t size_ = 0;
};

class ImmutableConstKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("memory_region_name", &path_));
    PartialTensorShape shape;
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("shape", &shape));
    if (!shape.AsTensorShape(&shape_)) {
      return errors::InvalidArgument("shape must be known, but is ", shape.DebugString());
    }
    if (path_.find('\0') != std::string::npos) {
      return errors::InvalidArgument("memory_region_name must not have a zero byte");
    }
    return absl::OkStatus();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_ASSIGN_OR_RETURN(const File file, File::Open(path_));
    const DataType dtype = ctx.expected_output_dtype(0);
    const int64_t bytes = MultiplyWithoutOverflow(shape_.num_elements(), DataTypeSize(dtype));
    const auto short_file = [&](int64_t size) {
      return errors::InvalidArgument("'", path_, "' must have as many bytes as ",
                                     DataTypeString(dtype), " ", shape_.DebugString(), ", but has ",
                                     size);
    };
    // Before a tensor is allocated that could not be filled.
    if (bytes < 0 || file.size() < bytes) return short_file(file.size());
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, shape_, &output));
    const int64_t read = file.Read(static_cast<char*>(output->raw_data()), bytes);
    return read == bytes ? absl::OkStatus() : short_file(read);
  }

 private:
  std::string path_;
  TensorShape shape_;
};

absl::Status ImmutableConstShape(ShapeContext& c) {
  PartialTensorShape shape;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("shape", &shape));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("ImmutableConst")
      .Group("array_ops")
      .Output("tensor: dtype")
      .Attr("dtype: type")
      .Attr("shape: shape")
      .Attr("memory_region_name: string")
      .Shape(ImmutableConstShape)
      .Doc(R"(Returns a constant that a file holds.

The file is read when the graph is planned or run. There are no kernels for strings, bools and handles.

tensor: The first bytes of the file, as a tensor in row-major order.
dtype: The type of the tensor.
shape: Its shape.
memory_region_name: The path of a regular file, with as many bytes as the tensor or more.)");
  DataTypeVector types;
  for (const DataType dtype : AllDataTypes()) {
    if (DataTypeCanBeTensor(dtype) && dtype != DT_STRING && dtype != DT_BOOL &&
        dtype != DT_RESOURCE && dtype != DT_VARIANT) {
      types.push_back(dtype);
    }
  }
  registry.Kernel("ImmutableConst", MakeKernel<ImmutableConstKernel>).Types("dtype", types);
}

}  // namespace gradflow::immutable_const
