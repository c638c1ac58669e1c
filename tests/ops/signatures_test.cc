// Tests of all ops of the library: the list of ops and properties of each op.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/registry.h"
#include "gradflow/ops/register.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/testing/status_matchers.h"

namespace gradflow {
namespace testing {
namespace {

using ::testing::HasSubstr;

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string ReferenceText() {
  return ReadFile(std::filesystem::path(GRADFLOW_TEST_DATA_DIR) / "op_signatures.txt");
}

// Returns TensorFlow's signatures by op name.
std::map<std::string, std::string> ReferenceSignatures() {
  std::map<std::string, std::string> signatures;
  const std::string text = ReferenceText();
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    const size_t name_end = line.find('(');
    if (line.empty() || line[0] == '#' || name_end == absl::string_view::npos) continue;
    signatures.emplace(line.substr(0, name_end), line);
  }
  return signatures;
}

// Returns the names of TensorFlow's ops by section. Section titles look like "## Arrays (array_ops,
// 114)".
std::map<std::string, std::vector<std::string>> ReferenceSections() {
  std::map<std::string, std::vector<std::string>> sections;
  std::string section;
  const std::string text = ReferenceText();
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    const std::string name(line.substr(0, line.find('(')));
    if (absl::StartsWith(line, "## ")) {
      section = std::string(absl::StripAsciiWhitespace(name.substr(3)));
    } else if (!line.empty() && line[0] != '#') {
      sections[section].push_back(name);
    }
  }
  return sections;
}

std::vector<const OpRegistration*> AllOps() { return GlobalRegistry().Ops(); }

TEST(StandardOps, RegisterWithoutErrors) {
  GRADFLOW_EXPECT_OK(GlobalRegistry().status());
  Registry registry;
  RegisterStandardOps(registry);
  GRADFLOW_EXPECT_OK(registry.status());
  EXPECT_EQ(registry.Ops().size(), AllOps().size());
}

TEST(StandardOps, RegisteringTwiceIsAnError) {
  Registry registry;
  RegisterStandardOps(registry);
  RegisterStandardOps(registry);
  EXPECT_THAT(registry.status(),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("already registered")));
}

TEST(StandardOps, HaveTheSignaturesOfTensorFlow) {
  const std::map<std::string, std::string> reference = ReferenceSignatures();
  ASSERT_GT(reference.size(), 200);
  for (const OpRegistration* op : AllOps()) {
    const auto expected = reference.find(op->def().name());
    if (expected == reference.end()) {
      ADD_FAILURE() << op->def().name() << " is not in op_signatures.txt";
      continue;
    }
    EXPECT_EQ(OpDefSignature(op->def()), expected->second);
  }
}

TEST(StandardOps, AreDocumented) {
  for (const OpRegistration* op : AllOps()) {
    const OpDef& def = op->def();
    SCOPED_TRACE(def.name());
    EXPECT_NE(def.summary(), "");
    const auto expect_described = [](const auto& items) {
      for (const auto& item : items) EXPECT_NE(item.description(), "") << item.name();
    };
    expect_described(def.input_arg());
    expect_described(def.output_arg());
    expect_described(def.attr());
  }
}

TEST(StandardOps, HaveShapeFunctions) {
  for (const OpRegistration* op : AllOps()) {
    EXPECT_NE(op->shape_fn(), nullptr) << op->def().name();
  }
}

// Returns a node of the op. Its type attributes are `dtype`, or `output` if no input has them.
// Types that are not allowed are replaced by the first allowed type.
NodeDef NodeOfType(const OpDef& def, DataType dtype, DataType output) {
  NodeDef node;
  node.set_name("node");
  node.set_op(def.name());
  for (const OpDef::AttrDef& attr : def.attr()) {
    const auto is_type_of = [&](const OpDef::ArgDef& arg) {
      return arg.type_attr() == attr.name() || arg.type_list_attr() == attr.name();
    };
    const auto& inputs = def.input_arg();
    DataType type = std::any_of(inputs.begin(), inputs.end(), is_type_of) ? dtype : output;
    if (const auto& allowed = attr.allowed_values().list().type(); !allowed.empty()) {
      if (std::find(allowed.begin(), allowed.end(), type) == allowed.end()) {
        type = static_cast<DataType>(allowed[0]);
      }
    }
    if (attr.type() == "type") AddNodeAttr(attr.name(), type, &node);
    if (attr.type() == "list(type)") AddNodeAttr(attr.name(), DataTypeVector{type}, &node);
  }
  AddDefaultsToNodeDef(def, &node);
  return node;
}

TEST(StandardOps, HaveKernels) {
  for (const OpRegistration* op : AllOps()) {
    // The runtime executes these itself.
    if (op->functional() != FunctionalOp::kNone) continue;
    SCOPED_TRACE(op->def().name());
    int kernels = 0;
    for (const DataType dtype : AllDataTypes()) {
      for (const DataType output : {dtype, DT_QINT32, DT_QUINT8}) {
        if (GlobalRegistry().FindKernel(NodeOfType(op->def(), dtype, output)).ok()) ++kernels;
      }
    }
    EXPECT_GT(kernels, 0);
  }
}

// Each op needs its quoted name in a test of its family.
TEST(StandardOps, HaveTests) {
  std::string tests;
  const auto folder = std::filesystem::path(GRADFLOW_TEST_DATA_DIR).parent_path() / "ops";
  const auto self = std::filesystem::path(__FILE__).filename();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (absl::EndsWith(name, "_test.cc") && name != self && name != "wrappers_test.cc") {
      tests += ReadFile(entry.path());
    }
  }
  for (const OpRegistration* op : AllOps()) {
    EXPECT_NE(tests.find(absl::StrCat("\"", op->def().name(), "\"")), std::string::npos)
        << op->def().name() << " has no test in tests/ops";
  }
}

TEST(StandardOps, AreComplete) {
  const std::set<std::string> sections = {
      "Arrays",
      "Mathematics",
      "Special functions",
      "Bits",
      "Neural networks",
      "Images",
      "Linear algebra",
      "Fourier transforms",
      "Roll",
      "Random numbers",
      "Random numbers without state",
      "Random numbers without state, by key and counter",
      "Sparse tensors",
      "Variables",
      "Resource variables",
      "Optimizers",
      "Files",
      "Tables",
      "Strings",
      "Parsing",
      "Logging",
      "Recurrent cells",
      "Connectionist temporal classification",
      "Candidate sampling",
      "Functions",
      "Collectives",
      "Without a class",
      "NoOp",
  };
  size_t found = 0;
  for (const auto& [section, ops] : ReferenceSections()) {
    if (sections.count(section) == 0) continue;
    ++found;
    for (const std::string& op : ops) GRADFLOW_EXPECT_OK(GlobalRegistry().LookUpOp(op));
  }
  EXPECT_EQ(found, sections.size());
}

}  // namespace
}  // namespace testing
}  // namespace gradflow
