// Tests of texts and bytes: readable numbers, parts of texts, varints, device names and histograms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/lib/core/coding.h"
#include "tensorflow/core/lib/histogram/histogram.h"
#include "tensorflow/core/lib/strings/numbers.h"
#include "tensorflow/core/lib/strings/str_util.h"
#include "tensorflow/core/lib/strings/stringprintf.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tensorflow {
namespace texts_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Numbers, ReadHexadecimalDigits) {
  const struct {
    const char* text;
    bool ok;
    uint64 value;
  } cases[] = {{"0", true, 0},
               {"fFaA09", true, 0xffaa09},
               {"0123456789abcdef", true, 0x0123456789abcdef},
               {"ffffffffffffffff", true, ~uint64{0}},
               {"00000000000000001", false, 7},
               {"", false, 7},
               {"0x1", false, 7},
               {"g", false, 7},
               {" 1", false, 7}};
  for (const auto& c : cases) {
    uint64 value = 7;
    EXPECT_EQ(strings::HexStringToUint64(c.text, &value), c.ok) << c.text;
    EXPECT_EQ(value, c.value) << c.text;
    EXPECT_EQ(strings::StringToFp(c.text, &value), c.ok) << c.text;
  }
  EXPECT_EQ(strings::FpToString(0xabc), "0000000000000abc");
}

TEST(Numbers, AreShortForPeople) {
  const std::pair<int64, const char*> numbers[] = {{0, "0"},
                                                   {1, "1"},
                                                   {999, "999"},
                                                   {-999, "-999"},
                                                   {1000, "1.00k"},
                                                   {1230, "1.23k"},
                                                   {999990, "999.99k"},
                                                   {1000000, "1.00M"},
                                                   {int64{1000000000}, "1.00B"},
                                                   {int64{1230000000000}, "1.23T"},
                                                   {int64{999000000000000}, "999.00T"},
                                                   {int64{1000000000000000}, "1E+03T"},
                                                   {int64{-1000000000000000}, "-1E+03T"}};
  for (const auto& [value, text] : numbers) EXPECT_EQ(strings::HumanReadableNum(value), text);
  const std::pair<int64, const char*> bytes[] = {{0, "0B"},
                                                 {-1023, "-1023B"},
                                                 {1024, "1.0KiB"},
                                                 {-1536, "-1.5KiB"},
                                                 {(1 << 20) - 1024, "1023.0KiB"},
                                                 {1 << 20, "1.00MiB"},
                                                 {int64{5} << 30, "5.00GiB"},
                                                 {int64{5} << 40, "5.00TiB"},
                                                 {int64{5} << 50, "5.00PiB"},
                                                 {int64{1} << 60, "1.00EiB"},
                                                 {std::numeric_limits<int64>::min(), "-8.00EiB"}};
  for (const auto& [value, text] : bytes) EXPECT_EQ(strings::HumanReadableNumBytes(value), text);
  const std::pair<double, const char*> times[] = {
      {0, "0 us"},           {-1e-6, "-1 us"},       {0.000999, "999 us"},
      {0.001, "1 ms"},       {0.9, "900 ms"},        {1, "1 s"},
      {59.5, "59.5 s"},      {60, "1 min"},          {-3599, "-60 min"},
      {3600, "1 h"},         {86399, "24 h"},        {86400, "1 days"},
      {2591999, "30 days"},  {2592000, "1 months"},  {31557599, "12.2 months"},
      {31557600, "1 years"}, {-63115200, "-2 years"}};
  for (const auto& [value, text] : times) {
    EXPECT_EQ(strings::HumanReadableElapsedTime(value), text);
  }
}

TEST(StrUtil, SplitsIntoNumbers) {
  std::vector<int32> small = {7};
  std::vector<int64> large = {7};
  std::vector<float> real = {7};
  EXPECT_TRUE(str_util::SplitAndParseAsInts("", ',', &large));
  EXPECT_THAT(large, ElementsAre(7));
  EXPECT_TRUE(str_util::SplitAndParseAsInts("12345678901;-2", ';', &large));
  EXPECT_THAT(large, ElementsAre(12345678901, -2));
  for (const char* text : {"12345678901", "1,,2", "1,2,x"}) {
    EXPECT_FALSE(str_util::SplitAndParseAsInts(text, ',', &small)) << text;
  }
  EXPECT_THAT(small, ElementsAre(7));
  EXPECT_FALSE(str_util::SplitAndParseAsFloats("1.5,x", ',', &real));
  EXPECT_THAT(real, ElementsAre(7));
}

