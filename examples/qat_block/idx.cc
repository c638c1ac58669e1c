#include "examples/qat_block/idx.h"

#include <zlib.h>

#include <memory>

#include "gradflow/core/status.h"

namespace qat_block {

namespace errors = gradflow::errors;

absl::StatusOr<gradflow::Tensor> ReadIdxImages(const std::string& path, int64_t count) {
  struct Close {
    void operator()(gzFile_s* file) const { gzclose(file); }
  };
  const std::unique_ptr<gzFile_s, Close> file(gzopen(path.c_str(), "rb"));
  if (file == nullptr) return errors::NotFound(path, " cannot be opened");

  // Header: two zeros, the element type, the rank, and the sizes as big-endian words.
  unsigned char header[16];
  if (gzread(file.get(), header, sizeof(header)) != static_cast<int>(sizeof(header)) ||
      header[0] != 0 || header[1] != 0 || header[2] != 8 || header[3] != 3) {
    return errors::InvalidArgument(path, " is no IDX file of unsigned bytes with 3 dimensions");
  }
  const auto word = [&](int i) {
    const unsigned char* p = header + 4 * i;
    return static_cast<int64_t>(p[0]) << 24 | p[1] << 16 | p[2] << 8 | p[3];
  };
  if (word(1) < count) {
    return errors::InvalidArgument(path, " has ", word(1), " images, expected ", count,
                                   " at least");
  }
  GRADFLOW_ASSIGN_OR_RETURN(
      const gradflow::TensorShape shape,
      gradflow::TensorShape::Make(absl::Span<const int64_t>({count, word(2), word(3)})));
  GRADFLOW_ASSIGN_OR_RETURN(gradflow::Tensor images,
                            gradflow::Tensor::Allocate(gradflow::DT_UINT8, shape));
  const absl::Span<uint8_t> bytes = images.span<uint8_t>();
  if (gzread(file.get(), bytes.data(), bytes.size()) != static_cast<int>(bytes.size())) {
    return errors::InvalidArgument(path, " ends before its images do");
  }
  return images;
}

}  // namespace qat_block
