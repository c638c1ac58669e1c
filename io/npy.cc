#include "gradflow/io/npy.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/io/file.h"
#include "gradflow/io/npy_header.h"

namespace gradflow {
namespace {

using internal::NpyHeader;
using internal::NpyHeaderRange;

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
              "files that are not big-endian are read without conversion");

// ---- Elements ----

template <typename Word>
Word SwapBytes(Word word) {
  if constexpr (sizeof(Word) == 2) return __builtin_bswap16(word);
  if constexpr (sizeof(Word) == 4) return __builtin_bswap32(word);
  if constexpr (sizeof(Word) == 8) return __builtin_bswap64(word);
}

template <typename Word>
void SwapAll(char* bytes, size_t size) {
  for (size_t i = 0; i < size; i += sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes + i, sizeof(Word));
    word = SwapBytes(word);
    std::memcpy(bytes + i, &word, sizeof(Word));
  }
}

// Returns the size of the unit of byte order: for complex numbers, a part.
size_t WordSize(DataType dtype) {
  return DataTypeIsComplex(dtype) ? DataTypeSize(dtype) / 2 : DataTypeSize(dtype);
}

void SwapElements(DataType dtype, char* bytes, size_t size) {
  switch (WordSize(dtype)) {
    case 2:
      return SwapAll<uint16_t>(bytes, size);
    case 4:
      return SwapAll<uint32_t>(bytes, size);
    case 8:
      return SwapAll<uint64_t>(bytes, size);
    default:
      return;
  }
}

bool IsCleanBool(absl::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char b) { return (b & ~1) == 0; });
}

// Returns true if the order of the elements differs from row-major.
bool NeedsTranspose(const NpyHeader& header) {
  const auto dims = header.shape.dim_sizes();
  return header.fortran_order && header.shape.num_elements() > 0 &&
         std::count_if(dims.begin(), dims.end(), [](int64_t d) { return d > 1; }) > 1;
}

// Copies column-major elements at `from` to row-major order at `to`. Tiles the first dimension
// (contiguous in `from`) and the last (contiguous in `to`), so that cache lines of both stay cached
// until fully used. REQUIRES: dims.size() >= 2, all dimensions positive
template <typename Element>
void Transpose(absl::Span<const int64_t> dims, const void* from, void* to) {
  constexpr int64_t kBlock = 32;
  const int64_t rows = dims.front();
  const int64_t cols = dims.back();
  int64_t middle = 1;
  for (const int64_t dim : dims.subspan(1, dims.size() - 2)) middle *= dim;
  // Iterates over the dimensions between, in the order of `to`.
  DimVector index(dims.size(), 0);
  for (int64_t m = 0; m < middle; ++m) {
    int64_t column_major = 0;
    for (size_t d = dims.size() - 2; d >= 1; --d) column_major = column_major * dims[d] + index[d];
    const Element* const source = static_cast<const Element*>(from) + column_major * rows;
    Element* const target = static_cast<Element*>(to) + m * cols;
    for (int64_t row = 0; row < rows; row += kBlock) {
      for (int64_t col = 0; col < cols; col += kBlock) {
        for (int64_t r = row; r < std::min(row + kBlock, rows); ++r) {
          for (int64_t c = col; c < std::min(col + kBlock, cols); ++c) {
            target[r * middle * cols + c] = source[c * middle * rows + r];
          }
        }
      }
    }
    for (size_t d = dims.size() - 2; d >= 1 && ++index[d] == dims[d]; --d) index[d] = 0;
  }
}

absl::StatusOr<Tensor> TransposedFromFortran(const Tensor& from) {
  GRADFLOW_ASSIGN_OR_RETURN(Tensor to, Tensor::Allocate(from.dtype(), from.shape()));
  DimVector dims;
  for (const int64_t dim : from.shape().dim_sizes()) {
    if (dim > 1) dims.push_back(dim);
  }
  struct Bytes16 {
    uint64_t words[2];
  };
  const auto transpose = [&] {
    switch (DataTypeSize(from.dtype())) {
      case 1:
        return Transpose<uint8_t>;
      case 2:
        return Transpose<uint16_t>;
      case 4:
        return Transpose<uint32_t>;
      case 8:
        return Transpose<uint64_t>;
      default:
        return Transpose<Bytes16>;
    }
  }();
  transpose(dims, from.raw_data(), to.raw_data());
  return to;
}

