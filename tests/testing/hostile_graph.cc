#include "tests/testing/hostile_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/import.h"
#include "gradflow/io/file_access.h"
#include "gradflow/runtime/session/session.h"
#include "tests/testing/op_rows.h"

namespace gradflow::testing {
namespace {

using Feeds = std::vector<std::pair<std::string, Tensor>>;

// Makes a feed for a placeholder of this shape. Returns false if the feed would be too large.
bool MakeFeed(DataType dtype, const PartialTensorShape& shape, Tensor* feed) {
  TensorShape sizes;
  for (int d = 0; d < shape.dims(); ++d) {
    sizes.AddDim(shape.dim_size(d) < 0 ? 2 : shape.dim_size(d));
  }
  constexpr int64_t kMaxElements = 1 << 12;
  if (!sizes.IsValid() || sizes.num_elements() > kMaxElements || !DataTypeCanBeTensor(dtype)) {
    return false;
  }
  absl::StatusOr<Tensor> tensor = Tensor::Allocate(dtype, sizes);
  if (!tensor.ok()) return false;
  *feed = *std::move(tensor);
  if (dtype == DT_STRING) return true;
  auto* const bytes = static_cast<char*>(feed->raw_data());
  const int size = DataTypeSize(dtype);
  for (int64_t i = 0; i < sizes.num_elements(); ++i) {
    for (int b = 0; b < size; ++b) {
      bytes[i * size + b] = static_cast<char>(dtype == DT_FLOAT ? (b == 3 ? 0x3f : i) : b == 0);
    }
  }
  return true;
}

absl::Status Run(const GraphDef& def, const HostileOptions& options) {
  Graph graph;
  ImportGraphDefOptions import_options;
  import_options.limits.max_constant_bytes = options.memory_bytes;
  if (absl::Status status = ImportGraphDef(import_options, def, &graph); !status.ok()) {
    return status;
  }
  SessionOptions session_options;
  session_options.tensor_memory_limit_bytes = options.memory_bytes;
  session_options.pool_limit_bytes = 0;
  session_options.file_access = FileAccess::None();
  session_options.config.set_intra_op_parallelism_threads(options.threads);
  session_options.config.set_inter_op_parallelism_threads(options.threads);
  absl::StatusOr<std::unique_ptr<Session>> session = Session::Make(session_options);
  if (!session.ok()) return session.status();
  if (absl::Status status = (*session)->Create(def); !status.ok()) return status;
  Feeds feeds;
  std::vector<std::string> targets;
  std::vector<std::string> fetches;
  constexpr size_t kMaxFetches = 100;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node& node = *graph.node(id);
    Tensor feed;
    if (node.type_string() == "Placeholder" &&
        MakeFeed(node.output_type(0), node.output_shape(0), &feed)) {
      feeds.emplace_back(node.name(), feed);
    }
    targets.push_back(node.name());
    for (int i = 0; i < node.num_outputs() && fetches.size() < kMaxFetches; ++i) {
      // A variable has no value until a node assigns one, and a fetch would not wait for that node.
      if (IsRefType(node.output_type(i))) continue;
      fetches.push_back(absl::StrCat(node.name(), ":", i));
    }
  }
  RunOptions run_options;
  run_options.set_timeout_in_ms(options.timeout_ms);
  std::vector<Tensor> outputs;
  absl::Status status = (*session)->Run(run_options, feeds, fetches, targets, &outputs, nullptr);
  for (const Tensor& output : outputs) {
    EXPECT_TRUE(output.IsInitialized());
    // Reads the elements.
    EXPECT_FALSE(output.DebugString().empty());
  }
  EXPECT_TRUE(status.ok() || outputs.empty());
  outputs.clear();
  // Frees the variables.
  EXPECT_TRUE((*session)->Close().ok());
  EXPECT_EQ((*session)->MemoryStats().bytes_in_use, 0);
  return status;
}

}  // namespace

absl::Status RunHostileGraph(absl::string_view bytes, const HostileOptions& options) {
  GraphLimits limits;
  limits.max_message_bytes = options.memory_bytes;
  const absl::StatusOr<GraphDef> graph = ParseGraphDef(bytes, limits);
  absl::Status status = graph.ok() ? Run(*graph, options) : graph.status();
  EXPECT_NE(status.code(), absl::StatusCode::kInternal) << status;
  EXPECT_NE(status.code(), absl::StatusCode::kUnknown) << status;
  // Bounds the message for any names and strings in the file.
  constexpr size_t kMaxMessage = 20'000;
  EXPECT_LE(status.message().size(), kMaxMessage);
  for (const absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    EXPECT_EQ(errors::Printable(line, kMaxMessage), line);
  }
  return status;
}

std::vector<GraphDef> ValidGraphs(const std::string& path) {
  std::vector<GraphDef> graphs;
  GraphDef several;
  for (const auto& row : ReadRows(path)) {
    if (row.size() != 3 && row.size() != 4) {
      ADD_FAILURE() << row[0];
      continue;
    }
    const std::vector<Tensor> inputs = ParseTensors(row[2]);
    Feeds feeds;
    for (const Knowledge knowledge : {Knowledge::kValues, Knowledge::kRanks}) {
      AddOpRow("n", row[0], row[1], inputs, knowledge, &graphs.emplace_back(), &feeds);
    }
    // An op may have several rows, and the name of an op may begin with "_".
    const std::string name = absl::StrCat(absl::StripPrefix(row[0], "_"), "_", several.node_size());
    AddOpRow(name, row[0], row[1], inputs, Knowledge::kValues, &several, &feeds);
    if (several.node_size() > 30) {
      graphs.push_back(several);
      several.Clear();
    }
  }
  if (several.node_size() > 0) graphs.push_back(several);
  return graphs;
}

}  // namespace gradflow::testing
