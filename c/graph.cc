#include "gradflow/c/graph.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gradflow/c/attributes.h"
#include "gradflow/c/buffer.h"
#include "gradflow/c/status.h"
#include "gradflow/c/tensor.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/registry.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/function_library.h"
#include "gradflow/graph/graph_impl.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/proto/function.pb.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow::capi {

void RefGraph(TF_Graph* graph) {
  MutexLock lock(&graph->mutex);
  ++graph->refs;
}

void UnrefGraph(TF_Graph* graph) {
  bool last;
  {
    MutexLock lock(&graph->mutex);
    last = --graph->refs == 0;
  }
  if (last) delete graph;
}

// The analysis cannot follow a list of mutexes.
GraphChange::GraphChange(TF_Graph* graph) ABSL_NO_THREAD_SAFETY_ANALYSIS : graph_(graph) {
  graph->mutex.Lock();
  for (GraphRunner* runner : graph->runners) runner->graph_mutex()->Lock();
}
GraphChange::~GraphChange() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  for (GraphRunner* runner : graph_->runners) runner->graph_mutex()->Unlock();
  graph_->mutex.Unlock();
}

absl::Status CheckOperation(const Graph& graph, const TF_Operation* oper, absl::string_view what) {
  if (oper == nullptr) return errors::InvalidArgument(what, " is null");
  const Node& node = *FromC(oper);
  if (&node.graph() == &graph) return absl::OkStatus();
  return errors::InvalidArgument(what, " is ", internal::NodeTitle(node.def()),
                                 " of another graph");
}

namespace {

bool IsOutputOf(const Graph& graph, const TF_Output& output) {
  if (output.oper == nullptr) return false;
  const Node& node = *FromC(output.oper);
  return &node.graph() == &graph && output.index >= 0 && output.index < node.num_outputs();
}

}  // namespace

absl::Status CheckOutput(const Graph& graph, const TF_Output& output, absl::string_view what) {
  if (IsOutputOf(graph, output)) return absl::OkStatus();
  GRADFLOW_RETURN_IF_ERROR(CheckOperation(graph, output.oper, what));
  const Node& node = *FromC(output.oper);
  return errors::InvalidArgument(what, " is output ", output.index, " of ",
                                 internal::NodeTitle(node.def()), ", which has ",
                                 node.num_outputs(), " outputs");
}

absl::Status CheckOutputs(const Graph& graph, const TF_Output* outputs, int count,
                          absl::string_view what) {
  if (count < 0 || (count > 0 && outputs == nullptr)) {
    return errors::InvalidArgument("there are ", count, " ", what,
                                   outputs == nullptr ? ", which are null" : "");
  }
  for (int i = 0; i < count; ++i) {
    // Names are made for errors only.
    if (IsOutputOf(graph, outputs[i])) continue;
    return CheckOutput(graph, outputs[i], absl::StrCat(what, "[", i, "]"));
  }
  return absl::OkStatus();
}

std::vector<Output> OutputsFromC(const TF_Output* outputs, int count) {
  std::vector<Output> result;
  result.reserve(count);
  for (int i = 0; i < count; ++i) result.push_back(FromC(outputs[i]));
  return result;
}

namespace {

// Changes the shape of an output.
absl::Status MergeShape(TF_Graph* graph, const TF_Output& output, const int64_t* dims,
                        int num_dims) {
  GRADFLOW_RETURN_IF_ERROR(CheckOutput(graph->graph, output, "output"));
  GRADFLOW_ASSIGN_OR_RETURN(const PartialTensorShape shape, PartialShapeFromC(dims, num_dims));
  const GraphChange change(graph);
  const Node& node = *FromC(output.oper);
  const PartialTensorShape& old = node.output_shape(output.index);
  absl::StatusOr<PartialTensorShape> merged = old.MergeWith(shape);
  if (!merged.ok()) {
    return errors::Prefix(internal::NodePrefix(node.def()), merged.status());
  }
  if (*merged != old) {
    internal::GraphImpl::Of(&graph->graph).SetOutputShape(node, output.index, *merged);
  }
  return absl::OkStatus();
}

// Returns the definition of an op or the signature of a function.
absl::StatusOr<const OpDef*> FindOpDef(const Graph& graph, absl::string_view name) {
  if (const FunctionDef* const function = graph.functions().Find(name)) {
    return &function->signature();
  }
  const OpRegistration* const op = graph.registry().FindOp(name);
  if (op != nullptr) return &op->def();
  // The first words are TensorFlow's, which programs look for.
  return errors::NotFound(
      "Op type not registered '", errors::Printable(name),
      "' in binary running gradflow: ", graph.registry().LookUpOp(name).status().message());
}

// Connects a node to other sources.
absl::Status Reconnect(TF_Graph* graph, const Node& node,
                       const std::vector<Node::Source>& sources) {
  return internal::GraphImpl::Of(&graph->graph).Reconnect(node, sources);
}

std::vector<Node::Source> SourcesOf(const Node& node) {
  return std::vector<Node::Source>(node.sources().begin(), node.sources().end());
}

}  // namespace
}  // namespace gradflow::capi

