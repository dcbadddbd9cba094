// The stored procedures against the reference.
#ifdef HOLDFAST_WITH_MARIADB

#include "core/hex.hpp"
#include "integration/sql_reference.hpp"
#include "stores/mariadb/engine.hpp"
#include "stores/mariadb/schema.hpp"
#include "stores/mariadb/statement.hpp"
#include "stores/sql/common/names.hpp"
#include "stores/sql/statement.hpp"
#include "support/eventually.hpp"
#include "support/mariadb_server.hpp"
#include "support/mariadb_session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using mariadb::arguments;
using mariadb::statement;

class mariadb_rules : public sql_rules {
 public:
  mariadb_rules()
      : prefix_(fresh_prefix()),
        server_(shared_mariadb().port()),
        listener_(shared_mariadb().port()) {
    server_.ask("SET SESSION tx_isolation = 'READ-COMMITTED', time_zone = '+00:00'");
    for (const std::string& each : mariadb::installation(prefix_)) server_.ask(each);
    // A clock that the test sets.
    server_.ask("CREATE OR REPLACE PROCEDURE " + prefix_ + "clock_3(OUT t BIGINT) SET t = @hf_now");
    server_.ask("CALL " + prefix_ + "prepare_3()");
    // The holder of these locks gets a message; it never sleeps, so it is never killed.
    for (std::uint64_t process = 1; process <= 3; ++process) {
      listener_.ask("SELECT GET_LOCK('hf_" + sql_process_name(process) + "', 0)");
    }
  }

  sql::rows attempt(time now, const spi::claim& claim, const std::string& process) override {
    const std::string key = sql::key_of(claim.resource);
    if (by_fast_path(now, mariadb::fast_attempt(key, claim, process))) {
      return {mariadb::fast_grant(mysql_insert_id(server_.get()), claim)};
    }
    return call(now, statement::attempt, sql::attempt_arguments(key, claim, process));
  }
  sql::rows leave(time now, const spi::claim& claim, remember how) override {
    const std::string fast_path = mariadb::fast_leave(sql::key_of(claim.resource), claim);
    if (how == remember::no && by_fast_path(now, fast_path)) return {"h"};
    arguments with = named(claim);
    with.flag(how != remember::no).number(sql::microseconds(claim.ttl));
    return call(now, statement::leave, with);
  }
  sql::rows renew(time now, const std::vector<spi::claim_ptr>& claims,
                  const std::string& process) override {
    std::map<std::string, std::string> lines;  // by owner
    for (const std::string& line :
         call(now, statement::renew, engine_.renewal_arguments(claims, process))) {
      const std::size_t space = line.find(' ');
      lines[line.substr(0, space)] = line.substr(space + 1);
    }
    sql::rows sorted;
    for (const auto& each : claims) sorted.push_back(lines[core::hex_of(sql::bytes_of(each->id))]);
    return sorted;
  }
  sql::rows change(time now, const spi::claim& claim, spi::mode to,
                   const std::string& process) override {
    arguments with = named(claim);
    with.bytes(process).number(static_cast<int>(to));
    return call(now, statement::change, with);
  }
  sql::rows transfer(time now, const spi::claim_id& from, const spi::claim& to,
                     const std::string& process, bool remember) override {
    arguments with;
    with.bytes(sql::key_of(to.resource)).bytes(sql::bytes_of(from)).bytes(sql::bytes_of(to.id));
    with.bytes(spi::public_id(to.id)).bytes(process).flag(to.renewed);
    with.number(sql::microseconds(to.ttl)).bytes(to.payload).flag(remember);
    return call(now, statement::transfer, with);
  }
  sql::rows revoke(time now, const spi::resource_id& resource, bool force) override {
    arguments with;
    with.bytes(sql::key_of(resource)).flag(force).bytes("");
    return call(now, statement::revoke, with);
  }
  sql::rows change_latch(time now, const spi::resource_id& resource,
                         const spi::latch_change& change) override {
    arguments with;
    with.bytes(sql::key_of(resource)).flag(change.what == spi::latch_change::kind::set);
    with.number(change.count).bytes(sql::bytes_of(change.id));
    with.number(sql::microseconds(change.life));
    return call(now, statement::change_latch, with);
  }
  sql::rows read_latch(time now, const spi::resource_id& resource) override {
    arguments with;
    with.bytes(sql::key_of(resource));
    return call(now, statement::read_latch, with);
  }
  sql::rows inspect(time now, const spi::resource_id& resource) override {
    arguments with;
    with.bytes(sql::key_of(resource));
    return call(now, statement::inspect, with);
  }
  std::vector<std::pair<std::string, std::string>> heard() override {
    std::vector<std::pair<std::string, std::string>> all;
    for (const std::string& row : server_.ask("SELECT CONCAT(process, ' ', content) FROM " +
                                              prefix_ + "messages ORDER BY seq")) {
      const std::size_t space = row.find(' ');
      all.emplace_back(row.substr(0, space), row.substr(space + 1));
    }
    if (!all.empty()) server_.ask("DELETE FROM " + prefix_ + "messages");
    return all;
  }

