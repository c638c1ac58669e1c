#include "gradflow/graph/function_library.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/cleanup/cleanup.h"
#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/call_safely.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/registry.h"
#include "gradflow/core/shape_fns.h"
#include "gradflow/core/status.h"
#include "gradflow/graph/function_body.h"
#include "gradflow/graph/node_checks.h"
#include "gradflow/graph/tables.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow {
namespace {

using internal::AttrMap;
using internal::HashMap;
using internal::Quoted;

// All instances together may take kMaxExpansion times the bytes of the functions, plus
// kMaxMoreBytes.
constexpr int64_t kMaxExpansion = 8;
constexpr int64_t kMaxMoreBytes = int64_t{256} << 20;
// The bytes that are counted for an instance in addition to its nodes, because a graph allocates
// nodes in blocks.
constexpr int64_t kInstanceBytes = 32 << 10;

std::string FunctionPrefix(absl::string_view name) {
  return absl::StrCat("function ", Quoted(name), ": ");
}

absl::Status NoFunction(absl::string_view name) {
  return errors::NotFound(FunctionPrefix(name), "the graph has no function of this name");
}

// Returns a key for a function with values of its attributes. Equal values have equal keys, because
// maps are sorted.
std::string KeyOf(absl::string_view name, const internal::BoundAttrs& attrs) {
  std::string key = absl::StrCat(name.size(), ":", name);
  google::protobuf::io::StringOutputStream stream(&key);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.SetSerializationDeterministic(true);
  for (const auto& [attr, value] : attrs) {
    out.WriteVarint64(value->ByteSizeLong());
    value->SerializePartialToCodedStream(&out);
  }
  return key;
}

bool IsCall(FunctionalOp functional) {
  return functional != FunctionalOp::kNone && functional != FunctionalOp::kArg &&
         functional != FunctionalOp::kRetval;
}

}  // namespace

struct FunctionLibrary::Impl {
  Impl(const Registry& r, const GraphDef& g) : registry(r), root(g) {}

