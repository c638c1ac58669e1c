#include "gradflow/io/wav.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <limits>

#include "gradflow/core/status.h"

namespace gradflow {
namespace {

constexpr uint32_t kPcm = 1;
constexpr uint32_t kSampleBits = 8 * kWavSampleBytes;

// Reads the parts of a file.
class WavReader {
 public:
  // `bytes` must outlive the reader and the views that it returns.
  explicit WavReader(absl::string_view bytes) : bytes_(bytes) {}

  bool done() const { return bytes_.empty(); }

  absl::Status Read(size_t size, absl::string_view* part) {
    if (size > bytes_.size()) {
      return errors::InvalidArgument("the WAV file ends within ", size, " bytes");
    }
    *part = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return absl::OkStatus();
  }
  absl::Status ReadNumber(size_t size, uint32_t* value) {
    absl::string_view part;
    GRADFLOW_RETURN_IF_ERROR(Read(size, &part));
    *value = 0;
    for (size_t i = size; i > 0; --i) *value = *value << 8 | static_cast<uint8_t>(part[i - 1]);
    return absl::OkStatus();
  }
  absl::Status Expect(absl::string_view text) {
    absl::string_view part;
    GRADFLOW_RETURN_IF_ERROR(Read(text.size(), &part));
    if (part == text) return absl::OkStatus();
    return errors::InvalidArgument("expected '", text, "' in the header of a WAV file, but found '",
                                   errors::Printable(part), "'");
  }
  // Skips `size` bytes, or all that are left.
  void Skip(size_t size) { bytes_.remove_prefix(std::min(size, bytes_.size())); }

