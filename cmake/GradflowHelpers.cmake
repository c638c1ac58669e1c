# Functions that declare the targets of gradflow.
include_guard(GLOBAL)

# Headers are included as "gradflow/<layer>/x.h", independent of the name of the checkout: the
# include path has links to the folders of the layers. Generated files have a separate tree of the
# same form, because writing through these links would change the source tree.
set(GRADFLOW_INCLUDE_DIR ${PROJECT_BINARY_DIR}/include)
set(GRADFLOW_GEN_DIR ${PROJECT_BINARY_DIR}/gen)
file(MAKE_DIRECTORY ${GRADFLOW_INCLUDE_DIR}/gradflow ${GRADFLOW_GEN_DIR}/gradflow/proto
                    ${GRADFLOW_GEN_DIR}/gradflow/ops)
foreach(layer IN ITEMS proto core io codegen ops graph gradients runtime training
                   saved_model distributed c compat testing)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${layer} ${GRADFLOW_INCLUDE_DIR}/gradflow/${layer}
       SYMBOLIC)
endforeach()

# Warnings are private to this build: no target links this target, so users and export files do not
# get it. See gradflow_target_defaults.
add_library(gradflow_warnings INTERFACE)
# Disables two warnings with false positives. gcc 12 reports moves of absl::InlinedVector, which
# every shape contains, as uses of uninitialized memory. In unity builds, the members of a class may
# have types in the anonymous namespace of its source.
target_compile_options(gradflow_warnings INTERFACE -Wall -Wextra
                                                   $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
                                                   $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>
                                                   $<$<BOOL:${GRADFLOW_WERROR}>:-Werror>)

# Makes builds of gradflow itself faster if the tools are installed. GCC's precompiled headers can
# be cached only if they are preprocessed in place.
set(GRADFLOW_FAST_LINK_OPTIONS)
if(PROJECT_IS_TOP_LEVEL)
  find_program(GRADFLOW_CCACHE ccache)
  if(GRADFLOW_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(CMAKE_CXX_COMPILER_LAUNCHER
        ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${GRADFLOW_CCACHE})
  endif()
  find_program(GRADFLOW_MOLD mold)
  # A cross compiler does not find mold.
  if(GRADFLOW_MOLD AND NOT CMAKE_CROSSCOMPILING)
    set(GRADFLOW_FAST_LINK_OPTIONS -fuse-ld=mold)
  endif()
endif()

# gradflow_target_defaults(<target> [NO_WARNINGS])
#
# Sets the properties that all compiled targets share.
function(gradflow_target_defaults target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NO_WARNINGS" "" "")
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  # Explicit, because Abseil's package requires only C++14, which clang 14 would then use.
  target_compile_features(${target} PUBLIC cxx_std_17)
  # Results must not depend on the processor's ability to fuse a product and a sum. Every layer
  # computes numbers: conversions in core/, images in io/, folded constants in runtime/.
  target_compile_options(${target} PRIVATE -ffp-contract=off)
  # Calls within the library are direct, including calls of exported functions.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-semantic-interposition>)
  if(CMAKE_CXX_COMPILER_LAUNCHER)
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  endif()
  target_link_options(${target} PRIVATE ${GRADFLOW_FAST_LINK_OPTIONS})
  if(NOT arg_NO_WARNINGS)
    target_compile_options(
      ${target} PRIVATE $<TARGET_PROPERTY:gradflow_warnings,INTERFACE_COMPILE_OPTIONS>)
  endif()
endfunction()

# gradflow_optimize_less(<target>)
#
# For code whose optimization takes longer than it saves.
function(gradflow_optimize_less target)
  target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-O1>)
endfunction()

# gradflow_layer_options(<target> [DEFAULT_VISIBILITY])
#
# Sets the options of the library's objects. Their precompiled header needs the same options.
function(gradflow_layer_options target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "DEFAULT_VISIBILITY" "" "")
  # A program that links the static library with --gc-sections contains only the functions that it
  # calls. No code reads errno after a mathematical function or uses floating-point exceptions; both
  # would prevent vectorization.
  target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections -fno-math-errno
                                           -fno-trapping-math)
  if(NOT arg_DEFAULT_VISIBILITY)
    set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden
                                               VISIBILITY_INLINES_HIDDEN ON)
  endif()
