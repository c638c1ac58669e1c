// TF_Graph, TF_Operation and TF_Output.
//
// A TF_Operation is a Node of the graph. The graph and the sessions that run it have separate
// mutexes: a function that changes the graph takes the mutex of the graph, and then the mutex of
// each session of the graph (GraphChange).
#ifndef GRADFLOW_C_GRAPH_H_
#define GRADFLOW_C_GRAPH_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/mutex.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/ops.h"
#include "gradflow/runtime/session/graph_runner.h"
#include "tensorflow/c/c_api.h"

namespace gradflow::capi {

// A graph that knows its TF_Graph.
class OwnedGraph final : public Graph {
 public:
  explicit OwnedGraph(TF_Graph* owner) : owner_(owner) {}
  TF_Graph* owner() const { return owner_; }

 private:
  TF_Graph* const owner_;
};

}  // namespace gradflow::capi

struct TF_Graph {
  TF_Graph() : graph(this) {}

  gradflow::Mutex mutex;
  // `mutex` guards the graph, except for the members of nodes that never change.
  gradflow::capi::OwnedGraph graph;
  // The sessions of the graph.
  std::vector<gradflow::GraphRunner*> runners ABSL_GUARDED_BY(mutex);
  // The number of sessions, and one until TF_DeleteGraph() is called.
  int refs ABSL_GUARDED_BY(mutex) = 1;
  // The graph of a while loop under construction, and the inputs of the loop. Null and empty for
  // all graphs except the graphs of a condition or body.
  TF_Graph* parent = nullptr;
  std::vector<TF_Output> parent_inputs;
  // The shapes and types of resources that TF_SetHandleShapeAndType() has set, by node and output.
  std::map<std::pair<int, int>, std::string> handle_data ABSL_GUARDED_BY(mutex);
};

namespace gradflow::capi {

// Adds or drops a reference. The last one deletes the graph.
void RefGraph(TF_Graph* graph);
void UnrefGraph(TF_Graph* graph);

// Excludes all other uses of the graph while it changes. Runs whose plans are made go on.
class ABSL_SCOPED_LOCKABLE GraphChange {
 public:
  explicit GraphChange(TF_Graph* graph) ABSL_EXCLUSIVE_LOCK_FUNCTION(graph->mutex);
  ~GraphChange() ABSL_UNLOCK_FUNCTION();
  GraphChange(const GraphChange&) = delete;
  GraphChange& operator=(const GraphChange&) = delete;

 private:
  TF_Graph* const graph_;
};

// ---- Conversions between C and C++ ----

inline const Node* FromC(const TF_Operation* oper) { return reinterpret_cast<const Node*>(oper); }
inline TF_Operation* ToC(const Node* node) {
  return reinterpret_cast<TF_Operation*>(const_cast<Node*>(node));
}
inline TF_Graph* GraphOf(const Node& node) {
  return static_cast<const OwnedGraph&>(node.graph()).owner();
}
// Returns read(node) of an operation, whose graph does not change during the call.
// REQUIRES: the calling thread does not hold the mutex of the graph
template <typename F>
auto ReadNode(const TF_Operation* oper, F&& read) {
  const Node& node = *FromC(oper);
  const MutexLock lock(&GraphOf(node)->mutex);
  return read(node);
}
// REQUIRES: CheckOutput() accepts the output
inline Output FromC(const TF_Output& output) { return Output(FromC(output.oper), output.index); }
inline TF_Output ToC(const Output& output) { return {ToC(output.node()), output.index()}; }

// Returns INVALID_ARGUMENT if the operation is null or of another graph, or has no such output.
// `what` names the argument: "input 2".
absl::Status CheckOperation(const Graph& graph, const TF_Operation* oper, absl::string_view what);
absl::Status CheckOutput(const Graph& graph, const TF_Output& output, absl::string_view what);
// Checks `count` outputs. Errors name the element: "inputs[2]".
absl::Status CheckOutputs(const Graph& graph, const TF_Output* outputs, int count,
                          absl::string_view what);
// Returns the outputs. REQUIRES: CheckOutputs() accepts them
std::vector<Output> OutputsFromC(const TF_Output* outputs, int count);

}  // namespace gradflow::capi

#endif  // GRADFLOW_C_GRAPH_H_
