#include "tools/edit/edit_api.h"

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/hash/hash.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/split_mix64.h"
#include "gradflow/core/status.h"
#include "gradflow/core/tensor_proto.h"
#include "gradflow/gradients/gradients.h"
#include "gradflow/graph/export.h"
#include "gradflow/graph/node.h"
#include "gradflow/graph/scope.h"
#include "gradflow/graph/tensor_id.h"
#include "gradflow/io/file.h"
#include "gradflow/io/npy.h"
#include "gradflow/ops/array_ops.h"
#include "gradflow/ops/image_ops.h"
#include "gradflow/ops/math_ops.h"
#include "gradflow/runtime/session/options.h"
#include "gradflow/saved_model/loader.h"
#include "gradflow/saved_model/reader.h"
#include "gradflow/testing/watchdog.h"
#include "tools/edit/cpp_writer.h"
#include "tools/graph_limits.h"
#include "tools/json.h"
#include "tools/models.h"
#include "tools/names.h"
#include "tools/view/analyzed_graph.h"
#include "tools/view/function_body.h"
#include "tools/view/graph_json.h"
#include "tools/view/run_report.h"

namespace gradflow::tools {
namespace {

using ::google::protobuf::Value;
using ::gradflow::testing::Watchdog;

// The number of outputs of a node whose types are listed.
constexpr int kMaxOutputs = 64;
// Larger constants make a page slow.
constexpr size_t kMaxConstantBytes = size_t{1} << 20;
// The maximum number of elements of a feed that is not a file.
constexpr int64_t kMaxElements = int64_t{1} << 24;

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

// Returns the number of the page of a request; 0 if the request has no number.
absl::StatusOr<int64_t> PageNumber(const Value& request) {
  const double number = Member(request, "page").number_value();
  if (number >= 0 && number < 1e15) return static_cast<int64_t>(number);
  return errors::InvalidArgument("expected \"page\", the number of the page");
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

using FedTypes = ConcatTypes<RealTypes, TypeList<bool>>::type;

// Rounds to the nearest T, and clamps to its range. NaN becomes 0 for integers.
template <typename T>
T FromDouble(double value) {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_same_v<T, bool>) {
    return value > 0;
  } else if constexpr (std::is_integral_v<T>) {
    if (std::isnan(value)) return 0;
    const double rounded = std::nearbyint(value);
    // 2^digits is exact in double. The maximum may not be.
    if (rounded >= std::ldexp(1.0, Limits::digits)) return Limits::max();
    return rounded > static_cast<double>(Limits::min()) ? static_cast<T>(rounded) : Limits::min();
  } else if constexpr (kIsFloat16<T>) {
    return static_cast<T>(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <typename T>
absl::StatusOr<T> ParseNumber(absl::string_view word) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    // Doubles do not represent all 64-bit integers.
    std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t> number;
    if (absl::SimpleAtoi(word, &number)) {
      using Limits = std::numeric_limits<T>;
      return static_cast<T>(std::clamp<decltype(number)>(number, Limits::min(), Limits::max()));
    }
  }
  double number = 0;
  if (absl::SimpleAtod(word, &number)) return FromDouble<T>(number);
  return errors::InvalidArgument("'", errors::Printable(word, 100), "' is not a number");
}

// Sets the elements to the numbers of a text. A single number fills the tensor.
template <typename T>
absl::Status FillFromText(absl::string_view text, Tensor* tensor) {
  std::vector<T> numbers;
  for (const absl::string_view word :
       absl::StrSplit(text, absl::ByAnyChar(" ,;\n\t"), absl::SkipEmpty())) {
    GRADFLOW_ASSIGN_OR_RETURN(const T number, ParseNumber<T>(word));
    numbers.push_back(number);
  }
  const int64_t count = tensor->NumElements();
  if (static_cast<int64_t>(numbers.size()) != count && numbers.size() != 1) {
    return errors::InvalidArgument("expected ", count, " numbers, or one for all, but found ",
                                   numbers.size());
  }
  for (int64_t i = 0; i < count; ++i) {
    tensor->flat<T>()(i) = numbers[numbers.size() == 1 ? 0 : i];
  }
  return absl::OkStatus();
}

// Sets the elements to uniform random numbers: signed integers from -10 to 10, unsigned integers
// from 0 to 10, other numbers in [-1, 1).
template <typename T>
void FillRandomly(uint64_t seed, Tensor* tensor) {
  constexpr bool kIsWhole = std::is_integral_v<T> && !std::is_same_v<T, bool>;
  constexpr double kLow = !kIsWhole ? -1 : std::is_signed_v<T> ? -10 : 0;
  constexpr double kSize = kIsWhole ? 11 - kLow : 2;
  SplitMix64 random(seed);
  for (T& element : tensor->flat<T>()) {
    const double number = kLow + kSize * random.Unit();
    element = FromDouble<T>(kIsWhole ? std::floor(number) : number);
  }
}

absl::StatusOr<std::string> File(const Value& value, const char* name) {
  std::string bytes;
  if (absl::Base64Unescape(Member(value, name).string_value(), &bytes)) return bytes;
  return errors::InvalidArgument("expected \"", name, "\", a file in base64");
}

absl::StatusOr<DataType> Type(const Value& value) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::string name, Text(value, "type"));
  DataType type = DT_INVALID;
  if (DataTypeFromString(name, &type)) return type;
  return errors::InvalidArgument("'", errors::Printable(name), "' is not a type");
}

// Returns the numbers of a feed: from a text, or random numbers.
absl::StatusOr<Tensor> Numbers(const Value& feed) {
  GRADFLOW_ASSIGN_OR_RETURN(const DataType type, Type(feed));
  GRADFLOW_ASSIGN_OR_RETURN(const TensorShape shape, Shape(feed));
  const Value& values = Member(feed, "values");
  const bool is_text = values.kind_case() == Value::kStringValue;
  const Value& seed = Member(feed, "random");
  if (!is_text && (seed.kind_case() != Value::kNumberValue ||
                   !(seed.number_value() >= 0 && seed.number_value() < 1e15))) {
    return errors::InvalidArgument("expected \"npy\", \"image\", \"values\" or \"random\", a seed");
  }
  GRADFLOW_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(type, shape));
  absl::Status status;
  const bool has_numbers = DispatchType(FedTypes(), type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (is_text) {
      status = FillFromText<T>(values.string_value(), &tensor);
    } else {
      FillRandomly<T>(static_cast<uint64_t>(seed.number_value()), &tensor);
    }
  });
  if (!has_numbers) {
    return errors::Unimplemented("numbers of type ", DataTypeString(type), "; feed a file");
  }
  GRADFLOW_RETURN_IF_ERROR(status);
  return tensor;
}

