# Makes find_package(gradflow) work, from an installed prefix and from the build tree
# alike (with gradflow_DIR set to the latter).
include_guard(GLOBAL)
include(CMakePackageConfigHelpers)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/gradflow)
configure_package_config_file(cmake/gradflowConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/gradflowConfig.cmake
                              INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/gradflowConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)

export(EXPORT gradflowTargets NAMESPACE gradflow:: FILE ${PROJECT_BINARY_DIR}/gradflowTargets.cmake)
install(EXPORT gradflowTargets NAMESPACE gradflow:: DESTINATION ${config_dir})
install(FILES ${PROJECT_BINARY_DIR}/gradflowConfig.cmake
              ${PROJECT_BINARY_DIR}/gradflowConfigVersion.cmake DESTINATION ${config_dir})
