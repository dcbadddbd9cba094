# How everything is compiled: standard, warnings, sanitizers, hardening, ccache.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Wconversion -Wshadow
  $<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion>)  # clang counts it as a conversion, GCC does not
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC bug 105329: false alarms on concatenated strings.
  add_compile_options(-Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND PROJECT_IS_TOP_LEVEL)
  # Debian's Asio does not know that clang has coroutines.
  add_compile_definitions(ASIO_HAS_CO_AWAIT=1)
endif()
# No paths of the build machine in what is shipped.
add_compile_options("-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=")

if(HOLDFAST_SANITIZE)
  set(sanitizer_flags "-fsanitize=${HOLDFAST_SANITIZE}" -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_compile_options(${sanitizer_flags})
  add_link_options(${sanitizer_flags})
endif()

if(HOLDFAST_SANITIZE MATCHES "thread")
  # ThreadSanitizer of GCC 12 dies where the kernel randomises more address bits than it knows.
  # Containers may forbid setarch; there the tests run as they are.
  find_program(SETARCH setarch)
  if(SETARCH)
    execute_process(COMMAND "${SETARCH}" -R true RESULT_VARIABLE setarch_result
                    OUTPUT_QUIET ERROR_QUIET)
    if(setarch_result EQUAL 0)
      set(CMAKE_CROSSCOMPILING_EMULATOR "${SETARCH};-R")
    endif()
  endif()
endif()

if(HOLDFAST_HARDEN)
  include(CheckCXXCompilerFlag)
  add_compile_options(-fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
                      -D_GLIBCXX_ASSERTIONS)
  foreach(flag IN ITEMS -fstack-clash-protection -fcf-protection)
    string(MAKE_C_IDENTIFIER "HAVE${flag}" have)
    check_cxx_compiler_flag(${flag} ${have})
    if(${have})
      add_compile_options(${flag})
    endif()
  endforeach()
  add_link_options(-Wl,-z,relro -Wl,-z,now)
endif()

find_program(CCACHE ccache)
if(CCACHE AND PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Base directory and no directory hash: a clone in another folder finds the same objects. Sloppiness: ccache takes
  # no object that was compiled with precompiled headers without it.
  set(CMAKE_CXX_COMPILER_LAUNCHER env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=pch_defines,time_macros "${CCACHE}")
endif()
