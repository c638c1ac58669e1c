// Checks the bytes of a message before protobuf parses them. Not for users.
//
// Protobuf's own parser does not say what is wrong, allocates before anything can be checked, and
// forgets which keys of a map occurred twice.
#ifndef GRADFLOW_GRAPH_WIRE_CHECK_H_
#define GRADFLOW_GRAPH_WIRE_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace gradflow {

struct GraphLimits;

namespace internal {

// Upper bounds of the memory of a number in a list or an unknown field, and of a string besides its
// characters.
inline constexpr int64_t kValueBytes = 16;
inline constexpr int64_t kStringBytes = 56;

// The maximum depth of nested messages, which is that of protobuf's parser of bytes. Deeper ones,
// also in text, could overflow the stack.
inline constexpr int kMaxMessageDepth = 100;

// Checks that `bytes` may be parsed into a message like `prototype`: fields end where they should,
// nesting and memory are within the limits, and the keys of each map differ. INVALID_ARGUMENT, with
// the place, if not. Takes time linear in the number of fields; the content of strings and lists is
// skipped.
absl::Status CheckWire(absl::string_view bytes, const google::protobuf::Message& prototype,
                       const GraphLimits& limits);

// Finds out why protobuf refuses `bytes`, which also takes a look at strings and lists. OK if
// nothing is found.
absl::Status ExplainWire(absl::string_view bytes, const google::protobuf::Message& prototype,
                         const GraphLimits& limits);

// CheckWire for fields that are all unknown, wherever they are in a message. Adds their memory to
// *memory, which counts against the limit.
absl::Status CheckUnknownWire(absl::string_view bytes, const GraphLimits& limits, int64_t* memory);

}  // namespace internal
}  // namespace gradflow

#endif  // GRADFLOW_GRAPH_WIRE_CHECK_H_
