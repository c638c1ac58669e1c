#include "gradflow/core/variant_registry.h"

#include <utility>

#include "gradflow/core/optional_value.h"
#include "gradflow/core/ragged_value.h"
#include "gradflow/core/status.h"

namespace gradflow {
namespace {

template <typename Map, typename Key, typename Fn>
absl::Status Add(Map* functions, Key key, Fn fn, absl::string_view what, absl::string_view type) {
  if (functions->emplace(std::move(key), std::move(fn)).second) return absl::OkStatus();
  return errors::AlreadyExists("a function that ", what, " variants of type '",
                               errors::Printable(type), "' is already registered");
}

template <typename Map, typename Key>
auto Find(const Map& functions, const Key& key) {
  const auto found = functions.find(key);
  return found == functions.end() ? nullptr : &found->second;
}

}  // namespace

VariantRegistry& VariantRegistry::Global() {
  static auto* const registry = new VariantRegistry;
  return *registry;
}

VariantRegistry::VariantRegistry() {
  // The types that TensorFlow decodes without registration by a program.
  RegisterDecode<bool>("bool").IgnoreError();
  RegisterDecode<int>("int").IgnoreError();
  RegisterDecode<float>("float").IgnoreError();
  RegisterDecode<double>("double").IgnoreError();
  RegisterDecode<Tensor>("tensorflow::Tensor").IgnoreError();
  RegisterDecode<OptionalValue>(OptionalValue::kTypeName).IgnoreError();
  RegisterDecode<RaggedValue>(RaggedValue::kTypeName).IgnoreError();
}

absl::Status VariantRegistry::RegisterDecode(absl::string_view type_name, DecodeFn fn) {
  MutexLock lock(&mutex_);
  return Add(&decode_, std::string(type_name), std::move(fn), "decodes", type_name);
}

absl::Status VariantRegistry::RegisterZerosLike(TypeIndex type, ZerosLikeFn fn) {
  MutexLock lock(&mutex_);
  return Add(&zeros_like_, type, std::move(fn), "makes zeros of", type.name());
}

absl::Status VariantRegistry::RegisterAdd(TypeIndex type, AddFn fn) {
  MutexLock lock(&mutex_);
  return Add(&add_, type, std::move(fn), "adds", type.name());
}

const VariantRegistry::DecodeFn* VariantRegistry::FindDecode(absl::string_view type_name) const {
  MutexLock lock(&mutex_);
  return Find(decode_, type_name);
}

const VariantRegistry::ZerosLikeFn* VariantRegistry::FindZerosLike(TypeIndex type) const {
  MutexLock lock(&mutex_);
  return Find(zeros_like_, type);
}

const VariantRegistry::AddFn* VariantRegistry::FindAdd(TypeIndex type) const {
  MutexLock lock(&mutex_);
  return Find(add_, type);
}

}  // namespace gradflow
