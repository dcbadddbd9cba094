# `holdfast serve` as people use it: its live page in headless Chromium, its metrics in Prometheus.
if(NOT TARGET holdfast_http)
  return()
endif()
add_test(NAME cli.the_live_page_in_a_browser
  COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/cli/serve_page_test.py")
set_tests_properties(cli.the_live_page_in_a_browser PROPERTIES LABELS cli TIMEOUT 600
  ENVIRONMENT "HOLDFAST_PROGRAM=${PROJECT_BINARY_DIR}/holdfast")
add_test(NAME cli.prometheus_scrapes
  COMMAND "${Python3_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/cli/prometheus_test.py")
set_tests_properties(cli.prometheus_scrapes PROPERTIES LABELS cli TIMEOUT 600
  ENVIRONMENT "HOLDFAST_PROGRAM=${PROJECT_BINARY_DIR}/holdfast")
