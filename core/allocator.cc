#include "gradflow/core/allocator.h"

#include <cstdlib>

namespace gradflow {
namespace {

class SystemAllocatorImpl final : public Allocator {
 public:
  void* Allocate(size_t bytes) override {
    // aligned_alloc requires a multiple of the alignment.
    const size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return rounded < bytes ? nullptr : std::aligned_alloc(kAlignment, rounded);
  }
  void Deallocate(void* block, size_t) override { std::free(block); }
};

}  // namespace

bool Allocator::Reserve(size_t) { return true; }
void Allocator::Release(size_t) {}

const std::shared_ptr<Allocator>& SystemAllocator() {
  // Non-owning, so that copies skip reference counting; every tensor has a copy.
  static const auto* const allocator =
      new std::shared_ptr<Allocator>(std::shared_ptr<Allocator>(), new SystemAllocatorImpl);
  return *allocator;
}

}  // namespace gradflow
