# Fails where tests/coverage.tsv names a test or a clause that does not exist.
add_test(NAME coverage.every_row_names_a_test_or_clause_that_exists
  COMMAND "${PROJECT_SOURCE_DIR}/scripts/check-coverage")
set_tests_properties(coverage.every_row_names_a_test_or_clause_that_exists
  PROPERTIES LABELS unit TIMEOUT 60)
