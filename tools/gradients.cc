// gradflow gradients: writes a graph with the gradients of one of its tensors, and compares the
// gradients with finite differences.
#include "gradflow/gradients/gradients.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/graph.h"
#include "gradflow/graph/import.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/scope.h"
#include "gradflow/io/npy.h"
#include "gradflow/proto/graph.pb.h"
#include "gradflow/runtime/session/client_session.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/saved_model/loader.h"
#include "tools/commands.h"
#include "tools/graph_limits.h"
#include "tools/models.h"
#include "tools/names.h"

namespace gradflow::tools {
namespace {

// Returns the tensor that a flag names.
absl::StatusOr<Output> FindTensorOf(absl::string_view flag, const Graph& graph,
                                    absl::string_view name) {
  absl::StatusOr<Output> tensor = FindTensor(graph, name);
  if (!tensor.ok()) return errors::Prefix(absl::StrCat(flag, " "), tensor.status());
  return tensor;
}

// Returns the type of a tensor. For a handle, returns the type of its variable.
DataType TypeOf(const Output& x) {
  DataType dtype = BaseType(x.type());
  if (dtype == DT_RESOURCE && !x.node()->GetAttr("dtype", &dtype).ok()) dtype = DT_RESOURCE;
  return BaseType(dtype);
}

bool HasGradient(const Output& x) {
  const DataType dtype = TypeOf(x);
  return DataTypeIsFloating(dtype) || DataTypeIsComplex(dtype);
}

// Returns output 0 of each node with one of these ops, if the output has a type with a gradient.
std::vector<Output> OutputsOf(const Graph& graph, const std::vector<absl::string_view>& ops) {
  std::vector<Output> outputs;
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node* const node = graph.node(id);
    if (node->num_outputs() == 0 ||
        std::find(ops.begin(), ops.end(), node->type_string()) == ops.end()) {
      continue;
    }
    const Output output(node, 0);
    if (HasGradient(output)) outputs.push_back(output);
  }
  return outputs;
}

absl::StatusOr<std::vector<Output>> FindInputs(const Graph& graph, const std::string& wrt) {
  if (wrt == "placeholders" || wrt == "variables") {
    std::vector<Output> inputs =
        wrt == "placeholders"
            ? OutputsOf(graph, {"Placeholder", "PlaceholderV2", "PlaceholderWithDefault"})
            : OutputsOf(graph, {"Variable", "VariableV2", "VarHandleOp"});
    if (!inputs.empty()) return inputs;
    return errors::InvalidArgument("the graph has no ", wrt,
                                   " of floating-point numbers; --wrt also takes names");
  }
  std::vector<Output> inputs;
  for (const absl::string_view part : absl::StrSplit(wrt, ',')) {
    GRADFLOW_ASSIGN_OR_RETURN(const Output input, FindTensorOf("--wrt", graph, part));
    inputs.push_back(input);
  }
  return inputs;
}

// The nodes that read a variable, through its handle or a reference.
struct Readers {
  // The outputs of ReadVariableOp.
  std::vector<Output> values;
  // True if other nodes read parts of the variable.
  bool has_others = false;
};
Readers ReadersOf(const Output& handle) {
  Readers readers;
  const Graph& graph = handle.node()->graph();
  for (int id = 0; id < graph.num_nodes(); ++id) {
    const Node* const node = graph.node(id);
    for (int i = 0; i < node->num_inputs(); ++i) {
      const Node::Source source = node->sources()[i];
      if (Output(source.node, source.output) != handle) continue;
      const std::string& op = node->type_string();
      if (op == "ReadVariableOp") {
        readers.values.emplace_back(node, 0);
      } else if (op != "AssignVariableOp" && op != "VarIsInitializedOp" && op != "VariableShape") {
        readers.has_others = true;
      }
    }
  }
  return readers;
}

// ---- Comparison with differences ----

// The number of elements of a tensor that are changed for differences. They are evenly spaced.
constexpr int64_t kMaxElements = 100;

class GradientComparison {
 public:
  GradientComparison(const Scope& scope, const Output& loss, const SessionOptions& options)
      : loss_(loss), session_(scope, options) {}

  absl::Status ReadFeeds(const Graph& graph, const std::vector<std::string>& flags) {
    for (const std::string& flag : flags) {
      const std::vector<std::string> parts = absl::StrSplit(flag, absl::MaxSplits('=', 1));
      if (parts.size() != 2 || parts[0].empty() || parts[1].empty()) {
        return errors::InvalidArgument("--check '", flag, "' must be NAME=FILE.npy");
      }
      GRADFLOW_ASSIGN_OR_RETURN(const Output tensor, FindTensorOf("--check", graph, parts[0]));
      GRADFLOW_ASSIGN_OR_RETURN(const Tensor value, ReadNpy(parts[1]));
      Feed(TensorsOf(tensor), value, &feeds_);
    }
    return absl::OkStatus();
  }

