// UniqueNames: the names taken in one scope. Not for users.
#ifndef GRADFLOW_GRAPH_UNIQUE_NAMES_H_
#define GRADFLOW_GRAPH_UNIQUE_NAMES_H_

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace gradflow::internal {

class UniqueNames {
 public:
  // `name` if it is not taken, else the first of name_1, name_2, ... that is not, beginning behind
  // the last one that was given for `name`. What is returned is taken from then on.
  std::string Take(absl::string_view name);

 private:
  bool IsGenerated(absl::string_view name) const;

  // Names asked for, each with the last number given to it. Of the names made by a number only
  // those are here that were asked for too: a thousand ops of one kind take one entry.
  absl::flat_hash_map<std::string, int> counters_;
};

}  // namespace gradflow::internal

#endif  // GRADFLOW_GRAPH_UNIQUE_NAMES_H_
