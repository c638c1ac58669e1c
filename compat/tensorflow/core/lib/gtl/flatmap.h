// gtl::FlatMap: a hash map.
#ifndef GRADFLOW_COMPAT_CORE_LIB_GTL_FLATMAP_H_
#define GRADFLOW_COMPAT_CORE_LIB_GTL_FLATMAP_H_

#include <functional>

#include "absl/container/flat_hash_map.h"

namespace tensorflow {
namespace gtl {

template <typename Key, typename Value, class Hash = std::hash<Key>,
          class Equal = std::equal_to<Key>>
using FlatMap = absl::flat_hash_map<Key, Value, Hash, Equal>;

}  // namespace gtl
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_GTL_FLATMAP_H_
