// NodeStore: the nodes of a graph, indexed by id. Internal.
#ifndef GRADFLOW_GRAPH_NODE_STORE_H_
#define GRADFLOW_GRAPH_NODE_STORE_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "gradflow/graph/node.h"

namespace gradflow::internal {

// Like std::deque<Node>, nodes do not move. Blocks are larger than in libstdc++'s deque, and many
// blocks are allocated at a time, in huge pages if there are many.
class NodeStore {
 public:
  // Nodes per block.
  static constexpr size_t kBlock = 64;

  NodeStore() = default;
  ~NodeStore();
  NodeStore(const NodeStore&) = delete;
  NodeStore& operator=(const NodeStore&) = delete;

  size_t size() const { return size_; }
  // REQUIRES: i < size()
  Node& operator[](size_t i) { return blocks_[i / kBlock][i % kBlock]; }
  const Node& operator[](size_t i) const { return blocks_[i / kBlock][i % kBlock]; }
  // Appends a node. Throws std::bad_alloc.
  Node& Add();
  // Destroys all nodes except the first `size`. REQUIRES: size <= size()
  void Truncate(size_t size);

 private:
  // Frees memory of AllocateBlock.
  struct FreeMemory {
    size_t bytes;
    void operator()(void* begin) const;
  };
  using Memory = std::unique_ptr<void, FreeMemory>;

  void AddBlock();
  // Returns the number of blocks in use in the last piece of memory.
  size_t UsedBlocks() const;

  std::vector<Node*> blocks_;
  std::vector<Memory> memory_;
  // Blocks that the last piece of memory still has room for.
  size_t free_blocks_ = 0;
  size_t size_ = 0;
};

}  // namespace gradflow::internal

#endif  // GRADFLOW_GRAPH_NODE_STORE_H_
