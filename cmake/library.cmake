# The library: what is common to all stores, and one holdfast_engine() per store.
holdfast_sources(sources src/core src/runtime src/primitives src/stores/memory src/stores/quorum
  src/stores/outage)
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
  # None: static and shared objects are the same, and the compiler cache knows both.
  DEFINE_SYMBOL "")

# What several engines need is taken once.
function(holdfast_needs property)
  get_property(known GLOBAL PROPERTY ${property})
  list(APPEND known ${ARGN})
  list(REMOVE_DUPLICATES known)
  set_property(GLOBAL PROPERTY ${property} ${known})
endfunction()

# holdfast_engine(<NAME> <folder under src/stores> [NET] ALSO <shared folder>... PACKAGE <find_package name>...
#                 TARGET <imported target>... LAZY <package>... LINK <-l flag>...
#                 DEBIAN <development package>...)
# Adds the option HOLDFAST_<NAME> (HOLDFAST_SQLITE, ...), on by default. An engine that is on brings its sources, the
# definition HOLDFAST_WITH_<NAME>=1, its client library, and what a consumer of the static library needs.
# NET: it uses src/net, the sockets and TLS of all stores. ALSO: folders that it shares with others.
# LAZY: packages, with a target of the same name, of which only the headers are used: the library is
# loaded when a URL asks for it. LINK: what pkg-config tells a consumer of the static library.
function(holdfast_engine name folder)
  cmake_parse_arguments(PARSE_ARGV 2 engine "NET" "" "ALSO;PACKAGE;TARGET;LAZY;LINK;DEBIAN")
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
    list(APPEND engine_PACKAGE OpenSSL)
    list(APPEND engine_TARGET OpenSSL::SSL)
    list(APPEND engine_LINK -lssl -lcrypto)
    list(APPEND engine_DEBIAN libssl-dev)
    target_compile_definitions(holdfast PRIVATE HOLDFAST_WITH_NET=1)
  endif()
  # MODULE: where a toolchain prefers packages' own files, as Conan's does, those of Debian's hiredis fail.
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

holdfast_engine(SQLITE sqlite ALSO sql
  PACKAGE SQLite3 TARGET SQLite::SQLite3 LINK -lsqlite3 DEBIAN libsqlite3-dev)
holdfast_scripts("${PROJECT_BINARY_DIR}/generated/redis_scripts.inc"
  "${PROJECT_SOURCE_DIR}/src/stores/redis/library" "${PROJECT_SOURCE_DIR}/src/stores/redis/foreign")
holdfast_engine(REDIS redis NET
  PACKAGE Hiredis TARGET Hiredis::hiredis LINK -lhiredis DEBIAN libhiredis-dev)
holdfast_engine(POSTGRESQL postgresql NET ALSO sql
  LAZY LibPQ)
holdfast_engine(MARIADB mariadb NET ALSO sql
  LAZY LibMariaDB)
# The wire is our own: docs/decisions says why.
holdfast_engine(ZOOKEEPER zookeeper NET)
holdfast_engine(ETCD etcd NET
  PACKAGE Nghttp2 TARGET Nghttp2::nghttp2 LINK -lnghttp2 DEBIAN libnghttp2-dev)
holdfast_unity(holdfast)
