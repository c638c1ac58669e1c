// Tests of ChromeTrace with given times.
#include "tools/chrome_trace.h"

#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace gradflow::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A run with two threads, given out of order. AddNode() adds a node with [start, end) on a thread.
class ChromeTraceTest : public ::testing::Test {
 protected:
  ChromeTraceTest() {
    DeviceStepStats* const device = stats_.add_dev_stats();
    (*device->mutable_thread_names())[7] = "worker";
    (*device->mutable_thread_names())[3] = "caller";
  }
  void AddNode(const std::string& name, uint32_t thread, int64_t start, int64_t end) {
    NodeExecStats* const node = stats_.mutable_dev_stats(0)->add_node_stats();
    node->set_node_name(name);
    node->set_thread_id(thread);
    node->set_scheduled_nanos(start);
    node->set_all_start_micros(start / 1000);
    node->set_all_start_nanos(start);
    node->set_all_end_rel_micros((end - start) / 1000);
    node->set_all_end_rel_nanos(end - start);
  }
  // Returns the fields of the phase event with this name.
  static std::string Phase(const std::string& json, const std::string& name) {
    const size_t begin = json.find("\"name\":\"" + name + "\",\"cat\":\"phase\"");
    return json.substr(begin, json.find('}', begin) - begin);
  }

  StepStats stats_;
  GraphDef graph_;
};

TEST_F(ChromeTraceTest, RowsAreInOrder) {
  const std::string json = ChromeTrace(stats_, graph_, {});
  EXPECT_LT(json.find("\"tid\":3"), json.find("\"tid\":7"));
}

TEST_F(ChromeTraceTest, PhasesExtendOverNodesOfTheCaller) {
  AddNode("a", 3, 10'500, 12'500);
  AddNode("b", 7, 18'000, 25'000);
  const std::string json = ChromeTrace(stats_, graph_, {{"run", 10'000, 12'000}});
  // The phase is extended over a, which ends later, but not over b, which another thread ran.
  EXPECT_THAT(Phase(json, "run"), AllOf(HasSubstr("\"ts\":0.0,"), HasSubstr("\"dur\":2.5,")));
}

TEST_F(ChromeTraceTest, PhasesExcludeNodesThatTheyOnlyTouch) {
  AddNode("before", 3, 8'000, 10'000);
  AddNode("after", 3, 12'000, 14'000);
  const std::string json = ChromeTrace(stats_, graph_, {{"run", 10'000, 12'000}});
  EXPECT_THAT(Phase(json, "run"), AllOf(HasSubstr("\"ts\":2.0,"), HasSubstr("\"dur\":2.0,")));
}

TEST_F(ChromeTraceTest, PhasesEndWhereTheNextBegins) {
  AddNode("a", 3, 11'000, 13'000);
  const std::string json =
      ChromeTrace(stats_, graph_, {{"plan", 10'000, 12'000}, {"run", 12'000, 14'000}});
  // The node overlaps both phases and belongs to the second.
  EXPECT_THAT(Phase(json, "plan"), HasSubstr("\"dur\":1.0,"));
  EXPECT_THAT(Phase(json, "run"), HasSubstr("\"dur\":3.0,"));
}

TEST_F(ChromeTraceTest, PhasesWithoutAThreadAreInTheFirstRow) {
  EXPECT_THAT(Phase(ChromeTrace(StepStats(), graph_, {{"run", 10'000, 12'000}}), "run"),
              HasSubstr("\"pid\":1,\"tid\":0,\"ts\":0.0,\"dur\":2.0,"));
}

