# The functions that every CMakeLists.txt of gradflow uses to declare its targets.
include_guard(GLOBAL)

# Headers are included as "gradflow/<layer>/x.h" whatever the checkout is called: the
# build tree links the folders of the layers to where the include path finds them.
# Generated files never go through these links, which would write into the source
# tree; they have a tree of their own, which has the same form.
set(GRADFLOW_INCLUDE_DIR ${PROJECT_BINARY_DIR}/include)
set(GRADFLOW_GEN_DIR ${PROJECT_BINARY_DIR}/gen)
file(MAKE_DIRECTORY ${GRADFLOW_INCLUDE_DIR}/gradflow ${GRADFLOW_GEN_DIR}/gradflow/proto
                    ${GRADFLOW_GEN_DIR}/gradflow/ops)
foreach(layer IN ITEMS proto core ops graph runtime compat testing)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${layer} ${GRADFLOW_INCLUDE_DIR}/gradflow/${layer}
       SYMBOLIC)
endforeach()

# Warnings are ours alone: no target links this, so that neither users nor the export
# files ever see it. See gradflow_target_defaults.
add_library(gradflow_warnings INTERFACE)
# gcc 12 takes the moving of absl::InlinedVector, which every shape has, for a use of
# uninitialised memory. A class of a source that a unity build includes may have members whose type
# is in that source's unnamed namespace.
target_compile_options(gradflow_warnings INTERFACE -Wall -Wextra
                                                   $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
                                                   $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>
                                                   $<$<BOOL:${GRADFLOW_WERROR}>:-Werror>)

# gradflow_target_defaults(<target> [NO_WARNINGS])
#
# What every compiled target of ours has in common.
function(gradflow_target_defaults target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_WARNINGS" "" "")
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  # Not left to the dependencies: Abseil's package asks for C++14, which is what clang 14 then takes.
  target_compile_features(${target} PUBLIC cxx_std_17)
  # Calls between functions of the library are its own affair, also of those that others may call.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-semantic-interposition>)
  if(NOT arg_NO_WARNINGS)
    target_compile_options(
      ${target} PRIVATE $<TARGET_PROPERTY:gradflow_warnings,INTERFACE_COMPILE_OPTIONS>)
  endif()
endfunction()

# gradflow_layer(NAME <name> [LAYER <folder>] [HDRS <file>...] [SRCS <file>...]
#                [GENERATED_HDRS <file>...] [GENERATED_SRCS <file>...]
#                [DEPS <layer>...] [PRIVATE_DEPS <target>...] [DEFAULT_VISIBILITY] [NO_WARNINGS])
#
# The objects gradflow_<name>, which become part of the library gradflow. HDRS and SRCS are
# relative to the current folder. HDRS, also generated ones, are public: they install to
# include/gradflow/<layer>/; LAYER is the current folder's name unless given. What they declare is
# visible outside of the shared library where a `#pragma GCC visibility` around it says so.
# Generated files are relative to ${GRADFLOW_GEN_DIR}/gradflow/<layer>. DEPS are the layers below,
# PRIVATE_DEPS the packages that the sources need besides those of gradflow::headers.
function(gradflow_layer)
  cmake_parse_arguments(PARSE_ARGV 0 arg "DEFAULT_VISIBILITY;NO_WARNINGS" "NAME;LAYER"
                        "HDRS;SRCS;GENERATED_HDRS;GENERATED_SRCS;DEPS;PRIVATE_DEPS")
  if(NOT arg_LAYER)
    cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME arg_LAYER)
  endif()
  list(TRANSFORM arg_HDRS PREPEND ${GRADFLOW_INCLUDE_DIR}/gradflow/${arg_LAYER}/)
  list(TRANSFORM arg_GENERATED_HDRS PREPEND ${GRADFLOW_GEN_DIR}/gradflow/${arg_LAYER}/)
  list(TRANSFORM arg_GENERATED_SRCS PREPEND ${GRADFLOW_GEN_DIR}/gradflow/${arg_LAYER}/)

  set(target gradflow_${arg_NAME})
  add_library(${target} OBJECT ${arg_SRCS} ${arg_GENERATED_SRCS})
  list(TRANSFORM arg_DEPS PREPEND gradflow_)
  target_link_libraries(${target} PRIVATE gradflow_headers ${arg_DEPS} ${arg_PRIVATE_DEPS})
  if(arg_NO_WARNINGS)
    gradflow_target_defaults(${target} NO_WARNINGS)
  else()
    gradflow_target_defaults(${target})
  endif()
  if(NOT arg_DEFAULT_VISIBILITY)
    set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden
                                               VISIBILITY_INLINES_HIDDEN ON)
  endif()

  target_sources(
    gradflow_headers
    INTERFACE FILE_SET HEADERS
              BASE_DIRS ${GRADFLOW_INCLUDE_DIR} ${GRADFLOW_GEN_DIR}
              FILES ${arg_HDRS} ${arg_GENERATED_HDRS})
  set_property(GLOBAL APPEND PROPERTY GRADFLOW_OBJECTS $<TARGET_OBJECTS:${target}>)
  set_property(GLOBAL APPEND PROPERTY GRADFLOW_PRIVATE_DEPS ${arg_PRIVATE_DEPS})
