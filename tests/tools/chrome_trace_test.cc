// Tests of what ChromeTrace makes of given times.
#include "tools/chrome_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace gradflow::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A run with two threads, given out of order, and nodes "name" [start, end) on a thread.
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
  // Returns the fields of the event that begins like this.
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
  // Over a, which ends later, and not over b, which another thread ran.
  EXPECT_THAT(Phase(json, "run"), AllOf(HasSubstr("\"ts\":0.000"), HasSubstr("\"dur\":2.500,")));
}

TEST_F(ChromeTraceTest, PhasesLeaveNodesThatTheyOnlyTouch) {
  AddNode("before", 3, 8'000, 10'000);
  AddNode("after", 3, 12'000, 14'000);
  const std::string json = ChromeTrace(stats_, graph_, {{"run", 10'000, 12'000}});
  EXPECT_THAT(Phase(json, "run"), AllOf(HasSubstr("\"ts\":2.000"), HasSubstr("\"dur\":2.000,")));
}

TEST_F(ChromeTraceTest, PhasesEndWhereTheNextBegins) {
  AddNode("a", 3, 11'000, 13'000);
  const std::string json =
      ChromeTrace(stats_, graph_, {{"plan", 10'000, 12'000}, {"run", 12'000, 14'000}});
  // The node lies in both, and the second takes it.
  EXPECT_THAT(Phase(json, "plan"), HasSubstr("\"dur\":1.000,"));
  EXPECT_THAT(Phase(json, "run"), HasSubstr("\"dur\":3.000,"));
}

}  // namespace
}  // namespace gradflow::tools
