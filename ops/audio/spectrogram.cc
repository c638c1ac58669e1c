// AudioSpectrogram and Mfcc.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "gradflow/core/op_kernel.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/core/stop_token.h"
#include "gradflow/ops/common/first_error.h"
#include "gradflow/ops/math/fourier.h"

namespace gradflow::spectrogram {
namespace {

constexpr double kPi = 3.14159265358979323846;

// ---- AudioSpectrogram ----

struct Windows {
  template <typename Attributes>
  absl::Status Init(const Attributes& attributes) {
    GRADFLOW_RETURN_IF_ERROR(attributes.GetAttr("window_size", &size));
    GRADFLOW_RETURN_IF_ERROR(attributes.GetAttr("stride", &stride));
    constexpr int64_t kMost = int64_t{1} << 30;
    if (size < 2 || size > kMost) {
      return errors::InvalidArgument("window_size must be in [2, 2^30], but is ", size);
    }
    if (stride < 1 || stride > std::numeric_limits<int32_t>::max()) {
      return errors::InvalidArgument("stride must be positive and fit int32, but is ", stride);
    }
    transform_size = 2;
    while (transform_size < size) transform_size *= 2;
    return absl::OkStatus();
  }
  // Returns the number of windows that fit.
  int64_t Count(int64_t samples) const {
    return samples < size ? 0 : 1 + (samples - size) / stride;
  }
  // Returns the number of frequencies.
  int64_t bins() const { return 1 + transform_size / 2; }

  int64_t size = 0;
  int64_t stride = 0;
  // A power of 2. Windows are padded with zeros.
  int64_t transform_size = 0;
};

class SpectrogramKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    GRADFLOW_RETURN_IF_ERROR(construction.GetAttr("magnitude_squared", &squared_));
    return windows_.Init(construction);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "input", 2));
    const Tensor& input = ctx.input(0);
    if (input.dtype() != DT_FLOAT) {
      return errors::InvalidArgument("input must be float, but is ", DataTypeString(input.dtype()));
    }
    const int64_t channels = input.dim_size(1);
    const int64_t count = windows_.Count(input.dim_size(0));
    const int64_t bins = windows_.bins();
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(0, {channels, count, bins}, &output));
    if (output->NumElements() == 0) return absl::OkStatus();
    GRADFLOW_ASSIGN_OR_RETURN(const auto plan,
                              RealFourierPlan::Cached(ctx.run(), windows_.transform_size));
    Tensor window;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_DOUBLE, {windows_.size}, &window));
    const auto weights = window.span<double>();
    for (int64_t i = 0; i < windows_.size; ++i) {
      weights[i] = 0.5 - 0.5 * std::cos(2 * kPi * static_cast<double>(i) /
                                        static_cast<double>(windows_.size));
    }
    const auto samples = input.span<float>();
    const auto out = output->span<float>();
    FirstError error;
    const double cost = plan->Operations() + 10.0 * static_cast<double>(windows_.size);
    ParallelFor(ctx, channels * count, BlockSizeForCost(cost), [&](int64_t begin, int64_t end) {
      absl::StatusOr<Tensor> scratch =
          Tensor::Allocate(ctx.allocator(), DT_COMPLEX128, {bins + plan->scratch_size()});
      if (!scratch.ok()) return error.Found(begin, scratch.status());
      complex128* const data = scratch->span<complex128>().data();
      for (int64_t w = begin; w < end && !ctx.ShouldStop(); ++w) {
        const float* const in = samples.data() + w % count * windows_.stride * channels + w / count;
        const auto sample = [&](int64_t i) {
          return i < windows_.size ? double{in[i * channels]} * weights[i] : 0.0;
        };
        for (int64_t i = 0; i < bins - 1; ++i) data[i] = {sample(2 * i), sample(2 * i + 1)};
        plan->FromReal(ctx.run(), data, data + bins);
        for (int64_t k = 0; k < bins; ++k) {
          const auto power = static_cast<float>(std::norm(data[k]));
          out[w * bins + k] = squared_ ? power : std::sqrt(power);
        }
      }
    });
    return error.status();
  }

 private:
  bool squared_ = false;
  Windows windows_;
};

absl::Status SpectrogramShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 2));
  Windows windows;
  GRADFLOW_RETURN_IF_ERROR(windows.Init(c));
  const int64_t samples = c.Dim(0, 0);
  c.set_output(0, PartialTensorShape(
                      {c.Dim(0, 1), samples < 0 ? -1 : windows.Count(samples), windows.bins()}));
  return absl::OkStatus();
}

// ---- Mfcc ----

double Mel(double hertz) { return 1127.0 * std::log1p(hertz / 700.0); }

// Filters that are triangles of equal width in mels. Each frequency belongs to the falling side of
// a channel, and to the rising side of the next channel.
struct MelFilters {
  int64_t channels = 0;
  // The frequencies [first, last] count.
  int64_t first = 0;
  int64_t last = -1;
  // The channel of the falling side, from -1 on, and the part that the channel gets.
  Tensor channel_of;
  Tensor weight_of;
};

