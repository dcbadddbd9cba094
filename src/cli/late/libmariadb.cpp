// The functions of libmariadb that the library calls, for a program that does not load it before.
#include "cli/late/library.hpp"

#include <mariadb/mysql.h>

using holdfast::cli::late::libmariadb;

// clang-format off
extern "C" {

HOLDFAST_LATE(libmariadb, my_bool, mariadb_connection, (MYSQL* link), (link))
HOLDFAST_LATE(libmariadb, my_ulonglong, mysql_affected_rows, (MYSQL* link), (link))
HOLDFAST_LATE(libmariadb, void, mysql_close, (MYSQL* link), (link))
HOLDFAST_LATE(libmariadb, unsigned int, mysql_errno, (MYSQL* link), (link))
HOLDFAST_LATE(libmariadb, const char*, mysql_error, (MYSQL* link), (link))
HOLDFAST_LATE(libmariadb, unsigned long*, mysql_fetch_lengths, (MYSQL_RES* answer), (answer))
HOLDFAST_LATE(libmariadb, MYSQL_ROW, mysql_fetch_row, (MYSQL_RES* answer), (answer))
HOLDFAST_LATE(libmariadb, unsigned int, mysql_field_count, (MYSQL* link), (link))
HOLDFAST_LATE(libmariadb, void, mysql_free_result, (MYSQL_RES* answer), (answer))
HOLDFAST_LATE(libmariadb, unsigned long, mysql_get_server_version, (MYSQL* link), (link))
HOLDFAST_LATE(libmariadb, my_socket, mysql_get_socket, (MYSQL* link), (link))
HOLDFAST_LATE(libmariadb, const char*, mysql_get_ssl_cipher, (MYSQL* link), (link))
HOLDFAST_LATE(libmariadb, MYSQL*, mysql_init, (MYSQL* link), (link))
HOLDFAST_LATE(libmariadb, my_ulonglong, mysql_insert_id, (MYSQL* link), (link))
HOLDFAST_LATE(libmariadb, my_bool, mysql_more_results, (MYSQL* link), (link))
HOLDFAST_LATE(libmariadb, int, mysql_next_result_cont, (int* answer, MYSQL* link, int events),
              (answer, link, events))
HOLDFAST_LATE(libmariadb, int, mysql_next_result_start, (int* answer, MYSQL* link), (answer, link))
HOLDFAST_LATE(libmariadb, int, mysql_options, (MYSQL* link, enum mysql_option which, const void* value),
              (link, which, value))
HOLDFAST_LATE(libmariadb, int, mysql_options4,
              (MYSQL* link, enum mysql_option which, const void* key, const void* value),
              (link, which, key, value))
HOLDFAST_LATE(libmariadb, int, mysql_real_connect_cont, (MYSQL** answer, MYSQL* link, int events),
              (answer, link, events))
HOLDFAST_LATE(libmariadb, int, mysql_real_connect_start,
              (MYSQL** answer, MYSQL* link, const char* host, const char* user, const char* password,
               const char* database, unsigned int port, const char* socket, unsigned long flags),
              (answer, link, host, user, password, database, port, socket, flags))
HOLDFAST_LATE(libmariadb, int, mysql_real_query, (MYSQL* link, const char* text, unsigned long length),
              (link, text, length))
HOLDFAST_LATE(libmariadb, int, mysql_real_query_cont, (int* answer, MYSQL* link, int events),
              (answer, link, events))
HOLDFAST_LATE(libmariadb, int, mysql_real_query_start,
              (int* answer, MYSQL* link, const char* text, unsigned long length),
              (answer, link, text, length))
HOLDFAST_LATE(libmariadb, int, mysql_server_init, (int count, char** words, char** groups),
              (count, words, groups))
HOLDFAST_LATE(libmariadb, MYSQL_RES*, mysql_store_result, (MYSQL* link), (link))
HOLDFAST_LATE(libmariadb, int, mysql_store_result_cont, (MYSQL_RES** answer, MYSQL* link, int events),
              (answer, link, events))
HOLDFAST_LATE(libmariadb, int, mysql_store_result_start, (MYSQL_RES** answer, MYSQL* link),
              (answer, link))
HOLDFAST_LATE(libmariadb, unsigned long, mysql_thread_id, (MYSQL* link), (link))

}  // extern "C"
// clang-format on
