# The program, in the root of the build folder.
holdfast_sources(sources src/cli)
if(NOT HOLDFAST_PROGRAM OR NOT sources)
  return()
endif()

find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
# What speaks HTTP is a library of its own, and may be left out.
list(FILTER sources EXCLUDE REGEX "/src/cli/http/")
if(TARGET holdfast_http)
  list(FILTER sources EXCLUDE REGEX "/(leader_page|serve)_left_out\\.cpp$")
else()
  list(FILTER sources EXCLUDE REGEX "/leader_page\\.cpp$|/src/cli/serve/")
endif()
add_executable(holdfast_cli ${sources})
set_target_properties(holdfast_cli PROPERTIES
  OUTPUT_NAME holdfast RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
target_include_directories(holdfast_cli PRIVATE "${PROJECT_SOURCE_DIR}/src"
  "${PROJECT_BINARY_DIR}/generated")
target_link_libraries(holdfast_cli PRIVATE $<TARGET_NAME_IF_EXISTS:holdfast> CLI11::CLI11
  nlohmann_json::nlohmann_json holdfast_torture $<TARGET_NAME_IF_EXISTS:holdfast_http>)
holdfast_unity(holdfast_cli)

if(TARGET holdfast_clock)
  add_dependencies(holdfast_cli holdfast_clock)
endif()