  // Prints the largest error of the gradient of x. Returns false if it is too large.
  absl::StatusOr<bool> Check(const Output& x, const Output& gradient, std::ostream& out) {
    const DataType dtype = TypeOf(x);
    if (dtype != DT_FLOAT && dtype != DT_DOUBLE) {
      out << "  not compared: differences are of float or double\n";
      return true;
    }
    const std::vector<Output> moved = TensorsOf(x);
    if (moved.empty() || (x.type() == DT_RESOURCE && ReadersOf(x).has_others)) {
      out << "  not compared: not all ops that read the variable are ReadVariableOp\n";
      return true;
    }
    std::vector<Tensor> values;
    GRADFLOW_RETURN_IF_ERROR(session_.Run(feeds_, {moved[0], gradient}, &values));
    const Tensor& at = values[0];
    // The shapes may be known only now: x may be broadcast against a smaller feed.
    if (values[1].dtype() != dtype || values[1].shape() != at.shape()) {
      return errors::InvalidArgument("the gradient of '", NameOf(x), "' is ",
                                     DataTypeString(values[1].dtype()), " ",
                                     values[1].shape().DebugString(), "; the tensor is ",
                                     DataTypeString(dtype), " ", at.shape().DebugString());
    }
    const int64_t n = at.NumElements();
    const int64_t step = std::max<int64_t>(1, (n + kMaxElements - 1) / kMaxElements);
    double largest = 0;
    double worst = -1;
    std::string where;
    for (int64_t i = 0; i < n; i += step) {
      const double analytic = Element(values[1], i);
      GRADFLOW_ASSIGN_OR_RETURN(const double numeric, Difference(moved, at, i));
      const double error = std::abs(analytic - numeric);
      for (const double value : {analytic, numeric}) {
        if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
      }
      // Keeps the first NaN.
      if (std::isnan(worst) || error <= worst) continue;
      worst = error;
      where = absl::StrFormat("element %d is %g by the gradient, %g by differences", i, analytic,
                              numeric);
    }
    if (n == 0) {
      out << "  no elements\n";
      return true;
    }
    const double allowed = (dtype == DT_FLOAT ? 1e-2 : 1e-6) * std::max(1.0, largest);
    const bool agrees = worst <= allowed;
    out << absl::StreamFormat("  %s: largest difference %.2g (allowed %.2g): %s\n",
                              agrees ? "agrees" : "DIFFERS", worst, allowed, where);
    return agrees;
  }

 private:
  // The tensors with the value of x. If x is a handle, the tensors that read its variable.
  static std::vector<Output> TensorsOf(const Output& x) {
    return x.type() == DT_RESOURCE ? ReadersOf(x).values : std::vector<Output>{x};
  }
  static void Feed(const std::vector<Output>& tensors, const Tensor& value,
                   ClientSession::FeedType* feeds) {
    for (const Output& tensor : tensors) {
      feeds->insert_or_assign(tensor, Input::Initializer(value));
    }
  }

  static double Element(const Tensor& tensor, int64_t i) {
    return tensor.dtype() == DT_FLOAT ? double{tensor.flat<float>()(i)} : tensor.flat<double>()(i);
  }

  // Returns the sum of the elements of the loss if the tensors have the value `at`, except that
  // element i is `value`.
  absl::StatusOr<double> LossAt(const std::vector<Output>& tensors, const Tensor& at, int64_t i,
                                double value) {
    GRADFLOW_ASSIGN_OR_RETURN(Tensor moved, at.DeepCopy());
    if (moved.dtype() == DT_FLOAT) {
      moved.flat<float>()(i) = static_cast<float>(value);
    } else {
      moved.flat<double>()(i) = value;
    }
    ClientSession::FeedType feeds = feeds_;
    Feed(tensors, moved, &feeds);
    std::vector<Tensor> outputs;
    GRADFLOW_RETURN_IF_ERROR(session_.Run(feeds, {loss_}, &outputs));
    double sum = 0;
    for (int64_t k = 0; k < outputs[0].NumElements(); ++k) sum += Element(outputs[0], k);
    return sum;
  }
  absl::StatusOr<double> Difference(const std::vector<Output>& tensors, const Tensor& at,
                                    int64_t i) {
    const double value = Element(at, i);
    const bool is_float = at.dtype() == DT_FLOAT;
    double high = value + (is_float ? 1e-3 : 1e-5) * std::max(1.0, std::abs(value));
    double low = value - (is_float ? 1e-3 : 1e-5) * std::max(1.0, std::abs(value));
    // Uses the rounded numbers, because these are fed.
    if (is_float) {
      high = static_cast<float>(high);
      low = static_cast<float>(low);
    }
    GRADFLOW_ASSIGN_OR_RETURN(const double loss_high, LossAt(tensors, at, i, high));
    GRADFLOW_ASSIGN_OR_RETURN(const double loss_low, LossAt(tensors, at, i, low));
    return (loss_high - loss_low) / (high - low);
  }