endfunction()

# gradflow_layer(NAME <name> [LAYER <folder>] [HDRS <file>...] [SRCS <file>...]
#                [GENERATED_HDRS <file>...] [GENERATED_SRCS <file>...]
#                [DEPS <layer>...] [PRIVATE_DEPS <target>...] [DEFAULT_VISIBILITY] [NO_WARNINGS])
#
# Declares the objects gradflow_<name>, a part of the library gradflow. HDRS and SRCS are relative
# to the current folder. HDRS and GENERATED_HDRS are public: they install to
# include/gradflow/<layer>/. LAYER defaults to the name of the current folder. The shared library
# exports the declarations that are inside a `#pragma GCC visibility`. Generated files are relative
# to ${GRADFLOW_GEN_DIR}/gradflow/<layer>. DEPS are the layers that it uses. PRIVATE_DEPS are the
# packages that the sources need in addition to the packages of gradflow::headers.
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
  if(arg_DEFAULT_VISIBILITY)
    gradflow_layer_options(${target} DEFAULT_VISIBILITY)
  else()
    gradflow_layer_options(${target})
    if(TARGET gradflow_precompiled_layer)
      target_precompile_headers(${target} REUSE_FROM gradflow_precompiled_layer)
    endif()
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
# Declares a library for users, gradflow::<name>, from objects that are compiled once. There are two
# targets, gradflow_<name>_static and gradflow_<name>_shared. BUILD_SHARED_LIBS selects the target
# of gradflow::<name>, even after find_package(gradflow). LIBS are other libraries declared by this
# function, DEPS and PRIVATE_DEPS are other targets. With ALWAYS_STATIC both targets are static and
# differ only in the libraries that they link. The other target is built on demand and installed
# with GRADFLOW_BUILD_BOTH. Tests link the static target, which has no hidden symbols.
function(gradflow_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "ALWAYS_STATIC" "NAME" "OBJECTS;LIBS;DEPS;PRIVATE_DEPS")
  foreach(kind IN ITEMS static shared)
    set(target gradflow_${arg_NAME}_${kind})
    if(kind STREQUAL "shared" AND NOT arg_ALWAYS_STATIC)
      add_library(${target} SHARED ${arg_OBJECTS})
      # Drops unused libraries of packages.
      target_link_options(${target} PRIVATE LINKER:--as-needed ${GRADFLOW_FAST_LINK_OPTIONS})
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
    if(libs)
      # A program may link only this library; its dependencies are in the same folder.
      set_property(TARGET ${target} APPEND PROPERTY INSTALL_RPATH "$ORIGIN")
    endif()
    if(arg_NAME STREQUAL "gradflow")
      set_target_properties(${target} PROPERTIES OUTPUT_NAME gradflow)
    elseif(arg_ALWAYS_STATIC AND kind STREQUAL "shared")
      # Uses a separate folder in the build tree, because both targets have the same file name. Only
      # one of the two is installed.
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
# Declares a program, in the current folder of the build tree.
function(gradflow_executable)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;OUTPUT_NAME" "SRCS;DEPS")
  add_executable(${arg_NAME} ${arg_SRCS})
  target_link_libraries(${arg_NAME} PRIVATE ${arg_DEPS})
  # Sources may include headers of their folder as "tools/x.h".
  target_include_directories(${arg_NAME} PRIVATE ${PROJECT_SOURCE_DIR})
  if(arg_OUTPUT_NAME)
    set_target_properties(${arg_NAME} PROPERTIES OUTPUT_NAME ${arg_OUTPUT_NAME})
  endif()
  gradflow_target_defaults(${arg_NAME})
endfunction()

# gradflow_compile_fast(<target>)
#
# Disables optimization for tests, which take longer to compile than to run. Slow reference
# implementations are in a separate library.
function(gradflow_compile_fast target)
  target_compile_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O0>)
