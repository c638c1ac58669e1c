// Hash tables for what an untrusted file makes large. Not for users.
#ifndef GRADFLOW_GRAPH_TABLES_H_
#define GRADFLOW_GRAPH_TABLES_H_

#include <unordered_map>
#include <unordered_set>

#include "absl/hash/hash.h"

namespace gradflow::internal {

// The standard library's tables throw std::bad_alloc, and stay as they were, if there is no memory
// to grow. Those of Debian's Abseil (20220623) are broken then, and end the process.
template <typename K, typename V>
using HashMap = std::unordered_map<K, V, absl::Hash<K>>;
template <typename K>
using HashSet = std::unordered_set<K, absl::Hash<K>>;

}  // namespace gradflow::internal

#endif  // GRADFLOW_GRAPH_TABLES_H_
