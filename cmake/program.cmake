# The program, in the root of the build folder.
holdfast_sources(sources src/cli)
if(NOT HOLDFAST_PROGRAM OR NOT sources)
  return()
endif()

find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
# What speaks HTTP is a module of its own, and may be left out.
list(FILTER sources EXCLUDE REGEX "/src/cli/http/module/")
if(TARGET holdfast_http)
  list(FILTER sources EXCLUDE REGEX "/(leader_page|serve)_left_out\\.cpp$")
else()
  list(FILTER sources EXCLUDE REGEX "/leader_page\\.cpp$|/src/cli/(http|serve)/")
endif()
add_executable(holdfast_cli ${sources})
set_target_properties(holdfast_cli PROPERTIES
  OUTPUT_NAME holdfast RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
target_include_directories(holdfast_cli PRIVATE "${PROJECT_SOURCE_DIR}/src"
  "${PROJECT_BINARY_DIR}/generated")
target_link_libraries(holdfast_cli PRIVATE $<TARGET_NAME_IF_EXISTS:holdfast> CLI11::CLI11
  nlohmann_json::nlohmann_json holdfast_torture ${CMAKE_DL_LIBS})
holdfast_unity(holdfast_cli)

foreach(module holdfast_clock holdfast_http)
  if(TARGET ${module})
    add_dependencies(holdfast_cli ${module})
  endif()
endforeach()