struct MfccAttributes {
  template <typename Attributes>
  absl::Status Init(const Attributes& attributes) {
    GRADFLOW_RETURN_IF_ERROR(attributes.GetAttr("upper_frequency_limit", &upper));
    GRADFLOW_RETURN_IF_ERROR(attributes.GetAttr("lower_frequency_limit", &lower));
    GRADFLOW_RETURN_IF_ERROR(attributes.GetAttr("filterbank_channel_count", &channels));
    GRADFLOW_RETURN_IF_ERROR(attributes.GetAttr("dct_coefficient_count", &coefficients));
    if (!(lower >= 0 && upper > lower)) {
      return errors::InvalidArgument(
          "expected 0 <= lower_frequency_limit < upper_frequency_limit, but they are ", lower,
          " and ", upper);
    }
    if (coefficients < 1 || coefficients > channels ||
        channels >= std::numeric_limits<int32_t>::max()) {
      return errors::InvalidArgument(
          "expected 1 <= dct_coefficient_count <= filterbank_channel_count, but they are ",
          coefficients, " and ", channels);
    }
    return absl::OkStatus();
  }

  // Of the frequencies, in Hz.
  float upper = 4000;
  float lower = 20;
  int64_t channels = 40;
  int64_t coefficients = 13;
};

class MfccKernel final : public OpKernel {
 public:
  absl::Status Init(const KernelConstruction& construction) {
    return attributes_.Init(construction);
  }

  absl::Status Compute(KernelContext& ctx) const override {
    GRADFLOW_RETURN_IF_ERROR(ctx.CheckRank(0, "spectrogram", 3));
    GRADFLOW_ASSIGN_OR_RETURN(const int64_t rate, ctx.ScalarInt(1, "sample_rate"));
    const Tensor& input = ctx.input(0);
    if (input.dtype() != DT_FLOAT) {
      return errors::InvalidArgument("spectrogram must be float, but is ",
                                     DataTypeString(input.dtype()));
    }
    if (rate <= 0) return errors::InvalidArgument("sample_rate must be positive, but is ", rate);
    const int64_t bins = input.dim_size(2);
    if (bins < 2) {
      return errors::InvalidArgument("spectrogram must have at least 2 frequencies, but has ",
                                     bins);
    }
    Tensor* output = nullptr;
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateOutput(
        0, {input.dim_size(0), input.dim_size(1), attributes_.coefficients}, &output));
    MelFilters filters;
    GRADFLOW_RETURN_IF_ERROR(MakeFilters(ctx, rate, bins, &filters));
    // [coefficients, channels]
    Tensor cosines;
    GRADFLOW_RETURN_IF_ERROR(
        ctx.AllocateTemp(DT_DOUBLE, {attributes_.coefficients, attributes_.channels}, &cosines));
    const auto cosine = cosines.span<double>();
    const double norm = std::sqrt(2.0 / static_cast<double>(attributes_.channels));
    ParallelFor(ctx, attributes_.coefficients,
                BlockSizeForCost(30 * static_cast<double>(attributes_.channels)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    const double angle =
                        static_cast<double>(i) * kPi / static_cast<double>(attributes_.channels);
                    for (int64_t j = 0; j < attributes_.channels; ++j) {
                      cosine[i * attributes_.channels + j] =
                          norm * std::cos(angle * (static_cast<double>(j) + 0.5));
                    }
                  }
                });
    if (ctx.ShouldStop()) return StoppedError();
    const auto in = input.span<float>();
    const auto out = output->span<float>();
    const double cost =
        5.0 * static_cast<double>(bins) + static_cast<double>(attributes_.channels) *
                                              (20 + static_cast<double>(attributes_.coefficients));
    FirstError error;
    ParallelFor(ctx, input.dim_size(0) * input.dim_size(1), BlockSizeForCost(cost),
                [&](int64_t begin, int64_t end) {
                  absl::StatusOr<Tensor> scratch =
                      Tensor::Allocate(ctx.allocator(), DT_DOUBLE, {attributes_.channels});
                  if (!scratch.ok()) return error.Found(begin, scratch.status());
                  const auto mels = scratch->span<double>();
                  for (int64_t f = begin; f < end && !ctx.ShouldStop(); ++f) {
                    float* const to = &out[f * attributes_.coefficients];
                    // TensorFlow's result if the upper limit is above all frequencies.
                    if (filters.last >= bins) {
                      std::fill(to, to + attributes_.coefficients, 0.0f);
                      continue;
                    }
                    LogMels(filters, &in[f * bins], mels);
                    for (int64_t i = 0; i < attributes_.coefficients; ++i) {
                      double sum = 0;
                      for (int64_t j = 0; j < attributes_.channels; ++j) {
                        sum += cosine[i * attributes_.channels + j] * mels[j];
                      }
                      to[i] = static_cast<float>(sum);
                    }
                  }
                });
    return error.status();
  }

 private:
  absl::Status MakeFilters(KernelContext& ctx, int64_t rate, int64_t bins,
                           MelFilters* filters) const {
    // The centers of the channels, and the end of the last channel.
    Tensor center_tensor;
    GRADFLOW_RETURN_IF_ERROR(
        ctx.AllocateTemp(DT_DOUBLE, {attributes_.channels + 1}, &center_tensor));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_INT32, {bins}, &filters->channel_of));
    GRADFLOW_RETURN_IF_ERROR(ctx.AllocateTemp(DT_DOUBLE, {bins}, &filters->weight_of));
    const auto centers = center_tensor.span<double>();
    const auto channel_of = filters->channel_of.span<int32_t>();
    const auto weight_of = filters->weight_of.span<double>();
    const double low = Mel(double{attributes_.lower});
    const double spacing =
        (Mel(double{attributes_.upper}) - low) / static_cast<double>(attributes_.channels + 1);
    for (int64_t c = 0; c <= attributes_.channels; ++c) {
      centers[c] = low + spacing * static_cast<double>(c + 1);
    }
    // The first frequency, a constant, never counts.
    const double hertz_per_bin = 0.5 * static_cast<double>(rate) / static_cast<double>(bins - 1);
    const auto index = [bins](double bin) {
      return static_cast<int64_t>(std::min(bin, static_cast<double>(bins)));
    };
    filters->channels = attributes_.channels;
    filters->first = index(1.5 + double{attributes_.lower} / hertz_per_bin);
    filters->last = index(double{attributes_.upper} / hertz_per_bin);
    int64_t channel = 0;
    for (int64_t i = filters->first; i <= std::min(filters->last, bins - 1); ++i) {
      const double mel = Mel(static_cast<double>(i) * hertz_per_bin);
      while (channel < attributes_.channels && centers[channel] < mel) ++channel;
      channel_of[i] = static_cast<int32_t>(channel - 1);
      const double begin = channel == 0 ? low : centers[channel - 1];
      weight_of[i] = (centers[channel] - mel) / (centers[channel] - begin);
    }
    return absl::OkStatus();
  }

  static void LogMels(const MelFilters& filters, const float* powers, absl::Span<double> mels) {
    std::fill(mels.begin(), mels.end(), 0.0);
    const auto channel_of = filters.channel_of.span<int32_t>();
    const auto weight_of = filters.weight_of.span<double>();
    for (int64_t i = filters.first; i <= filters.last; ++i) {
      const double magnitude = std::sqrt(double{powers[i]});
      const double weighted = magnitude * weight_of[i];
      const int64_t channel = channel_of[i];
      if (channel >= 0) mels[channel] += weighted;
      if (channel + 1 < filters.channels) mels[channel + 1] += magnitude - weighted;
    }
    constexpr double kFloor = 1e-12;
    for (double& mel : mels) mel = std::log(mel < kFloor ? kFloor : mel);
  }

  MfccAttributes attributes_;
};

