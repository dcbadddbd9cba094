# The program, in the root of the build folder.
holdfast_sources(sources src/cli)
if(NOT HOLDFAST_CLI OR NOT sources)
  return()
endif()

find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
list(FILTER sources EXCLUDE REGEX "/cli/late/lib(pq|mariadb)[.]cpp$")
add_executable(holdfast_cli ${sources})
set_target_properties(holdfast_cli PROPERTIES
  OUTPUT_NAME holdfast RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
target_include_directories(holdfast_cli PRIVATE "${PROJECT_SOURCE_DIR}/src"
  "${PROJECT_BINARY_DIR}/generated")
target_link_libraries(holdfast_cli PRIVATE $<TARGET_NAME_IF_EXISTS:holdfast> CLI11::CLI11
  nlohmann_json::nlohmann_json holdfast_torture)

# holdfast_late(<ENGINE> <file of src/cli/late> <its library>): the program loads this library when it is first
# needed. Its functions are defined in the program, so --as-needed leaves it out of what is loaded at the start. A
# shared libholdfast has the library among its own needs.
function(holdfast_late engine file library)
  if(NOT HOLDFAST_${engine} OR BUILD_SHARED_LIBS)
    return()
  endif()
  target_sources(holdfast_cli PRIVATE "${PROJECT_SOURCE_DIR}/src/cli/late/${file}.cpp")
  set_property(SOURCE "${PROJECT_SOURCE_DIR}/src/cli/late/library.cpp" APPEND PROPERTY
    COMPILE_DEFINITIONS HOLDFAST_LATE_${engine}=1)
  target_link_libraries(holdfast_cli PRIVATE ${library} ${CMAKE_DL_LIBS})
endfunction()
target_link_options(holdfast_cli PRIVATE -Wl,--as-needed)
holdfast_late(POSTGRESQL libpq LibPQ::LibPQ)
holdfast_late(MARIADB libmariadb LibMariaDB::LibMariaDB)
holdfast_unity(holdfast_cli)

if(TARGET holdfast_clock)
  add_dependencies(holdfast_cli holdfast_clock)
endif()
