// SavedGraph: finds out how a MetaGraphDef restores its variables, and which variables its
// signatures write. Internal.
//
// Works on the messages, so that nodes with ops that are not registered are allowed. The graph may
// be invalid. All searches are bounded. Where they cannot tell, they assume that the saver does
// more than to restore variables, and that a variable is written.
//
// Thread safety: none.
#ifndef GRADFLOW_SAVED_MODEL_SAVED_GRAPH_H_
#define GRADFLOW_SAVED_MODEL_SAVED_GRAPH_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gradflow/core/registry.h"
#include "gradflow/graph/import.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/meta_graph.pb.h"
#include "gradflow/proto/saved_object_graph.pb.h"
#include "gradflow/proto/trackable_object_graph.pb.h"
#include "gradflow/saved_model/reader.h"

namespace gradflow::internal {

// The container and name of a variable.
using VariableKey = std::pair<std::string, std::string>;

// The work of the saver's nodes that restore.
struct Restoration {
  // The variables, with their tensors in the checkpoint.
  std::vector<ModelVariable> variables;
  // Empty if the saver only assigns tensors of the checkpoint to variables; otherwise a description
  // of other work.
  std::string other;
};

class SavedGraph {
 public:
  // Borrows the messages.
  SavedGraph(const GraphDef& graph, const SaverDef& saver);
  ~SavedGraph();

  // Follows the nodes that restore the variables.
  Restoration FindRestoration();
  // Returns the variables outside of functions that `restored` lacks and that the objects of the
  // program name, with their tensors. `objects` are the objects of the graph and of the checkpoint.
  std::vector<ModelVariable> FindByObject(const Restoration& restored,
                                          const SavedObjectGraph& objects,
                                          const TrackableObjectGraph& tensors);
  // Returns the variables that a node which these tensors or nodes need, "node" or "node:1", may
  // write.
  std::set<VariableKey> FindWritten(absl::Span<const std::string> names);
  // Returns the ops that a node which these tensors or nodes need has, directly or in functions,
  // and that the registry lacks. Nodes whose first output is in `feeds` are not needed.
  std::set<std::string> FindMissingOps(absl::Span<const std::string> names,
                                       absl::Span<const std::string> feeds,
                                       const Registry& registry);

 private:
  // The nodes of the graph or of a function.
  struct Body;
  // A body at a call.
  struct Frame;
  // An output of a node at a frame, or null.
  struct Place {
    Frame* frame = nullptr;
    const NodeDef* node = nullptr;
    int output = 0;
  };
  // The effects of a function on its arguments.
  struct Effects;

  const Body* BodyOf(absl::string_view function);
  Frame* CallFrame(Frame* frame, const NodeDef& call);
  // Follows identities and calls to the node that makes a tensor.
  Place Resolve(Frame* frame, absl::string_view input);
  bool VisitRestored(Frame* frame, const NodeDef& node, Restoration* result);
  // Returns an element of a constant, or null.
  const std::string* StringAt(Frame* frame, absl::string_view input, int index);
  const Effects& EffectsOf(absl::string_view function, int depth);
  void FindEffects(const Body& body, absl::Span<const NodeDef* const> nodes, int depth,
                   Effects* effects);
  std::vector<const NodeDef*> Reachable(absl::Span<const std::string> names,
                                        absl::Span<const std::string> feeds = {}) const;

  const GraphDef& graph_;
  const SaverDef& saver_;
  std::unique_ptr<Body> root_;
  absl::flat_hash_map<absl::string_view, const FunctionDef*> functions_;
  std::map<std::string, std::unique_ptr<Body>, std::less<>> bodies_;
  std::map<std::string, std::unique_ptr<Effects>, std::less<>> effects_;
  std::deque<Frame> frames_;
  // The steps that a search may take, and the steps that the current search may still take.
  int64_t max_steps_ = 0;
  int64_t budget_ = 0;
};

// Returns the variable that a node makes. Returns INVALID_ARGUMENT if the node makes none.
absl::StatusOr<ModelVariable> VariableOfNode(const NodeDef& node);

}  // namespace gradflow::internal

#endif  // GRADFLOW_SAVED_MODEL_SAVED_GRAPH_H_
