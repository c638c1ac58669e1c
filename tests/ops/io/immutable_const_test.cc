#include <string>

#include "gradflow/core/run_context.h"
#include "gradflow/testing/kernel_test.h"
#include "tests/testing/constants.h"
#include "tests/testing/folder_fixture.h"
#include "tests/testing/subprocess.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ImmutableConstTest : public FolderFixture {
 protected:
  static OpTester Const(const std::string& path, DataType dtype, const TensorShape& shape) {
    return OpTester("ImmutableConst")
        .Attr("memory_region_name", path)
        .Attr("dtype", dtype)
        .Attr("shape", shape);
  }
};

TEST_F(ImmutableConstTest, ReadsTheBytesOfAFile) {
  WriteFile(File("data"), std::string("\x01\x00\x02\x00\x03\x00\xff\xff??", 10));
  EXPECT_THAT(Const(File("data"), DT_INT16, {2, 2}).RunOne(),
              TensorEq(AsTensor<int16_t>({1, 2, 3, -1}, {2, 2})));
  EXPECT_THAT(Const(File("data"), DT_UINT8, {}).RunOne(), TensorEq(AsScalar<uint8_t>(1)));
  EXPECT_THAT(Const(File("data"), DT_FLOAT, {0, 7}).RunOne(), TensorEq(Tensor(DT_FLOAT, {0, 7})));
}

TEST_F(ImmutableConstTest, RejectsOtherFiles) {
  WriteFile(File("data"), "12345678");
  EXPECT_THAT(
      Const(File("data"), DT_INT32, {3}).Run(),
      StatusIs(kInvalidArgument,
               AllOf(HasSubstr("data': expected as many bytes as int32 [3] has, but found 8"))));
  EXPECT_THAT(
      Const(File("data"), DT_INT64, {int64_t{1} << 61}).Run(),
      StatusIs(
          kInvalidArgument,
          HasSubstr("expected as many bytes as int64 [2305843009213693952] has, but found 8")));
  EXPECT_THAT(Const(File("nothing"), DT_INT32, {3}).Run(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("cannot open")));
  EXPECT_THAT(Const("/dev/zero", DT_INT32, {3}).Run(),
              StatusIs(kInvalidArgument, HasSubstr("'/dev/zero': expected a regular file")));
  EXPECT_THAT(Const(::testing::TempDir(), DT_INT32, {3}).Run(),
              StatusIs(kInvalidArgument, HasSubstr("expected a regular file")));
  EXPECT_THAT(Const(File("data"), DT_STRING, {1}).Run(),
              StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(OpTester("ImmutableConst")
                  .Attr("memory_region_name", File("data"))
                  .Attr("dtype", DT_INT32)
                  .Attr("shape", PartialTensorShape({-1}))
                  .MakeKernel(),
              StatusIs(kInvalidArgument, HasSubstr("shape must be known, but is [?]")));
}

TEST_F(ImmutableConstTest, StopsWhileItReads) {
  WriteFile(File("data"), "12345678");
  StopToken stop(nullptr, nullptr, StopToken::Clock::time_point());
  GRADFLOW_EXPECT_OK(Const(File("data"), DT_INT32, {2}).StoppedBy(&stop).RunOnThreads(1).status());
  EXPECT_TRUE(stop.IsStopped());
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
