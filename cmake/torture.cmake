# What the torture lab needs and tests use too: servers to start, a proxy that misbehaves, and the
# records that checkers read. Part of the program, so built without the tests too.
if(NOT HOLDFAST_CLI AND NOT HOLDFAST_TESTS AND NOT HOLDFAST_BENCH)
  return()
endif()
holdfast_sources(sources lab/support)
add_library(holdfast_servers STATIC ${sources})
target_include_directories(holdfast_servers PUBLIC "${PROJECT_SOURCE_DIR}/lab"
  "${PROJECT_SOURCE_DIR}/src")
target_link_libraries(holdfast_servers PUBLIC $<TARGET_NAME_IF_EXISTS:holdfast> Threads::Threads)

if(NOT HOLDFAST_CLI AND NOT HOLDFAST_TESTS)
  return()
endif()
# The records and the checkers of what callers can see are the simulator's.
find_package(nlohmann_json REQUIRED)
holdfast_sources(sources lab/torture)
add_library(holdfast_torture STATIC ${sources} "${PROJECT_SOURCE_DIR}/lab/sim/record.cpp")
target_link_libraries(holdfast_torture PUBLIC holdfast_servers
  PRIVATE nlohmann_json::nlohmann_json)
# The page of a run, as a string.
set(page "${PROJECT_SOURCE_DIR}/lab/torture/report.html")
file(READ "${page}" text)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${page}")
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/torture_report.inc"
  CONTENT "R\"page(@text@)page\"" @ONLY)
target_include_directories(holdfast_torture PRIVATE "${PROJECT_BINARY_DIR}/generated")