TEST(StrUtil, ChangesLetters) {
  const std::pair<const char*, const char*> names[] = {
      {"ABc", "a_bc"}, {"A_B", "a_b"}, {"9a8", "a8"},     {"__a--b.c", "a_b_c"},
      {"a--", "a_"},   {"--", ""},     {"aB1C", "a_b1_c"}};
  for (const auto& [text, name] : names) EXPECT_EQ(str_util::ArgDefCase(text), name) << text;
  std::string title = "ab-cd ef";
  str_util::TitlecaseString(&title, "-");
  EXPECT_EQ(title, "Ab-Cd ef");
  EXPECT_EQ(str_util::StringReplace("abcab", "bc", "-", false), "a-ab");
  EXPECT_EQ(str_util::StringReplace("abc", "x", "-", false), "abc");
  EXPECT_EQ(str_util::StringReplace("abc", "x", "-", true), "abc");
}

TEST(StrUtil, TakesParts) {
  std::string text = " a \t\n";
  str_util::StripTrailingWhitespace(&text);
  EXPECT_EQ(text, " a");
  absl::string_view view = "  a b ";
  EXPECT_EQ(str_util::RemoveTrailingWhitespace(&view), 1u);
  EXPECT_EQ(view, "  a b");
  EXPECT_EQ(str_util::RemoveLeadingWhitespace(&view), 2u);
  EXPECT_EQ(view, "a b");
  EXPECT_EQ(str_util::RemoveWhitespaceContext(&view), 0u);
  view = " c   ";
  EXPECT_EQ(str_util::RemoveWhitespaceContext(&view), 4u);
  EXPECT_EQ(view, "c");
  uint64 number = 7;
  view = "18446744073709551615";
  EXPECT_TRUE(str_util::ConsumeLeadingDigits(&view, &number));
  EXPECT_EQ(number, ~uint64{0});
  EXPECT_EQ(view, "");
  number = 7;
  for (const char* wrong : {"", "a1", "18446744073709551616"}) {
    view = wrong;
    EXPECT_FALSE(str_util::ConsumeLeadingDigits(&view, &number));
    EXPECT_EQ(view, wrong);
    EXPECT_EQ(number, 7u);
  }
  absl::string_view word;
  view = "ab cd";
  EXPECT_TRUE(str_util::ConsumeNonWhitespace(&view, &word));
  EXPECT_EQ(word, "ab");
  EXPECT_EQ(view, " cd");
  EXPECT_FALSE(str_util::ConsumeNonWhitespace(&view, &word));
  EXPECT_EQ(word, "");
  EXPECT_EQ(view, " cd");
}

TEST(Printf, AppendsAnyLength) {
  std::string text;
  for (int length = 0; length < 3; ++length) {
    strings::Appendf(&text, "%s", std::string(length, 'x').c_str());
  }
  EXPECT_EQ(text, "xxx");
  EXPECT_EQ(strings::Printf("%c", 'y'), "y");
}

// ---- Bytes ----

