# The scripts of bench/ are not programs of a build, but what they conclude is tested all the same.
find_package(Python3 COMPONENTS Interpreter REQUIRED)
add_test(NAME bench.what_the_scripts_conclude_is_so
  COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/bench/scripts_test.py")
set_tests_properties(bench.what_the_scripts_conclude_is_so PROPERTIES LABELS unit TIMEOUT 300)
