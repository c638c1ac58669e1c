// Allocator: the source of tensor memory. Programs may derive from it. Also defines the attributes
// of allocations.
#ifndef GRADFLOW_COMPAT_CORE_FRAMEWORK_ALLOCATOR_H_
#define GRADFLOW_COMPAT_CORE_FRAMEWORK_ALLOCATOR_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "gradflow/core/allocator.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {

// The desired place of memory. No effect: all memory is CPU memory.
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
  // Returns true if `other` has all attributes of this object.
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
  std::function<uint64()>* freed_by_func = nullptr;
};

struct AllocatorStats {
  int64 num_allocs = 0;
  int64 bytes_in_use = 0;
  int64 peak_bytes_in_use = 0;
  int64 largest_alloc_size = 0;
  std::optional<int64> bytes_limit;
};

enum class AllocatorMemoryType { kUnknown = 0, kDevice = 1, kHostPageable = 2, kHostPinned = 3 };

// Tensor(Allocator*, ...) allocates from it. Sessions have separate allocators.
class Allocator : public gradflow::Allocator {
 public:
  static constexpr size_t kAllocatorAlignment = gradflow::Allocator::kAlignment;

  virtual std::string Name() = 0;
  // Returns a block whose address is a multiple of `alignment`, a power of two; null if out of
  // memory.
  virtual void* AllocateRaw(size_t alignment, size_t num_bytes) = 0;
  virtual void* AllocateRaw(size_t alignment, size_t num_bytes, const AllocationAttributes&) {
    return AllocateRaw(alignment, num_bytes);
  }
  virtual void DeallocateRaw(void* ptr) = 0;
  virtual void DeallocateRaw(void* ptr, size_t /*alignment*/, size_t /*num_bytes*/) {
    DeallocateRaw(ptr);
  }
  // For allocators that track their allocations.
  virtual bool TracksAllocationSizes() const { return false; }
  virtual bool AllocatesOpaqueHandle() const { return false; }
  virtual size_t RequestedSize(const void*) const { return 0; }
  virtual size_t AllocatedSize(const void* ptr) const { return RequestedSize(ptr); }
  virtual int64 AllocationId(const void*) const { return 0; }
  virtual size_t AllocatedSizeSlow(const void* ptr) const {
    return TracksAllocationSizes() ? AllocatedSize(ptr) : 0;
  }
  virtual std::optional<AllocatorStats> GetStats() { return std::nullopt; }
  virtual bool ClearStats() { return false; }
  virtual AllocatorMemoryType GetMemoryType() const { return AllocatorMemoryType::kUnknown; }

  // The function that tensors call.
  void* Allocate(size_t bytes) override { return AllocateRaw(kAllocatorAlignment, bytes); }
  void Deallocate(void* block, size_t bytes) override {
    DeallocateRaw(block, kAllocatorAlignment, bytes);
  }
};

// Passes all calls to another allocator.
class AllocatorWrapper : public Allocator {
 public:
  explicit AllocatorWrapper(Allocator* wrapped) : wrapped_(wrapped) {}
  Allocator* wrapped() const { return wrapped_; }
  std::string Name() override { return wrapped_->Name(); }
  using Allocator::AllocateRaw;
  void* AllocateRaw(size_t alignment, size_t num_bytes) override {
    return wrapped_->AllocateRaw(alignment, num_bytes);
  }
  using Allocator::DeallocateRaw;
  void DeallocateRaw(void* ptr) override { wrapped_->DeallocateRaw(ptr); }
  bool TracksAllocationSizes() const override { return wrapped_->TracksAllocationSizes(); }
  size_t RequestedSize(const void* ptr) const override { return wrapped_->RequestedSize(ptr); }
  size_t AllocatedSize(const void* ptr) const override { return wrapped_->AllocatedSize(ptr); }
  std::optional<AllocatorStats> GetStats() override { return wrapped_->GetStats(); }

 private:
  Allocator* const wrapped_;
};

// The allocator for tensors outside of sessions. It takes memory from the system, and all NUMA
// nodes share it.
Allocator* cpu_allocator(int numa_node = -1);
inline Allocator* cpu_allocator_base() { return cpu_allocator(); }

// Determine whether cpu_allocator()->GetStats() counts the memory that cpu_allocator() allocates.
void EnableCPUAllocatorStats();
void DisableCPUAllocatorStats();
bool CPUAllocatorStatsEnabled();
// TensorFlow 1.x.
inline void EnableCPUAllocatorStats(bool enable) {
  enable ? EnableCPUAllocatorStats() : DisableCPUAllocatorStats();
}
inline void EnableCPUAllocatorFullStats() { EnableCPUAllocatorStats(); }
inline bool CPUAllocatorFullStatsEnabled() { return CPUAllocatorStatsEnabled(); }

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_FRAMEWORK_ALLOCATOR_H_
