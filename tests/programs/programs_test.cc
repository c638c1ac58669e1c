// Tests of the programs that `gradflow convert GRAPH OUT.cc` writes. The programs of all golden
// cases and of tests/data/cpp_programs are compiled into this test.
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/scope.h"
#include "gradflow/io/npy.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/testing/golden.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"

#define GRADFLOW_PROGRAM(NAME, FILE) absl::Status Build_##NAME(const gradflow::Scope& root);
#include "programs.inc"
#undef GRADFLOW_PROGRAM

namespace gradflow {
namespace testing {
namespace {

using ::google::protobuf::util::MessageDifferencer;

struct Program {
  std::string name;
  // The file of the graph that the program was made from.
  std::string file;
  absl::Status (*build)(const Scope&);
};

const std::vector<Program>& Programs() {
  static const auto* const programs = new std::vector<Program>{
#define GRADFLOW_PROGRAM(NAME, FILE) {#NAME, FILE, Build_##NAME},
#include "programs.inc"
#undef GRADFLOW_PROGRAM
  };
  return *programs;
}

// Runs a graph and returns the outputs that no node reads.
std::map<std::string, Tensor> RunGraph(const GraphDef& graph,
                                       const std::vector<std::pair<std::string, Tensor>>& feeds) {
  const std::unique_ptr<Session> session(NewSession(SessionOptions()));
  EXPECT_THAT(session->Create(graph), IsOk());
  const absl::StatusOr<std::vector<std::string>> fetches = session->UnusedOutputs();
  EXPECT_THAT(fetches.status(), IsOk());
  std::vector<Tensor> outputs;
  EXPECT_THAT(session->Run(feeds, *fetches, {}, &outputs), IsOk());
  std::map<std::string, Tensor> results;
  for (size_t i = 0; i < outputs.size(); ++i) results.emplace((*fetches)[i], outputs[i]);
  return results;
}

TEST(Programs, RebuildTheirGraphs) {
  EXPECT_GE(Programs().size(), 3u);
  for (const Program& program : Programs()) {
    SCOPED_TRACE(program.name);
    const absl::StatusOr<GraphDef> original = ReadGraphDef(program.file);
    GRADFLOW_ASSERT_OK(original.status());
    const Scope root = Scope::NewRootScope();
    GRADFLOW_ASSERT_OK(program.build(root));
    GraphDef built;
    GRADFLOW_ASSERT_OK(root.ToGraphDef(&built));

    // Nodes have the same names, inputs, devices and attributes.
    Graph imported;
    GRADFLOW_ASSERT_OK(ImportGraphDef(ImportGraphDefOptions(), *original, &imported));
    ASSERT_EQ(built.node_size(), imported.num_nodes());
    for (int i = 0; i < built.node_size(); ++i) {
      const NodeDef& actual = built.node(i);
      SCOPED_TRACE(actual.name());
      const Node* const original_node = imported.FindNode(actual.name());
      ASSERT_NE(original_node, nullptr);
      const NodeDef& expected = original_node->def();
      EXPECT_EQ(actual.op(), expected.op());
      EXPECT_EQ(actual.device(), expected.device());
      EXPECT_EQ(std::vector<std::string>(actual.input().begin(), actual.input().end()),
                std::vector<std::string>(expected.input().begin(), expected.input().end()));
      EXPECT_EQ(actual.attr_size(), expected.attr_size());
    }

    // The attributes of functions have no order.
    EXPECT_TRUE(MessageDifferencer::Equals(built.library(), original->library()));

    // Both graphs compute the same bits.
    std::vector<std::pair<std::string, Tensor>> feeds;
    const std::filesystem::path folder =
        std::filesystem::path(program.file).parent_path() / "feeds";
    for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
      if (!file.is_regular_file()) continue;
      const absl::StatusOr<std::string> name =
          GoldenTensorName(std::filesystem::relative(file.path(), folder).string());
      GRADFLOW_ASSERT_OK(name.status());
      const absl::StatusOr<Tensor> value = ReadNpy(file.path().string());
      GRADFLOW_ASSERT_OK(value.status());
      feeds.emplace_back(*name, *value);
    }
    const auto expected = RunGraph(*original, feeds);
    const auto actual = RunGraph(built, feeds);
    ASSERT_EQ(actual.size(), expected.size());
    for (const auto& [name, value] : actual) {
      SCOPED_TRACE(name);
      const auto same = expected.find(name);
      ASSERT_NE(same, expected.end());
      EXPECT_THAT(value, TensorEq(same->second));
    }
  }
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
