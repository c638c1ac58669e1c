// Used if oneDNN is not installed.
#include "absl/strings/str_cat.h"
#include "benchmarks/conv/onednn.h"

namespace gradflow::benchmarks {

std::string ConvCase::DebugString() const {
  return absl::StrCat(size, "x", size, "x", in_depth, " ", filter, "x", filter, "x", out_depth,
                      " /", stride, " (", layers, ")");
}

std::function<void()> OneDnn(const ConvCase&, Pass, int64_t, int, bool) { return nullptr; }

}  // namespace gradflow::benchmarks
