// Looks at the bytes of a message before protobuf makes it. Not for users.
//
// Protobuf's own parser says only that something is wrong, takes memory before anything can be
// checked, and forgets which keys of a map were given twice.
#ifndef GRADFLOW_GRAPH_WIRE_CHECK_H_
#define GRADFLOW_GRAPH_WIRE_CHECK_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace gradflow {

struct GraphLimits;

namespace internal {

// INVALID_ARGUMENT, with the place, unless `bytes` may be parsed into a message like `prototype`:
// fields that end where they should, no deeper and in memory no larger than the limits, the keys of
// maps different. In time linear in the number of fields: what strings and lists hold is skipped.
absl::Status CheckWire(absl::string_view bytes, const google::protobuf::Message& prototype,
                       const GraphLimits& limits);

// The same for bytes that protobuf refuses, to say why: looks into strings and lists, too. OK if
// nothing is found.
absl::Status ExplainWire(absl::string_view bytes, const google::protobuf::Message& prototype,
                         const GraphLimits& limits);

// Whether `text` is what protobuf takes for a string.
bool IsUtf8(absl::string_view text);

}  // namespace internal
}  // namespace gradflow

#endif  // GRADFLOW_GRAPH_WIRE_CHECK_H_
