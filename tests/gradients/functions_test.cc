// Compares every gradient function with central differences in float64. The second order is
// compared with central differences of the gradient.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/gradients/derivatives.h"
#include "gradflow/gradients/gradient_registry.h"
#include "gradflow/gradients/gradients.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/node.h"
#include "gradflow/ops/rnn_ops.h"
#include "gradflow/ops/standard_ops.h"
#include "gradflow/proto/op_def.pb.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/testing/gradient_checker.h"
#include "gradflow/testing/status_matchers.h"
#include "gradflow/testing/tensor_matchers.h"
#include "tests/testing/op_rows.h"
#include "tests/testing/subprocess.h"

namespace gradflow::testing {
namespace {

constexpr char kRows[] = GRADFLOW_TEST_DATA_DIR "/gradient_rows.txt";

// The node of a row, with float64 or float inputs that are fed.
struct RowGraph {
  Scope scope = Scope::NewRootScope();
  OutputList xs;
  std::vector<Tensor> values;
  OutputList ys;
};

bool HasNote(const std::vector<std::string>& row, absl::string_view note) {
  return row.size() > 3 && absl::StrContains(row[3], note);
}

DataType RealType(const std::vector<std::string>& row) {
  return HasNote(row, "floats") ? DT_FLOAT : DT_DOUBLE;
}

// Replaces the complex constant `node` by Complex of two constants, node/re and node/im. Real
// numbers get imaginary parts, because otherwise conjugates would not matter.
void SplitConstant(const Tensor& value, NodeDef* node, GraphDef* graph) {
  Tensor parts[2] = {Tensor(DT_DOUBLE, value.shape()), Tensor(DT_DOUBLE, value.shape())};
  bool is_real = true;
  for (int64_t i = 0; i < value.NumElements(); ++i) {
    parts[0].flat<double>()(i) = value.flat<complex128>()(i).real();
    parts[1].flat<double>()(i) = value.flat<complex128>()(i).imag();
    is_real &= value.flat<complex128>()(i).imag() == 0;
  }
  for (int64_t i = 0; is_real && i < value.NumElements(); ++i) {
    parts[1].flat<double>()(i) = 0.5 * std::cos(static_cast<double>(i));
  }
  const std::string name = node->name();
  *node = NodeDef();
  node->set_name(name);
  node->set_op("Complex");
  AddNodeAttr("T", DT_DOUBLE, node);
  AddNodeAttr("Tout", DT_COMPLEX128, node);
  for (int i = 0; i < 2; ++i) {
    NodeDef part;
    part.set_name(absl::StrCat(name, i == 0 ? "/re" : "/im"));
    part.set_op("Const");
    AddNodeAttr("dtype", DT_DOUBLE, &part);
    AddNodeAttr("value", parts[i], &part);
    node->add_input(part.name());
    graph->mutable_node()->Add(std::move(part));
  }
}

void Make(const std::vector<std::string>& row, RowGraph* graph) {
  const std::vector<Tensor> inputs = ParseTensors(row[2]);
  GraphDef def;
  std::vector<std::pair<std::string, Tensor>> feeds;
  AddOpRow("n", row[0], row[1], inputs, Knowledge::kValues, &def, &feeds);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].dtype() != DT_COMPLEX128) continue;
    SplitConstant(inputs[i], def.mutable_node(static_cast<int>(i)), &def);
  }
  GRADFLOW_ASSERT_OK(ImportGraphDef({}, def, graph->scope.graph()));
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool is_complex = inputs[i].dtype() == DT_COMPLEX128;
    if (inputs[i].dtype() != RealType(row) && !is_complex) continue;
    const bool only = HasNote(row, "only ");
    if (only && !HasNote(row, absl::StrCat("only ", i))) continue;
    const Node* const x = graph->scope.graph()->FindNode(absl::StrCat("n/i", i));
    ASSERT_NE(x, nullptr);
    if (!is_complex) {
      graph->xs.emplace_back(x, 0);
      graph->values.push_back(inputs[i]);
      continue;
    }
    for (int part = 0; part < 2; ++part) {
      const Output source = Operation(x).input(part);
      graph->xs.push_back(source);
      Tensor value;
      GRADFLOW_ASSERT_OK(source.node()->GetAttr("value", &value));
      graph->values.push_back(value);
    }
  }
  const Node* const node = graph->scope.graph()->FindNode("n");
  ASSERT_NE(node, nullptr);
  for (int i = 0; i < node->num_outputs(); ++i) {
    const Output y(node, i);
    if (HasNote(row, "output ") && !HasNote(row, absl::StrCat("output ", i))) continue;
    if (y.type() == RealType(row)) graph->ys.push_back(y);
    if (y.type() == DT_COMPLEX128) {
      graph->ys.push_back(ops::Real(graph->scope, y, ops::Real::Tout(DT_DOUBLE)));
      graph->ys.push_back(ops::Imag(graph->scope, y, ops::Imag::Tout(DT_DOUBLE)));
    }
  }
  ASSERT_FALSE(graph->ys.empty());
}

// Returns the gradient function of `ys`. Missing gradients are zeros.
GradientFn GradientsOf(const OutputList& ys, const OutputList& xs) {
  return [ys, xs](const Scope& scope, const OutputList& dys) {
    std::vector<Output> dxs;
    scope.UpdateStatus(AddSymbolicGradients(scope, ys, xs, dys, &dxs));
    for (size_t i = 0; i < dxs.size(); ++i) {
      if (IsNoGradient(dxs[i])) dxs[i] = ops::ZerosLike(scope, xs[i]);
    }
    return dxs;
  };
}

double Allowed(const GradientError& error) { return 1e-7 * std::max(1.0, error.largest); }
double AllowedOf(const std::vector<std::string>& row, double of_doubles, double largest) {
  return (HasNote(row, "floats") ? 5e-3 : of_doubles) * std::max(1.0, largest);
}

// Returns a tensor of the shape of `x` with the elements cos(start), cos(start + 1), ...
Output Cosines(const Scope& scope, const Output& x, double start) {
  const Output end = ops::Add(scope, ops::Cast(scope, ops::Size(scope, x), DT_DOUBLE), start);
  const Output range = ops::Range(scope, start, end, 1.0);
  const Output cosines = ops::Reshape(scope, ops::Cos(scope, range), ops::Shape(scope, x));
  return x.type() == DT_DOUBLE ? cosines : Output(ops::Cast(scope, cosines, x.type()));
}

double Element(const Tensor& tensor, int64_t i) {
  return tensor.dtype() == DT_FLOAT ? double{tensor.flat<float>()(i)} : tensor.flat<double>()(i);
}
ClientSession::FeedType FeedsOf(const RowGraph& graph) {
  ClientSession::FeedType feeds;
  for (size_t i = 0; i < graph.xs.size(); ++i) {
    feeds.insert_or_assign(graph.xs[i], Input::Initializer(graph.values[i]));
  }
  return feeds;
}

const std::vector<std::vector<std::string>>& Rows() {
  static const auto& rows = *new std::vector<std::vector<std::string>>(ReadRows(kRows));
  return rows;
}

// The parameter is the number of a row, because GoogleTest prints the parameters of all tests
// whenever a program starts.
class GradientRowTest : public ::testing::TestWithParam<size_t> {
 protected:
  static const std::vector<std::string>& row() { return Rows()[GetParam()]; }
};

TEST_P(GradientRowTest, AgreesWithDifferences) {
  RowGraph graph;
  Make(row(), &graph);
  const auto error = FindGradientError(graph.scope, graph.xs, graph.values, graph.ys,
                                       GradientsOf(graph.ys, graph.xs));
  ASSERT_TRUE(error.ok()) << error.status();
  EXPECT_LE(error->max_error, AllowedOf(row(), 1e-7, error->largest)) << error->DebugString();
}

// Differentiates the gradients of a weighted sum of the outputs once more.
TEST_P(GradientRowTest, AgreesWithDifferencesInSecondOrder) {
  if (HasNote(row(), "first order")) return;
  RowGraph graph;
  Make(row(), &graph);
  std::vector<Output> weights;
  for (const Output& y : graph.ys) weights.push_back(Cosines(graph.scope, y, 0));
  std::vector<Output> first;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(graph.scope, graph.ys, graph.xs, weights, &first));
  OutputList ys;
  for (const Output& dx : first) {
    if (!IsNoGradient(dx)) ys.push_back(dx);
  }
  ASSERT_FALSE(ys.empty());
  GradientOptions options;
  if (!HasNote(row(), "floats")) options.delta = 1e-4;
  const auto error = FindGradientError(graph.scope, graph.xs, graph.values, ys,
                                       GradientsOf(ys, graph.xs), options);
  ASSERT_TRUE(error.ok()) << error.status();
  EXPECT_LE(error->max_error, AllowedOf(row(), 3e-6, error->largest)) << error->DebugString();
}

