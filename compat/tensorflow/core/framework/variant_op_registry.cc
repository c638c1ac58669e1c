#include "tensorflow/core/framework/variant_op_registry.h"

#include <utility>

#include "gradflow/core/variant_registry.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace {

template <typename Map, typename Key>
typename Map::mapped_type* Find(Map* functions, const Key& key) {
  const auto found = functions->find(key);
  return found == functions->end() ? nullptr : &found->second;
}

// Calls `fn` with a context without a session: it may allocate, which the session does not count.
template <typename Fn>
absl::Status WithContext(const Fn& fn) {
  OpKernelContext::Params params;
  OpKernelContext context(&params, /*num_outputs=*/0);
  return fn(&context);
}

}  // namespace

const char* VariantUnaryOpToString(VariantUnaryOp op) {
  switch (op) {
    case ZEROS_LIKE_VARIANT_UNARY_OP:
      return "ZEROS_LIKE";
    case CONJ_VARIANT_UNARY_OP:
      return "CONJ";
    default:
      return "INVALID";
  }
}

const char* VariantBinaryOpToString(VariantBinaryOp op) {
  return op == ADD_VARIANT_BINARY_OP ? "ADD" : "INVALID";
}

UnaryVariantOpRegistry* UnaryVariantOpRegistry::Global() {
  static auto* const registry = new UnaryVariantOpRegistry;
  return registry;
}

void UnaryVariantOpRegistry::RegisterDecodeFn(const std::string& type_name,
                                              const VariantDecodeFn& fn) {
  bool is_new = false;
  {
    gradflow::MutexLock lock(&mutex_);
    is_new = decode_.emplace(type_name, fn).second;
  }
  if (is_new && this == Global()) {
    is_new = gradflow::VariantRegistry::Global().RegisterDecode(type_name, fn).ok();
  }
  CHECK(is_new) << "a decoder of variants of type " << type_name << " already registered";
}

void UnaryVariantOpRegistry::RegisterUnaryOpFn(VariantUnaryOp op, const std::string& device,
                                               const TypeIndex& type, const VariantUnaryOpFn& fn) {
  bool is_new = false;
  {
    gradflow::MutexLock lock(&mutex_);
    is_new = unary_.emplace(Key<VariantUnaryOp>(op, device, type), fn).second;
  }
  if (is_new && this == Global() && op == ZEROS_LIKE_VARIANT_UNARY_OP && device == DEVICE_CPU) {
    const auto zeros = [fn](gradflow::KernelContext&, const Variant& a, Variant* result) {
      return WithContext([&](OpKernelContext* context) { return fn(context, a, result); });
    };
    is_new = gradflow::VariantRegistry::Global().RegisterZerosLike(type, zeros).ok();
  }
  CHECK(is_new) << "the function " << VariantUnaryOpToString(op) << " of variants of type "
                << type.name() << " already registered for device type: " << device;
}

void UnaryVariantOpRegistry::RegisterBinaryOpFn(VariantBinaryOp op, const std::string& device,
                                                const TypeIndex& type,
                                                const VariantBinaryOpFn& fn) {
  bool is_new = false;
  {
    gradflow::MutexLock lock(&mutex_);
    is_new = binary_.emplace(Key<VariantBinaryOp>(op, device, type), fn).second;
  }
  if (is_new && this == Global() && op == ADD_VARIANT_BINARY_OP && device == DEVICE_CPU) {
    const auto add = [fn](gradflow::KernelContext&, const Variant& a, const Variant& b,
                          Variant* result) {
      return WithContext([&](OpKernelContext* context) { return fn(context, a, b, result); });
    };
    is_new = gradflow::VariantRegistry::Global().RegisterAdd(type, add).ok();
  }
  CHECK(is_new) << "the function " << VariantBinaryOpToString(op) << " of variants of type "
                << type.name() << " already registered for device type: " << device;
}

void UnaryVariantOpRegistry::RegisterDeviceCopyFn(VariantDeviceCopyDirection direction,
                                                  const TypeIndex& type,
                                                  const AsyncVariantDeviceCopyFn& fn) {
  gradflow::MutexLock lock(&mutex_);
  CHECK(copy_.emplace(std::make_pair(direction, type), fn).second)
      << "the function that copies variants of type " << type.name() << " already registered";
}

UnaryVariantOpRegistry::VariantDecodeFn* UnaryVariantOpRegistry::GetDecodeFn(
    absl::string_view type_name) {
  gradflow::MutexLock lock(&mutex_);
  return Find(&decode_, type_name);
}

UnaryVariantOpRegistry::VariantUnaryOpFn* UnaryVariantOpRegistry::GetUnaryOpFn(
    VariantUnaryOp op, absl::string_view device, const TypeIndex& type) {
  gradflow::MutexLock lock(&mutex_);
  return Find(&unary_, Key<VariantUnaryOp>(op, std::string(device), type));
}

UnaryVariantOpRegistry::VariantBinaryOpFn* UnaryVariantOpRegistry::GetBinaryOpFn(
    VariantBinaryOp op, absl::string_view device, const TypeIndex& type) {
  gradflow::MutexLock lock(&mutex_);
  return Find(&binary_, Key<VariantBinaryOp>(op, std::string(device), type));
}

UnaryVariantOpRegistry::AsyncVariantDeviceCopyFn* UnaryVariantOpRegistry::GetDeviceCopyFn(
    VariantDeviceCopyDirection direction, const TypeIndex& type) {
  gradflow::MutexLock lock(&mutex_);
  return Find(&copy_, std::make_pair(direction, type));
}

bool DecodeUnaryVariant(Variant* variant) {
  const std::string name = variant->TypeName();
  if (const auto* const proto = std::as_const(*variant).get<VariantTensorDataProto>();
      proto != nullptr && proto->ByteSizeLong() == 0) {
    variant->clear();
    return true;
  }
  const auto* const decode = gradflow::VariantRegistry::Global().FindDecode(name);
  return decode != nullptr && (*decode)(variant);
}

absl::Status compat_internal::NoVariantFn(const char* op, const Variant& value,
                                          const char* device) {
  return absl::InternalError(absl::StrCat("variants of type '", value.TypeName(),
                                          "' have no function ", op, " for device ", device));
}

}  // namespace tensorflow
