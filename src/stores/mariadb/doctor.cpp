// See the header.
#include "stores/mariadb/doctor.hpp"

#include "stores/mariadb/mariadb_store.hpp"
#include "stores/mariadb/schema.hpp"

#include <charconv>
#include <map>
#include <utility>

namespace holdfast::mariadb {

namespace {

using status = spi::check::status;
using facts = std::map<std::string, std::string, std::less<>>;

constexpr long long_history = 100'000;  // old versions of rows that cannot be purged yet

facts read(const sql::rows& rows) {
  facts known;
  for (const std::string& line : rows) {
    const std::size_t space = line.find(' ');
    if (space != std::string::npos) known.emplace(line.substr(0, space), line.substr(space + 1));
  }
  return known;
}

std::string text(const facts& known, std::string_view key) {
  const auto found = known.find(key);
  return found == known.end() ? "?" : found->second;
}

long number(const facts& known, std::string_view key) {
  const std::string digits = text(known, key);
  long value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

bool is_off(const facts& known, std::string_view key) {
  const std::string value = text(known, key);
  return value == "OFF" || value == "0";
}

spi::check durability(const facts& known) {
  if (number(known, "flush") != 1 || is_off(known, "doublewrite")) {
    return {"durability", status::warn,
            "innodb_flush_log_at_trx_commit is " + text(known, "flush") +
                ", innodb_doublewrite is " + text(known, "doublewrite"),
            "a crash of the machine gives back locks of the last moments to others; fences still "
            "grow. SET GLOBAL innodb_flush_log_at_trx_commit = 1"};
  }
  if (!is_off(known, "log_bin") && is_off(known, "sync_binlog")) {
    return {"durability", status::warn,
            "commits are durable, their binary log is not (sync_binlog=0)",
            "a replica that takes over after a crash may not know the locks of the last moments"};
  }
  return {"durability", status::ok, "commits are durable when they are answered", ""};
}

spi::check room(const facts& known, std::size_t wanted) {
  const long used = number(known, "connections");
  const long most = number(known, "max_connections");
  spi::check check{"connections", status::ok,
                   std::to_string(used) + " of " + std::to_string(most) +
                       " in use; a client takes up to " + std::to_string(wanted),
                   ""};
  if (used + static_cast<long>(wanted) > most) {
    check.state = status::warn;
    check.remedy = "raise max_connections, or use fewer: connections=1 in the URL";
  }
  return check;
}

}  // namespace

std::vector<spi::check> examined(const sql::rows& answer, const server_options& options,
                                 bool hears) {
  const facts known = read(answer);
  std::vector<spi::check> checks;
  checks.push_back({"server", status::ok, "MariaDB " + text(known, "version"), ""});
  checks.push_back({"tables", status::ok,
                    options.prefix + "*, format " + std::to_string(format) + ", " +
                        text(known, "resources") + " names",
                    ""});
  checks.push_back(durability(known));
  checks.push_back(room(known, options.connections + 1));
  if (number(known, "history") > long_history) {
    checks.push_back({"history", status::warn,
                      text(known, "history") + " old versions of rows wait to be purged",
                      "an old transaction holds them back, and hot locks get slower; find it with "
                      "SHOW ENGINE INNODB STATUS"});
  }
  checks.push_back({"tls", status::ok,
                    known.contains("tls") && !text(known, "tls").empty()
                        ? "the connection is encrypted"
                        : "the connection is not encrypted",
                    ""});
  spi::check wakeups{"wake-ups", status::ok, "the connection for wake-ups listens", ""};
  if (!hears) {
    wakeups = {"wake-ups", status::warn, "the connection for wake-ups is not open yet",
               "waiters then look once a second"};
  }
  checks.push_back(std::move(wakeups));
  return checks;
}

std::vector<spi::check> refused(const error& why, const server_options& options) {
  spi::check check{"server", status::fail, why.message(), ""};
  if (why == errc::denied && why.detail.find("what to grant") != std::string::npos) {
    check.name = "tables";
    check.remedy = "let an administrator run this once:\n" +
                   installation_for(options.database, options.prefix,
                                    options.user.empty() ? "USER" : options.user);
  } else if (why == errc::denied) {
    check.remedy = "check user, password, database, certificate, and from where the user may come";
  } else if (why == errc::unavailable) {
    check.remedy = "is the server up, and does this machine reach it?";
  }
  return {std::move(check)};
}

void mariadb_store::probe(const spi::op_context& context,
                          spi::completion<std::vector<spi::check>> done) {
  if (!usable()) return done(failure(errc::cancelled, "mariadb: closed or forked"));
  // The deadline is the caller's; what is left after the wait for wake-ups is for the questions.
  const time_point half = reactor_->now() + (context.deadline - reactor_->now()) / 2;
  ear_->when_open(half, [self = shared_from_this(), deadline = context.deadline,
                         done = std::move(done)](const result<void>& open) mutable {
    self->connections_.front()->send(
        statement::examine, {}, deadline,
        [self, hears = open.has_value(), done = std::move(done)](result<sql::rows> rows) mutable {
          if (!rows) return done(refused(rows.error(), *self->options_));
          done(examined(*rows, *self->options_, hears));
        });
  });
}

}  // namespace holdfast::mariadb