endfunction()

# gradflow_library(NAME <name> [ALWAYS_STATIC] OBJECTS <object>... [LIBS <library>...]
#                  [DEPS <target>...] [PRIVATE_DEPS <target>...])
#
# A library of a user's link line, gradflow::<name>, made of objects that are compiled once. There
# are two targets, gradflow_<name>_static and gradflow_<name>_shared, and gradflow::<name> is the
# one that BUILD_SHARED_LIBS asks for; so is gradflow::<name> after find_package(gradflow). LIBS are
# other libraries of this kind, DEPS and PRIVATE_DEPS targets that exist as they are. With
# ALWAYS_STATIC the two differ in what they link only. The other one is built if somebody needs it
# (tests see everything in the static one), and installed with GRADFLOW_BUILD_BOTH.
function(gradflow_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "ALWAYS_STATIC" "NAME" "OBJECTS;LIBS;DEPS;PRIVATE_DEPS")
  foreach(kind IN ITEMS static shared)
    set(target gradflow_${arg_NAME}_${kind})
    if(kind STREQUAL "shared" AND NOT arg_ALWAYS_STATIC)
      add_library(${target} SHARED ${arg_OBJECTS})
      # The lists of the packages are longer than what is used of them.
      target_link_options(${target} PRIVATE LINKER:--as-needed)
    else()
      add_library(${target} STATIC ${arg_OBJECTS})
    endif()
    set(libs ${arg_LIBS})
    list(TRANSFORM libs REPLACE "(.+)" "gradflow_\\1_${kind}")
    target_link_libraries(${target} PUBLIC ${libs} ${arg_DEPS} PRIVATE ${arg_PRIVATE_DEPS})
    set_target_properties(
      ${target}
      PROPERTIES EXPORT_NAME ${arg_NAME}
                 OUTPUT_NAME gradflow_${arg_NAME}
                 LINKER_LANGUAGE CXX
                 VERSION ${PROJECT_VERSION}
                 SOVERSION ${GRADFLOW_SOVERSION})
    if(arg_NAME STREQUAL "gradflow")
      set_target_properties(${target} PROPERTIES OUTPUT_NAME gradflow)
    elseif(arg_ALWAYS_STATIC AND kind STREQUAL "shared")
      # Beside the other one in a build tree; only one of them is installed.
      set_target_properties(${target} PROPERTIES ARCHIVE_OUTPUT_DIRECTORY shared)
    endif()
    if(NOT kind IN_LIST GRADFLOW_KINDS)
      set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
  endforeach()
  add_library(gradflow::${arg_NAME} ALIAS gradflow_${arg_NAME}_${GRADFLOW_KIND})
endfunction()

