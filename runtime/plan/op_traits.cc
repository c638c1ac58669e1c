#include "gradflow/runtime/plan/op_traits.h"

#include <algorithm>

#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow {

AttrsByTypes AttrsThatFollowFromTypes(const OpDef& op_def) {
  AttrsByTypes result;
  for (const OpDef::AttrDef& attr : op_def.attr()) {
    // A list of a given length may be empty, and shows no type then.
    const auto shows = [&](const OpDef::ArgDef& arg) {
      return arg.number_attr().empty() &&
             (arg.type_attr() == attr.name() || arg.type_list_attr() == attr.name());
    };
    const bool follows = std::any_of(op_def.input_arg().begin(), op_def.input_arg().end(), shows) ||
                         std::any_of(op_def.output_arg().begin(), op_def.output_arg().end(), shows);
    if (follows) continue;
    result.all = false;
    if (attr.type() == "type" || attr.type() == "list(type)") result.types = false;
  }
  return result;
}

}  // namespace gradflow
