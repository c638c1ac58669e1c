#include "gradflow/c/eager/execute.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "gradflow/c/attributes.h"
#include "gradflow/c/eager/cancellation.h"
#include "gradflow/c/eager/tensor_handle.h"
#include "gradflow/c/status.h"
#include "gradflow/core/op_def_internal.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/graph/graph_impl.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/runtime/trace/trace_recorder.h"

namespace gradflow::capi {
namespace {

// Returns the length of an argument that is a list, if an attribute of the op sets it.
std::optional<int64_t> ListLength(const TFE_Op& op, const OpDef::ArgDef& arg) {
  std::optional<int64_t> length;
  for (const auto& [name, value] : op.attrs.values) {
    if (!arg.number_attr().empty() && name == arg.number_attr()) length = value.i();
    if (!arg.type_list_attr().empty() && name == arg.type_list_attr()) {
      length = value.list().type_size();
    }
  }
  return length;
}

// Passes the inputs to the builder: each argument of the definition takes one call of
// TFE_OpAddInput() or TFE_OpAddInputList(), or, if it is a list whose length an attribute sets,
// several calls of TFE_OpAddInput().
//
// Adds the attributes that follow from the inputs to `inferred`.
absl::Status AddInputsOf(const TFE_Op& op, absl::Span<const NodeOut> sources, NodeBuilder* builder,
                         std::set<absl::string_view>* inferred) {
  const auto infer = [&](const OpDef::ArgDef& arg, size_t size) {
    if (size > 0) inferred->insert({arg.type_attr(), arg.type_list_attr(), arg.number_attr()});
  };
  size_t call = 0;
  size_t input = 0;
  for (const OpDef::ArgDef& arg : op.op_def->input_arg()) {
    const bool is_list = IsListArg(arg);
    const bool has_call = call < op.arguments.size();
    if (has_call && op.arguments[call] != TFE_Op::kSingle) {
      const auto size = static_cast<size_t>(op.arguments[call++]);
      if (is_list) {
        builder->Input(sources.subspan(input, size));
      } else {
        for (size_t i = 0; i < size; ++i) builder->Input(sources[input + i]);
      }
      infer(arg, size);
      input += size;
      continue;
    }
    if (!is_list) {
      if (!has_call) {
        return errors::InvalidArgument("op ", op.attrs.op, " has no input for argument ",
                                       arg.name());
      }
      ++call;
      builder->Input(sources[input++]);
      infer(arg, 1);
      continue;
    }
    const std::optional<int64_t> length = ListLength(op, arg);
    if (!length.has_value()) {
      return errors::InvalidArgument(
          "op ", op.attrs.op, ": the length of argument ", arg.name(),
          " is not known: set its attribute, or add the inputs by TFE_OpAddInputList()");
    }
    size_t size = 0;
    while (call < op.arguments.size() && op.arguments[call] == TFE_Op::kSingle &&
           static_cast<int64_t>(size) < *length) {
      ++call;
      ++size;
    }
    builder->Input(sources.subspan(input, size));
    infer(arg, size);
    input += size;
  }
  if (input != sources.size()) {
    return errors::InvalidArgument("op ", op.attrs.op, " has ", sources.size(),
                                   " inputs, expected ", input);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AddNodeOf(const TFE_Op& op, Graph* graph, const Node** node) {
  std::vector<NodeOut> sources;
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    Node* placeholder;
    GRADFLOW_RETURN_IF_ERROR(NodeBuilder(absl::StrCat("input_", i), "Placeholder")
                                 .Attr("dtype", op.inputs[i].dtype())
                                 .Finalize(graph, &placeholder));
    sources.emplace_back(placeholder, 0);
  }
  NodeBuilder builder(op.attrs.op, op.attrs.op);
  builder.InferShapes(false);
  // As in TensorFlow, the types of the inputs win over attributes, and the first value of an
  // attribute wins over later values.
  std::set<absl::string_view> done;
  GRADFLOW_RETURN_IF_ERROR(AddInputsOf(op, sources, &builder, &done));
  // Attributes that a function does not declare, such as config_proto, are options of other
  // runtimes.
  const bool is_function = graph->functions().Find(op.attrs.op) != nullptr;
  for (const auto& [name, value] : op.attrs.values) {
    if (is_function && FindAttrDef(*op.op_def, name) == nullptr) continue;
    if (done.insert(name).second) builder.Attr(name, value);
  }
  Node* added;
  GRADFLOW_RETURN_IF_ERROR(builder.Finalize(graph, &added));
  *node = added;
  return absl::OkStatus();
}

namespace {

absl::Status MakeEagerPlan(const TFE_Op& op, const std::shared_ptr<const Graph>& functions,
                           EagerPlan* made) {
  made->functions = functions;
  made->graph = internal::GraphImpl::NewGraph(functions->registry(), functions->functions());
  const Node* node;
  GRADFLOW_RETURN_IF_ERROR(AddNodeOf(op, made->graph.get(), &node));
  PlanNames names;
  for (size_t i = 0; i < op.inputs.size(); ++i) names.feeds.push_back(absl::StrCat("input_", i));
  for (int i = 0; i < node->num_outputs(); ++i) {
    names.fetches.push_back(absl::StrCat(node->name(), ":", i));
    made->results.push_back(node->output_type(i));
  }
  names.targets.push_back(node->name());
  PlanOptions options;
  options.max_folded_bytes = 0;
  GRADFLOW_ASSIGN_OR_RETURN(made->plan, Plan::Make(*made->graph, names, &made->kernels, options));
  return absl::OkStatus();
}

// Adds the statistics of one run to the context.
void AddMetadata(TraceRecorder* trace, TFE_Context* context) {
  StepStats stats;
  trace->WriteTo(&stats);
  const MutexLock lock(&context->metadata_mutex);
  context->metadata.mutable_step_stats()->MergeFrom(stats);
}

absl::Status Execute(TFE_Op* op, TFE_TensorHandle** retvals, int* num_retvals) {
  GRADFLOW_RETURN_IF_ERROR(op->status);
  TFE_Context* const context = op->context;
  // The key of the cached plan: the attributes, then the types and counts of the inputs. Only the
  // attributes stay in op->key after the call.
  const size_t key_size = op->key.size();
  op->key.push_back('\x7f');
  for (const Tensor& input : op->inputs) op->key.push_back(static_cast<char>(input.dtype()));
  op->key.push_back('\x7f');
  for (const int size : op->arguments) {
    op->key.append(reinterpret_cast<const char*>(&size), sizeof(size));
  }
  absl::StatusOr<std::shared_ptr<const EagerPlan>> found = context->FindOrMakePlan(
      op->key, [&](const std::shared_ptr<const Graph>& functions, EagerPlan* made) {
        return MakeEagerPlan(*op, functions, made);
      });
  op->key.resize(key_size);
  GRADFLOW_RETURN_IF_ERROR(found.status());
  const std::shared_ptr<const EagerPlan>& made = *found;
  const int num_results = static_cast<int>(made->results.size());
  if (num_retvals == nullptr) return errors::InvalidArgument("num_retvals is null");
  if (*num_retvals < num_results) {
    return errors::InvalidArgument("Expecting ", num_results, " outputs, but *num_retvals is ",
                                   *num_retvals);
  }
  GRADFLOW_RETURN_IF_ERROR(CheckArray(retvals, num_results, "retvals"));
  absl::InlinedVector<const Tensor*, 4> feeds;
  for (const Tensor& input : op->inputs) feeds.push_back(&input);
  RunLimits limits;
  if (op->cancellation != nullptr) limits.cancelled = op->cancellation->token.flag();
  std::optional<TraceRecorder> trace;
  if (context->records_metadata.load(std::memory_order_relaxed)) trace.emplace(*made->plan);
  std::vector<Tensor> results;
  const std::shared_ptr<const Plan> plan(made, made->plan.get());
  const absl::Status status =
      context->executor.Run(plan, feeds, limits, &results, trace.has_value() ? &*trace : nullptr);
  if (trace.has_value()) AddMetadata(&*trace, context);
  GRADFLOW_RETURN_IF_ERROR(status);
  std::vector<std::unique_ptr<TFE_TensorHandle>> handles;
  handles.reserve(results.size());
  for (Tensor& result : results) {
    handles.push_back(std::make_unique<TFE_TensorHandle>(std::move(result)));
  }
  for (int i = 0; i < num_results; ++i) retvals[i] = handles[i].release();
  *num_retvals = num_results;
  return absl::OkStatus();
}

// Returns the number of inputs or outputs of an argument, or -1.
int ArgumentLength(const TFE_Op& op, const char* name, bool is_input, TF_Status* status) {
  int result = -1;
  Call(status, [&]() -> absl::Status {
    const auto& args = is_input ? op.op_def->input_arg() : op.op_def->output_arg();
    const bool exists = std::any_of(args.begin(), args.end(), [&](const OpDef::ArgDef& arg) {
      return arg.name() == OrEmpty(name);
    });
    if (!exists) {
      return errors::InvalidArgument(is_input ? "Input '" : "Output '",
                                     errors::Printable(OrEmpty(name)), "' not found");
    }
    GRADFLOW_RETURN_IF_ERROR(op.status);
    return op.context->WithFunctions([&](const Graph& functions) -> absl::Status {
      const std::unique_ptr<Graph> graph =
          internal::GraphImpl::NewGraph(functions.registry(), functions.functions());
      const Node* node;
      GRADFLOW_RETURN_IF_ERROR(AddNodeOf(op, graph.get(), &node));
      NameRangeMap inputs;
      NameRangeMap outputs;
      GRADFLOW_RETURN_IF_ERROR(NameRangesForNode(node->def(), node->op_def(), &inputs, &outputs));
      const NameRange range = (is_input ? inputs : outputs).at(OrEmpty(name));
      result = range.second - range.first;
      return absl::OkStatus();
    });
  });
  return result;
}

}  // namespace
}  // namespace gradflow::capi

using gradflow::capi::ArgumentLength;
using gradflow::capi::Call;

int TFE_OpGetInputLength(TFE_Op* op, const char* input_name, TF_Status* status) {
  return ArgumentLength(*op, input_name, /*is_input=*/true, status);
}
int TFE_OpGetOutputLength(TFE_Op* op, const char* output_name, TF_Status* status) {
  return ArgumentLength(*op, output_name, /*is_input=*/false, status);
}

void TFE_Execute(TFE_Op* op, TFE_TensorHandle** retvals, int* num_retvals, TF_Status* status) {
  Call(status, [&] { return gradflow::capi::Execute(op, retvals, num_retvals); });
}
