// Where tensors get their memory.
#ifndef GRADFLOW_CORE_ALLOCATOR_H_
#define GRADFLOW_CORE_ALLOCATOR_H_

#include <cstddef>
#include <memory>

#pragma GCC visibility push(default)
namespace gradflow {

// Thread-safe. Tensors hold on to their allocator, so one that is dropped lives as long as its
// memory is used.
class Allocator {
 public:
  // Every block starts at a multiple of this: a cache line, and a vector of AVX-512.
  static constexpr size_t kAlignment = 64;

  virtual ~Allocator() = default;
  // `bytes` bytes, or nullptr if there are none to be had. REQUIRES: bytes > 0
  virtual void* Allocate(size_t bytes) = 0;
  // Gives back a block of Allocate(bytes) of this allocator.
  virtual void Deallocate(void* block, size_t bytes) = 0;
};

// The system's memory. Never destroyed.
const std::shared_ptr<Allocator>& SystemAllocator();

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_ALLOCATOR_H_
