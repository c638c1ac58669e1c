// GraphDefBuilder: builds a graph node by node.
//
//   GraphDefBuilder b;
//   Node* x = ops::SourceOp("Placeholder", b.opts().WithName("x").WithAttr("dtype", DT_FLOAT));
//   ops::UnaryOp("Neg", x, b.opts().WithName("y"));
//   TF_RETURN_IF_ERROR(b.ToGraphDef(&graph_def));
#ifndef GRADFLOW_COMPAT_CORE_GRAPH_GRAPH_DEF_BUILDER_H_
#define GRADFLOW_COMPAT_CORE_GRAPH_GRAPH_DEF_BUILDER_H_

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/framework/function.pb.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/lib/gtl/array_slice.h"
#include "tensorflow/core/platform/status.h"

namespace tensorflow {

class GraphDefBuilder {
 public:
  // The properties of the next node. Options are values: each With function returns changed
  // options.
  class Options {
   public:
    // Keeps the first error in *status. Without a status, errors end the program.
    Options(Graph* graph, absl::Status* status) : graph_(graph), status_(status) {}

    Options WithName(absl::string_view name) const {
      return Changed([&](Options& o) { o.name_ = std::string(name); });
    }
    Options WithDevice(absl::string_view device) const {
      return Changed([&](Options& o) { o.device_ = std::string(device); });
    }
    Options WithControlInput(const Node* input) const {
      return Changed([&](Options& o) { o.control_inputs_.push_back(input); });
    }
    Options WithControlInputs(gtl::ArraySlice<Node*> inputs) const {
      return Changed([&](Options& o) {
        o.control_inputs_.insert(o.control_inputs_.end(), inputs.begin(), inputs.end());
      });
    }
    template <class T>
    Options WithAttr(absl::string_view name, T&& value) const {
      return Changed([&](Options& o) {
        o.attrs_.emplace_back(std::string(name), AttrValue());
        SetAttrValue(std::forward<T>(value), &o.attrs_.back().second);
      });
    }
    template <class T>
    Options WithAttr(absl::string_view name, std::initializer_list<T> values) const {
      return WithAttr(name, gtl::ArraySlice<T>(values.begin(), values.size()));
    }

    bool HaveError() const { return status_ != nullptr && !status_->ok(); }
    std::string StatusToString() const {
      return status_ == nullptr || status_->ok() ? "OK" : std::string(status_->message());
    }
    // Returns the name of the next node. If no name was set, it begins with `op`.
    std::string GetNameForOp(absl::string_view op) const;
    // Adds the node. Returns null on error.
    Node* FinalizeBuilder(NodeBuilder* builder) const;
    void UpdateStatus(const absl::Status& status) const;
    OpRegistry::Handle op_registry() const { return OpRegistry::Global(); }

   private:
    template <typename F>
    Options Changed(F change) const {
      Options result = *this;
      change(result);
      return result;
    }

    Graph* graph_;
    absl::Status* status_;
    std::string name_;
    std::string device_;
    std::vector<const Node*> control_inputs_;
    std::vector<std::pair<std::string, AttrValue>> attrs_;
  };

  enum TestFailImmediatelyType { kFailImmediately };

  explicit GraphDefBuilder(OpRegistry::Handle registry = OpRegistry::Global())
      : graph_(registry), opts_(&graph_, &status_) {}
  // Errors end the program.
  explicit GraphDefBuilder(TestFailImmediatelyType,
                           OpRegistry::Handle registry = OpRegistry::Global())
      : graph_(registry), opts_(&graph_, nullptr) {}
  GraphDefBuilder(const GraphDefBuilder&) = delete;
  GraphDefBuilder& operator=(const GraphDefBuilder&) = delete;

  const Options& opts() const { return opts_; }
  // Stores the graph. Returns the first error from adding nodes.
  absl::Status ToGraphDef(GraphDef* graph_def) const;

 private:
  Graph graph_;
  absl::Status status_;
  Options opts_;
};

namespace ops {

using NodeOut = NodeBuilder::NodeOut;

// Add a node of op `op_name` with zero, one, two or three inputs. Return null after an error, even
// if an earlier node caused it.
Node* SourceOp(const std::string& op_name, const GraphDefBuilder::Options& opts);
Node* UnaryOp(const std::string& op_name, NodeOut input, const GraphDefBuilder::Options& opts);
Node* BinaryOp(const std::string& op_name, NodeOut a, NodeOut b,
               const GraphDefBuilder::Options& opts);
Node* TernaryOp(const std::string& op_name, NodeOut a, NodeOut b, NodeOut c,
                const GraphDefBuilder::Options& opts);

}  // namespace ops
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_GRAPH_GRAPH_DEF_BUILDER_H_
