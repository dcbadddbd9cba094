# The library: what is common to all stores, and one holdfast_engine() per store.
holdfast_sources(sources src/core src/runtime src/primitives src/stores/ledger src/stores/memory
  src/stores/quorum
  src/stores/degraded)
holdfast_sources_flat(store_sources src/stores)
list(APPEND sources ${store_sources})
if(NOT sources)
  return()
endif()

add_library(holdfast ${sources})
add_library(holdfast::holdfast ALIAS holdfast)
target_compile_features(holdfast PUBLIC cxx_std_20)
target_include_directories(holdfast
  PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
         "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>"
  PRIVATE "${PROJECT_SOURCE_DIR}/src" "${PROJECT_BINARY_DIR}/generated")
target_link_libraries(holdfast PUBLIC tl::expected Threads::Threads PRIVATE ${CMAKE_DL_LIBS})
set_target_properties(holdfast PROPERTIES VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
  # None: static and shared objects are the same, so the compiler cache serves both.
  DEFINE_SYMBOL "")

# What several engines need is added once.
function(holdfast_needs property)
  get_property(known GLOBAL PROPERTY ${property})
  list(APPEND known ${ARGN})
  list(REMOVE_DUPLICATES known)
  set_property(GLOBAL PROPERTY ${property} ${known})
endfunction()

# holdfast_library(<imported target> <development package of Debian>): a library that the sources call through
# HOLDFAST_LAZY. A shared library in a folder that the loader searches is loaded when a URL asks for it: the sources
# get HOLDFAST_LOADED_<NAME>, its SONAME and package. Any other library, as Conan or vcpkg may provide it, is linked.
option(HOLDFAST_LAZY_LIBRARIES "Load the libraries of engines when a URL asks for them; OFF: link them" ON)