TEST(Varints, TakeTheirBytes) {
  const struct {
    uint64 value;
    std::string bytes;
  } cases[] = {{0, std::string(1, '\0')},
               {0x7f, "\x7f"},
               {0x80, "\x80\x01"},
               {300, "\xac\x02"},
               {0xffffffff, "\xff\xff\xff\xff\x0f"},
               {~uint64{0}, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"}};
  for (const auto& c : cases) {
    std::string bytes = "x";
    core::PutVarint64(&bytes, c.value);
    EXPECT_EQ(bytes, "x" + c.bytes);
    EXPECT_EQ(core::VarintLength(c.value), static_cast<int>(c.bytes.size()));
    const std::string more = c.bytes + "z";
    uint64 value = 7;
    const char* const limit = more.data() + more.size();
    EXPECT_EQ(core::GetVarint64Ptr(more.data(), limit, &value), limit - 1);
    EXPECT_EQ(value, c.value);
    absl::string_view input = more;
    EXPECT_TRUE(core::GetVarint64(&input, &value));
    EXPECT_EQ(input, "z");
    // The last byte is missing.
    value = 7;
    EXPECT_EQ(core::GetVarint64Ptr(more.data(), limit - 2, &value), nullptr);
    EXPECT_EQ(value, 7u);
    if (c.bytes.size() > core::kMaxVarint32Bytes) continue;
    bytes = "x";
    core::PutVarint32(&bytes, static_cast<uint32>(c.value));
    EXPECT_EQ(bytes, "x" + c.bytes);
    char buffer[core::kMaxVarint32Bytes];
    char* const end = core::EncodeVarint32(buffer, static_cast<uint32>(c.value));
    EXPECT_EQ(std::string(buffer, end), c.bytes);
    uint32 small = 7;
    EXPECT_EQ(core::GetVarint32Ptr(more.data(), limit, &small), limit - 1);
    EXPECT_EQ(small, c.value);
  }
  // The encoding is one byte too long.
  uint32 small = 7;
  uint64 large = 7;
  for (const int size : {core::kMaxVarint32Bytes, core::kMaxVarint64Bytes}) {
    const std::string bytes = std::string(size, '\x80') + '\x01';
    absl::string_view input = bytes;
    EXPECT_EQ(core::GetVarint64(&input, &large), size == core::kMaxVarint32Bytes);
    input = bytes;
    EXPECT_FALSE(core::GetVarint32(&input, &small));
    EXPECT_EQ(input, bytes);
  }
}

TEST(FixedNumbers, AreLittleEndian) {
  char bytes[8];
  core::EncodeFixed16(bytes, 0x8182);
  EXPECT_EQ(std::string(bytes, 2), "\x82\x81");
  EXPECT_EQ(core::DecodeFixed16(bytes), 0x8182);
  core::EncodeFixed32(bytes, 0x81828384);
  EXPECT_EQ(std::string(bytes, 4), "\x84\x83\x82\x81");
  EXPECT_EQ(core::DecodeFixed32(bytes), 0x81828384u);
  core::EncodeFixed64(bytes, 0x8182838485868788);
  EXPECT_EQ(std::string(bytes, 8), "\x88\x87\x86\x85\x84\x83\x82\x81");
  EXPECT_EQ(core::DecodeFixed64(bytes), 0x8182838485868788u);
}

// ---- Names of devices ----

TEST(DeviceNames, AreParsedAndPrinted) {
  const struct {
    const char* name;
    // The name rebuilt from its parts, or null if the name is invalid.
    const char* text;
  } cases[] = {{"", ""},
               {"/", ""},
               {"/job:w", "/job:w"},
               {"/job:*/replica:*/task:*/device:*:*", ""},
               {"/job:w/replica:1/task:2/device:GPU:3", "/job:w/replica:1/task:2/device:GPU:3"},
               {"/task:2/job:w", "/job:w/task:2"},
               {"/device:CPU", "/device:CPU:*"},
               {"/device:CPU:*", "/device:CPU:*"},
               {"/device:cpu:1", "/device:cpu:1"},
               {"/device:TPU:1", "/device:TPU:1"},
               {"/cpu:0", "/device:CPU:0"},
               {"/GPU", "/device:GPU:*"},
               {"/device:", ""},
               {"cpu:0", nullptr},
               {"/tpu:0", nullptr},
               {"/job:", nullptr},
               {"/replica:x", nullptr},
               {"/task:", nullptr},
               {"/cpu:x", nullptr},
               {"/device:CPU:0:1", nullptr},
               {"/device::1", nullptr},
               {"/:1", nullptr},
               {"//cpu:0", nullptr},
               {"/other:1", nullptr}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    DeviceNameUtils::ParsedName parsed;
    parsed.has_job = true;
    const bool is_name = DeviceNameUtils::ParseFullName(c.name, &parsed);
    EXPECT_EQ(is_name, c.text != nullptr);
    if (!is_name) continue;
    EXPECT_EQ(DeviceNameUtils::ParsedNameToString(parsed), c.text);
    EXPECT_EQ(DeviceNameUtils::HasSomeDetails(parsed), *c.text != 0);
    DeviceNameUtils::ParsedName again;
    ASSERT_TRUE(DeviceNameUtils::ParseFullOrLocalName(c.text, &again));
    EXPECT_TRUE(again == parsed);
  }
}

TEST(DeviceNames, DifferInEachPart) {
  using Name = DeviceNameUtils::ParsedName;
  const std::function<void(Name*)> parts[] = {
      [](Name* n) { n->has_job = true; },  [](Name* n) { n->has_replica = true; },
      [](Name* n) { n->has_task = true; }, [](Name* n) { n->has_type = true; },
      [](Name* n) { n->has_id = true; },   [](Name* n) { n->job = "w"; },
      [](Name* n) { n->replica = 1; },     [](Name* n) { n->task = 1; },
      [](Name* n) { n->type = "CPU"; },    [](Name* n) { n->id = 1; }};
  EXPECT_TRUE(Name() == Name());
  EXPECT_FALSE(DeviceNameUtils::HasSomeDetails(Name()));
  for (size_t i = 0; i < 10; ++i) {
    Name name;
    parts[i](&name);
    EXPECT_TRUE(name != Name()) << i;
    EXPECT_EQ(DeviceNameUtils::HasSomeDetails(name), i < 5) << i;
    const bool in_address = i % 5 < 3;
    EXPECT_EQ(DeviceNameUtils::IsSameAddressSpace(name, Name()), !in_address) << i;
  }
  EXPECT_FALSE(DeviceNameUtils::IsSameAddressSpace("/x", "/cpu:0"));
  EXPECT_FALSE(DeviceNameUtils::IsSameAddressSpace("/cpu:0", "/x"));
  EXPECT_TRUE(DeviceNameUtils::IsSameAddressSpace("/cpu:0", "/cpu:1"));
}

// ---- Histograms ----

TEST(HistogramBuckets, BeginAtTheirLeftEdges) {
  histogram::Histogram histogram({0, 10, 100});
  for (const double value : {-1., 0., 9., 10., 100., 1000.}) histogram.Add(value);
  HistogramProto proto;
  histogram.EncodeToProto(&proto, true);
  EXPECT_EQ(proto.ShortDebugString(),
            "min: -1 max: 1000 num: 6 sum: 1118 sum_squares: 1010182 bucket_limit: 0 "
            "bucket_limit: 10 bucket_limit: 100 bucket: 1 bucket: 2 bucket: 3");
  EXPECT_THAT(proto.bucket(), ElementsAre(1, 2, 3));
  histogram.Clear();
  histogram.EncodeToProto(&proto, true);
  EXPECT_THAT(proto.bucket(), ElementsAre(0, 0, 0));
  EXPECT_EQ(proto.min(), 100);
  EXPECT_EQ(proto.max(), -std::numeric_limits<double>::max());
  EXPECT_EQ(proto.num() + proto.sum() + proto.sum_squares(), 0);
}

TEST(HistogramBuckets, GrowByATenthByDefault) {
  histogram::Histogram histogram;
  HistogramProto proto;
  histogram.EncodeToProto(&proto, true);
  const int size = proto.bucket_limit_size();
  ASSERT_EQ(size % 2, 1);
  const int zero = size / 2;
  EXPECT_EQ(proto.bucket_limit(zero), 0);
  EXPECT_EQ(proto.bucket_limit(zero + 1), 1e-12);
  EXPECT_EQ(proto.bucket_limit(zero + 2), 1e-12 * 1.1);
  EXPECT_EQ(proto.bucket_limit(size - 1), std::numeric_limits<double>::max());
  EXPECT_LT(proto.bucket_limit(size - 2), 1e20);
  EXPECT_GE(proto.bucket_limit(size - 2) * 1.1, 1e20);
  for (int i = 0; i < size; ++i) {
    EXPECT_EQ(proto.bucket_limit(i), -proto.bucket_limit(size - 1 - i));
    if (i > 0) {
      EXPECT_LT(proto.bucket_limit(i - 1), proto.bucket_limit(i));
    }
  }
}

TEST(HistogramMessages, LeaveOutRunsOfEmptyBuckets) {
  const auto encode = [](const std::vector<double>& values) {
    histogram::Histogram histogram({0, 1, 2, 3, 4, 5});
    for (const double value : values) histogram.Add(value);
    HistogramProto proto;
    proto.add_bucket(9);
    histogram.EncodeToProto(&proto, /*preserve_zero_buckets=*/false);
    std::string text;
    for (int i = 0; i < proto.bucket_size(); ++i) {
      absl::StrAppend(&text, proto.bucket_limit(i), ":", proto.bucket(i), " ");
    }
    return text;
  };
  EXPECT_EQ(encode({0.5, 4.5}), "0:0 1:1 4:0 5:1 ");
  EXPECT_EQ(encode({-1, 0.5}), "0:1 1:1 5:0 ");
  EXPECT_EQ(encode({4.5}), "4:0 5:1 ");
  EXPECT_EQ(encode({}), "5:0 ");
}

TEST(HistogramMessages, AreChecked) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const struct {
    std::vector<double> limits;
    int buckets;
    bool ok;
  } cases[] = {{{1}, 1, true},        {{1, 2, 3}, 3, true},  {{}, 0, false},
               {{1, 2}, 1, false},    {{1, 2}, 3, false},    {{1, 1}, 2, false},
               {{1, 3, 2}, 3, false}, {{2, 1, 3}, 3, false}, {{nan, 1}, 2, false},
               {{1, nan}, 2, false},  {{nan}, 1, false}};
  for (const auto& c : cases) {
    HistogramProto proto;
    for (const double limit : c.limits) proto.add_bucket_limit(limit);
    for (int i = 0; i < c.buckets; ++i) proto.add_bucket(i + 1);
    proto.set_min(1);
    proto.set_max(2);
    proto.set_num(3);
    proto.set_sum(4);
    proto.set_sum_squares(50);
    histogram::Histogram histogram({7});
    EXPECT_EQ(histogram.DecodeFromProto(proto), c.ok);
    HistogramProto back;
    histogram.EncodeToProto(&back, true);
    if (c.ok) {
      EXPECT_EQ(back.DebugString(), proto.DebugString());
    } else {
      EXPECT_EQ(back.bucket_limit(0), 7);
      EXPECT_EQ(back.num(), 0);
    }
  }
  EXPECT_DEATH(histogram::Histogram({2, 1}), "the limits of a histogram must increase");
  EXPECT_DEATH(histogram::Histogram(gtl::ArraySlice<double>()), "must increase");
}

TEST(HistogramText, CountsToOneHundredPercent) {
  histogram::Histogram histogram({-1, 0, 1});
  EXPECT_EQ(histogram.ToString(),
            "Count: 0  Average: 0.0000  StdDev: 0.00\nMin: 0.0000  Median: 0.0000  Max: 0.0000\n"
            "------------------------------------------------------\n");
  for (const double value : {-2., 0.25, 0.5, 0.75}) histogram.Add(value);
  EXPECT_EQ(histogram.ToString(),
            "Count: 4  Average: -0.1250  StdDev: 1.10\n"
            "Min: -2.0000  Median: 0.2500  Max: 0.7500\n"
            "------------------------------------------------------\n"
            "[  -1.8e+308,         -1 )       1  25.000%  25.000% #####\n"
            "[          0,          1 )       3  75.000% 100.000% ###############\n");
  // The bucket has more numbers than the total.
  HistogramProto proto;
  histogram.EncodeToProto(&proto, true);
  proto.set_num(1);
  ASSERT_TRUE(histogram.DecodeFromProto(proto));
  EXPECT_THAT(histogram.ToString(), HasSubstr(" 300.000% 400.000% ####################\n"));
  proto.set_num(-1);
  ASSERT_TRUE(histogram.DecodeFromProto(proto));
  EXPECT_THAT(histogram.ToString(), ::testing::EndsWith("---\n"));
}

TEST(HistogramPercentiles, InterpolateWithinBuckets) {
  histogram::Histogram histogram({0, 10, 20, 30});
  for (const double value : {2., 12., 14., 28.}) histogram.Add(value);
  const std::pair<double, double> cases[] = {{0, 2},   {12.5, 6},  {25, 10}, {50, 15},
                                             {75, 20}, {87.5, 24}, {100, 28}};
  for (const auto& [percent, value] : cases) {
    EXPECT_DOUBLE_EQ(histogram.Percentile(percent), value) << percent;
  }
  EXPECT_DOUBLE_EQ(histogram.Median(), 15);
  EXPECT_DOUBLE_EQ(histogram.Average(), 14);
  EXPECT_DOUBLE_EQ(histogram.StandardDeviation(), std::sqrt(86.0));
  histogram.Clear();
  EXPECT_EQ(histogram.StandardDeviation(), 0);
  histogram.Add(3);
  EXPECT_EQ(histogram.StandardDeviation(), 0);
  EXPECT_EQ(histogram.Average(), 3);
}

}  // namespace texts_test
}  // namespace tensorflow
