// Compares the messages of summaries with TensorFlow's rules.
#include <cmath>
#include <limits>

#include "gradflow/proto/summary.pb.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

const DataType kSummaryTypes[] = {DT_FLOAT, DT_DOUBLE,   DT_INT32,  DT_UINT8, DT_INT16,  DT_INT8,
                                  DT_INT64, DT_BFLOAT16, DT_UINT16, DT_HALF,  DT_UINT32, DT_UINT64};

Summary RunToSummary(OpTester tester) {
  Summary summary;
  const absl::StatusOr<Tensor> text = tester.RunOne();
  GRADFLOW_EXPECT_OK(text.status());
  if (text.ok()) {
    EXPECT_EQ(text->shape(), TensorShape());
    EXPECT_TRUE(summary.ParseFromString(std::string(text->scalar<tstring>()())));
  }
  return summary;
}

Tensor CastTensor(const Tensor& tensor, DataType dtype) {
  if (dtype == tensor.dtype()) return tensor;
  const absl::StatusOr<Tensor> cast = OpTester("Cast").Input(tensor).Attr("DstT", dtype).RunOne();
  GRADFLOW_EXPECT_OK(cast.status());
  return cast.value_or(Tensor());
}

Tensor Text(const std::string& text) { return AsScalar<tstring>(tstring(text)); }

TEST(ScalarSummary, HasTagsAndValues) {
  for (const DataType dtype : kSummaryTypes) {
    const Tensor values = CastTensor(AsTensor<float>({1, 2, 100}), dtype);
    const Summary summary = RunToSummary(
        OpTester("ScalarSummary").Input(AsTensor<tstring>({"a", "b/c", "a"})).Input(values));
    ASSERT_EQ(summary.value_size(), 3) << DataTypeString(dtype);
    EXPECT_EQ(summary.value(1).tag(), "b/c");
    EXPECT_EQ(summary.value(0).simple_value(), 1);
    EXPECT_EQ(summary.value(2).simple_value(), 100);
  }
  EXPECT_EQ(RunToSummary(OpTester("ScalarSummary").Input(Text("t")).Input(AsScalar<float>(kNan)))
                .value_size(),
            1);
  EXPECT_EQ(
      RunToSummary(
          OpTester("ScalarSummary").Input(Tensor(DT_STRING, {0})).Input(Tensor(DT_FLOAT, {0})))
          .value_size(),
      0);
  EXPECT_THAT(
      OpTester("ScalarSummary").Input(Text("t")).Input(AsTensor<float>({1})).Run(),
      StatusIs(kInvalidArgument, HasSubstr("tags and values are not the same shape: [] != [1]")));
}

TEST(HistogramSummary, CountsValues) {
  for (const DataType dtype : kSummaryTypes) {
    const Tensor values = CastTensor(AsTensor<float>({0, 1, 1, 3, 100}), dtype);
    const Summary summary =
        RunToSummary(OpTester("HistogramSummary").Input(Text("h")).Input(values));
    ASSERT_EQ(summary.value_size(), 1);
    EXPECT_EQ(summary.value(0).tag(), "h");
    const HistogramProto& h = summary.value(0).histo();
    EXPECT_EQ(h.min(), 0);
    EXPECT_EQ(h.max(), 100);
    EXPECT_EQ(h.num(), 5);
    EXPECT_EQ(h.sum(), 105);
    EXPECT_EQ(h.sum_squares(), 10011);
    ASSERT_EQ(h.bucket_size(), h.bucket_limit_size());
    double counted = 0;
    for (int i = 0; i < h.bucket_size(); ++i) {
      counted += h.bucket(i);
      // Limits increase, and no two adjacent ranges are empty.
      if (i > 0) {
        EXPECT_GT(h.bucket_limit(i), h.bucket_limit(i - 1));
        EXPECT_TRUE(h.bucket(i) > 0 || h.bucket(i - 1) > 0);
      }
    }
    EXPECT_EQ(counted, 5);
    // The ranges are: below 0, 0 itself, up to 1, 1, ...
    EXPECT_EQ(h.bucket_limit(0), 0);
    EXPECT_EQ(h.bucket(0), 0);
    EXPECT_EQ(h.bucket(1), 1);
    EXPECT_NEAR(h.bucket_limit(1), 1e-12, 1e-20);
  }
}

