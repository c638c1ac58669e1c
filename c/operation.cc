// Operations: building them, and reading their inputs and outputs. operation_attributes.cc reads
// their attributes.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gradflow/c/attributes.h"
#include "gradflow/c/buffer.h"
#include "gradflow/c/graph.h"
#include "gradflow/c/status.h"
#include "gradflow/c/tensor.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/graph/node_builder.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/tensor_shape.pb.h"

struct TF_OperationDescription {
  TF_OperationDescription(TF_Graph* owner, const char* op, const char* name)
      : graph(owner), builder(name, op) {}

  // Keeps the first error until the operation is finished.
  void Update(const absl::Status& new_status) {
    if (status.ok()) status = new_status;
  }

  TF_Graph* const graph;
  gradflow::NodeBuilder builder;
  // The attribute _class.
  std::set<std::string> colocations;
  absl::Status status;
};

namespace gradflow::capi {
namespace {

// Sets an attribute to the value that make(&value) makes. Errors name the attribute.
template <typename F>
absl::Status SetAttr(TF_OperationDescription* desc, const char* attr_name, F&& make) noexcept {
  return CallSafely([&]() -> absl::Status {
    const absl::string_view name = OrEmpty(attr_name);
    AttrValue value;
    if (absl::Status status = make(&value); !status.ok()) {
      return errors::Prefix(absl::StrCat("attribute ", internal::Quoted(name), ": "), status);
    }
    if (name == internal::kColocationAttr && value.has_list()) {
      desc->colocations.clear();
      desc->colocations.insert(value.list().s().begin(), value.list().s().end());
      return absl::OkStatus();
    }
    desc->builder.Attr(name, value);
    return absl::OkStatus();
  });
}
// Same as SetAttr(), but keeps the error for TF_FinishOperation().
template <typename F>
void KeepAttr(TF_OperationDescription* desc, const char* name, F&& make) noexcept {
  desc->Update(SetAttr(desc, name, std::forward<F>(make)));
}

absl::Status AddInputs(TF_OperationDescription* desc, const TF_Output* inputs, int num_inputs) {
  GRADFLOW_RETURN_IF_ERROR(CheckOutputs(desc->graph->graph, inputs, num_inputs, "inputs"));
  std::vector<NodeOut> sources;
  for (const Output& output : OutputsFromC(inputs, num_inputs)) sources.emplace_back(output);
  desc->builder.Input(sources);
  return absl::OkStatus();
}

absl::Status ShapeProtoAttr(const void* proto, size_t size, TensorShapeProto* shape) {
  GRADFLOW_RETURN_IF_ERROR(ParseMessage(proto, size, shape));
  return PartialTensorShape::IsValidShape(*shape);
}

absl::Status Finish(TF_OperationDescription* desc, const Node** result) {
  GRADFLOW_RETURN_IF_ERROR(
      desc->status.ok()
          ? absl::OkStatus()
          : errors::Prefix(
                absl::StrCat("operation ", internal::Quoted(desc->builder.node_name()), ": "),
                desc->status));
  if (!desc->colocations.empty()) {
    const std::vector<std::string> names(desc->colocations.begin(), desc->colocations.end());
    desc->builder.Attr(internal::kColocationAttr, absl::Span<const std::string>(names));
  }
  const GraphChange change(desc->graph);
  Node* node;
  GRADFLOW_RETURN_IF_ERROR(desc->builder.Finalize(&desc->graph->graph, &node));
  *result = node;
  return absl::OkStatus();
}

// Returns the number of inputs or outputs of an argument, or -1.
int ListLength(const TF_Operation* oper, const char* arg_name, bool is_input, TF_Status* status) {
  int result = -1;
  Call(status, [&]() -> absl::Status {
    const Node& node = *FromC(oper);
    NameRangeMap inputs;
    NameRangeMap outputs;
    GRADFLOW_RETURN_IF_ERROR(ReadNode(oper, [&](const Node& read) {
      return NameRangesForNode(read.def(), read.op_def(), &inputs, &outputs);
    }));
    const NameRangeMap& ranges = is_input ? inputs : outputs;
    const auto found = ranges.find(OrEmpty(arg_name));
    if (found == ranges.end()) {
      return errors::InvalidArgument(internal::NodePrefix(node.def()), "there is no ",
                                     is_input ? "input " : "output ",
                                     internal::Quoted(OrEmpty(arg_name)));
    }
    result = found->second.second - found->second.first;
    return absl::OkStatus();
  });
  return result;
}

// Stores the nodes at the other ends of the control edges, up to `max`. Returns the number of
// stored nodes, or of all control edges if `out` is null.
template <typename GetNode>
int StoreControlEdges(const EdgeSet& edges, GetNode get, TF_Operation** out, int max) {
  int count = 0;
  for (const Edge* edge : edges) {
    if (!edge->IsControlEdge()) continue;
    if (out != nullptr && count < max) out[count] = ToC(get(*edge));
    ++count;
  }
  return out == nullptr ? count : std::min(count, std::max(max, 0));
}

int StoreControlInputs(const TF_Operation* oper, TF_Operation** out, int max) {
  return CallOr(0, [&] {
    return ReadNode(oper, [&](const Node& node) {
      return StoreControlEdges(
          node.in_edges(), [](const Edge& e) { return e.src(); }, out, max);
    });
  });
}

int StoreControlOutputs(const TF_Operation* oper, TF_Operation** out, int max) {
  return CallOr(0, [&] {
    return ReadNode(oper, [&](const Node& node) {
      return StoreControlEdges(
          node.out_edges(), [](const Edge& e) { return e.dst(); }, out, max);
    });
  });
}

int StoreConsumers(const TF_Output& output, TF_Input* out, int max) {
  return CallOr(0, [&] {
    return ReadNode(output.oper, [&](const Node& node) {
      int count = 0;
      for (const Edge* edge : node.out_edges()) {
        if (edge->src_output() != output.index) continue;
        if (out != nullptr && count < max) out[count] = {ToC(edge->dst()), edge->dst_input()};
        ++count;
      }
      return out == nullptr ? count : std::min(count, std::max(max, 0));
    });
  });
}

}  // namespace
}  // namespace gradflow::capi

