# The live page of `holdfast serve` in headless Chromium.
if(NOT TARGET holdfast_http)
  return()
endif()
add_test(NAME cli.the_live_page_in_a_browser
  COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/cli/serve_page_test.py")
set_tests_properties(cli.the_live_page_in_a_browser PROPERTIES LABELS cli TIMEOUT 600
  ENVIRONMENT "HOLDFAST_PROGRAM=${PROJECT_BINARY_DIR}/holdfast")
