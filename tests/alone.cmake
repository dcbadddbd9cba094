# Read by ctest, behind the discovered tests: those that use the whole machine. Run together, each would be
# the load under which the other fails.
set_tests_properties("cli.run.two_hundred_at_once_count_exactly" PROPERTIES RUN_SERIAL ON)
