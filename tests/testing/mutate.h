// Random changes to protos and bytes, the same for the same seed everywhere: for tests of what
// comes from strangers, and for the fuzzers.
#ifndef GRADFLOW_TESTS_TESTING_MUTATE_H_
#define GRADFLOW_TESTS_TESTING_MUTATE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "gradflow/proto/graph.pb.h"

namespace gradflow::testing {

class MutationRandom {
 public:
  explicit MutationRandom(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  // In [0, n). REQUIRES: n > 0
  int64_t Below(int64_t n) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(n)); }
  bool OneIn(int64_t n) { return Below(n) == 0; }
  // A number at which programs break: around 0, around powers of two, any.
  int64_t OddInteger();
  double OddNumber();

 private:
  uint64_t state_;
};

// Changes one field somewhere in the message: sets it to an odd value, removes, repeats or swaps
// elements, or takes what a like field elsewhere in the message has.
void MutateMessage(MutationRandom* random, google::protobuf::Message* message);

// Changes a graph in one of the ways in which graphs differ: swaps inputs, changes types, shapes,
// values, ops and names, drops attributes, or MutateMessage.
void MutateGraph(MutationRandom* random, GraphDef* graph);

// Changes text in the way in which texts of one language differ: drops, repeats, swaps or replaces
// words and numbers, or puts one of `vocabulary`, words with spaces between, in.
void MutateWords(MutationRandom* random, absl::string_view vocabulary, std::string* text);

// Flips bits, cuts off, repeats or inserts bytes.
void MutateBytes(MutationRandom* random, std::string* bytes);

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_TESTING_MUTATE_H_