  absl::StatusOr<const FunctionBody*> Instantiate(const FunctionLibrary& library,
                                                  const std::string& name, const AttrMap& attrs);
  // Returns true if a call of the function runs nodes even if nothing needs its results, or if
  // there is no such function.
  bool HasEffects(absl::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void FindEffects() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  bool HasDirectEffects(const FunctionDef& function, std::vector<int>* callees) const;
  int FindIndex(absl::string_view name) const {
    const auto it = index.find(name);
    return it == index.end() ? -1 : it->second;
  }

  const Registry& registry;
  const GraphDef& root;
  bool infer_shapes = true;
  // The functions, and their indexes by name.
  std::vector<const FunctionDef*> functions;
  HashMap<absl::string_view, int> index;
  // The bytes of the functions: element i is the sum for the first i functions.
  std::vector<int64_t> bytes = {0};

  Mutex ops_mutex;
  HashMap<absl::string_view, std::unique_ptr<const OpRegistration>> ops ABSL_GUARDED_BY(ops_mutex);

  // Held while an instance is made. Making an instance does not instantiate the functions that it
  // calls, so it does not lock the mutex again.
  Mutex mutex;
  int64_t used_bytes ABSL_GUARDED_BY(mutex) = 0;
  HashMap<std::string, std::unique_ptr<const FunctionBody>> bodies ABSL_GUARDED_BY(mutex);
  // For each function, true if it has effects. FindEffects() adds the elements of new functions.
  std::vector<bool> effects ABSL_GUARDED_BY(mutex);
  // True if a function in `effects` calls a function that the library does not have.
  bool misses_functions ABSL_GUARDED_BY(mutex) = false;
  // For each function, true after SetClosed(). May have fewer elements than `functions`.
  std::vector<bool> closed;
};

FunctionLibrary::FunctionLibrary(const Registry& registry, const GraphDef& root)
    : impl_(std::make_unique<Impl>(registry, root)) {}
FunctionLibrary::~FunctionLibrary() = default;

const FunctionDef* FunctionLibrary::Find(absl::string_view name) const {
  const int i = impl_->FindIndex(name);
  return i < 0 ? nullptr : impl_->functions[static_cast<size_t>(i)];
}

// ---- Adding functions ----

void FunctionLibrary::Add(const FunctionDef* function) {
  impl_->functions.push_back(function);
  // The library gets everything or nothing.
  absl::Cleanup remove = [this, size = size() - 1] { Truncate(size); };
  impl_->bytes.push_back(impl_->bytes.back() + static_cast<int64_t>(function->ByteSizeLong()) +
                         internal::kFunctionNodeBytes * function->node_def_size());
  impl_->index.emplace(function->signature().name(), static_cast<int>(impl_->functions.size()) - 1);
  MutexLock lock(&impl_->mutex);
  // A missing function counts as an effect of its callers.
  if (impl_->misses_functions) impl_->effects.clear();
  std::move(remove).Cancel();
}

size_t FunctionLibrary::size() const { return impl_->functions.size(); }

const std::string& FunctionLibrary::name(size_t i) const {
  return impl_->functions[i]->signature().name();
}

bool FunctionLibrary::IsClosed(absl::string_view name) const {
  const int i = impl_->FindIndex(name);
  return i >= 0 && static_cast<size_t>(i) < impl_->closed.size() &&
         impl_->closed[static_cast<size_t>(i)];
}

void FunctionLibrary::SetClosed(absl::string_view name) {
  const auto i = static_cast<size_t>(impl_->FindIndex(name));
  if (i >= impl_->closed.size()) impl_->closed.resize(impl_->functions.size());
  impl_->closed[i] = true;
}

void FunctionLibrary::Truncate(size_t size) {
  MutexLock lock(&impl_->mutex);
  MutexLock ops_lock(&impl_->ops_mutex);
  while (impl_->functions.size() > size) {
    const std::string& name = impl_->functions.back()->signature().name();
    impl_->ops.erase(name);
    const auto it = impl_->index.find(name);
    if (it != impl_->index.end() && it->second + 1 == static_cast<int>(impl_->functions.size())) {
      impl_->index.erase(it);
    }
    impl_->functions.pop_back();
    impl_->bytes.resize(impl_->functions.size() + 1);
  }
  // The cached effects of the other functions may depend on the removed functions.
  if (impl_->effects.size() > size) impl_->effects.clear();
  if (impl_->closed.size() > size) impl_->closed.clear();
}

void FunctionLibrary::SetInferShapes(bool infer) { impl_->infer_shapes = infer; }

absl::StatusOr<const OpRegistration*> FunctionLibrary::FindOp(absl::string_view name) const {
  MutexLock lock(&impl_->ops_mutex);
  if (const auto it = impl_->ops.find(name); it != impl_->ops.end()) return it->second.get();
  const FunctionDef* const function = Find(name);
  if (function == nullptr) return NoFunction(name);
  if (absl::Status status = ValidateFunctionSignature(function->signature()); !status.ok()) {
    return errors::Prefix(absl::StrCat(FunctionPrefix(name), "in its signature: "), status);
  }
  auto op =
      std::make_unique<const OpRegistration>(std::make_unique<OpDef>(function->signature()),
                                             OutputShapesAttrShape, OpApi(), FunctionalOp::kCall);
  const OpRegistration* const added = op.get();
  impl_->ops.emplace(added->def().name(), std::move(op));
  return added;
}

// ---- Effects ----

bool FunctionLibrary::Impl::HasEffects(absl::string_view name) {
  const int i = FindIndex(name);
  if (i < 0) return true;
  if (effects.size() < functions.size()) FindEffects();
  return effects[static_cast<size_t>(i)];
}

// Returns true if the function has an effect apart from the effects of its calls. Appends the
// indexes of the functions that it calls to *callees.
bool FunctionLibrary::Impl::HasDirectEffects(const FunctionDef& function,
                                             std::vector<int>* callees) const {
  bool has_effects = function.control_ret_size() > 0;
  for (const NodeDef& node : function.node_def()) {
    const OpRegistration* const op = registry.FindOp(node.op());
    if (op == nullptr) {
      callees->push_back(FindIndex(node.op()));
      continue;
    }
    has_effects |= op->def().is_stateful() && op->functional() != FunctionalOp::kArg &&
                   op->functional() != FunctionalOp::kRetval;
    if (!IsCall(op->functional())) continue;
    for (const auto& [name, value] : node.attr()) {
      // A placeholder may stand for any function.
      const OpDef& def = op->def();
      const auto attr = std::find_if(def.attr().begin(), def.attr().end(),
                                     [&key = name](const auto& a) { return a.name() == key; });
      const bool takes_functions =
          attr != def.attr().end() && (attr->type() == "func" || attr->type() == "list(func)");
      if (!takes_functions) continue;
      has_effects |= value.value_case() == AttrValue::kPlaceholder;
      if (value.has_func()) callees->push_back(FindIndex(value.func().name()));
      for (const NameAttrList& called : value.list().func()) {
        callees->push_back(FindIndex(called.name()));
      }
    }
  }
  // A call of an op or function that does not exist counts as an effect, because it must not be
  // dropped in silence.
  for (const int callee : *callees) has_effects |= callee < 0;
  return has_effects;
}

// Finds the effects of all new functions at once: spreads effects from callees to callers. If each
// function were searched separately, chains of calls would take quadratic time. Known functions do
// not call new functions: if a known function calls a function that does not exist, AddFunction()
// clears `effects`.
void FunctionLibrary::Impl::FindEffects() {
  const size_t first = effects.size();
  if (first == 0) misses_functions = false;
  effects.resize(functions.size(), false);
  std::vector<std::vector<int>> callers(functions.size() - first);
  std::vector<int> ready;
  for (size_t i = first; i < functions.size(); ++i) {
    std::vector<int> callees;
    bool has_effects = HasDirectEffects(*functions[i], &callees);
    for (const int callee : callees) {
      misses_functions |= callee < 0;
      if (has_effects) continue;
      if (callee < static_cast<int>(first)) {
        has_effects = effects[static_cast<size_t>(callee)];
      } else {
        callers[static_cast<size_t>(callee) - first].push_back(static_cast<int>(i));
      }
    }
    if (!has_effects) continue;
    effects[i] = true;
    ready.push_back(static_cast<int>(i));
  }
  while (!ready.empty()) {
    const size_t function = static_cast<size_t>(ready.back()) - first;
    ready.pop_back();
    for (const int caller : callers[function]) {
      if (effects[static_cast<size_t>(caller)]) continue;
      effects[static_cast<size_t>(caller)] = true;
      ready.push_back(caller);
    }
  }
}

// ---- Instances ----

absl::StatusOr<const FunctionBody*> FunctionLibrary::Impl::Instantiate(
    const FunctionLibrary& library, const std::string& name, const AttrMap& attrs) {
  const FunctionDef* const function = library.Find(name);
  if (function == nullptr) return NoFunction(name);
  absl::StatusOr<internal::BoundAttrs> bound =
      internal::BindFunctionAttrs(function->signature(), attrs);
  if (!bound.ok()) return errors::Prefix(FunctionPrefix(name), bound.status());
  std::string key = KeyOf(name, *bound);

  MutexLock lock(&mutex);
  if (const auto it = bodies.find(key); it != bodies.end()) return it->second.get();
  const int64_t own_bytes = kInstanceBytes + static_cast<int64_t>(key.size());
  const auto has_effects = [this](absl::string_view called)
                               ABSL_NO_THREAD_SAFETY_ANALYSIS { return HasEffects(called); };
  const internal::FunctionBodyBuilder::Options options{
      infer_shapes, root.versions().producer(),
      kMaxExpansion * bytes.back() + kMaxMoreBytes - used_bytes - own_bytes, has_effects};
  internal::FunctionBodyBuilder builder(*function, *bound, library, registry, options);
  absl::StatusOr<std::unique_ptr<FunctionBody>> body = builder.Build();
  if (!body.ok()) return errors::Prefix(FunctionPrefix(name), body.status());
  const FunctionBody* const made = body->get();
  bodies.emplace(std::move(key), *std::move(body));
  used_bytes += own_bytes + builder.bytes();
  return made;
}

absl::StatusOr<const FunctionBody*> FunctionLibrary::Instantiate(
    const NameAttrList& function) const {
  const FunctionBody* body = nullptr;
  GRADFLOW_RETURN_IF_ERROR(CallSafely([&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(body, impl_->Instantiate(*this, function.name(), function.attr()));
    return absl::OkStatus();
  }));
  return body;
}

absl::StatusOr<const FunctionBody*> FunctionLibrary::Instantiate(const NodeDef& call) const {
  const FunctionBody* body = nullptr;
  GRADFLOW_RETURN_IF_ERROR(CallSafely([&]() -> absl::Status {
    GRADFLOW_ASSIGN_OR_RETURN(body, impl_->Instantiate(*this, call.op(), call.attr()));
    return absl::OkStatus();
  }));
  return body;
}

// ---- Calls ----

namespace {

// Compares the types of a node with the types of a function that it calls.
class CallChecker {
 public:
  explicit CallChecker(const Node& node) : node_(node) {}

