// DecodeWav and EncodeWav: WAV files with samples of 16 bits.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"

namespace gradflow::wav {
namespace {

constexpr int64_t kSampleBytes = 2;
constexpr uint32_t kPcm = 1;

// ---- DecodeWav ----

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

struct Wav {
  uint32_t channels = 0;
  uint32_t rate = 0;
  int64_t samples = 0;
  // The samples, one after the other; each has one number for each channel.
  absl::string_view data;
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
  uint32_t bytes_per_sample = 0;
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
  GRADFLOW_RETURN_IF_ERROR(reader->ReadNumber(4, &wav->rate));
  GRADFLOW_RETURN_IF_ERROR(reader->ReadNumber(4, &bytes_per_second));
  GRADFLOW_RETURN_IF_ERROR(reader->ReadNumber(2, &bytes_per_sample));
  GRADFLOW_RETURN_IF_ERROR(reader->ReadNumber(2, &bits));
  GRADFLOW_RETURN_IF_ERROR(ExpectNumber("number of bits of a sample", 8 * kSampleBytes, bits));
  GRADFLOW_RETURN_IF_ERROR(
      ExpectNumber("number of bytes of a sample", kSampleBytes * wav->channels, bytes_per_sample));
  GRADFLOW_RETURN_IF_ERROR(ExpectNumber("number of bytes of a second",
                                        uint64_t{bytes_per_sample} * wav->rate, bytes_per_second));
  if (size == kExtendedSize) reader->Skip(kExtendedSize - kFormatSize);
  return absl::OkStatus();
}

absl::Status ReadWav(absl::string_view bytes, Wav* wav) {
  WavReader reader(bytes);
  GRADFLOW_RETURN_IF_ERROR(ReadFormat(&reader, wav));
  bool has_data = false;
  while (!reader.done()) {
    absl::string_view chunk;
    uint32_t size = 0;
    GRADFLOW_RETURN_IF_ERROR(reader.Read(4, &chunk));
    GRADFLOW_RETURN_IF_ERROR(reader.ReadNumber(4, &size));
    if (size > std::numeric_limits<int32_t>::max()) {
      return errors::InvalidArgument("chunk '", errors::Printable(chunk), "' of the WAV file has ",
                                     size, " bytes, which are too many");
    }
    if (chunk != "data") {
      reader.Skip(size);
      continue;
    }
    if (has_data) return errors::InvalidArgument("the WAV file has more than one data chunk");
    has_data = true;
    const int64_t sample_bytes = kSampleBytes * int64_t{wav->channels};
    wav->samples = size / sample_bytes;
    GRADFLOW_RETURN_IF_ERROR(
        reader.Read(static_cast<size_t>(wav->samples * sample_bytes), &wav->data));
  }
  if (!has_data) return errors::InvalidArgument("the WAV file has no data chunk");
  return absl::OkStatus();
}

// Returns the attribute `name`, a size of the result or -1.
absl::StatusOr<int64_t> CheckDesired(const char* name, int64_t size) {
  if (size >= -1 && size <= std::numeric_limits<int32_t>::max()) return size;
  return errors::InvalidArgument(name, " must be -1 or the size of a dimension, but is ", size);
}

class DecodeKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("desired_channels", &channels_));
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("desired_samples", &samples_));
    GRADFLOW_RETURN_IF_ERROR(CheckDesired("desired_channels", channels_).status());
    return CheckDesired("desired_samples", samples_).status();
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(0, "contents"));
    if (ctx.input_dtype(0) != DT_STRING) {
      return errors::InvalidArgument("contents must be a string, but is ",
                                     DataTypeString(ctx.input_dtype(0)));
    }
    Wav wav;
    GRADFLOW_RETURN_IF_ERROR(ReadWav(ctx.input(0).span<tstring>()[0], &wav));
    const int64_t samples = samples_ < 0 ? wav.samples : samples_;
    const int64_t channels = channels_ < 0 ? wav.channels : channels_;
    Tensor* audio = nullptr;
    Tensor* rate = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {samples, channels}, &audio));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, {}, &rate));
    rate->span<int32_t>()[0] = static_cast<int32_t>(wav.rate);
    if (channels == 0) return absl::OkStatus();
    const auto out = audio->span<float>();
    ParallelFor(ctx, samples, BlockSizeForCost(2.0 * static_cast<double>(channels)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t s = begin; s < end; ++s) {
                    for (int64_t c = 0; c < channels; ++c) {
                      // The last channel is repeated, and the end is silent.
                      const int64_t from = std::min<int64_t>(c, wav.channels - 1);
                      out[s * channels + c] =
                          s < wav.samples ? Sample(wav.data, s * wav.channels + from) : 0.0f;
                    }
                  }
                });
    return absl::OkStatus();
  }

 private:
  static float Sample(absl::string_view data, int64_t i) {
    const auto low = static_cast<uint8_t>(data[kSampleBytes * i]);
    const auto high = static_cast<uint8_t>(data[kSampleBytes * i + 1]);
    constexpr float kScale = 1.0f / (1 << 15);
    return static_cast<float>(static_cast<int16_t>(high << 8 | low)) * kScale;
  }

  int64_t channels_ = -1;
  int64_t samples_ = -1;
};

