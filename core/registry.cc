#include "gradflow/core/registry.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "absl/algorithm/container.h"
#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gradflow/core/attributes.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/op_def_util.h"
#include "gradflow/core/status.h"
#include "gradflow/proto/attr_value.pb.h"
#include "gradflow/proto/node_def.pb.h"
#include "gradflow/proto/op_def.pb.h"

namespace gradflow {

struct Registry::Tables {
  mutable Mutex mutex;
  // Keys view the names inside the values.
  absl::flat_hash_map<absl::string_view, std::unique_ptr<OpRegistration>> ops
      ABSL_GUARDED_BY(mutex);
  absl::flat_hash_map<std::string, std::vector<std::unique_ptr<KernelRegistration>>> kernels
      ABSL_GUARDED_BY(mutex);
  absl::Status status ABSL_GUARDED_BY(mutex);
  absl::Span<const char* const> left_out ABSL_GUARDED_BY(mutex);

  // Keeps `error` for status() if it is the first. Returns `error`.
  absl::Status RecordError(absl::Status error) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    status.Update(error);
    return error;
  }
};

namespace {

// The attributes of a node. Caches the last look-up, because consecutive kernels often constrain
// the same attribute.
class AttrsOfNode {
 public:
  explicit AttrsOfNode(const NodeDef& node) : node_(node) {}
  const AttrValue* Find(const std::string& name) {
    if (name_ == nullptr || *name_ != name) {
      name_ = &name;
      value_ = FindNodeAttr(node_, name);
    }
    return value_;
  }

 private:
  const NodeDef& node_;
  const std::string* name_ = nullptr;
  const AttrValue* value_ = nullptr;
};

bool TypesFit(const KernelRegistration& kernel, AttrsOfNode* attrs) {
  for (const auto& [attr, types] : kernel.type_constraints) {
    const AttrValue* value = attrs->Find(attr);
    if (value == nullptr) return false;
    const auto allowed = [&types = types](int dtype) {
      return std::find(types.begin(), types.end(), dtype) != types.end();
    };
    if (value->value_case() == AttrValue::kList) {
      const auto& list = value->list().type();
      if (!std::all_of(list.begin(), list.end(), allowed)) return false;
    } else if (!allowed(value->type())) {
      return false;
    }
  }
  return true;
}

// Returns false if a type attribute of the node contains DT_RESOURCE or DT_VARIANT and the kernel
// has no constraint on it. A kernel without constraints handles elements as bytes or strings, which
// is wrong for handles and variants. Ignores attributes whose names begin with '_'.
bool ObjectsFit(const KernelRegistration& kernel, const NodeDef& node) {
  const auto is_object = [](int dtype) { return dtype == DT_RESOURCE || dtype == DT_VARIANT; };
  for (const auto& [name, value] : node.attr()) {
    const auto& list = value.list().type();
    const bool has_object = value.value_case() == AttrValue::kType
                                ? is_object(value.type())
                                : std::any_of(list.begin(), list.end(), is_object);
    if (!has_object || absl::StartsWith(name, "_")) continue;
    const auto constrains = [&name = name](const auto& c) { return c.first == name; };
    if (std::none_of(kernel.type_constraints.begin(), kernel.type_constraints.end(), constrains)) {
      return false;
    }
  }
  return true;
}

std::string KernelLabel(const NodeDef& node) {
  const AttrValue* label = FindNodeAttr(node, "_kernel");
  return label == nullptr ? "" : label->s();
}

// Returns the kernels, for messages: "(CPU; T in [float, double]), (CPU; label 'mine')". Kernels
// whose only constraint is on the same attribute are combined if they have the same device and
// label.
std::string DescribeKernels(const std::vector<std::unique_ptr<KernelRegistration>>& kernels) {
  std::vector<KernelRegistration> merged;
  for (const auto& kernel : kernels) {
    const auto same = std::find_if(merged.begin(), merged.end(), [&](const auto& other) {
      return other.type_constraints.size() == 1 && kernel->type_constraints.size() == 1 &&
             other.type_constraints[0].first == kernel->type_constraints[0].first &&
             other.device == kernel->device && other.label == kernel->label;
    });
    if (same == merged.end()) {
      merged.push_back(*kernel);
    } else {
      DataTypeVector& types = same->type_constraints[0].second;
      for (const DataType dtype : kernel->type_constraints[0].second) {
        if (std::find(types.begin(), types.end(), dtype) == types.end()) types.push_back(dtype);
      }
    }
  }
  return absl::StrJoin(merged, ", ", [](std::string* text, const KernelRegistration& kernel) {
    absl::StrAppend(text, "(", kernel.device);
    for (const auto& [attr, types] : kernel.type_constraints) {
      absl::StrAppend(text, "; ", attr, " in ", DataTypeVectorString(types));
    }
    if (!kernel.label.empty()) absl::StrAppend(text, "; label '", kernel.label, "'");
    absl::StrAppend(text, ")");
  });
}

// Returns the node's device, types and label, for messages: "CPU; T = float; label 'mine'".
std::string DescribeRequest(const NodeDef& node, const std::string& device,
                            const std::string& label) {
  std::string text = device;
  // Sorted, because the order of node.attr() depends on hashing.
  std::map<std::string, std::string> types;
  for (const auto& [name, value] : node.attr()) {
    if (value.value_case() == AttrValue::kType) types[name] = DataTypeString(value.type());
  }
  for (const auto& [name, type] : types) absl::StrAppend(&text, "; ", name, " = ", type);
  if (!label.empty()) absl::StrAppend(&text, "; label '", label, "'");
  return text;
}

}  // namespace

