// Allocator, which is gradflow's, and the attributes of allocations.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_ALLOCATOR_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_ALLOCATOR_H_

#include "gradflow/core/allocator.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

using gradflow::Allocator;

// Where memory shall be. No effect: all memory is that of the CPU.
struct AllocatorAttributes {
  void set_on_host(bool on) { Set(0, on); }
  bool on_host() const { return Get(0); }
  void set_nic_compatible(bool on) { Set(1, on); }
  bool nic_compatible() const { return Get(1); }
  void set_gpu_compatible(bool on) { Set(2, on); }
  bool gpu_compatible() const { return Get(2); }
  void Merge(AllocatorAttributes other) {
    value |= other.value;
    if (scope_id == 0) scope_id = other.scope_id;
  }
  // Returns true if `other` has all the attributes of this.
  bool IsEqualOrLessRestrictiveThan(const AllocatorAttributes& other) const {
    return (value | other.value) == other.value;
  }

  uint32 value = 0;
  int32 scope_id = 0;

 private:
  void Set(int bit, bool on) { value |= static_cast<uint32>(on) << bit; }
  bool Get(int bit) const { return (value >> bit & 1) != 0; }
};

// Hints for an allocation. No effect.
struct AllocationAttributes {
  bool no_retry_on_failure = false;
  bool retry_on_failure = true;
  bool allocation_will_be_logged = false;
};

// The allocator of tensors outside of a session.
inline Allocator* cpu_allocator() { return gradflow::SystemAllocator().get(); }

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_ALLOCATOR_H_
