// Files with untrusted graphs.
#include "tensorflow/core/platform/env.h"

#include <string>

#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/lib/io/path.h"
#include "tensorflow/core/platform/test.h"

namespace tensorflow {
namespace {

class ReadProtoTest : public ::testing::Test {
 protected:
  // Writes `text` to a file and returns its path.
  string File(const string& text) const {
    TF_CHECK_OK(WriteStringToFile(Env::Default(), path_, text));
    return path_;
  }
  void TearDown() override { (void)Env::Default()->DeleteFile(path_); }

 private:
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

TEST_F(ReadProtoTest, SaysWhereAGraphIsWrong) {
  GraphDef graph;
  // The key "a" twice.
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
  // Not empty.
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
