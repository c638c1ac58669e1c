#include "gradflow/io/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gradflow/core/attributes.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/ops/register.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/testing/status_matchers.h"

namespace gradflow {
namespace {

using ::gradflow::testing::IsOk;
using ::gradflow::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

const char kPlugin[] = GRADFLOW_TOY_PLUGIN_FILE;

std::string Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream content;
  content << in.rdbuf();
  return content.str();
}

// Writes a file for this test.
std::string Write(const std::string& name, const std::string& content) {
  std::string path = ::testing::TempDir() + "gradflow_plugin_test_" + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

// Writes a copy of the plugin with `from` replaced by `to`.
std::string CopyWith(const std::string& name, const std::string& from, const std::string& to) {
  std::string content = Read(kPlugin);
  const size_t at = content.find(from);
  EXPECT_NE(at, std::string::npos);
  content.replace(at, to.size(), to);
  return Write(name, content);
}

// Sets the environment variable of the plugin while in scope.
class Wanted {
 public:
  explicit Wanted(const char* what) { setenv("GRADFLOW_TOY_PLUGIN", what, 1); }
  ~Wanted() { unsetenv("GRADFLOW_TOY_PLUGIN"); }
};

Output AddToyNegate(const Scope& scope, Output x) {
  return OpBuilder(scope, "ToyNegate").Input(x).Finish().output(0);
}

TEST(LoadLibrary, ItsOpsRunInGraphs) {
  ASSERT_THAT(LoadLibrary(kPlugin), IsOk());
  // Loading it again has no effect.
  ASSERT_THAT(LoadLibrary(kPlugin), IsOk());

  Scope root = Scope::NewRootScope();
  auto x = ops::Placeholder(root, DT_FLOAT);
  const Output y = AddToyNegate(root, x);
  auto z = ops::Relu(root.WithKernelLabel("toy"), x);
  ClientSession session(root);
  std::vector<Tensor> outputs;
  ASSERT_THAT(session.Run({{x, {1.f, -2.f}}}, {y, z}, &outputs), IsOk());
  for (const Tensor& output : outputs) {
    EXPECT_EQ(output.flat<float>()(0), -1);
    EXPECT_EQ(output.flat<float>()(1), 2);
  }
}

TEST(LoadLibrary, LibraryWrittenForTensorFlowIsAPlugin) {
  const char plugin[] = GRADFLOW_TENSORFLOW_PLUGIN_FILE;
  Registry registry;
  EXPECT_THAT(LoadLibrary(plugin, registry), IsOk());
  EXPECT_NE(registry.FindOp("PluginZeroOut"), nullptr);
  EXPECT_EQ(GlobalRegistry().FindOp("PluginZeroOut"), nullptr);
  EXPECT_THAT(LoadLibrary(plugin, registry),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("'PluginZeroOut'")));
  // The initializers ran only in the first call.
  ASSERT_THAT(LoadLibrary(plugin), IsOk());
  ASSERT_THAT(LoadLibrary(plugin), IsOk());

  Scope root = Scope::NewRootScope();
  auto x = ops::Placeholder(root, DT_INT32, ops::Placeholder::Shape({3}));
  const Output y = OpBuilder(root, "PluginZeroOut").Input(x).Finish().output(0);
  ClientSession session(root);
  std::vector<Tensor> outputs;
  ASSERT_THAT(session.Run({{x, {5, 6, 7}}}, {y}, &outputs), IsOk());
  EXPECT_EQ(outputs[0].DebugString(), "Tensor<type: int32 shape: [3] values: 5 0 0>");
}

// Shape functions of one registry run while another registry loads the library.
TEST(LoadLibrary, RegistriesOfTheSamePluginAreIndependent) {
  const char plugin[] = GRADFLOW_TENSORFLOW_PLUGIN_FILE;
  Registry registry;
  RegisterStandardOps(registry);
  ASSERT_THAT(LoadLibrary(plugin, registry), IsOk());
  std::atomic<bool> done = false;
  std::thread loader([&] {
    for (int i = 0; i < 100; ++i) {
      Registry other;
      EXPECT_THAT(LoadLibrary(plugin, other), IsOk());
    }
    done = true;
  });
  while (!done) {
    Graph graph(registry);
    NodeDef x;
    x.set_name("x");
    x.set_op("Placeholder");
    AddNodeAttr("dtype", DT_INT32, &x);
    AddNodeAttr("shape", PartialTensorShape({3}), &x);
    NodeDef y;
    y.set_name("y");
    y.set_op("PluginZeroOut");
    y.add_input("x");
    ASSERT_THAT(graph.AddNode(std::move(x)), IsOk());
    const auto node = graph.AddNode(std::move(y));
    ASSERT_THAT(node, IsOk());
    ASSERT_EQ((*node)->output_shape(0), PartialTensorShape({3}));
  }
  loader.join();
}

TEST(LoadLibrary, CustomRegistryGetsTheOps) {
  Registry registry;
  RegisterStandardOps(registry);
  EXPECT_THAT(LoadLibrary(kPlugin, registry), IsOk());
  EXPECT_NE(registry.FindOp("ToyNegate"), nullptr);
  EXPECT_THAT(LoadLibrary(kPlugin, registry),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("'ToyNegate'")));
  EXPECT_THAT(registry.status(), IsOk());
}

