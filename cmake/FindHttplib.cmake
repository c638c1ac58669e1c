# Finds cpp-httplib, which has no CMake package on Debian 12: Httplib_FOUND and the target
# Httplib::httplib. Debian compiles it as a library, with OpenSSL, zlib and Brotli; the header must
# see the same macros.
find_path(Httplib_INCLUDE_DIR httplib.h)
find_library(Httplib_LIBRARY cpp-httplib)
mark_as_advanced(Httplib_INCLUDE_DIR Httplib_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Httplib REQUIRED_VARS Httplib_LIBRARY Httplib_INCLUDE_DIR)
if(Httplib_FOUND AND NOT TARGET Httplib::httplib)
  add_library(Httplib::httplib UNKNOWN IMPORTED)
  set_target_properties(
    Httplib::httplib
    PROPERTIES
      IMPORTED_LOCATION "${Httplib_LIBRARY}"
      INTERFACE_INCLUDE_DIRECTORIES "${Httplib_INCLUDE_DIR}"
      INTERFACE_COMPILE_DEFINITIONS
      "CPPHTTPLIB_OPENSSL_SUPPORT;CPPHTTPLIB_ZLIB_SUPPORT;CPPHTTPLIB_BROTLI_SUPPORT")
endif()