using gradflow::AttrValue;
using gradflow::CallSafely;
using gradflow::Node;
using gradflow::capi::Call;
using gradflow::capi::CallOr;
using gradflow::capi::CheckOperation;
using gradflow::capi::CheckOutput;
using gradflow::capi::FromC;
using gradflow::capi::KeepAttr;
using gradflow::capi::OrEmpty;
using gradflow::capi::ReadNode;
using gradflow::capi::SetAttr;
using gradflow::capi::SetStatus;
using gradflow::capi::ToC;

// ---- Building ----

TF_OperationDescription* TF_NewOperationLocked(TF_Graph* graph, const char* op_type,
                                               const char* oper_name) {
  return CallOr<TF_OperationDescription*>(nullptr, [&] {
    return new TF_OperationDescription(graph, OrEmpty(op_type), OrEmpty(oper_name));
  });
}

TF_OperationDescription* TF_NewOperation(TF_Graph* graph, const char* op_type,
                                         const char* oper_name) {
  return TF_NewOperationLocked(graph, op_type, oper_name);
}

void TF_SetDevice(TF_OperationDescription* desc, const char* device) {
  desc->Update(CallSafely([&] {
    desc->builder.Device(OrEmpty(device));
    return absl::OkStatus();
  }));
}

void TF_AddInput(TF_OperationDescription* desc, TF_Output input) {
  desc->Update(CallSafely([&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(CheckOutput(desc->graph->graph, input, "an input"));
    desc->builder.Input(FromC(input));
    return absl::OkStatus();
  }));
}

void TF_AddInputList(TF_OperationDescription* desc, const TF_Output* inputs, int num_inputs) {
  desc->Update(CallSafely([&] { return gradflow::capi::AddInputs(desc, inputs, num_inputs); }));
}

void TF_AddControlInput(TF_OperationDescription* desc, TF_Operation* input) {
  desc->Update(CallSafely([&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(CheckOperation(desc->graph->graph, input, "a control input"));
    desc->builder.ControlInput(FromC(input));
    return absl::OkStatus();
  }));
}

void TF_ColocateWith(TF_OperationDescription* desc, TF_Operation* op) {
  desc->Update(CallSafely([&]() -> absl::Status {
    GRADFLOW_RETURN_IF_ERROR(CheckOperation(desc->graph->graph, op, "the colocated operation"));
    desc->colocations.insert(
        absl::StrCat(gradflow::internal::kColocationPrefix, FromC(op)->name()));
    return absl::OkStatus();
  }));
}

void TF_SetAttrString(TF_OperationDescription* desc, const char* attr_name, const void* value,
                      size_t length) {
  KeepAttr(desc, attr_name, [&](AttrValue* out) {
    return gradflow::capi::StringAttr(value, length, out->mutable_s());
  });
}

void TF_SetAttrStringList(TF_OperationDescription* desc, const char* attr_name,
                          const void* const* values, const size_t* lengths, int num_values) {
  KeepAttr(desc, attr_name, [&](AttrValue* out) {
    return gradflow::capi::StringListAttr(values, lengths, num_values, out);
  });
}

