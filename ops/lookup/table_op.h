// Definitions of ops on tables, which have two forms: the first takes a reference to a handle, and
// the second, whose name ends with "V2", a resource.
#ifndef GRADFLOW_OPS_LOOKUP_TABLE_OP_H_
#define GRADFLOW_OPS_LOOKUP_TABLE_OP_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_checks.h"
#include "gradflow/core/shape_context.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow {

// Checks the shape of the handle in input 0. A reference is the vector of two strings, the
// container and the name.
inline absl::Status CheckTableHandle(ShapeContext& c) {
  if (!c.op_def().input_arg(0).is_ref()) return c.CheckRank(0, 0);
  GRADFLOW_RETURN_IF_ERROR(c.CheckRank(0, 1));
  return CheckDim(c, 0, 0, 2);
}

// Begins the definition of a form of the op.
inline Registry::OpRegistrar TableOp(Registry& registry, absl::string_view name, bool v2) {
  Registry::OpRegistrar op = registry.Op(absl::StrCat(name, v2 ? "V2" : ""));
  op.Group("lookup_ops").Input(v2 ? "table_handle: resource" : "table_handle: Ref(string)");
  // TensorFlow's C++ API has a class of the second form.
  if (v2) {
    op.Stateful().Alias(name);
  } else {
    op.HandWritten();
  }
  return op;
}

}  // namespace gradflow

#endif  // GRADFLOW_OPS_LOOKUP_TABLE_OP_H_
