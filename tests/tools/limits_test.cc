// Tests with small files that ask for much more than their size. Each command ends soon and takes
// little memory. It returns an error or a short output, and touches no other file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/graph/export.h"
#include "gradflow/io/checkpoint.h"
#include "gradflow/io/npy.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/testing/status_matchers.h"
#include "tests/testing/image_files.h"
#include "tests/tools/command_line_fixture.h"
#include "tools/time_limit.h"

namespace gradflow {
namespace testing {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// Sanitizers need several times the memory and the time.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(GRADFLOW_TSAN)
constexpr bool kSanitized = true;
#elif defined(__has_feature)  // clang
constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

NodeDef* AddNode(const std::string& name, const std::string& op, GraphDef* graph) {
  NodeDef* const node = graph->add_node();
  node->set_name(name);
  node->set_op(op);
  return node;
}

AttrValue& Attr(NodeDef* node, const std::string& name) { return (*node->mutable_attr())[name]; }

// Adds a constant whose value is repeated to fill the shape.
TensorProto* AddConst(const std::string& name, DataType dtype, const TensorShape& shape,
                      GraphDef* graph) {
  NodeDef* const node = AddNode(name, "Const", graph);
  Attr(node, "dtype").set_type(dtype);
  TensorProto* const value = Attr(node, "value").mutable_tensor();
  value->set_dtype(dtype);
  shape.AsProto(value->mutable_tensor_shape());
  return value;
}

// Adds Unpack of `input` along dimension 0 into `num` outputs.
void AddUnpack(const std::string& name, const std::string& input, DataType dtype, int64_t num,
               GraphDef* graph) {
  NodeDef* const node = AddNode(name, "Unpack", graph);
  node->add_input(input);
  Attr(node, "T").set_type(dtype);
  Attr(node, "num").set_i(num);
}

class CommandLimitsTest : public CommandLineFixture {
 protected:
  std::string Write(const std::string& name, const GraphDef& graph) const {
    WriteFile(File(name), graph.SerializeAsString());
    return File(name);
  }

