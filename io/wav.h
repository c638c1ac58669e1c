// WAV files: sounds with samples of 16 bits, without compression.
//
// A frame has a sample for each channel. The frames of a file follow each other.
//
// Thread safety: the functions may be called from any thread.
#ifndef GRADFLOW_IO_WAV_H_
#define GRADFLOW_IO_WAV_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#pragma GCC visibility push(default)
namespace gradflow {

// The sizes of a sample and of the header that WriteWavHeader() writes.
inline constexpr int64_t kWavSampleBytes = 2;
inline constexpr int64_t kWavHeaderBytes = 44;

// The samples of a WAV file, 16-bit PCM.
struct Wav {
  // The number of samples of a frame.
  uint32_t channels = 0;
  // The number of frames per second.
  uint32_t sample_rate = 0;
  // The number of frames.
  int64_t frames = 0;
  // The samples as bytes, in the file that was read.
  absl::string_view data;

  // Returns sample `i` as a number in [-1, 1). REQUIRES: 0 <= i < frames * channels
  float sample(int64_t i) const {
    const auto low = static_cast<uint8_t>(data[kWavSampleBytes * i]);
    const auto high = static_cast<uint8_t>(data[kWavSampleBytes * i + 1]);
    constexpr float kScale = 1.0f / (1 << 15);
    return static_cast<float>(static_cast<int16_t>(high << 8 | low)) * kScale;
  }
};

// Reads a file. The result refers to `bytes`. Returns INVALID_ARGUMENT if the file is not valid, or
// has other samples.
absl::StatusOr<Wav> ReadWav(absl::string_view bytes);

// Writes the kWavHeaderBytes of a header to `header`. Samples of `frames` frames must follow.
// Returns INVALID_ARGUMENT if a number does not fit a field of the header.
absl::Status WriteWavHeader(int64_t frames, int64_t channels, int64_t sample_rate, char* header);

// Writes samples, kWavSampleBytes for each, to `to`. Numbers outside of [-1, 1) are clamped, and
// NaN becomes 0.
void WriteWavSamples(absl::Span<const float> samples, char* to);

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_IO_WAV_H_
