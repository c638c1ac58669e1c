#include "gradflow/core/op_def_util.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/op_def_internal.h"
#include "gradflow/core/out_parameter.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow {
namespace {

// Limit on the inputs or outputs of a node, far above any real node. Untrusted input could
// otherwise make the number arbitrarily large.
constexpr int64_t kMaxTensorsPerNode = 1 << 20;

// Returns the number of tensors of `arg` in the node.
absl::StatusOr<int64_t> ArgLength(const NodeDef& node, const OpDef::ArgDef& arg) {
  int64_t length = 1;
  if (!arg.number_attr().empty()) {
    GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, arg.number_attr(), &length));
  } else if (!arg.type_list_attr().empty()) {
    DataTypeVector types;
    GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, arg.type_list_attr(), &types));
    length = static_cast<int64_t>(types.size());
  }
  if (length < 0 || length > kMaxTensorsPerNode) {
    return errors::InvalidArgument("the length of ", arg.name(), " must be from 0 to ",
                                   kMaxTensorsPerNode, ", but is ", length);
  }
  return length;
}

using Args = google::protobuf::RepeatedPtrField<OpDef::ArgDef>;

// Calls fn(arg, begin, end) for each argument, or returns an error if there are too many tensors.
template <typename Fn>
absl::Status ForEachArg(const NodeDef& node, const Args& args, Fn fn) {
  int64_t begin = 0;
  for (const OpDef::ArgDef& arg : args) {
    GRADFLOW_ASSIGN_OR_RETURN(const int64_t length, ArgLength(node, arg));
    if (begin + length > kMaxTensorsPerNode) {
      return errors::InvalidArgument("a node has at most ", kMaxTensorsPerNode,
                                     " inputs or outputs, but argument ", arg.name(),
                                     " exceeds this");
    }
    GRADFLOW_RETURN_IF_ERROR(fn(arg, static_cast<int>(begin), static_cast<int>(begin + length)));
    begin += length;
  }
  return absl::OkStatus();
}

absl::Status ArgTypes(const NodeDef& node, const Args& args, DataTypeVector* types) {
  types->clear();
  // Consecutive arguments often share a type attribute.
  const std::string* last_attr = nullptr;
  DataType last_type = DT_INVALID;
  return ForEachArg(node, args, [&](const OpDef::ArgDef& arg, int begin, int end) {
    if (!arg.type_list_attr().empty()) {
      DataTypeVector list;
      GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, arg.type_list_attr(), &list));
      types->insert(types->end(), list.begin(), list.end());
    } else {
      DataType dtype = arg.type();
      if (!arg.type_attr().empty()) {
        if (last_attr == nullptr || *last_attr != arg.type_attr()) {
          GRADFLOW_RETURN_IF_ERROR(GetNodeAttr(node, arg.type_attr(), &last_type));
          last_attr = &arg.type_attr();
        }
        dtype = last_type;
      }
      types->resize(end, dtype);
    }
    if (arg.is_ref()) {
      std::transform(types->begin() + begin, types->end(), types->begin() + begin, MakeRefType);
    }
    return absl::OkStatus();
  });
}

absl::Status ArgRanges(const NodeDef& node, const Args& args, NameRangeMap* ranges) {
  if (ranges == nullptr) return absl::OkStatus();
  ranges->clear();
  return ForEachArg(node, args, [&](const OpDef::ArgDef& arg, int begin, int end) {
    (*ranges)[arg.name()] = {begin, end};
    return absl::OkStatus();
  });
}

absl::Status CheckNumInputs(const NodeDef& node, const OpDef& op_def) {
  int expected = 0;
  GRADFLOW_RETURN_IF_ERROR(
      ForEachArg(node, op_def.input_arg(), [&](const OpDef::ArgDef&, int, int end) {
        expected = end;
        return absl::OkStatus();
      }));
  const auto is_data = [](const std::string& input) { return !absl::StartsWith(input, "^"); };
  const auto found = std::count_if(node.input().begin(), node.input().end(), is_data);
  if (found == expected) return absl::OkStatus();
  const auto append_name = [](std::string* out, const OpDef::ArgDef& arg) { *out += arg.name(); };
  return errors::InvalidArgument(
      "expected ", expected, expected == 1 ? " input" : " inputs",
      expected == 0 ? ""
                    : absl::StrCat(" (", absl::StrJoin(op_def.input_arg(), ", ", append_name), ")"),
      ", but found ", found);
}

// Returns the edit distance of a and b if it is at most `limit`, otherwise a larger number.
int BoundedDistance(absl::string_view a, absl::string_view b, int limit) {
  const int rows = static_cast<int>(a.size());
  const int columns = static_cast<int>(b.size());
  if (std::abs(rows - columns) > limit) return limit + 1;
  std::vector<int> row(columns + 1);
  for (int j = 0; j <= columns; ++j) row[j] = j;
  for (int i = 1; i <= rows; ++i) {
    // Cells further than `limit` from the diagonal cannot be on a path of cost at most `limit`.
    const int first = std::max(1, i - limit);
    const int last = std::min(columns, i + limit);
    int diagonal = row[first - 1];
    row[first - 1] = first == 1 ? i : limit + 1;
    int best = row[first - 1];
    for (int j = first; j <= last; ++j) {
      const int above = j == i + limit ? limit + 1 : row[j];
      const int cost = std::min({diagonal + (a[i - 1] != b[j - 1]), above + 1, row[j - 1] + 1});
      diagonal = row[j];
      row[j] = cost;
      best = std::min(best, cost);
    }
    if (best > limit) return limit + 1;
  }
  return row[columns];
}

}  // namespace