std::string DeviceType(absl::string_view device) {
  for (absl::string_view part : absl::StrSplit(device, '/', absl::SkipEmpty())) {
    const bool full = absl::ConsumePrefix(&part, "device:");
    std::string type = absl::AsciiStrToUpper(part.substr(0, part.find(':')));
    if (full || type == "CPU" || type == "GPU") return type;
  }
  return "CPU";
}

OpRegistration::OpRegistration(std::unique_ptr<OpDef> def, ShapeFn shape_fn, OpApi api,
                               FunctionalOp functional)
    : def_(std::move(def)), shape_fn_(shape_fn), api_(std::move(api)), functional_(functional) {}
OpRegistration::~OpRegistration() = default;

Registry::OpRegistrar::OpRegistrar(Registry* registry, absl::string_view name)
    : registry_(registry), builder_(name) {}

Registry::OpRegistrar::OpRegistrar(OpRegistrar&& other) noexcept
    : registry_(std::exchange(other.registry_, nullptr)),
      builder_(std::move(other.builder_)),
      shape_fn_(other.shape_fn_),
      functional_(other.functional_),
      api_(std::move(other.api_)) {}

Registry::OpRegistrar::~OpRegistrar() {
  if (registry_ == nullptr) return;
  auto def = std::make_unique<OpDef>();
  if (absl::Status status = builder_.Finalize(def.get()); !status.ok()) {
    MutexLock lock(&registry_->tables_->mutex);
    registry_->tables_->RecordError(std::move(status)).IgnoreError();
    return;
  }
  registry_->RegisterOp(std::move(def), shape_fn_, std::move(api_), functional_).IgnoreError();
}

Registry::KernelBuilder::KernelBuilder(Registry* registry, absl::string_view op,
                                       KernelFactory factory)
    : registry_(registry) {
  kernel_.op = std::string(op);
  kernel_.factory = factory;
}

Registry::KernelBuilder::KernelBuilder(KernelBuilder&& other) noexcept
    : registry_(std::exchange(other.registry_, nullptr)), kernel_(std::move(other.kernel_)) {}

Registry::KernelBuilder::~KernelBuilder() {
  if (registry_ != nullptr) registry_->RegisterKernel(std::move(kernel_)).IgnoreError();
}

Registry::Registry() : tables_(std::make_unique<Tables>()) {}
Registry::~Registry() = default;

absl::Status Registry::RegisterOp(std::unique_ptr<OpDef> def, ShapeFn shape_fn, OpApi api,
                                  FunctionalOp functional) {
  absl::Status valid = ValidateOpDef(*def);
  MutexLock lock(&tables_->mutex);
  if (!valid.ok()) return tables_->RecordError(std::move(valid));
  auto op = std::make_unique<OpRegistration>(std::move(def), shape_fn, std::move(api), functional);
  const std::string& name = op->def().name();
  if (tables_->ops.contains(name) || (base_ != nullptr && base_->FindOp(name) != nullptr)) {
    return tables_->RecordError(errors::AlreadyExists("op '", name, "' is already registered"));
  }
  tables_->ops.emplace(name, std::move(op));
  return absl::OkStatus();
}

absl::Status Registry::RegisterKernel(KernelRegistration kernel) {
  const OpRegistration* op = FindOpOrBase(kernel.op);
  MutexLock lock(&tables_->mutex);
  if (op == nullptr) {
    return tables_->RecordError(
        errors::NotFound("cannot register a kernel: op '", kernel.op, "' is not registered"));
  }
  if (kernel.factory == nullptr) {
    return tables_->RecordError(
        errors::InvalidArgument("the kernel registered for op '", kernel.op, "' has no factory"));
  }
  for (const auto& constraint : kernel.type_constraints) {
    const auto& attrs = op->def().attr();
    const auto has_name = [&](const OpDef::AttrDef& attr) {
      return attr.name() == constraint.first &&
             (attr.type() == "type" || attr.type() == "list(type)");
    };
    if (std::none_of(attrs.begin(), attrs.end(), has_name)) {
      return tables_->RecordError(errors::InvalidArgument("a kernel of op '", kernel.op,
                                                          "' constrains '", constraint.first,
                                                          "', which is not a type attribute"));
    }
  }
  auto& kernels = tables_->kernels[kernel.op];
  kernels.push_back(std::make_unique<KernelRegistration>(std::move(kernel)));
  return absl::OkStatus();
}

