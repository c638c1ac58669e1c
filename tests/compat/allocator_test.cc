// Tests of custom allocators and of the CPU allocator.
#include "tensorflow/core/framework/allocator.h"

#include <cstdint>
#include <cstdlib>
#include <string>

#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/test.h"

namespace tensorflow {
namespace {

// Allocates from the C library and counts the blocks.
class CountingAllocator : public Allocator {
 public:
  std::string Name() override { return "counting"; }
  void* AllocateRaw(size_t alignment, size_t num_bytes) override {
    ++blocks;
    return std::aligned_alloc(alignment, (num_bytes + alignment - 1) / alignment * alignment);
  }
  void DeallocateRaw(void* ptr) override {
    --blocks;
    std::free(ptr);
  }
  int blocks = 0;
};

TEST(AllocatorTest, TensorsUseCustomAllocators) {
  CountingAllocator allocator;
  AllocatorWrapper wrapper(&allocator);
  EXPECT_EQ(wrapper.Name(), "counting");
  {
    Tensor tensor(&wrapper, DT_FLOAT, TensorShape({3}));
    tensor.flat<float>().setConstant(1);
    EXPECT_EQ(allocator.blocks, 1);
    const Tensor copy = tensor;
    EXPECT_EQ(allocator.blocks, 1);
  }
  EXPECT_EQ(allocator.blocks, 0);
  EXPECT_FALSE(allocator.TracksAllocationSizes());
  EXPECT_FALSE(allocator.GetStats().has_value());
}

TEST(AllocatorTest, BlocksOfTheCpuAreAligned) {
  for (const size_t alignment : {size_t{8}, Allocator::kAllocatorAlignment, size_t{4096}}) {
    void* const block = cpu_allocator()->AllocateRaw(alignment, 100);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0u);
    static_cast<char*>(block)[99] = 1;
    cpu_allocator()->DeallocateRaw(block);
  }
  EXPECT_EQ(cpu_allocator()->AllocateRaw(64, SIZE_MAX - 100), nullptr);
  cpu_allocator()->DeallocateRaw(nullptr);
}

TEST(AllocatorTest, SizesThatOverflowAreRefused) {
  // With the header and the padding for the alignment, these sizes wrap around to a few bytes.
  EXPECT_EQ(cpu_allocator()->AllocateRaw(64, SIZE_MAX - 10), nullptr);
  EXPECT_EQ(cpu_allocator()->AllocateRaw(4096, SIZE_MAX - 5000), nullptr);
  EXPECT_EQ(cpu_allocator()->Allocate(SIZE_MAX / 2), nullptr);
  EXPECT_EQ(cpu_allocator()->Name(), "cpu");
  EXPECT_EQ(cpu_allocator()->GetMemoryType(), AllocatorMemoryType::kHostPageable);
}

TEST(AllocatorTest, StatsCountEachBlock) {
  EnableCPUAllocatorStats();
  EXPECT_TRUE(CPUAllocatorStatsEnabled());
  Allocator* const cpu = cpu_allocator();
  void* const first = cpu->AllocateRaw(64, 100);
  void* const freed = cpu->AllocateRaw(64, 5000);
  cpu->DeallocateRaw(freed);
  ASSERT_TRUE(cpu->ClearStats());
  const AllocatorStats before = *cpu->GetStats();
  EXPECT_EQ(before.num_allocs, 0);
  EXPECT_EQ(before.largest_alloc_size, 0);
  EXPECT_EQ(before.peak_bytes_in_use, before.bytes_in_use);
  void* const second = cpu->AllocateRaw(4096, 30);
  void* const third = cpu->Allocate(20);
  EXPECT_EQ(cpu->Allocate(SIZE_MAX / 2), nullptr);
  AllocatorStats stats = *cpu->GetStats();
  EXPECT_EQ(stats.num_allocs, 2);
  EXPECT_EQ(stats.largest_alloc_size, 30);
  EXPECT_EQ(stats.bytes_in_use, before.bytes_in_use + 50);
  EXPECT_EQ(stats.peak_bytes_in_use, before.bytes_in_use + 50);
  cpu->Deallocate(third, 20);
  cpu->DeallocateRaw(second);
  cpu->DeallocateRaw(first);
  stats = *cpu->GetStats();
  EXPECT_EQ(stats.num_allocs, 2);
  EXPECT_EQ(stats.bytes_in_use, before.bytes_in_use - 100);
  EXPECT_EQ(stats.peak_bytes_in_use, before.bytes_in_use + 50);
  DisableCPUAllocatorStats();
  EXPECT_FALSE(cpu->GetStats().has_value());
}

TEST(AllocatorTest, CpuAllocatorHasStats) {
  EXPECT_FALSE(CPUAllocatorStatsEnabled());
  EXPECT_FALSE(cpu_allocator()->GetStats().has_value());
  EnableCPUAllocatorStats();
  ASSERT_TRUE(cpu_allocator()->ClearStats());
  const int64 before = cpu_allocator()->GetStats()->bytes_in_use;
  void* const block = cpu_allocator()->AllocateRaw(64, 1000);
  {
    const Tensor tensor(cpu_allocator(), DT_FLOAT, TensorShape({500}));
    // A tensor's block also contains its reference count.
    EXPECT_GE(cpu_allocator()->GetStats()->bytes_in_use, before + 3000);
  }
  cpu_allocator()->DeallocateRaw(block);
  const AllocatorStats stats = *cpu_allocator()->GetStats();
  EXPECT_EQ(stats.num_allocs, 2);
  EXPECT_EQ(stats.bytes_in_use, before);
  EXPECT_GE(stats.peak_bytes_in_use, before + 3000);
  EXPECT_EQ(stats.peak_bytes_in_use - before, stats.largest_alloc_size + 1000);
  DisableCPUAllocatorStats();
  EXPECT_FALSE(cpu_allocator()->ClearStats());
}

}  // namespace
}  // namespace tensorflow
