#include "gradflow/graph/node_store.h"

#include <algorithm>
#include <new>

#include "gradflow/graph/huge_pages.h"

namespace gradflow::internal {

namespace {

constexpr size_t kBlockBytes = NodeStore::kBlock * sizeof(Node);
static_assert(kBlockBytes <= kHugePageBytes);

}  // namespace

NodeStore::~NodeStore() { Truncate(0); }

Node& NodeStore::Add() {
  if (size_ == blocks_.size() * kBlock) AddBlock();
  Node* const node = new (&(*this)[size_]) Node();
  ++size_;
  return *node;
}

void NodeStore::Truncate(size_t size) {
  while (size_ > size) (*this)[--size_].~Node();
  // Memory of which nothing is left, from the end.
  while (!memory_.empty()) {
    const Memory& last = memory_.back();
    const size_t blocks_before = blocks_.size() - (last.bytes / kBlockBytes - free_blocks_);
    if (size_ > blocks_before * kBlock) return;
    blocks_.resize(blocks_before);
    free_blocks_ = 0;
    FreeBlock(last.begin, last.bytes);
    memory_.pop_back();
  }
}

void NodeStore::AddBlock() {
  // Space for what is to come first: nothing is lost if there is none.
  blocks_.reserve(blocks_.size() + 1);
  if (free_blocks_ == 0) {
    memory_.reserve(memory_.size() + 1);
    // The more there are, the more at once.
    const size_t bytes =
        memory_.empty() ? kBlockBytes : std::min(2 * memory_.back().bytes, kHugePageBytes);
    memory_.push_back({AllocateBlock(bytes), bytes});
    free_blocks_ = bytes / kBlockBytes;
  }
  const Memory& last = memory_.back();
  const size_t used = last.bytes / kBlockBytes - free_blocks_;
  blocks_.push_back(reinterpret_cast<Node*>(static_cast<char*>(last.begin) + used * kBlockBytes));
  --free_blocks_;
}

}  // namespace gradflow::internal
