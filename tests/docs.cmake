# The C++ in README.md and docs/ is compiled unchanged; what the pages name must exist.
set(code_pages README.md docs/tutorial.md docs/stores/embedded.md docs/stores/redis.md docs/stores/zookeeper.md
  docs/stores/postgresql.md docs/stores/mariadb.md docs/cpp.md)
list(TRANSFORM code_pages PREPEND "${PROJECT_SOURCE_DIR}/")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${code_pages}
  "${CMAKE_CURRENT_SOURCE_DIR}/docs/code_blocks.py")
execute_process(COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/docs/code_blocks.py"
  "${PROJECT_BINARY_DIR}/generated/docs" ${code_pages} COMMAND_ERROR_IS_FATAL ANY)

add_test(NAME docs.what_the_pages_name_is_there
  COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/docs/pages_test.py")
set_tests_properties(docs.what_the_pages_name_is_there PROPERTIES LABELS docs TIMEOUT 300
  ENVIRONMENT "HOLDFAST_PROGRAM=${PROJECT_BINARY_DIR}/holdfast")

add_test(NAME docs.every_block_of_README_and_tutorial_is_run
  COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/docs/blocks_test.py")
set_tests_properties(docs.every_block_of_README_and_tutorial_is_run PROPERTIES LABELS docs TIMEOUT 600
  ENVIRONMENT "HOLDFAST_PROGRAM=${PROJECT_BINARY_DIR}/holdfast")

foreach(page README.md docs/tutorial.md)
  get_filename_component(name "${page}" NAME_WE)
  add_test(NAME docs.the_commands_of_${name}_print_what_it_shows
    COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/docs/console_test.py" "${PROJECT_SOURCE_DIR}/${page}")
  set_tests_properties(docs.the_commands_of_${name}_print_what_it_shows PROPERTIES LABELS docs TIMEOUT 600
    ENVIRONMENT "HOLDFAST_PROGRAM=${PROJECT_BINARY_DIR}/holdfast")
endforeach()

add_test(NAME docs.tables_are_those_of_bench_results COMMAND "${PROJECT_SOURCE_DIR}/bench/tables" --check)
add_test(NAME docs.pictures_are_those_of_the_script COMMAND "${PROJECT_SOURCE_DIR}/scripts/pictures" --check)
add_test(NAME docs.the_site_builds_and_its_links_resolve
  COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/docs/site_test.py")
set_tests_properties(docs.tables_are_those_of_bench_results docs.pictures_are_those_of_the_script
  docs.the_site_builds_and_its_links_resolve PROPERTIES LABELS docs TIMEOUT 300)

add_test(NAME docs.the_api_reference_has_every_public_header
  COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/docs/api_reference_test.py")
set_tests_properties(docs.the_api_reference_has_every_public_header PROPERTIES LABELS docs TIMEOUT 300)

add_test(NAME docs.packages_for_conan_and_vcpkg
  COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/docs/packaging_test.py")
set_tests_properties(docs.packages_for_conan_and_vcpkg PROPERTIES LABELS docs TIMEOUT 300)

if(TARGET example_metrics)
  add_test(NAME docs.what_operators_get_is_what_their_tools_accept
    COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/docs/operations_test.py")
  set_tests_properties(docs.what_operators_get_is_what_their_tools_accept PROPERTIES LABELS docs TIMEOUT 300
    ENVIRONMENT "HOLDFAST_PROGRAM=${PROJECT_BINARY_DIR}/holdfast")
endif()

add_test(NAME docs.public_headers
  COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/docs/public_headers_test.py")
set_tests_properties(docs.public_headers PROPERTIES LABELS docs TIMEOUT 300
  ENVIRONMENT "CXX=${CMAKE_CXX_COMPILER}")
