// Tests of Status in TensorFlow 1.x, errors and their macros with old and current names, LOG and
// CHECK.
#include "tensorflow/core/lib/core/status.h"

#include <functional>
#include <memory>
#include <sstream>
#include <unordered_map>

#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/lib/io/path.h"
#include "tensorflow/core/lib/strings/str_util.h"
#include "tensorflow/core/lib/strings/strcat.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/macros.h"
#include "tensorflow/core/platform/statusor.h"
#include "tensorflow/core/platform/test.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {
namespace {

Status OldStyle(int n) {
  if (n < 0) return errors::InvalidArgument("n must not be negative, got ", n);
  if (n > 9) return Status(error::OUT_OF_RANGE, "too large");
  return Status::OK();
}

absl::Status NewStyle(int n) {
  TF_RETURN_IF_ERROR(OldStyle(n));
  TF_RETURN_WITH_CONTEXT_IF_ERROR(OldStyle(n - 5), "while looking at ", n);
  return absl::OkStatus();
}

StatusOr<int> Half(int n) {
  if (n % 2 != 0) return errors::FailedPrecondition(n, " is odd");
  return n / 2;
}

Status Quarter(int n, int* quarter) {
  TF_ASSIGN_OR_RETURN(int half, Half(n));
  TF_ASSIGN_OR_RETURN(*quarter, Half(half));
  return OkStatus();
}

TEST(StatusTest, BothSpellingsMix) {
  Status s = OldStyle(-1);
  EXPECT_FALSE(s.ok());
  EXPECT_EQ(error::INVALID_ARGUMENT, s.code());
  EXPECT_EQ(absl::StatusCode::kInvalidArgument, s.code());
  EXPECT_EQ(s.error_message(), "n must not be negative, got -1");
  EXPECT_EQ(s.message(), "n must not be negative, got -1");
  EXPECT_EQ(s.ToString(), "INVALID_ARGUMENT: n must not be negative, got -1");
  EXPECT_TRUE(errors::IsInvalidArgument(s));
  EXPECT_TRUE(absl::IsInvalidArgument(s));
  const absl::Status absl_status = s;
  EXPECT_EQ(s, absl_status);
  EXPECT_NE(s, Status::OK());
  std::ostringstream os;
  os << s;
  EXPECT_EQ(os.str(), s.ToString());
  switch (OldStyle(10).code()) {
    case error::OUT_OF_RANGE:
      break;
    default:
      FAIL();
  }
  EXPECT_EQ(error_name(error::OUT_OF_RANGE), "OUT_OF_RANGE");
}

TEST(StatusTest, UpdateKeepsTheFirstError) {
  Status s;
  s.Update(Status::OK());
  TF_EXPECT_OK(s);
  s.Update(errors::Aborted("first"));
  s.Update(errors::Internal("second"));
  EXPECT_EQ(s, errors::Aborted("first"));
  s.IgnoreError();
}

TEST(StatusTest, MacrosReturnEarly) {
  TF_EXPECT_OK(NewStyle(5));
  EXPECT_EQ(NewStyle(-1), OldStyle(-1));
  const Status with_context = NewStyle(4);
  EXPECT_EQ(with_context.error_message(), "n must not be negative, got -1\n\twhile looking at 4");
  int quarter = 0;
  TF_ASSERT_OK(Quarter(8, &quarter));
  EXPECT_EQ(quarter, 2);
  EXPECT_TRUE(errors::IsFailedPrecondition(Quarter(6, &quarter)));
}

TEST(StatusTest, LambdasNeedNoReturnType) {
  const auto old_style = [](int n) {
    TF_RETURN_IF_ERROR(OldStyle(n));
    if (n == 1) return errors::NotFound("one");
    return Status::OK();
  };
  const auto new_style = [](int n) {
    TF_RETURN_IF_ERROR(NewStyle(n));
    if (n == 6) return absl::NotFoundError("six");
    return absl::OkStatus();
  };
  std::function<Status(int)> fn = old_style;
  EXPECT_EQ(fn(1), errors::NotFound("one"));
  fn = new_style;
  EXPECT_EQ(fn(6), errors::NotFound("six"));
  TF_EXPECT_OK(fn(7));
}

TEST(LoggingTest, ChecksPassSilently) {
  const std::unique_ptr<int> pointer(new int(3));
  CHECK(pointer != nullptr) << "never evaluated";
  CHECK_EQ(*pointer, 3u) << "signs may differ";
  CHECK_NE(*pointer, 4);
  CHECK_LT(*pointer, 4);
  CHECK_LE(*pointer, 3);
  CHECK_GT(*pointer, 2);
  CHECK_GE(*pointer, 3);
  EXPECT_EQ(CHECK_NOTNULL(pointer.get()), pointer.get());
  DCHECK_EQ(*pointer, 3);
  if (*pointer == 3)
    TF_CHECK_OK(Status::OK());
  else
    FAIL();
  int evaluated = 0;
  VLOG(1000) << ++evaluated;
  EXPECT_EQ(evaluated, 0);
}

TEST(LoggingDeathTest, FailedChecksEndTheProgram) {
  const int two = 2;
  EXPECT_DEATH(CHECK_EQ(two + two, 5) << "really",
               "Check failed: two \\+ two == 5 \\(4 vs. 5\\) really");
  EXPECT_DEATH(CHECK(two == 3), "Check failed: two == 3");
  EXPECT_DEATH(LOG(FATAL) << "the end", "F status_test.cc:[0-9]+\\] the end");
  EXPECT_DEATH(TF_CHECK_OK(errors::Internal("broken")) << "here", "INTERNAL: broken here");
}

TEST(LoggingTest, MessagesNameTheirPlace) {
  ::testing::internal::CaptureStderr();
  LOG(WARNING) << "about " << 3 << " things";
  const string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.substr(0, 17), "W status_test.cc:");
  EXPECT_NE(text.find("] about 3 things\n"), string::npos) << text;
}