TEST_F(ChromeTraceTest, HasTheExpectedText) {
  AddNode("a", 7, 1'002'000, 1'004'500);
  AddNode("b", 3, 1'004'500, 1'006'001);
  AddNode("late", 3, 1'000'900, 1'001'000);
  AddNode("empty", 3, 1'004'500, 1'004'500);
  NodeExecStats* const a = stats_.mutable_dev_stats(0)->mutable_node_stats(0);
  a->set_scheduled_nanos(1'001'250);
  // The clocks of threads may differ, so a node may be scheduled after its start.
  stats_.mutable_dev_stats(0)->mutable_node_stats(2)->set_scheduled_nanos(1'001'150);
  a->add_memory()->set_total_bytes(64);
  a->add_memory()->set_total_bytes(8);
  for (const std::vector<int64_t>& dims : std::vector<std::vector<int64_t>>{{2, 3}, {}}) {
    TensorDescription* const tensor = a->add_output()->mutable_tensor_description();
    tensor->set_dtype(DT_FLOAT);
    for (const int64_t dim : dims) tensor->mutable_shape()->add_dim()->set_size(dim);
  }
  const auto add_def = [&](const char* name, const std::vector<std::string>& inputs) {
    NodeDef* const node = graph_.add_node();
    node->set_name(name);
    node->set_op("Op");
    for (const std::string& input : inputs) node->add_input(input);
  };
  add_def("a", {});
  // The inputs are: a node that ends later, a node that did not run, a control input, and an
  // unknown tensor.
  add_def("b", {"a:1", "late", "empty", "x", "^a", "?"});
  add_def("late", {"b"});
  EXPECT_EQ(ChromeTrace(stats_, graph_, {{"plan", 1'000'000, 1'001'500}}),
            R"({"displayTimeUnit":"ns","traceEvents":[)"
            R"({"ph":"M","name":"process_name","pid":1,"args":{"name":"gradflow"}},
{"ph":"M","name":"thread_name","pid":1,"tid":3,"args":{"name":"caller"}},
{"ph":"M","name":"thread_name","pid":1,"tid":7,"args":{"name":"worker"}},
{"ph":"X","name":"plan","cat":"phase","pid":1,"tid":3,"ts":0.0,"dur":1.5,"args":{}},
{"ph":"X","name":"a","cat":"Op","pid":1,"tid":7,"ts":2.0,"dur":2.5,)"
            R"("args":{"op":"Op","outputs":"float[2,3] float[]","allocated_bytes":72,)"
            R"("waited_us":0.75}},
{"ph":"X","name":"b","cat":"Op","pid":1,"tid":3,"ts":4.5,"dur":1.501,)"
            R"("args":{"op":"Op","outputs":"","allocated_bytes":0,"waited_us":0.0}},
{"ph":"X","name":"late","cat":"Op","pid":1,"tid":3,"ts":0.9,"dur":0.1,)"
            R"("args":{"op":"Op","outputs":"","allocated_bytes":0,"waited_us":-0.25}},
{"ph":"X","name":"empty","cat":"node","pid":1,"tid":3,"ts":4.5,"dur":0.0,)"
            R"("args":{"op":"node","outputs":"","allocated_bytes":0,"waited_us":0.0}},
{"ph":"s","name":"a:1","cat":"tensor","id":1,"pid":1,"tid":7,"ts":4.499},
{"ph":"f","name":"a:1","cat":"tensor","id":1,"pid":1,"tid":3,"ts":4.5,"bp":"e"},
{"ph":"s","name":"late","cat":"tensor","id":2,"pid":1,"tid":3,"ts":0.999},
{"ph":"f","name":"late","cat":"tensor","id":2,"pid":1,"tid":3,"ts":4.5,"bp":"e"},
{"ph":"s","name":"empty","cat":"tensor","id":3,"pid":1,"tid":3,"ts":4.5},
{"ph":"f","name":"empty","cat":"tensor","id":3,"pid":1,"tid":3,"ts":4.5,"bp":"e"}]})"
            "\n");
}

TEST_F(ChromeTraceTest, TimesHaveNanosecondsAfterMonths) {
  constexpr int64_t kStart = 1'800'000'000'000'000'000;
  constexpr int64_t kMonths = 8'000'000'000'000'001;
  AddNode("a", 3, kStart, kStart);
  AddNode("b", 3, kStart + kMonths, kStart + kMonths);
  EXPECT_THAT(ChromeTrace(stats_, graph_, {}), HasSubstr("\"ts\":8000000000000.001,"));
}

TEST_F(ChromeTraceTest, KeepsHostileTextAsText) {
  const std::string name = "</script>\x01\n\"\\\xff";
  (*stats_.mutable_dev_stats(0)->mutable_thread_names())[7] = name;
  AddNode(name, 7, 0, 1000);
  NodeDef* const node = graph_.add_node();
  node->set_name(name);
  node->set_op(name);
  node->add_input("");
  google::protobuf::Struct trace;
  const std::string json = ChromeTrace(stats_, graph_, {{name, 0, 1000}});
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(json, &trace).ok()) << json;
  const auto& events = trace.fields().at("traceEvents").list_value();
  const auto text = [&](int event, const char* key) {
    return events.values(event).struct_value().fields().at(key).string_value();
  };
  const std::string kept = "</script>\x01\n\"\\\ufffd";
  ASSERT_EQ(events.values_size(), 5);
  const auto& row = events.values(2).struct_value().fields().at("args").struct_value();
  EXPECT_EQ(row.fields().at("name").string_value(), kept);
  EXPECT_EQ(text(3, "name"), kept);
  EXPECT_EQ(text(4, "name"), kept);
  EXPECT_EQ(text(4, "cat"), kept);
}

}  // namespace
}  // namespace gradflow::tools
