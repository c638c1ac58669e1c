#include "tensorflow/core/framework/allocator.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>

namespace tensorflow {
namespace {

std::atomic<bool> stats_enabled{false};

// The system's allocator does not know the sizes of blocks, so each block has a header.
class CpuAllocator final : public Allocator {
 public:
  std::string Name() override { return "cpu"; }

  using Allocator::AllocateRaw;
  void* AllocateRaw(size_t alignment, size_t num_bytes) override {
    const size_t before = std::max(alignment, kAllocatorAlignment);
    // Leaves room to move the block to a multiple of `alignment`.
    const size_t room = before - kAllocatorAlignment;
    if (num_bytes > std::numeric_limits<size_t>::max() - before - room) return nullptr;
    const size_t size = before + room + num_bytes;
    void* const memory = gradflow::SystemAllocator()->Allocate(size);
    if (memory == nullptr) return nullptr;
    const auto address = reinterpret_cast<uintptr_t>(memory) + before;
    char* const block = static_cast<char*>(memory) + before + (-address & (before - 1));
    *HeaderOf(block) = {memory, size, num_bytes};
    Count(num_bytes);
    return block;
  }
  using Allocator::DeallocateRaw;
  void DeallocateRaw(void* ptr) override {
    if (ptr == nullptr) return;
    const Header header = *HeaderOf(ptr);
    gradflow::SystemAllocator()->Deallocate(header.memory, header.size);
    Uncount(header.requested);
  }

  // Tensors know their sizes, so their blocks need no header.
  void* Allocate(size_t bytes) override {
    void* const block = gradflow::SystemAllocator()->Allocate(bytes);
    if (block != nullptr) Count(bytes);
    return block;
  }
  void Deallocate(void* block, size_t bytes) override {
    gradflow::SystemAllocator()->Deallocate(block, bytes);
    Uncount(bytes);
  }

  std::optional<AllocatorStats> GetStats() override {
    if (!stats_enabled) return std::nullopt;
    const std::lock_guard<std::mutex> lock(mutex_);
    return stats_;
  }
  bool ClearStats() override {
    if (!stats_enabled) return false;
    const std::lock_guard<std::mutex> lock(mutex_);
    stats_.num_allocs = 0;
    stats_.peak_bytes_in_use = stats_.bytes_in_use;
    stats_.largest_alloc_size = 0;
    return true;
  }
  AllocatorMemoryType GetMemoryType() const override { return AllocatorMemoryType::kHostPageable; }

 private:
  struct Header {
    void* memory;
    size_t size;
    size_t requested;
  };
  static_assert(sizeof(Header) <= kAllocatorAlignment);

  static Header* HeaderOf(void* block) { return static_cast<Header*>(block) - 1; }

  void Count(size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto size = static_cast<int64>(bytes);
    ++stats_.num_allocs;
    stats_.bytes_in_use += size;
    stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
    stats_.largest_alloc_size = std::max(stats_.largest_alloc_size, size);
  }
  void Uncount(size_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    stats_.bytes_in_use -= static_cast<int64>(bytes);
  }

  std::mutex mutex_;
  AllocatorStats stats_;
};

}  // namespace

Allocator* cpu_allocator(int) {
  static CpuAllocator& allocator = *new CpuAllocator;
  return &allocator;
}

void EnableCPUAllocatorStats() { stats_enabled = true; }

void DisableCPUAllocatorStats() { stats_enabled = false; }

bool CPUAllocatorStatsEnabled() { return stats_enabled; }

}  // namespace tensorflow