absl::Status DecodeShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 0));
  int64_t channels = -1;
  int64_t samples = -1;
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("desired_channels", &channels));
  GRADFLOW_RETURN_IF_ERROR(c.GetAttr("desired_samples", &samples));
  GRADFLOW_RETURN_IF_ERROR(CheckDesired("desired_channels", channels).status());
  GRADFLOW_RETURN_IF_ERROR(CheckDesired("desired_samples", samples).status());
  c.set_output(0, PartialTensorShape({samples, channels}));
  c.set_output(1, TensorShape());
  return absl::OkStatus();
}

// ---- EncodeWav ----

void AppendNumber(size_t size, uint64_t value, tstring* text) {
  for (size_t i = 0; i < size; ++i) text->push_back(static_cast<char>(value >> (8 * i) & 0xff));
}

absl::Status Encode(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "audio", 2));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t rate, ctx.ScalarInt(1, "sample_rate"));
  const Tensor& audio = ctx.input(0);
  if (audio.dtype() != DT_FLOAT) {
    return errors::InvalidArgument("audio must be float, but is ", DataTypeString(audio.dtype()));
  }
  if (rate <= 0) return errors::InvalidArgument("sample_rate must be positive, but is ", rate);
  const int64_t channels = audio.dim_size(1);
  if (channels == 0 || channels > std::numeric_limits<uint16_t>::max()) {
    return errors::InvalidArgument("audio must have 1 to 65535 channels, but has ", channels);
  }
  constexpr int64_t kHeaderBytes = 44;
  if (audio.NumElements() > (std::numeric_limits<int32_t>::max() - kHeaderBytes) / kSampleBytes) {
    return errors::InvalidArgument("audio has ", audio.NumElements(),
                                   " elements, which are too many for a WAV file");
  }
  const int64_t data_bytes = audio.NumElements() * kSampleBytes;
  ctx.ExpectStringBytes(static_cast<double>(kHeaderBytes + data_bytes));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {}, &output));
  tstring& file = output->span<tstring>()[0];
  file.reserve(static_cast<size_t>(kHeaderBytes + data_bytes));
  file.append("RIFF");
  AppendNumber(4, static_cast<uint64_t>(kHeaderBytes + data_bytes - 8), &file);
  file.append("WAVEfmt ");
  AppendNumber(4, 16, &file);
  AppendNumber(2, kPcm, &file);
  AppendNumber(2, static_cast<uint64_t>(channels), &file);
  AppendNumber(4, static_cast<uint64_t>(rate), &file);
  AppendNumber(4, static_cast<uint64_t>(rate * channels * kSampleBytes), &file);
  AppendNumber(2, static_cast<uint64_t>(channels * kSampleBytes), &file);
  AppendNumber(2, 8 * kSampleBytes, &file);
  file.append("data");
  AppendNumber(4, static_cast<uint64_t>(data_bytes), &file);
  file.resize(static_cast<size_t>(kHeaderBytes + data_bytes));
  char* const data = &file[kHeaderBytes];
  const auto samples = audio.span<float>();
  ParallelFor(ctx, audio.NumElements(), BlockSizeForCost(2), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float scaled = std::round(samples[i] * static_cast<float>(1 << 15));
      // NaN becomes silence.
      const float sample = std::isnan(scaled) ? 0.0f : std::clamp(scaled, -32768.0f, 32767.0f);
      const auto bits = static_cast<uint16_t>(static_cast<int16_t>(sample));
      data[kSampleBytes * i] = static_cast<char>(bits & 0xff);
      data[kSampleBytes * i + 1] = static_cast<char>(bits >> 8);
    }
  });
  return absl::OkStatus();
}

absl::Status EncodeShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 2));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 0));
  return ScalarShape(c);
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("DecodeWav")
      .Group("audio_ops")
      .HandWritten()
      .Input("contents: string")
      .Output("audio: float")
      .Output("sample_rate: int32")
      .Attr("desired_channels: int = -1")
      .Attr("desired_samples: int = -1")
      .Shape(DecodeShape)
      .Doc(R"(Reads the samples of a WAV file with samples of 16 bits.

contents: The bytes of the file, a scalar.
audio: The samples in [-1, 1), of shape [samples, channels].
sample_rate: The number of samples per second, a scalar.
desired_channels: The number of channels of the result; -1 for those of the file. Further channels
  repeat the last one.
desired_samples: The number of samples of the result; -1 for those of the file. Further samples are
  0.)");
  registry.Kernel("DecodeWav", MakeKernel<DecodeKernel>);
  registry.Op("EncodeWav")
      .Group("audio_ops")
      .HandWritten()
      .Input("audio: float")
      .Input("sample_rate: int32")
      .Output("contents: string")
      .Shape(EncodeShape)
      .Doc(R"(Makes a WAV file with samples of 16 bits.

audio: The samples, of shape [samples, channels]. Numbers outside of [-1, 1) are clamped.
sample_rate: The number of samples per second, a scalar.
contents: The bytes of the file, a scalar.)");
  registry.Kernel("EncodeWav", MakeFunctionKernel<Encode>);
}

}  // namespace gradflow::wav
