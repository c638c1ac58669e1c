// Tests of checkpoints with TensorFlow's classes, Coordinator, ThreadPoolOptions and small helpers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gradflow/io/old_checkpoint.h"
#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/framework/testutil.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/cc/training/coordinator.h"
#include "tensorflow/core/framework/bfloat16.h"
#include "tensorflow/core/framework/device_attributes.pb.h"
#include "tensorflow/core/framework/kernel_shape_util.h"
#include "tensorflow/core/framework/summary.pb.h"
#include "tensorflow/core/framework/tensor_slice.h"
#include "tensorflow/core/framework/tensor_slice.pb.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/lib/core/threadpool_options.h"
#include "tensorflow/core/lib/histogram/histogram.h"
#include "tensorflow/core/lib/io/path.h"
#include "tensorflow/core/lib/math/math_util.h"
#include "tensorflow/core/platform/protobuf.h"
#include "tensorflow/core/platform/test.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow/core/util/tensor_bundle/tensor_bundle.h"
#include "tensorflow/core/util/tensor_slice_reader.h"

namespace tensorflow {
namespace files_test {

TEST(TensorBundle, WritesAndReads) {
  const std::string prefix = io::JoinPath(testing::TmpDir(), "compat_bundle");
  const Tensor whole = test::AsTensor<float>({1, 2, 3, 4}, {2, 2});
  BundleWriter writer(Env::Default(), prefix);
  TF_ASSERT_OK(writer.Add("a", whole));
  TF_ASSERT_OK(writer.AddSlice("b", TensorShape({4, 2}), TensorSlice::ParseOrDie("0,2:-"), whole));
  TF_ASSERT_OK(writer.AddSlice("b", TensorShape({4, 2}), TensorSlice::ParseOrDie("2,2:-"), whole));
  TF_ASSERT_OK(writer.Finish());

  const BundleReader reader(Env::Default(), prefix);
  TF_ASSERT_OK(reader.status());
  EXPECT_TRUE(reader.Contains("a"));
  EXPECT_FALSE(reader.Contains("c"));
  TensorShape shape;
  TF_ASSERT_OK(reader.LookupTensorShape("b", &shape));
  EXPECT_EQ(shape, TensorShape({4, 2}));
  Tensor value;
  TF_ASSERT_OK(reader.Lookup("a", &value));
  test::ExpectTensorEqual<float>(value, whole);
  TF_ASSERT_OK(reader.LookupSlice("b", TensorSlice::ParseOrDie("1,2:-"), &value));
  test::ExpectTensorEqual<float>(value, test::AsTensor<float>({3, 4, 1, 2}, {2, 2}));
  EXPECT_EQ(reader.Lookup("c", &value).code(), error::NOT_FOUND);
  EXPECT_EQ(BundleReader(Env::Default(), prefix + "none").status().code(), error::NOT_FOUND);

  BundleWriter twice(Env::Default(), prefix);
  TF_ASSERT_OK(twice.Add("a", whole));
  EXPECT_EQ(twice.Add("a", whole).code(), error::INVALID_ARGUMENT);
  EXPECT_FALSE(twice.Finish().ok());
}

TEST(TensorBundle, KeepsAddedTensors) {
  const std::string prefix = io::JoinPath(testing::TmpDir(), "compat_bundle_of_copies");
  Tensor whole = test::AsTensor<float>({1, 2});
  Tensor slice = test::AsTensor<float>({3, 4});
  BundleWriter writer(Env::Default(), prefix);
  TF_ASSERT_OK(writer.Add("whole", whole));
  TF_ASSERT_OK(writer.AddSlice("slice", TensorShape({2}), TensorSlice::ParseOrDie("0,2"), slice));
  whole.flat<float>()(0) = 10;
  slice.flat<float>()(0) = 10;
  TF_ASSERT_OK(writer.Finish());
  const BundleReader reader(Env::Default(), prefix);
  Tensor value;
  TF_ASSERT_OK(reader.Lookup("whole", &value));
  test::ExpectTensorEqual<float>(value, test::AsTensor<float>({1, 2}));
  TF_ASSERT_OK(reader.Lookup("slice", &value));
  test::ExpectTensorEqual<float>(value, test::AsTensor<float>({3, 4}));

  BundleWriter twice(Env::Default(), prefix);
  TF_ASSERT_OK(twice.AddSlice("a", TensorShape({2}), TensorSlice::ParseOrDie("0,2"), slice));
  EXPECT_EQ(twice.Add("a", whole).code(), error::INVALID_ARGUMENT);
}

TEST(TensorBundle, KeepsItsFirstError) {
  const std::string prefix = io::JoinPath(testing::TmpDir(), "compat_bundle_with_error");
  const Tensor value = test::AsScalar<float>(1);
  BundleWriter writer(Env::Default(), prefix);
  TF_ASSERT_OK(writer.Add("a", value));
  const absl::Status first = writer.Add("a", value);
  EXPECT_EQ(first, absl::InvalidArgumentError("Adding duplicate key: a"));
  EXPECT_EQ(writer.Add("b", value), first);
  EXPECT_EQ(writer.AddSlice("c", TensorShape({2}), TensorSlice::ParseOrDie("0,1"), value), first);
  EXPECT_EQ(writer.Finish(), first);
  EXPECT_EQ(writer.status(), first);
  BundleWriter uninitialized(Env::Default(), prefix);
  EXPECT_FALSE(uninitialized.Add("a", Tensor(Tensor::Unset())).ok());
  EXPECT_FALSE(uninitialized.Finish().ok());

  const BundleReader reader(Env::Default(), prefix);
  EXPECT_EQ(reader.status().code(), error::NOT_FOUND);
  EXPECT_FALSE(reader.Contains("a"));
  Tensor read;
  TensorShape shape;
  EXPECT_EQ(reader.Lookup("a", &read), reader.status());
  EXPECT_EQ(reader.LookupTensorShape("a", &shape), reader.status());
  EXPECT_EQ(reader.LookupSlice("a", TensorSlice::ParseOrDie("0,1"), &read), reader.status());
  EXPECT_EQ(reader.DebugString(), reader.status().ToString());
}

TEST(TensorBundle, ListsItsTensors) {
  const std::string prefix = io::JoinPath(testing::TmpDir(), "compat_bundle_list");
  BundleWriter writer(Env::Default(), prefix);
  TF_ASSERT_OK(writer.Add("b", test::AsTensor<int32>({1, 2}, {1, 2})));
  TF_ASSERT_OK(writer.Add("a", test::AsScalar<float>(1)));
  TF_ASSERT_OK(writer.Finish());
  const BundleReader reader(Env::Default(), prefix);
  EXPECT_EQ(reader.DebugString(), "a (float) []\nb (int32) [1,2]\n");
  DataType type = DT_INVALID;
  TensorShape shape;
  TF_EXPECT_OK(reader.LookupDtypeAndShape("b", &type, &shape));
  EXPECT_EQ(type, DT_INT32);
  EXPECT_EQ(shape, TensorShape({1, 2}));
  EXPECT_EQ(reader.LookupDtypeAndShape("c", &type, &shape).code(), error::NOT_FOUND);
  Tensor value;
  EXPECT_EQ(reader.LookupSlice("c", TensorSlice::ParseOrDie("0,1"), &value).code(),
            error::NOT_FOUND);
  EXPECT_FALSE(reader.LookupSlice("b", TensorSlice::ParseOrDie("0,1:0,3"), &value).ok());
}

TEST(TensorBundle, MergesSeveralBundles) {
  const std::string root = io::JoinPath(testing::TmpDir(), "compat_bundle_merge");
  std::vector<tstring> prefixes;
  const auto write = [&] {
    prefixes.clear();
    for (const char* name : {"a", "b"}) {
      prefixes.emplace_back(io::JoinPath(root, name, "part"));
      BundleWriter writer(Env::Default(), std::string(prefixes.back()));
      TF_CHECK_OK(writer.Add(name, test::AsScalar<float>(name[0])));
      TF_CHECK_OK(writer.Finish());
    }
  };
  write();
  const std::string merged = io::JoinPath(root, "merged");
  TF_ASSERT_OK(MergeBundles(Env::Default(), prefixes, merged));
  EXPECT_EQ(BundleReader(Env::Default(), merged).DebugString(), "a (float) []\nb (float) []\n");
  // Merging does not remove the folders.
  TF_EXPECT_OK(Env::Default()->FileExists(io::JoinPath(root, "a")));
  write();
  prefixes.emplace_back(io::JoinPath(root, "none"));
  EXPECT_EQ(MergeBundles(Env::Default(), prefixes, merged).code(), error::NOT_FOUND);
  TF_EXPECT_OK(MergeBundles(Env::Default(), prefixes, merged, /*allow_missing_files=*/true));
}

TEST(TensorSlice, IsMadeFromAMessage) {
  const auto build = [](int64 start, int64 length, bool has_length = true) {
    TensorSliceProto proto;
    proto.add_extent();
    TensorSliceProto::Extent* const extent = proto.add_extent();
    if (start != 0) extent->set_start(start);
    if (has_length) extent->set_length(length);
    TensorSlice slice;
    const absl::Status status = TensorSlice::BuildTensorSlice(proto, &slice);
    return status.ok() ? slice.DebugString() : std::string(status.message());
  };
  constexpr int64 kMax = std::numeric_limits<int64>::max();
  EXPECT_EQ(build(3, 4), "-:3,4");
  EXPECT_EQ(build(3, 0), "-:3,0");
  EXPECT_EQ(build(0, 0, false), "-:-");
  EXPECT_EQ(build(kMax - 1, 1), absl::StrCat("-:", kMax - 1, ",1"));
  EXPECT_EQ(build(-1, 1), "Expected non-negative start but got -1");
  EXPECT_EQ(build(1, -1), "Expected non-negative length but got -1");
  EXPECT_EQ(build(1, 0, false), "Expected a length of the extent that starts at 1");
  EXPECT_EQ(build(kMax, 1), absl::StrCat("Extent end exceeds int64: start ", kMax, ", length 1"));
}

TEST(TensorSliceReader, ReadsSlices) {
  const std::string path = io::JoinPath(testing::TmpDir(), "compat_old_checkpoint");
  TF_ASSERT_OK(gradflow::WriteOldCheckpoint(
      path, {{"w", test::AsTensor<float>({1, 2, 3, 4}, {2, 2}), "5 2 1,2:-"}}));
  const checkpoint::TensorSliceReader reader(path, checkpoint::OpenTableTensorSliceReader);
  TF_ASSERT_OK(reader.status());
  TensorShape shape;
  DataType type;
  ASSERT_TRUE(reader.HasTensor("w", &shape, &type));
  EXPECT_EQ(shape, TensorShape({5, 2}));
  EXPECT_EQ(type, DT_FLOAT);
  float data[10] = {};
  EXPECT_FALSE(reader.CopySliceData("w", TensorSlice::ParseOrDie("-:-"), data));
  ASSERT_TRUE(reader.CopySliceData("w", TensorSlice::ParseOrDie("2,1:-"), data));
  EXPECT_EQ(data[0], 3);
  EXPECT_EQ(data[1], 4);
  int32 integers[10];
  EXPECT_FALSE(reader.CopySliceData("w", TensorSlice::ParseOrDie("2,1:-"), integers));
  EXPECT_FALSE(reader.HasTensor("v", nullptr, nullptr));
}

TEST(TensorSliceReader, ReadsAndListsTensors) {
  const std::string path = io::JoinPath(testing::TmpDir(), "compat_old_checkpoint_list");
  const Tensor w = test::AsTensor<float>({1, 2, 3, 4}, {2, 2});
  TF_ASSERT_OK(gradflow::WriteOldCheckpoint(
      path, {{"w", w, ""}, {"part", test::AsTensor<int32>({7}), "3 1,1"}}));
  const checkpoint::TensorSliceReader reader(path);
  EXPECT_EQ(reader.DebugString(), "part (int32) [3]\nw (float) [2,2]\n");
  const std::map<std::string, TensorShape> shapes = reader.GetVariableToShapeMap();
  EXPECT_EQ(shapes.size(), 2u);
  EXPECT_EQ(shapes.at("part"), TensorShape({3}));
  const std::map<std::string, DataType> types = reader.GetVariableToDataTypeMap();
  EXPECT_EQ(types.size(), 2u);
  EXPECT_EQ(types.at("w"), DT_FLOAT);
  EXPECT_TRUE(reader.HasTensor("w", nullptr, nullptr));
  std::unique_ptr<Tensor> tensor;
  TF_ASSERT_OK(reader.GetTensor("w", &tensor));
  test::ExpectTensorEqual<float>(*tensor, w);
  const Tensor* const before = tensor.get();
  EXPECT_EQ(reader.GetTensor("v", &tensor), absl::NotFoundError("there is no tensor 'v'"));
  EXPECT_FALSE(reader.GetTensor("part", &tensor).ok());
  EXPECT_EQ(tensor.get(), before);
  const checkpoint::TensorSliceReader none(path + "_none");
  EXPECT_FALSE(none.status().ok());
  EXPECT_EQ(none.GetTensor("w", &tensor), none.status());
}

// A runner that returns a given status.
class Runner : public RunnerInterface {
 public:
  Runner(absl::Status status, int* joins) : status_(std::move(status)), joins_(joins) {}
  Status Join() override {
    ++*joins_;
    return status_;
  }
  bool IsRunning() const override { return *joins_ == 0; }