TEST(HistogramSummary, HasLimitsByTenths) {
  // One value of each sign in each range, in any order.
  std::vector<double> values;
  for (double limit = 1e-12; limit < 1e20; limit *= 1.1) {
    values.push_back(limit * 1.05);
    values.push_back(-limit * 1.05);
  }
  const int count = static_cast<int>(values.size());
  const Summary summary =
      RunToSummary(OpTester("HistogramSummary").Input(Text("h")).Input(AsTensor<double>(values)));
  const HistogramProto& h = summary.value(0).histo();
  // All ranges have numbers except the ranges around 0.
  int full = 0;
  for (const double n : h.bucket()) full += n > 0 ? 1 : 0;
  EXPECT_EQ(full, count);
  // The largest and the smallest double are also counted.
  const double most = std::numeric_limits<double>::max();
  const Summary extremes = RunToSummary(
      OpTester("HistogramSummary").Input(Text("h")).Input(AsTensor<double>({most, -most, 1e300})));
  double counted = 0;
  for (const double n : extremes.value(0).histo().bucket()) counted += n;
  EXPECT_EQ(counted, 3);
  // An empty tensor has a single empty range.
  const Summary empty =
      RunToSummary(OpTester("HistogramSummary").Input(Text("h")).Input(Tensor(DT_FLOAT, {0, 3})));
  EXPECT_EQ(empty.value(0).histo().num(), 0);
  EXPECT_EQ(empty.value(0).histo().bucket_size(), 1);
}

TEST(HistogramSummary, RejectsInvalidInputs) {
  const auto run = [](const Tensor& tag, const Tensor& values) {
    return OpTester("HistogramSummary").Input(tag).Input(values).Run();
  };
  EXPECT_THAT(run(Text("h"), AsTensor<float>({1, kNan})),
              StatusIs(kInvalidArgument, HasSubstr("Nan in summary histogram, at element 1")));
  EXPECT_THAT(run(Text("h"), AsTensor<float>({-kInf})),
              StatusIs(kInvalidArgument, HasSubstr("Infinity in summary histogram")));
  EXPECT_THAT(run(AsTensor<tstring>({"h"}), AsTensor<float>({1})),
              StatusIs(kInvalidArgument, HasSubstr("tag")));
}

TEST(TensorSummaryV2, HoldsATensor) {
  SummaryMetadata metadata;
  metadata.mutable_plugin_data()->set_plugin_name("text");
  metadata.set_data_class(DATA_CLASS_TENSOR);
  const auto run = [&](const Tensor& tensor) {
    return RunToSummary(OpTester("TensorSummaryV2")
                            .Input(Text("t"))
                            .Input(tensor)
                            .Input(Text(metadata.SerializeAsString())));
  };
  for (const Tensor& tensor :
       {AsTensor<float>({1, 2, 3}), AsTensor<tstring>({"a", "bc"}), AsScalar<bool>(true),
        Tensor(DT_INT64, {0, 2}), AsTensor<complex128>({{1, 2}})}) {
    const Summary summary = run(tensor);
    ASSERT_EQ(summary.value_size(), 1);
    EXPECT_EQ(summary.value(0).tag(), "t");
    EXPECT_EQ(summary.value(0).metadata().plugin_data().plugin_name(), "text");
    Tensor back;
    ASSERT_TRUE(back.FromProto(summary.value(0).tensor()));
    EXPECT_THAT(back, TensorEq(tensor));
  }
  const auto error = [&](const Tensor& tag, const Tensor& data) {
    return OpTester("TensorSummaryV2").Input(tag).Input<float>({1}).Input(data).Run();
  };
  EXPECT_THAT(error(AsTensor<tstring>({"a"}), Text("")),
              StatusIs(kInvalidArgument, HasSubstr("tag")));
  EXPECT_THAT(error(Text("a"), Tensor(DT_STRING, {0})),
              StatusIs(kInvalidArgument, HasSubstr("serialized_summary_metadata")));
  // The bytes are not metadata.
  GRADFLOW_EXPECT_OK(error(Text("a"), Text("\xff\xff")).status());
}

TEST(MergeSummary, JoinsValues) {
  const auto scalar = [](const std::string& tag, float value) {
    Summary summary;
    summary.add_value()->set_tag(tag);
    summary.mutable_value(0)->set_simple_value(value);
    return summary.SerializeAsString();
  };
  const auto merge = [](const std::vector<std::string>& a, const std::string& b) {
    Tensor first(DT_STRING, {static_cast<int64_t>(a.size())});
    for (size_t i = 0; i < a.size(); ++i) first.flat<tstring>()(static_cast<int64_t>(i)) = a[i];
    return OpTester("MergeSummary").Inputs({first, Text(b)});
  };
  const Summary summary = RunToSummary(merge({scalar("a", 1), "", scalar("b", 2)}, scalar("", 3)));
  ASSERT_EQ(summary.value_size(), 3);
  EXPECT_EQ(summary.value(1).tag(), "b");
  EXPECT_EQ(summary.value(2).simple_value(), 3);
  EXPECT_EQ(RunToSummary(merge({scalar("", 1)}, scalar("", 3))).value_size(), 2);
  EXPECT_THAT(merge({scalar("a", 1)}, scalar("a", 2)).Run(),
              StatusIs(kInvalidArgument, HasSubstr("Duplicate tag 'a' found in summary inputs")));
  EXPECT_THAT(merge({""}, "\xff\xff").Run(),
              StatusIs(kInvalidArgument,
                       HasSubstr("could not parse one of the summary inputs: element 0 of input "
                                 "1")));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
