# The C interface, <holdfast/holdfast.h>: part of the library, and by itself a shared library that exports nothing
# else. Programs in C, Python and other languages load that one; it brings the engines with it.
holdfast_sources(c_sources src/c)
add_library(holdfast_c_objects OBJECT ${c_sources})
target_compile_features(holdfast_c_objects PUBLIC cxx_std_20)
target_include_directories(holdfast_c_objects PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src"
  "${PROJECT_BINARY_DIR}/generated")
target_link_libraries(holdfast_c_objects PRIVATE tl::expected)
set_target_properties(holdfast_c_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
holdfast_unity(holdfast_c_objects)
target_sources(holdfast PRIVATE $<TARGET_OBJECTS:holdfast_c_objects>)

option(HOLDFAST_C "Build the C interface as a shared library of its own" ${PROJECT_IS_TOP_LEVEL})
if(HOLDFAST_C)
  set(c_symbols "${PROJECT_SOURCE_DIR}/src/c/symbols.map")
  add_library(holdfast_c SHARED $<TARGET_OBJECTS:holdfast_c_objects>)
  add_library(holdfast::holdfast_c ALIAS holdfast_c)
  set_target_properties(holdfast_c PROPERTIES LINKER_LANGUAGE CXX VERSION ${PROJECT_VERSION} SOVERSION 1
    LINK_DEPENDS "${c_symbols}")
  target_include_directories(holdfast_c INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_link_libraries(holdfast_c PRIVATE holdfast)
  target_link_options(holdfast_c PRIVATE "-Wl,--version-script=${c_symbols}" -Wl,--exclude-libs,ALL)
endif()