  // Runs a command and expects that it takes little time and memory.
  static ProcessResult Run(std::vector<std::string> arguments,
                           int64_t max_bytes = int64_t{200} << 20) {
    ProcessResult result = Gradflow(std::move(arguments));
    EXPECT_GE(result.exit_code, 0);
    if (!kSanitized) {
      // A command alone takes at most one second, but hardware threads share cores with other
      // processes.
      EXPECT_LT(result.cpu_seconds, 2);
      EXPECT_LT(result.peak_bytes, max_bytes);
    }
    EXPECT_LT(result.out.size(), 1 << 20);
    EXPECT_LT(result.err.size(), 1 << 16);
    return result;
  }
};

// ---- Strings ----

// Adds `op`, which joins `count` copies of one string of 1 MiB.
GraphDef JoinedStrings(const std::string& op, int count) {
  GraphDef graph;
  AddConst("axis", DT_INT32, {}, &graph);
  AddConst("text", DT_STRING, op == "Pack" ? TensorShape() : TensorShape({1}), &graph)
      ->add_string_val(std::string(1 << 20, 'x'));
  NodeDef* const node = AddNode("joined", op, &graph);
  for (int i = 0; i < count; ++i) node->add_input("text");
  if (op != "Pack") node->add_input("axis");
  Attr(node, "N").set_i(count);
  Attr(node, "T").set_type(DT_STRING);
  return graph;
}

TEST_F(CommandLimitsTest, JoinedStringsAreChargedBeforeTheyAreCopied) {
  for (const char* op : {"Pack", "ConcatV2"}) {
    const std::string graph = Write(absl::StrCat(op, ".pb"), JoinedStrings(op, 4000));
    const ProcessResult result =
        Run({"run", graph, "--fetch", "joined", "--memory-limit", "100000000"});
    ExpectFailure(result, "RESOURCE_EXHAUSTED",
                  HasSubstr("out of memory for the 4194304000 characters"));
    const std::string few = Write(absl::StrCat(op, "_few.pb"), JoinedStrings(op, 20));
    EXPECT_EQ(Run({"run", few, "--fetch", "joined", "--memory-limit", "100000000"}).exit_code, 0);
  }
}

TEST_F(CommandLimitsTest, JoinedStringsEndWithTheRun) {
  for (const char* op : {"Pack", "ConcatV2"}) {
    const std::string graph = Write("graph.pb", JoinedStrings(op, 3000));
    const ProcessResult result =
        Gradflow({"run", graph, "--fetch", "joined", "--timeout", "0.1", "--threads", "1"});
    // On a slow machine, the import may use up the time.
    ExpectFailure(result, "DEADLINE_EXCEEDED",
                  AnyOf(HasSubstr("--timeout"), HasSubstr("the time for the import is over")));
  }
}

// ---- Shapes ----

GraphDef UnpackedPlaceholder(int nodes) {
  GraphDef graph;
  NodeDef* const x = AddNode("x", "Placeholder", &graph);
  Attr(x, "dtype").set_type(DT_FLOAT);
  TensorShapeProto* const shape = Attr(x, "shape").mutable_shape();
  for (int d = 0; d < 254; ++d) shape->add_dim()->set_size(-1);
  for (int i = 0; i < nodes; ++i) {
    AddUnpack(absl::StrCat("unpack", i), "x", DT_FLOAT, 1 << 20, &graph);
  }
  return graph;
}

TEST_F(CommandLimitsTest, OutputsOfManyDimensionsShareTheirShape) {
  const std::string one = Write("one.pb", UnpackedPlaceholder(1));
  const ProcessResult result = Run({"inspect", one});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(
      result.out,
      AllOf(HasSubstr("unpack0:15  float [?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,... 253 dimensions]\n"),
            HasSubstr("unpack0  ... and 1048560 more\n")));
  EXPECT_LT(result.out.size(), 4096);
  const std::string four = Write("four.pb", UnpackedPlaceholder(4));
  for (const std::string& graph : {one, four}) {
    EXPECT_EQ(Run({"view", graph, "-o", File("page.html")}).exit_code, 0);
    EXPECT_LT(fs::file_size(File("page.html")), 300'000);
  }
  EXPECT_THAT(Run({"inspect", four}).out, HasSubstr("GraphLimits::max_list_outputs"));
  ExpectFailure(Run({"run", four}), "INVALID_ARGUMENT", HasSubstr("max_list_outputs"));
  EXPECT_THAT(Run({"inspect", one, "--graph-limit", "max_list_outputs=1000"}).out,
              HasSubstr("expected at most 1000 (GraphLimits::max_list_outputs)"));
}

TEST_F(CommandLimitsTest, TensorsOfManyDimensionsShareTheirShape) {
  GraphDef graph;
  DimVector dims(254, 1);
  dims[0] = 1 << 16;
  AddConst("x", DT_UINT8, TensorShape(dims), &graph);
  AddConst("axis", DT_INT32, {}, &graph);
  AddUnpack("unpack", "x", DT_UINT8, 1 << 16, &graph);
  NodeDef* const split = AddNode("split", "Split", &graph);
  for (const char* input : {"axis", "x"}) split->add_input(input);
  Attr(split, "T").set_type(DT_UINT8);
  Attr(split, "num_split").set_i(1 << 16);
  NodeDef* const same = AddNode("same", "IdentityN", &graph);
  NodeDef* const sum = AddNode("sum", "AddN", &graph);
  for (int i = 0; i < 1 << 16; ++i) {
    same->add_input(absl::StrCat("split:", i));
    Attr(same, "T").mutable_list()->add_type(DT_UINT8);
    sum->add_input(absl::StrCat("same:", i));
  }
  Attr(sum, "T").set_type(DT_UINT8);
  Attr(sum, "N").set_i(1 << 16);
  const ProcessResult result = Run({"run", Write("graph.pb", graph), "--fetch", "unpack:7",
                                    "--fetch", "sum", "--memory-limit", "100000000"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(CommandLimitsTest, DifferentShapesAreLimited) {
  GraphDef graph;
  NodeDef* const x = AddNode("x", "Placeholder", &graph);
  Attr(x, "dtype").set_type(DT_FLOAT);
  for (int d = 0; d < 254; ++d) Attr(x, "shape").mutable_shape()->add_dim()->set_size(2 + d % 2);
  Attr(x, "shape").mutable_shape()->mutable_dim(0)->set_size(0);
  for (int i = 0; i < 200; ++i) {
    AddConst(absl::StrCat("axis", i), DT_INT32, {}, &graph)->add_int_val(i);
    NodeDef* const sum = AddNode(absl::StrCat("sum", i), "Sum", &graph);
    for (const std::string& input : {std::string("x"), absl::StrCat("axis", i)}) {
      sum->add_input(input);
    }
    Attr(sum, "T").set_type(DT_FLOAT);
  }
  const std::string file = Write("graph.pb", graph);
  EXPECT_THAT(Run({"inspect", file}).out, Not(HasSubstr("cannot run")));
  EXPECT_THAT(Run({"inspect", file, "--graph-limit", "max_shape_bytes=100000"}).out,
              HasSubstr("expected at most 100000 (GraphLimits::max_shape_bytes)"));
}

// ---- Constants ----

TEST_F(CommandLimitsTest, ConstantsThatRepeatAValueAreCharged) {
  std::string bytes;
  const std::string file = File("graph.pb");
  const std::string part = File("part.pb");
  for (int i = 0; i < 200'000; ++i) {
    GraphDef graph;
    AddConst(absl::StrCat("c", i), DT_FLOAT, {4096}, &graph)->add_float_val(static_cast<float>(i));
    bytes += graph.SerializeAsString();
    if (i == 20'000) WriteFile(part, bytes);
  }
  WriteFile(file, bytes);
  // The messages take most of this memory.
  ExpectFailure(Run({"run", file}, int64_t{300} << 20), "INVALID_ARGUMENT",
                HasSubstr("max_constant_bytes"));
  ExpectFailure(Run({"run", part, "--memory-limit", "50000000"}), "RESOURCE_EXHAUSTED",
                HasSubstr("tensor_memory_limit_bytes"));
  ExpectFailure(Run({"run", part, "--graph-limit", "max_constant_bytes=1000000"}),
                "INVALID_ARGUMENT", HasSubstr("at most 1000000 together"));
}

// ---- Conversion ----

// Returns a node with a long name and `attrs` attributes, each with an unknown field.
GraphDef UnknownFields(size_t name_bytes, int attrs) {
  GraphDef graph;
  NodeDef* const node = AddNode(std::string(name_bytes, 'n'), "Op", &graph);
  for (int i = 0; i < attrs; ++i) {
    AttrValue& value = Attr(node, absl::StrCat("a", i));
    value.GetReflection()->MutableUnknownFields(&value)->AddVarint(1000, i);
  }
  return graph;
}

TEST_F(CommandLimitsTest, ConvertRepeatsNoLongNames) {
  const GraphDef graph = UnknownFields(500'000, 5'000);
  const std::string text = File("graph.pbtxt");
  EXPECT_EQ(Run({"convert", Write("graph.pb", graph), text}).exit_code, 0);
  EXPECT_LT(ReadFile(text).size(), 2 << 20);
  EXPECT_EQ(Run({"convert", text, File("again.pb")}).exit_code, 0);
  EXPECT_EQ(ReadFile(File("again.pb")), SerializeGraphDef(graph).value_or(""));
}

TEST_F(CommandLimitsTest, ConvertWritesNoTextManyTimesItsInput) {
  // A list of bools inside nested functions, where the text indents each line.
  GraphDef graph;
  AttrValue* value = &Attr(AddNode("n", "Op", &graph), "a");
  for (int depth = 0; depth < 20; ++depth) value = &(*value->mutable_func()->mutable_attr())["a"];
  for (int i = 0; i < 100'000; ++i) value->mutable_list()->add_b(true);
  const std::string text = File("graph.pbtxt");
  ExpectFailure(Run({"convert", Write("graph.pb", graph), text}), "INVALID_ARGUMENT",
                HasSubstr("the text would have more than"));
  EXPECT_FALSE(FileExists(text));
}

// ---- Images ----

// A small lossless WebP image whose prefix codes would take much memory.
TEST_F(CommandLimitsTest, PrefixCodesOfImagesAreCharged) {
  GraphDef graph;
  AddConst("contents", DT_STRING, {}, &graph)
      ->add_string_val(
          WebPFile({LosslessWebPChunk(1024, 1024, LosslessWebPData(1024, 1024, 65536, 0))}));
  NodeDef* const node = AddNode("image", "DecodeImage", &graph);
  node->add_input("contents");
  const std::string path = Write("image.pb", graph);
  ExpectFailure(Run({"run", path, "--fetch", "image", "--memory-limit", "40000000"}),
                "RESOURCE_EXHAUSTED", HasSubstr("out of memory for the decoder of an image"));
}

// ---- Golden cases ----

class GoldenLimitsTest : public CommandLimitsTest {
 protected:
  void SetUp() override {
    fs::create_directories(File("case/feeds"));
    GRADFLOW_ASSERT_OK(WriteNpy(File("case/feeds/x.npy"), Tensor(1.5f)));
  }

  // Writes a case with one unused output of this name.
  void WriteCase(const std::string& name) const {
    GraphDef graph;
    Attr(AddNode("x", "Placeholder", &graph), "dtype").set_type(DT_FLOAT);
    NodeDef* const node = AddNode(name, "Neg", &graph);
    node->add_input("x");
    Attr(node, "T").set_type(DT_FLOAT);
    Write("case/graph.pb", graph);
  }

  std::vector<std::string> Files() const {
    std::vector<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder())) {
      if (entry.is_regular_file() || entry.is_symlink()) {
        files.push_back(entry.path().lexically_relative(folder()).string());
      }
    }
    std::sort(files.begin(), files.end());
    return files;
  }
};

TEST_F(GoldenLimitsTest, UpdateWritesNothingOutsideOfTheCase) {
  for (const char* name : {"x/../../../written_outside", "x/../../graph", "x/./y"}) {
    SCOPED_TRACE(name);
    WriteCase(name);
    const std::vector<std::string> before = Files();
    const ProcessResult result = Run({"test", "--update", File("case")});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.out, AllOf(StartsWith("FAIL"), HasSubstr("would lead out of the folder")));
    EXPECT_EQ(Files(), before);
  }
  WriteCase("layer/y");
  EXPECT_EQ(Run({"test", "--update", File("case")}).exit_code, 0);
  EXPECT_TRUE(FileExists(File("case/expected/layer/y.npy")));
  EXPECT_EQ(Run({"test", File("case") + "//"}).exit_code, 0);
}

TEST_F(GoldenLimitsTest, UpdateFollowsNoLinks) {
  WriteCase("layer/y");
  fs::create_directories(File("outside"));
  for (const char* link : {"case/expected", "case/expected/layer"}) {
    SCOPED_TRACE(link);
    fs::create_directories(fs::path(File(link)).parent_path());
    fs::create_directory_symlink(File("outside"), File(link));
    const ProcessResult result = Run({"test", "--update", File("case")});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.out, AnyOf(HasSubstr("expected a folder, but found a link or a file"),
                                  HasSubstr("'expected' is a link that leaves the case")));
    EXPECT_TRUE(fs::is_empty(File("outside")));
    fs::remove_all(File("case/expected"));
  }
  // The link is replaced by a file, and its target stays.
  WriteFile(File("outside/y.npy"), "other");
  fs::create_directories(File("case/expected/layer"));
  fs::create_symlink(File("outside/y.npy"), File("case/expected/layer/y.npy"));
  EXPECT_EQ(Run({"test", "--update", File("case")}).exit_code, 0);
  EXPECT_EQ(ReadFile(File("outside/y.npy")), "other");
  EXPECT_FALSE(fs::is_symlink(File("case/expected/layer/y.npy")));
}

TEST_F(GoldenLimitsTest, SideFilesHaveLimitedSize) {
  WriteCase("y");
  EXPECT_EQ(Run({"test", "--update", File("case")}).exit_code, 0);
  WriteFile(File("case/tolerance.txt"), "exact\n");
  EXPECT_EQ(Run({"test", File("case")}).exit_code, 0);
  fs::resize_file(File("case/tolerance.txt"), uint64_t{1} << 30);  // sparse
  const ProcessResult result = Run({"test", File("case")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("tolerance.txt: expected at most 1048576 bytes, but found "
                                    "1073741824"));
}

TEST_F(GoldenLimitsTest, CasesHaveLimitsOfMemoryTimeAndSize) {
  GraphDef graph;
  AddConst("dims", DT_INT32, {1}, &graph)->add_int_val(1 << 28);
  AddConst("value", DT_FLOAT, {}, &graph);
  NodeDef* const fill = AddNode("y", "Fill", &graph);
  for (const char* input : {"dims", "value"}) fill->add_input(input);
  Attr(fill, "T").set_type(DT_FLOAT);
  Write("case/graph.pb", graph);
  fs::remove_all(File("case/feeds"));
  const auto update = [&](const std::string& flag, const std::string& value) {
    const ProcessResult result = Run({"test", "--update", flag, value, File("case")});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.out, StartsWith("FAIL"));
    return result.out;
  };
  EXPECT_THAT(update("--memory-limit", "1000000"), HasSubstr("(RESOURCE_EXHAUSTED)"));
  EXPECT_THAT(update("--timeout", "0.000001"), HasSubstr("(DEADLINE_EXCEEDED)"));
  EXPECT_THAT(update("--graph-limit", "max_nodes=2"), HasSubstr("GraphLimits::max_nodes"));
  EXPECT_FALSE(FileExists(File("case/expected")));
}

TEST_F(GoldenLimitsTest, CasesWriteNoFiles) {
  const std::string target = File("written");
  GraphDef graph;
  AddConst("name", DT_STRING, {}, &graph)->add_string_val(target);
  AddConst("contents", DT_STRING, {}, &graph)->add_string_val("text");
  NodeDef* const write = AddNode("write", "WriteFile", &graph);
  for (const char* input : {"name", "contents"}) write->add_input(input);
  AddConst("x", DT_FLOAT, {}, &graph)->add_float_val(1);
  NodeDef* const y = AddNode("y", "Identity", &graph);
  for (const char* input : {"x", "^write"}) y->add_input(input);
  Attr(y, "T").set_type(DT_FLOAT);
  Write("case/graph.pb", graph);
  fs::remove_all(File("case/feeds"));
  const ProcessResult refused = Run({"test", "--update", File("case")});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.out, HasSubstr("node 'write' (WriteFile): '"));
  EXPECT_THAT(refused.out, HasSubstr("(PERMISSION_DENIED)"));
  EXPECT_FALSE(FileExists(target));
  EXPECT_FALSE(FileExists(File("case/expected")));
  EXPECT_EQ(Run({"test", "--update", "--allow-write", folder(), File("case")}).exit_code, 0);
  EXPECT_TRUE(FileExists(target));
}

// ---- Output to the terminal ----

bool IsPrintable(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c == '\n' || (c >= 0x20 && c != 0x7f && c < 0x80);
  });
}

TEST_F(CommandLimitsTest, MessagesOfTheGraphAreEscapedAndTruncated) {
  GraphDef graph;
  AddConst("x", DT_FLOAT, {}, &graph)->add_float_val(1.0f / 0.0f);
  NodeDef* const check = AddNode("y", "CheckNumerics", &graph);
  check->add_input("x");
  Attr(check, "T").set_type(DT_FLOAT);
  Attr(check, "message").set_s("\x1b[31mred\x07" + std::string(1 << 20, 'x'));
  const ProcessResult result = Run({"run", Write("graph.pb", graph)});
  ExpectFailure(result, "INVALID_ARGUMENT",
                AllOf(HasSubstr("(CheckNumerics): \\x1b[31mred\\x07xxx"),
                      HasSubstr("xxx... : Tensor had Inf values")));
  EXPECT_LT(result.err.size(), 2048);
  EXPECT_TRUE(IsPrintable(result.err));
}

TEST_F(CommandLimitsTest, NamesOfFilesAreEscaped) {
  const std::string name = "\x1b[2J\xc2\x9b\xff.pb";
  for (const char* command : {"run", "inspect", "bench"}) {
    const ProcessResult missing = Run({command, File(name)});
    EXPECT_TRUE(IsPrintable(missing.err)) << missing.err;
    EXPECT_THAT(missing.err, HasSubstr("\\x1b[2J\\xc2\\x9b\\xff.pb"));
  }
  const std::string golden = File("\x1b[2J");
  fs::create_directories(golden);
  WriteFile(golden + "/graph.pbtxt", "node {");
  ProcessResult result = Run({"test", folder()});
  EXPECT_TRUE(IsPrintable(result.out)) << result.out;
  WriteFile(golden + "/graph.pbtxt", "");
  fs::copy(GRADFLOW_TEST_DATA_DIR "/golden_cases/layer/batch_norm", golden,
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  result = Run({"test", folder()});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_TRUE(IsPrintable(result.out)) << result.out;
  EXPECT_THAT(result.out, AllOf(StartsWith("ok "), HasSubstr("\\x1b[2J")));
}

TEST_F(CommandLimitsTest, LongStringsArePrintedPartly) {
  GraphDef graph;
  AddConst("text", DT_STRING, {2}, &graph)->add_string_val(std::string(1 << 20, 'x'));
  const ProcessResult result = Run({"run", Write("graph.pb", graph)});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out,
            absl::StrCat("text: Tensor<type: string shape: [2] values: ", std::string(200, 'x'),
                         "... ", std::string(200, 'x'), "...>\n"));
}

TEST_F(CommandLimitsTest, ManyOutputsArePrintedPartly) {
  GraphDef graph;
  AddConst("x", DT_UINT8, {5000}, &graph);
  AddUnpack("unpack", "x", DT_UINT8, 5000, &graph);
  const ProcessResult result = Run({"run", Write("graph.pb", graph)});
  EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1001);
  EXPECT_THAT(result.out, HasSubstr("\n... and 4000 more\n"));
  for (const int size : {1000, 1001}) {
    GraphDef edge;
    AddConst("x", DT_UINT8, {size}, &edge);
    AddUnpack("unpack", "x", DT_UINT8, size, &edge);
    const std::string out = Run({"run", Write("edge.pb", edge)}).out;
    EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), size);
    EXPECT_EQ(out.find("\n... and 1 more\n") != std::string::npos, size == 1001);
  }
}

