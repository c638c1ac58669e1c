// Random mutations of protos and bytes, for tests of untrusted input and for fuzzers. They depend
// only on the seed, on every platform.
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
  // Returns a number in [0, n). REQUIRES: n > 0
  int64_t Below(int64_t n) { return static_cast<int64_t>(Next() % static_cast<uint64_t>(n)); }
  bool OneIn(int64_t n) { return Below(n) == 0; }
  // Returns a boundary value: a number around 0, around a power of two, or any number.
  int64_t BoundaryInteger();
  // Returns a special number: 0, a small, tiny or huge number, infinity, NaN or BoundaryInteger().
  double OddNumber();

 private:
  uint64_t state_;
};

// Mutates one field anywhere in the message: sets a boundary value, removes, repeats or swaps
// elements, or copies a field of the same type from elsewhere in the message.
void MutateMessage(MutationRandom* random, google::protobuf::Message* message);

// Mutates a graph: swaps inputs, changes types, shapes, values, ops or names, drops attributes, or
// calls MutateMessage.
void MutateGraph(MutationRandom* random, GraphDef* graph);

// Mutates the tokens of a text: drops, repeats, swaps or replaces words and numbers, or inserts a
// word of `vocabulary`, whose words are separated by spaces.
void MutateWords(MutationRandom* random, absl::string_view vocabulary, std::string* text);

// Flips bits, truncates, repeats or inserts bytes.
void MutateBytes(MutationRandom* random, std::string* bytes);

}  // namespace gradflow::testing

#endif  // GRADFLOW_TESTS_TESTING_MUTATE_H_
