// The stored functions of strategy=lease called one by one, with a clock that the test may set.
#pragma once

#include "stores/postgresql/schema.hpp"
#include "support/eventually.hpp"
#include "support/postgresql_calls.hpp"
#include "support/postgresql_server.hpp"
#include "support/postgresql_session.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::test {

class postgresql_by_hand : public testing::Test {
 protected:
  postgresql_by_hand() {
    server.run(postgresql::installation(schema));
    for (const char* process : {"p1", "p2"}) listeners.ask(listening_call(process));
  }

  static std::string url() {
    const std::string whole = shared_postgresql().url("x");
    return whole.substr(0, whole.find('?'));
  }
  std::string call(const std::string& what) {
    return server.ask("SELECT " + schema + "." + what).front();
  }
  std::string attempt(const std::string& name, std::uint8_t number) {
    return call(attempt_call(claim_on(name, number), "p1"));
  }
  // `heard`: of others, as a client says it.
  std::string leave(const std::string& name, std::uint8_t number, std::int64_t heard) {
    return call(leave_call(claim_on(name, number), 0, heard));
  }
  std::vector<std::string> renew(const std::vector<spi::claim>& claims, postgresql_session& over) {
    std::string keys;
    std::string ids;
    for (const spi::claim& each : claims) {
      keys += (keys.empty() ? "" : ", ") + literal(sql::key_of(each.resource));
      ids += (ids.empty() ? "" : ", ") + literal(sql::bytes_of(each.id));
    }
    return over.ask("SELECT " + schema + ".renew_3(ARRAY[" + keys + "], ARRAY[" + ids + "], 'p1')");
  }
  std::vector<std::string> renew(const std::vector<spi::claim>& claims) {
    return renew(claims, server);
  }
  // The inline holder, how many wait, and how many are in the other table.
  std::string look() {
    return server
        .ask(
            "SELECT concat_ws(' ', coalesce(left(inline_holder, 2), '-'), waiting, "
            "(SELECT count(*) FROM " +
            schema + ".claims)) FROM " + schema + ".resources")
        .front();
  }

  // For each row of that table: which claim, and whether it holds (1) or waits (2).
  std::vector<std::string> standing() {
    return server.ask("SELECT concat(left(encode(id, 'hex'), 2), ' ', standing) FROM " + schema +
                      ".claims ORDER BY id");
  }

  // From now on it is 1000000000, until pass() is called.
  void set_clock() {
    server.run("CREATE TABLE " + schema + ".now AS SELECT 1000000000::bigint AS t");
    server.run("CREATE OR REPLACE FUNCTION " + schema +
               ".clock() RETURNS bigint LANGUAGE sql VOLATILE AS 'SELECT t FROM " + schema +
               ".now'");
  }
  void pass(int microseconds) {
    postgresql_session{url()}.run("UPDATE " + schema + ".now SET t = t + " +
                                  std::to_string(microseconds));
  }
  // A call of this schema.
  bool waits_for_the_row(const std::string& function = "leave_3") {
    postgresql_session witness{url()};
    return eventually([&] {
      return witness
                 .ask(
                     "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND "
                     "query LIKE '%" +
                     schema + "." + function + "%'")
                 .front() == "1";
    });
  }

  const std::string schema = fresh_schema();
  postgresql_session server{url()};
  postgresql_session listeners{url()};
};

}  // namespace holdfast::test