// The gradients for 3 dy - 2 dy' equal the same combination of the gradients for dy and dy'. Some
// elements of dy and dy' are 0 or negative.
TEST_P(GradientRowTest, IsLinearInTheGradientsOfOutputs) {
  RowGraph graph;
  Make(row(), &graph);
  OutputList dys[3];
  OutputList fetches;
  for (size_t k = 0; k < graph.ys.size(); ++k) {
    const Output& y = graph.ys[k];
    const double start = static_cast<double>(k);
    // In one of four elements both are 0. In other elements only one of them is 0.
    const auto with_zeros = [&](double shift) -> Output {
      const Output c = Cosines(graph.scope, y, start + shift);
      const Output limit = ops::Cast(graph.scope, ops::Const(graph.scope, 0.6), y.type());
      return ops::SelectV2(graph.scope, ops::Less(graph.scope, ops::Abs(graph.scope, c), limit),
                           ops::ZerosLike(graph.scope, c), c);
    };
    const auto number = [&](double value) -> Output {
      return ops::Cast(graph.scope, ops::Const(graph.scope, value), y.type());
    };
    dys[0].push_back(with_zeros(0));
    dys[1].push_back(with_zeros(2));
    dys[2].push_back(ops::Sub(graph.scope, ops::Mul(graph.scope, number(3), dys[0][k]),
                              ops::Mul(graph.scope, number(2), dys[1][k])));
  }
  for (const OutputList& dy : dys) {
    const OutputList dxs = GradientsOf(graph.ys, graph.xs)(graph.scope, dy);
    fetches.insert(fetches.end(), dxs.begin(), dxs.end());
  }
  GRADFLOW_ASSERT_OK(graph.scope.status());
  std::vector<Tensor> dxs;
  GRADFLOW_ASSERT_OK(ClientSession(graph.scope).Run(FeedsOf(graph), fetches, &dxs));
  const size_t n = graph.xs.size();
  const double allowed = HasNote(row(), "floats") ? 1e-4 : 1e-10;
  for (size_t x = 0; x < n; ++x) {
    for (int64_t i = 0; i < graph.values[x].NumElements(); ++i) {
      const double expected = 3 * Element(dxs[x], i) - 2 * Element(dxs[n + x], i);
      const double scale =
          std::max({1.0, std::abs(Element(dxs[x], i)), std::abs(Element(dxs[n + x], i))});
      EXPECT_NEAR(Element(dxs[2 * n + x], i), expected, allowed * scale) << x << " " << i;
    }
  }
}

// Forward mode differentiates the gradients with respect to the gradients of the outputs.
TEST_P(GradientRowTest, AgreesWithDifferencesInForwardMode) {
  RowGraph graph;
  Make(row(), &graph);
  OutputList vs;
  for (size_t i = 0; i < graph.xs.size(); ++i) {
    vs.push_back(Cosines(graph.scope, graph.xs[i], static_cast<double>(i)));
  }
  OutputList products;
  const absl::Status status = JacobianVectorProduct(graph.scope, graph.ys, graph.xs, vs, &products);
  // Some gradient ops have no gradient.
  if (HasNote(row(), "first order") && absl::IsUnimplemented(status)) return;
  GRADFLOW_ASSERT_OK(status);
  // Fetches the vectors and the products. The products are compared with differences along the
  // vectors.
  OutputList fetches = vs;
  for (size_t i = 0; i < products.size(); ++i) {
    fetches.push_back(IsNoGradient(products[i]) ? Output(ops::ZerosLike(graph.scope, graph.ys[i]))
                                                : products[i]);
  }
  ClientSession session(graph.scope);
  std::vector<Tensor> values;
  GRADFLOW_ASSERT_OK(session.Run(FeedsOf(graph), fetches, &values));
  const double step = HasNote(row(), "floats") ? 1e-2 : 1e-5;
  std::vector<Tensor> ys[2];
  for (const int side : {0, 1}) {
    RowGraph moved = graph;
    for (size_t i = 0; i < graph.xs.size(); ++i) {
      GRADFLOW_ASSERT_OK_AND_ASSIGN(moved.values[i], graph.values[i].DeepCopy());
      for (int64_t k = 0; k < moved.values[i].NumElements(); ++k) {
        const double value =
            Element(graph.values[i], k) + (side == 0 ? -step : step) * Element(values[i], k);
        if (moved.values[i].dtype() == DT_FLOAT) {
          moved.values[i].flat<float>()(k) = static_cast<float>(value);
        } else {
          moved.values[i].flat<double>()(k) = value;
        }
      }
    }
    GRADFLOW_ASSERT_OK(session.Run(FeedsOf(moved), graph.ys, &ys[side]));
  }
  for (size_t y = 0; y < graph.ys.size(); ++y) {
    const Tensor& product = values[graph.xs.size() + y];
    ASSERT_EQ(product.shape(), ys[0][y].shape());
    for (int64_t i = 0; i < product.NumElements(); ++i) {
      const double expected = (Element(ys[1][y], i) - Element(ys[0][y], i)) / (2 * step);
      EXPECT_NEAR(Element(product, i), expected, AllowedOf(row(), 1e-6, std::abs(expected)))
          << y << " " << i;
    }
  }
}

std::string RowName(const ::testing::TestParamInfo<size_t>& info) {
  return absl::StrCat(Rows()[info.param][0], "_", info.param);
}
INSTANTIATE_TEST_SUITE_P(Rows, GradientRowTest, ::testing::Range<size_t>(0, Rows().size()),
                         RowName);

// ---- Completeness ----

// Ops without a row. They are tested below, or in variables_test.cc and gradients_test.cc. The
// value states if their gradients are differentiable.
const std::map<std::string, bool>& Elsewhere() {
  static const auto& ops = *new std::map<std::string, bool>{
      {"BlockLSTM", false},
      {"BlockLSTMV2", false},
      {"Cholesky", true},
      {"CropAndResize", false},
      {"CropAndResizeGradImage", false},
      {"FakeQuantWithMinMaxArgs", true},
      {"FakeQuantWithMinMaxArgsGradient", true},
      {"FakeQuantWithMinMaxVars", true},
      {"FakeQuantWithMinMaxVarsGradient", true},
      {"FakeQuantWithMinMaxVarsPerChannel", true},
      {"FakeQuantWithMinMaxVarsPerChannelGradient", true},
      {"GRUBlockCell", false},
      {"LSTMBlockCell", false},
      {"PreventGradient", false},
      {"QuantizeAndDequantize", true},
      {"QuantizeAndDequantizeV2", true},
      {"QuantizeAndDequantizeV3", true},
      {"QuantizeAndDequantizeV4", true},
      {"QuantizeAndDequantizeV4Grad", true},
      {"RandomGamma", false},
      {"ReadVariableOp", true},
      {"RefIdentity", true},
      {"ResourceGather", true},
      {"ResourceGatherNd", true},
      {"StatelessParameterizedTruncatedNormal", true},
      {"StatelessRandomGammaV2", false},
      {"StatelessRandomGammaV3", false},
      // In list_test.cc.
      {"OptionalFromValue", true},
      {"OptionalGetValue", true},
      {"RaggedTensorFromVariant", true},
      {"RaggedTensorToVariant", false},
      {"TensorListConcat", true},
      {"TensorListConcatLists", true},
      {"TensorListConcatV2", true},
      {"TensorListFromTensor", true},
      {"TensorListGather", true},
      {"TensorListGetItem", true},
      {"TensorListPopBack", true},
      {"TensorListPushBack", true},
      {"TensorListPushBackBatch", true},
      {"TensorListResize", true},
      {"TensorListScatter", true},
      {"TensorListScatterIntoExistingList", true},
      {"TensorListScatterV2", true},
      {"TensorListSetItem", true},
      {"TensorListSplit", true},
      {"TensorListStack", true},
  };
  return ops;
}

TEST(GradientRows, CoverEveryGradientFunction) {
  std::set<std::string> rows;
  for (const auto& row : Rows()) rows.insert(row[0]);
  for (const std::string& op : GradientRegistry::Global().DifferentiableOps()) {
    EXPECT_TRUE(rows.count(op) + Elsewhere().count(op) == 1) << op << " has no row";
    EXPECT_NE(GlobalRegistry().FindOp(op), nullptr) << op;
  }
}

// Returns true if a kernel supports the row with complex inputs.
bool HasComplexKernel(const std::vector<std::string>& row) {
  const std::string inputs =
      absl::StrReplaceAll(row[2], {{"double[", "complex128["}, {"float[", "complex64["}});
  GraphDef def;
  std::vector<std::pair<std::string, Tensor>> feeds;
  AddOpRow("n", row[0], row[1], ParseTensors(inputs), Knowledge::kNothing, &def, &feeds);
  const Scope scope = Scope::NewRootScope();
  if (!ImportGraphDef({}, def, scope.graph()).ok()) return false;
  return GlobalRegistry().FindKernel(scope.graph()->FindNode("n")->def()).ok();
}

TEST(GradientRows, IncludeComplexNumbers) {
  std::map<std::string, std::pair<bool, bool>> rows;
  for (const auto& row : Rows()) {
    auto& [is_complex, may_be_complex] = rows[row[0]];
    is_complex |= absl::StrContains(row[1] + row[2], "complex") ||
                  absl::StrContains(row[1] + row[2], "COMPLEX");
    may_be_complex = may_be_complex || HasComplexKernel(row);
  }
  for (const auto& [op, row] : rows) {
    const auto& [is_complex, may_be_complex] = row;
    EXPECT_TRUE(is_complex || !may_be_complex) << op << " has no row of complex numbers";
  }
}

// ---- Every op of floating-point or complex numbers has a gradient or a declaration that it has no
// gradient ----

// Gradients do not go through calls, branches and loops yet.
bool IsControlFlow(const OpRegistration& op) {
  const std::string& name = op.def().name();
  return op.functional() != FunctionalOp::kNone || op.api().group == "control_flow_ops" ||
         absl::StartsWith(name, "TensorArray") || absl::StartsWith(name, "Stack");
}

