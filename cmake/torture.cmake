# What the torture lab needs and tests use too: servers to start, a proxy that misbehaves, and the
# records that checkers read. Part of the program, so built without the tests too.
if(NOT HOLDFAST_PROGRAM AND NOT HOLDFAST_TESTS AND NOT HOLDFAST_BENCH)
  return()
endif()
holdfast_sources(sources lab/support)
add_library(holdfast_servers STATIC ${sources})
target_include_directories(holdfast_servers PUBLIC "${PROJECT_SOURCE_DIR}/lab"
  "${PROJECT_SOURCE_DIR}/src")
target_link_libraries(holdfast_servers PUBLIC $<TARGET_NAME_IF_EXISTS:holdfast> Threads::Threads)
# One section per function, so that the program links no more of it than its torture needs.
target_compile_options(holdfast_servers PRIVATE -ffunction-sections -fdata-sections)
holdfast_unity(holdfast_servers)

if(NOT HOLDFAST_PROGRAM AND NOT HOLDFAST_TESTS)
  return()
endif()
# The records and the checkers of what callers can see are the simulator's.
find_package(nlohmann_json REQUIRED)
holdfast_sources(sources lab/torture)
list(FILTER sources EXCLUDE REGEX "/controls/")
add_library(holdfast_torture STATIC ${sources} "${PROJECT_SOURCE_DIR}/lab/sim/record.cpp")
target_link_libraries(holdfast_torture PUBLIC holdfast_servers
  PRIVATE nlohmann_json::nlohmann_json)
holdfast_unity(holdfast_torture)
# The page of a run, as a string.
set(page "${PROJECT_SOURCE_DIR}/lab/torture/report.html")
file(READ "${page}" text)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${page}")
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/torture_report.inc"
  CONTENT "R\"page(@text@)page\"" @ONLY)
target_include_directories(holdfast_torture PRIVATE "${PROJECT_BINARY_DIR}/generated")

# A wall clock that can be set for one process, loaded into clients. Not with sanitizers, which must be loaded first.
if(NOT HOLDFAST_SANITIZE)
  add_library(holdfast_clock MODULE "${PROJECT_SOURCE_DIR}/lab/clock/shifted_clock.cpp")
  set_target_properties(holdfast_clock PROPERTIES PREFIX ""
    LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
  target_compile_features(holdfast_clock PRIVATE cxx_std_20)
  target_include_directories(holdfast_clock PRIVATE "${PROJECT_SOURCE_DIR}/lab")
  target_link_libraries(holdfast_clock PRIVATE ${CMAKE_DL_LIBS})
endif()
file(RELATIVE_PATH clock_library "/prefix/${CMAKE_INSTALL_BINDIR}"
  "/prefix/${CMAKE_INSTALL_LIBDIR}/holdfast/holdfast_clock.so")
set_source_files_properties("${PROJECT_SOURCE_DIR}/lab/torture/wall_clock.cpp" PROPERTIES
  COMPILE_DEFINITIONS "HOLDFAST_CLOCK_LIBRARY=\"${clock_library}\"")

if(HOLDFAST_TESTS)
  # Broken locks, which the judge must convict, and the program that makes the page about them.
  holdfast_sources(sources lab/torture/controls)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  add_library(holdfast_controls STATIC ${sources})
  target_link_libraries(holdfast_controls PUBLIC holdfast_torture)
  holdfast_unity(holdfast_controls)
  add_executable(broken_locks "${PROJECT_SOURCE_DIR}/lab/torture/controls/main.cpp")
  set_target_properties(broken_locks PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
  target_link_libraries(broken_locks PRIVATE holdfast_controls)
endif()
