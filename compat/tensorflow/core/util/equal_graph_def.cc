#include "tensorflow/core/util/equal_graph_def.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/framework/attr_value_util.h"
#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow {
namespace {

using Nodes = protobuf::RepeatedPtrField<NodeDef>;

template <typename... Parts>
bool Differ(std::string* diff, const Parts&... parts) {
  if (diff != nullptr) *diff = absl::StrCat(parts...);
  return false;
}

bool IsIgnored(const std::string& attr, const EqualGraphDefOptions& options) {
  return options.ignore_internal_attrs && absl::StartsWith(attr, "_");
}

// Returns the inputs, with the control inputs sorted.
std::vector<std::string> Inputs(const NodeDef& node) {
  std::vector<std::string> inputs(node.input().begin(), node.input().end());
  const auto is_data = [](const std::string& input) { return !absl::StartsWith(input, "^"); };
  std::sort(std::stable_partition(inputs.begin(), inputs.end(), is_data), inputs.end());
  return inputs;
}

// Returns true if `b` has each attribute of `a`; otherwise describes an attribute that differs.
bool HasAttrsOf(const NodeDef& b, const NodeDef& a, absl::string_view role,
                absl::string_view other_role, std::string* diff,
                const EqualGraphDefOptions& options) {
  for (const auto& [name, value] : a.attr()) {
    if (IsIgnored(name, options)) continue;
    const auto it = b.attr().find(name);
    if (it == b.attr().end()) {
      return Differ(diff, "Node named '", a.name(), "' has attr '", name, "' with value ",
                    SummarizeAttrValue(value), " in ", role, ", which ", other_role,
                    " does not have");
    }
    if (!AreAttrValuesEqual(value, it->second)) {
      return Differ(diff, "Node named '", a.name(), "' has attr '", name, "' with value ",
                    SummarizeAttrValue(value), " in ", role, ", but ",
                    SummarizeAttrValue(it->second), " in ", other_role);
    }
  }
  return true;
}

}  // namespace

bool EqualNodeDef(const NodeDef& actual, const NodeDef& expected, std::string* diff,
                  const EqualGraphDefOptions& options) {
  const auto same = [&](absl::string_view what, const std::string& a, const std::string& e) {
    return a == e || Differ(diff, "Node named '", actual.name(), "' has ", what, " '", a,
                            "' that does not match expected '", e, "'");
  };
  if (!same("name", actual.name(), expected.name()) || !same("op", actual.op(), expected.op()) ||
      !same("device", actual.device(), expected.device())) {
    return false;
  }
  const std::vector<std::string> inputs = Inputs(actual);
  const std::vector<std::string> expected_inputs = Inputs(expected);
  if (inputs.size() != expected_inputs.size()) {
    return Differ(diff, "Node named '", actual.name(), "' has ", inputs.size(),
                  " inputs, expected ", expected_inputs.size());
  }
  const auto input_name = [](const std::string& input) {
    // "a:0" means "a".
    return absl::EndsWith(input, ":0") ? input.substr(0, input.size() - 2) : input;
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!same(absl::StrCat("input ", i), input_name(inputs[i]), input_name(expected_inputs[i]))) {
      return false;
    }
  }
  return HasAttrsOf(expected, actual, "actual", "expected", diff, options) &&
         HasAttrsOf(actual, expected, "expected", "actual", diff, options);
}

bool EqualRepeatedNodeDef(const Nodes& actual, const Nodes& expected, std::string* diff,
                          const EqualGraphDefOptions& options) {
  std::map<std::string, const NodeDef*> by_name;
  for (const NodeDef& node : actual) by_name[node.name()] = &node;
  for (const NodeDef& node : expected) {
    const auto it = by_name.find(node.name());
    if (it == by_name.end()) {
      return Differ(diff, "Did not find expected node '", SummarizeNodeDef(node), "'");
    }
    if (!EqualNodeDef(*it->second, node, diff, options)) return false;
    by_name.erase(it);
  }
  return by_name.empty() ||
         Differ(diff, "Found unexpected node '", SummarizeNodeDef(*by_name.begin()->second), "'");
}

bool EqualGraphDef(const GraphDef& actual, const GraphDef& expected, std::string* diff,
                   const EqualGraphDefOptions& options) {
  return EqualRepeatedNodeDef(actual.node(), expected.node(), diff, options);
}

uint64 NodeDefHash(const NodeDef& ndef, const EqualGraphDefOptions& options) {
  uint64 attrs = 0;
  // Sums, because the order of a map is irrelevant.
  for (const auto& [name, value] : ndef.attr()) {
    if (IsIgnored(name, options)) continue;
    attrs += absl::Hash<std::pair<std::string, uint64>>()({name, AttrValueHash(value)});
  }
  std::vector<std::string> parts = {ndef.name(), ndef.op(), ndef.device()};
  for (const std::string& input : Inputs(ndef)) {
    parts.push_back(absl::EndsWith(input, ":0") ? input.substr(0, input.size() - 2) : input);
  }
  return absl::Hash<std::pair<std::vector<std::string>, uint64>>()({parts, attrs});
}

uint64 RepeatedNodeDefHash(const Nodes& ndefs, const EqualGraphDefOptions& options) {
  uint64 hash = 0;
  for (const NodeDef& node : ndefs) hash += NodeDefHash(node, options);
  return hash;
}

uint64 GraphDefHash(const GraphDef& gdef, const EqualGraphDefOptions& options) {
  return RepeatedNodeDefHash(gdef.node(), options);
}

}  // namespace tensorflow
