// WebP, by libwebp.
#include <webp/decode.h>
#include <webp/demux.h>

#include <cstring>

#include "absl/cleanup/cleanup.h"
#include "gradflow/core/run_stop.h"
#include "gradflow/core/status.h"
#include "gradflow/io/image_codecs.h"

namespace gradflow::internal {
namespace {

absl::Status Invalid(absl::string_view why) {
  return errors::InvalidArgument("Invalid WebP data: ", why);
}

absl::Status DecodeAnimation(absl::string_view bytes, bool all_frames, ImageMemory memory,
                             RunStop* stop) {
  WebPData data;
  data.bytes = reinterpret_cast<const uint8_t*>(bytes.data());
  data.size = bytes.size();
  // The size of the canvas, before the decoder allocates it.
  ImageSize size;
  {
    WebPDemuxer* const demuxer = WebPDemux(&data);
    if (demuxer == nullptr) return Invalid("the frames are not complete");
    size.columns = WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_WIDTH);
    size.rows = WebPDemuxGetI(demuxer, WEBP_FF_CANVAS_HEIGHT);
    size.frames = WebPDemuxGetI(demuxer, WEBP_FF_FRAME_COUNT);
    WebPDemuxDelete(demuxer);
  }
  if (size.frames < 1) return Invalid("there is no frame");
  if (!all_frames) size.frames = 1;
  size.channels = 4;
  const int64_t frame = size.rows * size.columns * 4;
  if (frame < 1 || frame >= kMaxImageElements / size.frames) {
    return Invalid(absl::StrCat(size.frames, " frames of ", size.columns, " x ", size.rows,
                                " pixels are too large"));
  }
  // Two canvases and a frame.
  size.scratch_bytes = 3 * frame + (1 << 17);
  GRADFLOW_ASSIGN_OR_RETURN(void* const output, memory(size));
  WebPAnimDecoder* const decoder = WebPAnimDecoderNew(&data, nullptr);
  if (decoder == nullptr) return Invalid("the animation cannot be decoded");
  const auto cleanup = absl::MakeCleanup([decoder] { WebPAnimDecoderDelete(decoder); });
  uint8_t* to = static_cast<uint8_t*>(output);
  for (int64_t i = 0; i < size.frames; ++i, to += frame) {
    if (stop != nullptr && stop->Check()) return StoppedError();
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
                        RunStop* stop) {
  const uint8_t* const data = reinterpret_cast<const uint8_t*>(bytes.data());
  WebPBitstreamFeatures features;
  if (WebPGetFeatures(data, bytes.size(), &features) != VP8_STATUS_OK) {
    return Invalid("the header cannot be read");
  }
  const int found = features.has_alpha != 0 || features.has_animation != 0 ? 4 : 3;
  if (channels != 0 && channels != found) {
    return errors::InvalidArgument("channels is ", channels, ", but the WebP data has ", found);
  }
  if (features.has_animation != 0) return DecodeAnimation(bytes, all_frames, memory, stop);
  ImageSize size;
  size.rows = features.height;
  size.columns = features.width;
  size.channels = found;
  const int64_t row = size.columns * found;
  if (row < 1 || size.rows < 1 || row >= kMaxImageElements / size.rows) {
    return Invalid("the image is too large");
  }
  // Lossless images are decoded to four bytes a pixel.
  size.scratch_bytes = 5 * size.rows * size.columns + (1 << 17);
  GRADFLOW_ASSIGN_OR_RETURN(void* const output, memory(size));
  uint8_t* const to = static_cast<uint8_t*>(output);
  const size_t total = static_cast<size_t>(row * size.rows);
  const uint8_t* const result =
      found == 4 ? WebPDecodeRGBAInto(data, bytes.size(), to, total, static_cast<int>(row))
                 : WebPDecodeRGBInto(data, bytes.size(), to, total, static_cast<int>(row));
  return result != nullptr ? absl::OkStatus() : Invalid("the image cannot be decoded");
}

}  // namespace gradflow::internal