 private:
  absl::string_view bytes_;
};

absl::Status ExpectNumber(absl::string_view name, uint64_t expected, uint64_t found) {
  if (found == expected) return absl::OkStatus();
  return errors::InvalidArgument("the ", name, " in the header of a WAV file must be ", expected,
                                 ", but is ", found);
}

absl::Status ReadFormat(WavReader* reader, Wav* wav) {
  GRADFLOW_RETURN_IF_ERROR(reader->Expect("RIFF"));
  uint32_t size = 0;
  GRADFLOW_RETURN_IF_ERROR(reader->ReadNumber(4, &size));
  GRADFLOW_RETURN_IF_ERROR(reader->Expect("WAVE"));
  absl::string_view chunk;
  GRADFLOW_RETURN_IF_ERROR(reader->Read(4, &chunk));
  // Other chunks may come before the format.
  while (chunk != "fmt ") {
    constexpr absl::string_view kSkipped[] = {"JUNK", "bext", "iXML", "qlty",
                                              "mext", "levl", "link", "axml"};
    if (std::find(std::begin(kSkipped), std::end(kSkipped), chunk) == std::end(kSkipped)) {
      return errors::InvalidArgument("unexpected chunk '", errors::Printable(chunk),
                                     "' in the header of a WAV file");
    }
    absl::string_view skipped;
    GRADFLOW_RETURN_IF_ERROR(reader->ReadNumber(4, &size));
    GRADFLOW_RETURN_IF_ERROR(reader->Read(size, &skipped));
    GRADFLOW_RETURN_IF_ERROR(reader->Read(4, &chunk));
  }
  uint32_t code = 0;
  uint32_t bytes_per_second = 0;
  uint32_t bytes_per_frame = 0;
  uint32_t bits = 0;
  GRADFLOW_RETURN_IF_ERROR(reader->ReadNumber(4, &size));
  constexpr uint32_t kFormatSize = 16;
  constexpr uint32_t kExtendedSize = 18;
  if (size != kExtendedSize) {
    GRADFLOW_RETURN_IF_ERROR(ExpectNumber("size of the format", kFormatSize, size));
  }
  GRADFLOW_RETURN_IF_ERROR(reader->ReadNumber(2, &code));
  GRADFLOW_RETURN_IF_ERROR(ExpectNumber("audio format", kPcm, code));
  GRADFLOW_RETURN_IF_ERROR(reader->ReadNumber(2, &wav->channels));
  if (wav->channels == 0) return errors::InvalidArgument("the WAV file has no channels");
  GRADFLOW_RETURN_IF_ERROR(reader->ReadNumber(4, &wav->sample_rate));
  GRADFLOW_RETURN_IF_ERROR(reader->ReadNumber(4, &bytes_per_second));
  GRADFLOW_RETURN_IF_ERROR(reader->ReadNumber(2, &bytes_per_frame));
  GRADFLOW_RETURN_IF_ERROR(reader->ReadNumber(2, &bits));
  GRADFLOW_RETURN_IF_ERROR(ExpectNumber("number of bits of a sample", kSampleBits, bits));
  GRADFLOW_RETURN_IF_ERROR(ExpectNumber(
      "number of bytes of a frame", kWavSampleBytes * uint64_t{wav->channels}, bytes_per_frame));
  GRADFLOW_RETURN_IF_ERROR(ExpectNumber("number of bytes of a second",
                                        uint64_t{bytes_per_frame} * wav->sample_rate,
                                        bytes_per_second));
  if (size == kExtendedSize) reader->Skip(kExtendedSize - kFormatSize);
  return absl::OkStatus();
}

// Writes `value` in the next `size` bytes of `*to`, the lowest byte first.
void WriteNumber(size_t size, int64_t value, char** to) {
  for (size_t i = 0; i < size; ++i) *(*to)++ = static_cast<char>(value >> (8 * i) & 0xff);
}

void WriteText(absl::string_view text, char** to) {
  std::memcpy(*to, text.data(), text.size());
  *to += text.size();
}

}  // namespace

absl::StatusOr<Wav> ReadWav(absl::string_view bytes) {
  Wav wav;
  WavReader reader(bytes);
  GRADFLOW_RETURN_IF_ERROR(ReadFormat(&reader, &wav));
  bool has_data = false;
  while (!reader.done()) {
    absl::string_view chunk;
    uint32_t size = 0;
    GRADFLOW_RETURN_IF_ERROR(reader.Read(4, &chunk));
    GRADFLOW_RETURN_IF_ERROR(reader.ReadNumber(4, &size));
    if (size > std::numeric_limits<int32_t>::max()) {
      return errors::InvalidArgument("chunk '", errors::Printable(chunk),
                                     "' of the WAV file is too large: ", size, " bytes");
    }
    if (chunk != "data") {
      reader.Skip(size);
      continue;
    }
    if (has_data) return errors::InvalidArgument("the WAV file has more than one data chunk");
    has_data = true;
    const int64_t frame_bytes = kWavSampleBytes * int64_t{wav.channels};
    wav.frames = size / frame_bytes;
    GRADFLOW_RETURN_IF_ERROR(reader.Read(static_cast<size_t>(wav.frames * frame_bytes), &wav.data));
  }
  if (!has_data) return errors::InvalidArgument("the WAV file has no data chunk");
  return wav;
}

absl::Status WriteWavHeader(int64_t frames, int64_t channels, int64_t sample_rate, char* header) {
  constexpr int64_t kMost16 = std::numeric_limits<uint16_t>::max();
  constexpr int64_t kMost32 = std::numeric_limits<uint32_t>::max();
  if (channels < 1 || channels > kMost16 / kWavSampleBytes) {
    return errors::InvalidArgument("a WAV file must have 1 to ", kMost16 / kWavSampleBytes,
                                   " channels, but has ", channels);
  }
  const int64_t frame_bytes = channels * kWavSampleBytes;
  if (sample_rate < 1 || sample_rate > kMost32 / frame_bytes) {
    return errors::InvalidArgument("the sample rate of a WAV file with ", channels,
                                   " channels must be 1 to ", kMost32 / frame_bytes, ", but is ",
                                   sample_rate);
  }
  // Readers refuse chunks of 2^31 bytes and more.
  const int64_t most_frames = (std::numeric_limits<int32_t>::max() - kWavHeaderBytes) / frame_bytes;
  if (frames < 0 || frames > most_frames) {
    return errors::InvalidArgument("a WAV file with ", channels, " channels must have 0 to ",
                                   most_frames, " frames, but has ", frames);
  }
  const int64_t data_bytes = frames * frame_bytes;
  WriteText("RIFF", &header);
  WriteNumber(4, kWavHeaderBytes + data_bytes - 8, &header);
  WriteText("WAVEfmt ", &header);
  WriteNumber(4, 16, &header);
  WriteNumber(2, kPcm, &header);
  WriteNumber(2, channels, &header);
  WriteNumber(4, sample_rate, &header);
  WriteNumber(4, sample_rate * frame_bytes, &header);
  WriteNumber(2, frame_bytes, &header);
  WriteNumber(2, kSampleBits, &header);
  WriteText("data", &header);
  WriteNumber(4, data_bytes, &header);
  return absl::OkStatus();
}

void WriteWavSamples(absl::Span<const float> samples, char* to) {
  for (const float sample : samples) {
    const float scaled = std::round(sample * static_cast<float>(1 << 15));
    const float clamped = std::isnan(scaled) ? 0.0f : std::clamp(scaled, -32768.0f, 32767.0f);
    WriteNumber(kWavSampleBytes, static_cast<int16_t>(clamped), &to);
  }
}

}  // namespace gradflow
