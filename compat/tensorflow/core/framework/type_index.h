// TypeIndex: identifies a C++ type.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_TYPE_INDEX_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_TYPE_INDEX_H_

#include <cstdint>
#include <string>
#include <typeinfo>

namespace tensorflow {

class TypeIndex {
 public:
  TypeIndex() = default;
  template <typename T>
  static TypeIndex Make() {
    return TypeIndex(typeid(T).hash_code(), typeid(T).name());
  }
  uint64_t hash_code() const { return hash_code_; }
  // The compiler's name.
  const char* name() const { return name_; }
  friend bool operator==(const TypeIndex& a, const TypeIndex& b) {
    return a.hash_code_ == b.hash_code_;
  }
  friend bool operator!=(const TypeIndex& a, const TypeIndex& b) { return !(a == b); }
  friend bool operator<(const TypeIndex& a, const TypeIndex& b) {
    return a.hash_code_ < b.hash_code_;
  }

 private:
  TypeIndex(uint64_t hash_code, const char* name) : hash_code_(hash_code), name_(name) {}

  uint64_t hash_code_ = 0;
  const char* name_ = "";
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_TYPE_INDEX_H_
