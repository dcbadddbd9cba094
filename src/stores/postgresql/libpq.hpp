// The functions of libpq that this store calls, loaded with the first postgresql:// URL.
#pragma once

#include "runtime/lazy_library.hpp"

#include <libpq-fe.h>

namespace holdfast::postgresql {

inline constexpr runtime::lazy_library libpq("libpq.so.5", "libpq5");

// NOLINTBEGIN(readability-identifier-naming): named by libpq
HOLDFAST_LAZY(libpq, PQbackendPID);
HOLDFAST_LAZY(libpq, PQclear);
HOLDFAST_LAZY(libpq, PQconnectPoll);
HOLDFAST_LAZY(libpq, PQconnectStartParams);
HOLDFAST_LAZY(libpq, PQconsumeInput);
HOLDFAST_LAZY(libpq, PQenterPipelineMode);
HOLDFAST_LAZY(libpq, PQerrorMessage);
HOLDFAST_LAZY(libpq, PQexecParams);
HOLDFAST_LAZY(libpq, PQfinish);
HOLDFAST_LAZY(libpq, PQflush);
HOLDFAST_LAZY(libpq, PQfreemem);
HOLDFAST_LAZY(libpq, PQgetResult);
HOLDFAST_LAZY(libpq, PQgetvalue);
HOLDFAST_LAZY(libpq, PQhost);
HOLDFAST_LAZY(libpq, PQisBusy);
HOLDFAST_LAZY(libpq, PQnotifies);
HOLDFAST_LAZY(libpq, PQntuples);
HOLDFAST_LAZY(libpq, PQpipelineSync);
HOLDFAST_LAZY(libpq, PQport);
HOLDFAST_LAZY(libpq, PQresultErrorField);
HOLDFAST_LAZY(libpq, PQresultErrorMessage);
HOLDFAST_LAZY(libpq, PQresultStatus);
HOLDFAST_LAZY(libpq, PQsendPrepare);
HOLDFAST_LAZY(libpq, PQsendQuery);
HOLDFAST_LAZY(libpq, PQsendQueryParams);
HOLDFAST_LAZY(libpq, PQsendQueryPrepared);
HOLDFAST_LAZY(libpq, PQserverVersion);
HOLDFAST_LAZY(libpq, PQsetNoticeProcessor);
HOLDFAST_LAZY(libpq, PQsetnonblocking);
HOLDFAST_LAZY(libpq, PQsocket);
HOLDFAST_LAZY(libpq, PQstatus);
HOLDFAST_LAZY(libpq, PQtransactionStatus);
// NOLINTEND(readability-identifier-naming)

}  // namespace holdfast::postgresql
