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
