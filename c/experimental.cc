// Functions of c_api_experimental.h that have no other file.
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "gradflow/c/buffer.h"
#include "gradflow/c/function.h"
#include "gradflow/c/graph.h"
#include "gradflow/c/status.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/function_library.h"
#include "gradflow/graph/graph_impl.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/text_format.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/config.pb.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "tensorflow/c/c_api_experimental.h"

namespace gradflow::capi {
namespace {

// Returns a copy that free() frees.
char* CopyText(const std::string& text, size_t* length) {
  *length = text.size();
  return strdup(text.c_str());
}

// Removes a function and the gradients that name it. A library can only remove its last functions,
// so later functions, and functions that call any removed function, are removed and added again.
absl::Status RemoveFunctionOf(TF_Graph* graph, absl::string_view name) {
  const GraphChange change(graph);
  const auto& functions = graph->graph.def().library().function();
  int index = 0;
  while (index < functions.size() && functions[index].signature().name() != name) ++index;
  if (index == functions.size()) {
    return errors::NotFound("Function ", errors::Printable(name), " not found");
  }
  // The names of the functions from `first` on.
  absl::flat_hash_set<absl::string_view> removed;
  const auto calls_removed = [&](const NodeDef& node) {
    return std::any_of(removed.begin(), removed.end(),
                       [&](absl::string_view function) { return CallsFunction(node, function); });
  };
  int first = functions.size();
  const auto remove_from = [&](int begin) {
    while (first > begin) removed.insert(functions[--first].signature().name());
  };
  remove_from(index);
  for (int i = 0; i < first;) {
    const auto& nodes = functions[i].node_def();
    if (std::any_of(nodes.begin(), nodes.end(), calls_removed)) {
      remove_from(i);
      i = 0;
    } else {
      ++i;
    }
  }
  // Plans of sessions use the functions that nodes call.
  for (int id = 0; id < graph->graph.num_nodes(); ++id) {
    const NodeDef& node = graph->graph.node(id)->def();
    for (const absl::string_view function : removed) {
      if (!CallsFunction(node, function)) continue;
      return errors::FailedPrecondition(internal::NodePrefix(node), "the node calls function ",
                                        function);
    }
  }
  const std::vector<FunctionDef> old(functions.begin() + first, functions.end());
  std::vector<const FunctionDef*> kept;
  for (const FunctionDef& function : old) {
    if (function.signature().name() != name) kept.push_back(&function);
  }
  RemoveLastFunctions(first, &graph->graph);
  GRADFLOW_RETURN_IF_ERROR(AddFunctionsToGraph(kept, &graph->graph));
  auto* const gradients =
      internal::GraphImpl::Of(&graph->graph).def()->mutable_library()->mutable_gradient();
  gradients->erase(std::remove_if(gradients->begin(), gradients->end(),
                                  [&](const GradientDef& gradient) {
                                    return gradient.function_name() == name ||
                                           gradient.gradient_func() == name;
                                  }),
                   gradients->end());
  return absl::OkStatus();
}

}  // namespace
}  // namespace gradflow::capi

using gradflow::MutexLock;
using gradflow::capi::Call;
using gradflow::capi::CallOr;
using gradflow::capi::OrEmpty;

void TF_EnableXLACompilation(TF_SessionOptions*, unsigned char) {}

TF_Buffer* TF_CreateConfig(unsigned char, unsigned char, unsigned int) {
  return TF_NewBufferFromString("", 0);
}

TF_Buffer* TF_CreateRunOptions(unsigned char enable_full_trace) {
  return CallOr<TF_Buffer*>(nullptr, [&] {
    gradflow::RunOptions options;
    options.set_trace_level(enable_full_trace != 0 ? gradflow::RunOptions::FULL_TRACE
                                                   : gradflow::RunOptions::NO_TRACE);
    TF_Buffer* result = nullptr;
    gradflow::capi::NewBuffer(options, &result).IgnoreError();
    return result;
  });
}

const char* TF_GraphDebugString(TF_Graph* graph, size_t* len) {
  return CallOr<const char*>(nullptr, [&] {
    const MutexLock lock(&graph->mutex);
    return gradflow::capi::CopyText(gradflow::GraphDefToText(graph->graph.def()), len);
  });
}

