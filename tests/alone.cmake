# Read by ctest, behind the discovered tests: those that fill the machine by themselves. Beside others each
# would be the load under which the other one fails.
set_tests_properties("cli.run.two_hundred_at_once_count_exactly" PROPERTIES RUN_SERIAL ON)
