// gtl::FlatSet: a hash set.
#ifndef GRADFLOW_COMPAT_CORE_LIB_GTL_FLATSET_H_
#define GRADFLOW_COMPAT_CORE_LIB_GTL_FLATSET_H_

#include <functional>

#include "absl/container/flat_hash_set.h"

namespace tensorflow {
namespace gtl {

template <typename Key, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>>
using FlatSet = absl::flat_hash_set<Key, Hash, Equal>;

}  // namespace gtl
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_GTL_FLATSET_H_
