#include "tools/edit/edit_api.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/gradients/gradients.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/scope.h"
#include "gradflow/graph/tensor_id.h"
#include "gradflow/io/file.h"
#include "gradflow/io/npy.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/testing/watchdog.h"
#include "tools/edit/cpp_writer.h"
#include "tools/graph_limits.h"
#include "tools/json.h"
#include "tools/view/analyzed_graph.h"
#include "tools/view/graph_json.h"
#include "tools/view/run_report.h"

namespace gradflow::tools {
namespace {

using ::google::protobuf::Value;
using ::gradflow::testing::Watchdog;

// Outputs of a node whose types are listed.
constexpr int kMaxOutputs = 64;
// Elements of a feed that is not a file.
constexpr int64_t kMaxElements = int64_t{1} << 24;

absl::string_view FileName(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

// Returns a member of an object; null, as a value, if there is none.
const Value& Member(const Value& value, const char* name) {
  static const Value* const nothing = new Value();
  if (value.kind_case() != Value::kStructValue) return *nothing;
  const auto found = value.struct_value().fields().find(name);
  return found == value.struct_value().fields().end() ? *nothing : found->second;
}
absl::StatusOr<std::string> Text(const Value& value, const char* name) {
  const Value& member = Member(value, name);
  if (member.kind_case() == Value::kStringValue) return member.string_value();
  return errors::InvalidArgument("expected \"", name, "\", a text");
}
absl::StatusOr<std::vector<std::string>> Texts(const Value& value, const char* name) {
  std::vector<std::string> texts;
  for (const Value& item : Member(value, name).list_value().values()) {
    if (item.kind_case() != Value::kStringValue) {
      return errors::InvalidArgument("expected \"", name, "\", a list of texts");
    }
    texts.push_back(item.string_value());
  }
  return texts;
}

absl::StatusOr<TensorShape> Shape(const Value& feed) {
  std::vector<int64_t> dims;
  for (const Value& dim : Member(feed, "shape").list_value().values()) {
    constexpr double kMax = 1e15;
    const double size = dim.number_value();
    if (dim.kind_case() != Value::kNumberValue || !(size >= 0 && size <= kMax) ||
        size != std::floor(size)) {
      return errors::InvalidArgument("expected \"shape\", a list of sizes");
    }
    dims.push_back(static_cast<int64_t>(size));
  }
  TensorShape shape;
  for (const int64_t dim : dims) GRADFLOW_RETURN_IF_ERROR(shape.AddDimWithStatus(dim));
  if (shape.num_elements() > kMaxElements) {
    return errors::InvalidArgument("the feed has ", shape.num_elements(), " elements, but at most ",
                                   kMaxElements, " are allowed");
  }
  return shape;
}

// Random numbers of splitmix64, which are the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Bits() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // At least 0 and less than 1.
  double Unit() { return static_cast<double>(Bits() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

// Returns a tensor of these numbers, by way of a message, which converts to any type of numbers.
template <typename Next>
absl::StatusOr<Tensor> FromNumbers(DataType type, const TensorShape& shape, Next next) {
  GRADFLOW_ASSIGN_OR_RETURN(Tensor numbers, Tensor::Allocate(DT_DOUBLE, shape));
  for (int64_t i = 0; i < shape.num_elements(); ++i) numbers.flat<double>()(i) = next();
  if (type == DT_DOUBLE) return numbers;
  GRADFLOW_ASSIGN_OR_RETURN(Tensor result, Tensor::Allocate(type, shape));
  const auto convert = [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < shape.num_elements(); ++i) {
      const double value = numbers.flat<double>()(i);
      if constexpr (std::is_same_v<T, bool>) {
        result.flat<T>()(i) = value > 0;
      } else if constexpr (std::is_integral_v<T>) {
        // Clamped, as the conversion is not defined beyond.
        constexpr double kMin = static_cast<double>(std::numeric_limits<T>::min());
        constexpr double kMax = static_cast<double>(std::numeric_limits<T>::max());
        const double rounded = std::isnan(value) ? 0 : std::nearbyint(value);
        result.flat<T>()(i) = rounded >= kMax   ? std::numeric_limits<T>::max()
                              : rounded <= kMin ? std::numeric_limits<T>::min()
                                                : static_cast<T>(rounded);
      } else {
        result.flat<T>()(i) = static_cast<T>(static_cast<float>(value));
      }
    }
    return absl::OkStatus();
  };
  absl::Status status;
  switch (type) {
    case DT_FLOAT:
      status = convert(float{});
      break;
    case DT_HALF:
      status = convert(half{});
      break;
    case DT_BFLOAT16:
      status = convert(bfloat16{});
      break;
    case DT_INT8:
      status = convert(int8_t{});
      break;
    case DT_INT16:
      status = convert(int16_t{});
      break;
    case DT_INT32:
      status = convert(int32_t{});
      break;
    case DT_INT64:
      status = convert(int64_t{});
      break;
    case DT_UINT8:
      status = convert(uint8_t{});
      break;
    case DT_UINT16:
      status = convert(uint16_t{});
      break;
    case DT_UINT32:
      status = convert(uint32_t{});
      break;
    case DT_UINT64:
      status = convert(uint64_t{});
      break;
    case DT_BOOL:
      status = convert(bool{});
      break;
    default:
      return errors::Unimplemented("numbers of type ", DataTypeString(type), "; feed a file");
  }
  GRADFLOW_RETURN_IF_ERROR(status);
  return result;
}

// Returns the value of a feed: a file, numbers or random numbers.
absl::StatusOr<Tensor> FeedValue(const Value& feed) {
  const Value& npy = Member(feed, "npy");
  if (npy.kind_case() == Value::kStringValue) {
    std::string bytes;
    if (!absl::Base64Unescape(npy.string_value(), &bytes)) {
      return errors::InvalidArgument("expected \"npy\", a file in base64");
    }
    return ParseNpy(bytes);
  }
  GRADFLOW_ASSIGN_OR_RETURN(const std::string type_name, Text(feed, "type"));
  DataType type = DT_INVALID;
  if (!DataTypeFromString(type_name, &type)) {
    return errors::InvalidArgument("'", type_name, "' is not a type");
  }
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, Shape(feed));
  const Value& values = Member(feed, "values");
  if (values.kind_case() == Value::kStringValue) {
    std::vector<double> numbers;
    for (const absl::string_view word :
         absl::StrSplit(values.string_value(), absl::ByAnyChar(" ,;\n\t"), absl::SkipEmpty())) {
      double number = 0;
      if (!absl::SimpleAtod(word, &number)) {
        return errors::InvalidArgument("'", errors::Printable(word, 100), "' is not a number");
      }
      numbers.push_back(number);
    }
    const int64_t count = shape.num_elements();
    if (static_cast<int64_t>(numbers.size()) != count && numbers.size() != 1) {
      return errors::InvalidArgument("expected ", count, " numbers, or one for all, but found ",
                                     numbers.size());
    }
    size_t next = 0;
    return FromNumbers(type, shape, [&] { return numbers[numbers.size() == 1 ? 0 : next++]; });
  }
  const double seed = Member(feed, "random").number_value();
  if (Member(feed, "random").kind_case() != Value::kNumberValue || !(seed >= 0 && seed < 1e15)) {
    return errors::InvalidArgument("expected \"npy\", \"values\" or \"random\", a seed");
  }
  Random random(static_cast<uint64_t>(seed));
  const bool is_whole = !DataTypeIsFloating(type) && type != DT_BOOL;
  const bool is_unsigned =
      type == DT_UINT8 || type == DT_UINT16 || type == DT_UINT32 || type == DT_UINT64;
  return FromNumbers(type, shape, [&] {
    const double unit = random.Unit();
    if (is_whole) return std::floor(unit * (is_unsigned ? 11 : 21)) - (is_unsigned ? 0 : 10);
    return 2 * unit - 1;
  });
}

std::string OutputName(const Output& output) {
  return FormatTensorId({output.node()->name(), output.index()});
}

absl::StatusOr<Output> FindOutput(const Graph& graph, const std::string& name) {
  const absl::StatusOr<TensorId> id = ParseTensorId(name);
  const Node* const node = id.ok() && !id->IsControl() ? graph.FindNode(id->node) : nullptr;
  if (node == nullptr || id->index >= node->num_outputs()) {
    return errors::InvalidArgument("'", errors::Printable(name, 200),
                                   "' is not an output of a node of the graph");
  }
  return Output(node, id->index);
}

}  // namespace

absl::StatusOr<std::unique_ptr<EditApi>> EditApi::Make(const EditOptions& options) {
  std::unique_ptr<EditApi> api(new EditApi(options));
  if (options.path.empty()) {
    api->base_ = NewBase();
    return api;
  }
  absl::StatusOr<EditBase> base = ReadBase(options.path, options.limits);
  if (absl::IsNotFound(base.status())) {
    api->base_ = NewBase();
    return api;
  }
  GRADFLOW_RETURN_IF_ERROR(base.status());
  api->base_ = *std::move(base);
  return api;
}

absl::StatusOr<std::string> EditApi::PageData(bool has_server) const {
  const std::string file =
      options_.path.empty() ? "graph.pbtxt" : std::string(FileName(options_.path));
  std::string edit = absl::StrCat("{\"server\":", has_server ? "true" : "false",
                                  ",\"file\":", Quoted(ValidUtf8(file, 4096)), ",\"ops\":[");
  bool is_first = true;
  const auto add = [&](const std::string& name, const OpDef& def, OpKind kind) {
    absl::StrAppend(&edit, is_first ? "" : ",\n", OpJson(name, def, kind, /*for_editing=*/true));
    is_first = false;
  };
  for (const OpRegistration* op : GlobalRegistry().Ops()) {
    add(op->def().name(), op->def(), OpKind::kRegistered);
  }
  for (const FunctionDef& function : base_.def.library().function()) {
    if (GlobalRegistry().FindOp(function.signature().name()) != nullptr) continue;
    add(function.signature().name(), function.signature(), OpKind::kFunction);
  }
  edit += "],\n\"nodes\":[";
  for (int i = 0; i < base_.def.node_size(); ++i) {
    absl::StrAppend(
        &edit, i == 0 ? "" : ",\n",
        EditNodeJson(base_.def.node(i),
                     has_server ? kMaxSentAttrBytes : std::numeric_limits<size_t>::max()));
  }
  // The graph without its nodes, for a file that the page writes itself.
  GraphDef rest = base_.def;
  rest.clear_node();
  std::string text = GraphDefToText(rest);
  absl::StrAppend(&edit, "],\n\"rest\":", Quoted(text), "}");
  GraphJsonOptions options;
  options.title = file;
  options.edit = std::move(edit);
  return GraphJson(AnalyzedGraph(), options);
}

void EditApi::Stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  is_stopped_ = true;
  if (session_ != nullptr) session_->Close().IgnoreError();
}

absl::StatusOr<std::string> EditApi::Call(absl::string_view name, absl::string_view request) {
  static const auto* const names =
      new absl::flat_hash_set<absl::string_view>{"check", "run", "save", "gradients", "cpp"};
  if (!names->contains(name)) {
    return absl::NotFoundError(
        absl::StrCat("there is no call '", errors::Printable(name, 100), "'"));
  }
  Value value;
  const auto parsed = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(request.data(), request.size()), &value);
  if (!parsed.ok() || value.kind_case() != Value::kStructValue) {
    return errors::InvalidArgument("expected a JSON object");
  }
  GRADFLOW_ASSIGN_OR_RETURN(const EditedGraph graph,
                            MakeEditedGraph(base_, Member(value, "nodes"), options_.limits));
  if (name == "check") return Check(graph);
  if (name == "run") return Run(graph, value);
  if (name == "save") return Save(graph, value);
  if (name == "gradients") return Differentiate(graph, value);
  GraphLimits limits = options_.limits;
  limits.deadline = DeadlineAfter(options_.timeout_seconds);
  GRADFLOW_ASSIGN_OR_RETURN(
      const std::string program,
      CppProgram(graph.def, options_.path.empty() ? "graph" : FileName(options_.path), limits));
  return absl::StrCat("{\"text\":", Quoted(program), "}");
}