void TF_SetAttrInt(TF_OperationDescription* desc, const char* attr_name, int64_t value) {
  KeepAttr(desc, attr_name, [&](AttrValue* out) { return out->set_i(value), absl::OkStatus(); });
}

void TF_SetAttrIntList(TF_OperationDescription* desc, const char* attr_name, const int64_t* values,
                       int num_values) {
  KeepAttr(desc, attr_name,
           [&](AttrValue* out) { return gradflow::capi::IntListAttr(values, num_values, out); });
}

void TF_SetAttrFloat(TF_OperationDescription* desc, const char* attr_name, float value) {
  KeepAttr(desc, attr_name, [&](AttrValue* out) { return out->set_f(value), absl::OkStatus(); });
}

void TF_SetAttrFloatList(TF_OperationDescription* desc, const char* attr_name, const float* values,
                         int num_values) {
  KeepAttr(desc, attr_name,
           [&](AttrValue* out) { return gradflow::capi::FloatListAttr(values, num_values, out); });
}

void TF_SetAttrBool(TF_OperationDescription* desc, const char* attr_name, unsigned char value) {
  KeepAttr(desc, attr_name,
           [&](AttrValue* out) { return out->set_b(value != 0), absl::OkStatus(); });
}

void TF_SetAttrBoolList(TF_OperationDescription* desc, const char* attr_name,
                        const unsigned char* values, int num_values) {
  KeepAttr(desc, attr_name,
           [&](AttrValue* out) { return gradflow::capi::BoolListAttr(values, num_values, out); });
}

void TF_SetAttrType(TF_OperationDescription* desc, const char* attr_name, TF_DataType value) {
  KeepAttr(desc, attr_name,
           [&](AttrValue* out) { return out->set_type(FromC(value)), absl::OkStatus(); });
}

void TF_SetAttrTypeList(TF_OperationDescription* desc, const char* attr_name,
                        const TF_DataType* values, int num_values) {
  KeepAttr(desc, attr_name,
           [&](AttrValue* out) { return gradflow::capi::TypeListAttr(values, num_values, out); });
}

void TF_SetAttrPlaceholder(TF_OperationDescription* desc, const char* attr_name,
                           const char* placeholder) {
  KeepAttr(desc, attr_name, [&](AttrValue* out) {
    return out->set_placeholder(OrEmpty(placeholder)), absl::OkStatus();
  });
}

void TF_SetAttrFuncName(TF_OperationDescription* desc, const char* attr_name, const char* value,
                        size_t length) {
  KeepAttr(desc, attr_name, [&](AttrValue* out) {
    return gradflow::capi::StringAttr(value, length, out->mutable_func()->mutable_name());
  });
}

void TF_SetAttrShape(TF_OperationDescription* desc, const char* attr_name, const int64_t* dims,
                     int num_dims) {
  KeepAttr(desc, attr_name,
           [&](AttrValue* out) { return gradflow::capi::ShapeAttr(dims, num_dims, out); });
}

void TF_SetAttrShapeList(TF_OperationDescription* desc, const char* attr_name,
                         const int64_t* const* dims, const int* num_dims, int num_shapes) {
  KeepAttr(desc, attr_name, [&](AttrValue* out) {
    return gradflow::capi::ShapeListAttr(dims, num_dims, num_shapes, out);
  });
}

void TF_SetAttrTensorShapeProto(TF_OperationDescription* desc, const char* attr_name,
                                const void* proto, size_t proto_len, TF_Status* status) {
  SetStatus(status, SetAttr(desc, attr_name, [&](AttrValue* out) {
              return gradflow::capi::ShapeProtoAttr(proto, proto_len, out->mutable_shape());
            }));
}

void TF_SetAttrTensorShapeProtoList(TF_OperationDescription* desc, const char* attr_name,
                                    const void* const* protos, const size_t* proto_lens,
                                    int num_shapes, TF_Status* status) {
  SetStatus(status, SetAttr(desc, attr_name, [&](AttrValue* out) {
              return gradflow::capi::ShapeProtoListAttr(protos, proto_lens, num_shapes, out);
            }));
}

void TF_SetAttrTensor(TF_OperationDescription* desc, const char* attr_name, TF_Tensor* value,
                      TF_Status* status) {
  SetStatus(status, SetAttr(desc, attr_name, [&](AttrValue* out) {
              return gradflow::capi::TensorAttr(value, out);
            }));
}

