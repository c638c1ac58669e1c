// VariantRegistry: the functions that decode the types of values in variants, and that compute
// ZerosLike and AddN with them. The process has a single registry.
//
// TensorList is built in and not registered.
//
// Thread-safe.
#ifndef GRADFLOW_CORE_VARIANT_REGISTRY_H_
#define GRADFLOW_CORE_VARIANT_REGISTRY_H_

#include <functional>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/mutex.h"
#include "gradflow/core/type_index.h"
#include "gradflow/core/variant.h"

#pragma GCC visibility push(default)
namespace gradflow {

class KernelContext;

class VariantRegistry {
 public:
  // Replaces *value, a VariantTensorDataProto, by the decoded value. Returns false if the message
  // is not valid; *value may then have changed.
  using DecodeFn = std::function<bool(Variant* value)>;
  // Sets *result, which is empty: ZerosLikeFn to a zero of the type of the argument, AddFn to a +
  // b.
  using ZerosLikeFn =
      std::function<absl::Status(KernelContext& ctx, const Variant& a, Variant* result)>;
  using AddFn = std::function<absl::Status(KernelContext& ctx, const Variant& a, const Variant& b,
                                           Variant* result)>;

  // Returns the registry of the process.
  static VariantRegistry& Global();

  // Return ALREADY_EXISTS if the type has such a function.
  absl::Status RegisterDecode(absl::string_view type_name, DecodeFn fn);
  absl::Status RegisterZerosLike(TypeIndex type, ZerosLikeFn fn);
  absl::Status RegisterAdd(TypeIndex type, AddFn fn);
  // Registers decoding for T under the name of its type.
  template <typename T>
  absl::Status RegisterDecode(absl::string_view type_name) {
    return RegisterDecode(type_name, [](Variant* value) {
      T decoded{};
      if (!value->MaybeDecodeAndCopy(&decoded)) return false;
      *value = std::move(decoded);
      return true;
    });
  }

  // Return null if there is no such function. The functions live as long as the registry.
  const DecodeFn* FindDecode(absl::string_view type_name) const;
  const ZerosLikeFn* FindZerosLike(TypeIndex type) const;
  const AddFn* FindAdd(TypeIndex type) const;

 private:
  VariantRegistry();

  mutable Mutex mutex_;
  std::map<std::string, DecodeFn, std::less<>> decode_ ABSL_GUARDED_BY(mutex_);
  std::map<TypeIndex, ZerosLikeFn> zeros_like_ ABSL_GUARDED_BY(mutex_);
  std::map<TypeIndex, AddFn> add_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_VARIANT_REGISTRY_H_