std::vector<std::string> OpsOfNumbers() {
  std::vector<std::string> names;
  const auto is_number = [](const OpDef& def, const OpDef::ArgDef& arg) {
    const auto continuous = [](int dtype) {
      return DataTypeIsFloating(static_cast<DataType>(dtype)) ||
             DataTypeIsComplex(static_cast<DataType>(dtype));
    };
    const std::string& name = arg.type_attr().empty() ? arg.type_list_attr() : arg.type_attr();
    if (name.empty()) return continuous(arg.type());
    for (const auto& attr : def.attr()) {
      if (attr.name() != name) continue;
      const auto& allowed = attr.allowed_values().list().type();
      return allowed.empty() || std::any_of(allowed.begin(), allowed.end(), continuous);
    }
    return true;
  };
  const auto any = [&](const OpDef& def, const auto& args) {
    return std::any_of(args.begin(), args.end(),
                       [&](const OpDef::ArgDef& arg) { return is_number(def, arg); });
  };
  // TensorFlow has no gradients of these ops either, except for ResizeArea (docs/gradients.md).
  const std::set<std::string> without = {"AudioSpectrogram",
                                         "Mfcc",
                                         "BlockLSTMGrad",
                                         "BlockLSTMGradV2",
                                         "CropAndResizeGradBoxes",
                                         "FractionalMaxPoolGrad",
                                         "FusedPadConv2D",
                                         "FusedResizeAndPadConv2D",
                                         "GRUBlockCellGrad",
                                         "IgammaGradA",
                                         "LSTMBlockCellGrad",
                                         "RandomGammaGrad",
                                         "ResizeArea",
                                         "SymbolicGradient",
                                         "SparseFillEmptyRowsGrad",
                                         "SparseReduceMax",
                                         "SparseReduceMaxSparse",
                                         "SparseReduceSumSparse",
                                         "SparseSliceGrad",
                                         "SparseSparseMaximum",
                                         "SparseSparseMinimum",
                                         "SparseSplit",
                                         "DenseCountSparseOutput",
                                         "RaggedCountSparseOutput",
                                         "RaggedFillEmptyRowsGrad",
                                         "SparseCountSparseOutput"};
  for (const OpRegistration* op : GlobalRegistry().Ops()) {
    const OpDef& def = op->def();
    if (IsControlFlow(*op)) continue;
    if (without.count(def.name()) > 0) continue;
    // The second name of an op, which early versions of TensorFlow had (BatchCholesky).
    const absl::string_view first_name = absl::StripPrefix(def.name(), "Batch");
    if (def.has_deprecation() && first_name != def.name() &&
        GlobalRegistry().FindOp(first_name) != nullptr) {
      continue;
    }
    if (any(def, def.input_arg()) && any(def, def.output_arg())) names.push_back(def.name());
  }
  return names;
}

class OpOfNumbersTest : public ::testing::TestWithParam<std::string> {};
TEST_P(OpOfNumbersTest, HasAGradientOrADeclarationWithoutOne) {
  EXPECT_TRUE(GradientRegistry::Global().Find(GetParam()).ok())
      << GetParam() << ": register its gradient function in gradients/, or RegisterNoGradient";
}
INSTANTIATE_TEST_SUITE_P(Ops, OpOfNumbersTest, ::testing::ValuesIn(OpsOfNumbers()),
                         [](const auto& info) { return info.param; });

// ---- docs/gradients.md ends with a table of the differentiable ops ----

// Returns the ops that have gradients in TensorFlow's C++ or Python.
std::set<std::string> TensorflowOps(absl::string_view language) {
  const std::string text = ReadFile(GRADFLOW_TEST_DATA_DIR "/tensorflow_gradients.txt");
  const std::vector<std::string> parts = absl::StrSplit(text, absl::StrCat("\n", language, ":\n"));
  const std::vector<std::string> paragraphs = absl::StrSplit(parts.at(1), "\n\n");
  std::set<std::string> ops;
  for (const absl::string_view word :
       absl::StrSplit(paragraphs[0], absl::ByAnyChar(" \n"), absl::SkipEmpty())) {
    ops.emplace(word);
  }
  return ops;
}

std::string TableOfGradients() {
  std::set<std::string> second;
  for (const auto& row : Rows()) {
    if (!HasNote(row, "first order")) second.insert(row[0]);
  }
  const std::set<std::string> cc = TensorflowOps("C++");
  const std::set<std::string> python = TensorflowOps("Python");
  const auto yes = [](bool is) { return is ? "yes" : ""; };
  std::string table =
      "| Op | First order | Second order | TensorFlow's C++ | TensorFlow's Python "
      "|\n|---|---|---|---|---|\n";
  for (const std::string& op : GradientRegistry::Global().DifferentiableOps()) {
    const auto it = Elsewhere().find(op);
    const bool is_second = it != Elsewhere().end() ? it->second : second.count(op) > 0;
    absl::StrAppend(&table, "| `", op, "` | ", op == "PreventGradient" ? "error" : "yes", " | ",
                    yes(is_second), " | ", yes(cc.count(op) > 0), " | ", yes(python.count(op) > 0),
                    " |\n");
  }
  return table;
}

// GRADFLOW_UPDATE_GOLDEN=1 replaces the table.
TEST(GradientDocs, HaveTheTable) {
  const char* const path = GRADFLOW_TEST_DATA_DIR "/../../docs/gradients.md";
  constexpr char kTitle[] = "## Ops with a gradient\n";
  const std::string text = ReadFile(path);
  const size_t title = text.find(kTitle);
  ASSERT_NE(title, std::string::npos);
  const size_t table = text.find("\n| Op ", title) + 1;
  const std::string expected = TableOfGradients();
  if (std::getenv("GRADFLOW_UPDATE_GOLDEN") != nullptr) {
    WriteFile(path, text.substr(0, table) + expected);
    return;
  }
  EXPECT_EQ(text.substr(table), expected)
      << "run again with GRADFLOW_UPDATE_GOLDEN=1 to update docs/gradients.md";
}

// Every op that TensorFlow differentiates in C++ or Python also has a gradient here, if gradflow
// has the op.
TEST(GradientDocs, CoverTensorflowsGradients) {
  for (const char* const language : {"C++", "Python"}) {
    for (const std::string& op : TensorflowOps(language)) {
      const OpRegistration* const registration = GlobalRegistry().FindOp(op);
      if (registration == nullptr || IsControlFlow(*registration)) continue;
      EXPECT_TRUE(GradientRegistry::Global().Find(op).ok()) << op;
    }
  }
}

// ---- Gradients that exist only for float ----

TEST(GradientFunctions, LrnReadsItsAttributes) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Placeholder(scope, DT_FLOAT);
  const auto attrs = ops::LRN::DepthRadius(1).Bias(1.5f).Alpha(0.5f).Beta(0.75f);
  const Output y = ops::LRN(scope, x, attrs);
  const TensorShape shape = {2, 1, 2, 5};
  Tensor value(DT_FLOAT, shape);
  for (int64_t i = 0; i < value.NumElements(); ++i) {
    value.flat<float>()(i) = static_cast<float>(i % 7) * 0.5f - 1.5f;
  }
  double error = 1;
  GRADFLOW_ASSERT_OK(ComputeGradientError(scope, x, value, y, shape, &error));
  EXPECT_LT(error, 2e-3);
}

// Returns the largest error of the gradient of y with respect to x at distinct numbers.
double GradientErrorOfFloats(const Scope& scope, const Output& x, const TensorShape& shape,
                             const Output& y, const TensorShape& y_shape) {
  Tensor value(DT_FLOAT, shape);
  const int64_t n = value.NumElements();
  for (int64_t i = 0; i < n; ++i) {
    // The elements are not close to each other.
    value.flat<float>()(i) = static_cast<float>(i * 7 % n) * 0.25f - 1;
  }
  double error = 1;
  GRADFLOW_EXPECT_OK(ComputeGradientError(scope, x, value, y, y_shape, &error));
  return error;
}

TEST(GradientFunctions, PooledVolumesAgreeWithDifferences) {
  const TensorShape in = {1, 3, 3, 2, 1};
  const std::vector<int> size = {1, 2, 2, 2, 1};
  const std::vector<int> stride = {1, 2, 1, 1, 1};
  {
    const Scope scope = Scope::NewRootScope();
    const Output x = ops::Placeholder(scope, DT_FLOAT);
    const Output y = ops::MaxPool3D(scope, x, size, stride, "VALID");
    EXPECT_LT(GradientErrorOfFloats(scope, x, in, y, {1, 1, 2, 1, 1}), 2e-3);
  }
  // The gradient and its own gradient are linear in the gradients of the outputs.
  Tensor input(DT_FLOAT, in);
  for (int64_t i = 0; i < 18; ++i) input.flat<float>()(i) = static_cast<float>(i * 7 % 18);
  for (const bool second : {false, true}) {
    const Scope scope = Scope::NewRootScope();
    const Output constant = ops::Const(scope, input);
    const Output pooled = ops::MaxPool3D(scope, constant, size, stride, "VALID");
    const Output g = ops::Placeholder(scope, DT_FLOAT);
    const Output y =
        second ? Output(ops::MaxPool3DGradGrad(scope, constant, pooled, g, size, stride, "VALID"))
               : Output(ops::MaxPool3DGrad(scope, constant, pooled, g, size, stride, "VALID"));
    const TensorShape small = {1, 1, 2, 1, 1};
    EXPECT_LT(GradientErrorOfFloats(scope, g, second ? in : small, y, second ? small : in), 2e-3);
  }
}

TEST(GradientFunctions, ResizedImagesAgreeWithDifferences) {
  const TensorShape in = {1, 3, 2, 2};
  const TensorShape out = {1, 4, 5, 2};
  for (const bool half : {false, true}) {
    const Scope scope = Scope::NewRootScope();
    const Output x = ops::Placeholder(scope, DT_FLOAT);
    const Output size = ops::Const(scope, {4, 5});
    const Output linear =
        ops::ResizeBilinear(scope, x, size, ops::ResizeBilinear::HalfPixelCenters(half));
    EXPECT_LT(GradientErrorOfFloats(scope, x, in, linear, out), 2e-3);
    const Output cubic =
        ops::ResizeBicubic(scope, x, size, ops::ResizeBicubic::HalfPixelCenters(half));
    EXPECT_LT(GradientErrorOfFloats(scope, x, in, cubic, out), 2e-3);
    const Output scaled = ops::ScaleAndTranslate(
        scope, x, size, ops::Const(scope, {1.25f, 2.5f}), ops::Const(scope, {0.25f, -0.5f}),
        ops::ScaleAndTranslate::KernelType("triangle").Antialias(half));
    EXPECT_LT(GradientErrorOfFloats(scope, x, in, scaled, out), 2e-3);
    // Second order: the gradient op is linear in its first input.
    const Output images = ops::Const(scope, Tensor(DT_FLOAT, {1, 4, 5, 2}));
    const Output linear_grad =
        ops::ResizeBilinearGrad(scope, x, images, ops::ResizeBilinearGrad::HalfPixelCenters(half));
    EXPECT_LT(GradientErrorOfFloats(scope, x, in, linear_grad, out), 2e-3);
    const Output cubic_grad =
        ops::ResizeBicubicGrad(scope, x, images, ops::ResizeBicubicGrad::HalfPixelCenters(half));
    EXPECT_LT(GradientErrorOfFloats(scope, x, in, cubic_grad, out), 2e-3);
    const Output scaled_grad = ops::ScaleAndTranslateGrad(
        scope, x, images, ops::Const(scope, {1.25f, 2.5f}), ops::Const(scope, {0.25f, -0.5f}),
        ops::ScaleAndTranslateGrad::KernelType("triangle").Antialias(half));
    EXPECT_LT(GradientErrorOfFloats(scope, x, in, scaled_grad, out), 2e-3);
  }
}

