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

# holdfast_unity(<target>): compiles the target's sources in groups of neighbours, which parses the common
# headers once a group (docs/decisions/0018-fast-builds.md). Groups are made by folder, so that a new file
# changes the groups of its own folder alone. Names in anonymous namespaces are unique within a folder; with
# BY_PREFIX, within the files of a folder that begin with the same word.
set(HOLDFAST_UNITY_SIZE 8 CACHE STRING "Source files compiled together; 1: each by itself")
mark_as_advanced(HOLDFAST_UNITY_SIZE)

function(holdfast_unity target)
  cmake_parse_arguments(PARSE_ARGV 1 unity "BY_PREFIX" "" "")
  if(HOLDFAST_UNITY_SIZE LESS 2)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(SORT sources)
  foreach(source IN LISTS sources)
    get_filename_component(folder "${source}" DIRECTORY)
    file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}" "${folder}")
    if(unity_BY_PREFIX)
      get_filename_component(file "${source}" NAME)
      string(REGEX MATCH "^[^_.]+" prefix "${file}")
      string(APPEND folder "_${prefix}")
    endif()
    string(MAKE_C_IDENTIFIER "${folder}" group)
    math(EXPR count_${group} "${count_${group}} + 1")
    math(EXPR index "(${count_${group}} - 1) / ${HOLDFAST_UNITY_SIZE}")
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${group}_${index}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Shadowing a neighbour's names is no mistake, and what is in an anonymous namespace here is in no header.
    target_compile_options(${target} PRIVATE -Wshadow=local -Wno-subobject-linkage)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND PROJECT_IS_TOP_LEVEL)
    # The compiler collects its garbage from 400 MB on, not from 128: 3 to 9 % of the time of a group.
    target_compile_options(${target} PRIVATE --param=ggc-min-heapsize=400000)
  endif()
endfunction()