 private:
  static arguments named(const spi::claim& claim) {
    arguments with;
    with.bytes(sql::key_of(claim.resource)).bytes(sql::bytes_of(claim.id));
    return with;
  }

  // Whether the fast path was taken.
  bool by_fast_path(time now, const std::string& statement) {
    if (statement.empty()) return false;
    const auto seconds = std::chrono::floor<std::chrono::seconds>(now);
    std::string fraction = std::to_string((now - seconds).count());
    fraction.insert(0, 6 - fraction.size(), '0');
    server_.ask("SET timestamp = " + std::to_string(seconds.count()) + "." + fraction);
    server_.ask(statement);
    return mysql_affected_rows(server_.get()) == 1;
  }

  sql::rows call(time now, statement which, const arguments& with) {
    server_.ask("SET @hf_now = " + std::to_string(now.count()));
    sql::rows lines;
    for (const std::string& row : server_.ask(mariadb::text_of(which, with, prefix_))) {
      std::istringstream text(row);
      for (std::string line; std::getline(text, line);) lines.push_back(line);
    }
    return lines;
  }

  const mariadb::engine engine_{std::make_shared<const mariadb::server_options>()};
  const std::string prefix_;
  mariadb_session server_;
  mariadb_session listener_;
};

TEST(mariadb_reference, the_same_verbs_get_the_same_answers) {
  // Broken: a lock that behaves differently in the database than in memory.
  mariadb_rules rules;
  compare_with_reference(rules, 15);
}

TEST(mariadb_renewal, that_waited_for_the_row_does_not_shorten_a_later_one) {
  // Broken: the end that the later one was answered is taken back, and others get in while its holder is valid.
  const std::string prefix = fresh_prefix();
  mariadb_session server(shared_mariadb().port());
  mariadb_session early(shared_mariadb().port());
  mariadb_session witness(shared_mariadb().port());
  for (mariadb_session* each : {&server, &early}) {
    each->ask("SET SESSION tx_isolation = 'READ-COMMITTED', time_zone = '+00:00'");
  }
  for (const std::string& each : mariadb::installation(prefix)) server.ask(each);
  server.ask("CREATE TABLE " + prefix + "now AS SELECT 1000000000 AS now");
  server.ask("CREATE OR REPLACE PROCEDURE " + prefix +
             "clock_3(OUT t BIGINT) SELECT now INTO t FROM " + prefix + "now");
  const auto claim = std::make_shared<spi::claim>();
  claim->id.bytes[0] = 1;
  claim->resource = {"", "x"};
  claim->ttl = std::chrono::seconds(30);
  const mariadb::engine engine(std::make_shared<const mariadb::server_options>());
  server.ask(
      mariadb::text_of(statement::attempt, sql::attempt_arguments("/x", *claim, "p1"), prefix));
  server.ask("START TRANSACTION");
  server.ask("SELECT id FROM " + prefix + "resources FOR UPDATE");
  auto answer = std::async(std::launch::async, [&] {
    return early
        .ask(mariadb::text_of(statement::renew, engine.renewal_arguments({claim}, "p1"), prefix))
        .front();
  });
  const std::string updating =
      "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'Updating' AND id = ";
  EXPECT_TRUE(eventually(
      [&] { return witness.ask(updating + std::to_string(early.id())).front() == "1"; }));
  witness.ask("UPDATE " + prefix + "now SET now = now + 5000000");
  // What a renewal writes now.
  server.ask("UPDATE " + prefix + "resources SET next_end = 1035000000");
  server.ask("COMMIT");
  EXPECT_THAT(answer.get(),
              testing::StartsWith("01" + std::string(30, '0') + " r g 1000000000 30000000 "));
  EXPECT_EQ(server.ask("SELECT next_end FROM " + prefix + "resources").front(), "1035000000");
}

}  // namespace
}  // namespace holdfast::test

#endif
