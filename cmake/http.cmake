# HTTP for the program, never for the library: `holdfast serve` with its page, and `elect --listen`.
option(HOLDFAST_HTTP "Build what listens for HTTP, if cpp-httplib is there" ON)
if(NOT HOLDFAST_PROGRAM)
  return()
endif()

# The page as one string: the parts are put where its template names them.
set(page_folder "${PROJECT_SOURCE_DIR}/src/cli/page")
file(GLOB page_parts CONFIGURE_DEPENDS "${page_folder}/*")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page_parts})
file(READ "${page_folder}/index.html" page)
string(REGEX MATCHALL "{{include [a-z_.]+}}" marks "${page}")
foreach(mark IN LISTS marks)
  string(REGEX REPLACE "{{include ([a-z_.]+)}}" "\\1" name "${mark}")
  file(READ "${page_folder}/${name}" part)
  string(REPLACE "${mark}" "${part}" page "${page}")
endforeach()
# Compiled separately: the page changes more often than its neighbours.
set_source_files_properties("${PROJECT_SOURCE_DIR}/src/cli/serve/answers.cpp" PROPERTIES
  SKIP_UNITY_BUILD_INCLUSION ON)
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/serve_page.inc"
  CONTENT "R\"page(@page@)page\"" @ONLY)

if(NOT HOLDFAST_HTTP)
  return()
endif()
find_package(Httplib MODULE QUIET)
if(NOT Httplib_FOUND)
  message(STATUS "HTTP is left out: there is no cpp-httplib (Debian: libcpp-httplib-dev)")
  return()
endif()
# Loaded by the program when it is needed: src/cli/http/server.cpp.
add_library(holdfast_http MODULE "${PROJECT_SOURCE_DIR}/src/cli/http/module.cpp")
set_target_properties(holdfast_http PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
target_compile_features(holdfast_http PRIVATE cxx_std_20)
target_include_directories(holdfast_http PRIVATE "${PROJECT_SOURCE_DIR}/src")
target_link_libraries(holdfast_http PRIVATE tl::expected Threads::Threads Httplib::httplib)
file(RELATIVE_PATH http_module "/prefix/${CMAKE_INSTALL_BINDIR}"
  "/prefix/${CMAKE_INSTALL_LIBDIR}/holdfast/holdfast_http.so")
set_source_files_properties("${PROJECT_SOURCE_DIR}/src/cli/http/server.cpp" PROPERTIES
  COMPILE_DEFINITIONS "HOLDFAST_HTTP_MODULE=\"${http_module}\"")
