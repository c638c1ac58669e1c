#include "gradflow/graph/node_store.h"

#include <algorithm>
#include <new>

#include "gradflow/core/huge_pages.h"

namespace gradflow::internal {
namespace {

constexpr size_t kBlockBytes = NodeStore::kBlock * sizeof(Node);
static_assert(kBlockBytes <= kHugePageBytes);

}  // namespace

void NodeStore::FreeMemory::operator()(void* begin) const { FreeBlock(begin, bytes); }

NodeStore::~NodeStore() { Truncate(0); }

Node& NodeStore::Add() {
  if (size_ == blocks_.size() * kBlock) AddBlock();
  Node* const node = new (blocks_[size_ / kBlock] + size_ % kBlock) Node();
  ++size_;
  return *node;
}

void NodeStore::Truncate(size_t size) {
  while (size_ > size) (*this)[--size_].~Node();
  // Frees the pieces of memory at the end that hold no nodes.
  while (!memory_.empty()) {
    const size_t blocks_before = blocks_.size() - UsedBlocks();
    if (size_ > blocks_before * kBlock) return;
    blocks_.resize(blocks_before);
    memory_.pop_back();
    free_blocks_ = 0;
  }
}

size_t NodeStore::UsedBlocks() const {
  return memory_.back().get_deleter().bytes / kBlockBytes - free_blocks_;
}

void NodeStore::AddBlock() {
  if (free_blocks_ == 0) {
    // Each piece is twice as large as the one before, up to a huge page.
    const size_t bytes = memory_.empty()
                             ? kBlockBytes
                             : std::min(2 * memory_.back().get_deleter().bytes, kHugePageBytes);
    memory_.push_back(Memory(AllocateBlock(bytes), FreeMemory{bytes}));
    free_blocks_ = bytes / kBlockBytes;
  }
  char* const begin = static_cast<char*>(memory_.back().get());
  blocks_.push_back(reinterpret_cast<Node*>(begin + UsedBlocks() * kBlockBytes));
  --free_blocks_;
}

}  // namespace gradflow::internal