  const Output loss_;
  const ClientSession session_;
  ClientSession::FeedType feeds_;
};

}  // namespace

absl::Status GradientsCommand(const GradientsFlags& flags, std::ostream& out) {
  ImportGraphDefOptions import;
  GRADFLOW_ASSIGN_OR_RETURN(import.limits, MakeGraphLimits(flags.graph_limits, flags.limits));
  GraphDef def;
  std::string of = flags.of;
  if (MaybeSavedModelDirectory(flags.graph)) {
    // Calls become nodes. Variables become constants unless they are differentiated.
    GRADFLOW_ASSIGN_OR_RETURN(
        FrozenModel model, FreezeModel(flags.graph, flags.tag, /*signature=*/"", flags.of,
                                       /*keep_variables=*/flags.wrt == "variables", import.limits));
    if (model.outputs.size() != 1) {
      return errors::InvalidArgument("--of '", flags.of, "' must be one tensor");
    }
    def = std::move(model.graph);
    of = model.outputs[0].tensor_name;
  } else {
    GRADFLOW_ASSIGN_OR_RETURN(def, ReadModelGraph(flags.graph, flags.tag, import.limits));
  }
  const Scope scope = Scope::NewRootScope();
  if (const absl::Status status = ImportGraphDef(import, def, scope.graph()); !status.ok()) {
    return errors::Prefix(absl::StrCat("'", flags.graph, "': "), status);
  }
  const Graph& graph = *scope.graph();
  GRADFLOW_ASSIGN_OR_RETURN(const Output loss, FindTensorOf("--of", graph, of));
  if (!HasGradient(loss)) {
    return errors::InvalidArgument("--of '", flags.of,
                                   "' must be of floating-point numbers, but is ",
                                   DataTypeString(loss.type()));
  }
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<Output> inputs, FindInputs(graph, flags.wrt));
  GradientBuildOptions options;
  options.automatic_checkpoints = flags.recompute;
  std::vector<Output> gradients;
  GRADFLOW_RETURN_IF_ERROR(AddSymbolicGradients(scope, {loss}, inputs, &gradients, options));
  GraphDef result;
  GRADFLOW_RETURN_IF_ERROR(scope.ToGraphDef(&result));

  SessionOptions session_options;
  session_options.tensor_memory_limit_bytes = flags.limits.memory_limit;
  GRADFLOW_ASSIGN_OR_RETURN(session_options.file_access, MakeFileAccess(flags.files));
  GradientComparison comparison(scope, loss, session_options);
  const bool checks = !flags.check.empty();
  if (checks) {
    if (BaseType(loss.type()) != DT_FLOAT && BaseType(loss.type()) != DT_DOUBLE) {
      return errors::InvalidArgument("--check needs a tensor of float or double, but '", flags.of,
                                     "' is ", DataTypeString(loss.type()));
    }
    GRADFLOW_RETURN_IF_ERROR(comparison.ReadFeeds(graph, flags.check));
  }
  std::vector<std::string> different;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = NameOf(inputs[i]);
    if (IsNoGradient(gradients[i])) {
      out << name << ": no gradient\n";
      continue;
    }
    out << name << ": " << NameOf(gradients[i]) << "\n";
    if (!checks) continue;
    GRADFLOW_ASSIGN_OR_RETURN(const bool agrees, comparison.Check(inputs[i], gradients[i], out));
    if (!agrees) different.push_back(name);
  }
  GRADFLOW_RETURN_IF_ERROR(WriteGraphDef(flags.output, result));
  if (different.empty()) return absl::OkStatus();
  return errors::FailedPrecondition(
      different.size(), " of ", inputs.size(),
      " gradients differ from differences: ", absl::StrJoin(different, ", "));
}

}  // namespace gradflow::tools
