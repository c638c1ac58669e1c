# Selects the op families of a build by GRADFLOW_OPS and GRADFLOW_OPS_FROM. Sets
#
#   GRADFLOW_SELECTED_FAMILIES  "<folder>/<name>" of each family of ops/ in the build, sorted
#   GRADFLOW_SELECTED_SOURCES   the families and the helpers that they need, without ".cc"
#   GRADFLOW_LEFT_OUT_OPS       the names of the ops of the other families
#   GRADFLOW_OPS_PACKAGES       the packages that the sources need: BLAS, HASHES, ICU, IMAGES, LAPACK, ONEDNN,
#                               RE2, SLEEF, ZLIB
#   GRADFLOW_OP_DEFINITIONS     the files definitions.pbtxt of all folders
include_guard(GLOBAL)

set(GRADFLOW_OPS
    ""
    CACHE STRING "The ops to build, separated by semicolons; empty for all, unless GRADFLOW_OPS_FROM names a graph")
set(GRADFLOW_OPS_FROM
    ""
    CACHE STRING "Graphs whose ops to build: files of GraphDefs (.pb, .pbtxt), separated by semicolons")

set(GRADFLOW_OPS_FOLDERS
    array
    audio
    collective
    control_flow
    data_flow
    functional
    image
    io
    linalg
    list
    logging
    lookup
    math
    nn
    parsing
    quant
    ragged
    random
    sparse
    state
    string
    training)

# gradflow_op_source(<kind> <name> [ALONE | SIMD] [PACKAGES <package>...] [USES <source>...])
#
# Declares the source <name>.cc of a folder of ops/. USES are the helpers that it calls: names of
# sources of the folder, or "<folder>/<name>". Helpers of common/ need not be named, because all of
# them except elementary_simd are in every build. PACKAGES are BLAS, HASHES, ICU, IMAGES, LAPACK,
# ONEDNN, RE2, SLEEF or ZLIB.
#
#   ALONE  the source is not part of a unity build, because it includes itself or is slow to compile
#   SIMD   like ALONE, for a source that is vectorized by hand
function(gradflow_op_source kind name)
  cmake_parse_arguments(PARSE_ARGV 2 arg "ALONE;SIMD" "" "PACKAGES;USES")
  cmake_path(GET CMAKE_CURRENT_LIST_DIR FILENAME folder)
  set(id ${folder}/${name})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ops/${id}: unexpected ${arg_UNPARSED_ARGUMENTS}")
  endif()
  list(TRANSFORM arg_USES REPLACE "^([^/]+)$" "${folder}/\\1")
  foreach(property IN ITEMS ALONE SIMD PACKAGES USES)
    set_property(GLOBAL PROPERTY GRADFLOW_OP_${property}_${id} "${arg_${property}}")
  endforeach()
  set_property(GLOBAL APPEND PROPERTY GRADFLOW_OP_${kind} ${id})
endfunction()

# A family: <name>.cc defines gradflow::<name>::Register(Registry& registry).
macro(gradflow_op_family)
  gradflow_op_source(FAMILIES ${ARGN})
endmacro()

# A helper: a source that registers no op.
macro(gradflow_op_helper)
  gradflow_op_source(HELPERS ${ARGN})
endmacro()

# gradflow_ops_of_graph(<result> <file>)
#
# Lists the names of the ops of a GraphDef, including the ops of its functions.
function(gradflow_ops_of_graph result file)
  cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${CMAKE_BINARY_DIR})
  if(NOT EXISTS ${file})
    message(FATAL_ERROR "GRADFLOW_OPS_FROM: there is no file ${file}")
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  if(file MATCHES "\\.pbtxt$")
    file(STRINGS ${file} lines REGEX "^ *op: \"")
  else()
    get_target_property(protoc protobuf::protoc LOCATION)
    # The text of the weights is large, so grep passes only the lines of ops.
    execute_process(
      COMMAND ${protoc} -I ${GRADFLOW_INCLUDE_DIR} --decode=gradflow.GraphDef
              gradflow/proto/graph.proto
      COMMAND grep "^ *op: \""
      INPUT_FILE ${file}
      OUTPUT_VARIABLE lines
      RESULTS_VARIABLE codes
      ERROR_VARIABLE error)
    list(GET codes 0 code)
    if(NOT code EQUAL 0)
      message(FATAL_ERROR "GRADFLOW_OPS_FROM: ${file} is not a GraphDef: ${error}")
    endif()
    string(REPLACE "\n" ";" lines "${lines}")
  endif()
  list(TRANSFORM lines REPLACE "^ *op: \"([^\"]*)\".*" "\\1")
  list(REMOVE_DUPLICATES lines)
  list(REMOVE_ITEM lines "")
  if(NOT lines)
    message(FATAL_ERROR "GRADFLOW_OPS_FROM: ${file} has no nodes")
  endif()
  set(${result} ${lines} PARENT_SCOPE)
endfunction()

