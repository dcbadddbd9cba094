// The functions of libmariadb that this store calls, loaded with the first mariadb:// URL.
#pragma once

#include "runtime/lazy_library.hpp"

#include <mariadb/mysql.h>

namespace holdfast::mariadb {

inline constexpr runtime::lazy_library libmariadb("libmariadb.so.3", "libmariadb3");

HOLDFAST_LAZY(libmariadb, mariadb_connection);
HOLDFAST_LAZY(libmariadb, mysql_affected_rows);
HOLDFAST_LAZY(libmariadb, mysql_close);
HOLDFAST_LAZY(libmariadb, mysql_errno);
HOLDFAST_LAZY(libmariadb, mysql_error);
HOLDFAST_LAZY(libmariadb, mysql_fetch_lengths);
HOLDFAST_LAZY(libmariadb, mysql_fetch_row);
HOLDFAST_LAZY(libmariadb, mysql_field_count);
HOLDFAST_LAZY(libmariadb, mysql_free_result);
HOLDFAST_LAZY(libmariadb, mysql_get_server_version);
HOLDFAST_LAZY(libmariadb, mysql_get_socket);
HOLDFAST_LAZY(libmariadb, mysql_get_ssl_cipher);
HOLDFAST_LAZY(libmariadb, mysql_init);
HOLDFAST_LAZY(libmariadb, mysql_insert_id);
HOLDFAST_LAZY(libmariadb, mysql_more_results);
HOLDFAST_LAZY(libmariadb, mysql_next_result_cont);
HOLDFAST_LAZY(libmariadb, mysql_next_result_start);
HOLDFAST_LAZY(libmariadb, mysql_options);
HOLDFAST_LAZY(libmariadb, mysql_options4);
HOLDFAST_LAZY(libmariadb, mysql_real_connect_cont);
HOLDFAST_LAZY(libmariadb, mysql_real_connect_start);
HOLDFAST_LAZY(libmariadb, mysql_real_query);
HOLDFAST_LAZY(libmariadb, mysql_real_query_cont);
HOLDFAST_LAZY(libmariadb, mysql_real_query_start);
HOLDFAST_LAZY(libmariadb, mysql_server_init);
HOLDFAST_LAZY(libmariadb, mysql_store_result);
HOLDFAST_LAZY(libmariadb, mysql_store_result_cont);
HOLDFAST_LAZY(libmariadb, mysql_store_result_start);
HOLDFAST_LAZY(libmariadb, mysql_thread_id);

}  // namespace holdfast::mariadb