// The definitions of the ops in the body of a function. Borrows the library.
class Definitions {
 public:
  explicit Definitions(const FunctionDefLibrary& library) {
    for (const FunctionDef& function : library.function()) {
      functions_.emplace(function.signature().name(), &function.signature());
    }
  }
  bool IsFunction(const std::string& op) const {
    return GlobalRegistry().FindOp(op) == nullptr && functions_.contains(op);
  }
  // Adds the signatures of the functions that the body calls by name.
  GraphDef BodyWithSignatures(const FunctionDef& function) const {
    GraphDef body = Body(function);
    absl::flat_hash_set<absl::string_view> called;
    for (const NodeDef& node : body.node()) {
      if (!IsFunction(node.op()) || !called.insert(node.op()).second) continue;
      *body.mutable_library()->add_function()->mutable_signature() = *functions_.at(node.op());
    }
    return body;
  }
  GraphDef Body(const FunctionDef& function) const {
    return FunctionGraph(function, [this](const std::string& op) -> const OpDef* {
      const OpRegistration* const registration = GlobalRegistry().FindOp(op);
      if (registration != nullptr) return &registration->def();
      const auto found = functions_.find(op);
      return found == functions_.end() ? nullptr : found->second;
    });
  }

 private:
  absl::flat_hash_map<absl::string_view, const OpDef*> functions_;
};