# Sets GRADFLOW_FAMILY_OF_<op> in the caller to the family of each op, and GRADFLOW_ALL_OPS.
function(gradflow_read_definitions)
  set(all_ops)
  foreach(file IN LISTS GRADFLOW_OP_DEFINITIONS)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    # The writer of these files indents the name of an op by four spaces.
    file(STRINGS ${file} lines REGEX "^  family: |^    name: ")
    foreach(line IN LISTS lines)
      if(line MATCHES "^  family: \"(.*)\"")
        set(family ${CMAKE_MATCH_1})
      elseif(line MATCHES "^    name: \"(.*)\"")
        set(GRADFLOW_FAMILY_OF_${CMAKE_MATCH_1} ${family} PARENT_SCOPE)
        list(APPEND all_ops ${CMAKE_MATCH_1})
      endif()
    endforeach()
  endforeach()
  set(GRADFLOW_ALL_OPS ${all_ops} PARENT_SCOPE)
endfunction()

set(GRADFLOW_OP_DEFINITIONS)
foreach(folder IN LISTS GRADFLOW_OPS_FOLDERS ITEMS common)
  include(${PROJECT_SOURCE_DIR}/ops/${folder}/sources.cmake)
  if(NOT folder STREQUAL "common")
    list(APPEND GRADFLOW_OP_DEFINITIONS ${PROJECT_SOURCE_DIR}/ops/${folder}/definitions.pbtxt)
  endif()
endforeach()
get_property(all_families GLOBAL PROPERTY GRADFLOW_OP_FAMILIES)
get_property(all_helpers GLOBAL PROPERTY GRADFLOW_OP_HELPERS)

set(GRADFLOW_LEFT_OUT_OPS)
if(GRADFLOW_OPS OR GRADFLOW_OPS_FROM)
  set(wanted ${GRADFLOW_OPS})
  foreach(file IN LISTS GRADFLOW_OPS_FROM)
    gradflow_ops_of_graph(ops ${file})
    list(APPEND wanted ${ops})
  endforeach()
  # Plans fold batch normalization into convolutions and add biases to them.
  if("Conv2D" IN_LIST wanted OR "DepthwiseConv2dNative" IN_LIST wanted)
    list(APPEND wanted BiasAdd)
  endif()
  # Every program that builds a graph, feeds, fetches or calls functions needs these ops.
  list(APPEND wanted Const Identity NoOp Placeholder _Arg)
  list(REMOVE_DUPLICATES wanted)
  gradflow_read_definitions()
  set(GRADFLOW_SELECTED_FAMILIES)
  foreach(op IN LISTS wanted)
    if(NOT GRADFLOW_FAMILY_OF_${op})
      message(FATAL_ERROR "GRADFLOW_OPS: gradflow has no op '${op}'; `gradflow ops` lists all")
    endif()
    list(APPEND GRADFLOW_SELECTED_FAMILIES ${GRADFLOW_FAMILY_OF_${op}})
  endforeach()
  list(REMOVE_DUPLICATES GRADFLOW_SELECTED_FAMILIES)
  foreach(op IN LISTS GRADFLOW_ALL_OPS)
    if(NOT GRADFLOW_FAMILY_OF_${op} IN_LIST GRADFLOW_SELECTED_FAMILIES)
      list(APPEND GRADFLOW_LEFT_OUT_OPS ${op})
    endif()
  endforeach()
  list(LENGTH GRADFLOW_SELECTED_FAMILIES count)
  list(LENGTH all_families all_count)
  message(STATUS "Building ${count} of ${all_count} families of ops (GRADFLOW_OPS)")
else()
  set(GRADFLOW_SELECTED_FAMILIES ${all_families})
endif()
list(SORT GRADFLOW_SELECTED_FAMILIES)

# The closure of the families under USES.
set(GRADFLOW_SELECTED_SOURCES)
set(GRADFLOW_OPS_PACKAGES)
set(pending ${GRADFLOW_SELECTED_FAMILIES})
foreach(helper IN LISTS all_helpers)
  if(helper MATCHES "^common/" AND NOT helper STREQUAL "common/elementary_simd")
    list(APPEND pending ${helper})
  endif()
endforeach()
while(pending)
  list(POP_FRONT pending id)
  if(id IN_LIST GRADFLOW_SELECTED_SOURCES)
    continue()
  endif()
  if(NOT id IN_LIST all_families AND NOT id IN_LIST all_helpers)
    message(FATAL_ERROR "ops/: no sources.cmake lists ${id}, which another source uses")
  endif()
  list(APPEND GRADFLOW_SELECTED_SOURCES ${id})
  get_property(uses GLOBAL PROPERTY GRADFLOW_OP_USES_${id})
  list(APPEND pending ${uses})
  get_property(packages GLOBAL PROPERTY GRADFLOW_OP_PACKAGES_${id})
  list(APPEND GRADFLOW_OPS_PACKAGES ${packages})
endwhile()
list(SORT GRADFLOW_SELECTED_SOURCES)
list(REMOVE_DUPLICATES GRADFLOW_OPS_PACKAGES)
