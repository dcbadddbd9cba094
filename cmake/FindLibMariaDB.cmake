# LibMariaDB::LibMariaDB: the client library of MariaDB (mariadb/mysql.h).
find_path(LIBMARIADB_INCLUDE_DIR mariadb/mysql.h)
find_library(LIBMARIADB_LIBRARY mariadb)
mark_as_advanced(LIBMARIADB_INCLUDE_DIR LIBMARIADB_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibMariaDB REQUIRED_VARS LIBMARIADB_LIBRARY LIBMARIADB_INCLUDE_DIR)

if(LibMariaDB_FOUND AND NOT TARGET LibMariaDB::LibMariaDB)
  add_library(LibMariaDB::LibMariaDB UNKNOWN IMPORTED)
  # Its headers include each other by their bare names.
  set_target_properties(LibMariaDB::LibMariaDB PROPERTIES
    IMPORTED_LOCATION "${LIBMARIADB_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${LIBMARIADB_INCLUDE_DIR};${LIBMARIADB_INCLUDE_DIR}/mariadb")
endif()
