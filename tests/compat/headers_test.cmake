# Tests cmake/CompatHeaders.cmake: cmake -D SOURCE_DIR=<gradflow> -D BINARY_DIR=<scratch> -P <this
# file>
cmake_minimum_required(VERSION 3.25)
include(${SOURCE_DIR}/cmake/CompatHeaders.cmake)

file(REMOVE_RECURSE ${BINARY_DIR})
file(WRITE ${BINARY_DIR}/compat/tf/file.h "")
file(WRITE ${BINARY_DIR}/compat/tf/test.h "")
file(WRITE ${BINARY_DIR}/compat/tf/internal.h "")

# Generates the headers of a table. Sets compat_errors and the lists compat_forwards, compat_testing
# and compat_internal in the caller.
macro(generate table)
  file(WRITE ${BINARY_DIR}/table.txt "${table}")
  gradflow_generate_compat_headers(
    TABLE ${BINARY_DIR}/table.txt
    SOURCE_DIR ${BINARY_DIR}/compat
    OUTPUT_DIR ${BINARY_DIR}/out
    KNOWN gradflow/a.h gradflow/b.h
    ${ARGN})
endmacro()

function(expect_equal what actual expected)
  if(NOT actual STREQUAL expected)
    message(SEND_ERROR "${what}: expected\n${expected}\nfound\n${actual}")
  endif()
endfunction()

function(expect_text header expected)
  set(text "no file")
  if(EXISTS ${BINARY_DIR}/out/${header})
    file(READ ${BINARY_DIR}/out/${header} text)
  endif()
  expect_equal(${header} "${text}" "${expected}")
endfunction()

# Expects errors that begin with the line number in the table.
function(expect_error table expected)
  generate("${table}")
  expect_equal("errors of\n${table}" "${compat_errors}" "table.txt:${expected}\n")
endfunction()
expect_error("[forward]\ntf/a.h -> tf/file.h\n[missing]\ntf/a.h | text\n" "4: tf/a.h is in line 2 already")
expect_error("[missing]\ntf/{a,b,a}.h | text\n" "2: tf/a.h is in line 2 already")
expect_error("[forward]\ntf/a.h -> tf/none.h\n" "2: tf/a.h forwards to tf/none.h, which does not exist")
expect_error("[forward]\ntf/a.h -> gradflow/none.h\n"
             "2: tf/a.h forwards to gradflow/none.h, which does not exist")
expect_error("[forward]\ntf/{a,b}.h -> gradflow/*.h tf/*.h\n[missing]\ntf/c.h | text\n"
             "2: tf/a.h forwards to itself\ntable.txt:2: tf/b.h forwards to itself")
expect_error("[forward]\ntf/a.h -> tf/b.h\n[missing]\ntf/b.h | text\n"
             "2: tf/a.h forwards to tf/b.h, which does not exist")
expect_error("[forward]\ntf/file.h -> gradflow/a.h\n" "2: tf/file.h is also a file")
expect_error("[missing]\ntf/file.h | text\n" "2: tf/file.h is also a file")
expect_error("[internal]\ntf/none.h\n" "2: there is no file tf/none.h")
expect_error("[forward]\ntf/a.h -> tf/test.h\n\n[testing]\ntf/test.h\n"
             "2: tf/a.h of [forward] forwards to tf/test.h of [testing]")
expect_error("[testing]\ntf/a.h -> tf/internal.h\n[internal]\ntf/internal.h\n"
             "2: tf/a.h of [testing] forwards to tf/internal.h of [internal]")
expect_error("[missing]\ntf/b.h | text\ntf/a.h | text\n"
             "3: expected sorted lines, found 'tf/a.h | text' after 'tf/b.h | text'")
expect_error("# Text\ntf/a.h -> tf/file.h\n" "2: expected a line of section [], found 'tf/a.h -> tf/file.h'")
foreach(line IN ITEMS "tf/a.h" "tf/a.h ->" "tf/a.h  -> tf/file.h" "tf/a.h | text" "[headers]")
  expect_error("[forward]\n${line}\n" "2: expected a line of section [forward], found '${line}'")
endforeach()
foreach(line IN ITEMS "tf/a.h -> tf/file.h" "tf/a.h |" "tf/a.h | a \"text\"")
  expect_error("[missing]\n${line}\n" "2: expected a line of section [missing], found '${line}'")
endforeach()
foreach(header IN ITEMS "/tf/a.h" "tf/../a.h" "tf/{a.h" "tf/")
  expect_error("[missing]\n${header} | text\n" "2: expected the path of a header, found '${header}'")
endforeach()
if(EXISTS ${BINARY_DIR}/out)
  message(SEND_ERROR "A table with errors has written headers")
endif()

set(table "# Text
[forward]
tf/a.h -> gradflow/a.h tf/file.h using A B
{,x/}tf/{b,c}.h -> tf/a.h <lib/*>
[testing]
tf/t.h -> tf/test.h
tf/test.h
[internal]
tf/internal.h
[missing]
tf/m.h | read a; or b
")
generate("${table}" TESTING)
expect_equal(errors "${compat_errors}" "")
expect_equal(forwards "${compat_forwards}" "tf/a.h;tf/b.h;tf/c.h;x/tf/b.h;x/tf/c.h;tf/t.h")
expect_equal(testing "${compat_testing}" "tf/test.h")
expect_equal(internal "${compat_internal}" "tf/internal.h")
expect_text(forward/tf/a.h "// Forwards to gradflow/a.h, tf/file.h. Generated from compat/table.txt.
#ifndef GRADFLOW_COMPAT_TF_A_H_
#define GRADFLOW_COMPAT_TF_A_H_

#include \"gradflow/a.h\"  // IWYU pragma: export
#include \"tf/file.h\"  // IWYU pragma: export

namespace tensorflow {

using gradflow::A;
using gradflow::B;

}  // namespace tensorflow

#endif  // GRADFLOW_COMPAT_TF_A_H_
")
expect_text(forward/x/tf/c.h "// Forwards to tf/a.h, <lib/c>. Generated from compat/table.txt.
#ifndef GRADFLOW_COMPAT_X_TF_C_H_
#define GRADFLOW_COMPAT_X_TF_C_H_

#include \"tf/a.h\"  // IWYU pragma: export
#include <lib/c>  // IWYU pragma: export

#endif  // GRADFLOW_COMPAT_X_TF_C_H_
")
expect_text(missing/tf/m.h "#error \"gradflow does not have tf/m.h: read a; or b\"\n")

# The second run, without TESTING, does not write files that stay the same. It removes the headers of
# the section [testing], and headers that are no longer in the table.
file(GLOB_RECURSE files ${BINARY_DIR}/out/*)
execute_process(COMMAND touch -d 2001-02-03 ${files} COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "tf/{b,c}" "tf/{b,d}" table "${table}")
generate("${table}")
set(times)
file(GLOB_RECURSE files RELATIVE ${BINARY_DIR}/out ${BINARY_DIR}/out/*)
foreach(file IN LISTS files)
  file(TIMESTAMP ${BINARY_DIR}/out/${file} year "%Y")
  if(year EQUAL 2001)
    string(APPEND file " kept")
  endif()
  list(APPEND times ${file})
endforeach()
expect_equal("second run" "${times}"
  "forward/tf/a.h kept;forward/tf/b.h kept;forward/tf/d.h;forward/x/tf/b.h kept;forward/x/tf/d.h;missing/tf/m.h kept")
expect_equal("forwards without tests" "${compat_forwards}" "tf/a.h;tf/b.h;tf/d.h;x/tf/b.h;x/tf/d.h")
