#include "stores/mariadb/engine.hpp"
#include "stores/mariadb/schema.hpp"
#include "stores/sql/checks.hpp"

#include <utility>

namespace holdfast::mariadb {

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

std::vector<spi::check> examined(const sql::rows& answer, const server_options& options,
                                 bool hears) {
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

std::vector<spi::check> refused(const error& why, const server_options& options) {
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
