// WhileContext: the nodes of a loop that BuildWhileLoop() (while_loop.h) has made. The graph owns
// it.
#ifndef GRADFLOW_GRAPH_WHILE_CONTEXT_H_
#define GRADFLOW_GRAPH_WHILE_CONTEXT_H_

#include <string>
#include <utility>
#include <vector>

#include "gradflow/graph/ops.h"

#pragma GCC visibility push(default)
namespace gradflow {

class Node;

class WhileContext {
 public:
  // Called by BuildWhileLoop().
  WhileContext(std::string frame_name, std::vector<Node*> enter_nodes,
               std::vector<Node*> exit_nodes, Output cond_output, std::vector<Output> body_inputs,
               std::vector<Output> body_outputs)
      : frame_name_(std::move(frame_name)),
        enter_nodes_(std::move(enter_nodes)),
        exit_nodes_(std::move(exit_nodes)),
        cond_output_(cond_output),
        body_inputs_(std::move(body_inputs)),
        body_outputs_(std::move(body_outputs)) {}

  // The attribute frame_name of the Enter nodes.
  const std::string& frame_name() const { return frame_name_; }
  // One for each variable of the loop.
  const std::vector<Node*>& enter_nodes() const { return enter_nodes_; }
  const std::vector<Node*>& exit_nodes() const { return exit_nodes_; }
  // The output of the condition.
  const Output& cond_output() const { return cond_output_; }
  // The variables as the body takes and returns them.
  const std::vector<Output>& body_inputs() const { return body_inputs_; }
  const std::vector<Output>& body_outputs() const { return body_outputs_; }

 private:
  std::string frame_name_;
  std::vector<Node*> enter_nodes_;
  std::vector<Node*> exit_nodes_;
  Output cond_output_;
  std::vector<Output> body_inputs_;
  std::vector<Output> body_outputs_;
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_GRAPH_WHILE_CONTEXT_H_
