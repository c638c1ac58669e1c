#include "gradflow/graph/node.h"

#include "absl/strings/str_cat.h"
#include "gradflow/core/registry.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow {

void NodeDefDeleter::operator()(NodeDef* def) const {
  if (def->GetArena() == nullptr) delete def;
}

const std::string& Node::name() const { return def_->name(); }
const std::string& Node::type_string() const { return op_->def().name(); }
const OpDef& Node::op_def() const { return op_->def(); }
const std::string& Node::requested_device() const { return def_->device(); }

EdgeSet Node::in_edges() const {
  std::vector<Edge> edges;
  edges.reserve(sources_.size());
  for (int i = 0; i < static_cast<int>(sources_.size()); ++i) {
    edges.emplace_back(sources_[i].node, sources_[i].output, this, i < num_data_inputs_ ? i : -1);
  }
  return EdgeSet(std::move(edges));
}

std::string Node::DebugString() const {
  std::string text = absl::StrCat(SummarizeNodeDef(*def_), " -> (");
  for (int i = 0; i < num_outputs(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", DataTypeString(output_type(i)),
                    output_shape(i).DebugString());
  }
  return absl::StrCat(text, ")");
}

}  // namespace gradflow
