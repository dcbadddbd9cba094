# holdfast_sources(<variable> <folder>...): every .cpp below the folders, also those added later.
function(holdfast_sources variable)
  list(TRANSFORM ARGN APPEND "/*.cpp" OUTPUT_VARIABLE patterns)
  list(TRANSFORM patterns PREPEND "${PROJECT_SOURCE_DIR}/")
  file(GLOB_RECURSE found CONFIGURE_DEPENDS ${patterns})
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# holdfast_sources_flat(<variable> <folder>): the same without sub-folders.
function(holdfast_sources_flat variable folder)
  file(GLOB found CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cpp")
  set(${variable} ${found} PARENT_SCOPE)
endfunction()
