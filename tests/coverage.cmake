# Fails where tests/coverage.tsv names a test or a clause that does not exist.
add_test(NAME coverage COMMAND "${PROJECT_SOURCE_DIR}/scripts/check-coverage")
set_tests_properties(coverage PROPERTIES LABELS unit TIMEOUT 60)
