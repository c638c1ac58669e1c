// Tests of the structure of the file that `gradflow run --trace` writes.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gradflow/graph/export.h"
#include "gradflow/graph/import.h"
#include "gradflow/io/npy.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/tools/command_line_fixture.h"

namespace gradflow {
namespace {

using ::gradflow::testing::FileExists;
using ::gradflow::testing::ProcessResult;
using ::gradflow::testing::ReadFile;
using ::gradflow::testing::RunProcess;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

// Converts microseconds to integral nanoseconds.
int64_t Nanos(double microseconds) { return std::llround(microseconds * 1000); }

struct Event {
  std::string name;
  std::string category;
  int64_t start;
  int64_t end;
};

struct Arrow {
  std::string name;
  int row;
  int64_t time;
};

struct Trace {
  // Events by row, ordered by start. If starts are equal, the longer event comes first.
  std::map<int, std::vector<Event>> rows;
  std::map<int, std::string> row_names;
  // The start and the end of each arrow, by id.
  std::map<int, Arrow> starts;
  std::map<int, Arrow> ends;

  const Event* Find(const std::string& name) const {
    for (const auto& [row, events] : rows) {
      for (const Event& event : events) {
        if (event.name == name) return &event;
      }
    }
    return nullptr;
  }
};

// Parses a trace. Fails the test unless it is JSON of the expected form.
Trace Parse(const std::string& json) {
  Trace trace;
  google::protobuf::Struct root;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &root);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(root.fields().count("traceEvents"), 1u);
  for (const auto& value : root.fields().at("traceEvents").list_value().values()) {
    const auto& fields = value.struct_value().fields();
    const auto text = [&](const char* key) { return fields.at(key).string_value(); };
    const auto number = [&](const char* key) { return fields.at(key).number_value(); };
    const std::string phase = text("ph");
    EXPECT_EQ(number("pid"), 1);
    if (phase == "M" && text("name") == "process_name") continue;
    const int row = static_cast<int>(number("tid"));
    if (phase == "M") {
      trace.row_names[row] = fields.at("args").struct_value().fields().at("name").string_value();
    } else if (phase == "X") {
      const int64_t start = Nanos(number("ts"));
      trace.rows[row].push_back({text("name"), text("cat"), start, start + Nanos(number("dur"))});
    } else if (phase == "s" || phase == "f") {
      auto& arrows = phase == "s" ? trace.starts : trace.ends;
      const int id = static_cast<int>(number("id"));
      const Arrow arrow{text("name"), row, Nanos(number("ts"))};
      EXPECT_TRUE(arrows.emplace(id, arrow).second) << id;
      EXPECT_EQ(phase == "f" ? text("bp") : "e", "e");
    } else {
      ADD_FAILURE() << "phase " << phase;
    }
  }
  for (auto& [row, events] : trace.rows) {
    std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
      return std::pair(a.start, -a.end) < std::pair(b.start, -b.end);
    });
  }
  return trace;
}

// Expects that the events of a row are disjoint or nested, and that arrows connect events.
void ExpectWellFormed(const Trace& trace) {
  for (const auto& [row, events] : trace.rows) {
    EXPECT_EQ(trace.row_names.count(row), 1u) << row;
    std::vector<Event> open;
    for (const Event& event : events) {
      EXPECT_GE(event.start, 0);
      EXPECT_LE(event.start, event.end) << event.name;
      while (!open.empty() && open.back().end <= event.start) open.pop_back();
      EXPECT_TRUE(open.empty() || event.end <= open.back().end) << event.name;
      open.push_back(event);
    }
  }
  EXPECT_EQ(trace.starts.size(), trace.ends.size());
  const auto within_a_node = [&](const Arrow& arrow) {
    const std::vector<Event>& events = trace.rows.at(arrow.row);
    return std::any_of(events.begin(), events.end(), [&](const Event& event) {
      return event.category != "phase" && event.start <= arrow.time && arrow.time <= event.end;
    });
  };
  for (const auto& [id, start] : trace.starts) {
    ASSERT_EQ(trace.ends.count(id), 1u);
    const Arrow& end = trace.ends.at(id);
    EXPECT_EQ(start.name, end.name);
    EXPECT_LE(start.time, end.time) << start.name;
    EXPECT_TRUE(within_a_node(start)) << start.name;
    EXPECT_TRUE(within_a_node(end)) << end.name;
  }
}

using TraceTest = testing::CommandLineFixture;