absl::StatusOr<std::string> EditApi::Check(const EditedGraph& edited) const {
  GraphLimits limits = options_.limits;
  limits.deadline = DeadlineAfter(options_.timeout_seconds);
  const AnalyzedGraph graph = AnalyzeEachNode(edited.def, limits);
  std::string json = "{\"types\":[";
  for (int i = 0; i < graph.def.node_size(); ++i) {
    if (i > 0) json += ",";
    const Node* const node = i < static_cast<int>(graph.nodes.size()) ? graph.nodes[i] : nullptr;
    if (node == nullptr) {
      json += "null";
      continue;
    }
    json += "[";
    for (int output = 0; output < std::min(node->num_outputs(), kMaxOutputs); ++output) {
      absl::StrAppend(&json, output == 0 ? "" : ",",
                      Quoted(DataTypeString(node->output_type(output))), ",",
                      Quoted(ShapeText(node->output_shape(output))));
    }
    json += "]";
  }
  json += "],\n\"problems\":[";
  bool is_first = true;
  for (const auto& [node, text] : graph.node_problems) {
    absl::StrAppend(&json, is_first ? "" : ",", "[", node, ",", Quoted(ValidUtf8(text, 4096)), "]");
    is_first = false;
  }
  json += "],\n\"notes\":[";
  for (size_t i = 0; i < graph.problems.size(); ++i) {
    absl::StrAppend(&json, i == 0 ? "" : ",", Quoted(ValidUtf8(graph.problems[i], 4096)));
  }
  return absl::StrCat(json, "]}");
}