TEST_F(CommandLimitsTest, ManyValuesArePrintedPartly) {
  std::string values = "0";
  for (int i = 1; i < 32; ++i) values += " 0";
  for (const int size : {32, 33}) {
    GraphDef graph;
    AddConst("x", DT_UINT8, {size}, &graph);
    EXPECT_EQ(Run({"run", Write("graph.pb", graph)}).out,
              absl::StrCat("x: Tensor<type: uint8 shape: [", size, "] values: ", values,
                           size > 32 ? "..." : "", ">\n"));
  }
}

// ---- Options ----

TEST_F(CommandLimitsTest, OptionsThatAreNotNumbersAreRefused) {
  const std::vector<std::vector<std::string>> commands = {
      {"run", "g.pb", "--timeout", "nan"},
      {"run", "g.pb", "--timeout", "inf"},
      {"run", "g.pb", "--timeout", "-1"},
      {"test", "c", "--atol", "nan"},
      {"test", "c", "--rtol", "nan"},
      {"test", "c", "--rtol", "inf"},
      {"test", "c", "--timeout", "nan"},
      {"run", "g.pb", "--threads", "1e400"},
      {"test", "c", "--ulps", "-1"},
      {"bench", "g.pb", "--repeat", "0"},
      {"run", "g.pb", "--memory-limit", "nan"},
      {"run", "g.pb", "--memory-limit", "1e30"}};
  for (const std::vector<std::string>& command : commands) {
    const ProcessResult result = Run(command);
    EXPECT_EQ(result.exit_code, 2) << command[2] << command[3];
    EXPECT_THAT(result.err + result.out,
                AllOf(HasSubstr(command[2]), HasSubstr("but found '" + command[3] + "'")));
  }
  for (const char* command : {"run", "bench", "test", "inspect", "convert"}) {
    int digits = 0;
    int most = 0;
    for (const char c : Run({command, "--help"}).out) {
      digits = absl::ascii_isdigit(static_cast<unsigned char>(c)) ? digits + 1 : 0;
      most = std::max(most, digits);
    }
    EXPECT_LT(most, 20);
  }
}

