// GIF, by giflib. The file is read twice: first for the number and sizes of the frames, then for
// the pixels, so that memory is allocated only when its size is known.
#include <gif_lib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/io/image_codecs.h"

namespace gradflow::internal {
namespace {

int Read(GifFileType* gif, GifByteType* to, int size) {
  absl::string_view& rest = *static_cast<absl::string_view*>(gif->UserData);
  const size_t n = std::min(rest.size(), static_cast<size_t>(size));
  std::memcpy(to, rest.data(), n);
  rest.remove_prefix(n);
  return static_cast<int>(n);
}

absl::Status Invalid(absl::string_view why) {
  return errors::InvalidArgument("Invalid GIF data: ", why);
}
absl::Status Invalid(int error) {
  const char* const text = GifErrorString(error);
  return Invalid(text != nullptr ? text : "unknown error");
}

// Reads the descriptors of frames; reads or skips the pixels.
class Reader {
 public:
  Reader(absl::string_view bytes, StopToken* stop) : rest_(bytes), stop_(stop) {}
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() {
    int error = 0;
    if (gif_ != nullptr) DGifCloseFile(gif_, &error);
  }

  absl::Status Open() {
    int error = 0;
    gif_ = DGifOpen(&rest_, Read, &error);
    return gif_ != nullptr ? absl::OkStatus() : Invalid(error);
  }
  // Moves to the next frame. Returns false after the last frame. REQUIRES: the pixels of the
  // current frame have been read or skipped
  absl::StatusOr<bool> NextFrame() {
    transparent_ = NO_TRANSPARENT_COLOR;
    for (;;) {
      GifRecordType type;
      if (DGifGetRecordType(gif_, &type) != GIF_OK) return Invalid(gif_->Error);
      if (type == TERMINATE_RECORD_TYPE) return false;
      if (type == IMAGE_DESC_RECORD_TYPE) {
        // Keeps no descriptors of earlier frames.
        GifFreeSavedImages();
        if (DGifGetImageDesc(gif_) != GIF_OK) return Invalid(gif_->Error);
        return true;
      }
      if (type == EXTENSION_RECORD_TYPE) GRADFLOW_RETURN_IF_ERROR(ReadExtension());
    }
  }
  absl::Status SkipPixels() {
    int code_size = 0;
    GifByteType* block = nullptr;
    if (DGifGetCode(gif_, &code_size, &block) != GIF_OK) return Invalid(gif_->Error);
    while (block != nullptr) {
      GRADFLOW_RETURN_IF_ERROR(CheckStop(stop_));
      if (DGifGetCodeNext(gif_, &block) != GIF_OK) return Invalid(gif_->Error);
    }
    return absl::OkStatus();
  }
  // Reads the next row of the frame.
  absl::Status ReadRow(GifByteType* to) {
    GRADFLOW_RETURN_IF_ERROR(CheckStop(stop_));
    if (DGifGetLine(gif_, to, desc().Width) != GIF_OK) return Invalid(gif_->Error);
    return absl::OkStatus();
  }
  const GifImageDesc& desc() const { return gif_->Image; }
  const ColorMapObject* colors() const {
    return desc().ColorMap != nullptr ? desc().ColorMap : gif_->SColorMap;
  }
  int transparent() const { return transparent_; }

 private:
  absl::Status ReadExtension() {
    int function = 0;
    GifByteType* block = nullptr;
    if (DGifGetExtension(gif_, &function, &block) != GIF_OK) return Invalid(gif_->Error);
    while (block != nullptr) {
      GraphicsControlBlock control;
      // A block begins with its size.
      if (function == GRAPHICS_EXT_FUNC_CODE &&
          DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) {
        transparent_ = control.TransparentColor;
      }
      if (DGifGetExtensionNext(gif_, &block) != GIF_OK) return Invalid(gif_->Error);
    }
    return absl::OkStatus();
  }
  void GifFreeSavedImages() {
    if (gif_->SavedImages == nullptr) return;
    ::GifFreeSavedImages(gif_);
    gif_->SavedImages = nullptr;
    gif_->ImageCount = 0;
  }

