// Tests of stack traces as texts, and of the messages that store them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/graph/graph_debug_info_builder.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/platform/status_matchers.h"

namespace tensorflow {
namespace graph_debug_info_test {

using ::tensorflow::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

using Options = AbstractStackTrace::TracePrintingOptions;

// Returns the file names in the text of a trace.
std::vector<std::string> ShownFiles(const std::vector<std::string>& files, const Options& options) {
  std::vector<StackFrame> frames;
  for (const std::string& file : files) frames.emplace_back(file, 1, "f");
  std::string text = FrozenStackTrace(frames).ToString(options);
  std::vector<std::string> shown;
  for (size_t at = 0; (at = text.find("File \"", at)) != std::string::npos;) {
    at += 6;
    shown.push_back(text.substr(at, text.find('"', at) - at));
  }
  return shown;
}

TEST(StackTraceText, LeavesOutCommonFolders) {
  const struct {
    std::vector<std::string> files;
    std::vector<std::string> shown;
  } kCases[] = {{{}, {}},
                {{"a/b/c.cc", "a/b/d.cc"}, {"c.cc", "d.cc"}},
                {{"a/b/c.cc", "a/d.cc"}, {"b/c.cc", "d.cc"}},
                {{"a/b.cc"}, {"b.cc"}},
                {{"b.cc"}, {"b.cc"}},
                {{"/b.cc"}, {"b.cc"}},
                {{"a/b.cc", "c/b.cc"}, {"a/b.cc", "c/b.cc"}},
                {{"ab/c.cc", "a/c.cc"}, {"ab/c.cc", "a/c.cc"}},
                {{"a/", "a/b"}, {"", "b"}},
                {{"<embedded x>"}, {"<embedded x>"}},
                {{"a/b.cc", "<embedded x>", "a/c.cc"}, {"b.cc", "<embedded x>", "c.cc"}}};
  Options options;
  for (const auto& [files, shown] : kCases) {
    EXPECT_THAT(ShownFiles(files, options), ElementsAreArray(files));
    options.filter_common_prefix = true;
    EXPECT_THAT(ShownFiles(files, options), ElementsAreArray(shown));
    options.filter_common_prefix = false;
  }
}

TEST(StackTraceText, LeavesOutInternalFrames) {
  const std::vector<std::string> files = {"tensorflow/python/a.py",
                                          "x/tensorflow/python/keras/b.py",
                                          "tensorflow/python/c_test.py",
                                          "tensorflow/core/d.py",
                                          "keras/e.py",
                                          "f_test.py"};
  Options options;
  EXPECT_THAT(ShownFiles(files, options), ElementsAreArray(files));
  options.drop_internal_frames = true;
  EXPECT_THAT(ShownFiles(files, options),
              ElementsAre(files[1], files[2], files[3], files[4], files[5]));
  EXPECT_EQ(
      FrozenStackTrace(std::vector<StackFrame>{{"a", 3, "f"}, {"b", 4, "g"}}).ToString(Options()),
      "File \"a\", line 3, in f\nFile \"b\", line 4, in g");
}

TEST(FrozenStackTraceTest, FindsTheFramesOfTheUser) {
  const std::vector<StackFrame> all = {{"a", 1, "f"}, {"b", 2, "g"}, {"c", 3, "h"}};
  const std::vector<StackFrame> user = {all[0], all[1]};
  const FrozenStackTrace trace(all, user);
  EXPECT_THAT(trace.ToFrames(), ElementsAreArray(all));
  EXPECT_EQ(trace.ToUncachedFrames(), all);
  EXPECT_EQ(trace.LastUserFrame(), user[1]);
  for (const int limit : {-1, 2, 3}) EXPECT_EQ(trace.GetUserFrames(limit), user) << limit;
  EXPECT_THAT(trace.GetUserFrames(1), ElementsAre(user[0]));
  EXPECT_THAT(trace.GetUserFrames(0), IsEmpty());
}

GraphDebugInfo::FileLineCol Frame(int file, int line, const std::string& function) {
  GraphDebugInfo::FileLineCol frame;
  frame.set_file_index(file);
  frame.set_line(line);
  frame.set_func(function);
  return frame;
}

TEST(FrozenStackTraceTest, IsMadeFromAMessage) {
  GraphDebugInfo info;
  info.add_files("a");
  info.add_files("b");
  (*info.mutable_frames_by_id())[5] = Frame(1, 9, "id");
  GraphDebugInfo::StackTrace stored;
  for (const int file : {-1, 0, 1, 2}) *stored.add_file_line_cols() = Frame(file, file + 10, "f");
  for (const int id : {4, 5}) stored.add_frame_id(id);
  EXPECT_THAT(FrozenStackTrace(stored, info).ToFrames(),
              ElementsAre(StackFrame("<UNKNOWN_FILE_NAME>", 9, "f"), StackFrame("a", 10, "f"),
                          StackFrame("b", 11, "f"), StackFrame("<UNKNOWN_FILE_NAME>", 12, "f"),
                          StackFrame("b", 9, "id")));
}

// Returns the names and the frames of the traces of a message.
std::vector<std::string> Traces(const GraphDebugInfo& info) {
  std::vector<std::string> texts;
  for (const auto& [name, trace] : LoadTracesFromDebugInfo(info)) {
    texts.push_back(name);
    for (const StackFrame& frame : trace->ToFrames()) {
      absl::StrAppend(&texts.back(), " ", frame.file_name, ":", frame.line_number, ":",
                      frame.function_name);
    }
  }
  return texts;
}

TEST(GraphDebugInfoBuilderTest, StoresFramesOfTheUserOrAll) {
  StackTracesMap map;
  map["n"] = std::make_shared<FrozenStackTrace>(
      std::vector<StackFrame>{{"a", 1, "f"}, {"b", 2, "g"}, {"a", 3, "h"}},
      std::vector<StackFrame>{{"a", 1, "f"}, {"b", 2, "g"}});
  map["none"] = nullptr;
  EXPECT_THAT(Traces(StackTracesMapToGraphDebugInfo(map)), ElementsAre("n a:1:f b:2:g"));
  const GraphDebugInfo all = StackTracesMapToGraphDebugInfo(map, /*user_frames=*/false);
  EXPECT_THAT(Traces(all), ElementsAre("n a:1:f b:2:g a:3:h"));
  EXPECT_THAT(all.files(), ElementsAre("a", "b"));
  EXPECT_EQ(all.frames_by_id().at(2).file_index(), 0);
  EXPECT_EQ(all.traces_by_id().at(0).frame_id_size(), 3);
  GraphDebugInfoBuilder builder;
  GraphDebugInfoBuilder::Options options;
  options.user_frames = true;
  options.user_frames_limit = 1;
  builder.AccumulateStackTracesMap(map, "@f", options);
  builder.AccumulateStackTracesMap(map);
  EXPECT_THAT(Traces(builder.Build()), UnorderedElementsAre("n@f a:1:f", "n a:1:f b:2:g a:3:h"));
}

TEST(GraphDebugInfoBuilderTest, AppendsMessages) {
  GraphDebugInfo info;
  info.add_files("a");
  *(*info.mutable_traces())["old"].add_file_line_cols() = Frame(0, 1, "f");
  GraphDebugInfoBuilder builder;
  builder.AppendGraphDebugInfo("", info);
  builder.AppendGraphDebugInfo("p", info);
  TF_ASSERT_OK(builder.AppendGraphDebugInfoStr("q", info.SerializeAsString()));
  const auto traces = UnorderedElementsAre("old a:1:f", "old@p a:1:f", "old@q a:1:f");
  EXPECT_THAT(Traces(builder.Build()), traces);
  EXPECT_EQ(builder.Build().traces_by_id_size(), 1);
  const absl::StatusOr<StackTracesMap> loaded =
      LoadTracesFromDebugInfoStr(builder.ToGraphDebugInfoStr());
  TF_ASSERT_OK(loaded.status());
  EXPECT_EQ(loaded->size(), 3u);
  const auto is_no_message =
      StatusIs(error::INVALID_ARGUMENT, "Failed to parse GraphDebugInfo proto.");
  EXPECT_THAT(builder.AppendGraphDebugInfoStr("r", "\xff"), is_no_message);
  EXPECT_THAT(LoadTracesFromDebugInfoStr("\xff").status(), is_no_message);
  EXPECT_THAT(Traces(builder.Build()), traces);
}

// 256 frames of 1 MiB each fill the limit of 256 MiB.
TEST(GraphDebugInfoBuilderTest, LoadsAtMostItsLimit) {
  for (const int frames : {256, 257}) {
    GraphDebugInfo info;
    info.add_files(std::string((1 << 20) - sizeof(StackFrame) - 3, 'x'));
    GraphDebugInfo::StackTrace& trace = (*info.mutable_traces())["n"];
    for (int i = 0; i < frames; ++i) *trace.add_file_line_cols() = Frame(0, 1, "abc");
    EXPECT_EQ(LoadTracesFromDebugInfo(info).size(), frames == 256 ? 1u : 0u);
    // Stores the trace once by an id, and refers to it by two names.
    (*info.mutable_frames_by_id())[7] = Frame(0, 1, "abc");
    info.clear_traces();
    GraphDebugInfo::StackTrace& by_id = (*info.mutable_traces_by_id())[3];
    for (int i = 0; i < frames; ++i) by_id.add_frame_id(7);
    (*info.mutable_name_to_trace_id())["n"] = 3;
    (*info.mutable_name_to_trace_id())["same"] = 3;
    // If the traces fit, they leave no room for others.
    *(*info.mutable_traces())["late"].add_file_line_cols() = Frame(-1, 1, "");
    EXPECT_EQ(LoadTracesFromDebugInfo(info).size(), frames == 256 ? 2u : 1u);
  }
}

}  // namespace graph_debug_info_test
}  // namespace tensorflow
