// Tests of the files that graphs may access. Each op that uses files asks FileAccess. Links and
// ".." do not lead out of the allowed folders.
#include "gradflow/io/file_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/io/checkpoint.h"
#include "gradflow/io/file.h"
#include "gradflow/io/old_checkpoint.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/testing/folder_fixture.h"
#include "tests/testing/op_rows.h"

namespace gradflow {
namespace {

namespace fs = std::filesystem;

using ::absl::StatusCode;
using ::gradflow::testing::AddOpRow;
using ::gradflow::testing::IsOk;
using ::gradflow::testing::Knowledge;
using ::gradflow::testing::ParseTensors;
using ::gradflow::testing::StatusIs;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

using Use = FileAccess::Use;

// An op that uses files. PATH is replaced by a path.
struct FileOp {
  std::string op;
  Use use;
  // An existing file, or the prefix of a checkpoint.
  std::string name;
  std::string attrs;
  std::string inputs;
};
const std::vector<FileOp>& FileOps() {
  static const auto* const ops = new std::vector<FileOp>{
      {"ReadFile", Use::kRead, "file", "", "string[]=\"PATH\""},
      {"MatchingFiles", Use::kRead, "file", "", "string[1]=\"PATH\""},
      {"ImmutableConst", Use::kRead, "file",
       "dtype=DT_UINT8; shape={ dim { size: 1 } }; memory_region_name=\"PATH\"", ""},
      {"RestoreV2", Use::kRead, "ckpt", "dtypes=[DT_FLOAT]",
       "string[]=\"PATH\"; string[1]=\"a\"; string[1]"},
      {"RestoreV2", Use::kRead, "old", "dtypes=[DT_FLOAT]",
       "string[]=\"PATH\"; string[1]=\"a\"; string[1]"},
      {"Restore", Use::kRead, "old", "dt=DT_FLOAT", "string[]=\"PATH\"; string[]=\"a\""},
      {"RestoreSlice", Use::kRead, "old", "dt=DT_FLOAT",
       "string[]=\"PATH\"; string[]=\"a\"; string[]"},
      {"InitializeTableFromTextFile", Use::kRead, "file", "key_index=-2; value_index=-1",
       "table:string[0]/int64[0]; string[]=\"PATH\""},
      {"InitializeTableFromTextFileV2", Use::kRead, "file", "key_index=-2; value_index=-1",
       "table:string[0]/int64[0]; string[]=\"PATH\""},
      {"FixedUnigramCandidateSampler", Use::kRead, "weights",
       "num_true=1; num_sampled=1; unique=false; range_max=1; vocab_file=\"PATH\"", "int64[1,1]"},
      {"WriteFile", Use::kWrite, "file", "", "string[]=\"PATH\"; string[]=\"x\""},
      {"WriteFile", Use::kWrite, "new", "", "string[]=\"PATH\"; string[]=\"x\""},
      {"SaveV2", Use::kWrite, "ckpt", "",
       "string[]=\"PATH\"; string[1]=\"a\"; string[1]; float[2]"},
      {"Save", Use::kWrite, "old", "", "string[]=\"PATH\"; string[1]=\"a\"; float[2]"},
      {"SaveSlices", Use::kWrite, "old", "",
       "string[]=\"PATH\"; string[1]=\"a\"; string[1]; float[2]"},
      // The op also reads SOURCE. Allow() therefore allows the folder of the source.
      {"MergeV2Checkpoints", Use::kWrite, "merged", "", "string[1]=\"SOURCE\"; string[]=\"PATH\""},
  };
  return *ops;
}

class FileAccessTest : public testing::FolderFixture {
 protected:
  void SetUp() override {
    FolderFixture::SetUp();
    for (const char* folder : {"allowed", "allowed/sub", "allowed2", "outside", "source"}) {
      fs::create_directories(File(folder));
    }
    Fill();
    fs::create_directory_symlink("../outside", File("allowed/link_out"));
    fs::create_directory_symlink("allowed", File("link_in"));
  }

  // Restores the files in all folders.
  void Fill() {
    Tensor values(DT_FLOAT, {2});
    values.flat<float>().setConstant(1);
    for (const char* folder : {"allowed", "allowed2", "outside", "source"}) {
      const std::string at = File(folder) + "/";
      std::ofstream(at + "file") << "contents";
      std::ofstream(at + "weights") << "a,1";
      GRADFLOW_ASSERT_OK(WriteCheckpoint(at + "ckpt", {{"a", values, ""}}));
      GRADFLOW_ASSERT_OK(WriteOldCheckpoint(at + "old", {{"a", values, ""}}));
      for (const char* made : {"new", "merged.index", "merged.data-00000-of-00001"}) {
        fs::remove(at + made);
      }
    }
  }
  // Returns the contents of all files by path.
  std::map<std::string, std::string> Contents(const std::string& folder) const {
    std::map<std::string, std::string> contents;
    for (const auto& entry : fs::directory_iterator(File(folder))) {
      if (!entry.is_regular_file()) continue;
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      contents[entry.path()] = text.str();
    }
    return contents;
  }

