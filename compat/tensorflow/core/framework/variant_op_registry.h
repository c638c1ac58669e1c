// UnaryVariantOpRegistry: functions of types of values that variants hold. gradflow's kernels use
// the decoders, and the functions for zeros and sums on the CPU, of Global().
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_VARIANT_OP_REGISTRY_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_VARIANT_OP_REGISTRY_H_

#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/strings/string_view.h"
#include "gradflow/core/mutex.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/type_index.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/framework/variant_encode_decode.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/lib/core/status.h"

namespace tensorflow {

enum VariantUnaryOp {
  INVALID_VARIANT_UNARY_OP = 0,
  ZEROS_LIKE_VARIANT_UNARY_OP = 1,
  CONJ_VARIANT_UNARY_OP = 2,
};
enum VariantBinaryOp {
  INVALID_VARIANT_BINARY_OP = 0,
  ADD_VARIANT_BINARY_OP = 1,
};
// gradflow has one device: nothing is copied.
enum VariantDeviceCopyDirection {
  INVALID_DEVICE_COPY_DIRECTION = 0,
  HOST_TO_DEVICE = 1,
  DEVICE_TO_HOST = 2,
  DEVICE_TO_DEVICE = 3,
};

// "ZEROS_LIKE", "CONJ", "ADD"
const char* VariantUnaryOpToString(VariantUnaryOp op);
const char* VariantBinaryOpToString(VariantBinaryOp op);

// Thread-safe.
class UnaryVariantOpRegistry {
 public:
  using VariantDecodeFn = std::function<bool(Variant*)>;
  using VariantUnaryOpFn = std::function<absl::Status(OpKernelContext*, const Variant&, Variant*)>;
  using VariantBinaryOpFn =
      std::function<absl::Status(OpKernelContext*, const Variant&, const Variant&, Variant*)>;
  using AsyncTensorDeviceCopyFn = std::function<absl::Status(const Tensor& from, Tensor* to)>;
  using AsyncVariantDeviceCopyFn = std::function<absl::Status(const Variant& from, Variant* to,
                                                              AsyncTensorDeviceCopyFn copy_fn)>;

  static UnaryVariantOpRegistry* Global();

  // A second registration of the same type ends the program.
  void RegisterDecodeFn(const std::string& type_name, const VariantDecodeFn& fn);
  void RegisterUnaryOpFn(VariantUnaryOp op, const std::string& device, const TypeIndex& type,
                         const VariantUnaryOpFn& fn);
  void RegisterBinaryOpFn(VariantBinaryOp op, const std::string& device, const TypeIndex& type,
                          const VariantBinaryOpFn& fn);
  void RegisterDeviceCopyFn(VariantDeviceCopyDirection direction, const TypeIndex& type,
                            const AsyncVariantDeviceCopyFn& fn);

  // Return null if there is no such function.
  VariantDecodeFn* GetDecodeFn(absl::string_view type_name);
  VariantUnaryOpFn* GetUnaryOpFn(VariantUnaryOp op, absl::string_view device,
                                 const TypeIndex& type);
  VariantBinaryOpFn* GetBinaryOpFn(VariantBinaryOp op, absl::string_view device,
                                   const TypeIndex& type);
  AsyncVariantDeviceCopyFn* GetDeviceCopyFn(VariantDeviceCopyDirection direction,
                                            const TypeIndex& type);

 private:
  template <typename Op>
  using Key = std::tuple<Op, std::string, TypeIndex>;