using gradflow::MutexLock;
using gradflow::Node;
using gradflow::capi::Call;
using gradflow::capi::CallOr;
using gradflow::capi::CallQuietly;
using gradflow::capi::CheckOperation;
using gradflow::capi::CheckOutput;
using gradflow::capi::FillBuffer;
using gradflow::capi::FromC;
using gradflow::capi::GraphChange;
using gradflow::capi::OrEmpty;
using gradflow::capi::ReadNode;
using gradflow::capi::ToC;
using gradflow::internal::GraphImpl;

TF_Graph* TF_NewGraph(void) {
  return CallOr<TF_Graph*>(nullptr, [] { return new TF_Graph; });
}

void TF_DeleteGraph(TF_Graph* graph) {
  if (graph != nullptr) gradflow::capi::UnrefGraph(graph);
}

// ---- Shapes ----

void TF_GraphSetTensorShape(TF_Graph* graph, TF_Output output, const int64_t* dims,
                            const int num_dims, TF_Status* status) {
  Call(status, [&] { return gradflow::capi::MergeShape(graph, output, dims, num_dims); });
}

int TF_GraphGetTensorNumDims(TF_Graph* graph, TF_Output output, TF_Status* status) {
  int result = -1;
  Call(status, [&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(CheckOutput(graph->graph, output, "output"));
    const MutexLock lock(&graph->mutex);
    result = FromC(output.oper)->output_shape(output.index).dims();
    return absl::OkStatus();
  });
  return result;
}

void TF_GraphGetTensorShape(TF_Graph* graph, TF_Output output, int64_t* dims, int num_dims,
                            TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(CheckOutput(graph->graph, output, "output"));
    const MutexLock lock(&graph->mutex);
    const gradflow::PartialTensorShape& shape = FromC(output.oper)->output_shape(output.index);
    if (shape.unknown_rank()) {
      return num_dims <= 0 ? absl::OkStatus()
                           : gradflow::errors::InvalidArgument(
                                 "the output has an unknown rank, and num_dims is ", num_dims);
    }
    if (num_dims != shape.dims()) {
      return gradflow::errors::InvalidArgument("the output has rank ", shape.dims(),
                                               ", and num_dims is ", num_dims);
    }
    if (num_dims > 0) std::copy(shape.dim_sizes().begin(), shape.dim_sizes().end(), dims);
    return absl::OkStatus();
  });
}

// ---- Nodes and messages ----

TF_Operation* TF_GraphOperationByName(TF_Graph* graph, const char* oper_name) {
  const MutexLock lock(&graph->mutex);
  return ToC(graph->graph.FindNode(OrEmpty(oper_name)));
}

TF_Operation* TF_GraphNextOperation(TF_Graph* graph, size_t* pos) {
  const MutexLock lock(&graph->mutex);
  if (*pos >= static_cast<size_t>(graph->graph.num_nodes())) return nullptr;
  return ToC(graph->graph.node(static_cast<int>((*pos)++)));
}

void TF_GraphToGraphDef(TF_Graph* graph, TF_Buffer* output_graph_def, TF_Status* status) {
  Call(status, [&] {
    const MutexLock lock(&graph->mutex);
    return FillBuffer(graph->graph.def(), output_graph_def);
  });
}

