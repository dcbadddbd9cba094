# Examples, each also a test that it ends well, and benchmarks: one program per file.
if(HOLDFAST_EXAMPLES)
  holdfast_sources_flat(examples examples)
  foreach(source IN LISTS examples)
    get_filename_component(name "${source}" NAME_WE)
    add_executable(example_${name} "${source}")
    set_target_properties(example_${name} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/examples")
    target_link_libraries(example_${name} PRIVATE $<TARGET_NAME_IF_EXISTS:holdfast>)
    add_test(NAME example_${name} COMMAND example_${name})
    set_tests_properties(example_${name} PROPERTIES LABELS examples TIMEOUT 60)
  endforeach()
endif()

if(HOLDFAST_BENCH)
  find_package(benchmark QUIET)
  if(benchmark_FOUND)
    holdfast_sources_flat(benches bench)
  else()
    set(benches)
  endif()
  if(benches)
    # Servers to measure against are started by the tests' own helpers.
    add_library(bench_support STATIC
      "${PROJECT_SOURCE_DIR}/tests/support/child_process.cpp"
      "${PROJECT_SOURCE_DIR}/tests/support/forked_process.cpp"
      "${PROJECT_SOURCE_DIR}/tests/support/free_port.cpp"
      "${PROJECT_SOURCE_DIR}/tests/support/redis_server.cpp")
    if(HOLDFAST_ZOOKEEPER)
      target_sources(bench_support PRIVATE
        "${PROJECT_SOURCE_DIR}/tests/support/tcp_gate.cpp"
        "${PROJECT_SOURCE_DIR}/tests/support/zookeeper_server.cpp")
    else()
      list(FILTER benches EXCLUDE REGEX "/zookeeper[^/]*$")
    endif()
    if(TARGET LibPQ::LibPQ)
      target_sources(bench_support PRIVATE
        "${PROJECT_SOURCE_DIR}/tests/support/postgresql_server.cpp")
    endif()
    target_include_directories(bench_support PUBLIC "${PROJECT_SOURCE_DIR}/tests"
      "${PROJECT_SOURCE_DIR}/src")
    target_link_libraries(bench_support PUBLIC $<TARGET_NAME_IF_EXISTS:holdfast>
      $<TARGET_NAME_IF_EXISTS:LibPQ::LibPQ>)
    if(NOT HOLDFAST_REDIS)
      list(FILTER benches EXCLUDE REGEX "/redis_[^/]*$")
    endif()
    if(NOT HOLDFAST_POSTGRESQL)
      list(FILTER benches EXCLUDE REGEX "/postgresql[^/]*$")
    endif()
  endif()
  foreach(source IN LISTS benches)
    get_filename_component(name "${source}" NAME_WE)
    add_executable(bench_${name} "${source}")
    set_target_properties(bench_${name} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
    target_link_libraries(bench_${name} PRIVATE bench_support benchmark::benchmark_main)
  endforeach()
endif()