  // Adds the function of an attribute.
  absl::Status AddFrom(absl::string_view attr) {
    const AttrValue* const value = FindNodeAttr(node_.def(), attr);
    if (value == nullptr || !value->has_func()) return NoFunctions(attr);
    return Add(std::string(attr), value->func());
  }
  // Adds the functions of a list, and calls `check` after each.
  absl::Status AddEachFrom(absl::string_view attr, absl::FunctionRef<absl::Status()> check) {
    const AttrValue* const value = FindNodeAttr(node_.def(), attr);
    if (value == nullptr || !value->has_list()) return NoFunctions(attr);
    for (int i = 0; i < value->list().func_size(); ++i) {
      GRADFLOW_RETURN_IF_ERROR(Add(absl::StrCat(attr, "[", i, "]"), value->list().func(i)));
      GRADFLOW_RETURN_IF_ERROR(check());
    }
    return absl::OkStatus();
  }
  absl::Status AddNamedByOp() {
    GRADFLOW_ASSIGN_OR_RETURN(const FunctionBody* const body,
                              node_.graph().functions().Instantiate(node_.def()));
    attrs_.emplace_back();
    bodies_.push_back(body);
    return absl::OkStatus();
  }

  // Check the last function that was added.
  absl::Status CheckArgs(const DataTypeVector& expected) const {
    return Check("argument", bodies_.back()->arg_types(), expected);
  }
  absl::Status CheckResults(const DataTypeVector& expected) const {
    return Check("result", bodies_.back()->result_types(), expected);
  }
  absl::Status CheckCondition() const {
    const size_t found = bodies_.back()->result_types().size();
    if (found == 1) return absl::OkStatus();
    return errors::InvalidArgument(Prefix(), "it has ", found, " results, expected 1");
  }

