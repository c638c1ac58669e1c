// gtl::FindOrNull and related functions: look up keys in any map.
#ifndef GRADFLOW_COMPAT_CORE_LIB_GTL_MAP_UTIL_H_
#define GRADFLOW_COMPAT_CORE_LIB_GTL_MAP_UTIL_H_

#include <utility>

#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace gtl {

template <typename Map>
const typename Map::mapped_type* FindOrNull(const Map& map, const typename Map::key_type& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}
template <typename Map>
typename Map::mapped_type* FindOrNull(Map& map, const typename Map::key_type& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}
// For maps to pointers.
template <typename Map>
typename Map::mapped_type FindPtrOrNull(const Map& map, const typename Map::key_type& key) {
  const auto found = map.find(key);
  return found == map.end() ? typename Map::mapped_type() : found->second;
}
template <typename Map>
const typename Map::mapped_type& FindWithDefault(const Map& map, const typename Map::key_type& key,
                                                 const typename Map::mapped_type& value) {
  const auto found = map.find(key);
  return found == map.end() ? value : found->second;
}
// Ends the program if the key is missing.
template <typename Map>
const typename Map::mapped_type& FindOrDie(const Map& map, const typename Map::key_type& key) {
  const auto found = map.find(key);
  CHECK(found != map.end()) << "the map does not have the key";
  return found->second;
}
// Sets the value of the key. Returns true if the key is new.
template <typename Map>
bool InsertOrUpdate(Map* map, const typename Map::key_type& key,
                    const typename Map::mapped_type& value) {
  const auto inserted = map->insert({key, value});
  if (!inserted.second) inserted.first->second = value;
  return inserted.second;
}
// Inserts the key. Returns true if it is new; otherwise changes nothing.
template <typename Set>
bool InsertIfNotPresent(Set* set, const typename Set::value_type& value) {
  return set->insert(value).second;
}
template <typename Map>
bool InsertIfNotPresent(Map* map, const typename Map::key_type& key,
                        const typename Map::mapped_type& value) {
  return map->insert({key, value}).second;
}
// Returns the value of the key. A new key gets `value` first.
template <typename Map>
typename Map::mapped_type& LookupOrInsert(Map* map, const typename Map::key_type& key,
                                          const typename Map::mapped_type& value) {
  return map->insert({key, value}).first->second;
}

}  // namespace gtl
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_GTL_MAP_UTIL_H_