  absl::string_view rest_;
  StopToken* const stop_;
  GifFileType* gif_ = nullptr;
  int transparent_ = NO_TRANSPARENT_COLOR;
};

// Draws the frame onto `canvas`, which has the RGB pixels of the previous frame.
absl::Status DrawFrame(Reader* reader, const ImageSize& size, uint8_t* canvas) {
  const GifImageDesc desc = reader->desc();
  const ColorMapObject* const colors = reader->colors();
  if (colors == nullptr) return Invalid("a frame has no colors");
  // Interlaced frames have every eighth row first.
  constexpr int kFirst[] = {0, 4, 2, 1};
  constexpr int kStep[] = {8, 8, 4, 2};
  std::vector<GifByteType> pixels(static_cast<size_t>(desc.Width));
  for (int pass = 0; pass < (desc.Interlace ? 4 : 1); ++pass) {
    const int step = desc.Interlace ? kStep[pass] : 1;
    for (int r = desc.Interlace ? kFirst[pass] : 0; r < desc.Height; r += step) {
      GRADFLOW_RETURN_IF_ERROR(reader->ReadRow(pixels.data()));
      const int64_t row = int64_t{desc.Top} + r;
      if (row < 0 || row >= size.rows) continue;
      for (int c = 0; c < desc.Width; ++c) {
        const int64_t column = int64_t{desc.Left} + c;
        const int index = pixels[static_cast<size_t>(c)];
        if (column < 0 || column >= size.columns || index == reader->transparent()) continue;
        if (index >= colors->ColorCount) {
          return Invalid(absl::StrCat("color ", index, " of ", colors->ColorCount));
        }
        const GifColorType& color = colors->Colors[index];
        uint8_t* const to = canvas + (row * size.columns + column) * 3;
        to[0] = color.Red;
        to[1] = color.Green;
        to[2] = color.Blue;
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status DecodeGif(absl::string_view bytes, bool all_frames, ImageMemory memory,
                       StopToken* stop) {
  ImageSize size;
  size.frames = 0;
  size.channels = 3;
  // giflib never keeps more memory than this.
  GRADFLOW_RETURN_IF_ERROR(memory.charge(kDecoderBytes));
  {
    Reader reader(bytes, stop);
    GRADFLOW_RETURN_IF_ERROR(reader.Open());
    for (;;) {
      GRADFLOW_ASSIGN_OR_RETURN(const bool has_frame, reader.NextFrame());
      if (!has_frame) break;
      if (reader.desc().Width <= 0 || reader.desc().Height <= 0) {
        return Invalid("a frame has no pixels");
      }
      size.rows = std::max<int64_t>(size.rows, reader.desc().Height);
      size.columns = std::max<int64_t>(size.columns, reader.desc().Width);
      ++size.frames;
      GRADFLOW_RETURN_IF_ERROR(reader.SkipPixels());
    }
  }
  if (size.frames == 0) return Invalid("there is no frame");
  if (!all_frames) size.frames = 1;
  const int64_t frame = size.rows * size.columns * 3;
  if (frame >= kMaxImageElements / size.frames) {
    return Invalid(absl::StrCat(size.frames, " frames of ", size.columns, " x ", size.rows,
                                " pixels are too large"));
  }
  GRADFLOW_ASSIGN_OR_RETURN(void* const output, memory.allocate(size));
  uint8_t* canvas = static_cast<uint8_t*>(output);
  Reader reader(bytes, stop);
  GRADFLOW_RETURN_IF_ERROR(reader.Open());
  for (int64_t i = 0; i < size.frames; ++i, canvas += frame) {
    GRADFLOW_ASSIGN_OR_RETURN(const bool has_frame, reader.NextFrame());
    if (!has_frame) return Invalid("a frame is missing");
    if (i == 0) {
      std::memset(canvas, 0, static_cast<size_t>(frame));
    } else {
      std::memcpy(canvas, canvas - frame, static_cast<size_t>(frame));
    }
    GRADFLOW_RETURN_IF_ERROR(DrawFrame(&reader, size, canvas));
  }
  return absl::OkStatus();
}

}  // namespace gradflow::internal
