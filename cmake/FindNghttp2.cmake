# Nghttp2::nghttp2: HTTP/2 without a socket. Its own package has no CMake file; this one is installed beside
# holdfast's.
find_path(NGHTTP2_INCLUDE_DIR nghttp2/nghttp2.h)
find_library(NGHTTP2_LIBRARY nghttp2)
mark_as_advanced(NGHTTP2_INCLUDE_DIR NGHTTP2_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Nghttp2 REQUIRED_VARS NGHTTP2_LIBRARY NGHTTP2_INCLUDE_DIR)

if(Nghttp2_FOUND AND NOT TARGET Nghttp2::nghttp2)
  add_library(Nghttp2::nghttp2 UNKNOWN IMPORTED)
  set_target_properties(Nghttp2::nghttp2 PROPERTIES
    IMPORTED_LOCATION "${NGHTTP2_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${NGHTTP2_INCLUDE_DIR}")
endif()