class OnlyOne {
 public:
  OnlyOne() {}

 private:
  TF_DISALLOW_COPY_AND_ASSIGN(OnlyOne);
};
static_assert(!std::is_copy_constructible<OnlyOne>::value, "");

TEST(StringPieceTest, IsAViewWithToString) {
  const string text = "a piece";
  const StringPiece piece = text;
  EXPECT_EQ(piece.ToString(), text);
  EXPECT_EQ(piece.substr(2).ToString(), "piece");
  EXPECT_EQ(piece.substr(2, 3), "pie");
  EXPECT_EQ(StringPiece().ToString(), "");
  EXPECT_EQ(StringPiece("xyz", 2).ToString(), "xy");
  EXPECT_EQ(strings::StrCat("<", piece, ">"), "<a piece>");
  EXPECT_LT(StringPiece("a"), piece);
  EXPECT_TRUE(piece.starts_with("a ") && !piece.starts_with("piece"));
  EXPECT_TRUE(piece.ends_with("piece") && !piece.ends_with("a "));
  EXPECT_TRUE(piece.contains(" p") && !piece.contains("pp"));

  // The functions of str_util and of files accept and fill StringPieces.
  StringPiece rest = piece;
  EXPECT_TRUE(str_util::ConsumePrefix(&rest, "a "));
  EXPECT_EQ(rest.ToString(), "piece");
  const string path = io::JoinPath(testing::TmpDir(), "string_piece");
  TF_ASSERT_OK(WriteStringToFile(Env::Default(), path, piece));
  std::unique_ptr<RandomAccessFile> file;
  TF_ASSERT_OK(Env::Default()->NewRandomAccessFile(path, &file));
  char scratch[16];
  StringPiece read;
  TF_ASSERT_OK(file->Read(2, 3, &read, scratch));
  EXPECT_EQ(read.ToString(), "pie");
  std::unordered_map<string, int> counts;
  ++counts[read.ToString()];
  EXPECT_EQ(counts["pie"], 1);
}

TEST(MacrosTest, ArraySizeCountsElements) {
  const int values[] = {1, 2, 3};
  EXPECT_EQ(TF_ARRAYSIZE(values), 3u);
  EXPECT_EQ(kint32max, 2147483647);
}

}  // namespace
}  // namespace tensorflow
