// For programs that talk to MariaDB themselves: a lock inside the caller's own transaction, so that lock
// and work are committed together, or not at all.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/fence.hpp>
#include <holdfast/result.hpp>

#include <string>

struct st_mysql;  // libmariadb's MYSQL

namespace holdfast::mariadb {

struct transaction_lock_options {
  // How long to wait while another transaction has it, in whole seconds, rounded up. Zero: not at all.
  duration wait{};
  // Names in different namespaces never conflict. 0 to 64 of [A-Za-z0-9._-].
  std::string name_space{};
  // Of holdfast's tables, in the connection's database. They must be there: any client of mariadb://
  // with strategy=row or strategy=session makes them.
  std::string prefix = "holdfast_";
};

// Takes the lock for the rest of the transaction that is open on the connection, and answers its
// fence. There is no release: COMMIT and ROLLBACK are, and so is the end of the connection. Taken
// again in the same transaction it is a new fence. Blocks for at most `wait` and a few round trips; the
// connection is the caller's and must not be used by another thread meanwhile.
//
// These locks exclude each other and those of strategy=row, not leases and sessions.
//
// busy (wait is zero) or timed_out: another transaction has it; the caller's goes on. invalid: a name
// out of its limits, or no transaction is open. unsupported: the session is not READ COMMITTED; the
// server rolls whole transactions back when a wait times out (innodb_rollback_on_timeout); or holdfast's
// tables are not there. unavailable: the connection broke, or the server chose this transaction to
// break a dead-lock and has rolled it back.
[[nodiscard]] result<fence_token> lock_in_transaction(st_mysql* connection, const std::string& name,
                                                      const transaction_lock_options& options = {});

}  // namespace holdfast::mariadb