void TF_GraphGetOpDef(TF_Graph* graph, const char* op_name, TF_Buffer* output_op_def,
                      TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    const MutexLock lock(&graph->mutex);
    GRADFLOW_ASSIGN_OR_RETURN(const gradflow::OpDef* op_def,
                              gradflow::capi::FindOpDef(graph->graph, OrEmpty(op_name)));
    return FillBuffer(*op_def, output_op_def);
  });
}

void TF_GraphVersions(TF_Graph* graph, TF_Buffer* output_version_def, TF_Status* status) {
  Call(status, [&] {
    const MutexLock lock(&graph->mutex);
    return FillBuffer(graph->graph.def().versions(), output_version_def);
  });
}

void TF_OperationToNodeDef(TF_Operation* oper, TF_Buffer* output_node_def, TF_Status* status) {
  Call(status, [&] {
    return ReadNode(oper,
                    [&](const Node& node) { return FillBuffer(node.def(), output_node_def); });
  });
}

unsigned char TF_TryEvaluateConstant(TF_Graph* graph, TF_Output output, TF_Tensor** result,
                                     TF_Status* status) {
  *result = nullptr;
  Call(status, [&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(CheckOutput(graph->graph, output, "output"));
    const MutexLock lock(&graph->mutex);
    gradflow::internal::ConstantEvaluator evaluator;
    const gradflow::Tensor* const value = evaluator.Find({FromC(output.oper), output.index});
    if (value == nullptr) return absl::OkStatus();
    GRADFLOW_ASSIGN_OR_RETURN(*result, gradflow::capi::TensorToC(*value));
    return absl::OkStatus();
  });
  return *result != nullptr;
}

// ---- Changes of operations ----

void TF_UpdateEdge(TF_Graph* graph, TF_Output new_src, TF_Input dst, TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(CheckOutput(graph->graph, new_src, "new_src"));
    GRADFLOW_RETURN_IF_ERROR(CheckOperation(graph->graph, dst.oper, "dst"));
    const GraphChange change(graph);
    const Node& node = *FromC(dst.oper);
    if (dst.index < 0 || dst.index >= node.num_inputs()) {
      return gradflow::errors::InvalidArgument("dst is input ", dst.index, " of ",
                                               gradflow::internal::NodeTitle(node.def()),
                                               ", which has ", node.num_inputs(), " inputs");
    }
    std::vector<Node::Source> sources = gradflow::capi::SourcesOf(node);
    sources[dst.index] = {FromC(new_src.oper), new_src.index};
    GRADFLOW_RETURN_IF_ERROR(gradflow::capi::Reconnect(graph, node, sources));
    // As in TensorFlow, the input names its output, even output 0.
    GraphImpl::Of(&graph->graph)
        .MutableDef(node)
        ->set_input(dst.index, absl::StrCat(FromC(new_src.oper)->name(), ":", new_src.index));
    return absl::OkStatus();
  });
}

void TF_AddOperationControlInput(TF_Graph* graph, TF_Operation* op, TF_Operation* input) {
  CallQuietly([&] {
    if (!CheckOperation(graph->graph, op, "op").ok()) return;
    if (!CheckOperation(graph->graph, input, "input").ok()) return;
    const GraphChange change(graph);
    const Node& node = *FromC(op);
    std::vector<Node::Source> sources = gradflow::capi::SourcesOf(node);
    for (const Node::Source& source : sources) {
      if (source.output < 0 && source.node == FromC(input)) return;
    }
    sources.push_back({FromC(input), -1});
    gradflow::capi::Reconnect(graph, node, sources).IgnoreError();
  });
}

void TF_RemoveAllControlInputs(TF_Graph* graph, TF_Operation* op) {
  CallQuietly([&] {
    if (!CheckOperation(graph->graph, op, "op").ok()) return;
    const GraphChange change(graph);
    const Node& node = *FromC(op);
    std::vector<Node::Source> sources = gradflow::capi::SourcesOf(node);
    sources.resize(node.num_inputs());
    gradflow::capi::Reconnect(graph, node, sources).IgnoreError();
  });
}

