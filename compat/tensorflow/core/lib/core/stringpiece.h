// StringPiece.
#ifndef GRADFLOW_COMPAT_CORE_LIB_CORE_STRINGPIECE_H_
#define GRADFLOW_COMPAT_CORE_LIB_CORE_STRINGPIECE_H_

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace tensorflow {

#ifdef GRADFLOW_TENSORFLOW_V1
// An absl::string_view with ToString(). The functions of these headers take and return
// absl::string_view.
class StringPiece : public absl::string_view {
 public:
  using absl::string_view::string_view;
  StringPiece() = default;
  StringPiece(absl::string_view text) : absl::string_view(text) {}  // NOLINT: both are one

  StringPiece substr(size_type pos, size_type n = npos) const {
    return absl::string_view::substr(pos, n);
  }
  std::string ToString() const { return std::string(*this); }
  bool starts_with(absl::string_view prefix) const { return absl::StartsWith(*this, prefix); }
  bool ends_with(absl::string_view suffix) const { return absl::EndsWith(*this, suffix); }
  bool contains(absl::string_view part) const { return absl::StrContains(*this, part); }
};
#else
using StringPiece = absl::string_view;
#endif

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_CORE_LIB_CORE_STRINGPIECE_H_
