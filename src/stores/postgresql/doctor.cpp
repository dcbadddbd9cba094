#include "stores/postgresql/engine.hpp"
#include "stores/postgresql/schema.hpp"
#include "stores/sql/checks.hpp"

#include <utility>

namespace holdfast::postgresql {

namespace {

using status = spi::check::status;
using sql::facts;

constexpr long old_snapshot = 60;  // seconds

spi::check durability(const facts& known) {
  const bool forgets = known.text("fsync") == "off" || known.text("full_page_writes") == "off";
  const bool late = known.text("synchronous_commit") == "off";
  spi::check check{"durability", status::ok, "commits are durable when they are answered", ""};
  if (forgets) {
    check = {"durability", status::warn, "fsync or full_page_writes is off",
             "a crash of the machine may lose or damage all locks; only for tests"};
  } else if (late) {
    check = {
        "durability", status::warn, "synchronous_commit is off",
        "after a crash of the server the last locks may be granted to others; fencing tokens still "
        "grow. ALTER ROLE ... SET synchronous_commit = on"};
  }
  return check;
}

spi::check snapshots(const facts& known) {
  const long age = known.number("snapshot_age");
  const long slots = known.number("slots_held");
  spi::check check{"snapshots", status::ok, "no old snapshot holds back the cleaning of hot rows",
                   ""};
  if (age >= old_snapshot || slots > 0) {
    check = {"snapshots", status::warn,
             "the oldest transaction of this database is " + std::to_string(age) + " s old, " +
                 std::to_string(slots) + " replication slots hold back",
             "a hot lock's row gets slower with every use while they last; give the locks a "
             "database of their own"};
  }
  return check;
}

// What only matters where the server's own locks are the holds.
void add_bound(const facts& known, const server_options& options, std::vector<spi::check>& checks) {
  checks.push_back(sql::bound_check(options.strategy));
  const long used = known.number("locks_used");
  const long most = known.number("locks_room");
  spi::check room{"locks", status::ok,
                  std::to_string(used) + " of about " + std::to_string(most) +
                      " in the server's table, which all its users share",
                  ""};
  if (used > most / 2) {
    room.state = status::warn;
    room.remedy = "raise max_locks_per_transaction; when it is full nobody gets a lock";
  }
  checks.push_back(std::move(room));
}

}  // namespace

std::vector<spi::check> examined(const sql::rows& answer, const server_options& options,
                                 bool hears) {
  const facts known(answer);
  std::vector<spi::check> checks;
  checks.push_back({"server", status::ok, "PostgreSQL " + known.text("version"), ""});
  checks.push_back({"schema", status::ok,
                    options.schema + ", format " + std::to_string(format) + ", " +
                        known.text("resources") + " names",
                    ""});
  if (options.strategy != sql::strategy::lease) add_bound(known, options, checks);
  checks.push_back(durability(known));
  checks.push_back(snapshots(known));
  checks.push_back(sql::room(known, sql::connections_of(options.strategy, options.connections)));
  if (known.text("autovacuum") == "off") {
    checks.push_back(
        {"autovacuum", status::warn, "autovacuum is off", "the tables of locks grow without it"});
  }
  if (known.number("tables") > 0) {
    checks.push_back({"database", status::warn, "the database has other tables too",
                      "long transactions on them make hot locks slow; a database of its own is "
                      "better"});
  }
  checks.push_back(sql::tls_check(known.text("tls") == "t"));
  checks.push_back(sql::wakeup_check(hears, "LISTEN works"));
  return checks;
}

std::vector<spi::check> refused(const error& why, const server_options& options) {
  spi::check check{"server", status::fail, why.message(), ""};
  if (why == errc::denied && why.detail.find("42501") != std::string::npos) {
    check.name = "schema";
    check.remedy = "let an administrator run this once:\n" +
                   installation_for(options.schema, options.user.empty() ? "USER" : options.user);
  } else if (why == errc::denied) {
    check.remedy = "check user, password, database and pg_hba.conf";
  } else if (why == errc::unavailable) {
    check.remedy = "is the server running, and can this machine reach it?";
  }
  return {std::move(check)};
}

}  // namespace holdfast::postgresql
