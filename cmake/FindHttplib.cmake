# Httplib::httplib: cpp-httplib as a compiled library. Its headers and it must agree on what is built in.
find_path(HTTPLIB_INCLUDE_DIR httplib.h)
find_library(HTTPLIB_LIBRARY cpp-httplib)
mark_as_advanced(HTTPLIB_INCLUDE_DIR HTTPLIB_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Httplib REQUIRED_VARS HTTPLIB_LIBRARY HTTPLIB_INCLUDE_DIR)

if(Httplib_FOUND AND NOT TARGET Httplib::httplib)
  add_library(Httplib::httplib UNKNOWN IMPORTED)
  set_target_properties(Httplib::httplib PROPERTIES IMPORTED_LOCATION "${HTTPLIB_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${HTTPLIB_INCLUDE_DIR}"
    INTERFACE_COMPILE_DEFINITIONS
      "CPPHTTPLIB_OPENSSL_SUPPORT;CPPHTTPLIB_ZLIB_SUPPORT;CPPHTTPLIB_BROTLI_SUPPORT")
endif()
