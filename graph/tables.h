// Hash tables that an untrusted file can make large. Internal.
#ifndef GRADFLOW_GRAPH_TABLES_H_
#define GRADFLOW_GRAPH_TABLES_H_

#include <unordered_map>
#include <unordered_set>

#include "absl/hash/hash.h"

namespace gradflow::internal {

// If there is no memory to grow, the standard library's tables throw std::bad_alloc and remain
// unchanged. Abseil's tables (20220623) would then be corrupt and end the process.
template <typename K, typename V>
using HashMap = std::unordered_map<K, V, absl::Hash<K>>;
template <typename K>
using HashSet = std::unordered_set<K, absl::Hash<K>>;

}  // namespace gradflow::internal

#endif  // GRADFLOW_GRAPH_TABLES_H_
