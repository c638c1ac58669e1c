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
  // the last one that was given for `name`; it is taken from then on. What is returned begins with
  // "<scope>/" unless `scope` is empty.
  std::string Take(absl::string_view scope, absl::string_view name);

 private:
  static int NumberOf(absl::string_view name);
  bool IsGenerated(absl::string_view name, int number) const;

  // Names asked for, each with the last number given to it. Of the names made by a number only
  // those are here that were asked for too: a thousand ops of one kind take one entry.
  absl::flat_hash_map<std::string, int> counters_;
  // Whether any of them is one that a number could have made, as few are.
  bool has_numbered_ = false;
};

}  // namespace gradflow::internal

#endif  // GRADFLOW_GRAPH_UNIQUE_NAMES_H_
