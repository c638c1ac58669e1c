# Writes a C++ source that defines a function that returns the text of a file.
#
#   cmake -D FILE=web/dist/shell.html -D OUT=shell.cc -D HEADER=tools/view/page.h
#         -D NAMESPACE=gradflow::tools -D FUNCTION=Shell -P EmbedText.cmake
file(READ ${FILE} text)
set(delimiter embedded)
string(FIND "${text}" ")${delimiter}\"" position)
if(NOT position EQUAL -1)
  message(FATAL_ERROR "${FILE} has the delimiter of the string literal")
endif()
file(
  CONFIGURE
  OUTPUT ${OUT}
  CONTENT
    [[// Generated from a file; see cmake/EmbedText.cmake.
#include "@HEADER@"

namespace @NAMESPACE@ {

absl::string_view @FUNCTION@() {
  static constexpr char kText[] = R"@delimiter@(@text@)@delimiter@";
  return absl::string_view(kText, sizeof(kText) - 1);
}

}  // namespace @NAMESPACE@
]]
  @ONLY)