// Returns the graph of a request: the body of its member "function", or else the edited graph.
absl::StatusOr<GraphDef> RequestedGraph(const GraphDef& edited, const Value& request) {
  const Value& member = Member(request, "function");
  if (member.kind_case() == Value::KIND_NOT_SET) return edited;
  const FunctionDefLibrary& library = edited.library();
  const double number = member.kind_case() == Value::kNumberValue ? member.number_value() : -1;
  if (!(number >= 0) || number >= library.function_size() || number != std::floor(number)) {
    return errors::InvalidArgument("expected \"function\", a number less than ",
                                   library.function_size());
  }
  const FunctionDef& function = library.function(static_cast<int>(number));
  if (function.signature().attr_size() > 0) {
    return errors::Unimplemented("the types of function '",
                                 errors::Printable(function.signature().name(), 200),
                                 "' come from its calls");
  }
  GraphDef body = Definitions(library).Body(function);
  *body.mutable_versions() = edited.versions();
  *body.mutable_library() = library;
  return body;
}

// The answer to a check: types, problems and notes of graphs. The nodes of all graphs are numbered
// consecutively.
class CheckJson {
 public:
  // Each note begins with `prefix`.
  void AddGraph(const AnalyzedGraph& graph, const std::string& prefix) {
    for (const auto& [node, text] : graph.node_problems) {
      problems_.Add(Json::array({num_nodes_ + node, LimitedText(text, 4096)}));
    }
    for (const std::string& problem : graph.problems) {
      if (notes_.size() >= kMaxNotes) break;
      notes_.push_back(LimitedText(absl::StrCat(prefix, problem), 4096));
    }
    for (int i = 0; i < graph.def.node_size(); ++i) {
      const Node* const node = i < static_cast<int>(graph.nodes.size()) ? graph.nodes[i] : nullptr;
      if (node == nullptr) {
        AddUnknown(1);
        continue;
      }
      Json types = Json::array();
      for (int o = 0; o < std::min(node->num_outputs(), kMaxOutputs); ++o) {
        types.push_back(DataTypeString(node->output_type(o)));
        types.push_back(ShapeText(node->output_shape(o)));
      }
      AddTypes(types);
    }
  }
  // Adds unknown nodes.
  void AddUnknown(int count) {
    for (int i = 0; i < count; ++i) AddTypes(nullptr);
  }
  std::string Finish() {
    JsonObjectText json;
    json.AddText("types", types_.Finish());
    json.AddText("problems", problems_.Finish());
    json.Add("notes", notes_);
    return json.Finish();
  }

 private:
  static constexpr size_t kMaxNotes = 64;

  void AddTypes(const Json& types) {
    types_.Add(types);
    ++num_nodes_;
  }

  int num_nodes_ = 0;
  JsonArrayText types_;
  JsonArrayText problems_;
  std::vector<std::string> notes_;
};

}  // namespace

std::string ErrorJson(absl::string_view reason) {
  return JsonText({{"error", std::string(reason)}});
}

absl::StatusOr<std::unique_ptr<EditApi>> EditApi::Make(const EditOptions& options) {
  std::unique_ptr<EditApi> api(new EditApi(options));
  int64_t number = 0;
  GRADFLOW_RETURN_IF_ERROR(api->ReadBase(&number).status());
  return api;
}

absl::StatusOr<std::shared_ptr<const EditBase>> EditApi::ReadBase(int64_t* number) {
  absl::StatusOr<std::string> bytes = std::string();
  if (!options_.path.empty()) bytes = ReadEditedFile(options_.path, options_.limits);
  const bool exists = !absl::IsNotFound(bytes.status());
  if (!exists) bytes = std::string();
  GRADFLOW_RETURN_IF_ERROR(bytes.status());
  {
    // If the file is unchanged, returns the known base.
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!bases_.empty() && bases_.rbegin()->second->bytes == *bytes) {
      *number = bases_.rbegin()->first;
      return bases_.rbegin()->second;
    }
  }
  auto base = std::make_shared<EditBase>(NewBase());
  if (!bytes->empty()) {
    const bool is_text = absl::EndsWith(options_.path, ".pbtxt");
    absl::StatusOr<EditBase> parsed =
        options_.model.empty() ? ParseBase(*std::move(bytes), is_text, options_.limits)
                               : ParseModelBase(options_.model, options_.tag, *std::move(bytes),
                                                is_text, options_.limits);
    if (!parsed.ok()) {
      return errors::Prefix(absl::StrCat("'", options_.path, "': "), parsed.status());
    }
    *base = *std::move(parsed);
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  *number = bases_.empty() ? 0 : bases_.rbegin()->first + 1;
  bases_.emplace(*number, base);
  if (bases_.size() > kMaxBases) bases_.erase(bases_.begin());
  return std::shared_ptr<const EditBase>(std::move(base));
}

