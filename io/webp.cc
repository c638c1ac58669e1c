// WebP, by libwebp.
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/io/image_codecs.h"
#include "gradflow/io/webp_lossless.h"

namespace gradflow::internal {
namespace {

absl::Status Invalid(absl::string_view why) {
  return errors::InvalidArgument("Invalid WebP data: ", why);
}

int64_t LittleEndian(absl::string_view bytes) {
  int64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

// Computes the memory that the chunks of a file make libwebp allocate.
class ChunkReader {
 public:
  // `columns` and `rows` are the size of the image or the canvas. Reads only the first frame's
  // image unless `all_frames` is true.
  ChunkReader(int64_t columns, int64_t rows, bool all_frames, StopToken* stop)
      : columns_(columns), rows_(rows), all_frames_(all_frames), stop_(stop) {}

  // `file` begins with "RIFF", a size, and "WEBP".
  absl::Status ReadFile(absl::string_view file) {
    const auto size = static_cast<size_t>(LittleEndian(file.substr(4, 4)));
    return Read(file.substr(12, size < 4 ? 0 : size - 4), columns_, rows_, /*is_frame=*/false);
  }

  // The number of chunks, including chunks in frames.
  int64_t count() const { return count_; }
  // The maximum memory of the tables of an image.
  int64_t table_bytes() const { return table_bytes_; }

 private:
  // Reads the chunks of the file, or of a frame of this size.
  absl::Status Read(absl::string_view bytes, int64_t columns, int64_t rows, bool is_frame) {
    constexpr size_t kHeaderBytes = 8;
    while (bytes.size() >= kHeaderBytes) {
      GRADFLOW_RETURN_IF_ERROR(CheckStop(stop_));
      const absl::string_view tag = bytes.substr(0, 4);
      const auto size = static_cast<size_t>(LittleEndian(bytes.substr(4, 4)));
      bytes.remove_prefix(kHeaderBytes);
      const absl::string_view content = bytes.substr(0, size);
      // Chunks begin at even positions.
      bytes.remove_prefix(std::min(bytes.size(), size + size % 2));
      ++count_;
      if (tag == "ANMF" && content.size() >= 16 && !is_frame) {
        ++frames_;
        GRADFLOW_RETURN_IF_ERROR(Read(content.substr(16), LittleEndian(content.substr(6, 3)) + 1,
                                      LittleEndian(content.substr(9, 3)) + 1, /*is_frame=*/true));
      } else if (tag == "ALPH" && !content.empty() && (content[0] & 3) == 1) {
        GRADFLOW_RETURN_IF_ERROR(AddTables(content.substr(1), columns, rows));
      } else if (tag == "VP8L" && content.size() >= 5) {
        const int64_t header = LittleEndian(content.substr(1, 4));
        GRADFLOW_RETURN_IF_ERROR(
            AddTables(content.substr(5), (header & 0x3fff) + 1, (header >> 14 & 0x3fff) + 1));
      }
    }
    return absl::OkStatus();
  }
  absl::Status AddTables(absl::string_view data, int64_t columns, int64_t rows) {
    if (frames_ > 1 && !all_frames_) return absl::OkStatus();
    if (columns > columns_ || rows > rows_) {
      return Invalid(absl::StrCat("a frame of ", columns, " x ", rows,
                                  " pixels is larger than the canvas of ", columns_, " x ", rows_));
    }
    GRADFLOW_ASSIGN_OR_RETURN(const int64_t bytes, LosslessTableBytes(data, columns, rows, stop_));
    table_bytes_ = std::max(table_bytes_, bytes);
    return absl::OkStatus();
  }

  const int64_t columns_;
  const int64_t rows_;
  const bool all_frames_;
  StopToken* const stop_;
  int64_t frames_ = 0;
  int64_t count_ = 0;
  int64_t table_bytes_ = 0;
};

// Returns the memory of an image's decoder without its tables. A pixel takes four bytes of lossless
// data, one byte of transforms and one byte of alpha. A column takes rows of blocks.
int64_t ImageBytes(int64_t columns, int64_t rows) {
  return 6 * columns * rows + 192 * columns + kDecoderBytes;
}

// `canvas` is the size of the frames.
absl::Status DecodeAnimation(absl::string_view bytes, const ImageSize& canvas, bool all_frames,
                             ImageMemory memory, StopToken* stop) {
  WebPData data;
  data.bytes = reinterpret_cast<const uint8_t*>(bytes.data());
  data.size = bytes.size();
  // Covers two canvases and a frame of the same size.
  const int64_t pixel_bytes =
      8 * canvas.columns * canvas.rows + ImageBytes(canvas.columns, canvas.rows);
  GRADFLOW_RETURN_IF_ERROR(memory.charge(pixel_bytes));
  ChunkReader chunks(canvas.columns, canvas.rows, all_frames, stop);
  GRADFLOW_RETURN_IF_ERROR(chunks.ReadFile(bytes));
  // libwebp keeps a list of the frames, which have at least two chunks, and of the other chunks.
  constexpr int64_t kChunkBytes = 64;
  GRADFLOW_RETURN_IF_ERROR(
      memory.charge(pixel_bytes + chunks.table_bytes() + kChunkBytes * chunks.count()));
  ImageSize size = canvas;
  {
    WebPDemuxer* const demuxer = WebPDemux(&data);
    if (demuxer == nullptr) return Invalid("the frames are not complete");
    size.frames = WebPDemuxGetI(demuxer, WEBP_FF_FRAME_COUNT);
    WebPDemuxDelete(demuxer);
  }
  if (size.frames < 1) return Invalid("there is no frame");
  if (!all_frames) size.frames = 1;
  const int64_t frame = size.rows * size.columns * 4;
  if (frame < 1 || frame >= kMaxImageElements / size.frames) {
    return Invalid(absl::StrCat(size.frames, " frames of ", size.columns, " x ", size.rows,
                                " pixels are too large"));
  }
  GRADFLOW_ASSIGN_OR_RETURN(void* const output, memory.allocate(size));
  WebPAnimDecoder* const decoder = WebPAnimDecoderNew(&data, nullptr);
  if (decoder == nullptr) return Invalid("the animation cannot be decoded");
  const auto cleanup = absl::MakeCleanup([decoder] { WebPAnimDecoderDelete(decoder); });
  uint8_t* to = static_cast<uint8_t*>(output);
  for (int64_t i = 0; i < size.frames; ++i, to += frame) {
    GRADFLOW_RETURN_IF_ERROR(CheckStop(stop));
    uint8_t* canvas = nullptr;
    int timestamp = 0;
    if (WebPAnimDecoderGetNext(decoder, &canvas, &timestamp) == 0) {
      return Invalid(absl::StrCat("frame ", i, " of ", size.frames, " cannot be decoded"));
    }
    std::memcpy(to, canvas, static_cast<size_t>(frame));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status DecodeWebP(absl::string_view bytes, int channels, bool all_frames, ImageMemory memory,
                        StopToken* stop) {
  const uint8_t* const data = reinterpret_cast<const uint8_t*>(bytes.data());
  WebPBitstreamFeatures features;
  if (ImageFormatOf(bytes) != ImageFormat::kWebP ||
      WebPGetFeatures(data, bytes.size(), &features) != VP8_STATUS_OK) {
    return Invalid("the header cannot be read");
  }
  const int found = features.has_alpha != 0 || features.has_animation != 0 ? 4 : 3;
  if (channels != 0 && channels != found) {
    return errors::InvalidArgument("channels is ", channels, ", but the WebP data has ", found);
  }
  ImageSize size;
  size.rows = features.height;
  size.columns = features.width;
  size.channels = found;
  if (features.has_animation != 0) return DecodeAnimation(bytes, size, all_frames, memory, stop);
  const int64_t row = size.columns * found;
  if (row < 1 || size.rows < 1 || row >= kMaxImageElements / size.rows) {
    return Invalid("the image is too large");
  }
  const int64_t image_bytes = ImageBytes(size.columns, size.rows);
  GRADFLOW_RETURN_IF_ERROR(memory.charge(image_bytes));
  ChunkReader chunks(size.columns, size.rows, /*all_frames=*/true, stop);
  GRADFLOW_RETURN_IF_ERROR(chunks.ReadFile(bytes));
  GRADFLOW_RETURN_IF_ERROR(memory.charge(image_bytes + chunks.table_bytes()));
  GRADFLOW_ASSIGN_OR_RETURN(void* const output, memory.allocate(size));
  uint8_t* const to = static_cast<uint8_t*>(output);
  const size_t total = static_cast<size_t>(row * size.rows);
  const uint8_t* const result =
      found == 4 ? WebPDecodeRGBAInto(data, bytes.size(), to, total, static_cast<int>(row))
                 : WebPDecodeRGBInto(data, bytes.size(), to, total, static_cast<int>(row));
  return result != nullptr ? absl::OkStatus() : Invalid("the image cannot be decoded");
}

}  // namespace gradflow::internal
