// Looks at the bytes of a message before protobuf makes it. Not for users.
//
// Protobuf's own parser says only that something is wrong, takes memory before anything can be
// checked, and forgets which keys of a map were given twice.
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

// What a number of a list, or a field that is not known, takes in memory at most; and a string
// beside its characters.
inline constexpr int64_t kValueBytes = 16;
inline constexpr int64_t kStringBytes = 56;

// How deep messages may be, as protobuf's parser of bytes takes them by itself; deeper ones, also
// in text, could overflow the stack.
inline constexpr int kMaxMessageDepth = 100;

// INVALID_ARGUMENT, with the place, unless `bytes` may be parsed into a message like `prototype`:
// fields that end where they should, no deeper and in memory no larger than the limits, the keys of
// maps different. In time linear in the number of fields: what strings and lists hold is skipped.
absl::Status CheckWire(absl::string_view bytes, const google::protobuf::Message& prototype,
                       const GraphLimits& limits);

// The same for bytes that protobuf refuses, to say why: looks into strings and lists, too. OK if
// nothing is found.
absl::Status ExplainWire(absl::string_view bytes, const google::protobuf::Message& prototype,
                         const GraphLimits& limits);

// The same as CheckWire for fields that are all unknown, wherever they are in a message. Adds what
// they take in memory to `memory`, which is what other things take.
absl::Status CheckUnknownWire(absl::string_view bytes, const GraphLimits& limits, int64_t* memory);

// Whether `text` is what protobuf takes for a string.
bool IsUtf8(absl::string_view text);

}  // namespace internal
}  // namespace gradflow

#endif  // GRADFLOW_GRAPH_WIRE_CHECK_H_
