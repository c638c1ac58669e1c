#include <cmath>
#include <ctime>

#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

// Runs the kernel once, because each run prints. Returns the printed text.
std::string Printed(OpTester tester) {
  ::testing::internal::CaptureStderr();
  GRADFLOW_EXPECT_OK(tester.RunOnThreads(1));
  return ::testing::internal::GetCapturedStderr();
}

OpTester Assert(const Tensor& condition, int64_t summarize) {
  return OpTester("Assert")
      .Input(condition)
      .Input<int32_t>({1, 2, 3, 4, 5})
      .Input(AsScalar<tstring>("a"))
      .Attr("T", DataTypeVector{DT_INT32, DT_STRING})
      .Attr("summarize", summarize);
}

TEST(Assert, ShowsTheTensors) {
  GRADFLOW_EXPECT_OK(Assert(AsScalar<bool>(true), 3).Run());
  EXPECT_THAT(Assert(AsScalar<bool>(false), 3).Run(),
              StatusIs(kInvalidArgument, "assertion failed: [1 2 3...] [a]"));
  EXPECT_THAT(Assert(AsScalar<bool>(false), -1).Run(),
              StatusIs(kInvalidArgument, "assertion failed: [1 2 3 4 5] [a]"));
  OpTester vector = Assert(AsTensor<bool>({true}), 3);
  EXPECT_THAT(vector.Run(),
              StatusIs(kInvalidArgument,
                       HasSubstr("Shape must be rank 0 but is rank 1: condition has shape [1]")));
  EXPECT_THAT(vector.InferShapes(),
              StatusIs(kInvalidArgument,
                       HasSubstr("Shape must be rank 0 but is rank 1: condition has shape [1]")));
}

TEST(Assert, ShowsLittleOfLargeTensors) {
  const absl::Status status = OpTester("Assert")
                                  .Input(AsScalar<bool>(false))
                                  .Input(Iota<int32_t>({100000}))
                                  .Input(AsScalar<tstring>(std::string(1 << 20, 'x')))
                                  .Attr("T", DataTypeVector{DT_INT32, DT_STRING})
                                  .Attr("summarize", int64_t{-1})
                                  .Run()
                                  .status();
  EXPECT_THAT(status, StatusIs(kInvalidArgument, HasSubstr("assertion failed: [0 1 2")));
  EXPECT_LT(status.message().size(), 5000);
}

TEST(Print, PrintsTheFirstElements) {
  const auto print = [](int64_t first_n, int64_t summarize) {
    return OpTester("Print")
        .Input<float>({7})
        .Input<int32_t>({1, 2, 3, 4}, {2, 2})
        .Input<tstring>({"a", "b"})
        .Attr("U", DataTypeVector{DT_INT32, DT_STRING})
        .Attr("message", "m: ")
        .Attr("first_n", first_n)
        .Attr("summarize", summarize);
  };
  EXPECT_EQ(Printed(print(-1, 3)), "m: [[1 2][3]...][a b]\n");
  EXPECT_EQ(Printed(print(-1, -1)), "m: [[1 2][3 4]][a b]\n");
  EXPECT_EQ(Printed(print(0, -1)), "");
  ::testing::internal::CaptureStderr();
  EXPECT_THAT(print(-1, 1).RunOne(), TensorEq(AsTensor<float>({7})));
  // The kernel prints twice, and Run() runs it more than twice.
  OpTester twice = print(2, 1);
  GRADFLOW_EXPECT_OK(twice.Run());
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("m: "));
}

TEST(PrintV2, PrintsToStreams) {
  const auto print = [](const char* stream) {
    return OpTester("PrintV2")
        .Input(AsScalar<tstring>("text"))
        .Attr("output_stream", stream)
        .Attr("end", "!\n");
  };
  EXPECT_EQ(Printed(print("stderr")), "text!\n");
  EXPECT_EQ(Printed(print("log(info)")), "INFO: text!\n");
  EXPECT_EQ(Printed(print("log(warning)")), "WARNING: text!\n");
  EXPECT_EQ(Printed(print("log(error)")), "ERROR: text!\n");
  ::testing::internal::CaptureStdout();
  GRADFLOW_EXPECT_OK(print("stdout").RunOnThreads(1));
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "text!\n");
  EXPECT_THAT(print("stream").MakeKernel(),
              StatusIs(kInvalidArgument, HasSubstr("output_stream must be stdout, stderr,")));
  EXPECT_THAT(print("file:///tmp/x").MakeKernel(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("do not write files")));
  EXPECT_THAT(OpTester("PrintV2").Input<tstring>({"a"}).Run(),
              StatusIs(kInvalidArgument,
                       HasSubstr("Shape must be rank 0 but is rank 1: input has shape [1]")));
}

TEST(Timestamp, ReturnsTheTime) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> now, OpTester("Timestamp").RunOn({}));
  EXPECT_NEAR(now[0].scalar<double>()(), static_cast<double>(std::time(nullptr)), 100);
  EXPECT_THAT(OpTester("Timestamp").InferShape(), ShapeIs("[]"));
}

// The printed text must be limited, because it takes memory.
TEST(Print, PrintsLittleOfManyTensors) {
  constexpr int kCount = 64;
  OpTester tester("Print");
  tester.Input<float>({7});
  const Tensor large = Iota<int32_t>({200000});
  for (int i = 0; i < kCount; ++i) tester.Input(large);
  tester.Attr("U", DataTypeVector(kCount, DT_INT32)).Attr("summarize", int64_t{-1});
  const std::string text = Printed(tester);
  EXPECT_GT(text.size(), 16'000'000);
  EXPECT_LT(text.size(), 16'001'000);
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