void TF_SetAttrTensorList(TF_OperationDescription* desc, const char* attr_name,
                          TF_Tensor* const* values, int num_values, TF_Status* status) {
  SetStatus(status, SetAttr(desc, attr_name, [&](AttrValue* out) {
              return gradflow::capi::TensorListAttr(values, num_values, out);
            }));
}

void TF_SetAttrValueProto(TF_OperationDescription* desc, const char* attr_name, const void* proto,
                          size_t proto_len, TF_Status* status) {
  SetStatus(status, SetAttr(desc, attr_name, [&](AttrValue* out) -> absl::Status {
              GRADFLOW_RETURN_IF_ERROR(gradflow::capi::ParseMessage(proto, proto_len, out));
              // As in TensorFlow, an AttrValue without a value is an empty list.
              if (OrEmpty(attr_name) == absl::string_view(gradflow::internal::kColocationAttr) &&
                  out->value_case() == AttrValue::VALUE_NOT_SET) {
                out->mutable_list();
              }
              return absl::OkStatus();
            }));
}

TF_Operation* TF_FinishOperationLocked(TF_OperationDescription* desc, TF_Status* status) {
  const std::unique_ptr<TF_OperationDescription> owned(desc);
  const Node* node = nullptr;
  Call(status, [&] { return gradflow::capi::Finish(desc, &node); });
  return ToC(node);
}

TF_Operation* TF_FinishOperation(TF_OperationDescription* desc, TF_Status* status) {
  return TF_FinishOperationLocked(desc, status);
}

// ---- Reading ----

const char* TF_OperationName(TF_Operation* oper) { return FromC(oper)->name().c_str(); }
const char* TF_OperationOpType(TF_Operation* oper) { return FromC(oper)->type_string().c_str(); }
const char* TF_OperationDevice(TF_Operation* oper) {
  return ReadNode(oper, [](const Node& node) { return node.requested_device().c_str(); });
}

int TF_OperationNumOutputs(TF_Operation* oper) { return FromC(oper)->num_outputs(); }

TF_DataType TF_OperationOutputType(TF_Output oper_out) {
  return ToC(gradflow::Operation(FromC(oper_out.oper)).output_type(oper_out.index));
}

int TF_OperationOutputListLength(TF_Operation* oper, const char* arg_name, TF_Status* status) {
  return gradflow::capi::ListLength(oper, arg_name, /*is_input=*/false, status);
}

int TF_OperationNumInputs(TF_Operation* oper) { return FromC(oper)->num_inputs(); }

TF_DataType TF_OperationInputType(TF_Input oper_in) {
  return ReadNode(oper_in.oper, [&](const Node& node) {
    return ToC(gradflow::Operation(&node).input_type(oper_in.index));
  });
}

int TF_OperationInputListLength(TF_Operation* oper, const char* arg_name, TF_Status* status) {
  return gradflow::capi::ListLength(oper, arg_name, /*is_input=*/true, status);
}

TF_Output TF_OperationInput(TF_Input oper_in) {
  return ReadNode(oper_in.oper, [&](const Node& node) {
    return ToC(gradflow::Operation(&node).input(oper_in.index));
  });
}

void TF_OperationAllInputs(TF_Operation* oper, TF_Output* inputs, int max_inputs) {
  ReadNode(oper, [&](const Node& node) {
    const int count = std::min(max_inputs, node.num_inputs());
    for (int i = 0; i < count; ++i) inputs[i] = ToC(gradflow::Operation(&node).input(i));
  });
}

int TF_OperationOutputNumConsumers(TF_Output oper_out) {
  return gradflow::capi::StoreConsumers(oper_out, nullptr, 0);
}
int TF_OperationOutputConsumers(TF_Output oper_out, TF_Input* consumers, int max_consumers) {
  return consumers == nullptr ? 0
                              : gradflow::capi::StoreConsumers(oper_out, consumers, max_consumers);
}

int TF_OperationNumControlInputs(TF_Operation* oper) {
  return gradflow::capi::StoreControlInputs(oper, nullptr, 0);
}
int TF_OperationGetControlInputs(TF_Operation* oper, TF_Operation** control_inputs,
                                 int max_control_inputs) {
  if (control_inputs == nullptr) return 0;
  return gradflow::capi::StoreControlInputs(oper, control_inputs, max_control_inputs);
}

int TF_OperationNumControlOutputs(TF_Operation* oper) {
  return gradflow::capi::StoreControlOutputs(oper, nullptr, 0);
}
int TF_OperationGetControlOutputs(TF_Operation* oper, TF_Operation** control_outputs,
                                  int max_control_outputs) {
  if (control_outputs == nullptr) return 0;
  return gradflow::capi::StoreControlOutputs(oper, control_outputs, max_control_outputs);
}
