// Tests of TensorFlow's small headers that programs use: bits, bytes, containers and environment
// variables.
#include <gmock/gmock.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/framework/device_factory.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/lib/core/bits.h"
#include "tensorflow/core/lib/core/coding.h"
#include "tensorflow/core/lib/gtl/flatmap.h"
#include "tensorflow/core/lib/gtl/flatset.h"
#include "tensorflow/core/lib/gtl/iterator_range.h"
#include "tensorflow/core/lib/gtl/optional.h"
#include "tensorflow/core/lib/gtl/top_n.h"
#include "tensorflow/core/lib/strings/base64.h"
#include "tensorflow/core/platform/dynamic_annotations.h"
#include "tensorflow/core/platform/platform.h"
#include "tensorflow/core/platform/test.h"
#include "tensorflow/core/public/release_version.h"
#include "tensorflow/core/util/batch_util.h"
#include "tensorflow/core/util/overflow.h"
#include "tensorflow/core/util/port.h"
#include "tensorflow/core/util/ptr_util.h"
#include "xla/tsl/lib/core/status_test_util.h"
#include "xla/tsl/util/determinism.h"
#include "xla/tsl/util/env_var.h"

namespace tensorflow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Bits, RoundLogarithms) {
  EXPECT_EQ(Log2Floor(0), -1);
  EXPECT_EQ(Log2Floor(9), 3);
  EXPECT_EQ(Log2Ceiling(9), 4);
  EXPECT_EQ(Log2Ceiling(8), 3);
  EXPECT_EQ(Log2Ceiling64(0), -1);
  EXPECT_EQ(Log2Floor64(uint64{1} << 40), 40);
  EXPECT_EQ(NextPowerOfTwo(9), 16u);
  EXPECT_EQ(NextPowerOfTwo64(8), 8u);
  EXPECT_EQ(NextPowerOfTwoS64(0), 1);
}

TEST(Overflow, ReturnsMinusOne) {
  constexpr int64 kMax = std::numeric_limits<int64>::max();
  EXPECT_EQ(MultiplyWithoutOverflow(3, 4), 12);
  EXPECT_EQ(MultiplyWithoutOverflow(kMax, 2), -1);
  EXPECT_EQ(AddWithoutOverflow(3, 4), 7);
  EXPECT_EQ(AddWithoutOverflow(kMax, 1), -1);
  EXPECT_EQ(AddWithoutOverflow(-1, 5), -1);
}

TEST(Coding, RoundTrips) {
  std::string bytes;
  core::PutFixed16(&bytes, 0x0102);
  core::PutFixed32(&bytes, 0x03040506);
  core::PutFixed64(&bytes, 0x0708090a0b0c0d0e);
  EXPECT_EQ(bytes.substr(0, 2), "\x02\x01");
  EXPECT_EQ(core::DecodeFixed16(bytes.data()), 0x0102);
  EXPECT_EQ(core::DecodeFixed32(bytes.data() + 2), 0x03040506u);
  EXPECT_EQ(core::DecodeFixed64(bytes.data() + 6), 0x0708090a0b0c0d0eu);
  std::string varints;
  for (const uint64 value :
       {uint64{0}, uint64{127}, uint64{128}, uint64{300}, uint64{16384}, ~uint64{0}}) {
    varints.clear();
    core::PutVarint64(&varints, value);
    EXPECT_EQ(core::VarintLength(value), static_cast<int>(varints.size()));
    absl::string_view left = varints;
    uint64 read;
    ASSERT_TRUE(core::GetVarint64(&left, &read));
    EXPECT_EQ(read, value);
    EXPECT_TRUE(left.empty());
    // The last byte is missing.
    left = absl::string_view(varints).substr(0, varints.size() - 1);
    EXPECT_FALSE(core::GetVarint64(&left, &read));
  }
  uint32 small;
  const std::string endless(20, '\xff');
  absl::string_view left = endless;
  EXPECT_FALSE(core::GetVarint32(&left, &small));
  EXPECT_EQ(core::GetVarint32Ptr(endless.data(), endless.data() + 20, &small), nullptr);
}

TEST(Base64, UsesTheUrlSafeAlphabet) {
  std::string text, back;
  TF_EXPECT_OK(Base64Encode("\xff\xfe?", &text));
  EXPECT_EQ(text, "__4_");
  TF_EXPECT_OK(Base64Encode("a", true, &text));
  EXPECT_EQ(text, "YQ==");
  TF_EXPECT_OK(Base64Decode("YQ", &back));
  EXPECT_EQ(back, "a");
  EXPECT_EQ(Base64Decode("+/+/", &back).code(), error::INVALID_ARGUMENT);
}

