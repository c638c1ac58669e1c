# Installation, for find_package(gradflow) and pkg-config. find_package also finds the build tree,
# with gradflow_DIR set to it.
#
# There are four components, and GradflowPackages.cmake makes a package of each: runtime, the shared
# libraries; dev, the files for compiling against them; tools, the command line; tensorflow_c, the C
# API, in separate folders, because TensorFlow has files of the same names.
include_guard(GLOBAL)
include(CMakePackageConfigHelpers)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gradflow)

# gradflow_install_targets(<part> <target>...)
#
# Installs the targets, and the file gradflow-<part>-targets.cmake, which defines them for
# find_package.
function(gradflow_install_targets part)
  set(component dev)
  if(part STREQUAL "cli")
    set(component tools)
  endif()
  install(
    TARGETS ${ARGN}
    EXPORT gradflow-${part}
    RUNTIME COMPONENT tools
    LIBRARY COMPONENT runtime NAMELINK_COMPONENT dev
    ARCHIVE COMPONENT dev
    FILE_SET HEADERS COMPONENT dev)
  export(EXPORT gradflow-${part} NAMESPACE gradflow::
         FILE ${PROJECT_BINARY_DIR}/gradflow-${part}-targets.cmake)
  install(EXPORT gradflow-${part} NAMESPACE gradflow:: FILE gradflow-${part}-targets.cmake
          DESTINATION ${config_dir} COMPONENT ${component})
endfunction()

foreach(kind IN LISTS GRADFLOW_KINDS)
  gradflow_install_targets(${kind} gradflow_gradflow_${kind} gradflow_headers)
  install(
    TARGETS gradflow_tensorflow_compat_headers
    EXPORT gradflow-tensorflow_compat-${kind}
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/gradflow/compat COMPONENT dev)
  gradflow_install_targets(tensorflow_compat-${kind} gradflow_tensorflow_compat_${kind}
                           gradflow_tensorflow_compat_v1_${kind})
endforeach()
set(config_files ${PROJECT_BINARY_DIR}/gradflowConfig.cmake
                 ${PROJECT_BINARY_DIR}/gradflowConfigVersion.cmake
                 ${PROJECT_SOURCE_DIR}/cmake/Finddnnl.cmake
                 ${PROJECT_SOURCE_DIR}/cmake/FindFarmHash.cmake
                 ${PROJECT_SOURCE_DIR}/cmake/FindLAPACKE.cmake
                 ${PROJECT_SOURCE_DIR}/cmake/FindRE2.cmake
                 ${PROJECT_SOURCE_DIR}/cmake/FindSLEEF.cmake
                 ${PROJECT_SOURCE_DIR}/cmake/FindWebP.cmake
                 ${PROJECT_SOURCE_DIR}/cmake/GradflowOps.cmake)
if(TARGET gradflow_testing_${GRADFLOW_KIND})
  # Tests link the same archive with the static or the shared library.
  gradflow_install_targets(testing gradflow_testing_${GRADFLOW_KIND})
  list(APPEND config_files ${PROJECT_SOURCE_DIR}/cmake/GradflowTesting.cmake
       ${PROJECT_SOURCE_DIR}/cmake/GradflowGoldenTest.cc.in)
endif()
if(TARGET gradflow_generate_ops)
  # The command line has its own file, because its package may not be installed.
  gradflow_install_targets(cli gradflow_cli)
  install(
    TARGETS gradflow_generate_ops
    EXPORT gradflow-tools
    DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/gradflow
    COMPONENT dev)
  export(EXPORT gradflow-tools NAMESPACE gradflow::
         FILE ${PROJECT_BINARY_DIR}/gradflow-tools-targets.cmake)
  install(EXPORT gradflow-tools NAMESPACE gradflow:: FILE gradflow-tools-targets.cmake
          DESTINATION ${config_dir} COMPONENT dev)
  install(FILES docs/gradflow.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT tools)
  install(FILES tools/completion/gradflow.bash
          DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/bash-completion/completions
          RENAME gradflow COMPONENT tools)
  install(FILES tools/completion/_gradflow
          DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/zsh/vendor-completions COMPONENT tools)
endif()