  gradflow::Mutex mutex_;
  std::map<std::string, VariantDecodeFn, std::less<>> decode_ ABSL_GUARDED_BY(mutex_);
  std::map<Key<VariantUnaryOp>, VariantUnaryOpFn> unary_ ABSL_GUARDED_BY(mutex_);
  std::map<Key<VariantBinaryOp>, VariantBinaryOpFn> binary_ ABSL_GUARDED_BY(mutex_);
  std::map<std::pair<VariantDeviceCopyDirection, TypeIndex>, AsyncVariantDeviceCopyFn> copy_
      ABSL_GUARDED_BY(mutex_);
};

// Decodes *variant, a VariantTensorDataProto, by the function of its type. Clears it if the message
// is empty. Returns false if there is no function or if it fails.
bool DecodeUnaryVariant(Variant* variant);

namespace compat_internal {

// "CPU", or "GPU" for another Eigen device.
template <typename Device>
const char* VariantDevice() {
  return std::is_same_v<Device, Eigen::ThreadPoolDevice> ? DEVICE_CPU : DEVICE_GPU;
}

absl::Status NoVariantFn(const char* op, const Variant& value, const char* device);

template <typename T>
absl::Status WrongVariantType(const char* what, const Variant& value) {
  return absl::InternalError(
      absl::StrCat("the ", what, " is not of type ", typeid(T).name(), " but ", value.TypeName()));
}

}  // namespace compat_internal

// Set *out to op(v), or to op(a, b), by the registered function.
template <typename Device>
absl::Status UnaryOpVariant(OpKernelContext* context, VariantUnaryOp op, const Variant& v,
                            Variant* out) {
  const char* const device = compat_internal::VariantDevice<Device>();
  auto* const fn = UnaryVariantOpRegistry::Global()->GetUnaryOpFn(op, device, v.TypeId());
  if (fn == nullptr) return compat_internal::NoVariantFn(VariantUnaryOpToString(op), v, device);
  return (*fn)(context, v, out);
}
template <typename Device>
absl::Status BinaryOpVariants(OpKernelContext* context, VariantBinaryOp op, const Variant& a,
                              const Variant& b, Variant* out) {
  if (a.TypeId() != b.TypeId()) {
    return absl::InternalError(absl::StrCat("variants of types ", a.TypeName(), " and ",
                                            b.TypeName(), " have no common function"));
  }
  const char* const device = compat_internal::VariantDevice<Device>();
  auto* const fn = UnaryVariantOpRegistry::Global()->GetBinaryOpFn(op, device, a.TypeId());
  if (fn == nullptr) return compat_internal::NoVariantFn(VariantBinaryOpToString(op), a, device);
  return (*fn)(context, a, b, out);
}

// Objects that register the functions of a type T when they are made.
namespace variant_op_registry_fn_registration {

template <typename T>
class UnaryVariantDecodeRegistration {
 public:
  explicit UnaryVariantDecodeRegistration(const std::string& type_name) {
    UnaryVariantOpRegistry::Global()->RegisterDecodeFn(type_name, [](Variant* value) {
      T decoded{};
      if (!value->MaybeDecodeAndCopy(&decoded)) return false;
      *value = std::move(decoded);
      return true;
    });
  }
};

template <typename T>
class UnaryVariantUnaryOpRegistration {
 public:
  using LocalVariantUnaryOpFn = std::function<absl::Status(OpKernelContext*, const T&, T*)>;
  UnaryVariantUnaryOpRegistration(VariantUnaryOp op, const std::string& device,
                                  const TypeIndex& type, const LocalVariantUnaryOpFn& fn) {
    UnaryVariantOpRegistry::Global()->RegisterUnaryOpFn(
        op, device, type,
        [fn](OpKernelContext* context, const Variant& v, Variant* out) -> absl::Status {
          const T* const value = v.get<T>();
          if (value == nullptr) return compat_internal::WrongVariantType<T>("argument", v);
          *out = T();
          return fn(context, *value, out->get<T>());
        });
  }
};

template <typename T>
class UnaryVariantBinaryOpRegistration {
 public:
  using LocalVariantBinaryOpFn =
      std::function<absl::Status(OpKernelContext*, const T&, const T&, T*)>;
  UnaryVariantBinaryOpRegistration(VariantBinaryOp op, const std::string& device,
                                   const TypeIndex& type, const LocalVariantBinaryOpFn& fn) {
    UnaryVariantOpRegistry::Global()->RegisterBinaryOpFn(
        op, device, type,
        [fn](OpKernelContext* context, const Variant& a, const Variant& b,
             Variant* out) -> absl::Status {
          const T* const x = a.get<T>();
          const T* const y = b.get<T>();
          if (x == nullptr) return compat_internal::WrongVariantType<T>("first argument", a);
          if (y == nullptr) return compat_internal::WrongVariantType<T>("second argument", b);
          *out = T();
          return fn(context, *x, *y, out->get<T>());
        });
  }
};

template <typename T>
class UnaryVariantDeviceCopyRegistration {
 public:
  using LocalVariantDeviceCopyFn = std::function<absl::Status(
      const T& from, T* to, UnaryVariantOpRegistry::AsyncTensorDeviceCopyFn copy_fn)>;
  UnaryVariantDeviceCopyRegistration(VariantDeviceCopyDirection direction, const TypeIndex& type,
                                     const LocalVariantDeviceCopyFn& fn) {
    UnaryVariantOpRegistry::Global()->RegisterDeviceCopyFn(
        direction, type,
        [fn](const Variant& from, Variant* to,
             UnaryVariantOpRegistry::AsyncTensorDeviceCopyFn copy_fn) -> absl::Status {
          const T* const value = from.get<T>();
          if (value == nullptr) return compat_internal::WrongVariantType<T>("argument", from);
          *to = T();
          return fn(*value, to->get<T>(), std::move(copy_fn));
        });
  }
};

}  // namespace variant_op_registry_fn_registration

#define GRADFLOW_VARIANT_REGISTRATION_(T, CLASS, COUNTER, ...) \
  GRADFLOW_VARIANT_REGISTRATION_NAMED_(T, CLASS, COUNTER, __VA_ARGS__)
#define GRADFLOW_VARIANT_REGISTRATION_NAMED_(T, CLASS, COUNTER, ...)                        \
  [[maybe_unused]] static const ::tensorflow::variant_op_registry_fn_registration::CLASS<T> \
      gradflow_variant_registration_##COUNTER(__VA_ARGS__)

#define REGISTER_UNARY_VARIANT_DECODE_FUNCTION(T, type_name) \
  GRADFLOW_VARIANT_REGISTRATION_(T, UnaryVariantDecodeRegistration, __COUNTER__, type_name)
#define REGISTER_UNARY_VARIANT_UNARY_OP_FUNCTION(op, device, T, unary_op_function)            \
  GRADFLOW_VARIANT_REGISTRATION_(T, UnaryVariantUnaryOpRegistration, __COUNTER__, op, device, \
                                 ::tensorflow::TypeIndex::Make<T>(), unary_op_function)
#define REGISTER_UNARY_VARIANT_BINARY_OP_FUNCTION(op, device, T, binary_op_function)           \
  GRADFLOW_VARIANT_REGISTRATION_(T, UnaryVariantBinaryOpRegistration, __COUNTER__, op, device, \
                                 ::tensorflow::TypeIndex::Make<T>(), binary_op_function)
#define INTERNAL_REGISTER_UNARY_VARIANT_DEVICE_COPY_FUNCTION(T, direction, device_copy_fn)      \
  GRADFLOW_VARIANT_REGISTRATION_(T, UnaryVariantDeviceCopyRegistration, __COUNTER__, direction, \
                                 ::tensorflow::TypeIndex::Make<T>(), device_copy_fn)

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_VARIANT_OP_REGISTRY_H_