TEST(GradientFunctions, AdjustedColorsAgreeWithDifferences) {
  using Adjust = Output (*)(const Scope&, const Output&, const Output&);
  const std::pair<Adjust, const char*> adjustments[] = {
      {[](const Scope& s, const Output& x, const Output& factor) -> Output {
         return ops::AdjustHue(s, x, factor);
       },
       "float[]=0.3"},
      {[](const Scope& s, const Output& x, const Output& factor) -> Output {
         return ops::AdjustSaturation(s, x, factor);
       },
       "float[]=1.25"},
      {[](const Scope& s, const Output& x, const Output& factor) -> Output {
         return ops::AdjustContrastv2(s, x, factor);
       },
       "float[]=1.5"}};
  for (const auto& [adjust, factor] : adjustments) {
    SCOPED_TRACE(factor);
    const Scope scope = Scope::NewRootScope();
    const OutputList xs = {ops::Placeholder(scope, DT_FLOAT), ops::Placeholder(scope, DT_FLOAT)};
    const std::vector<Tensor> values = {
        ParseTensor("float[1,2,2,3]={0.2, 0.5, 0.9, 0.8, 0.2, 0.4, 0.3, 0.9, 0.15, 0.7, 0.6, 0.2}"),
        ParseTensor(factor)};
    const Output y = adjust(scope, xs[0], xs[1]);
    const auto error = FindGradientError(scope, xs, values, {y}, GradientsOf({y}, xs));
    ASSERT_TRUE(error.ok()) << error.status();
    EXPECT_LE(error->max_error, 5e-3 * error->largest) << error->DebugString();
    // Images in half have gradients in half.
    const Output half = ops::Cast(scope, ops::Const(scope, values[0]), DT_HALF);
    std::vector<Output> gradients;
    GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {adjust(scope, half, ops::Const(scope, 0.5f))},
                                            {half}, &gradients));
    EXPECT_EQ(gradients[0].type(), DT_HALF);
  }
}

// At equal colors, the expected derivatives come from TensorFlow 2.21.
TEST(GradientFunctions, HuesOfEqualChannelsAgreeWithTensorFlow) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Const(
      scope, ParseTensor("float[4,3]={0.5, 0.5, 0.25, 0.25, 0.5, 0.5, 0.5, 0.5, 0.5, 0, 0, 0}"));
  const Output dy =
      ops::Const(scope, ParseTensor("float[4,3]={1, 2, 4, 1, 2, 4, 1, 2, 4, 1, 2, 4}"));
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {ops::RGBToHSV(scope, x)}, {x}, {dy}, &gradients));
  std::vector<Tensor> values;
  GRADFLOW_ASSERT_OK(ClientSession(scope).Run(gradients, &values));
  EXPECT_THAT(
      values[0],
      TensorNear(ParseTensor(
          "float[4,3]={5.333333, 0.6666667, -4, -4, 5.333333, 0.6666667, 8, 0, -4, 4, 0, 0}")));
}

TEST(GradientFunctions, CropsAgreeWithDifferences) {
  for (const char* const method : {"bilinear", "nearest"}) {
    const Scope scope = Scope::NewRootScope();
    const Output x = ops::Placeholder(scope, DT_FLOAT);
    const Output boxes = ops::Const(scope, {{0.1f, 0.15f, 0.7f, 0.8f}, {0.9f, 0.3f, 0.2f, 0.6f}});
    const Output y =
        ops::CropAndResize(scope, x, boxes, ops::Const(scope, {0, 0}), ops::Const(scope, {2, 3}),
                           ops::CropAndResize::Method(method));
    EXPECT_LT(GradientErrorOfFloats(scope, x, {1, 4, 5, 1}, y, {2, 2, 3, 1}), 2e-3);
    // The gradient op is linear in its first input.
    const Output crops = ops::Placeholder(scope, DT_FLOAT);
    const Output image = ops::CropAndResizeGradImage(scope, crops, boxes, ops::Const(scope, {0, 0}),
                                                     ops::Const(scope, {1, 4, 5, 1}), DT_FLOAT,
                                                     ops::CropAndResizeGradImage::Method(method));
    EXPECT_LT(GradientErrorOfFloats(scope, crops, {2, 2, 3, 1}, image, {1, 4, 5, 1}), 2e-3);
  }
  // The gradient with respect to the boxes, for an image that is linear in each dimension.
  const Scope scope = Scope::NewRootScope();
  const Output boxes = ops::Placeholder(scope, DT_FLOAT);
  Tensor image(DT_FLOAT, {1, 9, 9, 1});
  for (int64_t i = 0; i < 81; ++i) {
    image.flat<float>()(i) = static_cast<float>(i % 9) - 0.5f * static_cast<float>(i / 9);
  }
  const Output y = ops::CropAndResize(scope, ops::Const(scope, image), boxes,
                                      ops::Const(scope, {0}), ops::Const(scope, {2, 3}));
  Tensor value(DT_FLOAT, {1, 4});
  const float bounds[] = {0.2f, 0.3f, 0.7f, 0.8f};
  std::copy_n(bounds, 4, value.flat<float>().data());
  double error = 1;
  GRADFLOW_ASSERT_OK(ComputeGradientError(scope, boxes, value, y, {1, 2, 3, 1}, &error));
  EXPECT_LT(error, 5e-3);
}

// ---- Broadcasting of shapes that only a run knows ----

TEST(GradientFunctions, SumsOverBroadcastDimensionsOfUnknownShapes) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Placeholder(scope, DT_DOUBLE);
  const Output y = ops::Placeholder(scope, DT_DOUBLE);
  const Output z = ops::Mul(scope, x, ops::Sub(scope, x, y));
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {z}, {x, y}, &gradients));
  struct Shapes {
    TensorShape x;
    TensorShape y;
    TensorShape z;
  };
  const std::vector<Shapes> all_shapes = {{{2, 3}, {2, 3}, {2, 3}},
                                          {{2, 1}, {3}, {2, 3}},
                                          {{}, {2, 2}, {2, 2}},
                                          {{4, 1, 3}, {2, 1}, {4, 2, 3}},
                                          {{1}, {1, 1}, {1, 1}}};
  const auto gradient = [&](const Scope& s, const OutputList& dys) {
    std::vector<Output> dxs;
    s.UpdateStatus(AddSymbolicGradients(s, {z}, {x, y}, dys, &dxs));
    return dxs;
  };
  for (const Shapes& shapes : all_shapes) {
    double error = 1;
    GRADFLOW_ASSERT_OK(ComputeGradientError(scope, {x, y}, {shapes.x, shapes.y}, {z}, {shapes.z},
                                            gradient, &error));
    EXPECT_LT(error, 1e-8);
  }
}

// ---- Ops whose kernels support only float ----

TEST(GradientFunctions, BatchNormInInferenceReachesItsStatistics) {
  for (const char* const format : {"NHWC", "NCHW"}) {
    const Scope scope = Scope::NewRootScope();
    OutputList xs;
    for (int i = 0; i < 5; ++i) xs.push_back(ops::Placeholder(scope, DT_FLOAT));
    const auto norm = ops::FusedBatchNormV3(
        scope, xs[0], xs[1], xs[2], xs[3], xs[4],
        ops::FusedBatchNormV3::IsTraining(false).Epsilon(0.25f).DataFormat(format));
    const std::vector<Tensor> values = {
        ParseTensor("float[1,2,2,2]"), ParseTensor("float[2]={1.5, -2}"), ParseTensor("float[2]"),
        ParseTensor("float[2]={0.5, 0.25}"), ParseTensor("float[2]={0.75, 1.25}")};
    const auto error = FindGradientError(scope, xs, values, {norm.y}, GradientsOf({norm.y}, xs));
    ASSERT_TRUE(error.ok()) << error.status();
    EXPECT_LE(error->max_error, 2e-3 * error->largest) << error->DebugString();
  }
}

TEST(GradientFunctions, BatchNormInTrainingAgreesWithDifferences) {
  const Scope scope = Scope::NewRootScope();
  OutputList xs;
  for (int i = 0; i < 3; ++i) xs.push_back(ops::Placeholder(scope, DT_FLOAT));
  const std::vector<Tensor> values = {ParseTensor("float[2,2,1,2]={1, -2, 3, 0, -1, 4, 2, 1}"),
                                      ParseTensor("float[2]={1.5, -2}"), ParseTensor("float[2]")};
  const Output empty = ops::Const(scope, Tensor(DT_FLOAT, {0}));
  const auto v1 = ops::FusedBatchNorm(scope, xs[0], xs[1], xs[2], empty, empty);
  const auto v2 = ops::FusedBatchNormV2(scope, xs[0], xs[1], xs[2], empty, empty);
  const auto v3 = ops::FusedBatchNormV3(scope, xs[0], xs[1], xs[2], empty, empty);
  for (const Output& y : {v1.y, v2.y, v3.y}) {
    const auto error = FindGradientError(scope, xs, values, {y}, GradientsOf({y}, xs));
    ASSERT_TRUE(error.ok()) << error.status();
    EXPECT_LE(error->max_error, 2e-3 * error->largest) << error->DebugString();
  }
}

