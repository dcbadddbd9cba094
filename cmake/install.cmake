# Everything installed finds its neighbours by relative paths: the installed tree may be moved.
include(CMakePackageConfigHelpers)
set(config_folder "${CMAKE_INSTALL_LIBDIR}/cmake/holdfast")
set(pkgconfig_folder "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

if(TARGET holdfast)
  install(TARGETS holdfast EXPORT holdfast
    ARCHIVE COMPONENT development
    LIBRARY COMPONENT runtime NAMELINK_COMPONENT development)
  install(DIRECTORY include/holdfast TYPE INCLUDE COMPONENT development)
  if(TARGET holdfast_c)
    if(BUILD_SHARED_LIBS)
      set_target_properties(holdfast_c PROPERTIES INSTALL_RPATH "$ORIGIN")
    endif()
    install(TARGETS holdfast_c EXPORT holdfast LIBRARY COMPONENT development)
  endif()
  install(EXPORT holdfast NAMESPACE holdfast:: FILE holdfastTargets.cmake
    DESTINATION "${config_folder}" COMPONENT development)

  get_property(packages GLOBAL PROPERTY HOLDFAST_PACKAGES)
  # Libraries, not modules: a module would bring the other project's compiler flags too.
  get_property(pkgconfig_libraries GLOBAL PROPERTY HOLDFAST_LINK)
  list(APPEND pkgconfig_libraries ${CMAKE_DL_LIBS} -pthread)
  list(TRANSFORM pkgconfig_libraries REPLACE "^([^-].*)$" "-l\\1")
  if(BUILD_SHARED_LIBS)
    # The shared library brings its own dependencies.
    set(packages)
    set(pkgconfig_libraries -pthread)
  endif()
  list(TRANSFORM packages REPLACE "(.+)" "find_dependency(\\1 MODULE)" OUTPUT_VARIABLE engine_dependencies)
  list(JOIN engine_dependencies "\n" engine_dependencies)
  list(JOIN pkgconfig_libraries " " pkgconfig_libraries)
  file(RELATIVE_PATH pkgconfig_prefix "/prefix/${pkgconfig_folder}" /prefix)
  string(REGEX REPLACE "/$" "" pkgconfig_prefix "${pkgconfig_prefix}")

  configure_package_config_file(cmake/holdfastConfig.cmake.in holdfastConfig.cmake
    INSTALL_DESTINATION "${config_folder}")
  write_basic_package_version_file(holdfastConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  configure_file(cmake/holdfast.pc.in holdfast.pc @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/holdfastConfig.cmake"
                "${PROJECT_BINARY_DIR}/holdfastConfigVersion.cmake"
                "${PROJECT_SOURCE_DIR}/cmake/FindHiredis.cmake"
                "${PROJECT_SOURCE_DIR}/cmake/FindNghttp2.cmake"
    DESTINATION "${config_folder}" COMPONENT development)
  install(FILES "${PROJECT_BINARY_DIR}/holdfast.pc" DESTINATION "${pkgconfig_folder}"
    COMPONENT development)
  if(TARGET holdfast_c)
    configure_file(cmake/holdfast_c.pc.in holdfast_c.pc @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/holdfast_c.pc" DESTINATION "${pkgconfig_folder}" COMPONENT development)
  endif()
endif()

if(TARGET holdfast_cli)
  file(RELATIVE_PATH library_folder "/prefix/${CMAKE_INSTALL_BINDIR}" "/prefix/${CMAKE_INSTALL_LIBDIR}")
  if(BUILD_SHARED_LIBS)
    set_target_properties(holdfast_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${library_folder}")
  endif()
  install(TARGETS holdfast_cli RUNTIME COMPONENT program)
  foreach(module holdfast_clock holdfast_http)
    if(TARGET ${module})
      install(TARGETS ${module} LIBRARY COMPONENT program DESTINATION "${CMAKE_INSTALL_LIBDIR}/holdfast")
    endif()
  endforeach()
  install(FILES README.md CHANGELOG.md TYPE DOC COMPONENT program)
  install(DIRECTORY docs TYPE DOC COMPONENT program PATTERN man EXCLUDE)
  # README.md shows these.
  install(DIRECTORY bench/results DESTINATION "${CMAKE_INSTALL_DOCDIR}/bench" COMPONENT program
    FILES_MATCHING PATTERN "*.svg")
  install(FILES docs/man/holdfast.1 DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" COMPONENT program
    OPTIONAL)
  install(FILES completions/holdfast.bash RENAME holdfast COMPONENT program OPTIONAL
    DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
  install(FILES completions/_holdfast COMPONENT program OPTIONAL
    DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
  install(FILES completions/holdfast.fish COMPONENT program OPTIONAL
    DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
endif()
