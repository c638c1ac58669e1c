# Custom ops, for projects that call find_package(gradflow) or add_subdirectory(gradflow).
include_guard(GLOBAL)

# Determines whether gradflow::gradflow is a shared library.
function(gradflow_is_shared result)
  get_target_property(library gradflow::gradflow ALIASED_TARGET)
  if(NOT library)
    set(library gradflow::gradflow)
  endif()
  get_target_property(type ${library} TYPE)
  if(type STREQUAL "SHARED_LIBRARY")
    set(${result} ON PARENT_SCOPE)
  else()
    set(${result} OFF PARENT_SCOPE)
  endif()
endfunction()

# gradflow_add_plugin(<target> <source>...)
#
# Declares a plugin, a shared library <target>.so that programs and the command line load at run
# time (see gradflow/io/plugin.h). If gradflow is static, the plugin does not link it but uses the
# library of the loading program, because a static copy would give the program a second registry.
function(gradflow_add_plugin target)
  add_library(${target} MODULE ${ARGN})
  set_target_properties(${target} PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden)
  gradflow_is_shared(shared)
  if(shared)
    target_link_libraries(${target} PRIVATE gradflow::gradflow)
  else()
    target_link_libraries(${target} PRIVATE gradflow::headers)
    if(TARGET gradflow_generate_op_wrappers)
      add_dependencies(${target} gradflow_generate_proto gradflow_generate_op_wrappers)
    endif()
  endif()
endfunction()

# gradflow_plugin_host(<target>)
#
# Links gradflow::gradflow to a program that loads plugins. If the library is static, links and
# exports all of it for the plugins.
function(gradflow_plugin_host target)
  target_link_libraries(${target} PRIVATE gradflow::gradflow)
  gradflow_is_shared(shared)
  if(NOT shared)
    target_link_options(
      ${target} PRIVATE
      "LINKER:--whole-archive,$<TARGET_FILE:gradflow::gradflow>,--no-whole-archive")
    set_target_properties(${target} PROPERTIES ENABLE_EXPORTS ON)
  endif()
endfunction()

# gradflow_generate_ops(<target> PLUGIN <plugin> GROUPS <group>... [INCLUDE_DIR <folder>])
#
# Declares a library of C++ wrapper classes ops::Name(scope, ...), generated from the definitions of
# the ops that the target <plugin> (of gradflow_add_plugin) registers. Programs that link <target>
# include "<folder>/g.h" for the ops of group "g" (Registry::OpRegistrar::Group). <folder> defaults
# to <target>.
function(gradflow_generate_ops target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PLUGIN;INCLUDE_DIR" "GROUPS")
  if(NOT arg_PLUGIN OR NOT arg_GROUPS)
    message(FATAL_ERROR "gradflow_generate_ops(${target}): expected PLUGIN and GROUPS")
  endif()
  if(NOT arg_INCLUDE_DIR)
    set(arg_INCLUDE_DIR ${target})
  endif()
  if(NOT TARGET gradflow::generate_ops)
    message(FATAL_ERROR "gradflow_generate_ops(${target}): this gradflow was built without its tools"
                        " (GRADFLOW_BUILD_TOOLS)")
  endif()
  set(include_dir ${CMAKE_CURRENT_BINARY_DIR}/${target}.ops)
  set(output_dir ${include_dir}/${arg_INCLUDE_DIR})
  set(sources ${arg_GROUPS})
  list(TRANSFORM sources REPLACE "(.+)" "${output_dir}/\\1.cc")
  set(headers ${arg_GROUPS})
  list(TRANSFORM headers REPLACE "(.+)" "${output_dir}/\\1.h")
  file(MAKE_DIRECTORY ${output_dir})
  # The program rewrites only files whose content changes; the stamp records that it ran.
  add_custom_command(
    OUTPUT ${include_dir}/stamp
    BYPRODUCTS ${headers} ${sources}
    COMMAND gradflow::generate_ops --plugin=$<TARGET_FILE:${arg_PLUGIN}> --output_dir=${output_dir}
            --include_dir=${arg_INCLUDE_DIR} ${arg_GROUPS}
    COMMAND ${CMAKE_COMMAND} -E touch ${include_dir}/stamp
    DEPENDS ${arg_PLUGIN} gradflow::generate_ops
    COMMENT "Generating the classes of ${arg_PLUGIN}'s ops"
    VERBATIM)
  add_custom_target(${target}_generated DEPENDS ${include_dir}/stamp)
  add_library(${target} STATIC ${sources})
  add_dependencies(${target} ${target}_generated)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${target} PUBLIC ${include_dir})
  target_link_libraries(${target} PUBLIC gradflow::gradflow)
endfunction()
