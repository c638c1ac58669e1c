// Tests of WAV files: limits of the header, and chunks. The tests of DecodeWav and EncodeWav change
// each byte of a file.
#include "gradflow/io/wav.h"

#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "gradflow/testing/status_matchers.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::kInvalidArgument;
using ::gradflow::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string File(int64_t frames, int64_t channels, int64_t rate,
                 const std::vector<float>& samples) {
  std::string file(kWavHeaderBytes + kWavSampleBytes * samples.size(), '\0');
  EXPECT_THAT(WriteWavHeader(frames, channels, rate, file.data()), IsOk());
  WriteWavSamples(samples, &file[kWavHeaderBytes]);
  return file;
}

TEST(Wav, ReadsWhatItWrites) {
  const std::string file =
      File(3, 2, 44100, {0, 0.5f, -0.5f, 2, -2, std::numeric_limits<float>::quiet_NaN()});
  const auto wav = ReadWav(file);
  ASSERT_THAT(wav.status(), IsOk());
  EXPECT_EQ(wav->frames, 3);
  EXPECT_EQ(wav->channels, 2u);
  EXPECT_EQ(wav->sample_rate, 44100u);
  std::vector<float> samples;
  for (int i = 0; i < 6; ++i) samples.push_back(wav->sample(i));
  EXPECT_THAT(samples, ElementsAre(0, 0.5f, -0.5f, 32767.0f / 32768, -1, 0));
}

// A header with a number that is cut off would be wrong.
TEST(Wav, HeadersHoldTheirNumbers) {
  char header[kWavHeaderBytes];
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const struct {
    int64_t frames, channels, rate;
    const char* error;
  } cases[] = {
      {1, 0, 1, "must have 1 to 32767 channels, but has 0"},
      {1, 32768, 1, "must have 1 to 32767 channels, but has 32768"},
      {1, kMost, 1, "must have 1 to 32767 channels"},
      {1, 1, 0, "must be 1 to 2147483647, but is 0"},
      {1, 1, 2147483648, "must be 1 to 2147483647, but is 2147483648"},
      {1, 32767, 65540, "must be 1 to 65538, but is 65540"},
      {-1, 1, 1, "must have 0 to 1073741801 frames, but has -1"},
      {1073741802, 1, 1, "must have 0 to 1073741801 frames, but has 1073741802"},
      {kMost, 2, 1, "must have 0 to 536870900 frames"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(WriteWavHeader(c.frames, c.channels, c.rate, header),
                StatusIs(kInvalidArgument, HasSubstr(c.error)));
  }
  for (const auto& [frames, channels, rate] : {std::tuple{int64_t{0}, 1, 2147483647},
                                               {int64_t{1073741801}, 1, 1},
                                               {int64_t{0}, 32767, 65538}}) {
    EXPECT_THAT(WriteWavHeader(frames, channels, rate, header), IsOk());
  }
}

TEST(Wav, ChecksChunks) {
  const std::string file = File(1, 1, 8000, {0.5f});
  const auto with = [&](const std::string& chunk) { return ReadWav(file + chunk).status(); };
  EXPECT_THAT(with(std::string("LIST\x02\0\0\0ab", 10)), IsOk());
  EXPECT_THAT(with(std::string("data\0\0\0\0", 8)),
              StatusIs(kInvalidArgument, HasSubstr("more than one data chunk")));
  EXPECT_THAT(with("LIST\xff\xff\xff\xf8"),
              StatusIs(kInvalidArgument,
                       HasSubstr("chunk 'LIST' of the WAV file is too large: 4177526783 bytes")));
}

}  // namespace
}  // namespace gradflow