// Checks the gradients of all inputs but the first `skip`, through sums of the outputs `first` and
// `second`.
void ExpectGradientsOfCell(const char* op, const std::string& attrs, const std::string& inputs,
                           size_t skip, int first, int second) {
  SCOPED_TRACE(op);
  RowGraph graph;
  std::vector<Tensor> tensors = ParseTensors(inputs);
  GraphDef def;
  std::vector<std::pair<std::string, Tensor>> feeds;
  AddOpRow("n", op, attrs, tensors, Knowledge::kValues, &def, &feeds);
  GRADFLOW_ASSERT_OK(ImportGraphDef({}, def, graph.scope.graph()));
  const Node* const node = graph.scope.graph()->FindNode("n");
  ASSERT_NE(node, nullptr);
  for (size_t i = skip; i < tensors.size(); ++i) {
    graph.xs.push_back(Output(graph.scope.graph()->FindNode(absl::StrCat("n/i", i)), 0));
    graph.values.push_back(tensors[i]);
  }
  graph.ys = {Output(node, first), Output(node, second)};
  const auto error = FindGradientError(graph.scope, graph.xs, graph.values, graph.ys,
                                       GradientsOf(graph.ys, graph.xs));
  ASSERT_TRUE(error.ok()) << error.status();
  EXPECT_LE(error->max_error, 2e-3 * std::max(1.0, error->largest)) << error->DebugString();
  // The other outputs have no gradients.
  std::vector<Output> dxs;
  EXPECT_THAT(
      AddSymbolicGradients(graph.scope, {Output(node, 2)}, graph.xs, &dxs),
      StatusIs(absl::StatusCode::kUnimplemented, ::testing::HasSubstr("no gradient of output 2")));
}

TEST(GradientFunctions, RecurrentCellsAgreeWithDifferences) {
  const std::string weights =
      "float[2,2]={0.5, -1, 0.25, 0.75}; float[2,2]={-0.5, 0.25, 1, -0.75}; "
      "float[3,8]={0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 0.7, -0.8, 0.9, -1, 0.5, 0.25, -0.75, 0.3, 0.2, "
      "0.1, 0.6, 0.5, -0.4, 0.3, 0.2, -0.1, 0.35, 0.15}; float[2]={0.5, -0.5}; "
      "float[2]={0.25, 0.75}; float[2]={-0.25, 0.5}; float[8]";
  const std::string attrs = "cell_clip=0; use_peephole=true";
  ExpectGradientsOfCell("LSTMBlockCell", attrs, "float[2,1]={0.5, -0.25}; " + weights, 0, 1, 6);
  for (const char* const op : {"BlockLSTM", "BlockLSTMV2"}) {
    ExpectGradientsOfCell(op, attrs, "int64[]=2; float[2,2,1]={0.5, -0.25, 1, 0.75}; " + weights, 1,
                          1, 6);
  }
  ExpectGradientsOfCell("GRUBlockCell", "",
                        "float[2,1]={0.5, -0.25}; float[2,2]={0.5, -1, 0.25, 0.75}; "
                        "float[3,4]={0.1, -0.2, 0.3, 0.4, -0.5, 0.6, 0.7, -0.8, 0.9, -1, 0.5, "
                        "0.25}; float[3,2]={0.3, -0.4, 0.5, 0.6, -0.7, 0.8}; float[4]; float[2]",
                        0, 3, 3);
}

// GRUBlockCellGrad already computes the gradients of x and h_prev.
TEST(GradientFunctions, GruCellComputesGradientsOfInputsOnce) {
  const Scope scope = Scope::NewRootScope();
  OutputList xs;
  for (const char* const x :
       {"float[2,1]", "float[2,2]", "float[3,4]", "float[3,2]", "float[4]", "float[2]"}) {
    xs.push_back(ops::Const(scope, ParseTensor(x)));
  }
  const ops::GRUBlockCell cell(scope, xs[0], xs[1], xs[2], xs[3], xs[4], xs[5]);
  std::vector<Output> dxs;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {cell.h}, xs, &dxs));
  std::vector<std::string> products;
  for (int i = 0; i < scope.graph()->num_nodes(); ++i) {
    const std::string& op = scope.graph()->node(i)->type_string();
    if (op == "MatMul" || op == "SplitV") products.push_back(op);
  }
  EXPECT_THAT(products, ::testing::ElementsAre("MatMul", "MatMul"));
}

TEST(GradientFunctions, FakeQuantizationUsesItsGradientOps) {
  const Scope scope = Scope::NewRootScope();
  const Tensor x = ParseTensor("float[2,3]={-9, -1.25, 0, 1.5, 2.75, 9}");
  const Tensor dy = ParseTensor("float[2,3]={1, 2, 3, 4, 5, 6}");
  const Output input = ops::Const(scope, x);
  const auto run = [&](const Output& y, const OutputList& xs, const OutputList& expected) {
    std::vector<Output> dxs;
    GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {y}, xs, {ops::Const(scope, dy)}, &dxs));
    ClientSession session(scope);
    std::vector<Tensor> found;
    std::vector<Tensor> wanted;
    GRADFLOW_ASSERT_OK(session.Run(dxs, &found));
    GRADFLOW_ASSERT_OK(session.Run(expected, &wanted));
    for (size_t i = 0; i < found.size(); ++i) EXPECT_THAT(found[i], TensorEq(wanted[i]));
  };
  using Args = ops::FakeQuantWithMinMaxArgs;
  using ArgsGradient = ops::FakeQuantWithMinMaxArgsGradient;
  run(ops::FakeQuantWithMinMaxArgs(scope, input, Args::Min(-2).Max(3).NumBits(4).NarrowRange(true)),
      {input},
      {ArgsGradient(scope, ops::Const(scope, dy), input,
                    ArgsGradient::Min(-2).Max(3).NumBits(4).NarrowRange(true))});
  const Output min = ops::Const(scope, -2.0f);
  const Output max = ops::Const(scope, 3.0f);
  using Vars = ops::FakeQuantWithMinMaxVars;
  using VarsGradient = ops::FakeQuantWithMinMaxVarsGradient;
  const VarsGradient vars(scope, ops::Const(scope, dy), input, min, max,
                          VarsGradient::NumBits(4).NarrowRange(true));
  run(Vars(scope, input, min, max, Vars::NumBits(4).NarrowRange(true)), {input, min, max},
      {vars.backprops_wrt_input, vars.backprop_wrt_min, vars.backprop_wrt_max});
  const Output mins = ops::Const(scope, {-2.0f, -1.0f, -2.0f});
  const Output maxs = ops::Const(scope, {1.0f, 2.0f, 3.0f});
  using Channels = ops::FakeQuantWithMinMaxVarsPerChannel;
  using ChannelsGradient = ops::FakeQuantWithMinMaxVarsPerChannelGradient;
  const ChannelsGradient channels(scope, ops::Const(scope, dy), input, mins, maxs,
                                  ChannelsGradient::NumBits(4));
  run(Channels(scope, input, mins, maxs, Channels::NumBits(4)), {input, mins, maxs},
      {channels.backprops_wrt_input, channels.backprop_wrt_min, channels.backprop_wrt_max});
}

// ---- Second order of gradient ops of float ----

// In training, the gradient op also depends on x through the statistics.
TEST(GradientFunctions, BatchNormGradientsAreDifferentiable) {
  struct Case {
    const char* format;
    bool is_training;
    int version;
    const char* x;
  };
  const Case cases[] = {{"NHWC", true, 1, "2,2,1,2"},    {"NCHW", true, 2, "2,2,1,2"},
                        {"NHWC", true, 3, "2,2,1,2"},    {"NCDHW", true, 3, "2,2,1,2,1"},
                        {"NDHWC", true, 3, "1,2,2,1,2"}, {"NHWC", false, 1, "2,2,1,2"},
                        {"NCHW", false, 2, "2,2,1,2"},   {"NCHW", false, 3, "2,2,1,2"},
                        {"NDHWC", false, 3, "1,2,2,1,2"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(absl::StrCat(c.format, " ", c.is_training, " V", c.version));
    const Scope scope = Scope::NewRootScope();
    OutputList xs;
    for (int i = 0; i < 5; ++i) xs.push_back(ops::Placeholder(scope, DT_FLOAT));
    std::vector<Tensor> values = {
        ParseTensor(absl::StrCat("float[", c.x, "]={0.5, 1, -1, 2, 0.25, -0.5, 1.5, 1}")),
        ParseTensor(absl::StrCat("float[", c.x, "]={1, -2, 3, 0, -1, 4, 2, 1}")),
        ParseTensor("float[2]={1.5, -2}"), ParseTensor("float[2]={0.5, 0.25}"),
        ParseTensor("float[2]={0.75, 1.25}")};
    Output mean = xs[3];
    Output variance = xs[4];
    const float epsilon = 0.25f;
    if (c.is_training) {
      const Output empty = ops::Const(scope, Tensor(DT_FLOAT, {0}));
      using Norm = ops::FusedBatchNormV3;
      const Norm norm(scope, xs[1], xs[2], xs[2], empty, empty,
                      Norm::Epsilon(epsilon).DataFormat(c.format));
      mean = norm.reserve_space_1;
      variance = norm.reserve_space_2;
      xs.resize(3);
      values.resize(3);
    }
    OutputList ys;
    const auto add = [&](const auto& gradient) {
      ys = {gradient.x_backprop, gradient.scale_backprop, gradient.offset_backprop};
    };
    const auto attrs = [&](auto attrs) {
      return attrs.Epsilon(epsilon).DataFormat(c.format).IsTraining(c.is_training);
    };
    using V1 = ops::FusedBatchNormGrad;
    using V2 = ops::FusedBatchNormGradV2;
    using V3 = ops::FusedBatchNormGradV3;
    if (c.version == 1) add(V1(scope, xs[0], xs[1], xs[2], mean, variance, attrs(V1::Attrs())));
    if (c.version == 2) add(V2(scope, xs[0], xs[1], xs[2], mean, variance, attrs(V2::Attrs())));
    if (c.version == 3) {
      add(V3(scope, xs[0], xs[1], xs[2], mean, variance, mean, attrs(V3::Attrs())));
    }
    const auto error = FindGradientError(scope, xs, values, ys, GradientsOf(ys, xs));
    ASSERT_TRUE(error.ok()) << error.status();
    EXPECT_LE(error->max_error, 2e-3 * error->largest) << error->DebugString();
    // The gradients of the gradients are differentiable.
    OutputList weighted;
    std::vector<Output> weights;
    for (const Output& y : ys) weights.push_back(Cosines(scope, y, 1));
    GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, ys, xs, weights, &weighted));
    const auto next = FindGradientError(scope, xs, values, weighted, GradientsOf(weighted, xs));
    ASSERT_TRUE(next.ok()) << next.status();
    EXPECT_LE(next->max_error, 1e-2 * next->largest) << next->DebugString();
    // The gradient function also works if only one of the outputs has a gradient.
    const auto one = FindGradientError(scope, xs, values, {ys[1]}, GradientsOf({ys[1]}, xs));
    ASSERT_TRUE(one.ok()) << one.status();
    EXPECT_LE(one->max_error, 2e-3 * one->largest) << one->DebugString();
  }
}

