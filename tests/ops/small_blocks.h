// Tensors of any size that take no memory, for tests that nothing goes through their elements.
#ifndef GRADFLOW_TESTS_OPS_SMALL_BLOCKS_H_
#define GRADFLOW_TESTS_OPS_SMALL_BLOCKS_H_

#include <cstddef>
#include <cstdlib>

#include "gradflow/core/allocator.h"

namespace gradflow {
namespace testing {

// Gives small blocks for every size: a tensor's elements beyond the first kAlignment bytes must not
// be touched.
class SmallBlocks final : public Allocator {
 public:
  void* Allocate(size_t) override { return std::aligned_alloc(kAlignment, kAlignment); }
  void Deallocate(void* block, size_t) override { std::free(block); }
};

}  // namespace testing
}  // namespace gradflow

#endif  // GRADFLOW_TESTS_OPS_SMALL_BLOCKS_H_