absl::StatusOr<std::shared_ptr<const EditBase>> EditApi::FindBase(const Value& request) {
  const Value& member = Member(request, "base");
  const double number = member.number_value();
  if (member.kind_case() != Value::kNumberValue || !(number >= 0 && number < 1e15) ||
      number != std::floor(number)) {
    return errors::InvalidArgument("expected \"base\", the number of the page");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = bases_.find(static_cast<int64_t>(number));
  if (found != bases_.end()) return found->second;
  return errors::FailedPrecondition(
      "the page is older than ", kMaxBases,
      " other contents of the file; download the graph, then load the page again");
}

absl::StatusOr<std::string> EditApi::PageData(bool has_server) {
  int64_t number = 0;
  GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<const EditBase> base, ReadBase(&number));
  // A page without a server saves only the graph of a SavedModel.
  const bool has_name = !options_.path.empty() && (has_server || options_.model.empty());
  const std::string file = has_name ? std::string(FileName(options_.path)) : "graph.pbtxt";
  int64_t page = 0;
  if (has_server) {
    const std::lock_guard<std::mutex> lock(mutex_);
    page = next_page_++;
  }
  const size_t max_attr_bytes = has_server ? kMaxSentAttrBytes : std::numeric_limits<size_t>::max();
  JsonArrayText ops;
  const auto add = [&](const std::string& name, const OpDef& def, OpKind kind) {
    ops.AddText(OpJson(name, def, kind, /*for_editing=*/true));
  };
  for (const OpRegistration* op : GlobalRegistry().Ops()) {
    // The page makes the arguments and results of functions itself.
    if (op->functional() == FunctionalOp::kArg || op->functional() == FunctionalOp::kRetval)
      continue;
    add(op->def().name(), op->def(), OpKind::kRegistered);
  }
  for (const FunctionDef& function : base->def.library().function()) {
    if (GlobalRegistry().FindOp(function.signature().name()) != nullptr) continue;
    add(function.signature().name(), function.signature(), OpKind::kFunction);
  }
  JsonArrayText nodes;
  for (const NodeDef& node : base->def.node()) nodes.AddText(EditNodeJson(node, max_attr_bytes));
  JsonArrayText functions;
  for (const FunctionDef& function : base->def.library().function()) {
    functions.AddText(EditFunctionJson(function, max_attr_bytes));
  }
  // The other fields of the library and of the graph, for files that the page writes itself.
  GraphDef rest = base->def;
  rest.clear_node();
  std::string rest_of_library;
  if (base->def.has_library()) {
    rest.mutable_library()->clear_function();
    rest.mutable_library()->DiscardUnknownFields();
    google::protobuf::TextFormat::PrintToString(rest.library(), &rest_of_library);
    rest.clear_library();
  }
  JsonObjectText edit;
  edit.Add("server", has_server);
  edit.Add("base", number);
  edit.Add("page", page);
  edit.Add("file", LimitedText(file, 4096));
  edit.AddText("ops", ops.Finish());
  edit.AddText("nodes", nodes.Finish());
  edit.AddText("functions", functions.Finish());
  edit.Add("library", rest_of_library);
  edit.Add("rest", GraphDefToText(rest));
  GraphJsonOptions options;
  options.title = file;
  options.edit = edit.Finish();
  return GraphJson(AnalyzedGraph(), options);
}

