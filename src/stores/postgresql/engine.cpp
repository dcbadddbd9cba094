#include "stores/postgresql/engine.hpp"

#include "core/hex.hpp"
#include "stores/postgresql/schema.hpp"
#include "stores/sql/answers.hpp"
#include "stores/sql/checks.hpp"
#include "stores/sql/common/names.hpp"
#include "stores/sql/server_store.hpp"

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace holdfast::postgresql {

namespace {

// The first number of the locks that order releases and new waiters, see session.sql.inc.
constexpr std::string_view own_locks = "1752132708";

// Only one spelling for each: two names for one number would be refused as a conflict.
template <class Number>
bool spells(const std::string& text) {
  Number number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return std::to_string(number) == text;
}

}  // namespace

std::shared_ptr<sql::connection> engine::make(const net::network& net, manner how,
                                              sql::connection::events tell) const {
  auto make_link = [net, options = options_, how = std::move(how)](
                       std::weak_ptr<sql::link_user> whose, std::size_t turn) {
    return std::make_shared<link>(net, options, std::move(whose), how, turn);
  };
  // Calls are pipelined, and libpq tries the hosts itself.
  constexpr std::size_t depth = std::numeric_limits<std::size_t>::max();
  return sql::connection::make(
      net, {std::move(make_link), options_->text(), depth, 1, options_->backoff}, std::move(tell));
}

std::shared_ptr<sql::notification_listener> engine::make_listener(
    const net::network& net, const std::string& process,
    const std::shared_ptr<sql::switchboard>& board) const {
  sql::connection::events tell;
  tell.opened = [board] { board->opened(); };
  tell.notified = [board](std::string_view message) { board->hear(message); };
  return std::make_shared<sql::notification_listener>(make(
      net, {.duty = duty::notification_listener, .channel = "hf_" + process}, std::move(tell)));
}

std::shared_ptr<sql::connection> engine::make_control_connection(const net::network& net,
                                                                 const std::string&) const {
  const bool lease = options_->strategy == sql::strategy::lease;
  return make(net, {.duty = lease ? duty::lease : duty::control_connection});
}

std::shared_ptr<sql::connection> engine::make_command_connection(const net::network& net) const {
  return make(net, {});
}

std::shared_ptr<sql::connection> engine::make_carrier(const net::network& net,
                                                      const std::string& whose,
                                                      sql::connection::events tell) const {
  manner how{.duty = options_->strategy == sql::strategy::session ? duty::session : duty::row};
  how.opening = "SELECT @.begin_3('" + whose + "')";
  return make(net, std::move(how), std::move(tell));
}

result<void> engine::check_name(const spi::resource_id& resource) const {
  constexpr std::string_view prefix = "advisory:";
  if (!resource.space.empty() || !resource.name.starts_with(prefix)) return {};
  const std::string text = resource.name.substr(prefix.size());
  const auto comma = text.find(',');
  if (comma == std::string::npos && spells<std::int64_t>(text)) return {};
  const std::string first = text.substr(0, comma);
  if (comma != std::string::npos && spells<std::int32_t>(first) &&
      spells<std::int32_t>(text.substr(comma + 1)) && first != own_locks) {
    return {};
  }
  return failure(
      errc::invalid,
      "postgresql, strategy=session: after advisory: comes a number of 64 bits or two of 32, as "
      "in advisory:4711 and advisory:47,11; the first is not " +
          std::string(own_locks) + ", which holdfast uses itself");
}

result<std::shared_ptr<spi::store>> open_postgresql(const spi::url& url,
                                                    std::shared_ptr<spi::reactor> reactor,
                                                    const net::backoff_limits& pauses) {
  auto options = options_from(url);
  if (!options) return tl::unexpected(std::move(options.error()));
  options->backoff = pauses;
  auto shared = std::make_shared<const server_options>(*std::move(options));
  return sql::make_store(std::move(reactor), std::make_shared<engine>(std::move(shared)));
}

call engine::attempt(const std::string& key, const spi::claim& claim, const std::string& process,
                     const sql::wakeup_registry&) const {
  call made{statement::attempt, sql::attempt_arguments(key, claim, process)};
  made.with.text(encoded_claim(claim, process));
  return made;
}

// A connection sends nothing twice: if the claim's only attempt is unanswered, but the claim is
// there, the attempt has arrived, and cannot come late.
call engine::leave(const std::string& key, const spi::claim& claim, bool unanswered,
                   const sql::wakeup_registry& wakeups) const {
  call made{statement::leave};
  made.with.bytes(key).text(core::hex_of(sql::bytes_of(claim.id)));
  const int remember = !unanswered ? 0 : wakeups.only_attempt(claim.id) ? 2 : 1;
  // 0: looking for a holder that nobody waits for is pointless.
  const bool others = !unanswered && wakeups.is_contended(claim.id);
  made.with.number(remember).number(others ? 0 : sql::microseconds(claim.ttl));
  return made;
}

arguments engine::renewal_arguments(const std::vector<spi::claim_ptr>& claims,
                                    const std::string& process) const {
  std::vector<std::string> keys;
  std::vector<std::string> ids;
  for (const spi::claim_ptr& each : claims) {
    keys.push_back(sql::key_of(each->resource));
    ids.emplace_back(sql::bytes_of(each->id));
  }
  arguments with;
  with.list(std::move(keys)).list(std::move(ids)).text(process);
  return with;
}

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

// What only matters if the server's own locks are the holds.
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

std::vector<spi::check> engine::examined(const sql::rows& answer, bool hears) const {
  const server_options& options = *options_;
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

std::vector<spi::check> engine::refused(const error& why) const {
  const server_options& options = *options_;
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