TEST_F(CommandLimitsTest, CommandsHaveLimitsOfMemoryAndTime) {
  GraphDef graph;
  AddNode("x", "Placeholder", &graph);
  Attr(graph.mutable_node(0), "dtype").set_type(DT_FLOAT);
  AddConst("w", DT_FLOAT, {10000}, &graph)->set_tensor_content(std::string(40000, 'x'));
  const std::string file = Write("graph.pb", graph);
  Tensor w(DT_FLOAT, {10000});
  w.flat<float>().setZero();
  const std::string checkpoint = File("ckpt");
  GRADFLOW_ASSERT_OK(WriteCheckpoint(checkpoint, {{"w", w, ""}}));
  const std::string out = File("out");
  const std::vector<std::vector<std::string>> commands = {
      {"inspect", file},
      {"convert", file, out + ".pbtxt"},
      {"convert", file, out + ".cc"},
      {"view", file, "-o", out + ".html"},
      {"view", file, "-o", out + ".dot"},
      {"freeze", file, checkpoint, "--outputs", "w", "-o", out + ".pb"},
      {"gradients", file, "--of", "x", "-o", out + ".pb"},
      {"checkpoint", checkpoint, "--tensor", "w"},
      {"checkpoint", checkpoint, "--diff", checkpoint}};
  for (std::vector<std::string> command : commands) {
    const std::string name = absl::StrJoin(command, " ");
    const auto with = [&](const char* flag, const char* value) {
      std::vector<std::string> arguments = command;
      arguments.insert(arguments.end(), {flag, value});
      return Run(arguments);
    };
    const bool is_checkpoint = command[0] == "checkpoint";
    ExpectFailure(with("--memory-limit", "20000"),
                  is_checkpoint ? "RESOURCE_EXHAUSTED" : "INVALID_ARGUMENT",
                  HasSubstr(is_checkpoint ? "" : "GraphLimits::max_file_bytes"));
    ExpectFailure(with("--timeout", "1e-9"), "DEADLINE_EXCEEDED",
                  HasSubstr("the time limit (--timeout) is over"));
    for (const char* ending : {".pbtxt", ".cc", ".html", ".dot", ".pb"}) {
      EXPECT_FALSE(FileExists(out + ending)) << name;
    }
    EXPECT_EQ(with("--memory-limit", "1000000000").exit_code, 0) << name;
    EXPECT_EQ(with("--timeout", "1000").exit_code, 0) << name;
    for (const char* ending : {".pbtxt", ".cc", ".html", ".dot", ".pb"}) {
      fs::remove(out + ending);
    }
  }
}

