// The functions of libpq that the library calls, for a program that does not load it before.
#include "cli/late/library.hpp"

#include <libpq-fe.h>

using holdfast::cli::late::libpq;

// NOLINTBEGIN(readability-identifier-naming): named by libpq
// clang-format off
extern "C" {

HOLDFAST_LATE(libpq, int, PQbackendPID, (const PGconn* link), (link))
HOLDFAST_LATE(libpq, void, PQclear, (PGresult* answer), (answer))
HOLDFAST_LATE(libpq, PostgresPollingStatusType, PQconnectPoll, (PGconn* link), (link))
HOLDFAST_LATE(libpq, PGconn*, PQconnectStartParams,
              (const char* const* keywords, const char* const* values, int expand),
              (keywords, values, expand))
HOLDFAST_LATE(libpq, int, PQconsumeInput, (PGconn* link), (link))
HOLDFAST_LATE(libpq, int, PQenterPipelineMode, (PGconn* link), (link))
HOLDFAST_LATE(libpq, char*, PQerrorMessage, (const PGconn* link), (link))
HOLDFAST_LATE(libpq, PGresult*, PQexecParams,
              (PGconn* link, const char* text, int count, const Oid* types, const char* const* values,
               const int* lengths, const int* formats, int format),
              (link, text, count, types, values, lengths, formats, format))
HOLDFAST_LATE(libpq, void, PQfinish, (PGconn* link), (link))
HOLDFAST_LATE(libpq, int, PQflush, (PGconn* link), (link))
HOLDFAST_LATE(libpq, void, PQfreemem, (void* memory), (memory))
HOLDFAST_LATE(libpq, PGresult*, PQgetResult, (PGconn* link), (link))
HOLDFAST_LATE(libpq, char*, PQgetvalue, (const PGresult* answer, int row, int column),
              (answer, row, column))
HOLDFAST_LATE(libpq, char*, PQhost, (const PGconn* link), (link))
HOLDFAST_LATE(libpq, int, PQisBusy, (PGconn* link), (link))
HOLDFAST_LATE(libpq, PGnotify*, PQnotifies, (PGconn* link), (link))
HOLDFAST_LATE(libpq, int, PQntuples, (const PGresult* answer), (answer))
HOLDFAST_LATE(libpq, int, PQpipelineSync, (PGconn* link), (link))
HOLDFAST_LATE(libpq, char*, PQport, (const PGconn* link), (link))
HOLDFAST_LATE(libpq, char*, PQresultErrorField, (const PGresult* answer, int field), (answer, field))
HOLDFAST_LATE(libpq, char*, PQresultErrorMessage, (const PGresult* answer), (answer))
HOLDFAST_LATE(libpq, ExecStatusType, PQresultStatus, (const PGresult* answer), (answer))
HOLDFAST_LATE(libpq, int, PQsendPrepare,
              (PGconn* link, const char* name, const char* text, int count, const Oid* types),
              (link, name, text, count, types))
HOLDFAST_LATE(libpq, int, PQsendQuery, (PGconn* link, const char* text), (link, text))
HOLDFAST_LATE(libpq, int, PQsendQueryParams,
              (PGconn* link, const char* text, int count, const Oid* types, const char* const* values,
               const int* lengths, const int* formats, int format),
              (link, text, count, types, values, lengths, formats, format))
HOLDFAST_LATE(libpq, int, PQsendQueryPrepared,
              (PGconn* link, const char* name, int count, const char* const* values,
               const int* lengths, const int* formats, int format),
              (link, name, count, values, lengths, formats, format))
HOLDFAST_LATE(libpq, int, PQserverVersion, (const PGconn* link), (link))
HOLDFAST_LATE(libpq, PQnoticeProcessor, PQsetNoticeProcessor,
              (PGconn* link, PQnoticeProcessor process, void* with), (link, process, with))
HOLDFAST_LATE(libpq, int, PQsetnonblocking, (PGconn* link, int on), (link, on))
HOLDFAST_LATE(libpq, int, PQsocket, (const PGconn* link), (link))
HOLDFAST_LATE(libpq, ConnStatusType, PQstatus, (const PGconn* link), (link))
HOLDFAST_LATE(libpq, PGTransactionStatusType, PQtransactionStatus, (const PGconn* link), (link))

}  // extern "C"
// clang-format on
// NOLINTEND(readability-identifier-naming)
