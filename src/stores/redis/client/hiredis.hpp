// The functions of hiredis that this store calls. If it is a shared library of the system, it is
// loaded with the first redis:// URL; else it is linked.
#pragma once

#include "runtime/lazy_library.hpp"

#include <hiredis/read.h>

namespace holdfast::redis {

#ifdef HOLDFAST_LOADED_HIREDIS
inline constexpr runtime::lazy_library libhiredis(HOLDFAST_LOADED_HIREDIS);
HOLDFAST_LAZY(libhiredis, redisReaderCreateWithFunctions);
HOLDFAST_LAZY(libhiredis, redisReaderFeed);
HOLDFAST_LAZY(libhiredis, redisReaderFree);
HOLDFAST_LAZY(libhiredis, redisReaderGetReply);
#else
inline constexpr runtime::lazy_library libhiredis = runtime::linked;
#endif

}  // namespace holdfast::redis
