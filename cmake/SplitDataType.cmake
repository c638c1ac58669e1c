# Copies protoc's output to the tree of generated files, and moves the enum DataType from types.pb.h
# to a separate header. gradflow's public headers need the enum but must not include Protocol
# Buffers' headers.
#
#   cmake -D FROM=<folder of protoc's output> -D TO=<folder of generated headers>
#         -P SplitDataType.cmake
#
# Does not touch files whose content is unchanged, to avoid recompilation.

# Writes `content` to `file` unless the file already has this content.
function(write_if_different file content)
  if(EXISTS "${file}")
    file(READ "${file}" old)
    if(old STREQUAL content)
      return()
    endif()
  endif()
  file(WRITE "${file}" "${content}")
endfunction()

file(GLOB outputs RELATIVE "${FROM}" "${FROM}/*.pb.h" "${FROM}/*.pb.cc")
list(REMOVE_ITEM outputs types.pb.h)
foreach(output IN LISTS outputs)
  file(COPY_FILE "${FROM}/${output}" "${TO}/${output}" ONLY_IF_DIFFERENT)
endforeach()

file(READ "${FROM}/types.pb.h" header)
string(REGEX MATCH "enum DataType *: *[a-z0-9_:]+ *{[^{}]*};\n" enum "${header}")
if(enum STREQUAL "" OR NOT enum MATCHES "DT_FLOAT = 1,")
  message(FATAL_ERROR "${FROM}/types.pb.h has no definition of the enum DataType as this version of "
                      "gradflow expects it from protoc")
endif()

# Removes the enum and includes its header before all others, outside of any namespace.
string(REPLACE "${enum}" "// enum DataType: see gradflow/proto/data_type.h\n" header "${header}")
string(FIND "${header}" "\n#include " first_include)
if(first_include EQUAL -1)
  message(FATAL_ERROR "${FROM}/types.pb.h has no #include before which to insert data_type.h")
endif()
string(SUBSTRING "${header}" 0 ${first_include} before)
string(SUBSTRING "${header}" ${first_include} -1 after)
write_if_different("${TO}/types.pb.h"
                   "${before}\n#include \"gradflow/proto/data_type.h\"\n${after}")

write_if_different(
  "${TO}/data_type.h"
  "// Generated from gradflow/proto/types.proto. Do not edit.
//
// Element types of tensors.
//
// The generated messages include this header. Independent of Protocol Buffers' headers.

#ifndef GRADFLOW_PROTO_DATA_TYPE_H_
#define GRADFLOW_PROTO_DATA_TYPE_H_

#include <cstdint>
#include <limits>

namespace gradflow {

${enum}
}  // namespace gradflow

#endif  // GRADFLOW_PROTO_DATA_TYPE_H_
")