TEST(EnvVar, HasTheTypeOrTheDefault) {
  bool flag = false;
  int64 number = 0;
  float real = 0;
  std::string text;
  std::vector<std::string> texts;
  unsetenv("GRADFLOW_TEST");
  TF_EXPECT_OK(ReadBoolFromEnvVar("GRADFLOW_TEST", true, &flag));
  EXPECT_TRUE(flag);
  TF_EXPECT_OK(ReadStringsFromEnvVar("GRADFLOW_TEST", "a,b", &texts));
  EXPECT_THAT(texts, ElementsAre("a", "b"));
  setenv("GRADFLOW_TEST", "False", 1);
  TF_EXPECT_OK(ReadBoolFromEnvVar("GRADFLOW_TEST", true, &flag));
  EXPECT_FALSE(flag);
  const absl::Status status = ReadInt64FromEnvVar("GRADFLOW_TEST", 7, &number);
  EXPECT_EQ(status.code(), error::INVALID_ARGUMENT);
  EXPECT_THAT(std::string(status.message()), HasSubstr("${GRADFLOW_TEST} into int64: False"));
  EXPECT_EQ(number, 7);
  setenv("GRADFLOW_TEST", "2", 1);
  EXPECT_EQ(ReadBoolFromEnvVar("GRADFLOW_TEST", true, &flag).code(), error::INVALID_ARGUMENT);
  EXPECT_TRUE(flag);
  TF_EXPECT_OK(ReadInt64FromEnvVar("GRADFLOW_TEST", 7, &number));
  EXPECT_EQ(number, 2);
  TF_EXPECT_OK(tsl::ReadFloatFromEnvVar("GRADFLOW_TEST", 7, &real));
  EXPECT_EQ(real, 2);
  TF_EXPECT_OK(ReadStringFromEnvVar("GRADFLOW_TEST", "", &text));
  EXPECT_EQ(text, "2");
  unsetenv("GRADFLOW_TEST");
}

TEST(EnvVar, ReadsEachText) {
  const struct {
    const char* text;
    bool value;
    bool ok;
  } kBools[] = {{"1", true, true},    {"0", false, true},     {"true", true, true},
                {"TRUE", true, true}, {"false", false, true}, {"False", false, true},
                {"", false, false},   {"2", false, false},    {"yes", false, false}};
  for (const auto& [text, value, ok] : kBools) {
    setenv("GRADFLOW_TEST", text, 1);
    for (const bool by_default : {false, true}) {
      bool flag = !by_default;
      const absl::Status status = ReadBoolFromEnvVar("GRADFLOW_TEST", by_default, &flag);
      EXPECT_EQ(flag, ok ? value : by_default) << text;
      EXPECT_EQ(
          status.message(),
          ok ? "" : std::string("Failed to parse the env-var ${GRADFLOW_TEST} into bool: ") + text);
    }
  }
  int64 number = 0;
  float real = 0;
  setenv("GRADFLOW_TEST", "1.5", 1);
  EXPECT_EQ(ReadInt64FromEnvVar("GRADFLOW_TEST", 7, &number).code(), error::INVALID_ARGUMENT);
  EXPECT_EQ(number, 7);
  TF_EXPECT_OK(ReadFloatFromEnvVar("GRADFLOW_TEST", 7, &real));
  EXPECT_EQ(real, 1.5f);
  setenv("GRADFLOW_TEST", "a,,b", 1);
  EXPECT_EQ(ReadFloatFromEnvVar("GRADFLOW_TEST", 7, &real).message(),
            "Failed to parse the env-var ${GRADFLOW_TEST} into float: a,,b");
  EXPECT_EQ(real, 7);
  std::vector<std::string> texts;
  TF_EXPECT_OK(ReadStringsFromEnvVar("GRADFLOW_TEST", "x", &texts));
  EXPECT_THAT(texts, ElementsAre("a", "", "b"));
  unsetenv("GRADFLOW_TEST");
  std::string text;
  TF_EXPECT_OK(ReadStringFromEnvVar("GRADFLOW_TEST", "default", &text));
  EXPECT_EQ(text, "default");
  TF_EXPECT_OK(ReadInt64FromEnvVar("GRADFLOW_TEST", 9, &number));
  TF_EXPECT_OK(ReadFloatFromEnvVar("GRADFLOW_TEST", 2.5f, &real));
  EXPECT_EQ(number, 9);
  EXPECT_EQ(real, 2.5f);
}

TEST(Determinism, CanBeSwitched) {
  EXPECT_FALSE(OpDeterminismRequired());
  tsl::EnableOpDeterminism(true);
  EXPECT_TRUE(OpDeterminismRequired() && OpOrderDeterminismRequired());
  EnableOpDeterminism(false);
  EXPECT_FALSE(OpDeterminismRequired());
}

