# The Python package, around the shared library of this build: made once, then tested on three engines. Which
# interpreter has what it needs is found when the tests run: make test installs it after this was read.
if(NOT TARGET holdfast_c OR HOLDFAST_SANITIZE)
  return()
endif()
set(python_package "${PROJECT_BINARY_DIR}/python")
add_test(NAME python.package
  COMMAND "${PROJECT_SOURCE_DIR}/python/build-package" "$<TARGET_FILE:holdfast_c>" "${python_package}")
set_tests_properties(python.package PROPERTIES LABELS python TIMEOUT 600 FIXTURES_SETUP python_package)
foreach(engine sqlite redis postgresql)
  string(TOUPPER ${engine} option)
  if(HOLDFAST_${option})
    add_test(NAME python.${engine} COMMAND "${PROJECT_SOURCE_DIR}/python/run-tests" "${python_package}" ${engine})
    set_tests_properties(python.${engine} PROPERTIES LABELS python TIMEOUT 600 FIXTURES_REQUIRED python_package)
  endif()
endforeach()

# Python and C++ processes on the same locks; make torture-python takes longer.
add_executable(python_torture_worker "${PROJECT_SOURCE_DIR}/python/torture/worker.cpp")
target_link_libraries(python_torture_worker PRIVATE holdfast)
foreach(engine sqlite redis)
  string(TOUPPER ${engine} option)
  if(HOLDFAST_${option})
    add_test(NAME python.torture_${engine} COMMAND "${PROJECT_SOURCE_DIR}/python/run-torture" "${python_package}"
      "$<TARGET_FILE:python_torture_worker>" ${engine} 3)
    set_tests_properties(python.torture_${engine} PROPERTIES LABELS python TIMEOUT 600 FIXTURES_REQUIRED python_package)
  endif()
endforeach()
