# Finds oneDNN: dnnl_FOUND, dnnl_VERSION and the target DNNL::dnnl. Debian 12's package file is not
# used, because it fails without OpenCL, which the library does not need.
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(DNNL_LIBRARY dnnl)
mark_as_advanced(DNNL_INCLUDE_DIR DNNL_LIBRARY)
set(dnnl_VERSION)
if(DNNL_INCLUDE_DIR)
  set(dnnl_header ${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h)
  foreach(part IN ITEMS MAJOR MINOR PATCH)
    file(STRINGS ${dnnl_header} dnnl_line REGEX "#define DNNL_VERSION_${part} ")
    string(REGEX REPLACE ".* ([0-9]+).*" "\\1" dnnl_part "${dnnl_line}")
    list(APPEND dnnl_VERSION ${dnnl_part})
  endforeach()
  list(JOIN dnnl_VERSION "." dnnl_VERSION)
endif()
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  dnnl
  REQUIRED_VARS DNNL_LIBRARY DNNL_INCLUDE_DIR
  VERSION_VAR dnnl_VERSION
  HANDLE_VERSION_RANGE)
if(dnnl_FOUND AND NOT TARGET DNNL::dnnl)
  add_library(DNNL::dnnl UNKNOWN IMPORTED)
  set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION "${DNNL_LIBRARY}"
                                              INTERFACE_INCLUDE_DIRECTORIES "${DNNL_INCLUDE_DIR}")
endif()