endfunction()

# gradflow_test(NAME <target> [OWN_HEADERS] SRCS <file>... [DEPS <target>...]
#               [PROGRAMS <target>...] [LABEL <label>])
#
# Declares a GoogleTest program. Each of its tests is a CTest test named <label>.<suite>.<test>;
# LABEL defaults to <target>. The macro GRADFLOW_TEST_DATA_DIR is the path of tests/data, as a
# string literal. PROGRAMS are executable targets that the tests start: they are built first,
# and the macro GRADFLOW_PROGRAM_<target> is the path of each. Uses the precompiled headers of
# gradflow_precompiled unless OWN_HEADERS is given, for tests with other definitions.
function(gradflow_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "OWN_HEADERS" "NAME;LABEL" "SRCS;DEPS;PROGRAMS")
  if(NOT arg_LABEL)
    set(arg_LABEL ${arg_NAME})
  endif()
  gradflow_executable(NAME ${arg_NAME} SRCS ${arg_SRCS} DEPS ${arg_DEPS} GTest::gmock
                      GTest::gtest_main)
  gradflow_compile_fast(${arg_NAME})
  # The batch size is limited so that a compiler needs about a gigabyte of memory. The sources of a
  # batch share most instantiations.
  set_target_properties(${arg_NAME} PROPERTIES UNITY_BUILD_BATCH_SIZE 8)
  if(GRADFLOW_PRECOMPILE_HEADERS AND NOT arg_OWN_HEADERS)
    target_precompile_headers(${arg_NAME} REUSE_FROM gradflow_precompiled)
  endif()
  target_compile_definitions(${arg_NAME}
                             PRIVATE GRADFLOW_TEST_DATA_DIR="${PROJECT_SOURCE_DIR}/tests/data")
  if(CMAKE_CROSSCOMPILING_EMULATOR)
    target_compile_definitions(${arg_NAME} PRIVATE GRADFLOW_EMULATED)
  endif()
  foreach(program IN LISTS arg_PROGRAMS)
    add_dependencies(${arg_NAME} ${program})
    target_compile_definitions(${arg_NAME}
                               PRIVATE GRADFLOW_PROGRAM_${program}="$<TARGET_FILE:${program}>")
  endforeach()
  # PRE_TEST lists the tests when ctest runs, not after each link.
  gtest_discover_tests(
    ${arg_NAME}
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60
    TEST_PREFIX ${arg_LABEL}.
    PROPERTIES TIMEOUT ${GRADFLOW_TEST_TIMEOUT} LABELS ${arg_LABEL})
endfunction()

# gradflow_benchmark(NAME <target> SRCS <file>... [DEPS <target>...] [SMOKE <argument>...])
#
# Declares a benchmark program that is built on demand. CTest also builds it, and runs it briefly
# with the arguments SMOKE.
function(gradflow_benchmark)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME" "SRCS;DEPS;SMOKE")
  gradflow_executable(NAME ${arg_NAME} SRCS ${arg_SRCS} DEPS ${arg_DEPS} benchmark::benchmark)
  set_target_properties(${arg_NAME} PROPERTIES EXCLUDE_FROM_ALL ON)
  if(NOT TARGET gradflow_benchmarks)
    add_custom_target(gradflow_benchmarks)
    if(GRADFLOW_BUILD_TESTS)
      add_test(NAME benchmark.build COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --config
                                            $<CONFIG> --target gradflow_benchmarks)
      set_tests_properties(benchmark.build PROPERTIES FIXTURES_SETUP benchmarks LABELS benchmark
                                                      TIMEOUT 1800)
    endif()
  endif()
  add_dependencies(gradflow_benchmarks ${arg_NAME})
  if(GRADFLOW_BUILD_TESTS)
    add_test(NAME benchmark.${arg_NAME} COMMAND ${arg_NAME} ${arg_SMOKE})
    set_tests_properties(benchmark.${arg_NAME} PROPERTIES FIXTURES_REQUIRED benchmarks LABELS
                                                          benchmark TIMEOUT 60)
  endif()
endfunction()