  std::vector<const FunctionBody*> TakeBodies() { return std::move(bodies_); }

 private:
  absl::Status Add(std::string attr, const NameAttrList& function) {
    absl::StatusOr<const FunctionBody*> body = node_.graph().functions().Instantiate(function);
    if (!body.ok()) {
      return errors::Prefix(absl::StrCat("attribute ", attr, ": "), body.status());
    }
    attrs_.push_back(std::move(attr));
    bodies_.push_back(*body);
    return absl::OkStatus();
  }
  // An op that a program registers may have a FunctionalOp without the attribute that it needs.
  absl::Status NoFunctions(absl::string_view attr) const {
    return errors::InvalidArgument("the op has no attribute ", attr, " of functions");
  }

  std::string Prefix() const {
    return absl::StrCat(
        attrs_.back().empty() ? "" : absl::StrCat("attribute ", attrs_.back(), ": "),
        FunctionPrefix(bodies_.back()->name()));
  }
  absl::Status Check(absl::string_view what, const DataTypeVector& found,
                     const DataTypeVector& expected) const {
    if (found.size() != expected.size()) {
      return errors::InvalidArgument(Prefix(), "it has ", found.size(), " ", what,
                                     found.size() == 1 ? "" : "s", ", expected ", expected.size());
    }
    for (size_t i = 0; i < found.size(); ++i) {
      if (found[i] == expected[i]) continue;
      return errors::InvalidArgument(Prefix(), what, " ", i, " has type ", DataTypeString(found[i]),
                                     ", expected ", DataTypeString(expected[i]));
    }
    return absl::OkStatus();
  }

