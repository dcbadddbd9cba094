// For programs that talk to PostgreSQL themselves: a lock inside the caller's own transaction, so that
// lock and work are committed together, or not at all.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/fence.hpp>
#include <holdfast/result.hpp>

#include <string>

struct pg_conn;  // libpq's PGconn

namespace holdfast::postgresql {

struct transaction_lock_options {
  // How long to wait while another transaction has the lock. Zero or less: not at all (a millisecond).
  duration wait{};
  // Names in different namespaces never conflict. 0 to 64 of [A-Za-z0-9._-].
  std::string name_space{};
  // The schema of holdfast's tables. It must exist: any client of postgresql:// creates it.
  std::string schema = "holdfast";
};

// Takes the lock for the rest of the transaction that is open on the connection, and returns its
// fence. COMMIT, ROLLBACK and the end of the connection release it. Taking it again in the same
// transaction gives a new fence. Blocks for at most `wait` and a round trip; no other thread may use
// the connection in the meantime.
//
// These locks exclude each other and those of strategy=row, not leases and sessions.
//
// busy (a try) or timed_out: another transaction has it; the caller's continues. invalid: a
// name out of its limits, no open transaction, or one that has failed. unsupported: not READ
// COMMITTED, or holdfast's tables do not exist. unavailable: the connection broke.
[[nodiscard]] result<fence_token> lock_in_transaction(pg_conn* connection, const std::string& name,
                                                      const transaction_lock_options& options = {});

}  // namespace holdfast::postgresql
