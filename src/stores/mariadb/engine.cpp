#include "stores/mariadb/engine.hpp"

#include "core/hex.hpp"
#include "stores/mariadb/notification_listener.hpp"
#include "stores/mariadb/schema.hpp"
#include "stores/sql/checks.hpp"
#include "stores/sql/common/names.hpp"
#include "stores/sql/server_store.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace holdfast::mariadb {

namespace {

// The fast path answers with a number.
bool is_fast_answer(const sql::rows& said) {
  return said.size() == 1 && said.front().find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

std::shared_ptr<sql::connection> engine::make(const net::network& net, manner how,
                                              sql::connection::events tell) const {
  auto make_link = [net, options = options_, how = std::move(how)](
                       std::weak_ptr<sql::link_user> whose, std::size_t turn) {
    return std::make_shared<link>(net, options, std::move(whose), how, turn);
  };
  const std::size_t servers = options_->hosts.size();
  return sql::connection::make(
      net, {std::move(make_link), options_->text(), 1, servers, options_->backoff},
      std::move(tell));
}

std::shared_ptr<sql::notification_listener> engine::make_listener(
    const net::network& net, const std::string& process,
    const std::shared_ptr<sql::switchboard>& board) const {
  const auto connected = [&](sql::connection::events tell) {
    return make(net, {.lock = "hf_" + process}, std::move(tell));
  };
  return notification_listener::make(net, connected, process, board);
}

std::shared_ptr<sql::connection> engine::make_control_connection(const net::network& net,
                                                                 const std::string& process) const {
  auto made = make(net, {.lock = notification_listener::parking_lock(process),
                         .fast_paths = options_->strategy == sql::strategy::lease});
  made->start();  // whether it is used or not: the notification listener needs it to wait
  return made;
}

std::shared_ptr<sql::connection> engine::make_command_connection(const net::network& net) const {
  return make(net, {.fast_paths = true});
}

std::shared_ptr<sql::connection> engine::make_carrier(const net::network& net,
                                                      const std::string& whose,
                                                      sql::connection::events tell) const {
  return make(net, {.lock = "hfn_" + whose, .carries = whose.substr(0, whose.find('/'))},
              std::move(tell));
}

result<std::shared_ptr<spi::store>> open_mariadb(const spi::url& url,
                                                 std::shared_ptr<spi::reactor> reactor,
                                                 const net::backoff_limits& pauses) {
  auto options = options_from(url);
  if (!options) return tl::unexpected(std::move(options.error()));
  options->backoff = pauses;
  auto shared = std::make_shared<const server_options>(*std::move(options));
  return sql::make_store(std::move(reactor), std::make_shared<engine>(std::move(shared)));
}

// A claim that knows of others cannot use the fast path.
call engine::attempt(const std::string& key, const spi::claim& claim, const std::string& process,
                     const sql::wakeup_registry& wakeups) const {
  call made{statement::attempt, sql::attempt_arguments(key, claim, process)};
  if (!wakeups.is_contended(claim.id)) made.fast_path = fast_attempt(key, claim, process);
  return made;
}

result<spi::outcome> engine::to_outcome(const sql::rows& said, const spi::claim& claim) const {
  if (!is_fast_answer(said)) return sql::to_outcome(said);
  return sql::to_outcome({fast_grant(std::stoull(said.front()), claim)}, claim.ttl);
}

call engine::leave(const std::string& key, const spi::claim& claim, bool unanswered,
                   const sql::wakeup_registry& wakeups) const {
  call made{statement::leave};
  made.with.bytes(key).bytes(sql::bytes_of(claim.id));
  made.with.flag(unanswered).number(sql::microseconds(claim.ttl));
  if (!unanswered && !wakeups.is_contended(claim.id)) {
    made.fast_path = fast_leave(key, claim);
  }
  return made;
}

result<spi::departure> engine::to_departure(const sql::rows& said) const {
  return is_fast_answer(said) ? spi::departure::was_holder : sql::to_departure(said);
}

arguments engine::renewal_arguments(const std::vector<spi::claim_ptr>& claims,
                                    const std::string& process) const {
  std::string packed;
  std::vector<std::string> keys;
  std::vector<std::string> ids;
  for (const spi::claim_ptr& each : claims) {
    std::string key = sql::key_of(each->resource);
    pack(packed, key);
    ids.emplace_back(sql::bytes_of(each->id));
    packed += ids.back();
    if (keys.empty() || keys.back() != key) keys.push_back(std::move(key));
  }
  arguments with;
  with.bytes(packed).number(static_cast<std::int64_t>(claims.size()));
  with.numbers(std::move(keys)).numbers(std::move(ids)).bytes(process);
  return with;
}

result<std::vector<spi::renewal>> engine::to_renewals(
    const sql::rows& said, const std::vector<spi::claim_ptr>& claims) const {
  std::map<std::string, std::string> lines;
  for (const std::string& row : said) {
    const std::size_t space = std::min(row.find(' '), row.size());
    lines[row.substr(0, space)] = row.substr(std::min(space + 1, row.size()));
  }
  sql::rows sorted;
  for (const spi::claim_ptr& each : claims) {
    sorted.push_back(lines[core::hex_of(sql::bytes_of(each->id))]);
  }
  return sql::to_renewals(sorted, claims.size());
}

namespace {

using status = spi::check::status;
using sql::facts;

constexpr long long_history = 100'000;  // old versions of rows that cannot be purged yet

spi::check durability(const facts& known) {
  if (known.number("flush") != 1 || known.is_off("doublewrite")) {
    return {"durability", status::warn,
            "innodb_flush_log_at_trx_commit is " + known.text("flush") +
                ", innodb_doublewrite is " + known.text("doublewrite"),
            "after a crash of the machine the last locks may be granted to others; fencing tokens "
            "still "
            "grow. SET GLOBAL innodb_flush_log_at_trx_commit = 1"};
  }
  if (!known.is_off("log_bin") && known.is_off("sync_binlog")) {
    return {"durability", status::warn,
            "commits are durable, their binary log is not (sync_binlog=0)",
            "a replica that takes over after a crash may miss the last locks"};
  }
  return {"durability", status::ok, "commits are durable when they are answered", ""};
}

}  // namespace

std::vector<spi::check> engine::examined(const sql::rows& answer, bool hears) const {
  const server_options& options = *options_;
  const facts known(answer);
  std::vector<spi::check> checks;
  checks.push_back({"server", status::ok, "MariaDB " + known.text("version"), ""});
  checks.push_back({"tables", status::ok,
                    options.prefix + "*, format " + std::to_string(format) + ", " +
                        known.text("resources") + " names",
                    ""});
  if (options.strategy != sql::strategy::lease) {
    checks.push_back(sql::bound_check(options.strategy));
  }
  checks.push_back(durability(known));
  checks.push_back(sql::room(known, sql::connections_of(options.strategy, options.connections)));
  if (known.number("history") > long_history) {
    checks.push_back({"history", status::warn,
                      known.text("history") + " old versions of rows wait to be purged",
                      "an old transaction holds them back, and hot locks get slower; find it with "
                      "SHOW ENGINE INNODB STATUS"});
  }
  const std::string cipher = known.text("tls");
  checks.push_back(sql::tls_check(!cipher.empty() && cipher != "?"));
  checks.push_back(sql::wakeup_check(hears, "the connection for wake-ups listens"));
  return checks;
}

std::vector<spi::check> engine::refused(const error& why) const {
  const server_options& options = *options_;
  spi::check check{"server", status::fail, why.message(), ""};
  if (why == errc::denied && why.detail.find("what to grant") != std::string::npos) {
    check.name = "tables";
    check.remedy = "let an administrator run this once:\n" +
                   installation_for(options.database, options.prefix,
                                    options.user.empty() ? "USER" : options.user);
  } else if (why == errc::denied) {
    check.remedy =
        "check user, password, database, certificate, and the host the user may connect from";
  } else if (why == errc::unavailable) {
    check.remedy = "is the server running, and can this machine reach it?";
  }
  return {std::move(check)};
}

}  // namespace holdfast::mariadb
