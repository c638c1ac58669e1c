// Tests of `gradflow view` as a process: files, errors and limits.
#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "benchmarks/models/networks.h"
#include "gradflow/graph/export.h"
#include "gradflow/io/npy.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensors.h"
#include "tests/tools/command_line_fixture.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class ViewCommandTest : public CommandLineFixture {
 protected:
  void SetUp() override {
    for (const float factor : {2.0f, 3.0f}) {
      Scope root = Scope::NewRootScope();
      Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
      ops::Mul(root.WithOpName("y"), x, ops::Const(root.WithOpName("factor"), factor));
      GraphDef graph;
      GRADFLOW_ASSERT_OK(root.ToGraphDef(&graph));
      GRADFLOW_ASSERT_OK(WriteGraphDef(File(factor == 2 ? "a.pb" : "b.pb"), graph));
    }
  }

  // Runs the command, expects success, and returns the file.
  std::string View(std::vector<std::string> arguments, const std::string& output) const {
    arguments.insert(arguments.begin(), "view");
    arguments.insert(arguments.end(), {"-o", File(output)});
    const ProcessResult result = Gradflow(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, IsEmpty());
    EXPECT_THAT(result.err, IsEmpty());
    return ReadFile(File(output));
  }
};

TEST_F(ViewCommandTest, WritesThePageOfTheSources) {
  const std::string page = View({File("a.pb")}, "a.html");
  const std::string shell = ReadFile(GRADFLOW_TEST_DATA_DIR "/../../web/dist/shell.html");
  const size_t place = shell.find("@DATA@");
  ASSERT_NE(place, std::string::npos);
  EXPECT_EQ(page.substr(0, place), shell.substr(0, place));
  EXPECT_EQ(page.substr(page.size() - (shell.size() - place - 6)), shell.substr(place + 6));
  EXPECT_EQ(View({File("a.pb")}, "again.html"), page);
}

TEST_F(ViewCommandTest, WritesDot) {
  for (const char* name : {"a.dot", "a.gv"}) {
    EXPECT_THAT(View({File("a.pb")}, name), AllOf(StartsWith("digraph"), HasSubstr("n0 -> n2")));
  }
  EXPECT_THAT(View({File("a.pb"), "--diff", File("b.pb")}, "d.dot"), HasSubstr("khaki"));
  View({File("a.pb"), "--diff", File("b.pb")}, "d.html");
}

TEST_F(ViewCommandTest, ReportsFailures) {
  const std::string out = File("o.html");
  ExpectFailure(Gradflow({"view", File("none.pb"), "-o", out}), "NOT_FOUND", HasSubstr("none.pb"));
  ExpectFailure(Gradflow({"view", File("a.pb"), "--diff", File("none.pb"), "-o", out}), "NOT_FOUND",
                HasSubstr("none.pb"));
  ExpectFailure(Gradflow({"view", File("a.pb"), "-o", File("o.png")}), "INVALID_ARGUMENT",
                HasSubstr("must end in .html, .dot or .gv"));
  ExpectFailure(Gradflow({"view", File("a.pb"), "-o", File("no/o.html")}), "NOT_FOUND",
                HasSubstr("no/o.html"));
  ExpectFailure(Gradflow({"view", File("a.pb"), "-o", out, "--graph-limit", "max_file_bytes=9"}),
                "INVALID_ARGUMENT", HasSubstr("max_file_bytes"));
  EXPECT_FALSE(FileExists(out));
  EXPECT_EQ(Gradflow({"view", File("a.pb")}).exit_code, 2);
}

