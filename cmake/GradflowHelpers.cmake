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
foreach(layer IN ITEMS proto core ops graph runtime compat)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${layer} ${GRADFLOW_INCLUDE_DIR}/gradflow/${layer}
       SYMBOLIC)
endforeach()

# Warnings are ours alone: no target links this, so that neither users nor the export
# files ever see it. See gradflow_target_defaults.
add_library(gradflow_warnings INTERFACE)
# gcc 12 takes the moving of absl::InlinedVector, which every shape has, for a use of
# uninitialised memory.
target_compile_options(gradflow_warnings INTERFACE -Wall -Wextra
                                                   $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
                                                   $<$<BOOL:${GRADFLOW_WERROR}>:-Werror>)

# gradflow_target_defaults(<target> [NO_WARNINGS])
#
# What every compiled target of ours has in common.
function(gradflow_target_defaults target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_WARNINGS" "" "")
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  # Not left to the dependencies: Abseil's package asks for C++14, which is what clang 14 then takes.
  target_compile_features(${target} PUBLIC cxx_std_17)
  if(NOT arg_NO_WARNINGS)
    target_compile_options(
      ${target} PRIVATE $<TARGET_PROPERTY:gradflow_warnings,INTERFACE_COMPILE_OPTIONS>)
  endif()
endfunction()

# gradflow_library(NAME <name> [LAYER <folder>] [HDRS <file>...] [SRCS <file>...]
#                  [GENERATED_HDRS <file>...] [GENERATED_SRCS <file>...]
#                  [DEPS <target>...] [PRIVATE_DEPS <target>...] [NO_WARNINGS])
#
# The library gradflow_<name>, with the alias gradflow::<name>, which is also its name
# after find_package(gradflow). HDRS and SRCS are relative to the current folder.
# Headers, also generated ones, install to include/gradflow/<layer>/; LAYER is the
# current folder's name unless given. Generated files are relative to
# ${GRADFLOW_GEN_DIR}/gradflow/<layer>. DEPS are targets that the headers need,
# PRIVATE_DEPS those that only the sources need.
function(gradflow_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "NO_WARNINGS" "NAME;LAYER"
                        "HDRS;SRCS;GENERATED_HDRS;GENERATED_SRCS;DEPS;PRIVATE_DEPS")
  if(NOT arg_LAYER)
    cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME arg_LAYER)
  endif()
  list(TRANSFORM arg_HDRS PREPEND ${GRADFLOW_INCLUDE_DIR}/gradflow/${arg_LAYER}/)
  list(TRANSFORM arg_GENERATED_HDRS PREPEND ${GRADFLOW_GEN_DIR}/gradflow/${arg_LAYER}/)
  list(TRANSFORM arg_GENERATED_SRCS PREPEND ${GRADFLOW_GEN_DIR}/gradflow/${arg_LAYER}/)

  set(target gradflow_${arg_NAME})
  add_library(${target} ${arg_SRCS} ${arg_GENERATED_SRCS})
  add_library(gradflow::${arg_NAME} ALIAS ${target})
  target_sources(
    ${target}
    PUBLIC FILE_SET HEADERS
           BASE_DIRS ${GRADFLOW_INCLUDE_DIR} ${GRADFLOW_GEN_DIR}
           FILES ${arg_HDRS} ${arg_GENERATED_HDRS})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${arg_NAME} VERSION ${PROJECT_VERSION}
                                             SOVERSION ${PROJECT_VERSION_MAJOR})
  target_link_libraries(${target} PUBLIC ${arg_DEPS} PRIVATE ${arg_PRIVATE_DEPS})
  if(arg_NO_WARNINGS)
    gradflow_target_defaults(${target} NO_WARNINGS)
  else()
    gradflow_target_defaults(${target})
  endif()
  install(TARGETS ${target} EXPORT gradflowTargets FILE_SET HEADERS)
endfunction()

# gradflow_executable(NAME <target> [OUTPUT_NAME <file>] SRCS <file>... [DEPS <target>...]
#                     [INSTALL])
#
# A program in the current folder of the build tree; with INSTALL it is installed too.
function(gradflow_executable)
  cmake_parse_arguments(PARSE_ARGV 0 arg "INSTALL" "NAME;OUTPUT_NAME" "SRCS;DEPS")
  add_executable(${arg_NAME} ${arg_SRCS})
  target_link_libraries(${arg_NAME} PRIVATE ${arg_DEPS})
  # Sources may include the headers beside them as "tools/x.h".
  target_include_directories(${arg_NAME} PRIVATE ${PROJECT_SOURCE_DIR})
  if(arg_OUTPUT_NAME)
    set_target_properties(${arg_NAME} PROPERTIES OUTPUT_NAME ${arg_OUTPUT_NAME})
  endif()
  gradflow_target_defaults(${arg_NAME})
  if(arg_INSTALL)
    install(TARGETS ${arg_NAME})
  endif()
endfunction()

# gradflow_compile_fast(<target>)
#
# For tests, which take longer to compile than to run. The references that take long to run are
# in a library of their own.
function(gradflow_compile_fast target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O0>)
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
  target_precompile_headers(${arg_NAME} REUSE_FROM gradflow_precompiled)
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
# A benchmark program. CTest runs it for a moment with the arguments SMOKE, so that it
# cannot rot.
function(gradflow_benchmark)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SRCS;DEPS;SMOKE")
  gradflow_executable(NAME ${arg_NAME} SRCS ${arg_SRCS} DEPS ${arg_DEPS} benchmark::benchmark)
  if(GRADFLOW_BUILD_TESTS)
    add_test(NAME benchmark.${arg_NAME} COMMAND ${arg_NAME} ${arg_SMOKE})
    set_tests_properties(benchmark.${arg_NAME} PROPERTIES TIMEOUT 60 LABELS benchmark)
  endif()
endfunction()