// The second derivatives of a batch norm in half, whose statistics are float.
TEST(GradientFunctions, BatchNormGradientsOfHalfAreDifferentiable) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Const(scope, ParseTensor("half[2,2,1,2]={1, -2, 3, 0, -1, 4, 2, 1}"));
  const Output scale = ops::Const(scope, {1.5f, -2.0f});
  const Output empty = ops::Const(scope, Tensor(DT_FLOAT, {0}));
  const Output y = ops::FusedBatchNormV3(scope, x, scale, scale, empty, empty).y;
  std::vector<Output> first;
  std::vector<Output> second;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {ops::Square(scope, y)}, {x, scale}, &first));
  GRADFLOW_ASSERT_OK(
      AddSymbolicGradients(scope, {ops::Square(scope, first[0]), first[1]}, {x, scale}, &second));
  EXPECT_EQ(second[0].type(), DT_HALF);
  EXPECT_EQ(second[1].type(), DT_FLOAT);
  std::vector<Tensor> values;
  GRADFLOW_ASSERT_OK(ClientSession(scope).Run(second, &values));
}

TEST(GradientFunctions, LrnGradientsAreDifferentiable) {
  const Scope scope = Scope::NewRootScope();
  OutputList xs;
  for (int i = 0; i < 3; ++i) xs.push_back(ops::Placeholder(scope, DT_FLOAT));
  const std::vector<Tensor> values = {ParseTensor("float[1,1,2,3]={1, 2, -1, 0.5, -2, 1}"),
                                      ParseTensor("float[1,1,2,3]={0.5, 1, -1, 2, 0.25, 1.5}"),
                                      ParseTensor("float[1,1,2,3]={0.25, 1, -0.5, 1, 0.5, 0.75}")};
  for (const int radius : {0, 1, 7}) {
    const auto attrs = ops::LRNGrad::DepthRadius(radius).Bias(1.5f).Alpha(0.5f).Beta(0.75f);
    const Output y = ops::LRNGrad(scope, xs[0], xs[1], xs[2], attrs);
    const auto error = FindGradientError(scope, xs, values, {y}, GradientsOf({y}, xs));
    ASSERT_TRUE(error.ok()) << error.status();
    EXPECT_LE(error->max_error, 2e-3 * error->largest) << error->DebugString();
  }
}

// The gradient ops are linear in the gradients, and constant in the other inputs.
TEST(GradientFunctions, FakeQuantizationGradientsAreDifferentiable) {
  const Scope scope = Scope::NewRootScope();
  const Output dy = ops::Placeholder(scope, DT_FLOAT);
  const Output x = ops::Const(scope, ParseTensor("float[2,3]={-9, -1.25, 0, 1.5, 2.75, 9}"));
  const Tensor value = ParseTensor("float[2,3]={1, 2, 3, 4, 5, 6}");
  const auto check = [&](const OutputList& ys) {
    const auto error = FindGradientError(scope, {dy}, {value}, ys, GradientsOf(ys, {dy}));
    ASSERT_TRUE(error.ok()) << error.status();
    EXPECT_GE(error->largest, 0.9);
    EXPECT_LE(error->max_error, 2e-3) << error->DebugString();
  };
  using Args = ops::FakeQuantWithMinMaxArgsGradient;
  check({Args(scope, dy, x, Args::Min(-2).Max(3).NumBits(4).NarrowRange(true))});
  using Vars = ops::FakeQuantWithMinMaxVarsGradient;
  const Vars vars(scope, dy, x, ops::Const(scope, -2.0f), ops::Const(scope, 3.0f),
                  Vars::NumBits(4).NarrowRange(true));
  check({vars.backprops_wrt_input, vars.backprop_wrt_min, vars.backprop_wrt_max});
  check({vars.backprop_wrt_min});
  check({vars.backprop_wrt_max});
  using Channels = ops::FakeQuantWithMinMaxVarsPerChannelGradient;
  const Channels channels(scope, dy, x, ops::Const(scope, {-2.0f, -1.0f, -2.0f}),
                          ops::Const(scope, {1.0f, 2.0f, 3.0f}), Channels::NumBits(4));
  check({channels.backprops_wrt_input, channels.backprop_wrt_min, channels.backprop_wrt_max});
  // An empty range passes all gradients on.
  const Output zero = ops::Const(scope, 0.0f);
  const Vars none(scope, dy, x, zero, zero);
  check({none.backprops_wrt_input, none.backprop_wrt_min, none.backprop_wrt_max});
}

TEST(GradientFunctions, SparseMatMulAgreesWithDifferences) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      const Scope scope = Scope::NewRootScope();
      const OutputList xs = {ops::Placeholder(scope, DT_FLOAT), ops::Placeholder(scope, DT_FLOAT)};
      const Output y = ops::SparseMatMul(
          scope, xs[0], xs[1],
          ops::SparseMatMul::TransposeA(transpose_a).TransposeB(transpose_b).BIsSparse(true));
      const std::vector<Tensor> values = {
          ParseTensor(transpose_a ? "float[3,2]={1, 0, 2, -1, 0, 3}"
                                  : "float[2,3]={1, 0, 2, -1, 0, 3}"),
          ParseTensor(transpose_b ? "float[2,3]={2, 1, 0, 0, -1, 1}"
                                  : "float[3,2]={2, 1, 0, 0, -1, 1}")};
      const auto error = FindGradientError(scope, xs, values, {y}, GradientsOf({y}, xs));
      ASSERT_TRUE(error.ok()) << error.status();
      EXPECT_LE(error->max_error, 2e-3 * error->largest) << error->DebugString();
    }
  }
}

// Random numbers with a fixed seed move with alpha like quantiles, except near the jumps of the
// sampling method.
TEST(GradientFunctions, GammaNumbersMoveLikeQuantiles) {
  const Scope scope = Scope::NewRootScope();
  const Output alpha = ops::Const(scope, {0.5, 1.0, 4.0});
  const Output samples = ops::StatelessRandomGammaV2(scope, {2, 3}, {7, 8}, alpha);
  const Output dy = ops::Const(scope, ParseTensor("double[2,3]={1, 2, 3, 4, 5, 6}"));
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {samples}, {alpha}, {dy}, &gradients));
  const Output half_alpha = ops::Const(scope, ParseTensor("half[2]={1, 2}"));
  const Output half = ops::RandomGamma(scope, {3}, half_alpha);
  std::vector<Output> half_gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {half}, {half_alpha}, &half_gradients));
  std::vector<Tensor> values;
  GRADFLOW_ASSERT_OK(ClientSession(scope).Run({samples, gradients[0], half_gradients[0]}, &values));
  double expected[3] = {};
  for (int i = 0; i < 6; ++i) {
    const double a = i % 3 == 0 ? 0.5 : i % 3 == 1 ? 1.0 : 4.0;
    const double x = values[0].flat<double>()(i);
    // Computes dP/da by differences of P(a, x) = p.
    const Scope step = Scope::NewRootScope();
    std::vector<Tensor> p;
    const double h = 1e-5;
    GRADFLOW_ASSERT_OK(
        ClientSession(step).Run({ops::Igamma(step, a + h, x), ops::Igamma(step, a - h, x),
                                 ops::Igamma(step, a, x + h * x), ops::Igamma(step, a, x - h * x)},
                                &p));
    const auto value = [&](int k) { return p[k].scalar<double>()(); };
    const double slope = -(value(0) - value(1)) / (value(2) - value(3)) * x;
    expected[i % 3] += (i + 1) * slope;
  }
  for (int a = 0; a < 3; ++a) {
    EXPECT_NEAR(values[1].flat<double>()(a), expected[a], 1e-5 * std::abs(expected[a]));
  }
  EXPECT_EQ(values[2].shape(), TensorShape({2}));
}

TEST(GradientFunctions, TruncatedNormalNumbersMoveWithTheirParameters) {
  const Scope scope = Scope::NewRootScope();
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<std::vector<double>> values = {{1, -1}, {0.5, 2}, {0.5, -inf}, {2, 1}};
  std::vector<Output> parameters;
  for (const auto& pair : values) parameters.push_back(ops::Const(scope, {pair[0], pair[1]}));
  const Output x = ops::StatelessParameterizedTruncatedNormal(
      scope, {3, 2}, {7, 8}, parameters[0], parameters[1], parameters[2], parameters[3]);
  std::vector<Output> gradients;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {x}, parameters, &gradients));
  std::vector<Output> fetches = gradients;
  fetches.push_back(x);
  std::vector<Tensor> results;
  GRADFLOW_ASSERT_OK(ClientSession(scope).Run(fetches, &results));
  const auto phi = [](double t) { return 0.5 * std::erfc(-t / std::sqrt(2.0)); };
  for (int c = 0; c < 2; ++c) {
    const double mean = values[0][c];
    const double stddev = values[1][c];
    const double a = (values[2][c] - mean) / stddev;
    const double b = (values[3][c] - mean) / stddev;
    double expected[4] = {};
    for (int r = 0; r < 3; ++r) {
      const double z = (results[4].matrix<double>()(r, c) - mean) / stddev;
      const double cdf = (phi(z) - phi(a)) / (phi(b) - phi(a));
      expected[0] += 1;
      expected[1] += z;
      expected[2] += std::isinf(a) ? 0 : std::exp((z * z - a * a) / 2) * (1 - cdf);
      expected[3] += std::exp((z * z - b * b) / 2) * cdf;
    }
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(results[i].flat<double>()(c), expected[i], 1e-12);
  }
}