struct EditApi::OpenSession {
  OpenSession(EditApi* api, std::unique_ptr<Session> opened, Watchdog::Clock::time_point deadline)
      : lock(api->run_mutex_, std::adopt_lock),
        session(std::move(opened)),
        watchdog(session.get(), deadline),
        api(api) {
    const std::lock_guard<std::mutex> guard(api->mutex_);
    api->session_ = session.get();
    if (api->is_stopped_) session->Close().IgnoreError();
  }
  ~OpenSession() {
    const std::lock_guard<std::mutex> guard(api->mutex_);
    api->session_ = nullptr;
  }

  const std::unique_lock<std::mutex> lock;
  const std::unique_ptr<Session> session;
  const Watchdog watchdog;
  EditApi* const api;
};

absl::StatusOr<std::unique_ptr<EditApi::OpenSession>> EditApi::MakeSession(
    Watchdog::Clock::time_point deadline) {
  SessionOptions options;
  options.graph_limits = options_.limits;
  options.graph_limits.deadline = deadline;
  options.config.set_intra_op_parallelism_threads(options_.threads);
  options.config.set_inter_op_parallelism_threads(options_.threads);
  options.tensor_memory_limit_bytes = options_.memory_limit;
  options.file_access = options_.file_access;
  if (!options_.model.empty()) {
    GRADFLOW_ASSIGN_OR_RETURN(options.file_access, options.file_access.AlsoReading(options_.model));
  }
  options.config.mutable_graph_options()->mutable_optimizer_options()->set_opt_level(
      OptimizerOptions::L0);
  std::unique_lock<std::mutex> lock(run_mutex_);
  GRADFLOW_ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Make(options));
  lock.release();
  return std::make_unique<OpenSession>(this, std::move(session), deadline);
}

absl::StatusOr<Tensor> EditApi::FeedValue(const Value& feed, Watchdog::Clock::time_point deadline) {
  if (Member(feed, "image").kind_case() == Value::kStringValue) return DecodeImage(feed, deadline);
  if (Member(feed, "npy").kind_case() == Value::kStringValue) {
    GRADFLOW_ASSIGN_OR_RETURN(const std::string bytes, File(feed, "npy"));
    return ParseNpy(bytes);
  }
  return Numbers(feed);
}

// Decodes like DecodeImage: floating-point numbers are from 0 to 1, integers are unchanged.
absl::StatusOr<Tensor> EditApi::DecodeImage(const Value& image,
                                            Watchdog::Clock::time_point deadline) {
  GRADFLOW_ASSIGN_OR_RETURN(std::string bytes, File(image, "image"));
  GRADFLOW_ASSIGN_OR_RETURN(const DataType type, Type(image));
  if (!DataTypeIsFloating(type) && !DataTypeIsInteger(type)) {
    return errors::InvalidArgument("an image has numbers, but the tensor is ",
                                   DataTypeString(type));
  }
  const double channels = Member(image, "channels").number_value();
  if (!(channels >= 0 && channels <= 4)) {
    return errors::InvalidArgument("channels is ", channels, ", expected 0, 1, 3 or 4");
  }
  const Scope root = Scope::NewRootScope();
  const ops::Placeholder file(root.WithOpName("file"), DT_STRING);
  const DataType decoded_type = DataTypeIsFloating(type) ? DT_FLOAT
                                : type == DT_UINT16      ? DT_UINT16
                                                         : DT_UINT8;
  Output result = ops::DecodeImage(root, file,
                                   ops::DecodeImage::Attrs()
                                       .Channels(static_cast<int64_t>(channels))
                                       .Dtype(decoded_type)
                                       .ExpandAnimations(false));
  if (type != decoded_type) result = ops::Cast(root, result, type);
  if (Member(image, "batch").bool_value()) result = ops::ExpandDims(root, result, 0);
  GraphDef graph;
  GRADFLOW_RETURN_IF_ERROR(root.ToGraphDef(&graph));
  GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<OpenSession> open, MakeSession(deadline));
  GRADFLOW_RETURN_IF_ERROR(open->watchdog.Explain(open->session->Create(std::move(graph))));
  Tensor contents(DT_STRING, TensorShape());
  contents.scalar<tstring>()() = std::move(bytes);
  std::vector<Tensor> outputs;
  GRADFLOW_RETURN_IF_ERROR(open->watchdog.Explain(
      open->session->Run({{"file", contents}}, {NameOf(result)}, {}, &outputs)));
  return outputs[0];
}