TEST(TimeLimitDeathTest, EndsTheProcess) {
  EXPECT_EXIT(
      {
        const tools::TimeLimit limit(0.01);
        for (;;) pause();
      },
      ::testing::ExitedWithCode(1), "DEADLINE_EXCEEDED: the time limit \\(--timeout\\) is over");
}

TEST(TimeLimitTest, DoesNotEndAFinishedProcess) {
  tools::TimeLimit limit(1000);
  limit.End();
  limit.End();
  const tools::TimeLimit none(0);
}

// ---- Linear time for names ----

TEST_F(CommandLimitsTest, NamesOfCppVariablesTakeLinearTime) {
  GraphDef graph;
  // The names of variables use the first 60 characters of a node's name.
  const std::string prefix(60, 'x');
  for (int i = 0; i < 30000; ++i) AddNode(absl::StrCat(prefix, i), "NoOp", &graph);
  EXPECT_EQ(Run({"convert", Write("graph.pb", graph), File("out.cc")}).exit_code, 0);
}

TEST_F(CommandLimitsTest, ScopesOfGradientsTakeLinearTime) {
  GraphDef graph;
  NodeDef* const x = AddNode("x", "Placeholder", &graph);
  Attr(x, "dtype").set_type(DT_FLOAT);
  constexpr int kScopes = 60000;
  for (int i = kScopes; i > 0; --i) AddNode(absl::StrCat("gradients_", i, "/x"), "NoOp", &graph);
  AddNode("gradients/x", "NoOp", &graph);
  const ProcessResult result =
      Run({"gradients", Write("graph.pb", graph), "--of", "x", "-o", File("out.pb")});
  EXPECT_THAT(result.out, HasSubstr(absl::StrCat("x: gradients_", kScopes + 1, "/")));
}

