// strings::StrCat and StrAppend, and hexadecimal numbers. As in TensorFlow, this header includes
// numbers.h.
#ifndef GRADFLOW_COMPAT_CORE_LIB_STRINGS_STRCAT_H_
#define GRADFLOW_COMPAT_CORE_LIB_STRINGS_STRCAT_H_

#include "absl/strings/str_cat.h"
#include "tensorflow/core/lib/core/stringpiece.h"
#include "tensorflow/core/lib/strings/numbers.h"
#include "tensorflow/core/platform/types.h"

namespace tensorflow {
namespace strings {

using absl::AlphaNum;
using absl::Hex;
using absl::StrAppend;
using absl::StrCat;

// The width that Hex pads to with zeros.
using PadSpec = absl::PadSpec;
inline constexpr PadSpec kNoPad = absl::kNoPad;
inline constexpr PadSpec kZeroPad2 = absl::kZeroPad2;
inline constexpr PadSpec kZeroPad4 = absl::kZeroPad4;
inline constexpr PadSpec kZeroPad8 = absl::kZeroPad8;
inline constexpr PadSpec kZeroPad16 = absl::kZeroPad16;

}  // namespace strings
}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_STRINGS_STRCAT_H_
