// Tensors of any size with little memory, for tests that kernels do not access the elements.
#ifndef GRADFLOW_TESTS_OPS_COMMON_SMALL_BLOCKS_H_
#define GRADFLOW_TESTS_OPS_COMMON_SMALL_BLOCKS_H_

#include <cstddef>
#include <cstdlib>

#include "gradflow/core/allocator.h"

namespace gradflow {
namespace testing {

// Returns a small block for every size. Only the first kBytes of elements may be accessed.
class SmallBlocks final : public Allocator {
 public:
  static constexpr size_t kBytes = 1024;
  // A tensor's block starts with its header.
  void* Allocate(size_t) override { return std::aligned_alloc(kAlignment, kAlignment + kBytes); }
  void Deallocate(void* block, size_t) override { std::free(block); }
};

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_OPS_COMMON_SMALL_BLOCKS_H_