function(holdfast_library target development)
  string(REGEX REPLACE "::.*" "" package ${target})
  string(REGEX REPLACE ".*::" "" name ${target})
  string(TOUPPER ${name} name)
  # MODULE: if a toolchain prefers packages' own files, as Conan's does, those of Debian's hiredis fail.
  find_package(${package} MODULE REQUIRED)
  get_target_property(file ${target} LOCATION)
  get_filename_component(folder "${file}" DIRECTORY)
  get_filename_component(link "${file}" NAME_WE)
  set(soname)
  if(HOLDFAST_LAZY_LIBRARIES AND CMAKE_READELF AND folder IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
    execute_process(COMMAND "${CMAKE_READELF}" -d "${file}" OUTPUT_VARIABLE dynamic ERROR_QUIET)
    string(REGEX MATCH "\\(SONAME\\)[^[]*\\[(lib[^]]+)\\]" soname "${dynamic}")
    set(soname "${CMAKE_MATCH_1}")
  endif()
  if(NOT soname)
    target_link_libraries(holdfast PRIVATE ${target})
    string(REGEX REPLACE "^lib" "-l" link "${link}")
    holdfast_needs(HOLDFAST_PACKAGES ${package})
    holdfast_needs(HOLDFAST_LINK ${link})
    holdfast_needs(HOLDFAST_DEBIAN ${development})
    return()
  endif()
  # Debian's names: libssl3, libnghttp2-14; libcrypto comes with libssl.
  string(REGEX REPLACE "^(lib[^.]*[0-9])\\.so\\.(.*)" "\\1-\\2" debian "${soname}")
  string(REPLACE ".so." "" debian "${debian}")
  string(REPLACE libcrypto libssl debian "${debian}")
  target_include_directories(holdfast SYSTEM PRIVATE $<TARGET_PROPERTY:${target},INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_definitions(holdfast PRIVATE "HOLDFAST_LOADED_${name}=\"${soname}\",\"${debian}\"")
  holdfast_needs(HOLDFAST_LOADED ${debian})
endfunction()

# holdfast_engine(<NAME> <folder under src/stores> [NET] ALSO <shared folder>... PACKAGE <find_package name>...
#                 TARGET <imported target>... LAZY <package>... LINK <-l flag>...
#                 DEBIAN <development package>... LIBRARY <arguments of holdfast_library>)
# Adds the option HOLDFAST_<NAME> (HOLDFAST_SQLITE, ...), on by default. An engine that is on brings its sources, the
# definition HOLDFAST_WITH_<NAME>=1, its client library, and what a consumer of the static library needs.
# NET: it uses src/net, the sockets and TLS of all stores. ALSO: folders that it shares with others.
# LAZY: packages, with a target of the same name, of which only the headers are used: the library is
# loaded when a URL asks for it. LINK: what pkg-config tells a consumer of the static library.
function(holdfast_engine name folder)
  cmake_parse_arguments(PARSE_ARGV 2 engine "NET" "" "ALSO;PACKAGE;TARGET;LAZY;LINK;DEBIAN;LIBRARY")
  option(HOLDFAST_${name} "Build the ${folder} store" ON)
  holdfast_sources(engine_sources src/stores/${folder})
  if(NOT HOLDFAST_${name} OR NOT engine_sources)
    return()
  endif()
  foreach(folder IN LISTS engine_ALSO)
    holdfast_sources(shared_sources src/stores/${folder})
    list(APPEND engine_sources ${shared_sources})
  endforeach()
  if(engine_NET)
    holdfast_sources(net_sources src/net)
    list(APPEND engine_sources ${net_sources})
    holdfast_library(OpenSSL::SSL libssl-dev)
    holdfast_library(OpenSSL::Crypto libssl-dev)
    target_compile_definitions(holdfast PRIVATE HOLDFAST_WITH_NET=1)
  endif()
  if(engine_LIBRARY)
    holdfast_library(${engine_LIBRARY})
  endif()
  foreach(package IN LISTS engine_PACKAGE)
    find_package(${package} MODULE REQUIRED)
  endforeach()
  foreach(package IN LISTS engine_LAZY)
    find_package(${package} MODULE REQUIRED)
    target_include_directories(holdfast SYSTEM PRIVATE
      $<TARGET_PROPERTY:${package}::${package},INTERFACE_INCLUDE_DIRECTORIES>)
  endforeach()
  # Sources that another engine brought are not added again.
  get_target_property(present holdfast SOURCES)
  list(REMOVE_ITEM engine_sources ${present})
  target_sources(holdfast PRIVATE ${engine_sources})
  target_compile_definitions(holdfast PRIVATE HOLDFAST_WITH_${name}=1)
  target_link_libraries(holdfast PRIVATE ${engine_TARGET})
  holdfast_needs(HOLDFAST_PACKAGES ${engine_PACKAGE})
  holdfast_needs(HOLDFAST_LINK ${engine_LINK})
  holdfast_needs(HOLDFAST_DEBIAN ${engine_DEBIAN})
endfunction()

holdfast_engine(SQLITE sqlite ALSO sql/common
  PACKAGE SQLite3 TARGET SQLite::SQLite3 LINK -lsqlite3 DEBIAN libsqlite3-dev)
holdfast_scripts("${PROJECT_BINARY_DIR}/generated/redis_scripts.inc"
  "${PROJECT_SOURCE_DIR}/src/stores/redis/library" "${PROJECT_SOURCE_DIR}/src/stores/redis/foreign")
holdfast_engine(REDIS redis NET
  LIBRARY Hiredis::hiredis libhiredis-dev)
holdfast_engine(POSTGRESQL postgresql NET ALSO sql
  LAZY LibPQ)
holdfast_engine(MARIADB mariadb NET ALSO sql
  LAZY LibMariaDB)
# We speak its protocol ourselves: docs/decisions says why.
holdfast_engine(ZOOKEEPER zookeeper NET)
holdfast_engine(ETCD etcd NET
  LIBRARY Nghttp2::nghttp2 libnghttp2-dev)
holdfast_unity(holdfast)