TEST_F(ViewCommandTest, ShowsAGraphThatExceedsALimit) {
  const ProcessResult result =
      Gradflow({"view", File("a.pb"), "-o", File("o.dot"), "--graph-limit", "max_nodes=1"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(ReadFile(File("o.dot")), HasSubstr("n0 -> n2;\n"));
}

// Returns the data of a page as JSON.
google::protobuf::Struct DataOf(const std::string& page) {
  const std::string begin = "type=\"application/gzip\">";
  const size_t at = page.find(begin) + begin.size();
  std::string compressed;
  EXPECT_TRUE(absl::Base64Unescape(page.substr(at, page.find("</script>", at) - at), &compressed));
  std::string json(1 << 22, '\0');
  z_stream stream = {};
  EXPECT_EQ(inflateInit2(&stream, 16 + MAX_WBITS), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_in = static_cast<uInt>(compressed.size());
  stream.next_out = reinterpret_cast<Bytef*>(json.data());
  stream.avail_out = static_cast<uInt>(json.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  EXPECT_EQ(stream.avail_in, 0u);
  json.resize(stream.total_out);
  inflateEnd(&stream);
  google::protobuf::Struct data;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &data).ok()) << json;
  return data;
}

TEST_F(ViewCommandTest, EditWritesAPageWithTheGraph) {
  EXPECT_EQ(Gradflow({"edit", File("a.pb"), "-o", File("edit.html")}).exit_code, 0);
  const auto data = DataOf(ReadFile(File("edit.html")));
  EXPECT_EQ(data.fields().at("title").string_value(), "a.pb");
  const auto& edit = data.fields().at("edit").struct_value().fields();
  EXPECT_FALSE(edit.at("server").bool_value());
  EXPECT_EQ(edit.at("nodes").list_value().values_size(), 3);
}

class ReportTest : public CommandLineFixture {
 protected:
  // Writes x -> a = x * 2 -> b = -a, and c = x / 0, which needs no additional feed.
  void SetUp() override {
    Scope root = Scope::NewRootScope();
    Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
    Output a = ops::Mul(root.WithOpName("a"), x, 2.0f);
    ops::Neg(root.WithOpName("b"), a);
    ops::Log(root.WithOpName("c"), ops::Neg(root.WithOpName("minus"), x));
    ops::Neg(root.WithOpName("unused"), ops::Placeholder(root.WithOpName("other"), DT_FLOAT));
    GraphDef graph;
    GRADFLOW_ASSERT_OK(root.ToGraphDef(&graph));
    GRADFLOW_ASSERT_OK(WriteGraphDef(File("graph.pb"), graph));
    GRADFLOW_ASSERT_OK(WriteNpy(File("x.npy"), AsTensor<float>({1, 2, 6})));
  }

  // Runs the command, expects success, and returns the outputs of the report by "name:output".
  std::map<std::string, google::protobuf::Struct> Outputs(
      const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {arguments[0],         File("graph.pb"), "--feed",
                                    "x=" + File("x.npy"), "--report",       File("r.html")};
    all.insert(all.end(), arguments.begin() + 1, arguments.end());
    const ProcessResult result = Gradflow(all);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    out_ = result.out;
    data_ = DataOf(ReadFile(File("r.html")));
    EXPECT_EQ(data_.fields().at("title").string_value(), "graph.pb");
    const auto& nodes = data_.fields().at("nodes").list_value();
    std::map<std::string, google::protobuf::Struct> outputs;
    for (const auto& output : Run().at("outputs").list_value().values()) {
      const auto& fields = output.struct_value().fields();
      const int node = static_cast<int>(fields.at("n").number_value());
      outputs[absl::StrCat(nodes.values(node).list_value().values(0).string_value(), ":",
                           fields.at("o").number_value())] = output.struct_value();
    }
    return outputs;
  }
  const google::protobuf::Map<std::string, google::protobuf::Value>& Run() const {
    return data_.fields().at("run").struct_value().fields();
  }

  google::protobuf::Struct data_;
  std::string out_;
};

std::vector<std::string> Names(const std::map<std::string, google::protobuf::Struct>& outputs) {
  std::vector<std::string> names;
  for (const auto& output : outputs) names.push_back(output.first);
  return names;
}

TEST_F(ReportTest, HasEventsAndTensorsOfTheRun) {
  const auto outputs = Outputs({"run", "--fetch", "b"});
  EXPECT_THAT(Names(outputs), ElementsAre("b:0", "x:0"));
  const auto& b = outputs.at("b:0").fields();
  EXPECT_EQ(b.at("t").string_value(), "float");
  EXPECT_EQ(b.at("count").number_value(), 3);
  EXPECT_EQ(b.at("min").number_value(), -12);
  EXPECT_EQ(b.at("max").number_value(), -2);
  EXPECT_EQ(b.at("mean").number_value(), -6);
  EXPECT_EQ(b.at("first").string_value(), "-2 -4 -12");
  EXPECT_THAT(out_, StartsWith("b: "));
  // Events of nodes must lie within the run.
  const auto& events = Run().at("events").list_value().values();
  ASSERT_EQ(events.size() % 6, 0);
  ASSERT_GE(events.size(), 12);
  for (int i = 0; i < events.size(); i += 6) {
    EXPECT_GE(events.Get(i + 1).number_value(), 0);
    EXPECT_LE(events.Get(i + 1).number_value(), events.Get(i + 2).number_value());
    EXPECT_LE(events.Get(i + 2).number_value(), Run().at("total").number_value());
    EXPECT_LT(events.Get(i + 3).number_value(), Run().at("threads").list_value().values_size());
  }
}

TEST_F(ReportTest, HasTheRequestedValues) {
  EXPECT_THAT(Names(Outputs({"run", "--fetch", "b", "--report-tensors", "outputs"})),
              ElementsAre("b:0", "x:0"));
  // The report has the outputs that the run needs, and no others.
  const auto all = Outputs({"run", "--fetch", "b", "--target", "c", "--report-tensors", "all"});
  EXPECT_THAT(Names(all), AllOf(Contains("a:0"), Contains("c:0"), Contains("minus:0"),
                                Not(Contains("unused:0"))));
  EXPECT_EQ(all.at("c:0").fields().at("nan").number_value(), 3);
  EXPECT_EQ(all.at("c:0").fields().at("mean").kind_case(), google::protobuf::Value::kNullValue);
  // The other fetched tensors are not printed.
  EXPECT_EQ(std::count(out_.begin(), out_.end(), '\n'), 1) << out_;
  EXPECT_THAT(Names(Outputs({"run", "--fetch", "b", "--report-tensors", "^a$"})),
              ElementsAre("a:0", "b:0", "x:0"));
}

TEST_F(ReportTest, HasTimesOfABenchmark) {
  const auto outputs = Outputs({"bench", "--fetch", "b", "--repeat", "2"});
  EXPECT_THAT(Names(outputs), ElementsAre("b:0", "x:0"));
  EXPECT_THAT(out_, HasSubstr("over 2 runs"));
}

TEST_F(ReportTest, IsWrittenCompletelyOrNotAtAll) {
  const std::string graph = File("graph.pb");
  const std::string feed = "x=" + File("x.npy");
  const std::string report = File("r.html");
  ExpectFailure(Gradflow({"run", graph, "--feed", feed, "--fetch", "b", "--report", report,
                          "--report-tensors", "("}),
                "INVALID_ARGUMENT", HasSubstr("--report-tensors '(' is not a regular expression"));
  ExpectFailure(Gradflow({"run", graph, "--feed", feed, "--fetch", "b", "--report", report,
                          "--trace", File("no/trace.json")}),
                "NOT_FOUND", HasSubstr("no/trace.json"));
  ExpectFailure(Gradflow({"run", graph, "--fetch", "b", "--report", report}), "INVALID_ARGUMENT",
                HasSubstr("'x'"));
  ExpectFailure(Gradflow({"bench", graph, "--feed", feed, "--fetch", "b", "--repeat", "1",
                          "--report", File("no/r.html")}),
                "NOT_FOUND", HasSubstr("no/r.html"));
  EXPECT_FALSE(FileExists(report));
}

// Builds the layers of a network as a graph. The random weights are part of the run.
struct GraphBackend {
  using Value = Output;

  Output Random(const std::vector<int>& shape, int64_t fan_in) {
    const Output normal = ops::RandomNormal(root, AsTensor<int32_t>(shape), DT_FLOAT,
                                            ops::RandomNormal::Attrs().Seed(++seed));
    return ops::Mul(root, normal, std::sqrt(2 / static_cast<float>(fan_in)));
  }
  Output Vector(int64_t size, float value) {
    return ops::Fill(root, AsTensor<int32_t>({static_cast<int>(size)}), value);
  }
  Output Conv(const Output& x, int64_t in, int64_t out, int64_t size, int64_t stride) {
    const auto n = [](int64_t value) { return static_cast<int>(value); };
    return ops::Conv2D(root, x, Random({n(size), n(size), n(in), n(out)}, size * size * in),
                       {1, n(stride), n(stride), 1}, "SAME");
  }
  Output Norm(const Output& x, int64_t channels) {
    return ops::FusedBatchNorm(root, x, Vector(channels, 1), Vector(channels, 0),
                               Vector(channels, 0), Vector(channels, 1),
                               ops::FusedBatchNorm::Attrs().IsTraining(false))
        .y;
  }
  Output Relu(const Output& x) { return ops::Relu(root, x); }
  Output MaxPool(const Output& x) {
    return ops::MaxPool(root, x, {1, 3, 3, 1}, {1, 2, 2, 1}, "SAME");
  }
  Output Add(const Output& x, const Output& y) { return ops::AddV2(root, x, y); }
  Output Average(const Output& x) { return ops::Mean(root, x, {1, 2}); }
  Output Dense(const Output& x, int64_t in, int64_t out) {
    return ops::MatMul(root, x, Random({static_cast<int>(in), static_cast<int>(out)}, in));
  }

  Scope root;
  int64_t seed = 0;
};

TEST_F(ViewCommandTest, ThePageOfARunOfResNet50HasAtMost5MiB) {
  GraphBackend backend{Scope::NewRootScope()};
  const Output image = ops::RandomUniform(backend.root, {1, 224, 224, 3}, DT_FLOAT,
                                          ops::RandomUniform::Attrs().Seed(1));
  const Output y = benchmarks::ResNet50(backend, image);
  ops::Softmax(backend.root.WithOpName("probabilities"), y);
  GraphDef graph;
  GRADFLOW_ASSERT_OK(backend.root.ToGraphDef(&graph));
  EXPECT_GT(graph.node_size(), 500);
  GRADFLOW_ASSERT_OK(WriteGraphDef(File("resnet.pb"), graph));
  // "outputs" is the default. "all" adds the values of all outputs.
  for (const char* tensors : {"outputs", "all"}) {
    const ProcessResult result =
        Gradflow({"run", File("resnet.pb"), "--fetch", "probabilities", "--report",
                  File("resnet.html"), "--report-tensors", tensors});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_LE(std::filesystem::file_size(File("resnet.html")), 5 << 20) << tensors;
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
