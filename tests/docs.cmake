# The C++ in README.md and docs/ is compiled as it stands; what the pages name is looked for.
set(code_pages README.md docs/stores/embedded.md docs/stores/redis.md docs/stores/zookeeper.md
  docs/stores/postgresql.md docs/stores/mariadb.md)
list(TRANSFORM code_pages PREPEND "${PROJECT_SOURCE_DIR}/")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${code_pages}
  "${CMAKE_CURRENT_SOURCE_DIR}/docs/code_blocks.py")
execute_process(COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/docs/code_blocks.py"
  "${PROJECT_BINARY_DIR}/generated/docs" ${code_pages} COMMAND_ERROR_IS_FATAL ANY)

add_test(NAME docs.what_the_pages_name_is_there
  COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/docs/pages_test.py")
set_tests_properties(docs.what_the_pages_name_is_there PROPERTIES LABELS docs TIMEOUT 300
  ENVIRONMENT "HOLDFAST_PROGRAM=${PROJECT_BINARY_DIR}/holdfast")
