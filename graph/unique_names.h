// UniqueNames: the names taken in one scope. Internal.
#ifndef GRADFLOW_GRAPH_UNIQUE_NAMES_H_
#define GRADFLOW_GRAPH_UNIQUE_NAMES_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace gradflow::internal {

class UniqueNames {
 public:
  // Takes `name`. If `name` is taken, takes the first free name of name_1, name_2, ... after the
  // last name that was taken for `name`. Returns the name with "<scope>/" in front, unless `scope`
  // is empty.
  std::string Take(absl::string_view scope, absl::string_view name);

 private:
  static int NumberOf(absl::string_view name);
  bool IsGenerated(absl::string_view name, int number) const;

  // Requested names, each with the last number that it got. A numbered name has no entry unless it
  // was also requested, so a thousand ops of one kind take one entry.
  absl::flat_hash_map<std::string, int> counters_;
  // True if any requested name looks like a numbered name, which is rare.
  bool has_numbered_ = false;
};

}  // namespace gradflow::internal

#endif  // GRADFLOW_GRAPH_UNIQUE_NAMES_H_