  const Node& node_;
  // The functions, with the attributes that they come from.
  std::vector<std::string> attrs_;
  std::vector<const FunctionBody*> bodies_;
};

absl::Status CheckCalls(const Node& node, CallChecker* calls) {
  DataTypeVector inputs;
  for (int i = 0; i < node.num_inputs(); ++i) inputs.push_back(BaseType(node.input_type(i)));
  const DataTypeVector& outputs = node.output_types();
  // The first input of If and Case selects the function; the first three of For are the range.
  const auto inputs_from = [&](int first) {
    const size_t skipped = std::min(inputs.size(), static_cast<size_t>(first));
    return DataTypeVector(inputs.begin() + static_cast<ptrdiff_t>(skipped), inputs.end());
  };
  const auto check = [&](const DataTypeVector& args, const DataTypeVector& results) {
    GRADFLOW_RETURN_IF_ERROR(calls->CheckArgs(args));
    return calls->CheckResults(results);
  };
  switch (node.op().functional()) {
    case FunctionalOp::kCall:
      // A function with the name of a registered op does not replace the op.
      if (node.graph().registry().FindOp(node.type_string()) == &node.op()) {
        GRADFLOW_RETURN_IF_ERROR(calls->AddFrom("f"));
      } else {
        GRADFLOW_RETURN_IF_ERROR(calls->AddNamedByOp());
      }
      return check(inputs, outputs);
    case FunctionalOp::kIf:
      for (const char* attr : {"then_branch", "else_branch"}) {
        GRADFLOW_RETURN_IF_ERROR(calls->AddFrom(attr));
        GRADFLOW_RETURN_IF_ERROR(check(inputs_from(1), outputs));
      }
      return absl::OkStatus();
    case FunctionalOp::kCase:
      return calls->AddEachFrom("branches", [&] { return check(inputs_from(1), outputs); });
    case FunctionalOp::kWhile:
      GRADFLOW_RETURN_IF_ERROR(calls->AddFrom("cond"));
      GRADFLOW_RETURN_IF_ERROR(calls->CheckArgs(inputs));
      GRADFLOW_RETURN_IF_ERROR(calls->CheckCondition());
      GRADFLOW_RETURN_IF_ERROR(calls->AddFrom("body"));
      return check(inputs, outputs);
    case FunctionalOp::kFor: {
      GRADFLOW_RETURN_IF_ERROR(calls->AddFrom("body"));
      DataTypeVector args = {DT_INT32};
      const DataTypeVector rest = inputs_from(3);
      args.insert(args.end(), rest.begin(), rest.end());
      return check(args, outputs);
    }
    default:
      return absl::OkStatus();
  }
}

}  // namespace

absl::StatusOr<std::vector<const FunctionBody*>> CalledFunctions(const Node& node) {
  CallChecker calls(node);
  GRADFLOW_RETURN_IF_ERROR(CallSafely([&] { return CheckCalls(node, &calls); }));
  return calls.TakeBodies();
}

}  // namespace gradflow
