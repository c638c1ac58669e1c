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

// Returns the size of the words whose bytes are swapped. A complex number has two words.
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
  // Iterates over the dimensions between the first and the last, in the order of `to`.
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
  if (from.dtype() == DT_STRING) {
    Transpose<tstring>(dims, from.raw_data(), to.raw_data());
    return to;
  }
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

uint32_t CharacterAt(const char* bytes, bool big_endian) {
  uint32_t character;
  std::memcpy(&character, bytes, sizeof(character));
  return big_endian ? SwapBytes(character) : character;
}

// Appends a Unicode character as UTF-8. Returns false if there is no such character.
bool AppendUtf8(uint32_t c, std::string* text) {
  if (c >= 0x110000 || (c >= 0xd800 && c < 0xe000)) return false;
  const auto add = [&](uint32_t bits) { text->push_back(static_cast<char>(bits)); };
  if (c < 0x80) {
    add(c);
  } else if (c < 0x800) {
    add(0xc0 | c >> 6);
    add(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    add(0xe0 | c >> 12);
    add(0x80 | (c >> 6 & 0x3f));
    add(0x80 | (c & 0x3f));
  } else {
    add(0xf0 | c >> 18);
    add(0x80 | (c >> 12 & 0x3f));
    add(0x80 | (c >> 6 & 0x3f));
    add(0x80 | (c & 0x3f));
  }
  return true;
}

// Reads strings of fixed width. `read` is called for consecutive parts of the elements.
absl::StatusOr<Tensor> LoadStrings(
    const NpyHeader& header,
    absl::FunctionRef<absl::Status(char* to, size_t offset, size_t size)> read) {
  GRADFLOW_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(DT_STRING, header.shape));
  const auto width = static_cast<size_t>(header.element_bytes);
  std::string element(width, '\0');
  size_t offset = 0;
  for (tstring& to : tensor.span<tstring>()) {
    GRADFLOW_RETURN_IF_ERROR(read(element.data(), offset, width));
    offset += width;
    size_t size = width;
    if (!header.is_utf32) {
      while (size > 0 && element[size - 1] == '\0') --size;
      to = tstring(absl::string_view(element).substr(0, size));
      continue;
    }
    while (size > 0 && CharacterAt(&element[size - 4], header.big_endian) == 0) size -= 4;
    std::string text;
    for (size_t i = 0; i < size; i += 4) {
      const uint32_t character = CharacterAt(&element[i], header.big_endian);
      if (!AppendUtf8(character, &text)) {
        return errors::InvalidArgument("expected Unicode characters, but found ", character);
      }
    }
    to = tstring(text);
  }
  if (NeedsTranspose(header)) return TransposedFromFortran(tensor);
  return tensor;
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

// Minimum size for memory-mapping. Smaller files are cheap to read. A copy is also safe if the file
// is truncated later; a mapping is not.
constexpr size_t kMinMappedBytes = size_t{64} << 20;

// Maps the elements, `size` bytes at `offset` of the file. Returns an uninitialized tensor if there
// are too few bytes to be worth a mapping, or if the elements cannot be used in place.
Tensor MapElements(int fd, const NpyHeader& header, size_t offset, size_t size) {
  const Tensor none(header.dtype, TensorShape({-1}));
  if (header.dtype == DT_STRING) return none;
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
  if (header.dtype == DT_STRING) {
    std::string elements(data_size, '\0');
    GRADFLOW_RETURN_IF_ERROR(internal::ReadAt(file.get(), place.end, elements.data(), data_size));
    return LoadStrings(header, [&](char* to, size_t offset, size_t size) {
      std::memcpy(to, elements.data() + offset, size);
      return absl::OkStatus();
    });
  }
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
  if (header.dtype == DT_STRING) {
    return LoadStrings(header, [&](char* to, size_t offset, size_t size) {
      std::memcpy(to, data.data() + offset, size);
      return absl::OkStatus();
    });
  }
  return LoadElements(header, [&](char* to, size_t size) {
    std::memcpy(to, data.data(), size);
    return absl::OkStatus();
  });
}

absl::string_view FormatNpyElements(const Tensor& tensor, std::string* storage) {
  if (tensor.dtype() != DT_STRING) return tensor.tensor_data();
  const auto width = static_cast<size_t>(internal::NpyStringWidth(tensor).value_or(1));
  const auto texts = tensor.span<tstring>();
  storage->assign(width * texts.size(), '\0');
  for (size_t i = 0; i < texts.size(); ++i) {
    std::copy_n(texts[i].data(), std::min<size_t>(texts[i].size(), width),
                storage->begin() + static_cast<std::ptrdiff_t>(i * width));
  }
  return *storage;
}

absl::Status WriteNpy(const std::string& path, const Tensor& tensor) {
  absl::StatusOr<std::string> header = FormatNpyHeader(tensor);
  std::string storage;
  const absl::Status status =
      header.ok() ? internal::WriteFile(path, {*header, FormatNpyElements(tensor, &storage)})
                  : header.status();
  return errors::Prefix(absl::StrCat("'", path, "': "), status);
}

}  // namespace gradflow
