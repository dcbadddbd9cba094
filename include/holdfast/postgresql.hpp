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
  // How long to wait while another transaction has it. Zero: not at all (a millisecond).
  duration wait{};
  // Names in different namespaces never conflict. 0 to 64 of [A-Za-z0-9._-].
  std::string name_space{};
  // Where holdfast's tables are. They must be there: any client of postgresql:// makes them.
  std::string schema = "holdfast";
};

// Takes the lock for the rest of the transaction that is open on the connection, and answers its
// fence. There is no release: COMMIT and ROLLBACK are, and so is the end of the connection. Taken
// again in the same transaction it is a new fence. Blocks for at most `wait` and a round trip; the
// connection is the caller's and must not be used by another thread meanwhile.
//
// These locks exclude each other, not the leases of holdfast::mutex: they are rows of their own.
//
// busy (wait is zero) or timed_out: another transaction has it; the caller's goes on. invalid: a
// name out of its limits, or no transaction is open, or it has failed. unsupported: not READ
// COMMITTED; or holdfast's tables are not there. unavailable: the connection broke.
[[nodiscard]] result<fence_token> lock_in_transaction(pg_conn* connection, const std::string& name,
                                                      const transaction_lock_options& options = {});

}  // namespace holdfast::postgresql
