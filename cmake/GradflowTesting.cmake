# Tests with gradflow::testing: for projects that call find_package(gradflow COMPONENTS testing) or
# add_subdirectory(gradflow).
include_guard(GLOBAL)
include(GoogleTest)

# gradflow_add_golden_test(<target> FOLDER <folder> [ATOL <number>] [RTOL <number>] [ULPS <number>])
#
# Declares a GoogleTest program that runs the golden cases in <folder> (see
# gradflow/testing/golden.h), each a CTest test named <target>.<case>. A given tolerance overrides
# the tolerances of the cases. ctest discovers the cases when it runs.
function(gradflow_add_golden_test target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FOLDER;ATOL;RTOL;ULPS" "")
  if(NOT arg_FOLDER OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "gradflow_add_golden_test(${target}): expected FOLDER and its options")
  endif()
  if(DEFINED arg_ULPS AND (DEFINED arg_ATOL OR DEFINED arg_RTOL))
    message(FATAL_ERROR "gradflow_add_golden_test(${target}): ULPS excludes ATOL and RTOL")
  endif()
  cmake_path(ABSOLUTE_PATH arg_FOLDER BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE
             OUTPUT_VARIABLE GRADFLOW_GOLDEN_FOLDER)
  set(GRADFLOW_GOLDEN_TOLERANCE std::nullopt)
  if(DEFINED arg_ULPS)
    set(GRADFLOW_GOLDEN_TOLERANCE "Tolerance::Ulps(${arg_ULPS})")
  elseif(DEFINED arg_ATOL OR DEFINED arg_RTOL)
    foreach(name IN ITEMS ATOL RTOL)
      if(NOT DEFINED arg_${name})
        set(arg_${name} 0)
      endif()
    endforeach()
    set(GRADFLOW_GOLDEN_TOLERANCE "Tolerance::Near(${arg_ATOL}, ${arg_RTOL})")
  endif()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}.cc)
  configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/GradflowGoldenTest.cc.in ${source} @ONLY)
  find_package(GTest 1.12 REQUIRED)
  add_executable(${target} ${source})
  target_link_libraries(${target} PRIVATE gradflow::testing GTest::gtest GTest::gmock)
  gtest_discover_tests(
    ${target}
    DISCOVERY_MODE PRE_TEST
    TEST_PREFIX ${target}.
    PROPERTIES TIMEOUT 300)
endfunction()