absl::StatusOr<std::string> EditApi::Image(const Value& request) {
  GRADFLOW_ASSIGN_OR_RETURN(const Tensor tensor,
                            DecodeImage(request, DeadlineAfter(options_.timeout_seconds)));
  if (tensor.TotalBytes() > kMaxConstantBytes) {
    return errors::InvalidArgument("the image has ", tensor.TotalBytes(), " bytes as ",
                                   DataTypeString(tensor.dtype()), " ",
                                   tensor.shape().DebugString(), ", but a constant has at most ",
                                   kMaxConstantBytes, "; feed it instead");
  }
  AttrValue value;
  tensor.AsProtoTensorContent(value.mutable_tensor());
  return JsonText({{"value", AttrValueText(value)}});
}

void EditApi::Stop() {
  const std::lock_guard<std::mutex> lock(mutex_);
  is_stopped_ = true;
  if (session_ != nullptr) session_->Close().IgnoreError();
}

void EditApi::Cancel() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (session_ != nullptr) session_->Close().IgnoreError();
}

absl::StatusOr<std::string> EditApi::Call(absl::string_view name, absl::string_view request) {
  static const auto* const names = new absl::flat_hash_set<absl::string_view>{
      "page", "check", "run", "save", "gradients", "image", "cpp", "cancel"};
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
  if (name == "page") return PageData(/*has_server=*/true);
  if (name == "image") return Image(value);
  if (name == "cancel") {
    Cancel();
    return std::string("{}");
  }
  GRADFLOW_ASSIGN_OR_RETURN(const std::shared_ptr<const EditBase> base, FindBase(value));
  GRADFLOW_ASSIGN_OR_RETURN(const EditedGraph graph,
                            MakeEditedGraph(*base, value, options_.limits));
  if (name == "check") return Check(graph);
  if (name == "run") return Run(*base, graph, value);
  if (name == "save") return Save(*base, graph, value);
  if (name == "gradients") return Differentiate(graph, value);
  GraphLimits limits = options_.limits;
  limits.deadline = DeadlineAfter(options_.timeout_seconds);
  GRADFLOW_ASSIGN_OR_RETURN(
      const std::string program,
      CppProgram(graph.def, options_.path.empty() ? "graph" : FileName(options_.path), limits));
  return JsonText({{"text", program}});
}

absl::StatusOr<std::string> EditApi::Check(const EditedGraph& edited) const {
  GraphLimits limits = options_.limits;
  limits.deadline = DeadlineAfter(options_.timeout_seconds);
  CheckJson json;
  const FunctionDefLibrary& library = edited.def.library();
  const Definitions definitions(library);
  json.AddGraph(AnalyzeEachNode(edited.def, limits), "");
  for (const FunctionDef& function : library.function()) {
    GraphDef body = definitions.BodyWithSignatures(function);
    // The calls of a function with attributes decide its types.
    if (function.signature().attr_size() > 0) {
      json.AddUnknown(body.node_size());
      continue;
    }
    const AnalyzedGraph analyzed = AnalyzeEachNode(std::move(body), limits);
    json.AddGraph(analyzed, absl::StrCat("function '",
                                         errors::Printable(function.signature().name()), "': "));
  }
  return json.Finish();
}