void AddDefaultsToNodeDef(const OpDef& op_def, NodeDef* node) {
  internal::RequireOut(node, "AddDefaultsToNodeDef", "node");
  for (const auto& attr : op_def.attr()) {
    if (attr.has_default_value() && FindNodeAttr(*node, attr.name()) == nullptr) {
      (*node->mutable_attr())[attr.name()] = attr.default_value();
    }
  }
}

void StripDefaultsFromNodeDef(const OpDef& op_def, NodeDef* node) {
  internal::RequireOut(node, "StripDefaultsFromNodeDef", "node");
  for (const auto& attr : op_def.attr()) {
    if (!attr.has_default_value()) continue;
    const AttrValue* value = FindNodeAttr(*node, attr.name());
    if (value != nullptr && AreAttrValuesEqual(*value, attr.default_value())) {
      node->mutable_attr()->erase(attr.name());
    }
  }
}

absl::Status ValidateNodeDef(const NodeDef& node, const OpDef& op_def) {
  std::vector<std::string> faults;
  int known = 0;
  for (const auto& attr : op_def.attr()) {
    const AttrValue* value = FindNodeAttr(node, attr.name());
    if (value == nullptr) {
      faults.push_back(absl::StrCat("attribute ", attr.name(), " (", attr.type(), ") is missing"));
      continue;
    }
    ++known;
    const absl::Status status = CheckAttrValue(attr, *value);
    if (!status.ok()) faults.emplace_back(status.message());
  }
  if (known < node.attr_size()) {
    std::vector<std::string> unknown;
    for (const auto& [name, value] : node.attr()) {
      if (!absl::StartsWith(name, "_") && FindAttrDef(op_def, name) == nullptr) {
        unknown.push_back(name);
      }
    }
    std::sort(unknown.begin(), unknown.end());
    std::vector<std::string> names;
    for (const auto& attr : op_def.attr()) names.push_back(attr.name());
    for (const std::string& name : unknown) {
      const std::vector<std::string> near = NearNames(name, names);
      faults.push_back(absl::StrCat(
          "unknown attribute '", absl::CEscape(name.substr(0, 80)), "'",
          near.empty() ? ""
                       : absl::StrCat("; did you mean '", absl::StrJoin(near, "' or '"), "'?")));
    }
  }
  if (!faults.empty()) return absl::InvalidArgumentError(JoinFaults(faults));
  return CheckNumInputs(node, op_def);
}

bool IsListArg(const OpDef::ArgDef& arg) {
  return !arg.number_attr().empty() || !arg.type_list_attr().empty();
}

absl::Status InOutTypesForNode(const NodeDef& node, const OpDef& op_def, DataTypeVector* inputs,
                               DataTypeVector* outputs) {
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(inputs, "InOutTypesForNode", "inputs"));
  GRADFLOW_RETURN_IF_ERROR(internal::CheckOut(outputs, "InOutTypesForNode", "outputs"));
  GRADFLOW_RETURN_IF_ERROR(ArgTypes(node, op_def.input_arg(), inputs));
  return ArgTypes(node, op_def.output_arg(), outputs);
}

absl::Status NameRangesForNode(const NodeDef& node, const OpDef& op_def, NameRangeMap* inputs,
                               NameRangeMap* outputs) {
  const auto has_type = [](const OpDef::ArgDef& arg) {
    return arg.type() != DT_INVALID || !arg.type_attr().empty() || !arg.type_list_attr().empty();
  };
  for (const auto* args : {&op_def.input_arg(), &op_def.output_arg()}) {
    const auto bad = std::find_if_not(args->begin(), args->end(), has_type);
    if (bad == args->end()) continue;
    return errors::InvalidArgument("argument ", bad->name(), " of op '", op_def.name(),
                                   "' has no type");
  }
  GRADFLOW_RETURN_IF_ERROR(ArgRanges(node, op_def.input_arg(), inputs));
  return ArgRanges(node, op_def.output_arg(), outputs);
}

std::vector<std::string> NearNames(absl::string_view name,
                                   const std::vector<std::string>& candidates, int limit) {
  // Limits the cost. Such long names are not misspellings.
  constexpr size_t kMaxLength = 200;
  if (name.size() > kMaxLength || limit <= 0) return {};
  const std::string lower = absl::AsciiStrToLower(name);
  const int max_distance = std::min(5, static_cast<int>(name.size() + 1) / 3);
  std::vector<std::pair<int, const std::string*>> near;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kMaxLength + max_distance) continue;
    const int distance = BoundedDistance(lower, absl::AsciiStrToLower(candidate), max_distance);
    if (distance <= max_distance) near.emplace_back(distance, &candidate);
  }
  std::sort(near.begin(), near.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first, *a.second) < std::tie(b.first, *b.second);
  });
  std::vector<std::string> names;
  for (const auto& [distance, candidate] : near) {
    if (static_cast<int>(names.size()) == limit) break;
    names.push_back(*candidate);
  }
  return names;
}

}  // namespace gradflow
