// See the header.
#include "stores/postgresql/doctor.hpp"

#include "stores/postgresql/postgresql_store.hpp"
#include "stores/postgresql/schema.hpp"

#include <charconv>
#include <map>
#include <utility>

namespace holdfast::postgresql {

namespace {

using status = spi::check::status;
using facts = std::map<std::string, std::string, std::less<>>;

constexpr long old_snapshot = 60;  // seconds

facts read(const sql::rows& rows) {
  facts known;
  for (const std::string& line : rows) {
    const std::size_t space = line.find(' ');
    if (space != std::string::npos) known.emplace(line.substr(0, space), line.substr(space + 1));
  }
  return known;
}

long number(const facts& known, std::string_view key) {
  const auto found = known.find(key);
  long value = 0;
  if (found == known.end()) return value;
  std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
  return value;
}

std::string text(const facts& known, std::string_view key) {
  const auto found = known.find(key);
  return found == known.end() ? "?" : found->second;
}

spi::check durability(const facts& known) {
  const bool forgets = text(known, "fsync") == "off" || text(known, "full_page_writes") == "off";
  const bool late = text(known, "synchronous_commit") == "off";
  spi::check check{"durability", status::ok, "commits are durable when they are answered", ""};
  if (forgets) {
    check = {"durability", status::warn, "fsync or full_page_writes is off",
             "a crash of the machine may lose or damage all locks; only for tests"};
  } else if (late) {
    check = {"durability", status::warn, "synchronous_commit is off",
             "a crash of the server gives back locks of the last moments to others; fences still "
             "grow. ALTER ROLE ... SET synchronous_commit = on"};
  }
  return check;
}

spi::check snapshots(const facts& known) {
  const long age = number(known, "snapshot_age");
  const long slots = number(known, "slots_held");
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

spi::check room(const facts& known, std::size_t wanted) {
  const long used = number(known, "connections");
  const long most = number(known, "max_connections");
  spi::check check{"connections", status::ok,
                   std::to_string(used) + " of " + std::to_string(most) +
                       " in use; a client takes " + "up to " + std::to_string(wanted),
                   ""};
  if (used + static_cast<long>(wanted) > most) {
    check.state = status::warn;
    check.remedy = "raise max_connections, or use fewer: connections=1 in the URL";
  }
  return check;
}

// What only matters where the server's own locks are the holds.
void add_tied(const facts& known, const server_options& options, std::vector<spi::check>& checks) {
  checks.push_back({"strategy", status::ok,
                    std::string(name_of(options.strategy)) +
                        ": a hold ends with its connection, and is believed for 30 s at most after "
                        "the last answer on it",
                    ""});
  const long used = number(known, "locks_used");
  const long most = number(known, "locks_room");
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

// How many connections a client takes at most.
std::size_t connections_of(const server_options& options) {
  switch (options.strategy) {
    case strategy::lease:
      return options.connections + 1;
    case strategy::session:
      return 3;  // holds, looks, wake-ups
    case strategy::row:
      break;
  }
  return options.connections + 2;
}

}  // namespace

std::vector<spi::check> examined(const sql::rows& answer, const server_options& options,
                                 bool hears) {
  const facts known = read(answer);
  std::vector<spi::check> checks;
  checks.push_back({"server", status::ok, "PostgreSQL " + text(known, "version"), ""});
  checks.push_back({"schema", status::ok,
                    options.schema + ", format " + std::to_string(format) + ", " +
                        text(known, "resources") + " names",
                    ""});
  if (options.strategy != strategy::lease) add_tied(known, options, checks);
  checks.push_back(durability(known));
  checks.push_back(snapshots(known));
  checks.push_back(room(known, connections_of(options)));
  if (text(known, "autovacuum") == "off") {
    checks.push_back(
        {"autovacuum", status::warn, "autovacuum is off", "the tables of locks grow without it"});
  }
  if (number(known, "tables") > 0) {
    checks.push_back({"database", status::warn, "the database has other tables too",
                      "long transactions on them make hot locks slow; a database of its own is "
                      "better"});
  }
  checks.push_back({"tls", status::ok,
                    text(known, "tls") == "t" ? "the connection is encrypted"
                                              : "the connection is not encrypted",
                    ""});
  spi::check wakeups{"wake-ups", status::ok, "LISTEN works", ""};
  if (!hears) {
    wakeups = {"wake-ups", status::warn, "the connection for wake-ups is not open yet",
               "waiters then look once a second"};
  }
  checks.push_back(std::move(wakeups));
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
    check.remedy = "is the server up, and does this machine reach it?";
  }
  return {std::move(check)};
}

void postgresql_store::probe(const spi::op_context& context,
                             spi::completion<std::vector<spi::check>> done) {
  if (!usable()) return done(failure(errc::cancelled, "postgresql: closed or forked"));
  // The deadline is the caller's; what is left after the wait for wake-ups is for the questions.
  const time_point half = reactor_->now() + (context.deadline - reactor_->now()) / 2;
  hearing_->when_open(half, [self = shared_from_this(), deadline = context.deadline,
                             done = std::move(done)](const result<void>& open) mutable {
    self->connections_.front()->send(
        statement::examine, {}, deadline,
        [self, hears = open.has_value(), done = std::move(done)](result<sql::rows> rows) mutable {
          if (!rows) return done(refused(rows.error(), *self->options_));
          done(examined(*rows, *self->options_, hears));
        });
  });
}

}  // namespace holdfast::postgresql
