// CallSite: a call of a function in a plan. Internal.
#ifndef GRADFLOW_RUNTIME_PLAN_CALL_SITE_H_
#define GRADFLOW_RUNTIME_PLAN_CALL_SITE_H_

#include <cstdint>
#include <string>

namespace gradflow {

class FunctionBody;
class Node;

// A call of a function, by a node of the session's graph or by a node of a function that is itself
// called. A null site stands for the session's graph. KernelCache makes call sites.
struct CallSite {
  // Null if the calling node is in the session's graph.
  const CallSite* caller = nullptr;
  // The calling node.
  const Node* node = nullptr;
  const FunctionBody* body = nullptr;
  // Numbered from 1 in the order of their creation.
  int32_t index = 0;
  // The names of the calling nodes, "outer/inner/". Long paths begin with "...".
  std::string path;
};

}  // namespace gradflow

#endif  // GRADFLOW_RUNTIME_PLAN_CALL_SITE_H_
