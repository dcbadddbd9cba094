# The simulator: a library, which tests use too, and the program `sim` in the root of the build folder.
holdfast_sources(sources lab/sim)
list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
if(NOT sources)
  return()
endif()

# Always optimised, whatever the rest of the build does: its worth is the number of seeds.
if(HOLDFAST_SANITIZE)
  set(sim_optimisation -O1)
else()
  set(sim_optimisation -O2)
endif()

add_library(holdfast_sim STATIC ${sources})
target_include_directories(holdfast_sim PUBLIC "${PROJECT_SOURCE_DIR}/lab"
  "${PROJECT_SOURCE_DIR}/src")
target_link_libraries(holdfast_sim PUBLIC $<TARGET_NAME_IF_EXISTS:holdfast> Threads::Threads)
target_compile_options(holdfast_sim PRIVATE ${sim_optimisation})
holdfast_unity(holdfast_sim)

if(EXISTS "${PROJECT_SOURCE_DIR}/lab/sim/main.cpp")
  add_executable(sim "${PROJECT_SOURCE_DIR}/lab/sim/main.cpp")
  set_target_properties(sim PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
  target_link_libraries(sim PRIVATE holdfast_sim)
  target_compile_options(sim PRIVATE ${sim_optimisation})
endif()

add_executable(sim_quorum "${PROJECT_SOURCE_DIR}/lab/sim/quorum/main.cpp")
set_target_properties(sim_quorum PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
target_link_libraries(sim_quorum PRIVATE holdfast_sim)
target_compile_options(sim_quorum PRIVATE ${sim_optimisation})

# The explorer: every order of events of small worlds, with what the simulator is made of.
holdfast_sources(sources lab/explore)
add_executable(explore ${sources})
set_target_properties(explore PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}")
target_link_libraries(explore PRIVATE holdfast_sim)
target_compile_options(explore PRIVATE ${sim_optimisation})
holdfast_unity(explore)