// The tested functions do not depend on the phases of the complex singular vectors.
TEST(GradientFunctions, ComplexSingularVectorsAgreeWithDifferences) {
  const Scope scope = Scope::NewRootScope();
  const Output re = ops::Placeholder(scope, DT_DOUBLE, ops::Placeholder::Shape({3, 2}));
  const Output im = ops::Placeholder(scope, DT_DOUBLE, ops::Placeholder::Shape({3, 2}));
  const Output z = ops::Complex(scope, re, im, ops::Complex::Tout(DT_COMPLEX128));
  const ops::Svd svd(scope, z);
  // |u|^2, and u_1 conj(v_1), which does not change with a common phase of u and v.
  const Output squares =
      ops::Square(scope, ops::ComplexAbs(scope, svd.u, ops::ComplexAbs::Tout(DT_DOUBLE)));
  const Output product = ops::BatchMatMulV2(scope, svd.u, svd.v, ops::BatchMatMulV2::AdjY(true));
  const OutputList ys = {squares, ops::Real(scope, product, ops::Real::Tout(DT_DOUBLE)),
                         ops::Imag(scope, product, ops::Imag::Tout(DT_DOUBLE))};
  const std::vector<Tensor> values = {ParseTensor("double[3,2]={0.5, -1, 1.5, 0.75, 2, 1}"),
                                      ParseTensor("double[3,2]={1, 0.25, -0.5, -1.25, 0.5, 1}")};
  const auto error = FindGradientError(scope, {re, im}, values, ys, GradientsOf(ys, {re, im}));
  ASSERT_TRUE(error.ok()) << error.status();
  EXPECT_LE(error->max_error, Allowed(*error)) << error->DebugString();
}

// Unknown second derivatives are errors, not zeros.
TEST(GradientFunctions, GammaNumbersHaveNoSecondOrder) {
  const Scope scope = Scope::NewRootScope();
  const Output alpha = ops::Const(scope, {0.5, 1.0});
  const auto second = [&](const Output& y) {
    std::vector<Output> gradients;
    GRADFLOW_EXPECT_OK(AddSymbolicGradients(scope, {y}, {alpha}, &gradients));
    return AddSymbolicGradients(scope, gradients, {alpha}, &gradients);
  };
  EXPECT_THAT(second(ops::StatelessRandomGammaV2(scope, {3, 2}, {7, 8}, alpha)),
              StatusIs(absl::StatusCode::kUnimplemented, ::testing::HasSubstr("RandomGammaGrad")));
  EXPECT_THAT(second(ops::Igamma(scope, alpha, 2.0)),
              StatusIs(absl::StatusCode::kUnimplemented, ::testing::HasSubstr("IgammaGradA")));
}

// The first sum is log(0). Its gradient is computed from the exponentials, which are finite.
TEST(GradientFunctions, ExclusiveLogSumsAreFinite) {
  using Attrs = ops::CumulativeLogsumexp;
  for (const bool reverse : {false, true}) {
    const Scope scope = Scope::NewRootScope();
    const Output x = ops::Placeholder(scope, DT_DOUBLE);
    const Output sums =
        ops::CumulativeLogsumexp(scope, x, 0, Attrs::Exclusive(true).Reverse(reverse));
    const Output y = ops::Sin(scope, ops::Exp(scope, sums));
    const Tensor value = ParseTensor("double[3,2]={1, 2, -3, 0.5, -1, 0.25}");
    const auto error = FindGradientError(scope, {x}, {value}, {y}, GradientsOf({y}, {x}));
    ASSERT_TRUE(error.ok()) << error.status();
    EXPECT_LE(error->max_error, Allowed(*error)) << error->DebugString();
    std::vector<Output> first;
    GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {y}, {x}, &first));
    GradientOptions options;
    options.delta = 1e-4;
    const auto second =
        FindGradientError(scope, {x}, {value}, first, GradientsOf(first, {x}), options);
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_LE(second->max_error, 30 * Allowed(*second)) << second->DebugString();
  }
}

// Requesting an unknown derivative is an error. The result is not 0.
TEST(GradientFunctions, UnknownDerivativesOfSpecialFunctionsAreErrors) {
  const Scope scope = Scope::NewRootScope();
  const Output a = ops::Const(scope, 2.0);
  const Output b = ops::Const(scope, 1.5);
  const Output x = ops::Const(scope, 0.5);
  const auto by = [&](const Output& y, const Output& input) {
    std::vector<Output> gradients;
    return AddSymbolicGradients(scope, {y}, {ops::Identity(scope, x), input}, &gradients);
  };
  const auto is_unknown = [](int input) {
    return StatusIs(absl::StatusCode::kUnimplemented,
                    ::testing::HasSubstr(absl::StrCat("the derivative with respect to input ",
                                                      input, " is not known")));
  };
  const Output zeta = ops::Zeta(scope, a, x);
  const Output polygamma = ops::Polygamma(scope, a, x);
  const Output betainc = ops::Betainc(scope, a, b, x);
  EXPECT_THAT(by(zeta, a), is_unknown(0));
  EXPECT_THAT(by(polygamma, a), is_unknown(0));
  EXPECT_THAT(by(betainc, a), is_unknown(0));
  EXPECT_THAT(by(betainc, b), is_unknown(1));
  for (const Output& y : {zeta, polygamma, betainc}) GRADFLOW_EXPECT_OK(by(y, x));
}

// The gradient of the gradients reads patches with the size of the filter.
TEST(GradientFunctions, DilationGradientsNeedTheSizeOfTheFilter) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Placeholder(scope, DT_FLOAT);
  const Output filter = ops::Placeholder(scope, DT_FLOAT);
  const Output y = ops::Dilation2D(scope, x, filter, {1, 1, 1, 1}, {1, 1, 1, 1}, "SAME");
  std::vector<Output> first;
  std::vector<Output> second;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {ops::Square(scope, y)}, {x}, &first));
  EXPECT_THAT(AddSymbolicGradients(scope, first, {x}, &second),
              StatusIs(absl::StatusCode::kUnimplemented,
                       ::testing::HasSubstr("a known number of rows and columns")));
}

TEST(GradientFunctions, EinsumTakesManyInputs) {
  const auto gradients = [](int n, std::vector<Output>* dx) {
    const Scope scope = Scope::NewRootScope();
    const std::vector<Output> xs(n, ops::Const(scope, {complex64(1, 2)}));
    std::string equation = "i";
    for (int i = 1; i < n; ++i) equation += ",i";
    const Output y = ops::Einsum(scope, xs, equation + "->i");
    const absl::Status status = AddSymbolicGradients(scope, {y}, {xs[0]}, dx);
    int conjugates = 0;
    for (int i = 0; i < scope.graph()->num_nodes(); ++i) {
      conjugates += scope.graph()->node(i)->type_string() == "Conj" ? 1 : 0;
    }
    EXPECT_LE(conjugates, n);
    return status;
  };
  std::vector<Output> dx;
  GRADFLOW_EXPECT_OK(gradients(256, &dx));
  EXPECT_THAT(gradients(257, &dx), StatusIs(absl::StatusCode::kUnimplemented,
                                            ::testing::HasSubstr("at most 256 inputs")));
}

TEST(GradientFunctions, UnknownGradientsOfDecompositionsAreErrors) {
  const Scope scope = Scope::NewRootScope();
  const Output a = ops::Const(scope, ParseTensor("double[3,2]={2, 1, 0.5, 3, 1, -1}"));
  std::vector<Output> gradients;
  const ops::Qr qr(scope, a, ops::Qr::FullMatrices(true));
  EXPECT_THAT(AddSymbolicGradients(scope, {qr.q}, {a}, &gradients),
              StatusIs(absl::StatusCode::kUnimplemented,
                       ::testing::HasSubstr("as many columns as rows or more")));
  const ops::Svd svd(scope, a, ops::Svd::FullMatrices(true));
  EXPECT_THAT(AddSymbolicGradients(scope, {svd.u}, {a}, &gradients),
              StatusIs(absl::StatusCode::kUnimplemented,
                       ::testing::HasSubstr("only known for square matrices")));
  GRADFLOW_EXPECT_OK(AddSymbolicGradients(scope, {svd.s}, {a}, &gradients));
  const Output unknown = ops::Placeholder(scope, DT_DOUBLE);
  const Output solution = ops::MatrixSolveLs(scope, unknown, a, 0.5);
  EXPECT_THAT(AddSymbolicGradients(scope, {solution}, {unknown}, &gradients),
              StatusIs(absl::StatusCode::kUnimplemented,
                       ::testing::HasSubstr("numbers of rows and columns are known")));
}

// The number of segments is 0, so all ids are ignored.
TEST(GradientFunctions, NumberOfSegmentsMayBeZero) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Const(scope, ParseTensor("double[2,3]={1, 2, 3, 4, 5, 6}"));
  const Output none = ops::Const(scope, 0);
  const Output ids = ops::Const(scope, {-1, -2});
  const OutputList ys = {ops::UnsortedSegmentSum(scope, x, ids, none),
                         ops::UnsortedSegmentMax(scope, x, ids, none),
                         ops::UnsortedSegmentProd(scope, x, ids, none)};
  for (const Output& y : ys) {
    std::vector<Output> gradients;
    GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {y}, {x}, &gradients));
    std::vector<Tensor> values;
    GRADFLOW_ASSERT_OK(ClientSession(scope).Run(gradients, &values));
    EXPECT_THAT(values[0], TensorEq(ParseTensor("double[2,3]=0")));
  }
}