// Returns a tensor that owns its memory. `read` fills it with the elements as stored in the file.
absl::StatusOr<Tensor> LoadElements(const NpyHeader& header,
                                    absl::FunctionRef<absl::Status(char* to, size_t size)> read) {
  GRADFLOW_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(header.dtype, header.shape));
  const size_t size = tensor.tensor_data().size();
  if (size == 0) return tensor;
  auto* const bytes = static_cast<char*>(tensor.raw_data());
  GRADFLOW_RETURN_IF_ERROR(read(bytes, size));
  if (header.big_endian) SwapElements(header.dtype, bytes, size);
  // Every nonzero byte is true, as in NumPy.
  if (header.dtype == DT_BOOL) {
    std::transform(bytes, bytes + size, bytes, [](char b) { return b != 0; });
  }
  if (NeedsTranspose(header)) return TransposedFromFortran(tensor);
  return tensor;
}

// ---- Files ----

// Minimum size for memory-mapping. Smaller files are cheap to read, and a copy is safe if the file
// is truncated later, which for a mapping is fatal.
constexpr size_t kMinMappedBytes = size_t{64} << 20;

// Maps the elements, `size` bytes at `offset` of the file. Returns an uninitialized tensor if they
// cannot be used in place.
Tensor MapElements(int fd, const NpyHeader& header, size_t offset, size_t size) {
  const Tensor none(header.dtype, TensorShape({-1}));
  const bool needs_swap = header.big_endian && WordSize(header.dtype) > 1;
  if (size < kMinMappedBytes || needs_swap || NeedsTranspose(header)) return none;
  const size_t length = offset + size;
  void* const base = mmap(nullptr, length, PROT_READ, MAP_PRIVATE, fd, 0);
  if (base == MAP_FAILED) return none;  // a file system without mappings
  char* const data = static_cast<char*>(base) + offset;
  if (header.dtype == DT_BOOL && !IsCleanBool(absl::string_view(data, size))) {
    munmap(base, length);
    return none;
  }
  // FromMemory fails if the header leaves the elements unaligned for their type.
  return Tensor::FromMemory(header.dtype, header.shape, data, /*writable=*/false,
                            [base, length] { munmap(base, length); })
      .value_or(none);
}

absl::StatusOr<Tensor> ReadFile(const std::string& path) {
  size_t file_size = 0;
  GRADFLOW_ASSIGN_OR_RETURN(const internal::FileDescriptor file,
                            internal::OpenFile(path, &file_size));
  std::string start(std::min(file_size, internal::kMaxNpyPreludeSize), '\0');
  GRADFLOW_RETURN_IF_ERROR(internal::ReadAt(file.get(), 0, start.data(), start.size()));
  GRADFLOW_ASSIGN_OR_RETURN(const NpyHeaderRange place, internal::FindNpyHeader(start, file_size));
  std::string text(place.end - place.begin, '\0');
  GRADFLOW_RETURN_IF_ERROR(internal::ReadAt(file.get(), place.begin, text.data(), text.size()));
  const size_t data_size = file_size - place.end;
  GRADFLOW_ASSIGN_OR_RETURN(const NpyHeader header, internal::ParseNpyHeader(text, data_size));
  Tensor mapped = MapElements(file.get(), header, place.end, data_size);
  if (mapped.IsInitialized()) return mapped;
  return LoadElements(header, [&](char* to, size_t size) {
    return internal::ReadAt(file.get(), place.end, to, size);
  });
}

}  // namespace

absl::StatusOr<Tensor> ReadNpy(const std::string& path) {
  absl::StatusOr<Tensor> tensor = ReadFile(path);
  if (!tensor.ok()) return errors::Prefix(absl::StrCat("'", path, "': "), tensor.status());
  return tensor;
}

absl::StatusOr<Tensor> ParseNpy(absl::string_view bytes) {
  GRADFLOW_ASSIGN_OR_RETURN(
      const NpyHeaderRange place,
      internal::FindNpyHeader(bytes.substr(0, internal::kMaxNpyPreludeSize), bytes.size()));
  const absl::string_view text = bytes.substr(place.begin, place.end - place.begin);
  const absl::string_view data = bytes.substr(place.end);
  GRADFLOW_ASSIGN_OR_RETURN(const NpyHeader header, internal::ParseNpyHeader(text, data.size()));
  return LoadElements(header, [&](char* to, size_t size) {
    std::memcpy(to, data.data(), size);
    return absl::OkStatus();
  });
}

absl::Status WriteNpy(const std::string& path, const Tensor& tensor) {
  absl::StatusOr<std::string> header = FormatNpyHeader(tensor);
  const absl::Status status =
      header.ok() ? internal::WriteFile(path, {*header, tensor.tensor_data()}) : header.status();
  return errors::Prefix(absl::StrCat("'", path, "': "), status);
}

}  // namespace gradflow
