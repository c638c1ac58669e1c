// Checks the bytes of a message before protobuf parses them. Internal.
//
// Protobuf's parser does not report the fault, allocates before anything can be checked, and drops
// duplicate map keys.
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

// Upper bounds on the memory of a number in a list or an unknown field, and on the memory of a
// string without its characters.
inline constexpr int64_t kValueBytes = 16;
inline constexpr int64_t kStringBytes = 56;

// The maximum depth of nested messages, the same as in protobuf's binary parser. Deeper messages,
// even in text, could overflow the stack.
inline constexpr int kMaxMessageDepth = 100;

// Checks that `bytes` may be parsed into a message like `prototype`: fields end where they should,
// nesting and memory are within the limits, and the keys of each map differ. Otherwise returns
// INVALID_ARGUMENT with the position. Takes time linear in the number of fields; the content of
// strings and lists is skipped.
absl::Status CheckWire(absl::string_view bytes, const google::protobuf::Message& prototype,
                       const GraphLimits& limits);

// Returns an error that states why protobuf rejects `bytes`. Also checks the content of strings and
// lists. Returns OK if it finds no fault.
absl::Status ExplainWire(absl::string_view bytes, const google::protobuf::Message& prototype,
                         const GraphLimits& limits);

// Like CheckWire, for fields that are all unknown, at any depth of a message. Adds their memory to
// *memory, which counts against the limit.
absl::Status CheckUnknownWire(absl::string_view bytes, const GraphLimits& limits, int64_t* memory);

}  // namespace internal
}  // namespace gradflow

#endif  // GRADFLOW_GRAPH_WIRE_CHECK_H_
