// DecodeWav and EncodeWav: WAV files with samples of 16 bits.
#include "gradflow/io/wav.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"

namespace gradflow::wav {
namespace {

// ---- DecodeWav ----

struct DecodeAttributes {
  template <typename Attributes>
  absl::Status Init(const Attributes& attributes) {
    GRADFLOW_RETURN_IF_ERROR(ReadSize(attributes, "desired_channels", &channels));
    return ReadSize(attributes, "desired_samples", &samples);
  }

  // Reads a size of the result, or -1.
  template <typename Attributes>
  static absl::Status ReadSize(const Attributes& attributes, const char* name, int64_t* size) {
    GRADFLOW_RETURN_IF_ERROR(attributes.GetAttr(name, size));
    if (*size >= -1 && *size <= std::numeric_limits<int32_t>::max()) return absl::OkStatus();
    return errors::InvalidArgument(name, " must be -1 or the size of a dimension, but is ", *size);
  }

  int64_t channels = -1;
  int64_t samples = -1;
};

class DecodeKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return attributes_.Init(construction);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckScalar(0, "contents"));
    if (ctx.input_dtype(0) != DT_STRING) {
      return errors::InvalidArgument("contents must be a string, but is ",
                                     DataTypeString(ctx.input_dtype(0)));
    }
    GRADFLOW_ASSIGN_OR_RETURN(const Wav wav, ReadWav(ctx.input(0).span<tstring>()[0]));
    const int64_t samples = attributes_.samples < 0 ? wav.frames : attributes_.samples;
    const int64_t channels = attributes_.channels < 0 ? wav.channels : attributes_.channels;
    Tensor* audio = nullptr;
    Tensor* rate = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {samples, channels}, &audio));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(1, {}, &rate));
    rate->span<int32_t>()[0] = static_cast<int32_t>(wav.sample_rate);
    if (channels == 0) return absl::OkStatus();
    const auto out = audio->span<float>();
    ParallelFor(ctx, samples, BlockSizeForCost(2.0 * static_cast<double>(channels)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t s = begin; s < end; ++s) {
                    for (int64_t c = 0; c < channels; ++c) {
                      // The last channel is repeated, and the end is silent.
                      const int64_t from = std::min<int64_t>(c, wav.channels - 1);
                      out[s * channels + c] =
                          s < wav.frames ? wav.sample(s * wav.channels + from) : 0.0f;
                    }
                  }
                });
    return absl::OkStatus();
  }

 private:
  DecodeAttributes attributes_;
};

absl::Status DecodeShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 0));
  DecodeAttributes attributes;
  GRADFLOW_RETURN_IF_ERROR(attributes.Init(c));
  c.set_output(0, PartialTensorShape({attributes.samples, attributes.channels}));
  c.set_output(1, TensorShape());
  return absl::OkStatus();
}

// ---- EncodeWav ----

absl::Status Encode(KernelContext& ctx) {
  GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "audio", 2));
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t rate, ctx.ScalarInt(1, "sample_rate"));
  const Tensor& audio = ctx.input(0);
  if (audio.dtype() != DT_FLOAT) {
    return errors::InvalidArgument("audio must be float, but is ", DataTypeString(audio.dtype()));
  }
  if (rate <= 0) return errors::InvalidArgument("sample_rate must be positive, but is ", rate);
  char header[kWavHeaderBytes];
  GRADFLOW_RETURN_IF_ERROR(WriteWavHeader(audio.dim_size(0), audio.dim_size(1), rate, header));
  const int64_t file_bytes = kWavHeaderBytes + audio.NumElements() * kWavSampleBytes;
  ctx.ExpectStringBytes(static_cast<double>(file_bytes));
  Tensor* output = nullptr;
  GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {}, &output));
  tstring& file = output->span<tstring>()[0];
  file.resize(static_cast<size_t>(file_bytes));
  std::copy(std::begin(header), std::end(header), file.begin());
  char* const data = &file[kWavHeaderBytes];
  const auto samples = audio.span<float>();
  ParallelFor(ctx, audio.NumElements(), BlockSizeForCost(2), [&](int64_t begin, int64_t end) {
    WriteWavSamples(samples.subspan(begin, end - begin), data + begin * kWavSampleBytes);
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
