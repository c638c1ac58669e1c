// Tests of event files: their records, and the arguments of a writer.
#include "gradflow/io/events.h"

#include <sys/resource.h>

#include <csignal>
#include <cstring>
#include <filesystem>
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

// Splits a file into events and verifies all checksums.
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

TEST_F(EventsTest, HasRecordsWithChecksums) {
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
  // Readers see new events at once.
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

TEST_F(EventsTest, EachWriterHasANewFile) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(const EventWriter named,
                                EventWriter::OpenFile(File("c/run"), ".x"));
  EXPECT_THAT(named.path(), ::testing::MatchesRegex(".*/c/run\\.out\\.tfevents\\..*\\.x"));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(EventWriter first, EventWriter::Open(folder()));
  GRADFLOW_ASSERT_OK_AND_ASSIGN(EventWriter second, EventWriter::Open(folder()));
  EXPECT_NE(first.path(), second.path());
  const std::string path = first.path();
  EventWriter moved = std::move(first);
  GRADFLOW_ASSERT_OK(moved.AddScalar("a", 1, 1));
  EXPECT_EQ(EventsOf(path).size(), 2);
}

// On a full disk, a file ends with the last complete event.
TEST_F(EventsTest, AFullDiskLeavesWholeEvents) {
  GRADFLOW_ASSERT_OK_AND_ASSIGN(EventWriter writer, EventWriter::Open(folder()));
  const std::string path = writer.path();
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  int failed = 0;
  int written = 1;
  for (rlim_t more = 0; more < 60; more += 4) {
    const rlimit limit = {std::filesystem::file_size(path) + more, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    const absl::Status status = writer.AddScalar("loss", written, 0.5f);
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
    if (status.ok()) {
      ++written;
    } else {
      EXPECT_THAT(std::string(status.message()), HasSubstr("cannot write: File too large"));
      ++failed;
    }
    EXPECT_EQ(EventsOf(path).size(), written) << more;
  }
  std::signal(SIGXFSZ, old_handler);
  EXPECT_GT(failed, 5);
  EXPECT_GT(written, 1);
  GRADFLOW_ASSERT_OK(writer.AddScalar("loss", 1, 0.5f));
  EXPECT_EQ(EventsOf(path).size(), written + 1);
}

TEST_F(EventsTest, RejectsInvalidArguments) {
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
