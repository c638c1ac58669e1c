#include "tests/testing/heap_meter.h"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(GRADFLOW_TSAN)
#define GRADFLOW_SANITIZER_HOOKS
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define GRADFLOW_SANITIZER_HOOKS
#endif
#endif

namespace gradflow::testing {
namespace {

// Zero-initialized before any code runs.
std::atomic<int64_t> heap_bytes;
std::atomic<int64_t> heap_peak;

void CountAllocation(size_t bytes) {
  const int64_t now =
      heap_bytes.fetch_add(static_cast<int64_t>(bytes)) + static_cast<int64_t>(bytes);
  int64_t peak = heap_peak.load();
  while (now > peak && !heap_peak.compare_exchange_weak(peak, now)) {
  }
}

void CountFree(size_t bytes) { heap_bytes -= static_cast<int64_t>(bytes); }

}  // namespace
}  // namespace gradflow::testing

#ifdef GRADFLOW_SANITIZER_HOOKS

extern "C" {
int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void*, size_t),
                                              void (*free_hook)(const volatile void*));
size_t __sanitizer_get_allocated_size(const volatile void* block);
}

namespace gradflow::testing {
namespace {

void InstallHooks() {
  static const int installed = __sanitizer_install_malloc_and_free_hooks(
      [](const volatile void*, size_t bytes) { CountAllocation(bytes); },
      [](const volatile void* block) {
        if (block != nullptr) CountFree(__sanitizer_get_allocated_size(block));
      });
  if (installed == 0) std::abort();
}

}  // namespace
}  // namespace gradflow::testing

#else

namespace gradflow::testing {
namespace {

void InstallHooks() {}

void* Counted(void* block) {
  if (block != nullptr) CountAllocation(malloc_usable_size(block));
  return block;
}

}  // namespace
}  // namespace gradflow::testing

// glibc's own names of its functions. The functions below replace the usual names.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* block, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* block);

void* malloc(size_t bytes) { return gradflow::testing::Counted(__libc_malloc(bytes)); }
void* calloc(size_t count, size_t bytes) {
  return gradflow::testing::Counted(__libc_calloc(count, bytes));
}
void* realloc(void* block, size_t bytes) {
  const size_t before = block != nullptr ? malloc_usable_size(block) : 0;
  void* const moved = __libc_realloc(block, bytes);
  // A block that cannot grow stays allocated.
  if (moved != nullptr || bytes == 0) gradflow::testing::CountFree(before);
  return gradflow::testing::Counted(moved);
}
void* memalign(size_t alignment, size_t bytes) {
  return gradflow::testing::Counted(__libc_memalign(alignment, bytes));
}
void* aligned_alloc(size_t alignment, size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** block, size_t alignment, size_t bytes) noexcept {
  *block = memalign(alignment, bytes);
  return *block != nullptr ? 0 : ENOMEM;
}
void free(void* block) {
  if (block != nullptr) gradflow::testing::CountFree(malloc_usable_size(block));
  __libc_free(block);
}
}

#endif

namespace gradflow::testing {

HeapMeter::HeapMeter() : start_((InstallHooks(), heap_bytes.load())) { heap_peak = start_; }

int64_t HeapMeter::peak() const { return heap_peak - start_; }

}  // namespace gradflow::testing
