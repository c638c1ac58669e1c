// Tests of files and folders, their errors, and files with untrusted graphs.
#include "tensorflow/core/platform/env.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/lib/io/path.h"
#include "tensorflow/core/platform/test.h"

namespace tensorflow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ReadProtoTest : public ::testing::Test {
 protected:
  // Writes `text` to a file and returns its path.
  string File(const string& text) const {
    TF_CHECK_OK(WriteStringToFile(Env::Default(), path_, text));
    return path_;
  }
  void TearDown() override { (void)Env::Default()->DeleteFile(path_); }

  const string path_ = io::JoinPath(
      ::testing::TempDir(),
      string(::testing::UnitTest::GetInstance()->current_test_info()->name()) + ".proto");
};

string Repeated(const string& text, int times) {
  string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

// Returns the text of `depth` nested lists of functions.
string NestedAttr(int depth) {
  return "attr { key: 'v' value { " + Repeated("list { func { attr { key: 'a' value { ", depth) +
         Repeated("} } } } ", depth) + "} }";
}

TEST_F(ReadProtoTest, RefusesTextThatIsTooDeep) {
  GraphDef graph;
  NodeDef node;
  TF_EXPECT_OK(ReadTextProto(Env::Default(), File("node { " + NestedAttr(10) + " }"), &graph));
  TF_EXPECT_OK(ReadTextProto(Env::Default(), File(NestedAttr(10)), &node));
  EXPECT_EQ(
      ReadTextProto(Env::Default(), File("node { " + NestedAttr(100000) + " }"), &graph).code(),
      error::DATA_LOSS);
  EXPECT_EQ(ReadTextProto(Env::Default(), File(NestedAttr(100000)), &node).code(),
            error::DATA_LOSS);
}

TEST_F(ReadProtoTest, ReportsWhereAGraphIsInvalid) {
  GraphDef graph;
  // The key "a" occurs twice.
  const string entry =
      "\x2a\x07\x0a\x01"
      "a"
      "\x12\x02\x18\x01";
  const Status twice = ReadBinaryProto(Env::Default(), File("\x0a\x12" + entry + entry), &graph);
  EXPECT_EQ(twice.code(), error::DATA_LOSS);
  EXPECT_NE(twice.message().find("is not a GraphDef"), string::npos) << twice;
  EXPECT_NE(twice.message().find("node[0].attr['a']"), string::npos) << twice;
  const Status cut = ReadTextProto(Env::Default(), File("node { name: 'a'"), &graph);
  EXPECT_EQ(cut.code(), error::DATA_LOSS);
  EXPECT_NE(cut.message().find("is not a GraphDef"), string::npos) << cut;
}

TEST(EnvTest, DeletesFoldersButNotFilesAsFolders) {
  Env* const env = Env::Default();
  const string folder = io::JoinPath(::testing::TempDir(), "gradflow_env_test");
  const string file = io::JoinPath(folder, "file");
  TF_CHECK_OK(env->RecursivelyCreateDir(folder));
  TF_CHECK_OK(WriteStringToFile(env, file, "text"));
  EXPECT_FALSE(env->DeleteDir(file).ok());
  TF_EXPECT_OK(env->FileExists(file));
  TF_EXPECT_OK(env->IsDirectory(folder));
  EXPECT_FALSE(env->IsDirectory(file).ok());
  // The folder still holds a file.
  EXPECT_FALSE(env->DeleteDir(folder).ok());
  TF_CHECK_OK(env->DeleteFile(file));
  TF_EXPECT_OK(env->DeleteDir(folder));
  EXPECT_FALSE(env->IsDirectory(folder).ok());
  EXPECT_FALSE(env->DeleteDir(folder).ok());
}

TEST(EnvTest, ChildrenAreSorted) {
  Env* const env = Env::Default();
  const string folder = io::JoinPath(::testing::TempDir(), "gradflow_children_test");
  TF_CHECK_OK(env->RecursivelyCreateDir(folder));
  std::vector<string> names;
  for (char name = 'z'; name >= 'a'; --name) {
    names.insert(names.begin(), string(1, name));
    TF_CHECK_OK(WriteStringToFile(env, io::JoinPath(folder, names.front()), ""));
  }
  std::vector<string> children;
  TF_ASSERT_OK(env->GetChildren(folder, &children));
  EXPECT_EQ(children, names);
  for (const string& name : names) TF_CHECK_OK(env->DeleteFile(io::JoinPath(folder, name)));
  TF_CHECK_OK(env->DeleteDir(folder));
  EXPECT_TRUE(errors::IsNotFound(env->GetChildren(folder, &children)));
}

// Each test has a new folder.
class EnvFilesTest : public ::testing::Test {
 protected:
  EnvFilesTest() {
    std::filesystem::remove_all(folder_);
    TF_CHECK_OK(env_->CreateDir(folder_));
  }
  ~EnvFilesTest() override { std::filesystem::remove_all(folder_); }
  string Path(const string& name) const { return io::JoinPath(folder_, name); }
  string File(const string& name, const string& text = "text") const {
    TF_CHECK_OK(WriteStringToFile(env_, Path(name), text));
    return Path(name);
  }
  static string Read(const string& path) {
    string text;
    TF_EXPECT_OK(ReadFileToString(Env::Default(), path, &text));
    return text;
  }

  Env* const env_ = Env::Default();
  const string folder_ = io::JoinPath(
      ::testing::TempDir(),
      "gradflow_" + string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(EnvFilesTest, ErrorsDescribeTheFault) {
  const string file = File("file"), none = Path("none"), long_name = Path(string(300, 'x'));
  TF_CHECK_OK(env_->CreateDir(Path("full")));
  File("full/file");
  string text;
  std::vector<string> names;
  uint64 size;
  FileStatistics stat;
  std::unique_ptr<ReadOnlyMemoryRegion> region;
  const struct {
    absl::Status status;
    absl::StatusCode code;
    string message;  // the beginning of the message, after the first quotation mark
  } kCases[] = {
      {env_->FileExists(none), error::NOT_FOUND, none + "': cannot be found: No such file"},
      {env_->FileExists(long_name), error::UNKNOWN, long_name + "': cannot be found: File name"},
      {env_->GetFileSize(none, &size), error::NOT_FOUND, none + "': has no size: No such file"},
      {env_->DeleteFile(none), error::NOT_FOUND, none + "': cannot be deleted: No such file"},
      {env_->DeleteFile(folder_), error::FAILED_PRECONDITION,
       folder_ + "': cannot be deleted: Is a directory"},
      {env_->RenameFile(none, file), error::NOT_FOUND,
       none + "': cannot be renamed to '" + file + "': No such file"},
      {env_->CreateDir(file), error::ALREADY_EXISTS, file + "': cannot be created: File exists"},
      {env_->CreateDir(folder_), error::ALREADY_EXISTS,
       folder_ + "': cannot be created: File exists"},
      {env_->CreateDir(file + "/x"), error::NOT_FOUND,
       file + "/x': cannot be created: Not a directory"},
      {env_->RecursivelyCreateDir(file + "/x"), error::NOT_FOUND,
       file + "/x': cannot be created: Not a directory"},
      {env_->DeleteDir(file), error::NOT_FOUND, file + "': cannot be deleted: No such file"},
      {env_->DeleteDir(Path("full")), error::FAILED_PRECONDITION,
       Path("full") + "': cannot be deleted: Directory not empty"},
      {env_->IsDirectory(none), error::NOT_FOUND, none + "': cannot be found: No such file"},
      {env_->IsDirectory(file), error::FAILED_PRECONDITION, file + "': is not a directory"},
      {env_->GetChildren(file, &names), error::NOT_FOUND,
       file + "': cannot be listed: Not a directory"},
      {env_->Stat(none, &stat), error::NOT_FOUND, none + "'"},
      {env_->CopyFile(none, file), error::NOT_FOUND, none + "'"},
      {env_->NewReadOnlyMemoryRegionFromFile(none, &region), error::NOT_FOUND, none + "'"},
      {env_->NewReadOnlyMemoryRegionFromFile(File("empty", ""), &region), error::INVALID_ARGUMENT,
       Path("empty") + "': is empty"},
      {ReadFileToString(env_, none, &text), error::NOT_FOUND, none + "': "},
      {WriteStringToFile(env_, Path("none/x"), text), error::NOT_FOUND, Path("none/x") + "': "},
  };
  for (const auto& [status, code, message] : kCases) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(string(status.message()), StartsWith("'" + message));
  }
  EXPECT_EQ(Read(file), "text");
  TF_EXPECT_OK(env_->FileExists(Path("full/file")));
}

TEST_F(EnvFilesTest, MovesCopiesAndMeasuresFiles) {
  const string file = File("a", "hello");
  uint64 size = 0;
  TF_ASSERT_OK(env_->GetFileSize(file, &size));
  EXPECT_EQ(size, 5u);
  TF_ASSERT_OK(env_->RenameFile(file, Path("b")));
  EXPECT_FALSE(env_->FileExists(file).ok());
  EXPECT_EQ(Read(Path("b")), "hello");
  File("c", "longer than hello");
  TF_ASSERT_OK(env_->CopyFile(Path("b"), Path("c")));
  EXPECT_EQ(Read(Path("c")), "hello");
  EXPECT_EQ(Read(Path("b")), "hello");
  FileStatistics stat;
  TF_ASSERT_OK(env_->Stat(Path("c"), &stat));
  EXPECT_EQ(stat.length, 5);
  EXPECT_FALSE(stat.is_directory);
  const int64 before = stat.mtime_nsec;
  const timespec times[2] = {{7, 8}, {9, 10}};
  ASSERT_EQ(utimensat(AT_FDCWD, Path("c").c_str(), times, 0), 0);
  TF_ASSERT_OK(env_->Stat(Path("c"), &stat));
  EXPECT_EQ(stat.mtime_nsec, 9000000010);
  EXPECT_LE(before, static_cast<int64>(env_->NowNanos()));
  TF_ASSERT_OK(env_->Stat(folder_, &stat));
  EXPECT_TRUE(stat.is_directory);
  TF_ASSERT_OK(env_->RecursivelyCreateDir(Path("d/e/f")));
  TF_EXPECT_OK(env_->IsDirectory(Path("d/e/f")));
  TF_EXPECT_OK(env_->RecursivelyCreateDir(Path("d/e/f")));
  std::unique_ptr<ReadOnlyMemoryRegion> region;
  TF_ASSERT_OK(env_->NewReadOnlyMemoryRegionFromFile(Path("b"), &region));
  EXPECT_EQ(string(static_cast<const char*>(region->data()), region->length()), "hello");
  int64 files = 7, dirs = 7;
  TF_EXPECT_OK(env_->DeleteRecursively(Path("d"), &files, &dirs));
  EXPECT_EQ(files + dirs, 0);
  EXPECT_FALSE(env_->FileExists(Path("d")).ok());
  files = 7;
  EXPECT_EQ(env_->DeleteRecursively(Path("d"), &files, &dirs).message(),
            "'" + Path("d") + "': does not exist");
  EXPECT_EQ(files, 0);
  EXPECT_EQ(dirs, 1);
}

// The files in /proc/self/fdinfo cannot be deleted.
TEST_F(EnvFilesTest, DeleteRecursivelyCountsWhatIsLeft) {
  int64 files = 0, dirs = 0;
  EXPECT_FALSE(env_->DeleteRecursively("/proc/self/fdinfo", &files, &dirs).ok());
  EXPECT_EQ(dirs, 1);
  EXPECT_GT(files, 0);
}

TEST_F(EnvFilesTest, WritesBuffersOf64KiB) {
  std::unique_ptr<WritableFile> out;
  TF_ASSERT_OK(env_->NewWritableFile(File("a", "old text"), &out));
  absl::string_view name;
  TF_EXPECT_OK(out->Name(&name));
  EXPECT_EQ(name, Path("a"));
  const string text((1 << 16) - 1, 'x');
  int64 position = -1;
  TF_EXPECT_OK(out->Tell(&position));
  EXPECT_EQ(position, 0);
  TF_ASSERT_OK(out->Append(text));
  EXPECT_EQ(Read(Path("a")), "");
  TF_ASSERT_OK(out->Append("y"));
  EXPECT_EQ(Read(Path("a")), text + "y");
  TF_ASSERT_OK(out->Append("z"));
  EXPECT_EQ(Read(Path("a")), text + "y");
  TF_ASSERT_OK(out->Sync());
  EXPECT_EQ(Read(Path("a")), text + "yz");
  TF_EXPECT_OK(out->Tell(&position));
  EXPECT_EQ(position, (1 << 16) + 1);
  TF_EXPECT_OK(out->Close());
  TF_EXPECT_OK(out->Close());
  EXPECT_EQ(out->Append("x").message(), "'" + Path("a") + "': is closed");
  File("b", "1");
  TF_ASSERT_OK(env_->NewAppendableFile(Path("b"), &out));
  TF_EXPECT_OK(out->Tell(&position));
  EXPECT_EQ(position, 1);
  TF_ASSERT_OK(out->Append("23"));
  out.reset();
  EXPECT_EQ(Read(Path("b")), "123");
  EXPECT_EQ(env_->NewWritableFile(Path("none/x"), &out).code(), error::NOT_FOUND);
  EXPECT_EQ(out, nullptr);
}

TEST_F(EnvFilesTest, KeepsBytesThatADeviceRefuses) {
  std::unique_ptr<WritableFile> full, null;
  TF_ASSERT_OK(env_->NewWritableFile("/dev/full", &full));
  TF_EXPECT_OK(full->Append("text"));
  for (const absl::Status& status : {full->Flush(), full->Sync(), full->Close()}) {
    EXPECT_EQ(status.code(), error::RESOURCE_EXHAUSTED) << status;
    EXPECT_THAT(string(status.message()), HasSubstr("'/dev/full'"));
  }
  EXPECT_EQ(full->Append("text").code(), error::FAILED_PRECONDITION);
  TF_EXPECT_OK(full->Close());
  // /dev/null accepts writes but cannot be synchronized.
  TF_ASSERT_OK(env_->NewWritableFile("/dev/null", &null));
  TF_EXPECT_OK(null->Append("text"));
  EXPECT_EQ(null->Sync().code(), error::INVALID_ARGUMENT);
  TF_EXPECT_OK(null->Close());
}

TEST_F(EnvFilesTest, ReadsAtAnyOffset) {
  std::unique_ptr<RandomAccessFile> in;
  TF_ASSERT_OK(env_->NewRandomAccessFile(File("a", "0123456789"), &in));
  absl::string_view name, result;
  TF_EXPECT_OK(in->Name(&name));
  EXPECT_EQ(name, Path("a"));
  char scratch[20];
  const struct {
    uint64 offset;
    size_t size;
    const char* expected;
    bool ok;
  } kCases[] = {{0, 10, "0123456789", true}, {3, 4, "3456", true}, {9, 1, "9", true},
                {10, 0, "", true},           {9, 2, "9", false},   {10, 1, "", false},
                {11, 1, "", false}};
  for (const auto& [offset, size, expected, ok] : kCases) {
    const absl::Status status = in->Read(offset, size, &result, scratch);
    EXPECT_EQ(result, expected) << offset;
    EXPECT_EQ(status.message(),
              ok ? ""
                 : absl::StrCat("'", Path("a"), "': the file has ", strlen(expected),
                                " bytes from offset ", offset, ", expected ", size));
    EXPECT_TRUE(ok || status.code() == error::OUT_OF_RANGE);
  }
  TF_EXPECT_OK(in->Read(2, result, absl::MakeSpan(scratch, 3)));
  EXPECT_EQ(result, "234");
  // A folder can be opened, but not read.
  TF_ASSERT_OK(env_->NewRandomAccessFile(folder_, &in));
  EXPECT_THAT(string(in->Read(0, 1, &result, scratch).message()), HasSubstr("Is a directory"));
  EXPECT_EQ(result, "");
}

TEST(EnvTest, CustomFilesMayLeaveOutFunctions) {
  struct OnlyReads : RandomAccessFile {};
  struct OnlyWrites : WritableFile {
    absl::Status Append(absl::string_view) override { return absl::OkStatus(); }
    absl::Status Flush() override { return absl::OkStatus(); }
    absl::Status Sync() override { return absl::OkStatus(); }
    absl::Status Close() override { return absl::OkStatus(); }
  };
  absl::string_view text;
  char scratch[1];
  int64 position = 7;
  const string no_name = "this file does not know its name";
  for (const auto& [status, message] :
       {std::pair(OnlyReads().Read(0, 1, &text, scratch), string("this file cannot be read")),
        std::pair(OnlyReads().Name(&text), no_name), std::pair(OnlyWrites().Name(&text), no_name),
        std::pair(OnlyWrites().Tell(&position), string("this file does not know its position"))}) {
    EXPECT_EQ(status.code(), error::UNIMPLEMENTED);
    EXPECT_EQ(status.message(), message);
  }
  EXPECT_EQ(position, -1);
}

TEST_F(EnvFilesTest, SortsMatchingPaths) {
  File("b.x"), File("a.x"), File("c.y");
  std::vector<string> found = {"old"};
  TF_ASSERT_OK(env_->GetMatchingPaths(Path("*.x"), &found));
  EXPECT_THAT(found, ElementsAre(Path("a.x"), Path("b.x")));
  TF_ASSERT_OK(env_->GetMatchingPaths(Path("*.z"), &found));
  EXPECT_THAT(found, ElementsAre());
}

TEST_F(ReadProtoTest, WritesAndReadsAnyMessage) {
  NodeDef node, read;
  node.set_name("n");
  TF_ASSERT_OK(WriteBinaryProto(Env::Default(), File(""), node));
  TF_ASSERT_OK(ReadBinaryProto(Env::Default(), path_, &read));
  EXPECT_EQ(read.name(), "n");
  TF_ASSERT_OK(WriteTextProto(Env::Default(), File(""), node));
  string text;
  TF_ASSERT_OK(ReadFileToString(Env::Default(), path_, &text));
  EXPECT_EQ(text, "name: \"n\"\n");
  read.Clear();
  TF_ASSERT_OK(ReadTextProto(Env::Default(), path_, &read));
  EXPECT_EQ(read.name(), "n");
  for (const Status& status : {ReadBinaryProto(Env::Default(), File("\xff"), &read),
                               ReadTextProto(Env::Default(), File("\xff"), &read)}) {
    EXPECT_EQ(status.code(), error::DATA_LOSS);
    EXPECT_THAT(string(status.message()), StartsWith("'" + path_ + "': is not "));
  }
  // A file that is too large is not read.
  std::filesystem::resize_file(File(""), uint64{1} << 31);
  GraphDef graph;
  for (const Status& status :
       {ReadBinaryProto(Env::Default(), path_, &read), ReadTextProto(Env::Default(), path_, &read),
        ReadBinaryProto(Env::Default(), path_, &graph)}) {
    EXPECT_EQ(status.code(), error::DATA_LOSS);
    EXPECT_EQ(status.message(),
              "'" + path_ + "': the file has 2147483648 bytes, expected at most 2147483647");
  }
  EXPECT_EQ(ReadTextProto(Env::Default(), path_ + "none", &read).code(), error::NOT_FOUND);
}

TEST(PathTest, JoinsParts) {
  EXPECT_EQ(io::JoinPath("a", "b"), "a/b");
  EXPECT_EQ(io::JoinPath("a/", "b", "c/"), "a/b/c/");
  EXPECT_EQ(io::JoinPath("a/", "//b"), "a/b");
  EXPECT_EQ(io::JoinPath("a", "", "b"), "a/b");
  EXPECT_EQ(io::JoinPath("", "/b"), "/b");
  EXPECT_EQ(io::JoinPath("a", "/"), "a/");
  EXPECT_EQ(io::JoinPath("", ""), "");
}

TEST(ErrorsTest, TextIsAddedToAStatus) {
  Status status = errors::InvalidArgument("wrong");
  errors::AppendToMessage(&status, "in step ", 2);
  EXPECT_EQ(status.message(), "wrong\n\tin step 2");
  Status ok;
  errors::AppendToMessage(&ok, "in step ", 2);
  TF_EXPECT_OK(ok);
}

TEST(ErrorsTest, TextHasWhatAStreamCanWrite) {
  Status status = errors::InvalidArgument("expected ", TensorShape({2, 3}), ", found ", 'x', 0.5f,
                                          string("s"), StringPiece("p"), true);
  EXPECT_EQ(status.message(), "expected [2,3], found x0.5sp1");
  errors::AppendToMessage(&status, "like ", PartialTensorShape({-1, 4}));
  EXPECT_EQ(status.message(), "expected [2,3], found x0.5sp1\n\tlike [?,4]");
}

}  // namespace
}  // namespace tensorflow