// ---- Limits of graphs ----

TEST_F(CommandLimitsTest, GraphLimitsAreNamed) {
  GraphDef graph;
  AddConst("x", DT_FLOAT, {}, &graph);
  const std::string file = Write("graph.pb", graph);
  for (const char* limit :
       {"max_nodes", "max_nodes=", "max_nodes=-1", "max_nodes=x", "max=1", ""}) {
    ExpectFailure(Run({"run", file, "--graph-limit", limit}), "INVALID_ARGUMENT",
                  EndsWith("must be NAME=NUMBER, where NUMBER is 0 or more and NAME is one of "
                           "max_file_bytes, max_message_bytes, "
                           "max_nodes, max_functions, max_inputs, max_attrs, max_list_outputs, "
                           "max_name_bytes, max_list_length, max_constant_bytes, "
                           "max_shape_bytes\n"));
  }
  ExpectFailure(Run({"run", file, "--graph-limit", "max_nodes=0"}), "INVALID_ARGUMENT",
                HasSubstr("GraphLimits::max_nodes"));
  ExpectFailure(Run({"convert", file, File("out.pb"), "--graph-limit", "max_file_bytes=10"}),
                "INVALID_ARGUMENT", HasSubstr("GraphLimits::max_file_bytes"));
  EXPECT_EQ(Run({"bench", file, "--repeat", "1", "--graph-limit", "max_nodes=1"}).exit_code, 0);
}

