// Allocator: allocates the memory of tensors.
#ifndef GRADFLOW_CORE_ALLOCATOR_H_
#define GRADFLOW_CORE_ALLOCATOR_H_

#include <cstddef>
#include <memory>

#pragma GCC visibility push(default)
namespace gradflow {

// Tensors share ownership of their allocator: it lives as long as its memory is in use.
//
// Thread-safe.
class Allocator {
 public:
  // Alignment of every block, in bytes: a cache line, and an AVX-512 vector.
  static constexpr size_t kAlignment = 64;

  virtual ~Allocator() = default;
  // Returns a block of `bytes` bytes. Returns nullptr if out of memory, or if the allocator has a
  // limit and the block would exceed it. REQUIRES: bytes > 0
  virtual void* Allocate(size_t bytes) = 0;
  // Frees `block`. REQUIRES: `block` was returned by Allocate(bytes) of this allocator.
  virtual void Deallocate(void* block, size_t bytes) = 0;
  // Charges memory that is allocated elsewhere, such as the characters of strings, against the
  // limit of this allocator. Returns false and charges nothing if the charge would exceed the
  // limit. An allocator without a limit need not count charges. MemoryReservation
  // (core/memory_reservation.h) releases charges automatically.
  virtual bool Reserve(size_t bytes);
  // Releases `bytes` bytes that Reserve() has charged.
  virtual void Release(size_t bytes);
};

// Returns the allocator that takes memory from the system. It is never destroyed.
const std::shared_ptr<Allocator>& SystemAllocator();

}  // namespace gradflow
#pragma GCC visibility pop

#endif  // GRADFLOW_CORE_ALLOCATOR_H_