TEST_F(TraceTest, ShowsNodesTensorsAndPhases) {
  Scope root = Scope::NewRootScope();
  Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  Output a = ops::Neg(root.WithOpName("scope/a"), x);
  Output b = ops::Square(root.WithOpName("b"), a);
  ops::Sub(root.WithOpName("c"), a, b);
  GraphDef graph;
  GRADFLOW_ASSERT_OK(root.ToGraphDef(&graph));
  GRADFLOW_ASSERT_OK(WriteGraphDef(File("graph.pb"), graph));
  GRADFLOW_ASSERT_OK(WriteNpy(File("x.npy"), Tensor(1.5f)));
  for (const std::string threads : {"1", "2"}) {
    const ProcessResult result =
        Gradflow({"run", File("graph.pb"), "--feed", "x=" + File("x.npy"), "--fetch", "c",
                  "--trace", File("trace.json"), "--threads", threads});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const std::string json = ReadFile(File("trace.json"));
    const Trace trace = Parse(json);
    ExpectWellFormed(trace);
    for (const char* name : {"make plan", "run", "scope/a", "b", "c"}) {
      EXPECT_NE(trace.Find(name), nullptr) << name;
    }
    EXPECT_EQ(trace.Find("b")->category, "Square");
    EXPECT_EQ(trace.starts.size(), 3u);
    std::multiset<std::string> tensors;
    for (const auto& [id, arrow] : trace.starts) tensors.insert(arrow.name);
    EXPECT_EQ(tensors, (std::multiset<std::string>{"b", "scope/a", "scope/a"}));
    EXPECT_THAT(json, HasSubstr("\"outputs\":\"float[]\""));
  }
}

TEST_F(TraceTest, IsWrittenCompletelyOrNotAtAll) {
  Scope root = Scope::NewRootScope();
  Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  ops::Neg(root.WithOpName("y"), x);
  GraphDef graph;
  GRADFLOW_ASSERT_OK(root.ToGraphDef(&graph));
  GRADFLOW_ASSERT_OK(WriteGraphDef(File("graph.pb"), graph));
  GRADFLOW_ASSERT_OK(WriteNpy(File("x.npy"), Tensor(1.5f)));
  const ProcessResult not_fed =
      Gradflow({"run", File("graph.pb"), "--fetch", "y", "--trace", File("trace.json")});
  EXPECT_EQ(not_fed.exit_code, 1);
  EXPECT_FALSE(FileExists(File("trace.json")));
  const ProcessResult nowhere =
      Gradflow({"run", File("graph.pb"), "--feed", "x=" + File("x.npy"), "--fetch",
                "y=" + File("y.npy"), "--trace", File("no_folder/trace.json")});
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_THAT(nowhere.err, HasSubstr("no_folder/trace.json"));
  EXPECT_FALSE(FileExists(File("y.npy")));
}

// The example qat_block provides the graph and the pictures.
TEST_F(TraceTest, HoldsTheOpsOfTheQatBlock) {
  const ProcessResult prepare =
      RunProcess({GRADFLOW_PROGRAM_gradflow_example_qat_block, "prepare", folder()});
  ASSERT_EQ(prepare.exit_code, 0) << prepare.err;
  std::vector<std::string> run = {"run",     File("qat_block.pb"),
                                  "--feed",  "images=" + File("images.npy"),
                                  "--feed",  "upstream=" + File("upstream.npy"),
                                  "--trace", File("trace.json")};
  for (const std::string branch : {"per_tensor", "per_channel"}) {
    for (const std::string name : {"input", "scale", "offset", "min", "max"}) {
      run.insert(run.end(),
                 {"--fetch", branch + "/grad_" + name + "=" + File(branch + name + ".npy")});
    }
  }
  const ProcessResult result = Gradflow(run);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Trace trace = Parse(ReadFile(File("trace.json")));
  ExpectWellFormed(trace);
  EXPECT_GT(trace.starts.size(), 10u);
  std::set<std::string> ops;
  for (const auto& [row, events] : trace.rows) {
    for (const Event& event : events) {
      if (event.category != "phase") ops.insert(event.category);
    }
  }
  EXPECT_THAT(ops, IsSupersetOf({"FusedBatchNormV3", "FusedBatchNormGradV3",
                                 "FakeQuantWithMinMaxVarsGradient",
                                 "FakeQuantWithMinMaxVarsPerChannelGradient"}));
}

}  // namespace
}  // namespace gradflow
