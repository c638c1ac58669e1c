#include "tools/light_graph.h"

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "gradflow/core/tensor_proto.h"
#include "gradflow/core/tensor_shape.h"

namespace gradflow::tools {
namespace {

// The number of elements of a shortened constant. Summaries show fewer elements.
constexpr size_t kKept = 64;

// Appends the first elements of type T to a list of a TensorProto.
template <typename T, typename List>
void AppendFirst(const std::string& content, List* list) {
  for (size_t i = 0; i < kKept; ++i) {
    T value;
    std::memcpy(&value, content.data() + i * sizeof(T), sizeof(T));
    list->Add(static_cast<typename List::value_type>(value));
  }
}

// Sets the list of values to the first elements of the content. Returns false if the type is not
// supported here.
bool KeepFirst(const std::string& content, TensorProto* proto) {
  switch (proto->dtype()) {
    case DT_FLOAT:
      AppendFirst<float>(content, proto->mutable_float_val());
      return true;
    case DT_DOUBLE:
      AppendFirst<double>(content, proto->mutable_double_val());
      return true;
    case DT_HALF:
    case DT_BFLOAT16:
      AppendFirst<uint16_t>(content, proto->mutable_half_val());
      return true;
    case DT_INT8:
    case DT_QINT8:
      AppendFirst<int8_t>(content, proto->mutable_int_val());
      return true;
    case DT_UINT8:
    case DT_QUINT8:
      AppendFirst<uint8_t>(content, proto->mutable_int_val());
      return true;
    case DT_INT32:
    case DT_QINT32:
      AppendFirst<int32_t>(content, proto->mutable_int_val());
      return true;
    case DT_INT64:
      AppendFirst<int64_t>(content, proto->mutable_int64_val());
      return true;
    default:
      return false;
  }
}

// A constant that is shortened during the copy.
struct Shortened {
  TensorProto* proto;
  std::string content;
};

void Shorten(AttrValue* attr, std::vector<Shortened>* shortened) {
  if (!attr->has_tensor() || attr->tensor().tensor_content().size() <= kMaxLightElements) return;
  const absl::StatusOr<TensorShape> shape = TensorShape::Make(attr->tensor().tensor_shape());
  if (!shape.ok() || shape->num_elements() <= kMaxLightElements) return;
  // Keeps a constant with an error unchanged.
  if (!ValidateTensorProto(attr->tensor()).ok()) return;
  TensorProto* const proto = attr->mutable_tensor();
  if (!KeepFirst(proto->tensor_content(), proto)) return;
  shortened->push_back({proto, std::move(*proto->mutable_tensor_content())});
  proto->clear_tensor_content();
}

}  // namespace

GraphDef LightCopy(GraphDef* graph) {
  std::vector<Shortened> shortened;
  const auto shorten = [&](auto* nodes) {
    for (NodeDef& node : *nodes) {
      for (auto& [name, attr] : *node.mutable_attr()) Shorten(&attr, &shortened);
    }
  };
  shorten(graph->mutable_node());
  if (graph->has_library()) {
    for (FunctionDef& function : *graph->mutable_library()->mutable_function()) {
      shorten(function.mutable_node_def());
    }
  }
  GraphDef copy = *graph;
  for (Shortened& constant : shortened) {
    TensorProto* const proto = constant.proto;
    proto->clear_float_val();
    proto->clear_double_val();
    proto->clear_half_val();
    proto->clear_int_val();
    proto->clear_int64_val();
    *proto->mutable_tensor_content() = std::move(constant.content);
  }
  return copy;
}

}  // namespace gradflow::tools