void TF_SetAttr(TF_Graph* graph, TF_Operation* op, const char* attr_name,
                TF_Buffer* attr_value_proto, TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    const std::string name = OrEmpty(attr_name);
    GRADFLOW_RETURN_IF_ERROR(CheckOperation(graph->graph, op, "op"));
    gradflow::AttrValue value;
    GRADFLOW_RETURN_IF_ERROR(gradflow::capi::ParseMessage(attr_value_proto, &value));
    const GraphChange change(graph);
    const Node& node = *FromC(op);
    if (!absl::StartsWith(name, "_")) {
      // The types and the kernel of a node follow from its attributes.
      gradflow::NodeDef changed = node.def();
      (*changed.mutable_attr())[name] = value;
      GRADFLOW_RETURN_IF_ERROR(gradflow::ValidateNodeDef(changed, node.op_def()));
      gradflow::DataTypeVector old_inputs;
      gradflow::DataTypeVector inputs;
      gradflow::DataTypeVector outputs;
      GRADFLOW_RETURN_IF_ERROR(
          gradflow::InOutTypesForNode(node.def(), node.op_def(), &old_inputs, &outputs));
      GRADFLOW_RETURN_IF_ERROR(
          gradflow::InOutTypesForNode(changed, node.op_def(), &inputs, &outputs));
      if (inputs != old_inputs || outputs != node.output_types()) {
        return gradflow::errors::Unimplemented(
            gradflow::internal::NodePrefix(node.def()), "attribute ", name,
            " sets the types of the inputs or outputs, which cannot change");
      }
    }
    (*GraphImpl::Of(&graph->graph).MutableDef(node)->mutable_attr())[name] = value;
    return absl::OkStatus();
  });
}

void TF_ClearAttr(TF_Graph* graph, TF_Operation* op, const char* attr_name, TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    const std::string name = OrEmpty(attr_name);
    GRADFLOW_RETURN_IF_ERROR(CheckOperation(graph->graph, op, "op"));
    const GraphChange change(graph);
    const Node& node = *FromC(op);
    for (const auto& attr : node.op_def().attr()) {
      if (attr.name() != name) continue;
      return gradflow::errors::InvalidArgument(gradflow::internal::NodePrefix(node.def()),
                                               "the op needs attribute ", name);
    }
    GraphImpl::Of(&graph->graph).MutableDef(node)->mutable_attr()->erase(name);
    return absl::OkStatus();
  });
}

void TF_SetRequestedDevice(TF_Graph* graph, TF_Operation* op, const char* device) {
  CallQuietly([&] {
    if (!CheckOperation(graph->graph, op, "op").ok()) return;
    const GraphChange change(graph);
    GraphImpl::Of(&graph->graph).MutableDef(*FromC(op))->set_device(OrEmpty(device));
  });
}

void TF_SetFullType(TF_Graph*, TF_Operation*, const TF_Buffer*) {}

void TF_SetRequireShapeInferenceFns(TF_Graph*, bool) {}

void TF_AddWhileInputHack(TF_Graph*, TF_Output, TF_Operation*, TF_Status* status) {
  TF_SetStatus(status, TF_UNIMPLEMENTED,
               "the number of inputs of an operation cannot change; make the loop with all inputs");
}

// ---- Data of handles ----

TF_Buffer* TF_GetHandleShapeAndType(TF_Graph* graph, TF_Output output) {
  return CallOr<TF_Buffer*>(nullptr, [&]() -> TF_Buffer* {
    if (!CheckOutput(graph->graph, output, "output").ok()) return nullptr;
    const MutexLock lock(&graph->mutex);
    const auto found = graph->handle_data.find({FromC(output.oper)->id(), output.index});
    const std::string bytes = found == graph->handle_data.end() ? "" : found->second;
    return TF_NewBufferFromString(bytes.data(), bytes.size());
  });
}

void TF_SetHandleShapeAndType(TF_Graph* graph, TF_Output output, const void* proto,
                              size_t proto_len, TF_Status* status) {
  Call(status, [&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(CheckOutput(graph->graph, output, "output"));
    std::string bytes;
    GRADFLOW_RETURN_IF_ERROR(gradflow::capi::StringAttr(proto, proto_len, &bytes));
    const MutexLock lock(&graph->mutex);
    graph->handle_data[{FromC(output.oper)->id(), output.index}] = std::move(bytes);
    return absl::OkStatus();
  });
}
