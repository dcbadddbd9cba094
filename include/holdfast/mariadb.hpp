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
  // How long to wait while another transaction has the lock, rounded up to seconds. Zero or less:
  // not at all.
  duration wait{};
  // Names in different namespaces never conflict. 0 to 64 of [A-Za-z0-9._-].
  std::string name_space{};
  // The prefix of holdfast's tables, in the connection's database. They must exist: any client of
  // mariadb:// with strategy=row or strategy=session creates them.
  std::string prefix = "holdfast_";
};

// Takes the lock for the rest of the transaction that is open on the connection, and returns its
// fence. COMMIT, ROLLBACK and the end of the connection release it. Taking it again in the same
// transaction gives a new fence. Blocks for at most `wait` and a few round trips; no other thread may
// use the connection in the meantime.
//
// These locks exclude each other and those of strategy=row, not leases and sessions.
//
// busy (a try) or timed_out: another transaction has it; the caller's continues. invalid: a name
// out of its limits, or no open transaction. unsupported: the session is not READ COMMITTED; the
// server rolls back whole transactions when a wait times out (innodb_rollback_on_timeout); holdfast's
// tables do not exist. unavailable: the connection broke, or the server has rolled this transaction
// back to break a deadlock.
[[nodiscard]] result<fence_token> lock_in_transaction(st_mysql* connection, const std::string& name,
                                                      const transaction_lock_options& options = {});

}  // namespace holdfast::mariadb