TEST(Containers, SupportGtl) {
  gtl::FlatMap<std::string, int> map = {{"a", 1}};
  EXPECT_EQ(map["a"], 1);
  gtl::FlatSet<int> set = {1, 2};
  EXPECT_EQ(set.count(2), 1u);
  const std::vector<int> values = {1, 2, 3};
  int sum = 0;
  for (const int value : gtl::make_range(values.begin(), values.begin() + 2)) sum += value;
  EXPECT_EQ(sum, 3);
  const gtl::optional<int> none;
  EXPECT_FALSE(none.has_value());
  EXPECT_EQ(*MakeUnique<int>(5), 5);
}

TEST(TopN, KeepsTheGreatest) {
  gtl::TopN<int> top(3);
  int dropped = -1;
  for (const int value : {5, 1, 4}) top.push(value, &dropped);
  EXPECT_EQ(dropped, -1);
  EXPECT_EQ(top.peek_bottom(), 1);
  top.push(9, &dropped);
  EXPECT_EQ(dropped, 1);
  top.push(2, &dropped);
  EXPECT_EQ(dropped, 2);
  EXPECT_EQ(top.size(), 3u);
  EXPECT_THAT(*std::unique_ptr<std::vector<int>>(top.ExtractNondestructive()),
              ElementsAre(9, 5, 4));
  EXPECT_THAT(*std::unique_ptr<std::vector<int>>(top.Extract()), ElementsAre(9, 5, 4));
  EXPECT_TRUE(top.empty());
  gtl::TopN<int, std::less<int>> none(0);
  none.push(3, &dropped);
  EXPECT_EQ(dropped, 3);
}

TEST(BatchUtil, CopiesRows) {
  Tensor parent = test::AsTensor<float>({1, 2, 3, 4, 5, 6}, TensorShape({3, 2}));
  Tensor row(DT_FLOAT, TensorShape({2}));
  TF_EXPECT_OK(batch_util::CopySliceToElement(parent, &row, 1));
  test::ExpectTensorEqual<float>(row, test::AsTensor<float>({3, 4}));
  TF_EXPECT_OK(batch_util::CopyElementToSlice(row, &parent, 2));
  EXPECT_EQ(parent.matrix<float>()(2, 1), 4);
  Tensor rows = test::AsTensor<float>({0, 0, 0, 0}, TensorShape({2, 2}));
  TF_EXPECT_OK(batch_util::CopyContiguousSlices(parent, 1, 0, 2, &rows));
  test::ExpectTensorEqual<float>(rows, test::AsTensor<float>({3, 4, 3, 4}, TensorShape({2, 2})));
  TF_EXPECT_OK(batch_util::SetElementZero(&rows, test::AsScalar<float>(7)));
  EXPECT_EQ(rows.matrix<float>()(1, 1), 7);

  Tensor words = test::AsTensor<tstring>({"a", "b"}, TensorShape({2, 1}));
  Tensor word(DT_STRING, TensorShape({1}));
  TF_EXPECT_OK(batch_util::MaybeMoveSliceToElement(&words, &word, 1));
  EXPECT_EQ(word.vec<tstring>()(0), "b");
  const Tensor held = words;
  TF_EXPECT_OK(batch_util::MaybeMoveContiguousSlices(words, 0, 0, 1, &word));
  EXPECT_EQ(word.vec<tstring>()(0), "a");
  EXPECT_EQ(held.matrix<tstring>()(0, 0), "a");

  for (const absl::Status& status :
       {batch_util::CopySliceToElement(parent, &row, 3),
        batch_util::CopySliceToElement(parent, &row, -1),
        batch_util::CopySliceToElement(parent, &word, 0),
        batch_util::CopySliceToElement(test::AsScalar<float>(1), &row, 0),
        batch_util::CopyElementToSlice(test::AsScalar<float>(1), &parent, 0),
        batch_util::CopyContiguousSlices(parent, 2, 0, 2, &rows),
        batch_util::CopyContiguousSlices(row, 0, 0, 1, &rows),
        batch_util::SetElementZero(&rows, row)}) {
    EXPECT_EQ(status.code(), error::INVALID_ARGUMENT);
  }
}

TEST(Port, HasNoOtherDevices) {
  EXPECT_FALSE(IsGoogleCudaEnabled() || IsBuiltWithROCm() || IsMklEnabled());
  const std::unique_ptr<Device> cpu = DeviceFactory::NewDevice(DEVICE_CPU, SessionOptions(), "");
  EXPECT_EQ(cpu->name(), "/device:CPU:0");
  EXPECT_GE(TF_MAJOR_VERSION, 1);
#ifndef PLATFORM_POSIX
  FAIL();
#endif
  TF_ANNOTATE_MEMORY_IS_INITIALIZED(cpu.get(), 1);
}

}  // namespace
}  // namespace tensorflow
