// GraphDefs as protobuf text. Not for users: import.h and export.h have the functions for these.
//
// Protobuf's text cannot hold fields that a program does not know. Ours keeps them in comments at
// its end, which other readers skip:
//
//   # Fields unknown to gradflow: the message's path, and the fields in base64.
//   #? 1[3]bg==.5{VA==} 8F0F
//
// A path has the number of a field for each step, with the index of the message in a repeated field
// (and its name in base64, if it has a field `name`), or the key in a map (in base64).
#ifndef GRADFLOW_GRAPH_TEXT_FORMAT_H_
#define GRADFLOW_GRAPH_TEXT_FORMAT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace gradflow {

struct GraphLimits;

namespace internal {

std::string MessageToText(const google::protobuf::Message& message);

// INVALID_ARGUMENT, with line and column (or the field), if `text` is not that of such a message,
// exceeds the limits, has text that is no UTF-8, or the key of a map twice.
absl::Status MessageFromText(absl::string_view text, const GraphLimits& limits,
                             google::protobuf::Message* message);

}  // namespace internal
}  // namespace gradflow

#endif  // GRADFLOW_GRAPH_TEXT_FORMAT_H_
