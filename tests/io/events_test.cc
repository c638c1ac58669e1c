// Event files: their records, and what a writer accepts.
#include "gradflow/io/events.h"

#include <cstring>
#include <string>
#include <vector>

#include "gradflow/io/crc32c.h"
#include "gradflow/proto/event.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/testing/folder_fixture.h"
#include "tests/testing/subprocess.h"

namespace gradflow {
namespace {

using ::gradflow::testing::StatusIs;
using ::testing::HasSubstr;

class EventsTest : public ::gradflow::testing::FolderFixture {};

// Splits a file into its events, and checks all sums.
std::vector<Event> EventsOf(const std::string& path) {
  const std::string bytes = ::gradflow::testing::ReadFile(path);
  std::vector<Event> events;
  size_t at = 0;
  const auto sum_is = [&](size_t offset, const std::string& of) {
    uint32_t stored = 0;
    std::memcpy(&stored, &bytes[offset], sizeof(stored));
    EXPECT_EQ(stored, internal::MaskCrc(internal::ExtendCrc32c(0, of)));
  };
  while (at + 12 <= bytes.size()) {
    uint64_t size = 0;
    std::memcpy(&size, &bytes[at], sizeof(size));
    sum_is(at + 8, bytes.substr(at, 8));
    if (at + 16 + size > bytes.size()) break;
    sum_is(at + 12 + size, bytes.substr(at + 12, size));
    events.emplace_back();
    EXPECT_TRUE(events.back().ParseFromString(bytes.substr(at + 12, size)));
    at += 16 + size;
  }
  EXPECT_EQ(at, bytes.size());
  return events;
}

TEST_F(EventsTest, HasRecordsWithSums) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(EventWriter writer, EventWriter::Open(File("a/b")));
  EXPECT_THAT(writer.path(), HasSubstr("/a/b/events.out.tfevents."));
  GRADFLOW_ASSERT_OK(writer.AddScalar("loss", 3, 0.5f));
  Summary summary;
  summary.add_value()->set_tag("x");
  GRADFLOW_ASSERT_OK(writer.AddSummary(4, summary.SerializeAsString()));
  Event event;
  event.set_wall_time(17);
  event.set_graph_def(std::string(100000, 'g'));
  GRADFLOW_ASSERT_OK(writer.Add(event));
  // Readers see them at once.
  const std::vector<Event> events = EventsOf(writer.path());
  ASSERT_EQ(events.size(), 4);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_GT(events[0].wall_time(), 1.6e9);
  EXPECT_EQ(events[1].step(), 3);
  EXPECT_EQ(events[1].summary().value(0).tag(), "loss");
  EXPECT_EQ(events[1].summary().value(0).simple_value(), 0.5f);
  EXPECT_EQ(events[2].step(), 4);
  EXPECT_EQ(events[2].summary().value(0).tag(), "x");
  EXPECT_EQ(events[3].wall_time(), 17);
  EXPECT_EQ(events[3].graph_def().size(), 100000);
  GRADFLOW_EXPECT_OK(writer.Sync());
}

TEST_F(EventsTest, WritersHaveFilesOfTheirOwn) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(EventWriter first, EventWriter::Open(folder()));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(EventWriter second, EventWriter::Open(folder()));
  EXPECT_NE(first.path(), second.path());
  const std::string path = first.path();
  EventWriter moved = std::move(first);
  GRADFLOW_ASSERT_OK(moved.AddScalar("a", 1, 1));
  EXPECT_EQ(EventsOf(path).size(), 2);
}

TEST_F(EventsTest, Errors) {
  EXPECT_THAT(EventWriter::Open("/proc/none").status(),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("'/proc/none': cannot make the folder: No such file")));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(EventWriter writer, EventWriter::Open(folder()));
  EXPECT_THAT(writer.AddSummary(1, "\xff\xff"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("expected a serialized Summary, found 2 other bytes")));
  EXPECT_EQ(EventsOf(writer.path()).size(), 1);
}

}  // namespace
}  // namespace gradflow