// Index tuples that an op ignores have no gradient, and they are not an error.
TEST(GradientFunctions, IgnoredTuplesHaveNoGradient) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Const(scope, {1.0, 2.0, 3.0});
  const Output updates = ops::Const(scope, {4.0, 5.0});
  const Output indices = ops::Const(scope, {{1}, {7}});
  const char ignore[] = "IGNORE";
  const Output ys[] = {
      ops::GatherNd(scope, x, indices, ops::GatherNd::BadIndicesPolicy(ignore)),
      ops::ScatterNd(scope, indices, updates, {3}, ops::ScatterNd::BadIndicesPolicy(ignore)),
      ops::TensorScatterUpdate(scope, x, indices, updates,
                               ops::TensorScatterUpdate::BadIndicesPolicy(ignore)),
      ops::TensorScatterSub(scope, x, indices, updates,
                            ops::TensorScatterSub::BadIndicesPolicy(ignore)),
      ops::TensorScatterMax(scope, x, indices, updates,
                            ops::TensorScatterMax::BadIndicesPolicy(ignore))};
  const Tensor by_x[] = {ParseTensor("double[3]={0, 1, 0}"),
                         {},
                         ParseTensor("double[3]={1, 0, 1}"),
                         ParseTensor("double[3]={1, 1, 1}"),
                         ParseTensor("double[3]={1, 0, 1}")};
  const Tensor by_updates[] = {{},
                               ParseTensor("double[2]={1, 0}"),
                               ParseTensor("double[2]={1, 0}"),
                               ParseTensor("double[2]={-1, -0}"),
                               ParseTensor("double[2]={1, 0}")};
  for (int i = 0; i < 5; ++i) {
    std::vector<Output> gradients;
    GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {ys[i]}, {x, updates}, &gradients));
    for (int k = 0; k < 2; ++k) {
      if (IsNoGradient(gradients[k])) continue;
      std::vector<Tensor> values;
      GRADFLOW_ASSERT_OK(ClientSession(scope).Run({gradients[k]}, &values));
      EXPECT_THAT(values[0], TensorEq(k == 0 ? by_x[i] : by_updates[i])) << i;
    }
  }
}

// ---- Ops of symmetric matrices ----

// Differentiates Cholesky(X X^T + I), because the op reads one triangle but its gradient is
// symmetric.
TEST(GradientFunctions, CholeskyAgreesWithDifferences) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Placeholder(scope, DT_DOUBLE);
  const Output identity = ops::Const(scope, ParseTensor("double[2,2]={1, 0, 0, 1}"));
  const Output square = ops::BatchMatMulV2(scope, x, x, ops::BatchMatMulV2::AdjY(true));
  const Output y = ops::Cholesky(scope, ops::AddV2(scope, square, identity));
  const Tensor value = ParseTensor("double[2,2,2]={1, -2, 0.5, 3, 2, 1, 0.25, 1}");
  const auto error = FindGradientError(scope, {x}, {value}, {y}, GradientsOf({y}, {x}));
  ASSERT_TRUE(error.ok()) << error.status();
  EXPECT_LE(error->max_error, Allowed(*error)) << error->DebugString();
}

// Checks the second order for a weighted sum of the outputs.
TEST(GradientFunctions, CholeskyGradientsAreDifferentiable) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Placeholder(scope, DT_DOUBLE);
  const Output identity = ops::Const(scope, ParseTensor("double[2,2]={1, 0, 0, 1}"));
  const Output square = ops::BatchMatMulV2(scope, x, x, ops::BatchMatMulV2::AdjY(true));
  const Output y = ops::Cholesky(scope, ops::AddV2(scope, square, identity));
  std::vector<Output> first;
  const Output weights = ops::Const(scope, ParseTensor("double[2,2]={1, 2, -3, 0.5}"));
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {y}, {x}, {weights}, &first));
  GradientOptions options;
  options.delta = 1e-4;
  const Tensor value = ParseTensor("double[2,2]={1, -2, 0.5, 3}");
  const auto error =
      FindGradientError(scope, {x}, {value}, first, GradientsOf(first, {x}), options);
  ASSERT_TRUE(error.ok()) << error.status();
  EXPECT_LE(error->max_error, 30 * Allowed(*error)) << error->DebugString();
}

TEST(GradientFunctions, QuantizeAndDequantizeHasTheIdentityAsGradient) {
  const Scope scope = Scope::NewRootScope();
  const Output x = ops::Const(scope, {-1.0f, 0.25f, 1.0f});
  const Output y = ops::QuantizeAndDequantizeV2(scope, x, -1.0f, 1.0f);
  std::vector<Output> gradients;
  const Output dy = ops::Const(scope, {3.0f, 4.0f, 5.0f});
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {y}, {x}, {dy}, &gradients));
  EXPECT_EQ(gradients[0], dy);
  // Outside of the range, version 4 has gradient 0. The same holds for the gradient of its gradient
  // op.
  const Output y4 = ops::QuantizeAndDequantizeV4(scope, x, -0.5f, 2.0f,
                                                 ops::QuantizeAndDequantizeV4::RangeGiven(true));
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, {y4}, {x}, {dy}, &gradients));
  std::vector<Output> second;
  GRADFLOW_ASSERT_OK(AddSymbolicGradients(scope, gradients, {dy}, {dy}, &second));
  std::vector<Tensor> values;
  GRADFLOW_ASSERT_OK(ClientSession(scope).Run({gradients[0], second[0]}, &values));
  for (const Tensor& value : values) {
    EXPECT_THAT(value, TensorEq(ParseTensor("float[3]={0, 4, 5}")));
  }
}

// ---- Complex numbers ----

// The gradient of a real function of complex numbers combines the gradients of its real and
// imaginary parts.
TEST(GradientFunctions, ComplexNumbersCombineTheGradientsOfTheirParts) {
  using Function = Output (*)(const Scope&, const Output&);
  const std::vector<std::pair<const char*, Function>> functions = {
      {"Abs",
       [](const Scope& s, const Output& z) -> Output {
         return ops::ComplexAbs(s, z, ops::ComplexAbs::Tout(DT_DOUBLE));
       }},
      {"Angle",
       [](const Scope& s, const Output& z) -> Output {
         return ops::Angle(s, z, ops::Angle::Tout(DT_DOUBLE));
       }},
      {"Imag",
       [](const Scope& s, const Output& z) -> Output {
         return ops::Imag(s, z, ops::Imag::Tout(DT_DOUBLE));
       }},
      {"Conj",
       [](const Scope& s, const Output& z) -> Output {
         return ops::Imag(s, ops::Conj(s, z), ops::Imag::Tout(DT_DOUBLE));
       }},
      {"Exp",
       [](const Scope& s, const Output& z) -> Output {
         return ops::Imag(s, ops::Exp(s, z), ops::Imag::Tout(DT_DOUBLE));
       }},
      {"Log",
       [](const Scope& s, const Output& z) -> Output {
         return ops::Real(s, ops::Log(s, z), ops::Real::Tout(DT_DOUBLE));
       }},
      {"Square",
       [](const Scope& s, const Output& z) -> Output {
         return ops::Imag(s, ops::Square(s, z), ops::Imag::Tout(DT_DOUBLE));
       }},
      {"Mul",
       [](const Scope& s, const Output& z) -> Output {
         return ops::Real(s, ops::Mul(s, z, ops::Sin(s, z)), ops::Real::Tout(DT_DOUBLE));
       }},
      {"Div",
       [](const Scope& s, const Output& z) -> Output {
         return ops::Imag(s, ops::Div(s, ops::Sin(s, z), z), ops::Imag::Tout(DT_DOUBLE));
       }},
      {"Pow",
       [](const Scope& s, const Output& z) -> Output {
         return ops::Real(s, ops::Pow(s, z, z), ops::Real::Tout(DT_DOUBLE));
       }},
      {"MatMul",
       [](const Scope& s, const Output& z) -> Output {
         return ops::Imag(s, ops::MatMul(s, z, z, ops::MatMul::TransposeA(true)),
                          ops::Imag::Tout(DT_DOUBLE));
       }},
      {"Cholesky",
       [](const Scope& s, const Output& z) -> Output {
         const Output square = ops::BatchMatMulV2(s, z, z, ops::BatchMatMulV2::AdjY(true));
         const Output l = ops::Cholesky(s, square);
         return ops::Add(s, ops::Real(s, l, ops::Real::Tout(DT_DOUBLE)),
                         ops::Imag(s, l, ops::Imag::Tout(DT_DOUBLE)));
       }},
      {"LogMatrixDeterminant, the logarithm",
       [](const Scope& s, const Output& z) -> Output {
         return ops::Real(s, ops::LogMatrixDeterminant(s, z).log_abs_determinant,
                          ops::Real::Tout(DT_DOUBLE));
       }},
      {"LogMatrixDeterminant, the sign",
       [](const Scope& s, const Output& z) -> Output {
         return ops::Real(s, ops::LogMatrixDeterminant(s, z).sign, ops::Real::Tout(DT_DOUBLE));
       }},
      {"LogMatrixDeterminant, both",
       [](const Scope& s, const Output& z) -> Output {
         const ops::LogMatrixDeterminant both(s, z);
         return ops::Imag(s, ops::Mul(s, both.sign, both.log_abs_determinant),
                          ops::Imag::Tout(DT_DOUBLE));
       }},
  };
  for (const auto& [name, function] : functions) {
    SCOPED_TRACE(name);
    const Scope scope = Scope::NewRootScope();
    const Output re = ops::Placeholder(scope, DT_DOUBLE, ops::Placeholder::Shape({2, 2}));
    const Output im = ops::Placeholder(scope, DT_DOUBLE, ops::Placeholder::Shape({2, 2}));
    const Output z = ops::Complex(scope, re, im, ops::Complex::Tout(DT_COMPLEX128));
    const Output y = function(scope, z);
    GRADFLOW_ASSERT_OK(scope.status());
    const std::vector<Tensor> values = {ParseTensor("double[2,2]={0.5, -1, 1.5, 0.75}"),
                                        ParseTensor("double[2,2]={1, 0.25, -0.5, -1.25}")};
    const auto error = FindGradientError(scope, {re, im}, values, {y}, GradientsOf({y}, {re, im}));
    ASSERT_TRUE(error.ok()) << error.status();
    EXPECT_LE(error->max_error, Allowed(*error)) << error->DebugString();
  }
}

}  // namespace
}  // namespace gradflow::testing