absl::StatusOr<std::string> EditApi::Run(const EditedGraph& edited, const Value& request) {
  const Watchdog::Clock::time_point deadline = DeadlineAfter(options_.timeout_seconds);
  CallableOptions options;
  std::vector<std::pair<std::string, Tensor>> tensors;
  std::vector<Tensor> feeds;
  std::vector<std::string> fed;
  for (const Value& feed : Member(request, "feeds").list_value().values()) {
    GRADFLOW_ASSIGN_OR_RETURN(const std::string name, Text(feed, "name"));
    absl::StatusOr<Tensor> value = FeedValue(feed);
    if (!value.ok()) {
      return errors::Prefix(absl::StrCat("feed '", errors::Printable(name, 200), "': "),
                            value.status());
    }
    options.add_feed(name);
    fed.push_back(name);
    tensors.emplace_back(name, *value);
    feeds.push_back(*std::move(value));
  }
  const std::lock_guard<std::mutex> run_lock(run_mutex_);
  SessionOptions session_options;
  session_options.graph_limits = options_.limits;
  session_options.graph_limits.deadline = deadline;
  session_options.config.set_intra_op_parallelism_threads(options_.threads);
  session_options.config.set_inter_op_parallelism_threads(options_.threads);
  session_options.tensor_memory_limit_bytes = options_.memory_limit;
  session_options.config.mutable_graph_options()->mutable_optimizer_options()->set_opt_level(
      OptimizerOptions::L0);
  GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Make(session_options));
  // Lets Stop() close the session while it is used.
  struct Registration {
    Registration(EditApi* api, Session* session) : api(api) {
      const std::lock_guard<std::mutex> lock(api->mutex_);
      api->session_ = session;
      if (api->is_stopped_) session->Close().IgnoreError();
    }
    ~Registration() {
      const std::lock_guard<std::mutex> lock(api->mutex_);
      api->session_ = nullptr;
    }
    EditApi* api;
  };
  const Registration registration(this, session.get());
  const Watchdog watchdog(session.get(), deadline);
  // The nodes that the run needs: other parts of the graph may be incomplete.
  const AnalyzedGraph graph = AnalyzeEachNode(edited.def, session_options.graph_limits);
  if (Watchdog::Clock::now() >= deadline) {
    return absl::DeadlineExceededError("the time limit (--timeout) is over");
  }
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<std::string> until, Texts(request, "until"));
  std::vector<std::string> ends;
  std::vector<std::string> targets;
  GraphDef def = edited.def;
  if (until.empty()) {
    if (!graph.node_problems.empty()) {
      const auto& [node, text] = *graph.node_problems.begin();
      return errors::InvalidArgument("node '", errors::Printable(graph.def.node(node).name(), 200),
                                     "' cannot run: ", text);
    }
    GRADFLOW_RETURN_IF_ERROR(watchdog.Explain(session->Create(std::move(def))));
    GRADFLOW_ASSIGN_OR_RETURN(ends, session->UnusedOutputs());
  } else {
    def.clear_node();
    for (int i = 0; i < graph.def.node_size(); ++i) {
      if (graph.nodes[i] != nullptr) *def.add_node() = edited.def.node(i);
    }
    for (const std::string& name : until) {
      const Node* const node = graph.graph->FindNode(name);
      if (node == nullptr) {
        for (const auto& [index, text] : graph.node_problems) {
          if (graph.def.node(index).name() != name) continue;
          return errors::InvalidArgument("node '", errors::Printable(name, 200),
                                         "' cannot run: ", text);
        }
        return errors::InvalidArgument("the graph has no node '", errors::Printable(name, 200),
                                       "'");
      }
      targets.push_back(name);
      for (int i = 0; i < std::min(node->num_outputs(), kMaxOutputs); ++i) {
        const DataType type = node->output_type(i);
        if (IsRefType(type) || type == DT_RESOURCE || type == DT_VARIANT) continue;
        ends.push_back(FormatTensorId({node->name(), i}));
      }
    }
    GRADFLOW_RETURN_IF_ERROR(watchdog.Explain(session->Create(std::move(def))));
  }
  // Fed tensors have their values already.
  const absl::flat_hash_set<std::string> is_fed(fed.begin(), fed.end());
  ends.erase(std::remove_if(ends.begin(), ends.end(),
                            [&](const std::string& name) { return is_fed.contains(name); }),
             ends.end());
  std::vector<std::string> fetches = ends;
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<std::string> others,
                            ReportedOutputs(graph, "all", ends, targets, fed));
  fetches.insert(fetches.end(), others.begin(), others.end());
  for (const std::string& name : fetches) options.add_fetch(name);
  for (const std::string& name : targets) {
    if (!is_fed.contains(name)) options.add_target(name);
  }
  options.mutable_run_options()->set_trace_level(RunOptions::FULL_TRACE);
  Session::CallableHandle handle = 0;
  GRADFLOW_RETURN_IF_ERROR(watchdog.Explain(session->MakeCallable(options, &handle)));
  RunMetadata metadata;
  std::vector<Tensor> outputs;
  GRADFLOW_RETURN_IF_ERROR(
      watchdog.Explain(session->RunCallable(handle, feeds, &outputs, &metadata)));
  for (size_t i = 0; i < outputs.size(); ++i) tensors.emplace_back(fetches[i], outputs[i]);
  return absl::StrCat("{\"run\":", RunJson(graph, metadata.step_stats(), tensors), "}");
}