absl::Status MfccShape(ShapeContext& c) {
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 3));
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(1, 0));
  MfccAttributes attributes;
  GRADFLOW_RETURN_IF_ERROR(attributes.Init(c));
  c.set_output(0, PartialTensorShape({c.Dim(0, 0), c.Dim(0, 1), attributes.coefficients}));
  return absl::OkStatus();
}

}  // namespace

void Register(Registry& registry) {
  registry.Op("AudioSpectrogram")
      .Group("audio_ops")
      .HandWritten()
      .Input("input: float")
      .Output("spectrogram: float")
      .Attr("window_size: int")
      .Attr("stride: int")
      .Attr("magnitude_squared: bool = false")
      .Shape(SpectrogramShape)
      .Doc(R"(Returns the magnitudes of the frequencies in windows of audio.

Each window is multiplied by a Hann window and padded with zeros to a power of two.

input: The samples, of shape [samples, channels].
spectrogram: The magnitudes, of shape [channels, windows, frequencies].
window_size: The number of samples of a window.
stride: The number of samples between the beginnings of two windows.
magnitude_squared: If true, returns the squares of the magnitudes.)");
  registry.Kernel("AudioSpectrogram", MakeKernel<SpectrogramKernel>);
  registry.Op("Mfcc")
      .Group("audio_ops")
      .HandWritten()
      .Input("spectrogram: float")
      .Input("sample_rate: int32")
      .Output("output: float")
      .Attr("upper_frequency_limit: float = 4000")
      .Attr("lower_frequency_limit: float = 20")
      .Attr("filterbank_channel_count: int = 40")
      .Attr("dct_coefficient_count: int = 13")
      .Shape(MfccShape)
      .Doc(R"(Returns the mel-frequency cepstral coefficients of a spectrogram.

They are the discrete cosine transform of the logarithms of the magnitudes of mel channels.

spectrogram: The squares of magnitudes, of shape [channels, windows, frequencies].
sample_rate: The number of samples per second of the audio, a scalar.
output: The coefficients, of shape [channels, windows, dct_coefficient_count].
upper_frequency_limit: The highest frequency that counts, in hertz.
lower_frequency_limit: The lowest frequency that counts, in hertz.
filterbank_channel_count: The number of mel channels.
dct_coefficient_count: The number of coefficients.)");
  registry.Kernel("Mfcc", MakeKernel<MfccKernel>);
}

}  // namespace gradflow::spectrogram
