#include "gradflow/runtime/memory/pool_allocator.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "gradflow/core/mutex.h"
#include "gradflow/core/tensor.h"
#include "gradflow/testing/status_matchers.h"

namespace gradflow {
namespace {

using ::gradflow::testing::StatusIs;

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;
// Size of a tensor's header before its elements.
constexpr size_t kHeader = 64;

bool IsAligned(const void* block) {
  return reinterpret_cast<uintptr_t>(block) % Allocator::kAlignment == 0;
}

TEST(PoolAllocator, ReturnsAlignedBlocksOfEverySizeWithLittleWaste) {
  PoolAllocator pool;
  std::vector<size_t> sizes;
  for (size_t bytes = 1; bytes <= 1200; ++bytes) sizes.push_back(bytes);
  for (size_t power = 2 * kKiB; power <= 64 * kMiB; power *= 2) {
    for (const size_t bytes : {power - 1, power, power + 1, power + power / 4, power * 3 / 2}) {
      sizes.push_back(bytes);
    }
  }
  for (const size_t bytes : sizes) {
    auto* const block = static_cast<char*>(pool.Allocate(bytes));
    ASSERT_NE(block, nullptr) << bytes;
    EXPECT_TRUE(IsAligned(block)) << bytes;
    block[0] = 1;
    block[bytes - 1] = 2;
    const int64_t in_use = pool.GetStats().bytes_in_use;
    EXPECT_GE(in_use, static_cast<int64_t>(bytes));
    const size_t elements = std::max(bytes, kHeader + 1) - kHeader;
    // There are four size classes per power of two, and eight from 16 MiB on. Elements of up to 256
    // bytes are rounded up to 64 bytes.
    const size_t unused = elements / (elements > 16 * kMiB ? 8 : 4);
    EXPECT_LE(in_use, static_cast<int64_t>(kHeader + elements + std::max<size_t>(unused, 63)))
        << bytes;
    pool.Deallocate(block, bytes);
    EXPECT_EQ(pool.GetStats().bytes_in_use, 0) << bytes;
  }
}

// A block that the system refuses is not counted as used. Later tensors have the whole limit.
TEST(PoolAllocator, AFailedAllocationIsNotInUse) {
  PoolAllocator pool(/*max_cached_bytes=*/0, /*max_bytes_in_use=*/size_t{1} << 62);
  constexpr size_t kTooMuch = size_t{1} << 46;
  for (int i = 0; i < 3; ++i) {
    void* const refused = pool.Allocate(kTooMuch);
    if (refused != nullptr) {
      pool.Deallocate(refused, kTooMuch);
      GTEST_SKIP() << "the system refuses nothing";
    }
    EXPECT_EQ(pool.GetStats().bytes_in_use, 0);
    EXPECT_EQ(pool.GetStats().peak_bytes_in_use, 0);
  }
  void* const block = pool.Allocate(kMiB);
  ASSERT_NE(block, nullptr);
  EXPECT_LE(pool.GetStats().bytes_in_use, static_cast<int64_t>(2 * kMiB));
  pool.Deallocate(block, kMiB);
}

TEST(PoolAllocator, TensorsOfPowersOfTwoFillTheirBlocks) {
  const auto pool = std::make_shared<PoolAllocator>();
  for (int64_t size = 64; size <= int64_t{1} << 26; size *= 2) {
    for (const int64_t bytes : {size, size + size / 4, size + size / 2}) {
      if (bytes % 64 != 0) continue;
      pool->Trim();
      pool->ResetPeak();
      const Tensor tensor(pool, DT_UINT8, TensorShape({bytes}));
      EXPECT_TRUE(tensor.IsAligned());
      EXPECT_EQ(pool->GetStats().bytes_in_use, bytes + static_cast<int64_t>(kHeader)) << bytes;
      EXPECT_EQ(pool->GetStats().peak_bytes_in_use, bytes + static_cast<int64_t>(kHeader)) << bytes;
    }
  }
}

TEST(PoolAllocator, ShardsCacheTheSizesInUse) {
  // Blocks evicted from this thread's shard are returned to the system at once.
  PoolAllocator pool(0);
  const auto allocations = [&] { return pool.GetStats().system_allocations; };
  // Fills the cache with blocks of a size that is not requested again.
  std::vector<void*> blocks;
  for (int i = 0; i < 31; ++i) blocks.push_back(pool.Allocate(8 * kKiB + kHeader));
  for (void* block : blocks) pool.Deallocate(block, 8 * kKiB + kHeader);
  ASSERT_GT(pool.GetStats().bytes_cached, static_cast<int64_t>(240 * kKiB));
  for (const size_t bytes : {16 * kKiB, 20 * kKiB, 4 * kKiB}) {
    pool.Deallocate(pool.Allocate(bytes), bytes);
    const int64_t before = allocations();
    for (int i = 0; i < 5; ++i) pool.Deallocate(pool.Allocate(bytes), bytes);
    EXPECT_EQ(allocations(), before) << bytes;
  }
  EXPECT_EQ(pool.GetStats().bytes_in_use, 0);
}

TEST(PoolAllocator, ReusesBlocks) {
  PoolAllocator pool;
  for (const size_t bytes : {size_t{1}, size_t{100}, 20 * kKiB, 100 * kKiB, 9 * kMiB}) {
    void* const first = pool.Allocate(bytes);
    pool.Deallocate(first, bytes);
    const int64_t allocations = pool.GetStats().system_allocations;
    EXPECT_GT(pool.GetStats().bytes_cached, 0);
    void* const second = pool.Allocate(bytes);
    EXPECT_EQ(second, first) << bytes;
    EXPECT_EQ(pool.GetStats().system_allocations, allocations) << bytes;
    pool.Deallocate(second, bytes);
  }
}

TEST(PoolAllocator, KeepsBlocksApart) {
  PoolAllocator pool;
  std::mt19937 random(7);
  struct Block {
    unsigned char* data;
    size_t bytes;
    unsigned char mark;
  };
  std::vector<Block> blocks;
  const auto check_and_free = [&](const Block& block) {
    EXPECT_TRUE(std::all_of(block.data, block.data + block.bytes,
                            [&](unsigned char c) { return c == block.mark; }));
    pool.Deallocate(block.data, block.bytes);
  };
  for (int i = 0; i < 5000; ++i) {
    if (blocks.size() > 200 || (!blocks.empty() && random() % 3 == 0)) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      check_and_free(blocks.back());
      blocks.pop_back();
    } else {
      const size_t bytes = 1 + random() % (size_t{1} << (random() % 18));
      const auto mark = static_cast<unsigned char>(random());
      blocks.push_back({static_cast<unsigned char*>(pool.Allocate(bytes)), bytes, mark});
      std::memset(blocks.back().data, mark, bytes);
    }
  }
  for (const Block& block : blocks) check_and_free(block);
  EXPECT_EQ(pool.GetStats().bytes_in_use, 0);
}

TEST(PoolAllocator, RefusesSizesBeyondAnyMachine) {
  PoolAllocator pool;
  EXPECT_EQ(pool.Allocate((size_t{1} << 46) + 1), nullptr);
  EXPECT_EQ(pool.Allocate(SIZE_MAX), nullptr);
  EXPECT_EQ(pool.Allocate(SIZE_MAX - 63), nullptr);
  EXPECT_EQ(pool.GetStats().bytes_in_use, 0);
  pool.Deallocate(nullptr, 100);
}

TEST(PoolAllocator, CachesNoMoreThanItsLimit) {
  constexpr size_t kBlock = kMiB + kHeader;
  PoolAllocator pool(4 * kBlock);
  std::vector<void*> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(pool.Allocate(kBlock));
  for (void* block : blocks) pool.Deallocate(block, kBlock);
  EXPECT_EQ(pool.GetStats().bytes_cached, static_cast<int64_t>(4 * kBlock));
  // Small blocks count too, except blocks in shards.
  blocks.clear();
  for (int i = 0; i < 20000; ++i) blocks.push_back(pool.Allocate(kKiB));
  for (void* block : blocks) pool.Deallocate(block, kKiB);
  EXPECT_LE(pool.GetStats().bytes_cached, static_cast<int64_t>(5 * kMiB));
}

TEST(PoolAllocator, FreesUnusedSizesFirst) {
  PoolAllocator pool(5 * kMiB);
  const auto use = [&](size_t bytes) { pool.Deallocate(pool.Allocate(bytes), bytes); };
  use(3 * kMiB);
  use(kMiB);
  use(2 * kMiB);  // Over the limit: frees the 3 MiB block.
  const int64_t allocations = pool.GetStats().system_allocations;
  use(kMiB);
  use(2 * kMiB);
  EXPECT_EQ(pool.GetStats().system_allocations, allocations);
  EXPECT_EQ(pool.GetStats().bytes_cached, static_cast<int64_t>(3 * kMiB + 2 * kHeader));
}

TEST(PoolAllocator, TrimFreesAllUnusedMemory) {
  PoolAllocator pool;
  void* const kept = pool.Allocate(100);
  for (const size_t bytes : {size_t{100}, 10 * kKiB, kMiB}) {
    pool.Deallocate(pool.Allocate(bytes), bytes);
  }
  pool.Trim();
  EXPECT_EQ(pool.GetStats().bytes_cached, 0);
  EXPECT_EQ(pool.GetStats().bytes_in_use, 128);
  std::memset(kept, 1, 100);
  pool.Deallocate(kept, 100);
}

TEST(PoolAllocator, KeepsNothingOnceItHasStoppedCaching) {
  PoolAllocator pool;
  void* const kept = pool.Allocate(kMiB);
  pool.Deallocate(pool.Allocate(2 * kMiB), 2 * kMiB);
  pool.StopCaching();
  EXPECT_EQ(pool.GetStats().bytes_cached, 0);
  pool.Deallocate(kept, kMiB);
  EXPECT_EQ(pool.GetStats().bytes_cached, 0);
  EXPECT_EQ(pool.GetStats().bytes_in_use, 0);
}

TEST(PoolAllocator, ReportsThePeak) {
  PoolAllocator pool;
  void* const a = pool.Allocate(2 * kMiB);
  void* const b = pool.Allocate(kMiB);
  pool.Deallocate(b, kMiB);
  EXPECT_EQ(pool.GetStats().peak_bytes_in_use, static_cast<int64_t>(3 * kMiB + 2 * kHeader));
  pool.ResetPeak();
  EXPECT_EQ(pool.GetStats().peak_bytes_in_use, static_cast<int64_t>(2 * kMiB + kHeader));
  // A block from the cache.
  EXPECT_GT(pool.GetStats().bytes_cached, 0);
  pool.Deallocate(pool.Allocate(kMiB), kMiB);
  EXPECT_EQ(pool.GetStats().peak_bytes_in_use, static_cast<int64_t>(3 * kMiB + 2 * kHeader));
  pool.Deallocate(a, 2 * kMiB);
}

TEST(PoolAllocator, ChargesReservationsLikeBlocks) {
  PoolAllocator pool(0, 10 * kMiB);
  EXPECT_TRUE(pool.Reserve(6 * kMiB));
  EXPECT_FALSE(pool.Reserve(5 * kMiB));
  EXPECT_EQ(pool.Allocate(5 * kMiB), nullptr);
  EXPECT_EQ(pool.GetStats().bytes_in_use, 6 * kMiB);
  pool.Release(2 * kMiB);
  void* const block = pool.Allocate(5 * kMiB);
  EXPECT_NE(block, nullptr);
  EXPECT_FALSE(pool.Reserve(2 * kMiB));
  pool.Deallocate(block, 5 * kMiB);
  pool.Release(4 * kMiB);
  EXPECT_EQ(pool.GetStats().bytes_in_use, 0);
  EXPECT_GE(pool.GetStats().peak_bytes_in_use, 9 * kMiB);
}

TEST(PoolAllocator, FreesBlocksForReservations) {
  PoolAllocator pool(10 * kMiB, kMiB);
  std::vector<void*> blocks;
  for (int i = 0; i < 900; ++i) blocks.push_back(pool.Allocate(kKiB));
  for (void* const block : blocks) pool.Deallocate(block, kKiB);
  EXPECT_TRUE(pool.Reserve(900 * kKiB));
  pool.Release(900 * kKiB);
}

TEST(PoolAllocator, ReservesNoMoreThanTheMachineHas) {
  PoolAllocator pool;
  EXPECT_TRUE(pool.Reserve(PoolAllocator::DefaultLimit()));
  EXPECT_FALSE(pool.Reserve(4 * PoolAllocator::DefaultLimit()));
  pool.Release(PoolAllocator::DefaultLimit());
}

TEST(PoolAllocator, AllocatesNoMoreThanTheMachineHas) {
  for (const size_t limit : {SIZE_MAX, 2 * PoolAllocator::MaxLimit()}) {
    PoolAllocator pool(0, limit);
    EXPECT_EQ(pool.Allocate(PoolAllocator::MaxLimit() + 1), nullptr);
    // A reservation counts against the limit, but allocates nothing.
    ASSERT_TRUE(pool.Reserve(PoolAllocator::MaxLimit() - 10 * kMiB));
    void* const block = pool.Allocate(5 * kMiB);
    EXPECT_NE(block, nullptr);
    EXPECT_EQ(pool.Allocate(6 * kMiB), nullptr);
    pool.Deallocate(block, 5 * kMiB);
    pool.Release(PoolAllocator::MaxLimit() - 10 * kMiB);
  }
  EXPECT_LT(PoolAllocator::MaxLimit(), 4 * PoolAllocator::DefaultLimit());
}

TEST(PoolAllocator, CountsTheCharactersOfStringsWhileTheyLive) {
  const auto pool = std::make_shared<PoolAllocator>(0, kMiB);
  {
    Tensor strings(pool, DT_STRING, {2});
    const int64_t elements = pool->GetStats().bytes_in_use;
    strings.flat<tstring>()(0) = std::string(1000, 'x');
    strings.flat<tstring>()(1) = "12345";
    EXPECT_EQ(strings.StringBytes(), 1005);
    GRADFLOW_EXPECT_OK(strings.ChargeStrings());
    EXPECT_EQ(pool->GetStats().bytes_in_use, elements + 1005);
    EXPECT_THAT(strings.ChargeStrings(2 * kMiB),
                StatusIs(absl::StatusCode::kResourceExhausted,
                         "out of memory for the 2097152 characters of a tensor of strings of "
                         "shape [2]"));
    EXPECT_EQ(pool->GetStats().bytes_in_use, elements + 1005);
    strings.flat<tstring>()(0) = "";
    GRADFLOW_EXPECT_OK(strings.ChargeStrings());
    EXPECT_EQ(pool->GetStats().bytes_in_use, elements + 5);
    // A copy of the handle is not charged.
    const Tensor same = strings;
    EXPECT_EQ(pool->GetStats().bytes_in_use, elements + 5);
  }
  EXPECT_EQ(pool->GetStats().bytes_in_use, 0);
}

TEST(PoolAllocator, LivesAsLongAsItsTensors) {
  auto pool = std::make_shared<PoolAllocator>();
  const std::weak_ptr<PoolAllocator> weak = pool;
  Tensor tensor(pool, DT_FLOAT, TensorShape({1000}));
  tensor.flat<float>().setConstant(3);
  pool.reset();
  EXPECT_FALSE(weak.expired());
  EXPECT_EQ(tensor.flat<float>()(999), 3);
  tensor = Tensor();
  EXPECT_TRUE(weak.expired());
}

TEST(PoolAllocator, MovesBlocksBetweenThreads) {
  // Each thread frees blocks allocated by another one.
  PoolAllocator pool;
  constexpr int kThreads = 4;
  struct Mailbox {
    Mutex mutex;
    std::vector<std::pair<void*, size_t>> blocks ABSL_GUARDED_BY(mutex);
  };
  std::vector<Mailbox> mailboxes(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 3000; ++i) {
        const size_t bytes = 1 + random() % (size_t{1} << (4 + random() % 13));
        void* const block = pool.Allocate(bytes);
        std::memset(block, t, bytes);
        std::vector<std::pair<void*, size_t>> received;
        {
          Mailbox& other = mailboxes[(t + 1) % kThreads];
          MutexLock lock(&other.mutex);
          other.blocks.emplace_back(block, bytes);
        }
        {
          MutexLock lock(&mailboxes[t].mutex);
          received.swap(mailboxes[t].blocks);
        }
        for (const auto& [received_block, received_bytes] : received) {
          pool.Deallocate(received_block, received_bytes);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (Mailbox& mailbox : mailboxes) {
    MutexLock lock(&mailbox.mutex);
    for (const auto& [block, bytes] : mailbox.blocks) pool.Deallocate(block, bytes);
  }
  EXPECT_EQ(pool.GetStats().bytes_in_use, 0);
}

}  // namespace
}  // namespace gradflow