  static absl::Status RunGraph(GraphDef graph, const FileAccess& access) {
    SessionOptions options;
    options.file_access = access;
    GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Make(options));
    std::vector<std::string> targets;
    for (const NodeDef& node : graph.node()) targets.push_back(node.name());
    GRADFLOW_RETURN_IF_ERROR(session->Create(std::move(graph)));
    RunOptions run_options;
    run_options.set_timeout_in_ms(60000);
    return session->Run(run_options, {}, {}, targets, nullptr, nullptr);
  }
  absl::Status RunOp(const FileOp& op, const std::string& path, const FileAccess& access) const {
    const auto fill = [&](const std::string& text) {
      return absl::StrReplaceAll(text, {{"PATH", path}, {"SOURCE", File("source/ckpt")}});
    };
    GraphDef graph;
    AddOpRow("op", op.op, fill(op.attrs), ParseTensors(fill(op.inputs)), Knowledge::kValues, &graph,
             nullptr);
    return RunGraph(std::move(graph), access);
  }

  // Allows this kind of access to allowed/. A merge also moves the files of source/.
  FileAccess Allow(const FileOp& op, Use use) const {
    std::vector<std::string> read;
    std::vector<std::string> write;
    (use == Use::kRead ? read : write).push_back(File("allowed"));
    if (op.op == "MergeV2Checkpoints") {
      read.push_back(File("source"));
      write.push_back(File("source"));
    }
    absl::StatusOr<FileAccess> access = FileAccess::Below(read, write);
    EXPECT_THAT(access, IsOk());
    return access.value_or(FileAccess::None());
  }
};

TEST_F(FileAccessTest, OpsTouchFilesBelowTheFolders) {
  for (const FileOp& op : FileOps()) {
    const std::string relative = fs::relative(File("allowed"), fs::current_path()).string();
    for (const std::string& folder : {File("allowed"), File("allowed/sub/.."), File("link_in"),
                                      File("outside/../allowed/link_out/../allowed"), relative}) {
      Fill();
      const std::string path = absl::StrCat(folder, "/", op.name);
      EXPECT_THAT(RunOp(op, path, Allow(op, op.use)), IsOk()) << op.op << " " << path;
    }
    Fill();
    EXPECT_THAT(RunOp(op, File("outside/" + op.name), FileAccess::All()), IsOk()) << op.op;
  }
}

TEST_F(FileAccessTest, OpsTouchNoOtherFiles) {
  for (const FileOp& op : FileOps()) {
    Fill();
    const auto outside = Contents("outside");
    const auto allowed = Contents("allowed");
    const auto other = Contents("allowed2");
    const auto denied =
        StatusIs(StatusCode::kPermissionDenied,
                 HasSubstr(op.use == Use::kRead ? "may read files only below the folders of "
                                                  "--allow-read"
                                                : "may write files only below the folders of "
                                                  "--allow-write"));
    for (const char* folder : {"outside", "allowed/../outside", "allowed/link_out", "allowed2",
                               "link_in/link_out", "missing"}) {
      const std::string path = File(absl::StrCat(folder, "/", op.name));
      EXPECT_THAT(RunOp(op, path, Allow(op, op.use)), denied) << op.op << " " << folder;
    }
    const std::string path = File("allowed/" + op.name);
    EXPECT_THAT(RunOp(op, path, Allow(op, op.use == Use::kRead ? Use::kWrite : Use::kRead)), denied)
        << op.op;
    EXPECT_THAT(RunOp(op, path, FileAccess::None()), StatusIs(StatusCode::kPermissionDenied))
        << op.op;
    EXPECT_EQ(Contents("outside"), outside) << op.op;
    EXPECT_EQ(Contents("allowed"), allowed) << op.op;
    EXPECT_EQ(Contents("allowed2"), other) << op.op;
  }
}

// A file itself may be a link, and so may the files of a checkpoint.
TEST_F(FileAccessTest, OpsFollowNoLinkToAFileOutside) {
  for (const std::string& name :
       {std::string("file"), std::string("ckpt.index"), std::string("ckpt.data-00000-of-00001"),
        std::string("old"), std::string("weights")}) {
    fs::remove(File("allowed/" + name));
    fs::create_symlink("../outside/" + name, File("allowed/" + name));
  }
  const auto outside = Contents("outside");
  for (const FileOp& op : FileOps()) {
    if (op.name == "new" || op.name == "merged") continue;
    EXPECT_THAT(RunOp(op, File("allowed/" + op.name), Allow(op, op.use)),
                StatusIs(StatusCode::kPermissionDenied))
        << op.op << " " << op.name;
  }
  // Replaces the link to the index by a file. The data file is still a link.
  fs::remove(File("allowed/ckpt.index"));
  fs::copy_file(File("outside/ckpt.index"), File("allowed/ckpt.index"));
  for (const FileOp& op : FileOps()) {
    if (op.name != "ckpt") continue;
    EXPECT_THAT(RunOp(op, File("allowed/ckpt"), Allow(op, op.use)),
                StatusIs(StatusCode::kPermissionDenied))
        << op.op;
  }
  // The target of the link does not exist.
  fs::remove(File("allowed/file"));
  fs::create_symlink("../outside/new", File("allowed/file"));
  for (const FileOp& op : FileOps()) {
    if (op.name != "file" || op.op == "MatchingFiles") continue;
    EXPECT_THAT(RunOp(op, File("allowed/file"), Allow(op, op.use)), Not(IsOk())) << op.op;
  }
  EXPECT_EQ(Contents("outside"), outside);
}

// Old checkpoints are found by a pattern, and its matches may be links.
TEST_F(FileAccessTest, PatternsMatchNoFilesOutside) {
  const FileAccess access = Allow(FileOps()[0], Use::kRead);
  const FileOp& matching = FileOps()[1];
  for (const char* pattern : {"outside/*", "allowed/link_out/*", "*/file", "allowed/*/file",
                              "allowed/../*", "missing/*"}) {
    EXPECT_THAT(RunOp(matching, File(pattern), access), StatusIs(StatusCode::kPermissionDenied))
        << pattern;
  }
  EXPECT_THAT(RunOp(matching, File("allowed/f*"), access), IsOk());
  EXPECT_THAT(RunOp(matching, File("allowed/sub/*"), access), IsOk());
}

TEST_F(FileAccessTest, MakesFoldersBelowTheFolders) {
  const FileOp write = {"WriteFile", Use::kWrite, "", "", "string[]=\"PATH\"; string[]=\"x\""};
  const FileAccess access = Allow(write, Use::kWrite);
  EXPECT_THAT(RunOp(write, File("allowed/a/b/new"), access), IsOk());
  EXPECT_TRUE(fs::exists(File("allowed/a/b/new")));
  for (const char* path : {"allowed/c/../../outside/new", "outside/c/new", "allowed/link_out/c/new",
                           "allowed/c/../new"}) {
    EXPECT_THAT(RunOp(write, File(path), access), StatusIs(StatusCode::kPermissionDenied)) << path;
  }
  EXPECT_FALSE(fs::exists(File("allowed/c")));
  EXPECT_FALSE(fs::exists(File("outside/c")));
}

// Errors do not reveal the contents of other folders.
TEST_F(FileAccessTest, ErrorsDoNotTellWhetherAFileExists) {
  const FileOp& read = FileOps()[0];
  const FileAccess access = Allow(read, Use::kRead);
  const auto error = [&](const char* path) {
    return absl::StrReplaceAll(RunOp(read, File(path), access).message(), {{File(path), "PATH"}});
  };
  const std::string exists = error("outside/file");
  for (const char* path : {"outside/none", "outside", "none/none", "outside/file/x"}) {
    EXPECT_EQ(error(path), exists) << path;
  }
  EXPECT_THAT(RunOp(read, File("allowed/none"), access), StatusIs(StatusCode::kNotFound));
}

TEST_F(FileAccessTest, AcceptsOnlyFolders) {
  EXPECT_THAT(FileAccess::Below({File("none")}, {}),
              StatusIs(StatusCode::kNotFound, HasSubstr("none': cannot open the folder")));
  EXPECT_THAT(FileAccess::Below({}, {File("allowed/file")}), Not(IsOk()));
  // The root folder contains all files.
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const FileAccess root, FileAccess::Below({"/"}, {}));
  EXPECT_THAT(root.Check(File("outside/file"), Use::kRead), IsOk());
  EXPECT_THAT(root.Check(File("outside/file"), Use::kWrite),
              StatusIs(StatusCode::kPermissionDenied));
  EXPECT_THAT(FileAccess::All().Check("/none/x", Use::kWrite), IsOk());
  EXPECT_THAT(FileAccess::None().Check("/", Use::kRead), StatusIs(StatusCode::kPermissionDenied));
}

