// KernelDefBuilder: the argument of REGISTER_KERNEL_BUILDER, and the KernelDef that it stands for.
//
//   Name("Op").Device(DEVICE_CPU).TypeConstraint<float>("T")
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_KERNEL_DEF_BUILDER_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_KERNEL_DEF_BUILDER_H_

#include <cstdint>
#include <string>

#include "gradflow/core/registry.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/gtl/array_slice.h"
#include "tensorflow/core/platform/types.h"

namespace gradflow {
class KernelDef;
}  // namespace gradflow

namespace tensorflow {

struct KernelRegistrar;

class KernelDefBuilder {
 public:
  explicit KernelDefBuilder(const char* op_name);
  KernelDefBuilder(const KernelDefBuilder& other);
  KernelDefBuilder& operator=(const KernelDefBuilder&) = delete;
  ~KernelDefBuilder();

  KernelDefBuilder& Device(const char* device_type);
  KernelDefBuilder& Device(const DeviceType& type) { return Device(type.type()); }
  // Restricts the kernel to these values of an attribute. Constraints on integers, strings and
  // booleans only affect the KernelDef, because gradflow selects kernels by types.
  template <typename T>
  KernelDefBuilder& TypeConstraint(const char* attr) {
    return TypeConstraint(attr, DataTypeToEnum<T>::value);
  }
  KernelDefBuilder& TypeConstraint(const char* attr, DataType allowed) {
    return TypeConstraint(attr, gtl::ArraySlice<DataType>(&allowed, 1));
  }
  KernelDefBuilder& TypeConstraint(const char* attr, gtl::ArraySlice<DataType> allowed);
  KernelDefBuilder& AttrConstraint(const char* attr, gtl::ArraySlice<int64_t> allowed);
  KernelDefBuilder& AttrConstraint(const char* attr, gtl::ArraySlice<std::string> allowed);
  KernelDefBuilder& AttrConstraint(const char* attr, gtl::ArraySlice<const char*> allowed);
  KernelDefBuilder& AttrConstraint(const char* attr, gtl::ArraySlice<bool> allowed);
  KernelDefBuilder& AttrConstraint(const char* attr, int64_t allowed) {
    return AttrConstraint(attr, gtl::ArraySlice<int64_t>(&allowed, 1));
  }
  KernelDefBuilder& AttrConstraint(const char* attr, const std::string& allowed) {
    return AttrConstraint(attr, gtl::ArraySlice<std::string>(&allowed, 1));
  }
  KernelDefBuilder& AttrConstraint(const char* attr, const char* allowed) {
    return AttrConstraint(attr, std::string(allowed));
  }
  KernelDefBuilder& AttrConstraint(const char* attr, bool allowed) {
    return AttrConstraint(attr, gtl::ArraySlice<bool>(&allowed, 1));
  }
  KernelDefBuilder& HostMemory(const char* arg_name);
  KernelDefBuilder& Label(const char* label);
  KernelDefBuilder& Priority(int32 priority);

  // Returns the definition. The caller owns it.
  const gradflow::KernelDef* Build() const;

 private:
  friend struct KernelRegistrar;
  gradflow::KernelDef* const def_;
  // Mirrors def_ for gradflow's registry.
  gradflow::KernelRegistration kernel_;
};

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_KERNEL_DEF_BUILDER_H_
