// The HTML file of `gradflow view`: the built shell of web/, with data in an inert block.
#ifndef GRADFLOW_TOOLS_VIEW_PAGE_H_
#define GRADFLOW_TOOLS_VIEW_PAGE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gradflow::tools {

// Returns the page that shows `json`. The data are compressed and encoded in base64, so their text
// is not markup, and the hashes of the shell's Content-Security-Policy are valid for any data.
// Equal data make equal pages. RESOURCE_EXHAUSTED if the data have 1 GiB or more.
absl::StatusOr<std::string> Page(absl::string_view json);

// Returns the page that gets its data from its server. The page sends `key`, which has only letters
// and digits, to the server. If `key` is empty, the page uses its previous key.
absl::StatusOr<std::string> ServedPage(absl::string_view key);

// Returns the shell, web/dist/shell.html. The build generates the definition.
absl::string_view Shell();

}  // namespace gradflow::tools

#endif  // GRADFLOW_TOOLS_VIEW_PAGE_H_