absl::StatusOr<std::string> EditApi::Run(const EditBase& base, const EditedGraph& edited,
                                         const Value& request) {
  const Watchdog::Clock::time_point deadline = DeadlineAfter(options_.timeout_seconds);
  CallableOptions options;
  std::vector<Tensor> feeds;
  std::vector<std::string> fed;
  int64_t bytes = 0;
  for (const Value& feed : Member(request, "feeds").list_value().values()) {
    GRADFLOW_ASSIGN_OR_RETURN(const std::string name, Text(feed, "name"));
    absl::StatusOr<Tensor> value = FeedValue(feed, deadline);
    if (!value.ok()) {
      return errors::Prefix(absl::StrCat("feed '", errors::Printable(name, 200), "': "),
                            value.status());
    }
    bytes += static_cast<int64_t>(value->TotalBytes());
    if (options_.memory_limit > 0 && bytes > options_.memory_limit) {
      return errors::ResourceExhausted("the feeds have more than ", options_.memory_limit,
                                       " bytes (--memory-limit)");
    }
    options.add_feed(name);
    fed.push_back(name);
    feeds.push_back(*std::move(value));
  }
  GRADFLOW_ASSIGN_OR_RETURN(const std::unique_ptr<OpenSession> open, MakeSession(deadline));
  Session* const session = open->session.get();
  const Watchdog& watchdog = open->watchdog;
  GraphLimits limits = options_.limits;
  limits.deadline = deadline;
  // Finds the nodes that the run needs, because other parts of the graph may be incomplete.
  GRADFLOW_ASSIGN_OR_RETURN(GraphDef def, RequestedGraph(edited.def, request));
  const AnalyzedGraph graph = AnalyzeEachNode(def, limits);
  if (Watchdog::Clock::now() >= deadline) {
    return absl::DeadlineExceededError("the time limit (--timeout) is over");
  }
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<std::string> until, Texts(request, "until"));
  std::vector<std::string> ends;
  std::vector<std::string> targets;
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
      if (graph.nodes[i] != nullptr) *def.add_node() = graph.def.node(i);
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
  if (base.model.has_value()) {
    SavedModel model = EditedModel(base, edited.def);
    GRADFLOW_ASSIGN_OR_RETURN(const auto tags, ChooseTags(model, options_.tag));
    MetaGraphDef meta_graph;
    GRADFLOW_RETURN_IF_ERROR(TakeMetaGraph(options_.model, tags, &model, &meta_graph));
    GRADFLOW_RETURN_IF_ERROR(
        watchdog.Explain(RestoreSession(RunOptions(), meta_graph, options_.model, session)));
  }
  // Fed tensors already have values.
  const absl::flat_hash_set<std::string> is_fed(fed.begin(), fed.end());
  ends.erase(std::remove_if(ends.begin(), ends.end(),
                            [&](const std::string& name) { return is_fed.contains(name); }),
             ends.end());
  std::vector<std::string> reported = ends;
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<std::string> others,
                            ReportedOutputs(graph, "all", ends, targets, fed));
  reported.insert(reported.end(), others.begin(), others.end());
  GRADFLOW_ASSIGN_OR_RETURN(const ReportNodes nodes, ReportNodes::Add(graph, reported, session));
  for (const std::string& name : nodes.fetches()) options.add_fetch(name);
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
  std::vector<TensorReport> reports = nodes.Reports(outputs);
  for (size_t i = 0; i < feeds.size(); ++i) reports.push_back(ReportTensor(fed[i], feeds[i]));
  JsonObjectText json;
  json.AddText("run", RunJson(graph, metadata.step_stats(), reports));
  return json.Finish();
}

absl::StatusOr<std::string> EditApi::Save(const EditBase& base, const EditedGraph& graph,
                                          const Value& request) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::string name, Text(request, "file"));
  const bool is_text = absl::EndsWith(name, ".pbtxt");
  if (name.find('/') != std::string::npos || name.find('\0') != std::string::npos ||
      absl::StartsWith(name, ".") || (!is_text && !absl::EndsWith(name, ".pb"))) {
    return errors::InvalidArgument("'", errors::Printable(name, 200),
                                   "' must be the name of a file, without a folder, that ends in "
                                   ".pb or .pbtxt");
  }
  const bool is_model = base.model.has_value() && name == FileName(options_.path);
  GRADFLOW_ASSIGN_OR_RETURN(const std::string content,
                            is_model ? EditedModelFile(base, graph.def)
                                     : EditedFile(base, graph, is_text, options_.limits));
  const std::string folder =
      options_.path.substr(0, options_.path.size() - FileName(options_.path).size());
  const std::string path = absl::StrCat(folder, name);
  GRADFLOW_ASSIGN_OR_RETURN(const int64_t page, PageNumber(request));
  const std::lock_guard<std::mutex> lock(save_mutex_);
  // The creator of this object holds the lock of the edited file.
  std::optional<EditLock> other;
  if (path != options_.path && locks_.find(path) == locks_.end()) {
    GRADFLOW_ASSIGN_OR_RETURN(other, EditLock::Acquire(path));
  }
  if (!Member(request, "overwrite").bool_value()) {
    GRADFLOW_RETURN_IF_ERROR(CheckOverwrite(base, page, path));
  }
  GRADFLOW_RETURN_IF_ERROR(
      errors::Prefix(absl::StrCat("'", path, "': "), internal::WriteFile(path, {content})));
  if (saved_.size() >= kMaxSaved) saved_.erase(saved_.begin());
  saved_[{page, path}] = absl::HashOf(content);
  if (other.has_value()) {
    // An error is ignored: the file is saved even if other editors do not learn the address.
    other->Announce(address_).IgnoreError();
    locks_.emplace(path, *std::move(other));
  }
  return JsonText({{"file", name}, {"bytes", content.size()}});
}

