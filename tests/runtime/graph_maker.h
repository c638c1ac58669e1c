// GraphMaker: builds GraphDefs with functions, for tests of calls, branches and loops.
#ifndef GRADFLOW_TESTS_RUNTIME_GRAPH_MAKER_H_
#define GRADFLOW_TESTS_RUNTIME_GRAPH_MAKER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "gradflow/core/types.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/function.pb.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow::testing {

using NodeAttrs = std::map<std::string, AttrValue>;

// Return attribute values.
AttrValue AttrOf(DataType type);
AttrValue AttrOf(const DataTypeVector& types);
AttrValue AttrOf(int64_t value);
AttrValue AttrOf(bool value);
AttrValue AttrOf(const char* text);
AttrValue FunctionAttr(const std::string& name);
AttrValue FunctionsAttr(const std::vector<std::string>& names);

class GraphMaker {
 public:
  // The nodes of the graph or of a function.
  class Body {
   public:
    // Adds a node. Inputs are "node", "node:1" or "^node", in functions as well. The arguments of
    // functions are "a0", "a1", ... If the op has an attribute T that is not given, T is DT_INT64.
    void Add(const std::string& name, const std::string& op, const std::vector<std::string>& inputs,
             NodeAttrs attrs = {});
    // Adds a constant scalar of int64.
    void AddConst(const std::string& name, int64_t value);
    void AddPlaceholder(const std::string& name, DataType dtype = DT_INT64);
    // Adds a call of `function` by a StatefulPartitionedCall, or by another op with attribute f.
    void AddCall(const std::string& name, const std::string& function,
                 const std::vector<std::string>& inputs,
                 const std::string& op = "StatefulPartitionedCall");
    void AddIf(const std::string& name, const std::string& then_branch,
               const std::string& else_branch, const std::string& condition,
               const std::vector<std::string>& inputs);
    void AddCase(const std::string& name, const std::vector<std::string>& branches,
                 const std::string& index, const std::vector<std::string>& inputs);
    void AddWhile(const std::string& name, const std::string& condition, const std::string& body,
                  const std::vector<std::string>& inputs);
    // `range` has the names of start, limit and delta, which are int32.
    void AddFor(const std::string& name, const std::string& body,
                const std::vector<std::string>& range, const std::vector<std::string>& inputs);
    // Sets the results of a function, and the nodes (`effects`) that each call runs in any case.
    void Return(const std::vector<std::string>& values,
                const std::vector<std::string>& effects = {});

   private:
    friend class GraphMaker;
    explicit Body(GraphMaker* maker) : maker_(*maker) {}

    // Converts an input of Add() to the form of a NodeDef: in functions, "node" becomes
    // "node:output:0". Other inputs do not change.
    std::string InputOf(const std::string& value) const;
    // Returns the types of all values of a list.
    DataTypeVector TypesOf(const std::vector<std::string>& values) const;
    NodeDef* NewNode(const std::string& name);

    GraphMaker& maker_;
    // Null for the graph.
    FunctionDef* function_ = nullptr;
    // The types of the outputs and the ops of the nodes, keyed by node name.
    std::map<std::string, DataTypeVector> types_;
    std::map<std::string, std::string> ops_;
  };

  GraphMaker() : main_(this) {}
  GraphMaker(const GraphMaker&) = delete;
  GraphMaker& operator=(const GraphMaker&) = delete;

  Body& main() { return main_; }
  // Adds a function with arguments "a0", "a1", ... and results "r0", "r1", ...
  Body& Function(const std::string& name, const DataTypeVector& args,
                 const DataTypeVector& results);
  const GraphDef& graph() const { return graph_; }
  GraphDef* mutable_graph() { return &graph_; }

 private:
  struct Signature {
    DataTypeVector args;
    DataTypeVector results;
  };

  GraphDef graph_;
  Body main_;
  std::deque<Body> functions_;
  std::map<std::string, Signature> signatures_;
};

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_RUNTIME_GRAPH_MAKER_H_
