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
  // Counts memory that is allocated elsewhere, as by strings for their characters, as if it came
  // from here; false, and nothing is counted, if that is more than there is to be had. An allocator
  // that has no limit need not count.
  virtual bool Reserve(size_t bytes);
  // Takes back what Reserve(bytes) counted.
  virtual void Release(size_t bytes);
};

// The system's memory. Never destroyed.
const std::shared_ptr<Allocator>& SystemAllocator();

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_ALLOCATOR_H_
