#include "gradflow/graph/node_store.h"

#include <algorithm>
#include <new>

#include "gradflow/graph/huge_pages.h"

namespace gradflow::internal {

NodeStore::~NodeStore() {
  Truncate(0);
  for (const Memory& memory : memory_) FreeBlock(memory.begin, memory.bytes);
}

Node& NodeStore::Add() {
  if (size_ == blocks_.size() * kBlock) AddBlock();
  Node* const node = new (&(*this)[size_]) Node();
  ++size_;
  return *node;
}

void NodeStore::Truncate(size_t size) {
  while (size_ > size) (*this)[--size_].~Node();
}

void NodeStore::AddBlock() {
  constexpr size_t kBytes = kBlock * sizeof(Node);
  static_assert(kBytes <= kHugePageBytes);
  // Space for what is to come first: nothing is lost if there is none.
  blocks_.reserve(blocks_.size() + 1);
  if (free_blocks_ == 0) {
    memory_.reserve(memory_.size() + 1);
    // The more there are, the more at once.
    const size_t bytes =
        memory_.empty() ? kBytes : std::min(2 * memory_.back().bytes, kHugePageBytes);
    memory_.push_back({AllocateBlock(bytes), bytes});
    free_blocks_ = bytes / kBytes;
  }
  const Memory& last = memory_.back();
  const size_t used = last.bytes / kBytes - free_blocks_;
  blocks_.push_back(reinterpret_cast<Node*>(static_cast<char*>(last.begin) + used * kBytes));
  --free_blocks_;
}

}  // namespace gradflow::internal
