#include "gradflow/ops/common/legacy_name.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow {

void RegisterLegacyName(Registry& registry, const LegacyName& legacy, KernelFactory factory) {
  const OpRegistration* const op = registry.FindOp(legacy.op);
  if (op == nullptr) return;  // The registry keeps the error that explains it.
  auto def = std::make_unique<OpDef>(op->def());
  def->set_name(legacy.name);
  def->mutable_deprecation()->set_version(legacy.version);
  def->mutable_deprecation()->set_explanation(absl::StrCat("Use ", legacy.op, " instead."));
  for (int a = 0; a < def->attr_size(); ++a) {
    OpDef::AttrDef* const attr = def->mutable_attr(a);
    if (attr->name() != legacy.attr) continue;
    if (legacy.types.size() == 1) {
      for (auto* const args : {def->mutable_input_arg(), def->mutable_output_arg()}) {
        for (OpDef::ArgDef& arg : *args) {
          if (arg.type_attr() != legacy.attr) continue;
          arg.clear_type_attr();
          arg.set_type(legacy.types[0]);
        }
      }
      def->mutable_attr()->DeleteSubrange(a, 1);
      break;
    }
    attr->mutable_allowed_values()->mutable_list()->clear_type();
    for (const DataType dtype : legacy.types) {
      attr->mutable_allowed_values()->mutable_list()->add_type(dtype);
    }
  }
  OpApi api;
  api.group = op->api().group;
  api.hand_written = true;
  // The registry keeps the first error.
  registry.RegisterOp(std::move(def), op->shape_fn(), std::move(api)).IgnoreError();
  auto kernel = registry.Kernel(legacy.name, factory);
  if (!legacy.attr.empty() && legacy.types.size() > 1) kernel.Types(legacy.attr, legacy.types);
}

}  // namespace gradflow
