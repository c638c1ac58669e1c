// Reads and writes WAV files over gradflow/io/wav.h.
#ifndef GRADFLOW_COMPAT_CORE_LIB_WAV_WAV_IO_H_
#define GRADFLOW_COMPAT_CORE_LIB_WAV_WAV_IO_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "tensorflow/core/lib/core/coding.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/lib/core/status.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {
namespace wav {

// Stores a file with `num_frames` frames of `num_channels` samples, which follow each other in
// `audio`. Returns INVALID_ARGUMENT for null pointers, and for numbers that do not fit the file's
// header.
absl::Status EncodeAudioAsS16LEWav(const float* audio, size_t sample_rate, size_t num_channels,
                                   size_t num_frames, std::string* wav_string);

// Stores the samples of a file, in [-1, 1), and the numbers of its header. `sample_count` is the
// number of frames.
absl::Status DecodeLin16WaveAsFloatVector(const std::string& wav_string,
                                          std::vector<float>* float_values, uint32* sample_count,
                                          uint16* channel_count, uint32* sample_rate);

// The functions below read parts of `data` from *offset on, and move *offset behind the part. They
// return INVALID_ARGUMENT if the data end before.

// Stores old_offset + increment. Returns INVALID_ARGUMENT if it is not in [0, max_size].
absl::Status IncrementOffset(int old_offset, int64_t increment, size_t max_size, int* new_offset);
absl::Status ExpectText(const std::string& data, const std::string& expected_text, int* offset);
absl::Status ReadString(const std::string& data, int expected_length, std::string* value,
                        int* offset);

// Reads a number whose lowest byte is first.
template <class T>
absl::Status ReadValue(const std::string& data, T* value, int* offset) {
  std::string bytes;
  TF_RETURN_IF_ERROR(ReadString(data, sizeof(T), &bytes, offset));
  std::make_unsigned_t<T> bits = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    bits = static_cast<std::make_unsigned_t<T>>(
        bits | static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i));
  }
  *value = static_cast<T>(bits);
  return absl::OkStatus();
}

}  // namespace wav
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_WAV_WAV_IO_H_
