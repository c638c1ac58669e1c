#include "tensorflow/core/graph/graph_def_builder.h"

#include "absl/strings/str_cat.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {

std::string GraphDefBuilder::Options::GetNameForOp(absl::string_view op) const {
  if (!name_.empty()) return name_;
  std::string name(op);
  for (int i = 1; graph_->FindNode(name) != nullptr; ++i) name = absl::StrCat(op, "/_", i);
  return name;
}

Node* GraphDefBuilder::Options::FinalizeBuilder(NodeBuilder* builder) const {
  builder->ControlInputs(control_inputs_);
  if (!device_.empty()) builder->Device(device_);
  for (const auto& [name, value] : attrs_) builder->Attr(name, value);
  Node* node = nullptr;
  UpdateStatus(builder->Finalize(graph_, &node));
  return node;
}

void GraphDefBuilder::Options::UpdateStatus(const absl::Status& status) const {
  if (status_ == nullptr) {
    TF_CHECK_OK(status);
  } else {
    status_->Update(status);
  }
}

absl::Status GraphDefBuilder::ToGraphDef(GraphDef* graph_def) const {
  if (status_.ok()) *graph_def = graph_.def();
  return status_;
}

namespace ops {
namespace {

Node* AddOp(const std::string& op, gtl::ArraySlice<NodeOut> inputs,
            const GraphDefBuilder::Options& opts) {
  if (opts.HaveError()) return nullptr;
  NodeBuilder builder(opts.GetNameForOp(op), op);
  for (const NodeOut& input : inputs) {
    if (input.node == nullptr) {
      opts.UpdateStatus(errors::InvalidArgument("an input of '", op, "' is not a node"));
      return nullptr;
    }
    builder.Input(input);
  }
  return opts.FinalizeBuilder(&builder);
}

}  // namespace

Node* SourceOp(const std::string& op_name, const GraphDefBuilder::Options& opts) {
  return AddOp(op_name, {}, opts);
}

Node* UnaryOp(const std::string& op_name, NodeOut input, const GraphDefBuilder::Options& opts) {
  return AddOp(op_name, {input}, opts);
}

Node* BinaryOp(const std::string& op_name, NodeOut a, NodeOut b,
               const GraphDefBuilder::Options& opts) {
  return AddOp(op_name, {a, b}, opts);
}

Node* TernaryOp(const std::string& op_name, NodeOut a, NodeOut b, NodeOut c,
                const GraphDefBuilder::Options& opts) {
  return AddOp(op_name, {a, b, c}, opts);
}

}  // namespace ops
}  // namespace tensorflow