configure_package_config_file(cmake/gradflowConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/gradflowConfig.cmake
                              INSTALL_DESTINATION ${config_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gradflowConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${config_files} DESTINATION ${config_dir} COMPONENT dev)
# A build tree also has these files in the folder of the configuration.
foreach(file IN LISTS config_files)
  cmake_path(GET file PARENT_PATH folder)
  if(NOT folder STREQUAL PROJECT_BINARY_DIR)
    cmake_path(GET file FILENAME name)
    configure_file(${file} ${PROJECT_BINARY_DIR}/${name} COPYONLY)
  endif()
endforeach()

# Relocatable: the prefix is relative to the folder of gradflow.pc.
set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
set(prefix /prefix)
cmake_path(RELATIVE_PATH prefix BASE_DIRECTORY /prefix/${pkgconfig_dir} OUTPUT_VARIABLE
           GRADFLOW_PREFIX_FROM_PC)
get_target_property(requires gradflow_headers INTERFACE_LINK_LIBRARIES)
list(FILTER requires INCLUDE REGEX "^absl::")
list(TRANSFORM requires REPLACE "^absl::" "absl_")
list(JOIN requires " " GRADFLOW_PC_REQUIRES)
set(requires_private ${private_deps})
list(FILTER requires_private INCLUDE REGEX "^absl::")
list(TRANSFORM requires_private REPLACE "^absl::" "absl_")
list(JOIN requires_private " " GRADFLOW_PC_REQUIRES_PRIVATE)
set(GRADFLOW_PC_BLAS)
if(GRADFLOW_BLAS)
  list(JOIN BLAS_LIBRARIES " " GRADFLOW_PC_BLAS)
endif()
set(GRADFLOW_PC_ICU)
if(GRADFLOW_ICU)
  set(GRADFLOW_PC_ICU " -licuuc -licudata")
endif()
set(GRADFLOW_PC_ONEDNN)
if(GRADFLOW_ONEDNN)
  set(GRADFLOW_PC_ONEDNN " -ldnnl")
endif()
configure_file(cmake/gradflow.pc.in ${PROJECT_BINARY_DIR}/gradflow.pc @ONLY)
set(GRADFLOW_PC_EIGEN)
set(GRADFLOW_PC_EIGEN_FLAGS)
if(GRADFLOW_EIGEN_VIEWS)
  set(GRADFLOW_PC_EIGEN ", eigen3 >= 3.4")
  set(GRADFLOW_PC_EIGEN_FLAGS " -DGRADFLOW_EIGEN_VIEWS -DEIGEN_USE_THREADS=")
endif()
configure_file(cmake/gradflow-tensorflow.pc.in ${PROJECT_BINARY_DIR}/gradflow-tensorflow.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/gradflow-tensorflow.pc DESTINATION ${pkgconfig_dir} COMPONENT dev)
install(FILES ${PROJECT_BINARY_DIR}/gradflow.pc DESTINATION ${pkgconfig_dir} COMPONENT dev)

# The C API, with its own folder of pkg-config files.
if(TARGET gradflow_tensorflow_c_shared)
  set(GRADFLOW_C_LIBDIR ${CMAKE_INSTALL_LIBDIR}/gradflow/tensorflow)
  set(GRADFLOW_C_INCLUDEDIR ${CMAKE_INSTALL_INCLUDEDIR}/gradflow/tensorflow_c)
  get_target_property(GRADFLOW_C_VERSION gradflow_tensorflow_c_shared VERSION)
  install(
    TARGETS gradflow_tensorflow_c_shared gradflow_tensorflow_c_headers
    EXPORT gradflow-tensorflow_c
    LIBRARY DESTINATION ${GRADFLOW_C_LIBDIR} COMPONENT tensorflow_c NAMELINK_COMPONENT tensorflow_c
    FILE_SET HEADERS DESTINATION ${GRADFLOW_C_INCLUDEDIR} COMPONENT tensorflow_c)
  foreach(suffix IN ITEMS "" .2)
    install(FILES $<TARGET_FILE_DIR:gradflow_tensorflow_c_shared>/libtensorflow_framework.so${suffix}
            DESTINATION ${GRADFLOW_C_LIBDIR} COMPONENT tensorflow_c)
  endforeach()
  export(EXPORT gradflow-tensorflow_c NAMESPACE gradflow::
         FILE ${PROJECT_BINARY_DIR}/gradflow-tensorflow_c-targets.cmake)
  install(EXPORT gradflow-tensorflow_c NAMESPACE gradflow::
          FILE gradflow-tensorflow_c-targets.cmake DESTINATION ${config_dir} COMPONENT tensorflow_c)
  cmake_path(RELATIVE_PATH prefix BASE_DIRECTORY /prefix/${GRADFLOW_C_LIBDIR}/pkgconfig
             OUTPUT_VARIABLE GRADFLOW_C_PREFIX_FROM_PC)
  configure_file(cmake/tensorflow.pc.in ${PROJECT_BINARY_DIR}/tensorflow.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/tensorflow.pc DESTINATION ${GRADFLOW_C_LIBDIR}/pkgconfig
          COMPONENT tensorflow_c)
endif()
