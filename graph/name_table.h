// NodesByName: finds the nodes of a graph by name. Internal.
#ifndef GRADFLOW_GRAPH_NAME_TABLE_H_
#define GRADFLOW_GRAPH_NAME_TABLE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "gradflow/core/huge_pages.h"

namespace gradflow::internal {

// The name of a node with its hash.
struct NameKey {
  NameKey(absl::string_view name)  // NOLINT: stands for the name
      : text(name), hash(static_cast<uint32_t>(absl::HashOf(name))) {}
  NameKey(const std::string& n) : NameKey(absl::string_view(n)) {}  // NOLINT
  absl::string_view text;
  uint32_t hash;
};

// A node by name. The hash is kept because a growing table needs it again.
struct NamedNode {
  // Points into the NodeDef; null in an empty place of the table.
  const std::string* name = nullptr;
  uint32_t hash = 0;
  int32_t id = -1;
};

// A hash table with linear probing. If there is no memory to grow, it throws std::bad_alloc and
// remains unchanged. Abseil's tables (20220623) would then be corrupt.
class NodesByName {
 public:
  size_t size() const { return size_; }
  // Returns null if there is no node of this name.
  const NamedNode* Find(const NameKey& key) const {
    if (size_ == 0) return nullptr;
    for (size_t i = key.hash & mask();; i = (i + 1) & mask()) {
      const NamedNode& place = places_[i];
      if (place.name == nullptr) return nullptr;
      if (place.hash == key.hash && *place.name == key.text) return &place;
    }
  }
  // Fetches the place of the name into the cache.
  void Prefetch(const NameKey& key) const {
    if (!places_.empty()) __builtin_prefetch(&places_[key.hash & mask()]);
  }
  // Adds a node. Returns false if the table already has this name.
  bool Insert(const NameKey& key, const std::string* name, int32_t id) {
    if (Find(key) != nullptr) return false;
    Reserve(size_ + 1);
    Put({name, key.hash, id});
    ++size_;
    return true;
  }
  // Adds the nodes of another table. REQUIRES: the tables have no name in common
  void InsertAll(const NodesByName& other) {
    Reserve(size_ + other.size_);
    for (const NamedNode& node : other.places_) {
      if (node.name != nullptr) Put(node);
    }
    size_ += other.size_;
  }
  void Erase(const NameKey& key) {
    const NamedNode* const found = Find(key);
    if (found == nullptr) return;
    size_t hole = found - places_.data();
    --size_;
    // Moves back the nodes that were put after the hole because it was taken.
    for (size_t i = (hole + 1) & mask(); places_[i].name != nullptr; i = (i + 1) & mask()) {
      const size_t wanted = places_[i].hash & mask();
      if (((i - wanted) & mask()) < ((i - hole) & mask())) continue;
      places_[hole] = places_[i];
      hole = i;
    }
    places_[hole] = {};
  }
  // Makes room for `size` nodes.
  void Reserve(size_t size) {
    // At most three quarters of the places are taken.
    if (size <= places_.size() / 4 * 3) return;
    size_t capacity = std::max<size_t>(places_.size(), 8);
    while (size > capacity / 4 * 3) capacity *= 2;
    Places larger(capacity);
    larger.swap(places_);
    for (const NamedNode& node : larger) {
      if (node.name != nullptr) Put(node);
    }
  }

 private:
  using Places = std::vector<NamedNode, BlockAllocator<NamedNode>>;

  size_t mask() const { return places_.size() - 1; }
  // REQUIRES: there is room.
  void Put(const NamedNode& node) {
    size_t i = node.hash & mask();
    while (places_[i].name != nullptr) i = (i + 1) & mask();
    places_[i] = node;
  }

  // The size is a power of two or 0.
  Places places_;
  size_t size_ = 0;
};

}  // namespace gradflow::internal

#endif  // GRADFLOW_GRAPH_NAME_TABLE_H_