# gradflow_executable(NAME <target> [OUTPUT_NAME <file>] SRCS <file>... [DEPS <target>...])
#
# A program in the current folder of the build tree.
function(gradflow_executable)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;OUTPUT_NAME" "SRCS;DEPS")
  add_executable(${arg_NAME} ${arg_SRCS})
  target_link_libraries(${arg_NAME} PRIVATE ${arg_DEPS})
  # Sources may include the headers beside them as "tools/x.h".
  target_include_directories(${arg_NAME} PRIVATE ${PROJECT_SOURCE_DIR})
  if(arg_OUTPUT_NAME)
    set_target_properties(${arg_NAME} PROPERTIES OUTPUT_NAME ${arg_OUTPUT_NAME})
  endif()
  gradflow_target_defaults(${arg_NAME})
endfunction()

# gradflow_compile_fast(<target>)
#
# For tests, which take longer to compile than to run. The references that take long to run are
# in a library of their own.
function(gradflow_compile_fast target)
  target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O0>)
endfunction()

# gradflow_test(NAME <target> SRCS <file>... [DEPS <target>...] [PROGRAMS <target>...]
#               [LABEL <label>])
#
# A GoogleTest program; each of its tests is a CTest test of its own, named
# <label>.<suite>.<test>. LABEL is <target> unless given. GRADFLOW_TEST_DATA_DIR is the
# path of tests/data, as a string literal. PROGRAMS are executable targets that the tests
# start: they are built first, and GRADFLOW_PROGRAM_<target> is the path of each. The headers
# that most tests include are those that gradflow_precompiled has compiled.
function(gradflow_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;LABEL" "SRCS;DEPS;PROGRAMS")
  if(NOT arg_LABEL)
    set(arg_LABEL ${arg_NAME})
  endif()
  gradflow_executable(NAME ${arg_NAME} SRCS ${arg_SRCS} DEPS ${arg_DEPS} GTest::gmock
                      GTest::gtest_main)
  gradflow_compile_fast(${arg_NAME})
  # As many as a compiler takes with a gigabyte: they share most of what they instantiate.
  set_target_properties(${arg_NAME} PROPERTIES UNITY_BUILD_BATCH_SIZE 15)
  if(GRADFLOW_PRECOMPILE_HEADERS)
    target_precompile_headers(${arg_NAME} REUSE_FROM gradflow_precompiled)
  endif()
  target_compile_definitions(${arg_NAME}
                             PRIVATE GRADFLOW_TEST_DATA_DIR="${PROJECT_SOURCE_DIR}/tests/data")
  foreach(program IN LISTS arg_PROGRAMS)
    add_dependencies(${arg_NAME} ${program})
    target_compile_definitions(${arg_NAME}
                               PRIVATE GRADFLOW_PROGRAM_${program}="$<TARGET_FILE:${program}>")
  endforeach()
  # PRE_TEST asks the program for its tests when ctest runs rather than after each link.
  gtest_discover_tests(
    ${arg_NAME}
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    TEST_PREFIX ${arg_LABEL}.
    PROPERTIES TIMEOUT 60 LABELS ${arg_LABEL})
endfunction()

# gradflow_benchmark(NAME <target> SRCS <file>... [DEPS <target>...] [SMOKE <argument>...])
#
# A benchmark program. With GRADFLOW_TEST_BENCHMARKS, CTest runs it for a moment with the arguments
# SMOKE, so that it cannot rot; without, it is built on demand.
function(gradflow_benchmark)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SRCS;DEPS;SMOKE")
  gradflow_executable(NAME ${arg_NAME} SRCS ${arg_SRCS} DEPS ${arg_DEPS} benchmark::benchmark)
  if(NOT GRADFLOW_TEST_BENCHMARKS)
    set_target_properties(${arg_NAME} PROPERTIES EXCLUDE_FROM_ALL ON)
  elseif(GRADFLOW_BUILD_TESTS)
    add_test(NAME benchmark.${arg_NAME} COMMAND ${arg_NAME} ${arg_SMOKE})
    set_tests_properties(benchmark.${arg_NAME} PROPERTIES TIMEOUT 60 LABELS benchmark)
  endif()
endfunction()