absl::StatusOr<std::string> EditApi::Save(const EditedGraph& graph, const Value& request) const {
  GRADFLOW_ASSIGN_OR_RETURN(const std::string name, Text(request, "file"));
  const bool is_text = absl::EndsWith(name, ".pbtxt");
  if (name.find('/') != std::string::npos || name.find('\0') != std::string::npos ||
      absl::StartsWith(name, ".") || (!is_text && !absl::EndsWith(name, ".pb"))) {
    return errors::InvalidArgument("'", errors::Printable(name, 200),
                                   "' must be the name of a file, without a folder, that ends in "
                                   ".pb or .pbtxt");
  }
  GRADFLOW_ASSIGN_OR_RETURN(const std::string content,
                            EditedFile(base_, graph, is_text, options_.limits));
  const std::string folder =
      options_.path.substr(0, options_.path.size() - FileName(options_.path).size());
  const std::string path = absl::StrCat(folder, name);
  GRADFLOW_RETURN_IF_ERROR(
      errors::Prefix(absl::StrCat("'", path, "': "), internal::WriteFile(path, {content})));
  return absl::StrCat("{\"file\":", Quoted(name), ",\"bytes\":", content.size(), "}");
}

absl::StatusOr<std::string> EditApi::Differentiate(const EditedGraph& edited,
                                                   const Value& request) const {
  GRADFLOW_ASSIGN_OR_RETURN(const std::string of, Text(request, "of"));
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<std::string> wrt, Texts(request, "wrt"));
  ImportGraphDefOptions import;
  import.limits = options_.limits;
  import.limits.deadline = DeadlineAfter(options_.timeout_seconds);
  const Scope scope = Scope::NewRootScope();
  GRADFLOW_RETURN_IF_ERROR(ImportGraphDef(import, edited.def, scope.graph()));
  GRADFLOW_ASSIGN_OR_RETURN(const Output loss, FindOutput(*scope.graph(), of));
  std::vector<Output> inputs;
  for (const std::string& name : wrt) {
    GRADFLOW_ASSIGN_OR_RETURN(const Output input, FindOutput(*scope.graph(), name));
    inputs.push_back(input);
  }
  if (inputs.empty()) return errors::InvalidArgument("expected \"wrt\", names of tensors");
  std::vector<Output> gradients;
  GRADFLOW_RETURN_IF_ERROR(AddSymbolicGradients(scope, {loss}, inputs, &gradients));
  GraphDef result;
  GRADFLOW_RETURN_IF_ERROR(scope.ToGraphDef(&result));
  if (result.library().function_size() != edited.def.library().function_size()) {
    return errors::Unimplemented("the gradient adds functions; use `gradflow gradients`");
  }
  std::string json = "{\"nodes\":[";
  for (int i = edited.def.node_size(); i < result.node_size(); ++i) {
    absl::StrAppend(&json, i == edited.def.node_size() ? "" : ",\n",
                    EditNodeJson(result.node(i), std::numeric_limits<size_t>::max()));
  }
  json += "],\n\"gradients\":[";
  for (size_t i = 0; i < inputs.size(); ++i) {
    absl::StrAppend(&json, i == 0 ? "" : ",",
                    IsNoGradient(gradients[i]) ? "null" : Quoted(OutputName(gradients[i])));
  }
  return absl::StrCat(json, "]}");
}

}  // namespace gradflow::tools