TEST_F(CommandLimitsTest, TheTimeLimitCoversTheImport) {
  GraphDef graph;
  for (int i = 0; i < 20'000; ++i) AddConst(absl::StrCat("x", i), DT_FLOAT, {}, &graph);
  const std::string file = Write("graph.pb", graph);
  ExpectFailure(Run({"run", file, "--fetch", "x0", "--timeout", "0.0001"}), "DEADLINE_EXCEEDED",
                HasSubstr("the time for the import is over"));
  EXPECT_EQ(Run({"run", file, "--fetch", "x0", "--timeout", "100"}).exit_code, 0);
}

TEST_F(CommandLimitsTest, OutputThatCannotBeWrittenIsAnError) {
  GraphDef graph;
  AddConst("x", DT_FLOAT, {}, &graph);
  const std::string file = Write("graph.pb", graph);
  if (!FileExists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"run", file}, {"inspect", file}, {"ops"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.begin(), GRADFLOW_PROGRAM_gradflow_cli);
    const ProcessResult result = RunProcess(arguments, "/dev/full");
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.err, "UNAVAILABLE: standard output could not be written\n");
  }
}

TEST_F(CommandLimitsTest, TargetsAloneFetchNothing) {
  GraphDef graph;
  AddConst("x", DT_FLOAT, {}, &graph);
  const ProcessResult result = Run({"run", Write("graph.pb", graph), "--target", "x"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, IsEmpty());
}

TEST_F(CommandLimitsTest, TargetsAreRun) {
  GraphDef graph;
  AddConst("x", DT_FLOAT, {}, &graph)->add_float_val(1.0f / 0.0f);
  NodeDef* const check = AddNode("y", "CheckNumerics", &graph);
  check->add_input("x");
  Attr(check, "T").set_type(DT_FLOAT);
  Attr(check, "message").set_s("checked");
  const std::string file = Write("graph.pb", graph);
  ExpectFailure(Run({"run", file, "--target", "y"}), "INVALID_ARGUMENT", HasSubstr("checked"));
  EXPECT_EQ(Run({"run", file, "--target", "x"}).exit_code, 0);
}

// Zero means no limit.
TEST_F(CommandLimitsTest, LimitsMayBeSwitchedOff) {
  GraphDef graph;
  AddConst("x", DT_FLOAT, {}, &graph);
  const std::string file = Write("graph.pb", graph);
  EXPECT_EQ(Run({"run", file, "--memory-limit", "0", "--timeout", "0", "--threads", "0"}).exit_code,
            0);
  EXPECT_EQ(Run({"bench", file, "--memory-limit", "0", "--repeat", "1"}).exit_code, 0);
  fs::create_directories(File("case"));
  fs::copy(file, File("case/graph.pb"));
  EXPECT_EQ(Run({"test", "--update", File("case"), "--memory-limit", "0"}).exit_code, 0);
  EXPECT_EQ(Run({"test", File("case"), "--timeout", "0", "--ulps", "0"}).exit_code, 0);
  EXPECT_EQ(Run({"test", File("case"), "--atol", "0", "--rtol", "0"}).exit_code, 0);
}

// The median of two times is their mean.
TEST_F(CommandLimitsTest, BenchReportsTheMedian) {
  GraphDef graph;
  AddConst("x", DT_FLOAT, {}, &graph);
  std::string json = Run({"bench", Write("graph.pb", graph), "--repeat", "2", "--json"}).out;
  const auto number = [&](const std::string& key) {
    const size_t begin = json.find("\"" + key + "\":") + key.size() + 3;
    double value = -1;
    EXPECT_TRUE(absl::SimpleAtod(json.substr(begin, json.find(',', begin) - begin), &value));
    return value;
  };
  EXPECT_NEAR(number("median_ms"), number("mean_ms"), 2e-6) << json;
  // The median of one time is the time itself.
  json = Run({"bench", File("graph.pb"), "--repeat", "1", "--json"}).out;
  EXPECT_EQ(number("median_ms"), number("min_ms")) << json;
  EXPECT_EQ(number("median_ms"), number("mean_ms")) << json;
  EXPECT_LE(number("min_ms"), number("median_ms"));
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
