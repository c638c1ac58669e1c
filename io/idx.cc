#include "gradflow/io/idx.h"

#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/io/file.h"

namespace gradflow {
namespace {

// deflate expands a byte to at most this many bytes.
constexpr uint64_t kMaxRatio = 1032;

struct CloseGz {
  void operator()(gzFile_s* file) const { gzclose(file); }
};

// Reads up to `size` bytes and stores their number in *count. Returns INVALID_ARGUMENT if the
// compressed bytes are damaged.
absl::Status ReadBytes(gzFile file, char* to, uint64_t size, uint64_t* count) {
  constexpr uint64_t kMax = uint64_t{1} << 30;
  *count = 0;
  while (*count < size) {
    const int n = gzread(file, to + *count, static_cast<unsigned>(std::min(size - *count, kMax)));
    if (n == 0) break;
    if (n < 0) {
      int code = Z_OK;
      return errors::InvalidArgument("the compressed bytes are damaged: ", gzerror(file, &code));
    }
    *count += n;
  }
  // gzread() also returns all bytes of a truncated file, or of a file with a wrong checksum. The
  // error code tells them from a complete file.
  int code = Z_OK;
  const char* const message = gzerror(file, &code);
  if (*count < size && code != Z_OK && code != Z_STREAM_END) {
    return errors::InvalidArgument("the compressed bytes are damaged: ", message);
  }
  return absl::OkStatus();
}

uint32_t BigEndian32(const char* bytes) {
  uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return __builtin_bswap32(word);
}

DataType TypeOf(uint8_t code) {
  switch (code) {
    case 0x08:
      return DT_UINT8;
    case 0x09:
      return DT_INT8;
    case 0x0B:
      return DT_INT16;
    case 0x0C:
      return DT_INT32;
    case 0x0D:
      return DT_FLOAT;
    case 0x0E:
      return DT_DOUBLE;
    default:
      return DT_INVALID;
  }
}

// Converts `count` words from big-endian.
void ToNative(char* bytes, int64_t count, int word) {
  if (word == 1) return;
  for (int64_t i = 0; i < count; ++i) std::reverse(bytes + i * word, bytes + (i + 1) * word);
}

absl::StatusOr<Tensor> ReadIdxFile(const std::string& path) {
  size_t file_size = 0;
  GRADFLOW_ASSIGN_OR_RETURN(const internal::FileDescriptor descriptor,
                            internal::OpenFile(path, &file_size));
  // gzclose closes the descriptor that it gets, so it gets a copy.
  const int copy = dup(descriptor.get());
  if (copy < 0) return absl::ErrnoToStatus(errno, "cannot open");
  const std::unique_ptr<gzFile_s, CloseGz> file(gzdopen(copy, "rb"));
  if (file == nullptr) {
    close(copy);
    return errors::ResourceExhausted("out of memory for the decompressor");
  }
  char magic[4];
  uint64_t count = 0;
  GRADFLOW_RETURN_IF_ERROR(ReadBytes(file.get(), magic, sizeof(magic), &count));
  const DataType dtype = count < sizeof(magic) || magic[0] != 0 || magic[1] != 0
                             ? DT_INVALID
                             : TypeOf(static_cast<uint8_t>(magic[2]));
  if (dtype == DT_INVALID) {
    return errors::InvalidArgument(
        "expected an IDX file, which begins with two zeros and the number of a type");
  }
  const int rank = static_cast<uint8_t>(magic[3]);
  std::string words(4 * size_t{static_cast<uint8_t>(magic[3])}, '\0');
  GRADFLOW_RETURN_IF_ERROR(ReadBytes(file.get(), words.data(), words.size(), &count));
  if (count < words.size()) {
    return errors::InvalidArgument("the file ends in its header, which has ", rank, " dimensions");
  }
  DimVector dims;
  for (int d = 0; d < rank; ++d) dims.push_back(BigEndian32(words.data() + 4 * d));
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, TensorShape::Make(dims));
  // double, because the product may overflow.
  const double bytes =
      static_cast<double>(shape.num_elements()) * static_cast<double>(DataTypeSize(dtype));
  const double most = static_cast<double>(file_size) *
                      (gzdirect(file.get()) != 0 ? 1.0 : static_cast<double>(kMaxRatio));
  if (bytes > most) {
    return errors::InvalidArgument("the header states shape ", shape.DebugString(), " of type ",
                                   DataTypeString(dtype), ", more than the ", file_size,
                                   " bytes of the file can hold");
  }
  GRADFLOW_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(dtype, shape));
  const uint64_t size = tensor.tensor_data().size();
  auto* const elements = static_cast<char*>(tensor.raw_data());
  GRADFLOW_RETURN_IF_ERROR(ReadBytes(file.get(), elements, size, &count));
  if (count < size) {
    return errors::InvalidArgument("expected ", size, " bytes of elements for shape ",
                                   shape.DebugString(), ", found ", count);
  }
  // Reading beyond the end also verifies the checksum of a compressed file.
  char beyond = 0;
  GRADFLOW_RETURN_IF_ERROR(ReadBytes(file.get(), &beyond, 1, &count));
  if (count != 0) {
    return errors::InvalidArgument("expected ", size, " bytes of elements for shape ",
                                   shape.DebugString(), ", found more");
  }
  ToNative(elements, tensor.NumElements(), DataTypeSize(dtype));
  return tensor;
}

}  // namespace

absl::StatusOr<Tensor> ReadIdx(const std::string& path) {
  absl::StatusOr<Tensor> tensor = ReadIdxFile(path);
  if (!tensor.ok()) return errors::Prefix(absl::StrCat("'", path, "': "), tensor.status());
  return tensor;
}

}  // namespace gradflow
