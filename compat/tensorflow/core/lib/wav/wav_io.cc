#include "tensorflow/core/lib/wav/wav_io.h"

#include <algorithm>
#include <limits>

#include "gradflow/core/status.h"
#include "gradflow/io/wav.h"

namespace tensorflow {
namespace wav {

absl::Status EncodeAudioAsS16LEWav(const float* audio, size_t sample_rate, size_t num_channels,
                                   size_t num_frames, std::string* wav_string) {
  if (wav_string == nullptr) return errors::InvalidArgument("wav_string is null");
  if (audio == nullptr && num_frames > 0) return errors::InvalidArgument("audio is null");
  const auto number = [](size_t size) {
    constexpr size_t kMost = std::numeric_limits<int64_t>::max();
    return static_cast<int64_t>(size < kMost ? size : kMost);
  };
  char header[gradflow::kWavHeaderBytes];
  GRADFLOW_RETURN_IF_ERROR(gradflow::WriteWavHeader(number(num_frames), number(num_channels),
                                                    number(sample_rate), header));
  const size_t samples = num_frames * num_channels;
  wav_string->assign(header, sizeof(header));
  wav_string->resize(sizeof(header) + samples * gradflow::kWavSampleBytes);
  gradflow::WriteWavSamples({audio, samples}, &(*wav_string)[sizeof(header)]);
  return absl::OkStatus();
}

absl::Status DecodeLin16WaveAsFloatVector(const std::string& wav_string,
                                          std::vector<float>* float_values, uint32* sample_count,
                                          uint16* channel_count, uint32* sample_rate) {
  GRADFLOW_ASSIGN_OR_RETURN(const gradflow::Wav wav, gradflow::ReadWav(wav_string));
  const int64_t samples = wav.frames * wav.channels;
  float_values->resize(static_cast<size_t>(samples));
  for (int64_t i = 0; i < samples; ++i) (*float_values)[static_cast<size_t>(i)] = wav.sample(i);
  *sample_count = static_cast<uint32>(wav.frames);
  *channel_count = static_cast<uint16>(wav.channels);
  *sample_rate = wav.sample_rate;
  return absl::OkStatus();
}

absl::Status IncrementOffset(int old_offset, int64_t increment, size_t max_size, int* new_offset) {
  const auto most =
      static_cast<int64_t>(std::min<size_t>(max_size, std::numeric_limits<int>::max()));
  if (old_offset < 0 || increment < 0 || old_offset > most || increment > most - old_offset) {
    return errors::InvalidArgument("cannot move ", increment, " bytes from place ", old_offset,
                                   " of ", max_size, " bytes");
  }
  *new_offset = static_cast<int>(old_offset + increment);
  return absl::OkStatus();
}

absl::Status ExpectText(const std::string& data, const std::string& expected_text, int* offset) {
  const int before = *offset;
  std::string found;
  TF_RETURN_IF_ERROR(ReadString(data, static_cast<int>(expected_text.size()), &found, offset));
  if (found == expected_text) return absl::OkStatus();
  *offset = before;
  return errors::InvalidArgument("expected '", expected_text, "', but found '",
                                 gradflow::errors::Printable(found), "'");
}

absl::Status ReadString(const std::string& data, int expected_length, std::string* value,
                        int* offset) {
  int end = 0;
  TF_RETURN_IF_ERROR(IncrementOffset(*offset, expected_length, data.size(), &end));
  value->assign(data, static_cast<size_t>(*offset), static_cast<size_t>(expected_length));
  *offset = end;
  return absl::OkStatus();
}

}  // namespace wav
}  // namespace tensorflow