 private:
  const absl::Status status_;
  int* const joins_;
};

TEST(Coordinator, JoinsAndKeepsTheFirstError) {
  int joins = 0;
  Coordinator coordinator({error::OUT_OF_RANGE});
  for (absl::Status status :
       {absl::Status(errors::OutOfRange("end")), absl::Status(errors::DataLoss("first")),
        absl::Status(errors::Internal("second"))}) {
    TF_ASSERT_OK(coordinator.RegisterRunner(std::make_unique<Runner>(std::move(status), &joins)));
  }
  EXPECT_FALSE(coordinator.AllRunnersStopped());
  EXPECT_EQ(coordinator.Join().code(), error::FAILED_PRECONDITION);
  EXPECT_FALSE(coordinator.ShouldStop());
  TF_ASSERT_OK(coordinator.RequestStop());
  EXPECT_FALSE(coordinator.RequestStop().ok());
  coordinator.WaitForStop();
  EXPECT_EQ(coordinator.Join().code(), error::DATA_LOSS);
  EXPECT_EQ(joins, 3);
}

class NoThreads : public thread::ThreadPoolInterface {
 public:
  void Schedule(std::function<void()> fn) override { fn(); }
  int NumThreads() const override { return 1; }
  int CurrentThreadId() const override { return -1; }
};

TEST(ClientSession, HasItsOwnThreads) {
  const Scope root = Scope::NewRootScope();
  const Output x = ops::Const(root, {1, 2});
  const ClientSession session(root);
  std::vector<Tensor> outputs;
  thread::ThreadPoolOptions threads;
  TF_ASSERT_OK(session.Run(RunOptions(), {}, {x}, {}, &outputs, nullptr, threads));
  test::ExpectTensorEqual<int>(outputs[0], test::AsTensor<int>({1, 2}));
  NoThreads pool;
  threads.inter_op_threadpool = &pool;
  EXPECT_EQ(session.Run(RunOptions(), {}, {x}, {}, &outputs, nullptr, threads).code(),
            error::UNIMPLEMENTED);
}

TEST(GetTensors, RunsAssignmentsFirst) {
  const Scope root = Scope::NewRootScope();
  const auto v = ops::Variable(root, {2}, DT_FLOAT);
  const auto assign = ops::Assign(root, v, ops::Const(root, {3.f, 4.f}));
  Tensor value;
  test::GetTensor(root, {assign}, v, &value);
  test::ExpectTensorEqual<float>(value, test::AsTensor<float>({3, 4}));
}

TEST(Session, ListsTheCpu) {
  SessionOptions options;
  options.config.mutable_graph_options()->mutable_optimizer_options()->set_opt_level(
      OptimizerOptions_Level_L0);
  const std::unique_ptr<Session> session(NewSession(options));
  std::vector<DeviceAttributes> devices;
  TF_ASSERT_OK(session->ListDevices(&devices));
  ASSERT_EQ(devices.size(), 1);
  EXPECT_EQ(devices[0].device_type(), DEVICE_CPU);
  EXPECT_EQ(devices[0].name(), "/device:CPU:0");
}

TEST(Histogram, CountsAndInterpolates) {
  histogram::Histogram histogram({0, 10, 100});
  EXPECT_EQ(histogram.Average(), 0);
  EXPECT_EQ(histogram.Median(), 0);
  for (const double value : {2., 4., 6., 50., 1000.}) histogram.Add(value);
  EXPECT_DOUBLE_EQ(histogram.Average(), 212.4);
  // Half of the 5 numbers are below the median: 2.5 of the 3 numbers in the bucket [2, 10).
  EXPECT_DOUBLE_EQ(histogram.Median(), 2 + 2.5 / 3 * 8);
  EXPECT_EQ(histogram.Percentile(100), 100);
  // A percentile above 100 is the largest number.
  EXPECT_EQ(histogram.Percentile(150), 1000);
  EXPECT_EQ(histogram.ToString(),
            "Count: 5  Average: 212.4000  StdDev: 394.20\n"
            "Min: 2.0000  Median: 8.6667  Max: 1000.0000\n"
            "------------------------------------------------------\n"
            "[          0,         10 )       3  60.000%  60.000% ############\n"
            "[         10,      1e+02 )       2  40.000% 100.000% ########\n");
}

TEST(Histogram, InterpolatesFromTheLimitOfThePreviousBucket) {
  histogram::Histogram histogram({0, 10, 100});
  histogram.Add(-5);
  histogram.Add(5);
  // The buckets [-5, 0] and [0, 5] have one number each. These percentiles are their centers.
  EXPECT_DOUBLE_EQ(histogram.Percentile(75), 2.5);
  EXPECT_DOUBLE_EQ(histogram.Percentile(25), -2.5);
}

TEST(Histogram, ConvertsToAMessage) {
  histogram::ThreadSafeHistogram histogram;
  for (const double value : {0., -3., 1e30, 7., 7.}) histogram.Add(value);
  HistogramProto proto;
  histogram.EncodeToProto(&proto, /*preserve_zero_buckets=*/false);
  EXPECT_LT(proto.bucket_size(), 12);
  EXPECT_EQ(proto.num(), 5);
  histogram::Histogram decoded;
  ASSERT_TRUE(decoded.DecodeFromProto(proto));
  EXPECT_EQ(decoded.ToString(), histogram.ToString());
  histogram.EncodeToProto(&proto, /*preserve_zero_buckets=*/true);
  EXPECT_GT(proto.bucket_size(), 1000);
  proto.mutable_bucket_limit()->SwapElements(1, 2);
  EXPECT_FALSE(decoded.DecodeFromProto(proto));
  EXPECT_FALSE(decoded.DecodeFromProto(HistogramProto()));
}

TEST(Protobuf, ParsesSerializedMessages) {
  Summary summary;
  summary.add_value()->set_tag("t");
  Summary parsed;
  ASSERT_TRUE(ParseProtoUnlimited(&parsed, summary.SerializeAsString()));
  EXPECT_EQ(parsed.value(0).tag(), "t");
  EXPECT_FALSE(ParseProtoUnlimited(&parsed, "\xff"));
}

TEST(Path, HasParts) {
  EXPECT_EQ(io::Dirname("/a/b.txt"), "/a");
  EXPECT_EQ(io::Dirname("/b"), "/");
  EXPECT_EQ(io::Dirname("b"), "");
  EXPECT_EQ(io::Basename("/a/b.txt"), "b.txt");
  EXPECT_EQ(io::Basename("b"), "b");
  EXPECT_EQ(io::Extension("/a.d/b.tar.gz"), "gz");
  EXPECT_EQ(io::Extension("/a.d/b"), "");
}

TEST(StatusCode, ComparesWithNumbers) {
  EXPECT_EQ(error::NOT_FOUND, errors::NotFound("x").raw_code());
  EXPECT_TRUE(error::ABORTED == 10);
  EXPECT_TRUE(3 != error::ABORTED);
}

TEST(MathUtil, DividesAndRaises) {
  EXPECT_EQ(MathUtil::CeilOfRatio(7, 2), 4);
  EXPECT_EQ(MathUtil::CeilOfRatio(-7, 2), -3);
  EXPECT_EQ(MathUtil::FloorOfRatio(-7, 2), -4);
  EXPECT_EQ(MathUtil::FloorOfRatio(7, 2), 3);
  EXPECT_EQ(MathUtil::GCD(12u, 18u), 6u);
  EXPECT_EQ(MathUtil::IPow(3.0, 5), 243);
  EXPECT_EQ(MathUtil::IPow(7, 0), 1);
}

TEST(BFloat16, ConvertsArrays) {
  const float in[] = {1.5f, -2.25f, 1.00390625f};
  bfloat16 rounded[3];
  float out[3];
  FloatToBFloat16(in, rounded, 3);
  BFloat16ToFloat(rounded, out, 3);
  EXPECT_EQ(out[0], 1.5f);
  EXPECT_EQ(out[1], -2.25f);
  EXPECT_EQ(out[2], 1.0f);  // a tie, to even
}

TEST(WindowedOutputSize, SupportsEachPadding) {
  int64_t size, before = 0, after = 0;
  TF_ASSERT_OK(GetWindowedOutputSizeVerbose(10, 3, 2, 2, SAME, &size, &before, &after));
  EXPECT_EQ(size, 5);
  EXPECT_EQ(before, 1);
  EXPECT_EQ(after, 2);
  TF_ASSERT_OK(GetWindowedOutputSize(10, 3, 1, 2, VALID, &size, &before));
  EXPECT_EQ(size, 4);
  before = 2, after = 3;
  TF_ASSERT_OK(GetWindowedOutputSizeVerbose(10, 3, 1, 1, EXPLICIT, &size, &before, &after));
  EXPECT_EQ(size, 13);
  EXPECT_EQ(GetWindowedOutputSize(2, 3, 1, 1, VALID, &size, &before).code(),
            error::INVALID_ARGUMENT);
  EXPECT_FALSE(GetWindowedOutputSize(2, 3, 1, 0, VALID, &size, &before).ok());
  EXPECT_FALSE(GetWindowedOutputSize(2, int64_t{1} << 62, 4, 1, VALID, &size, &before).ok());
}

}  // namespace files_test
}  // namespace tensorflow