absl::Status Registry::RegisterAllOrNothing(absl::FunctionRef<void(Registry&)> add) {
  Registry additions;
  additions.base_ = this;
  add(additions);
  GRADFLOW_RETURN_IF_ERROR(additions.status());
  MutexLock additions_lock(&additions.tables_->mutex);
  MutexLock lock(&tables_->mutex);
  for (const auto& [name, op] : additions.tables_->ops) {
    // Another thread may have registered the op since `additions` checked.
    if (tables_->ops.contains(name)) {
      return errors::AlreadyExists("op '", name, "' is already registered");
    }
  }
  for (auto& [name, op] : additions.tables_->ops) tables_->ops.emplace(name, std::move(op));
  for (auto& [op, kernels] : additions.tables_->kernels) {
    auto& mine = tables_->kernels[op];
    std::move(kernels.begin(), kernels.end(), std::back_inserter(mine));
  }
  return absl::OkStatus();
}

const OpRegistration* Registry::FindOpOrBase(absl::string_view name) const {
  const OpRegistration* op = FindOp(name);
  return op != nullptr || base_ == nullptr ? op : base_->FindOp(name);
}

const OpRegistration* Registry::FindOp(absl::string_view name) const {
  MutexLock lock(&tables_->mutex);
  const auto it = tables_->ops.find(name);
  return it == tables_->ops.end() ? nullptr : it->second.get();
}

absl::StatusOr<const OpRegistration*> Registry::LookUpOp(absl::string_view name) const {
  if (const OpRegistration* op = FindOp(name)) return op;
  {
    MutexLock lock(&tables_->mutex);
    if (absl::c_find(tables_->left_out, name) != tables_->left_out.end()) {
      return errors::NotFound(
          "op '", name,
          "' is not part of this build of gradflow; add it to GRADFLOW_OPS when "
          "you run CMake");
    }
  }
  std::vector<std::string> names;
  for (const OpRegistration* op : Ops()) names.push_back(op->def().name());
  const std::vector<std::string> near = NearNames(name, names);
  return errors::NotFound(
      "op '", absl::CEscape(name.substr(0, 200)), "' is not registered",
      near.empty() ? "" : absl::StrCat("; did you mean '", absl::StrJoin(near, "' or '"), "'?"));
}

void Registry::SetLeftOutOps(absl::Span<const char* const> names) {
  MutexLock lock(&tables_->mutex);
  tables_->left_out = names;
}

std::vector<const OpRegistration*> Registry::Ops() const {
  std::vector<const OpRegistration*> ops;
  {
    MutexLock lock(&tables_->mutex);
    for (const auto& [name, op] : tables_->ops) ops.push_back(op.get());
  }
  std::sort(ops.begin(), ops.end(), [](const OpRegistration* a, const OpRegistration* b) {
    return a->def().name() < b->def().name();
  });
  return ops;
}

absl::StatusOr<const KernelRegistration*> Registry::FindKernel(const NodeDef& node) const {
  const std::string device = DeviceType(node.device());
  const std::string label = KernelLabel(node);
  MutexLock lock(&tables_->mutex);
  const KernelRegistration* best = nullptr;
  bool ambiguous = false;
  std::string others;
  AttrsOfNode attrs(node);
  if (const auto it = tables_->kernels.find(node.op()); it != tables_->kernels.end()) {
    for (const auto& kernel : it->second) {
      if (kernel->device != device || kernel->label != label || !TypesFit(*kernel, &attrs) ||
          !ObjectsFit(*kernel, node)) {
        continue;
      }
      if (best == nullptr || kernel->priority > best->priority) {
        best = kernel.get();
        ambiguous = false;
      } else if (kernel->priority == best->priority) {
        ambiguous = true;
      }
    }
    if (best == nullptr) others = DescribeKernels(it->second);
  }
  if (ambiguous) {
    return errors::InvalidArgument("op '", node.op(), "' has several kernels of priority ",
                                   best->priority, " for (", DescribeRequest(node, device, label),
                                   ")");
  }
  if (best == nullptr) {
    return errors::Unimplemented("op '", node.op(), "' has no kernel for (",
                                 DescribeRequest(node, device, label), ")",
                                 others.empty() ? "" : "; it has kernels for ", others);
  }
  return best;
}

absl::Status Registry::status() const {
  MutexLock lock(&tables_->mutex);
  return tables_->status;
}

}  // namespace gradflow
