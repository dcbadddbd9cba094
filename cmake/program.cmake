# The program, in the root of the build folder.
holdfast_sources(sources src/cli src/tools)
if(NOT HOLDFAST_PROGRAM OR NOT sources)
  return()
endif()

find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
# What speaks HTTP is a module of its own, and may be left out.
list(FILTER sources EXCLUDE REGEX "/src/cli/http/module\\.cpp$")
add_executable(holdfast_cli ${sources})
set_target_properties(holdfast_cli PROPERTIES
  OUTPUT_NAME holdfast RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
target_include_directories(holdfast_cli PRIVATE "${PROJECT_SOURCE_DIR}/src"
  "${PROJECT_BINARY_DIR}/generated")
target_link_libraries(holdfast_cli PRIVATE $<TARGET_NAME_IF_EXISTS:holdfast> CLI11::CLI11
  nlohmann_json::nlohmann_json holdfast_torture ${CMAKE_DL_LIBS})
target_link_options(holdfast_cli PRIVATE -Wl,--gc-sections)
# Thousands of symbols of the shared C++ runtime would be looked up at every start. Not if objects of that runtime are
# passed between the program and shared libraries.
if(NOT BUILD_SHARED_LIBS AND NOT HOLDFAST_SANITIZE)
  set(static_runtime -static-libstdc++ -static-libgcc)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_LINK_OPTIONS ${static_runtime})
  check_cxx_source_compiles("#include <iostream>\nint main() { std::cout << 1; }" HOLDFAST_HAVE_STATIC_RUNTIME)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
  if(HOLDFAST_HAVE_STATIC_RUNTIME)
    target_link_options(holdfast_cli PRIVATE ${static_runtime})
  endif()
endif()
holdfast_unity(holdfast_cli)

foreach(module holdfast_clock holdfast_http)
  if(TARGET ${module})
    add_dependencies(holdfast_cli ${module})
  endif()
endforeach()
