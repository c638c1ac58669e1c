#include "tools/view/page.h"

#include <zlib.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gradflow/core/status.h"

namespace gradflow::tools {
namespace {

// The place of the data in the shell.
constexpr char kPlace[] = "@DATA@";
// Higher compression levels take much more time and hardly reduce the size.
constexpr int kLevel = 2;

absl::StatusOr<std::string> Gzip(absl::string_view data) {
  constexpr size_t kMaxBytes = size_t{1} << 30;
  if (data.size() >= kMaxBytes) {
    return errors::ResourceExhausted("the data of the page have ", data.size(),
                                     " bytes, but at most ", kMaxBytes - 1, " are allowed");
  }
  z_stream stream = {};
  // Adding 16 to the window size selects a gzip header, which has no time and no name.
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, 16 + MAX_WBITS, MAX_MEM_LEVEL,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return errors::ResourceExhausted("zlib cannot be initialized");
  }
  std::string out(deflateBound(&stream, data.size()), '\0');
  // zlib does not write to its input.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (result != Z_STREAM_END) return errors::Internal("zlib failed with code ", result);
  return out;
}

absl::StatusOr<std::string> PageWith(absl::string_view data) {
  const absl::string_view shell = Shell();
  const size_t place = shell.find(kPlace);
  if (place == absl::string_view::npos) return errors::Internal("the shell has no ", kPlace);
  return absl::StrCat(shell.substr(0, place), data, shell.substr(place + sizeof(kPlace) - 1));
}

}  // namespace

absl::StatusOr<std::string> Page(absl::string_view json) {
  GRADFLOW_ASSIGN_OR_RETURN(const std::string compressed, Gzip(json));
  return PageWith(absl::Base64Escape(compressed));
}

absl::StatusOr<std::string> ServedPage(absl::string_view key) {
  // Data in base64 contain no colon.
  return PageWith(absl::StrCat("server:", key));
}

}  // namespace gradflow::tools
