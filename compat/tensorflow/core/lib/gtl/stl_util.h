// gtl::STLDeleteElements and related functions.
#ifndef GRADFLOW_COMPAT_CORE_LIB_GTL_STL_UTIL_H_
#define GRADFLOW_COMPAT_CORE_LIB_GTL_STL_UTIL_H_

#include <string>
#include <vector>

namespace tensorflow {
namespace gtl {

// Deletes the objects that a container points to, and clears it.
template <typename Container>
void STLDeleteElements(Container* container) {
  for (auto* element : *container) delete element;
  container->clear();
}
// Deletes the objects that the values of a map point to, and clears it.
template <typename Map>
void STLDeleteValues(Map* map) {
  for (auto& entry : *map) delete entry.second;
  map->clear();
}
// Resizes a string. The new characters are 0.
inline void STLStringResizeUninitialized(std::string* text, size_t size) { text->resize(size); }
inline char* string_as_array(std::string* text) { return text->empty() ? nullptr : text->data(); }
template <typename T, typename A>
T* vector_as_array(std::vector<T, A>* vector) {
  return vector->data();
}

}  // namespace gtl
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_GTL_STL_UTIL_H_