// The folders are opened when FileAccess is created. A link that later replaces a folder has no
// effect.
TEST_F(FileAccessTest, KeepsItsFolders) {
  const FileOp& read = FileOps()[0];
  const FileAccess access = Allow(read, Use::kRead);
  fs::rename(File("allowed"), File("before"));
  fs::create_directory_symlink("outside", File("allowed"));
  EXPECT_THAT(RunOp(read, File("allowed/file"), access), StatusIs(StatusCode::kPermissionDenied));
}

// ---- All ops ----

// Reports if anything in a folder was opened, created, renamed or removed.
class FolderWatch {
 public:
  explicit FolderWatch(const std::string& folder) : file_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    EXPECT_GE(inotify_add_watch(file_.get(), folder.c_str(), IN_ALL_EVENTS), 0)
        << "the system cannot watch folders";
  }
  // Returns whether there were events since the last call.
  bool Touched() {
    char events[4096];
    bool touched = false;
    while (read(file_.get(), events, sizeof(events)) > 0) touched = true;
    return touched;
  }

 private:
  internal::FileDescriptor file_;
};

// Runs each op with paths in a watched folder. An op that touches a file must be in FileOps(), and
// must not touch a file without access.
TEST_F(FileAccessTest, EveryOpThatTouchesFilesIsInTheTable) {
  std::set<std::string> expected;
  for (const FileOp& op : FileOps()) expected.insert(op.op);
  const std::string folder = File("watched");
  fs::create_directories(folder);
  FolderWatch watch(folder);
  Tensor values(DT_FLOAT, {2});
  values.flat<float>().setConstant(1);
  std::set<std::string> touching;
  int runs = 0;
  for (const std::vector<std::string>& row :
       testing::ReadRows(GRADFLOW_TEST_DATA_DIR "/op_rows.txt")) {
    const OpRegistration* const op = GlobalRegistry().FindOp(row[0]);
    ASSERT_NE(op, nullptr) << row[0];
    // The strings that the path replaces: "" for all strings of inputs, "*" for the strings that
    // are not empty in the row (empty strings may be slices), or the name of an attribute.
    std::vector<std::string> places = {"", "*"};
    for (const OpDef::AttrDef& attr : op->def().attr()) {
      if (attr.type() == "string" && !attr.has_allowed_values()) places.push_back(attr.name());
    }
    for (const std::string& place : places) {
      const bool is_attr = !place.empty() && place != "*";
      // The second pattern lists the folder.
      for (const std::string& path : {folder + "/a", folder + "/*"}) {
        std::vector<Tensor> inputs = ParseTensors(row.size() > 2 ? row[2] : "");
        bool has_path = is_attr;
        for (Tensor& input : inputs) {
          if (input.dtype() != DT_STRING || is_attr) continue;
          const auto strings = input.span<tstring>();
          for (tstring& text : strings) {
            if (text.empty() && place == "*") continue;
            text = path;
            has_path = true;
          }
        }
        if (!has_path) continue;
        GraphDef graph;
        AddOpRow("op", row[0], row.size() > 1 ? row[1] : "", inputs, Knowledge::kValues, &graph,
                 nullptr);
        for (NodeDef& node : *graph.mutable_node()) {
          // Unstage and its Stage must name the same queue.
          const bool has_attr = node.name() == "op" || node.name() == "op/stage";
          if (has_attr && is_attr) (*node.mutable_attr())[place].set_s(path);
        }
        for (const FileAccess& access : {FileAccess::None(), FileAccess::All()}) {
          // Earlier ops may have removed the files.
          GRADFLOW_ASSERT_OK(WriteCheckpoint(folder + "/a", {{"a", values, ""}}));
          GRADFLOW_ASSERT_OK(WriteOldCheckpoint(folder + "/a", {{"a", values, ""}}));
          watch.Touched();
          RunGraph(graph, access).IgnoreError();
          ++runs;
          if (!watch.Touched()) continue;
          EXPECT_TRUE(access.folders() == nullptr) << row[0] << " touches files without access";
          touching.insert(row[0]);
        }
      }
    }
  }
  EXPECT_GT(runs, 100);
  EXPECT_THAT(touching, ElementsAreArray(expected));
}

}  // namespace
}  // namespace gradflow
