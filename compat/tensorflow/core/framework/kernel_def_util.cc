#include "tensorflow/core/framework/kernel_def_util.h"

#include <algorithm>

#include "tensorflow/core/platform/errors.h"

namespace tensorflow {
namespace {

template <typename Items, typename Item>
bool Contains(const Items& items, const Item& item) {
  return std::find(items.begin(), items.end(), item) != items.end();
}

// Returns true if an attribute of type `type`, or each element of a list, is in `allowed`.
template <typename Items, typename Item, typename List>
absl::Status InList(const AttrValue& value, AttrValue::ValueCase kind, const char* type,
                    const Items& allowed, const Item& item, const List& list, bool* match) {
  if (value.value_case() == kind) {
    *match = *match && Contains(allowed, item);
    return absl::OkStatus();
  }
  TF_RETURN_IF_ERROR(AttrValueHasType(value, absl::StrCat("list(", type, ")")));
  for (const auto& element : list) *match = *match && Contains(allowed, element);
  return absl::OkStatus();
}

}  // namespace

absl::Status KernelAttrsMatch(const KernelDef& kernel_def, const AttrSlice& attrs, bool* match) {
  *match = false;
  bool all = true;
  for (const auto& constraint : kernel_def.constraint()) {
    const auto& allowed = constraint.allowed_values().list();
    const bool is_known = allowed.type_size() > 0 || allowed.i_size() > 0 || allowed.s_size() > 0 ||
                          allowed.b_size() > 0;
    if (!is_known) {
      return errors::Unimplemented(
          "KernelDef '", kernel_def.ShortDebugString(), "' has constraint on attr '",
          constraint.name(),
          "' with unsupported type: ", SummarizeAttrValue(constraint.allowed_values()));
    }
    const AttrValue* const found = attrs.Find(constraint.name());
    if (found == nullptr) {
      return errors::InvalidArgument("OpKernel '", kernel_def.op(), "' has constraint on attr '",
                                     constraint.name(), "' not in NodeDef '", attrs.SummarizeNode(),
                                     "', KernelDef: '", kernel_def.ShortDebugString(), "'");
    }
    const auto& list = found->list();
    absl::Status status;
    if (allowed.type_size() > 0) {
      status = InList(*found, AttrValue::kType, "type", allowed.type(),
                      static_cast<int>(found->type()), list.type(), &all);
    } else if (allowed.i_size() > 0) {
      status = InList(*found, AttrValue::kI, "int", allowed.i(), found->i(), list.i(), &all);
    } else if (allowed.s_size() > 0) {
      status = InList(*found, AttrValue::kS, "string", allowed.s(), found->s(), list.s(), &all);
    } else {
      status = InList(*found, AttrValue::kB, "bool", allowed.b(), found->b(), list.b(), &all);
    }
    if (!status.ok()) {
      return errors::InvalidArgument("attribute ", constraint.name(), ": ", status.message());
    }
  }
  *match = all;
  return absl::OkStatus();
}

}  // namespace tensorflow