TEST(LoadLibrary, FailureDoesNotChangeTheRegistry) {
  Registry registry;
  RegisterStandardOps(registry);
  {
    const Wanted wanted("an op that is there");
    EXPECT_THAT(LoadLibrary(kPlugin, registry),
                StatusIs(absl::StatusCode::kAlreadyExists,
                         AllOf(HasSubstr(kPlugin), HasSubstr("'Relu' is already registered"))));
  }
  {
    const Wanted wanted("an exception");
    EXPECT_THAT(LoadLibrary(kPlugin, registry),
                StatusIs(absl::StatusCode::kInternal, HasSubstr("out of order")));
  }
  EXPECT_EQ(registry.FindOp("ToyNegate"), nullptr);
  EXPECT_THAT(registry.status(), IsOk());
  // The kernel of Relu was not registered either.
  NodeDef relu;
  relu.set_op("Relu");
  AddNodeAttr("T", DT_FLOAT, &relu);
  AddNodeAttr("_kernel", "toy", &relu);
  EXPECT_THAT(registry.FindKernel(relu).status(), StatusIs(absl::StatusCode::kUnimplemented));
  EXPECT_THAT(LoadLibrary(kPlugin, registry), IsOk());
}

TEST(LoadLibrary, WrongFilesAreErrors) {
  const std::string plugin = Read(kPlugin);
  ASSERT_GT(plugin.size(), 4096u);
  std::string folder = ::testing::TempDir() + "gradflow_plugin_test_folder";
  mkdir(folder.c_str(), 0777);
  const struct {
    std::string path;
    absl::StatusCode code;
    std::string text;
  } cases[] = {
      {"/nowhere/x.so", absl::StatusCode::kNotFound, "'/nowhere/x.so': cannot open"},
      {"x\n.so", absl::StatusCode::kNotFound, "'x\\n.so'"},
      {"", absl::StatusCode::kNotFound, "''"},
      {folder, absl::StatusCode::kInvalidArgument, "directory"},
      {Write("empty", ""), absl::StatusCode::kInvalidArgument, "expected a shared library"},
      {Write("text", std::string(100, 'x')), absl::StatusCode::kInvalidArgument,
       "expected a shared library"},
      {"/proc/self/exe", absl::StatusCode::kFailedPrecondition, "cannot be loaded"},
      {Write("header", plugin.substr(0, 64)), absl::StatusCode::kInvalidArgument, "truncated"},
      {Write("half", plugin.substr(0, 4096)), absl::StatusCode::kInvalidArgument, "truncated"},
      {CopyWith("class",
                "\x7f"
                "ELF\2",
                "\x7f"
                "ELF\1"),
       absl::StatusCode::kFailedPrecondition, "cannot be loaded"},
      {GRADFLOW_NO_PLUGIN_FILE, absl::StatusCode::kInvalidArgument, "GRADFLOW_PLUGIN"},
      {CopyWith("magic", "gradflow" GRADFLOW_VERSION_STRING, "gradflaw"),
       absl::StatusCode::kInvalidArgument, "GRADFLOW_PLUGIN"},
      {CopyWith("version", "gradflow" GRADFLOW_VERSION_STRING, "gradflow9.9.9"),
       absl::StatusCode::kFailedPrecondition, "compiled with gradflow 9.9.9, expected 0.1.x"},
      // The plugin needs a function of the library that does not exist.
      {CopyWith("symbol", "11OpRegistrarC1", "11OpRegistraXC1"),
       absl::StatusCode::kFailedPrecondition, "cannot be loaded"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.path);
    Registry registry;
    EXPECT_THAT(LoadLibrary(c.path, registry), StatusIs(c.code, HasSubstr(c.text)));
    EXPECT_TRUE(registry.Ops().empty());
  }
}

}  // namespace
}  // namespace gradflow