absl::Status EditApi::CheckOverwrite(const EditBase& base, int64_t page,
                                     const std::string& path) const {
  const absl::StatusOr<std::string> current = ReadEditedFile(path, options_.limits);
  if (absl::IsNotFound(current.status())) return absl::OkStatus();
  const auto saved = saved_.find({page, path});
  const bool is_loaded = path == options_.path;
  if (current.ok()) {
    if (saved != saved_.end() && saved->second == absl::HashOf(*current)) return absl::OkStatus();
    if (saved == saved_.end() && is_loaded && *current == base.bytes) return absl::OkStatus();
  }
  return errors::FailedPrecondition("'", FileName(path), "' ",
                                    saved != saved_.end() ? "has changed since the page saved it"
                                    : is_loaded           ? "has changed since the page was loaded"
                                                          : "exists",
                                    "; save again to overwrite it, or under another name");
}

absl::StatusOr<std::string> EditApi::Differentiate(const EditedGraph& edited,
                                                   const Value& request) const {
  GRADFLOW_ASSIGN_OR_RETURN(const std::string of, Text(request, "of"));
  GRADFLOW_ASSIGN_OR_RETURN(const std::vector<std::string> wrt, Texts(request, "wrt"));
  ImportGraphDefOptions import;
  import.limits = options_.limits;
  import.limits.deadline = DeadlineAfter(options_.timeout_seconds);
  GRADFLOW_ASSIGN_OR_RETURN(const GraphDef def, RequestedGraph(edited.def, request));
  const Scope scope = Scope::NewRootScope();
  GRADFLOW_RETURN_IF_ERROR(ImportGraphDef(import, def, scope.graph()));
  GRADFLOW_ASSIGN_OR_RETURN(const Output loss, FindTensor(*scope.graph(), of));
  std::vector<Output> inputs;
  for (const std::string& name : wrt) {
    GRADFLOW_ASSIGN_OR_RETURN(const Output input, FindTensor(*scope.graph(), name));
    inputs.push_back(input);
  }
  if (inputs.empty()) return errors::InvalidArgument("expected \"wrt\", names of tensors");
  std::vector<Output> gradients;
  GRADFLOW_RETURN_IF_ERROR(AddSymbolicGradients(scope, {loss}, inputs, &gradients));
  GraphDef result;
  GRADFLOW_RETURN_IF_ERROR(scope.ToGraphDef(&result));
  if (result.library().function_size() != def.library().function_size()) {
    return errors::Unimplemented("the gradient adds functions; use `gradflow gradients`");
  }
  JsonArrayText nodes;
  for (int i = def.node_size(); i < result.node_size(); ++i) {
    nodes.AddText(EditNodeJson(result.node(i), std::numeric_limits<size_t>::max()));
  }
  Json names = Json::array();
  for (const Output& gradient : gradients) {
    names.push_back(IsNoGradient(gradient) ? Json() : Json(NameOf(gradient)));
  }
  JsonObjectText json;
  json.AddText("nodes", nodes.Finish());
  json.Add("gradients", names);
  return json.Finish();
}

}  // namespace gradflow::tools
