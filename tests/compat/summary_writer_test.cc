// Tests of EventsWriter and of the writer of summaries.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/proto/event.pb.h"
#include "gradflow/proto/summary.pb.h"
#include "tensorflow/core/framework/tensor_testutil.h"
#include "tensorflow/core/lib/core/status_test_util.h"
#include "tensorflow/core/lib/io/path.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/test.h"
#include "tensorflow/core/summary/summary_file_writer.h"
#include "tensorflow/core/util/events_writer.h"

namespace tensorflow {
namespace summary_writer_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string NewFolder(const std::string& name) {
  // Tests run in concurrent processes, so the name contains the process id.
  const std::string folder =
      io::JoinPath(testing::TmpDir(), absl::StrCat("gradflow_", name, "_", getpid()));
  int64_t files, folders;
  Env::Default()->DeleteRecursively(folder, &files, &folders).IgnoreError();
  return folder;
}

// Returns the events of a file. A record has a length, a checksum, an event and a checksum.
std::vector<Event> EventsOf(const std::string& path) {
  std::string bytes;
  TF_CHECK_OK(ReadFileToString(Env::Default(), path, &bytes));
  std::vector<Event> events;
  for (size_t at = 0; at + 16 <= bytes.size();) {
    uint64_t size = 0;
    std::memcpy(&size, &bytes[at], sizeof(size));
    events.emplace_back();
    EXPECT_TRUE(events.back().ParseFromString(bytes.substr(at + 12, size)));
    at += 16 + size;
  }
  return events;
}

TEST(EventsWriterTest, WritesEvents) {
  const std::string prefix = io::JoinPath(NewFolder("events"), "run");
  EventsWriter writer(prefix);
  TF_ASSERT_OK(writer.InitWithSuffix(".v2"));
  const std::string name = writer.FileName();
  EXPECT_TRUE(absl::StartsWith(name, prefix + ".out.tfevents.")) << name;
  EXPECT_TRUE(absl::EndsWith(name, ".v2")) << name;
  Event event;
  event.set_step(7);
  event.set_wall_time(1.5);
  writer.WriteEvent(event);
  event.set_step(8);
  writer.WriteSerializedEvent(event.SerializeAsString());
  // A second Init() changes nothing.
  TF_ASSERT_OK(writer.Init());
  EXPECT_EQ(writer.FileName(), name);
  TF_ASSERT_OK(writer.Flush());
  const std::vector<Event> events = EventsOf(name);
  ASSERT_EQ(events.size(), 3);
  EXPECT_EQ(events[0].file_version(), std::string(EventsWriter::kVersionPrefix) +
                                          std::to_string(EventsWriter::kCurrentVersion));
  EXPECT_EQ(events[1].step(), 7);
  EXPECT_EQ(events[1].wall_time(), 1.5);
  EXPECT_EQ(events[2].step(), 8);

  // A deleted file is replaced.
  TF_ASSERT_OK(Env::Default()->DeleteFile(name));
  writer.WriteEvent(event);
  EXPECT_NE(writer.FileName(), name);
  EXPECT_EQ(EventsOf(writer.FileName()).size(), 2);
  const std::string closed = writer.FileName();
  TF_ASSERT_OK(writer.Close());
  TF_ASSERT_OK(writer.Close());
  // Later events go into a new file.
  EXPECT_NE(writer.FileName(), closed);
}

TEST(EventsWriterTest, FlushReturnsTheFirstError) {
  EventsWriter nowhere("/proc/none/run");
  EXPECT_FALSE(nowhere.Init().ok());
  EXPECT_EQ(nowhere.FileName(), "");
  nowhere.WriteEvent(Event());
  EXPECT_FALSE(nowhere.Flush().ok());
  TF_EXPECT_OK(nowhere.Flush());

  EventsWriter writer(io::JoinPath(NewFolder("events_error"), "run"));
  writer.WriteSerializedEvent("\xff\xff");
  writer.WriteSerializedEvent("\xff");
  const absl::Status status = writer.Close();
  EXPECT_EQ(status.code(), error::INVALID_ARGUMENT);
  EXPECT_EQ(status.message(), "expected a serialized Event, found 2 other bytes");
  TF_EXPECT_OK(writer.Close());
}

// Returns the events that a summary writer writes, without the version event.
template <typename Write>
std::vector<Event> Written(const std::string& name, const Write& write) {
  const std::string folder = NewFolder(name);
  SummaryWriterInterface* writer = nullptr;
  TF_CHECK_OK(CreateSummaryFileWriter(10, 1000, folder, ".test", Env::Default(), &writer));
  const core::ScopedUnref unref(writer);
  EXPECT_EQ(writer->DebugString(), "SummaryFileWriter");
  write(writer);
  TF_EXPECT_OK(writer->Flush());
  std::vector<std::string> files;
  TF_EXPECT_OK(Env::Default()->GetChildren(folder, &files));
  EXPECT_THAT(files, ElementsAre(::testing::StartsWith("events.out.tfevents.")));
  EXPECT_TRUE(absl::EndsWith(files[0], ".test"));
  std::vector<Event> events = EventsOf(io::JoinPath(folder, files[0]));
  events.erase(events.begin());
  return events;
}

TEST(SummaryFileWriterTest, WritesSummaries) {
  const Tensor numbers = test::AsTensor<double>({1, 2, 4});
  const Tensor image(DT_UINT8, TensorShape({2, 1, 1, 3}));
  const Tensor color = test::AsTensor<uint8>({255, 0, 0, 255});
  const std::vector<Event> events = Written("summaries", [&](SummaryWriterInterface* writer) {
    TF_EXPECT_OK(writer->WriteScalar(1, test::AsScalar<int32>(42), "scalar"));
    TF_EXPECT_OK(writer->WriteHistogram(2, numbers, "histogram"));
    TF_EXPECT_OK(writer->WriteTensor(3, numbers, "tensor", ""));
    TF_EXPECT_OK(writer->WriteImage(4, image, "image", 2, color));
  });
  ASSERT_EQ(events.size(), 4);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(events[i].step(), i + 1);
  EXPECT_EQ(events[0].summary().value(0).tag(), "scalar");
  EXPECT_EQ(events[0].summary().value(0).simple_value(), 42);
  EXPECT_EQ(events[1].summary().value(0).tag(), "histogram");
  EXPECT_EQ(events[1].summary().value(0).histo().sum(), 7);
  EXPECT_EQ(events[2].summary().value(0).tag(), "tensor");
  Tensor written;
  ASSERT_TRUE(written.FromProto(events[2].summary().value(0).tensor()));
  test::ExpectTensorEqual<double>(written, numbers);
  ASSERT_EQ(events[3].summary().value_size(), 2);
  EXPECT_EQ(events[3].summary().value(1).tag(), "image/image/1");
  EXPECT_EQ(events[3].summary().value(1).image().colorspace(), 3);
}

TEST(SummaryFileWriterTest, WritesGraphsAndEvents) {
  GraphDef graph;
  graph.add_node()->set_name("n");
  const std::vector<Event> events = Written("graphs", [&](SummaryWriterInterface* writer) {
    TF_EXPECT_OK(writer->WriteGraph(5, std::make_unique<GraphDef>(graph)));
    auto event = std::make_unique<Event>();
    event->set_step(6);
    TF_EXPECT_OK(writer->WriteEvent(std::move(event)));
  });
  ASSERT_EQ(events.size(), 2);
  EXPECT_EQ(events[0].step(), 5);
  GraphDef written;
  ASSERT_TRUE(written.ParseFromString(events[0].graph_def()));
  EXPECT_EQ(written.node(0).name(), "n");
  EXPECT_EQ(events[1].step(), 6);
}

TEST(SummaryFileWriterTest, ErrorsWriteNothing) {
  const std::vector<Event> events = Written("summary_errors", [&](SummaryWriterInterface* writer) {
    const Tensor text = test::AsScalar<tstring>("text");
    EXPECT_EQ(writer->WriteScalar(1, text, "t").code(), error::INVALID_ARGUMENT);
    EXPECT_EQ(writer->WriteScalar(1, test::AsTensor<float>({1, 2}), "t").code(),
              error::INVALID_ARGUMENT);
    EXPECT_EQ(writer->WriteHistogram(1, text, "t").code(), error::INVALID_ARGUMENT);
    EXPECT_EQ(
        writer->WriteImage(1, test::AsScalar<float>(1), "t", 1, test::AsTensor<uint8>({1})).code(),
        error::INVALID_ARGUMENT);
    EXPECT_EQ(writer->WriteAudio(1, text, "t", 1, 1).code(), error::UNIMPLEMENTED);
  });
  EXPECT_TRUE(events.empty());
  SummaryWriterInterface* writer = nullptr;
  const absl::Status status =
      CreateSummaryFileWriter(1, 1, "/proc/none", "", Env::Default(), &writer);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("/proc/none"));
  EXPECT_EQ(writer, nullptr);
}

}  // namespace summary_writer_test
}  // namespace tensorflow
