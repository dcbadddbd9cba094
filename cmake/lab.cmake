# The simulator: a library, which tests use too, and the program `sim` in the root of the build folder; and the
# explorer, every order of events of small worlds with what the simulator is made of.
holdfast_sources(sources lab/sim lab/explore)
list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
if(NOT sources)
  return()
endif()

# Linked with the library, or with the engine that has mutants (lab/sim/CMakeLists.txt): the same objects for both.
add_library(holdfast_sim STATIC ${sources})
target_include_directories(holdfast_sim PUBLIC "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/lab"
  "${PROJECT_SOURCE_DIR}/src")
target_link_libraries(holdfast_sim PUBLIC tl::expected Threads::Threads)
# Always optimised, whatever the rest of the build does: its value is in the number of seeds.
set(sim_optimisation -O2)
if(HOLDFAST_SANITIZE)
  set(sim_optimisation -O1)
endif()
target_compile_options(holdfast_sim PRIVATE ${sim_optimisation})
holdfast_unity(holdfast_sim)

# holdfast_lab_program(<name> <main> <engine>)
function(holdfast_lab_program name main engine)
  add_executable(${name} "${PROJECT_SOURCE_DIR}/lab/${main}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
  target_link_libraries(${name} PRIVATE holdfast_sim ${engine})
endfunction()
holdfast_lab_program(sim sim/main.cpp holdfast)
holdfast_lab_program(sim_quorum sim/quorum/main.cpp holdfast)
holdfast_lab_program(explore explore/main.cpp holdfast)