char* TF_FunctionDebugString(TF_Function* func, size_t* len) {
  return CallOr<char*>(nullptr, [&] {
    return gradflow::capi::CopyText(
        gradflow::internal::MessageToText(func->def, SIZE_MAX).value_or(""), len);
  });
}

void TF_MakeInternalErrorStatus(TF_Status* status, const char* errMsg) {
  TF_SetStatus(status, TF_INTERNAL, errMsg);
}

const char* TF_GetNumberAttrForOpListInput(const char* op_name, int input_index,
                                           TF_Status* status) {
  const char* result = nullptr;
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(const gradflow::OpRegistration* op,
                              gradflow::GlobalRegistry().LookUpOp(OrEmpty(op_name)));
    const gradflow::OpDef& def = op->def();
    if (input_index < 0 || input_index >= def.input_arg_size()) {
      return gradflow::errors::InvalidArgument("op ", def.name(), " has ", def.input_arg_size(),
                                               " inputs, and input_index is ", input_index);
    }
    const std::string& attr = def.input_arg(input_index).number_attr();
    if (!attr.empty()) result = attr.c_str();
    return absl::OkStatus();
  });
  return result;
}

int TF_OpIsStateful(const char* op_type, TF_Status* status) {
  int result = 0;
  Call(status, [&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(const gradflow::OpRegistration* op,
                              gradflow::GlobalRegistry().LookUpOp(OrEmpty(op_type)));
    result = op->def().is_stateful() ? 1 : 0;
    return absl::OkStatus();
  });
  return result;
}

void TF_InitMain(const char*, int*, char***) {}

void TF_GraphRemoveFunction(TF_Graph* g, const char* func_name, TF_Status* status) {
  Call(status, [&] { return gradflow::capi::RemoveFunctionOf(g, OrEmpty(func_name)); });
}

// ---- Lists of shapes and types ----

TF_ShapeAndTypeList* TF_NewShapeAndTypeList(int num_shapes) {
  return CallOr<TF_ShapeAndTypeList*>(nullptr, [&] {
    auto list = std::make_unique<TF_ShapeAndTypeList>();
    list->num_items = std::max(num_shapes, 0);
    list->items = new TF_ShapeAndType[list->num_items]();
    for (int i = 0; i < list->num_items; ++i) list->items[i].num_dims = -1;
    return list.release();
  });
}

void TF_ShapeAndTypeListSetUnknownShape(TF_ShapeAndTypeList* shape_list, int index) {
  if (index < 0 || index >= shape_list->num_items) return;
  TF_ShapeAndType& item = shape_list->items[index];
  delete[] item.dims;
  item.dims = nullptr;
  item.num_dims = -1;
}

void TF_ShapeAndTypeListSetShape(TF_ShapeAndTypeList* shape_list, int index, const int64_t* dims,
                                 int num_dims) {
  TF_ShapeAndTypeListSetUnknownShape(shape_list, index);
  if (index < 0 || index >= shape_list->num_items || num_dims < 0) return;
  TF_ShapeAndType& item = shape_list->items[index];
  item.dims = new (std::nothrow) int64_t[num_dims];
  if (item.dims == nullptr) return;
  std::copy(dims, dims + num_dims, item.dims);
  item.num_dims = num_dims;
}

void TF_ShapeAndTypeListSetDtype(TF_ShapeAndTypeList* shape_list, int index, TF_DataType dtype) {
  if (index >= 0 && index < shape_list->num_items) shape_list->items[index].dtype = dtype;
}

void TF_DeleteShapeAndTypeList(TF_ShapeAndTypeList* shape_list) {
  if (shape_list == nullptr) return;
  for (int i = 0; i < shape_list->num_items; ++i) delete[] shape_list->items[i].dims;
  delete[] shape_list->items;
  delete shape_list;
}

void TF_DeleteShapeAndTypeListArray(TF_ShapeAndTypeList** shape_list_array, int num_items) {
  if (shape_list_array == nullptr) return;
  for (int i = 0; i < num_items; ++i) TF_DeleteShapeAndTypeList(shape_list_array[i]);
  delete[] shape_list_array;
}
