// Freezes graphs: replaces the variables of a session by constants, and calls by the nodes of their
// functions.
//
//   SavedModelBundle bundle = ...;
//   GRADFLOW_ASSIGN_OR_RETURN(const FrozenGraph frozen,
//                             FreezeGraph(bundle.meta_graph_def.graph_def(), {"call:0"},
//                                         bundle.session.get()));
//   WriteGraphDef("frozen.pb", frozen.graph);
#ifndef GRADFLOW_SAVED_MODEL_FREEZE_H_
#define GRADFLOW_SAVED_MODEL_FREEZE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gradflow/graph/import.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/session.h"
#include "gradflow/saved_model/signature.h"

#pragma GCC visibility push(default)
namespace gradflow {

// Options of FreezeGraph.
struct FreezeGraphOptions {
  // Replaces calls of functions by the nodes of the functions. The functions of branches and loops
  // remain functions.
  bool inline_calls = true;
  // Keeps variables, for a graph that is differentiated or trained.
  bool keep_variables = false;
  // The tensors that runs of the result feed, with their types. Each is the first output of a node,
  // which becomes a placeholder and therefore needs no inputs. If empty, runs feed the placeholders
  // of the graph.
  std::vector<SignatureTensor> inputs;
  // Limits of `graph`, and the total number of nodes of the result.
  GraphLimits limits;
};

// The result of FreezeGraph.
struct FrozenGraph {
  // The nodes that the outputs need, and the functions of their branches and loops.
  GraphDef graph;
  // The names of the outputs in `graph`, in order.
  std::vector<std::string> outputs;
  // The number of variables that have become constants.
  int num_variables = 0;
};

// Returns a graph that computes the outputs, "node" or "node:1". A variable becomes a constant with
// the name of its node. A node that reads a variable becomes an Identity. Nodes of inlined
// functions are named "call/node". `session` has the values of the variables; it may be null
// without variables. Errors:
//
//   NOT_FOUND            an output is not in the graph, or an op is not registered
//   FAILED_PRECONDITION  a variable has no value
//   UNIMPLEMENTED        a node uses a variable, but does not only read it
//   INVALID_ARGUMENT     the graph is malformed
absl::StatusOr<FrozenGraph> FreezeGraph(const GraphDef& graph,
                                        const std::vector<std::string>& outputs, Session* session,
                                        const FreezeGraphOptions& options = {});

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_SAVED_MODEL_FREEZE_H_
