// PNG, by libpng.
//
// libpng reports errors by longjmp. Each step that calls libpng is a function without objects that
// have destructors. Its data are in a struct that outlives the jump.
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "absl/cleanup/cleanup.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/io/image_codecs.h"

namespace gradflow::internal {
namespace {

struct PngState {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::jmp_buf jump;
  char error[160] = "no memory";
  // The rest of the input.
  const png_byte* input = nullptr;
  size_t input_size = 0;
  // The output, allocated by malloc.
  png_byte* output = nullptr;
  size_t output_size = 0;
  size_t output_capacity = 0;

  int channels = 0;
  int bits = 8;
  png_uint_32 columns = 0;
  png_uint_32 rows = 0;
  int passes = 1;
  // True if 8 bits of the file become 16.
  bool widens = false;
  bool has_alpha = false;
  bool has_transparency = false;
  int color_type = 0;
  int bit_depth = 0;
  png_byte* data = nullptr;
  size_t row_bytes = 0;
  int compression = -1;
  StopToken* stop = nullptr;
  bool is_stopped = false;
};

PngState* StateOf(png_structp png) { return static_cast<PngState*>(png_get_error_ptr(png)); }

[[noreturn]] void OnError(png_structp png, png_const_charp message) {
  PngState* const state = StateOf(png);
  std::strncpy(state->error, message, sizeof(state->error) - 1);
  std::longjmp(state->jump, 1);
}
void OnWarning(png_structp, png_const_charp) {}

// Called before each row.
void CheckStop(PngState* s) {
  s->is_stopped = IsStopped(s->stop);
  if (s->is_stopped) png_error(s->png, "the run was stopped");
}

// Runs a step. Returns false, with state->error set, if libpng reports an error.
bool Run(PngState* state, void (*step)(PngState*)) {
  if (setjmp(state->jump) != 0) return false;
  step(state);
  return true;
}

void Read(png_structp png, png_bytep to, size_t size) {
  PngState* const state = StateOf(png);
  if (size > state->input_size) png_error(png, "the file is truncated");
  std::memcpy(to, state->input, size);
  state->input += size;
  state->input_size -= size;
}

// The maximum bytes that libpng allocates for a chunk other than pixels.
constexpr int64_t kMaxChunkBytes = 8000000;

// Chunks that do not change the pixels. libpng would keep them in memory and decompress text.
constexpr char kSkippedChunks[] =
    "bKGD\0eXIf\0hIST\0iTXt\0oFFs\0pCAL\0pHYs\0sCAL\0sPLT\0tEXt\0tIME\0zTXt";

// Returns the maximum bytes that libpng allocates for the color profile of a file. libpng keeps the
// profile, because it corrects the gamma of known profiles when it converts colors to gray.
int64_t ProfileBytes(absl::string_view bytes) {
  // deflate expands a byte to at most this many bytes.
  constexpr int64_t kMaxRatio = 1032;
  constexpr size_t kSignatureBytes = 8;
  // The length and the type of a chunk, and its checksum.
  constexpr size_t kHeaderBytes = 8;
  constexpr size_t kCrcBytes = 4;
  int64_t most = 0;
  bytes.remove_prefix(std::min(bytes.size(), kSignatureBytes));
  while (bytes.size() >= kHeaderBytes) {
    const size_t length = png_get_uint_32(reinterpret_cast<png_const_bytep>(bytes.data()));
    const absl::string_view type = bytes.substr(4, 4);
    if (type == "IDAT") break;
    if (type == "iCCP") most = std::max(most, kMaxRatio * static_cast<int64_t>(length));
    bytes.remove_prefix(std::min(bytes.size(), kHeaderBytes + length + kCrcBytes));
  }
  return std::min(most, kMaxChunkBytes);
}

void ReadHeader(PngState* s) {
  png_set_read_fn(s->png, s, Read);
  png_set_user_limits(s->png, 0x7fffffff, 0x7fffffff);
  png_set_chunk_malloc_max(s->png, kMaxChunkBytes);
  png_set_keep_unknown_chunks(s->png, PNG_HANDLE_CHUNK_NEVER,
                              reinterpret_cast<png_const_bytep>(kSkippedChunks),
                              sizeof(kSkippedChunks) / 5);
  png_read_info(s->png, s->info);
  png_get_IHDR(s->png, s->info, &s->columns, &s->rows, &s->bit_depth, &s->color_type, nullptr,
               nullptr, nullptr);
  s->has_transparency = png_get_valid(s->png, s->info, PNG_INFO_tRNS) != 0;
  s->has_alpha = (s->color_type & PNG_COLOR_MASK_ALPHA) != 0;
  if (s->channels != 0) return;
  s->channels = s->color_type == PNG_COLOR_TYPE_PALETTE ? (s->has_transparency ? 4 : 3)
                                                        : png_get_channels(s->png, s->info);
}

// Sets the conversions and makes libpng allocate memory. REQUIRES: the size has been checked
void StartReading(PngState* s) {
  if (s->channels % 2 == 0) {
    if (!s->has_alpha) {
      if (s->has_transparency) {
        png_set_tRNS_to_alpha(s->png);
      } else {
        png_set_add_alpha(s->png, (1u << s->bit_depth) - 1, PNG_FILLER_AFTER);
      }
    }
  } else if (s->has_alpha || s->has_transparency) {
    png_set_strip_alpha(s->png);
  }
  if (s->bit_depth > 8 && s->bits <= 8) png_set_strip_16(s->png);
  s->widens = s->bit_depth <= 8 && s->bits == 16;
  png_set_packing(s->png);
  s->passes = png_set_interlace_handling(s->png);
  // uint16 is little-endian in memory.
  if (s->bits > 8) png_set_swap(s->png);
  if (s->color_type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(s->png);
  const bool is_gray = (s->color_type & PNG_COLOR_MASK_COLOR) == 0;
  if (is_gray && s->bit_depth < 8) png_set_expand_gray_1_2_4_to_8(s->png);
  if (s->channels < 3) {
    // The weights of ITU-R BT.601.
    if (!is_gray) png_set_rgb_to_gray(s->png, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
  } else if (is_gray) {
    png_set_gray_to_rgb(s->png);
  }
  png_read_update_info(s->png, s->info);
  const size_t expected =
      size_t{s->columns} * static_cast<size_t>(s->channels) * (s->bits == 16 && !s->widens ? 2 : 1);
  if (png_get_rowbytes(s->png, s->info) != expected)
    png_error(s->png, "the rows have another size");
}

void ReadRows(PngState* s) {
  for (int pass = 0; pass < s->passes; ++pass) {
    for (png_uint_32 r = 0; r < s->rows; ++r) {
      CheckStop(s);
      png_read_row(s->png, s->data + r * s->row_bytes, nullptr);
    }
  }
  png_read_end(s->png, s->info);
}

// Doubles the bytes of rows in place, starting at the end: 0xab becomes 0xabab.
void Widen(const PngState& s) {
  const size_t n = size_t{s.columns} * static_cast<size_t>(s.channels);
  for (size_t r = 0; r < s.rows; ++r) {
    png_byte* const row = s.data + r * s.row_bytes;
    for (size_t i = n; i-- > 0;) row[2 * i] = row[2 * i + 1] = row[i];
  }
}

void Write(png_structp png, png_bytep from, size_t size) {
  PngState* const s = StateOf(png);
  if (size > s->output_capacity - s->output_size) {
    const size_t capacity = 2 * s->output_capacity + size + 4096;
    void* const larger = std::realloc(s->output, capacity);
    if (larger == nullptr) png_error(png, "no memory for the file");
    s->output = static_cast<png_byte*>(larger);
    s->output_capacity = capacity;
  }
  std::memcpy(s->output + s->output_size, from, size);
  s->output_size += size;
}
void Flush(png_structp) {}

void WriteImage(PngState* s) {
  constexpr int kTypes[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                            PNG_COLOR_TYPE_RGB_ALPHA};
  png_set_write_fn(s->png, s, Write, Flush);
  png_set_user_limits(s->png, 0x7fffffff, 0x7fffffff);
  png_set_compression_level(s->png, s->compression);
  png_set_compression_mem_level(s->png, 9);
  png_set_IHDR(s->png, s->info, s->columns, s->rows, s->bits, kTypes[s->channels - 1],
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(s->png, s->info);
  if (s->bits > 8) png_set_swap(s->png);
  for (png_uint_32 r = 0; r < s->rows; ++r) {
    CheckStop(s);
    png_write_row(s->png, s->data + r * s->row_bytes);
  }
  png_write_end(s->png, nullptr);
}

absl::Status Invalid(const PngState& state) {
  if (state.is_stopped) return StoppedError();
  return errors::InvalidArgument("Invalid PNG data: ", errors::Printable(state.error));
}

}  // namespace

absl::Status DecodePng(absl::string_view bytes, int channels, int bits, ImageMemory memory,
                       StopToken* stop) {
  PngState s;
  s.stop = stop;
  s.input = reinterpret_cast<const png_byte*>(bytes.data());
  s.input_size = bytes.size();
  s.channels = channels;
  s.bits = bits;
  const int64_t state_bytes = kDecoderBytes + ProfileBytes(bytes);
  GRADFLOW_RETURN_IF_ERROR(memory.charge(state_bytes));
  // Runs on every return; no jump skips it.
  const auto cleanup = absl::MakeCleanup([&s] {
    if (s.png != nullptr) png_destroy_read_struct(&s.png, &s.info, nullptr);
  });
  s.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &s, OnError, OnWarning);
  if (s.png != nullptr) s.info = png_create_info_struct(s.png);
  if (s.info == nullptr) return errors::ResourceExhausted("no memory for a PNG decoder");
  if (!Run(&s, ReadHeader)) return Invalid(s);
  const int64_t row = int64_t{s.columns} * s.channels;
  if (s.columns == 0 || s.rows == 0 || row >= kMaxImageElements / s.rows) {
    return errors::InvalidArgument("Invalid PNG data: an image of ", s.columns, " x ", s.rows,
                                   " pixels is too large");
  }
  ImageSize size;
  size.rows = s.rows;
  size.columns = s.columns;
  size.channels = s.channels;
  // Covers two rows of at most eight bytes per pixel.
  GRADFLOW_RETURN_IF_ERROR(memory.charge(16 * size.columns + state_bytes));
  GRADFLOW_ASSIGN_OR_RETURN(void* const data, memory.allocate(size));
  s.data = static_cast<png_byte*>(data);
  s.row_bytes = static_cast<size_t>(row) * (bits == 16 ? 2 : 1);
  if (!Run(&s, StartReading) || !Run(&s, ReadRows)) return Invalid(s);
  if (s.widens) Widen(s);
  return absl::OkStatus();
}

absl::Status EncodePng(const void* elements, const ImageSize& size, int bits, int compression,
                       std::string* bytes, StopToken* stop) {
  if (size.rows <= 0 || size.columns <= 0 || size.columns >= kMaxImageElements / 16 ||
      size.rows >= kMaxImageElements) {
    return errors::InvalidArgument("a PNG file cannot have ", size.columns, " x ", size.rows,
                                   " pixels");
  }
  PngState s;
  const auto cleanup = absl::MakeCleanup([&s] {
    if (s.png != nullptr) png_destroy_write_struct(&s.png, &s.info);
    std::free(s.output);
  });
  s.columns = static_cast<png_uint_32>(size.columns);
  s.rows = static_cast<png_uint_32>(size.rows);
  s.channels = static_cast<int>(size.channels);
  s.bits = bits;
  s.compression = compression;
  s.stop = stop;
  s.row_bytes = static_cast<size_t>(size.columns * size.channels * bits / 8);
  s.data = static_cast<png_byte*>(const_cast<void*>(elements));
  s.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &s, OnError, OnWarning);
  if (s.png != nullptr) s.info = png_create_info_struct(s.png);
  if (s.info == nullptr) return errors::ResourceExhausted("no memory for a PNG encoder");
  if (!Run(&s, WriteImage)) {
    if (s.is_stopped) return StoppedError();
    return errors::ResourceExhausted("cannot write PNG data: ", errors::Printable(s.error));
  }
  bytes->append(reinterpret_cast<const char*>(s.output), s.output_size);
  return absl::OkStatus();
}

}  // namespace gradflow::internal
