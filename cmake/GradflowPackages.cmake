# Debian packages, built by cpack: libgradflow0, libgradflow-dev, gradflow-tools and
# gradflow-tensorflow-c.
include_guard(GLOBAL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME gradflow)
set(CPACK_PACKAGE_VENDOR gradflow)
set(CPACK_PACKAGE_CONTACT "the gradflow developers <gradflow@users.noreply.github.com>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL dev tools)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The folder where dpkg-shlibdeps finds the packages' own libraries.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})

# The BLAS package that the library is built for. Explicit, because other packages provide a file
# with the same name.
set(blas_package)
set(blas_dev_package)
if(GRADFLOW_BLAS AND BLA_VENDOR STREQUAL "FLAME")
  set(blas_package libblis4-serial)
  set(blas_dev_package ", libblis-serial-dev")
elseif(GRADFLOW_BLAS)
  set(blas_package libblas3)
  set(blas_dev_package ", libblas-dev")
endif()

set(runtime_package)
if("shared" IN_LIST GRADFLOW_KINDS)
  list(APPEND CPACK_COMPONENTS_ALL runtime)
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libgradflow${GRADFLOW_SOVERSION})
  set(CPACK_DEBIAN_RUNTIME_DESCRIPTION
      "The shared library, which programs that use gradflow need.")
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS ${blas_package})
  set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
  set(runtime_package
      "${CPACK_DEBIAN_RUNTIME_PACKAGE_NAME} (= ${PROJECT_VERSION}), ")
  # Updates the cache of the dynamic linker.
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/triggers)
  file(WRITE ${PROJECT_BINARY_DIR}/triggers "activate-noawait ldconfig\n")
endif()

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libgradflow-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_DESCRIPTION
    "Headers, static library, and what CMake and pkg-config need to find them.")
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "${runtime_package}libabsl-dev, libprotobuf-dev")
# For programs written for TensorFlow only.
set(CPACK_DEBIAN_DEV_PACKAGE_RECOMMENDS "libeigen3-dev")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "gradflow-tools, libgtest-dev, libgmock-dev")
if("static" IN_LIST GRADFLOW_KINDS)
  string(APPEND CPACK_DEBIAN_DEV_PACKAGE_DEPENDS ", libtbb-dev, libhwy-dev, libsleef-dev${blas_dev_package}, liblapacke-dev")
  if(GRADFLOW_ONEDNN)
    string(APPEND CPACK_DEBIAN_DEV_PACKAGE_DEPENDS ", libdnnl-dev")
  endif()
  if(GRADFLOW_ICU)
    string(APPEND CPACK_DEBIAN_DEV_PACKAGE_DEPENDS ", libicu-dev")
  endif()
  string(APPEND CPACK_DEBIAN_DEV_PACKAGE_DEPENDS ", libre2-dev, libfarmhash-dev, zlib1g-dev, libpng-dev, libjpeg-dev, libgif-dev, libwebp-dev")
endif()

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME gradflow-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_TOOLS_DESCRIPTION
    "The command line: runs, times, shows and converts graphs.")
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "${runtime_package}")
string(REGEX REPLACE ", $" "" CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS
                     "${CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS}")

if(TARGET gradflow_tensorflow_c_shared)
  list(APPEND CPACK_COMPONENTS_ALL tensorflow_c)
  set(CPACK_DEBIAN_TENSORFLOW_C_PACKAGE_NAME gradflow-tensorflow-c)
  set(CPACK_DEBIAN_TENSORFLOW_C_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_TENSORFLOW_C_DESCRIPTION
      "TensorFlow's C API: libtensorflow.so.2 with headers and tensorflow.pc, in folders of its own.")
  set(CPACK_DEBIAN_TENSORFLOW_C_PACKAGE_DEPENDS ${blas_package})
endif()

foreach(package IN ITEMS RUNTIME DEV TOOLS TENSORFLOW_C)
  if(CPACK_DEBIAN_${package}_PACKAGE_NAME)
    string(TOLOWER ${package} component)
    install(FILES LICENSE RENAME copyright COMPONENT ${component}
            DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${CPACK_DEBIAN_${package}_PACKAGE_NAME})
  endif()
endforeach()

include(CPack)
