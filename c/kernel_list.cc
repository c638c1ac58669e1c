#include "gradflow/c/kernel_list.h"

#include <algorithm>
#include <utility>

#include "gradflow/core/attributes.h"
#include "gradflow/core/types.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow::capi {
namespace {

// The maximum number of combinations of types that are asked for.
constexpr int kMaxCombinations = 4096;

// A type attribute, and the types that it allows.
struct TypeAttr {
  const OpDef::AttrDef* def;
  DataTypeVector types;
};

void AddKernels(const Registry& registry, const OpDef& op, std::vector<CKernelInfo>* list) {
  std::vector<TypeAttr> attrs;
  for (const OpDef::AttrDef& attr : op.attr()) {
    if (attr.type() != "type" && attr.type() != "list(type)") continue;
    TypeAttr type_attr{&attr, AllDataTypes()};
    if (attr.has_allowed_values()) {
      type_attr.types.clear();
      for (const int type : attr.allowed_values().list().type()) {
        type_attr.types.push_back(static_cast<DataType>(type));
      }
    }
    attrs.push_back(std::move(type_attr));
  }
  std::vector<const KernelRegistration*> found;
  std::vector<size_t> choice(attrs.size(), 0);
  for (int i = 0; i < kMaxCombinations; ++i) {
    NodeDef node;
    node.set_op(op.name());
    for (size_t a = 0; a < attrs.size(); ++a) {
      const DataType type = attrs[a].types[choice[a]];
      AttrValue& value = (*node.mutable_attr())[attrs[a].def->name()];
      if (attrs[a].def->type() == "type") {
        value.set_type(type);
      } else {
        value.mutable_list()->add_type(type);
      }
    }
    const absl::StatusOr<const KernelRegistration*> kernel = registry.FindKernel(node);
    if (kernel.ok() && std::find(found.begin(), found.end(), *kernel) == found.end()) {
      found.push_back(*kernel);
    }
    // The next combination, like the next number.
    size_t digit = 0;
    while (digit < attrs.size() && ++choice[digit] == attrs[digit].types.size()) {
      choice[digit++] = 0;
    }
    if (digit == attrs.size()) break;
  }
  for (const KernelRegistration* kernel : found) {
    if (!IsCKernel(*kernel)) list->push_back({*kernel, {}});
  }
  for (CKernelInfo& kernel : CKernelsOf(op.name())) list->push_back(std::move(kernel));
}

}  // namespace

std::vector<CKernelInfo> RegisteredKernels(const Registry& registry, const char* op) {
  std::vector<CKernelInfo> list;
  for (const OpRegistration* registration : registry.Ops()) {
    if (op == nullptr || registration->def().name() == op) {
      AddKernels(registry, registration->def(), &list);
    }
  }
  return list;
}

}  // namespace gradflow::capi
