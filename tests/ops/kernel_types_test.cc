// Compares the types of gradflow's kernels with TensorFlow's CPU kernels, which
// tests/data/tensorflow_kernels.txt lists.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/types.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "tests/testing/op_rows.h"

namespace gradflow {
namespace testing {
namespace {

// Combinations without a kernel in gradflow, and the reasons.
const std::map<std::string, std::string> kExceptions = {
    {"Conj T=variant", "TensorFlow has no type of variants that it conjugates"},
    {"SerializeTensor T=resource", "resources are not written to messages"},
    {"SerializeTensor T=variant", "variants may hold far more than their tensors"},
    {"TensorSummaryV2 T=resource", "resources are not written to messages"},
    {"TensorSummaryV2 T=variant", "variants may hold far more than their tensors"},
    {"ComplexAbs T=complex128", "Tout must be double; TensorFlow's kernel finds that out later"},
};
// Attributes of TensorFlow's kernels that the definitions of their ops lack.
const std::set<std::string> kNoAttributes = {"TileGrad Tmultiples", "TopK index_type"};

using TypesOfAttrs = std::vector<std::pair<std::string, DataType>>;

bool IsQuantized(int dtype) { return DataTypeIsQuantized(static_cast<DataType>(dtype)); }

const OpDef::AttrDef* FindAttr(const OpDef& def, const std::string& name) {
  for (const OpDef::AttrDef& attr : def.attr()) {
    if (attr.name() == name) return &attr;
  }
  return nullptr;
}

// Returns true if gradflow should have a kernel for this type. Exceptions are types that the
// definition rules out, and quantized types if the attribute also has other types.
bool IsExpected(const OpDef::AttrDef& attr, DataType dtype) {
  const auto& allowed = attr.allowed_values().list().type();
  if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), dtype) == allowed.end()) {
    return false;
  }
  const bool all_quantized =
      !allowed.empty() && std::all_of(allowed.begin(), allowed.end(), IsQuantized);
  return all_quantized || !IsQuantized(dtype);
}

// Returns the combinations of types in a row such as "T=float,double; Tidx=int32".
std::vector<TypesOfAttrs> Combinations(const OpDef& def, const std::string& row) {
  std::vector<TypesOfAttrs> result = {{}};
  for (const absl::string_view part : absl::StrSplit(row, "; ", absl::SkipEmpty())) {
    const std::pair<std::string, std::string> attr = absl::StrSplit(part, '=');
    const OpDef::AttrDef* definition = FindAttr(def, attr.first);
    if (definition == nullptr) {
      const std::string name = absl::StrCat(def.name(), " ", attr.first);
      EXPECT_EQ(kNoAttributes.count(name), 1) << name;
      continue;
    }
    std::vector<TypesOfAttrs> longer;
    for (const TypesOfAttrs& start : result) {
      for (const absl::string_view name : absl::StrSplit(attr.second, ',')) {
        DataType dtype = DT_INVALID;
        // Skips types that gradflow does not know.
        if (!DataTypeFromString(name, &dtype) || !IsExpected(*definition, dtype)) continue;
        longer.push_back(start);
        longer.back().emplace_back(attr.first, dtype);
      }
    }
    result = std::move(longer);
  }
  return result;
}

NodeDef NodeOf(const OpDef& def, const TypesOfAttrs& types) {
  NodeDef node;
  node.set_name("node");
  node.set_op(def.name());
  for (const auto& [name, dtype] : types) {
    if (FindAttr(def, name)->type() == "type") {
      AddNodeAttr(name, dtype, &node);
    } else {
      AddNodeAttr(name, DataTypeVector{dtype}, &node);
    }
  }
  AddDefaultsToNodeDef(def, &node);
  for (const OpDef::AttrDef& attr : def.attr()) {
    if (attr.type() == "list(type)" && !node.attr().contains(attr.name())) {
      AddNodeAttr(attr.name(), DataTypeVector{DT_FLOAT}, &node);
    }
    if (attr.type() != "type" || node.attr().contains(attr.name())) continue;
    const auto& allowed = attr.allowed_values().list().type();
    AddNodeAttr(attr.name(), allowed.empty() ? DT_FLOAT : static_cast<DataType>(allowed[0]), &node);
  }
  return node;
}

TEST(Kernels, HaveTheTypesOfTensorFlow) {
  int combinations = 0;
  for (const std::vector<std::string>& row :
       ReadRows(GRADFLOW_TEST_DATA_DIR "/tensorflow_kernels.txt")) {
    const OpRegistration* op = GlobalRegistry().FindOp(row[0]);
    // The runtime executes calls itself.
    if (op == nullptr || op->functional() != FunctionalOp::kNone) continue;
    for (const TypesOfAttrs& types :
         Combinations(op->def(), row.size() > 1 ? row[1] : std::string())) {
      ++combinations;
      std::string text = row[0];
      for (const auto& [name, dtype] : types) {
        absl::StrAppend(&text, " ", name, "=", DataTypeString(dtype));
      }
      EXPECT_EQ(GlobalRegistry().FindKernel(NodeOf(op->def(), types)).ok(),
                kExceptions.count(text) == 0)
          << text;
    }
  }
  EXPECT_GT(combinations, 3000);
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
