// TypeIndex: identifies a C++ type at run time.
#ifndef GRADFLOW_CORE_TYPE_INDEX_H_
#define GRADFLOW_CORE_TYPE_INDEX_H_

#include <cstdint>
#include <typeinfo>

#pragma GCC visibility push(default)
namespace gradflow {

class TypeIndex {
 public:
  // Identifies no type.
  TypeIndex() = default;
  template <typename T>
  static TypeIndex Make() {
    return TypeIndex(typeid(T));
  }
  explicit TypeIndex(const std::type_info& type)
      : hash_code_(type.hash_code()), name_(type.name()) {}
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
  uint64_t hash_code_ = 0;
  const char* name_ = "";
};

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_TYPE_INDEX_H_
