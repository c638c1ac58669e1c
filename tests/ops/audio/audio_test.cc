// Tests of audio. TensorFlow's values are in tests/data/tensorflow_values/audio_audio.txt. Here are
// a direct transform, files that lie, and errors.
#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <string>
#include <vector>

#include "gradflow/testing/kernel_test.h"
#include "tests/ops/common/error_case.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

OpTester Spectrogram(const Tensor& input, int64_t window, int64_t stride) {
  return OpTester("AudioSpectrogram")
      .Input(input)
      .Attr("window_size", window)
      .Attr("stride", stride)
      .Attr("magnitude_squared", true);
}

TEST(AudioSpectrogram, IsTheTransformOfWindows) {
  constexpr double kPi = 3.14159265358979323846;
  for (const auto& [window, stride, padded] : std::vector<std::array<int64_t, 3>>{
           {2, 1, 2}, {3, 2, 4}, {8, 3, 8}, {20, 7, 32}, {64, 64, 64}}) {
    const Tensor input = RandomTensor(DT_FLOAT, {70, 2}, -1, 1);
    const int64_t count = 1 + (70 - window) / stride;
    const int64_t bins = 1 + padded / 2;
    Tensor expected(DT_FLOAT, {2, count, bins});
    for (int64_t i = 0; i < expected.NumElements(); ++i) {
      const int64_t k = i % bins;
      const int64_t w = i / bins % count;
      const int64_t channel = i / bins / count;
      std::complex<double> sum = 0;
      for (int64_t j = 0; j < window; ++j) {
        const double weight =
            0.5 - 0.5 * std::cos(2 * kPi * static_cast<double>(j) / static_cast<double>(window));
        sum += weight * double{input.span<float>()[(w * stride + j) * 2 + channel]} *
               std::polar(1.0, -2 * kPi * static_cast<double>(j * k % padded) /
                                   static_cast<double>(padded));
      }
      expected.span<float>()[i] = static_cast<float>(std::norm(sum));
    }
    OpTester tester = Spectrogram(input, window, stride);
    EXPECT_THAT(tester.RunOne(), TensorNear(expected, Tolerance::Near(1e-9, 1e-6)));
  }
}

TEST(AudioSpectrogram, HasTheSameBitsOnAnyNumberOfThreads) {
  EXPECT_THAT(Spectrogram(RandomTensor(DT_FLOAT, {20'000, 2}, -1, 1), 256, 64).RunEverywhere(),
              IsOk());
  OpTester mfcc("Mfcc");
  mfcc.Input(RandomTensor(DT_FLOAT, {2, 500, 129}, 0, 1)).Input(AsScalar<int32_t>(16000));
  EXPECT_THAT(mfcc.RunEverywhere(), IsOk());
}

TEST(Audio, ChecksItsInputs) {
  const Tensor samples = RandomTensor(DT_FLOAT, {9, 1});
  const auto mfcc = [] {
    OpTester tester("Mfcc");
    tester.Input(RandomTensor(DT_FLOAT, {1, 1, 9}, 0, 1)).Input(AsScalar<int32_t>(8000));
    return tester;
  };
  ExpectErrors({
      {"window", Spectrogram(samples, 1, 1), "window_size must be in [2, 2^30], but is 1"},
      {"window", Spectrogram(samples, -3, 1), "window_size must be in [2, 2^30], but is -3"},
      {"stride", Spectrogram(samples, 2, 0), "stride must be positive and fit int32, but is 0"},
      {"rank", Spectrogram(RandomTensor(DT_FLOAT, {9}), 2, 1),
       "Shape must be rank 2 but is rank 1: input has shape [9]"},
  });
  const struct {
    OpTester tester;
    const char* error;
  } cases[] = {
      {mfcc().Attr("lower_frequency_limit", 4000.f),
       "expected 0 <= lower_frequency_limit < upper_frequency_limit, but they are 4000 and 4000"},
      {mfcc().Attr("dct_coefficient_count", 41),
       "expected 1 <= dct_coefficient_count <= filterbank_channel_count, but they are 41 and 40"},
      {OpTester("EncodeWav").Input(samples).Input(AsScalar<int32_t>(0)),
       "sample_rate must be positive, but is 0"},
      {OpTester("EncodeWav").Input(RandomTensor(DT_FLOAT, {9, 0})).Input(AsScalar<int32_t>(8)),
       "a WAV file must have 1 to 32767 channels, but has 0"},
      {OpTester("EncodeWav")
           .Input(RandomTensor(DT_FLOAT, {1, 1000}))
           .Input(AsScalar<int32_t>(3'000'000)),
       "the sample rate of a WAV file with 1000 channels must be 1 to 2147483, but is 3000000"},
      {OpTester("DecodeWav").Input(Tensor(tstring("RIFF"))), "the WAV file ends within 4 bytes"},
      {OpTester("DecodeWav").Input(Tensor(tstring("RIFX"))),
       "expected 'RIFF' in the header of a WAV file, but found 'RIFX'"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(OpTester(c.tester).Run(), StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
}

// A file is read back, and no changed byte is more than an error.
TEST(DecodeWav, ReadsWhatEncodeWavWrites) {
  Tensor samples(DT_FLOAT, {40, 3});
  for (int64_t i = 0; i < 120; ++i) samples.span<float>()[i] = static_cast<float>(i - 60) / 64;
  const auto file = OpTester("EncodeWav").Input(samples).Input(AsScalar<int32_t>(44100)).RunOne();
  GRADFLOW_ASSERT_OK(file.status());
  const auto decoded = OpTester("DecodeWav").Input(*file).ShapeIsData().Run();
  GRADFLOW_ASSERT_OK(decoded.status());
  EXPECT_THAT((*decoded)[0], TensorEq(samples));
  EXPECT_THAT((*decoded)[1], TensorEq(AsScalar<int32_t>(44100)));
  const std::string bytes = file->span<tstring>()[0];
  for (size_t at = 0; at < 60; ++at) {
    for (const char byte : {'\0', '\x7f', '\xff'}) {
      std::string changed = bytes;
      changed[at] = byte;
      const auto result = OpTester("DecodeWav").Input(Tensor(tstring(changed))).RunOnThreads(1);
      if (!result.ok()) {
        EXPECT_EQ(result.status().code(), kInvalidArgument) << result.status();
      }
    }
  }
  for (size_t size = 0; size < 44; ++size) {
    EXPECT_THAT(OpTester("DecodeWav").Input(Tensor(tstring(bytes.substr(0, size)))).RunOnThreads(1),
                StatusIs(kInvalidArgument))
        << size;
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
