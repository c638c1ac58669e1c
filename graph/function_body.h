// FunctionBodyBuilder: makes the instance of a function. Internal.
#ifndef GRADFLOW_GRAPH_FUNCTION_BODY_H_
#define GRADFLOW_GRAPH_FUNCTION_BODY_H_

#include <google/protobuf/map.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/types.h"
#include "gradflow/graph/function_library.h"
#include "gradflow/graph/tables.h"
#include "gradflow/proto/function.pb.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow::internal {

using AttrMap = google::protobuf::Map<std::string, AttrValue>;

// The bytes that are counted for a node of a function, in addition to the bytes of its messages.
inline constexpr int64_t kFunctionNodeBytes = 512;

// The values of the attributes that a function's signature declares, borrowed.
using BoundAttrs = std::vector<std::pair<absl::string_view, const AttrValue*>>;
// Returns the values in `attrs`, or else the defaults, in the order of the signature. Returns
// INVALID_ARGUMENT if an attribute is missing or has a value that is not allowed.
absl::StatusOr<BoundAttrs> BindFunctionAttrs(const OpDef& signature, const AttrMap& attrs);

// Turns the nodes of a function into the nodes of a graph, with a node for each argument and each
// result. An input is named "node:y:0" in a function and "node:1" in a graph.
class FunctionBodyBuilder {
 public:
  struct Options {
    bool infer_shapes = true;
    // The version of the graph's producer.
    int producer = 0;
    // The maximum number of bytes of the instance.
    int64_t max_bytes = 0;
    // Returns true if a call of the function of this name has effects.
    absl::FunctionRef<bool(absl::string_view function)> has_effects;
  };

  // Borrows all arguments.
  FunctionBodyBuilder(const FunctionDef& function, const BoundAttrs& attrs,
                      const FunctionLibrary& library, const Registry& registry,
                      const Options& options);

  // Errors lack the prefix that names the function.
  absl::StatusOr<std::unique_ptr<FunctionBody>> Build();
  // Returns an estimate of the bytes of the instance.
  int64_t bytes() const { return bytes_; }

 private:
  // The tensors of an argument or of an output argument of a node.
  struct Tensors {
    // For an argument: the names of its nodes, one for each tensor. Empty for an output argument.
    std::vector<std::string> args;
    // For an output argument: the node, and the index of its output that is the first tensor.
    absl::string_view node;
    int begin = 0;
    int count = 0;

    std::string Name(int i) const;
  };

  absl::Status Charge(int64_t bytes);
  absl::Status MakeNodes();
  absl::Status AddArg(const OpDef::ArgDef& arg, uint32_t index);
  absl::Status AddNode(const NodeDef& node);
  absl::Status Bind(AttrValue* value, int depth);
  absl::Status BindAttrsOf(google::protobuf::Map<std::string, AttrValue>* attrs, int depth);
  absl::Status AddOutputs(const NodeDef& node, const OpDef& op_def);
  absl::Status Connect(NodeDef* node);
  absl::Status AddResult(const OpDef::ArgDef& result);
  absl::Status FindControlOutputs();
  absl::Status Import(FunctionBody* body);
  absl::Status FindEffects(FunctionBody* body);

  absl::StatusOr<DataTypeVector> TypesOf(const OpDef::ArgDef& arg) const;
  // Adds the node of an argument or a result.
  NodeDef* AddEnd(const char* op, const char* device_op, DataType dtype, std::string name,
                  int index);
  std::string UniqueName(const std::string& name);
  // Returns the tensors of a name such as "x", "node:y" or "node:y:0", as a range of one or
  // several.
  struct Range {
    const Tensors* tensors = nullptr;
    int begin = 0;
    int count = 0;
  };
  absl::StatusOr<Range> FindTensors(absl::string_view name) const;
  absl::StatusOr<const OpRegistration*> FindOp(const std::string& name) const;

  const FunctionDef& function_;
  const BoundAttrs& attrs_;
  const FunctionLibrary& library_;
  const Registry& registry_;
  const Options& options_;
  bool ints_on_device_ = false;
  int64_t bytes_ = 0;
  // A node with the attributes of the function, for the types of arguments.
  NodeDef call_;
  GraphDef graph_def_;
  int num_args_ = 0;
  int num_results_ = 0;
  // Keyed by the name in the function: "x" and "node:y".
  HashMap<std::string, Tensors> tensors_;
  // The names of nodes of the graph, keyed by the names of arguments and nodes of the function. The
  // name is empty for an argument that is an empty list.
  HashMap<absl::string_view, std::string> nodes_;
  // The names in use.
  HashSet<std::string> names_;
  // The names of the nodes that are control outputs.
  HashSet<absl::string_view> control_outputs_;
};

}  // namespace gradflow::internal

#endif  // GRADFLOW_GRAPH_FUNCTION_BODY_H_
