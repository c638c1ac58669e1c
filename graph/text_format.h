// Messages as protobuf text. Internal; users have import.h and export.h.
//
// Protobuf's text format cannot hold unknown fields. Here, comments at the end of the text hold
// them; other readers skip comments:
//
//   # Fields unknown to gradflow: the message's path, and the fields in base64.
//   #? 1[3]bg==.5{VA==} 8F0F
//
// Each step of a path is the number of a field. The index of the message in a repeated field (and
// its name in base64, if it has a field `name`) or the key in a map (in base64) follows. A name of
// more than 24 bytes is written as '~' and a fingerprint. A longer key is written as its position
// among the sorted keys, '~' and a fingerprint: "1[3]~cbf29ce484222325.5{0~84222325cbf29ce4}".
#ifndef GRADFLOW_GRAPH_TEXT_FORMAT_H_
#define GRADFLOW_GRAPH_TEXT_FORMAT_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace google::protobuf {
class Message;
}  // namespace google::protobuf

namespace gradflow {

struct GraphLimits;

namespace internal {

// Returns the text of a message. Returns INVALID_ARGUMENT if the text has more than `max_bytes`.
absl::StatusOr<std::string> MessageToText(const google::protobuf::Message& message,
                                          size_t max_bytes);

// Parses a message. Returns INVALID_ARGUMENT with line and column, or with the field, if `text` is
// malformed, exceeds the limits, holds a string that is not UTF-8, or has a duplicate map key.
absl::Status MessageFromText(absl::string_view text, const GraphLimits& limits,
                             google::protobuf::Message* message);

}  // namespace internal
}  // namespace gradflow

#endif  // GRADFLOW_GRAPH_TEXT_FORMAT_H_
