// The stored functions called one by one: what a line costs, who sits where, what a batch is answered.
#ifdef HOLDFAST_WITH_POSTGRESQL

#include "stores/postgresql/schema.hpp"
#include "support/eventually.hpp"
#include "support/postgresql_calls.hpp"
#include "support/postgresql_server.hpp"
#include "support/postgresql_session.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

class postgresql_line : public testing::Test {
 protected:
  postgresql_line() { server.run(postgresql::installation(schema)); }

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
  std::vector<std::string> renew(const std::vector<spi::claim>& claims) {
    std::string keys;
    std::string ids;
    for (const spi::claim& each : claims) {
      keys += (keys.empty() ? "" : ", ") + literal(sql::key_of(each.resource));
      ids += (ids.empty() ? "" : ", ") + literal(sql::bytes_of(each.id));
    }
    return server.ask("SELECT " + schema + ".renew_1(ARRAY[" + keys + "], ARRAY[" + ids +
                      "], 'p1')");
  }
  // Who sits, who is beside the seat, how many more wait, and how many are in the other table.
  std::string look() {
    return server
        .ask(
            "SELECT concat_ws(' ', coalesce(left(seat, 2), '-'), coalesce(left(next, 2), '-'), "
            "waiting, "
            "(SELECT count(*) FROM " +
            schema + ".claims)) FROM " + schema + ".resources")
        .front();
  }

  // From now on it is 1000000000, until time is let pass.
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
  // A leave_1 of this schema.
  bool waits_for_the_row() {
    postgresql_session witness{url()};
    return eventually([&] {
      return witness
                 .ask(
                     "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND "
                     "query LIKE '%" +
                     schema + ".leave_1%'")
                 .front() == "1";
    });
  }

  const std::string schema = fresh_schema();
  postgresql_session server{url()};
};

TEST_F(postgresql_line, a_batch_of_re_checks_writes_the_name_not_once_for_each) {
  // Broken: each re-check passes the row's versions that those before it left, and a line of thousands
  // keeps the server busy by itself.
  std::vector<spi::claim> claims;
  for (std::uint8_t i = 1; i <= 100; ++i) claims.push_back(claim_on("x", i));
  for (const spi::claim& each : claims) call(attempt_call(each, "p1"));
  const auto written = [&] {
    return std::stol(
        server.ask("SELECT pg_stat_get_xact_tuples_updated('" + schema + ".resources'::regclass)")
            .front());
  };
  server.run("BEGIN");  // so that the numbers are of one transaction
  const long before = written();
  const auto answers = renew(claims);
  const long after = written();
  server.run("COMMIT");
  ASSERT_EQ(answers.size(), 100U);
  EXPECT_EQ(answers.front().substr(0, 4), "r g ");
  EXPECT_EQ(answers.back().substr(0, 2), "w ");
  EXPECT_EQ(after - before, 1);
}

TEST_F(postgresql_line, a_batch_of_renewals_answers_each_claim_in_its_place) {
  // Broken: one statement renews all who are alone on their name, and their answers are told to others.
  const auto fence = [](const std::string& grant) {
    const auto at = grant.find("g ") + 2;
    return grant.substr(at, grant.find(' ', at) - at);
  };
  const std::string first = attempt("a", 10);
  const std::string other = attempt("c", 11);
  attempt("c", 12);
  const std::string last = attempt("d", 13);
  const auto answers = renew({claim_on("a", 10), claim_on("b", 20), claim_on("c", 11),
                              claim_on("c", 12), claim_on("d", 13)});
  ASSERT_EQ(answers.size(), 5U);
  EXPECT_EQ(fence(answers[0]), fence(first));
  EXPECT_EQ(answers[1].substr(0, 2), "l ");
  EXPECT_EQ(fence(answers[2]), fence(other));
  EXPECT_EQ(answers[3].substr(0, 2), "w ");
  EXPECT_EQ(fence(answers[4]), fence(last));
  for (const std::size_t i : {0U, 2U, 4U}) EXPECT_EQ(answers[i].substr(0, 4), "r g ");
}

TEST_F(postgresql_line, the_next_one_takes_the_seat_and_the_line_leaves_it_there) {
  // Broken: each hand-over and each wait moves the holder between two tables, the long way.
  attempt("x", 1);  // the name's first time makes its row, the long way
  EXPECT_EQ(leave("x", 1, 30'000'000), "h");
  attempt("x", 1);
  EXPECT_EQ(look(), "01 - 0 0");
  EXPECT_EQ(attempt("x", 2).substr(0, 3), "b 1");
  EXPECT_EQ(look(), "01 02 0 0");
  EXPECT_EQ(attempt("x", 3).substr(0, 3), "b 1");
  EXPECT_EQ(attempt("x", 4).substr(0, 3), "b 1");
  EXPECT_EQ(look(), "01 02 2 2");
  EXPECT_EQ(leave("x", 1, 30'000'000), "h");  // it has not heard of them
  EXPECT_EQ(look(), "02 - 2 2");
  EXPECT_EQ(renew({claim_on("x", 4)}).front().substr(0, 2), "w ");
  EXPECT_EQ(look(), "02 - 2 2") << "who waits for it needs nothing of it";
  EXPECT_EQ(leave("x", 2, -1), "h");
  EXPECT_EQ(look(), "03 - 1 1");
  const auto renewed = renew({claim_on("x", 3)});
  EXPECT_EQ(renewed.front().substr(0, 4), "r g ");
  EXPECT_TRUE(renewed.front().ends_with(" 0 1")) << "a lease now, and somebody waits";
  EXPECT_EQ(look(), "- - 1 2") << "with somebody waiting it is renewed the long way";
  EXPECT_EQ(leave("x", 3, 0), "h");
  EXPECT_EQ(look(), "04 - 0 0");
  EXPECT_EQ(leave("x", 4, 0), "h");
  EXPECT_EQ(look(), "- - 0 0");
  attempt("x", 5);
  EXPECT_EQ(look(), "05 - 0 0");
}

TEST_F(postgresql_line, who_is_beside_the_seat_keeps_its_place_in_the_other_table) {
  // Broken: the first in line is behind those who came later, or looks as if it came just now.
  attempt("x", 1);
  leave("x", 1, 30'000'000);
  for (std::uint8_t number = 1; number <= 3; ++number) attempt("x", number);
  EXPECT_EQ(look(), "01 02 1 1");
  const auto seen = server.ask("SELECT " + schema + ".inspect_1(" + literal("/x") + ")");
  EXPECT_EQ(look(), "- - 2 3");
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0].substr(0, 18), "h " + spi::public_id(claim_on("x", 1).id));
  EXPECT_EQ(seen[1].substr(0, 18), "w " + spi::public_id(claim_on("x", 2).id));
  EXPECT_EQ(seen[2].substr(0, 18), "w " + spi::public_id(claim_on("x", 3).id));
  EXPECT_EQ(server.ask("SELECT " + schema + ".list_1('', '\\xff')").front(),
            sql::to_hex("/x") + " 1 2 0");
}

TEST_F(postgresql_line, nothing_is_lost_on_the_way_from_the_seat_into_the_other_table) {
  // Broken: a claim with another end, fence, age or payload than the one that was asked for.
  set_clock();
  attempt("x", 1);
  leave("x", 1, 30'000'000);
  pass(1'000);  // 1000001000
  spi::claim holder = claim_on("x", 1);
  holder.fence_block = 33;
  holder.payload = "host 1";
  holder.lock_delay = std::chrono::seconds(3);
  holder.fair = false;
  EXPECT_EQ(call(attempt_call(holder, "p1")), "g 1000001000");
  pass(500);
  spi::claim next = claim_on("x", 2);
  next.fence_block = 7;
  next.ttl = std::chrono::seconds(1);
  next.renewed = false;
  EXPECT_EQ(call(attempt_call(next, "p2")), "b 1 29999500 1000001500 " + sql::to_hex("host 1"));
  attempt("x", 3);
  const auto rows = [&] {
    server.ask("SELECT " + schema + ".inspect_1(" + literal("/x") + ")");
    return server.ask(
        "SELECT concat_ws(' ', left(encode(id, 'hex'), 2), standing, place, process, public, mode, "
        "permits, fair, renewed, revoked, offer, told, fence, block, since, ends, ttl, delay, "
        "convert_from(payload, 'UTF8')) FROM " +
        schema + ".claims ORDER BY id");
  };
  const auto in_words = [](const spi::claim& of, const std::string& before,
                           const std::string& after) {
    return before + " " + spi::public_id(of.id) + " 0 " + after;
  };
  const std::string third =
      in_words(claim_on("x", 3), "03 2 2 p1", "1 t t f f f 0 1 1000001500 1030001500 30000000 0 ");
  EXPECT_EQ(
      rows(),
      (std::vector<std::string>{
          in_words(holder, "01 1 0 p1",
                   "1 f t f f t 1000001000 33 1000001000 1030001000 30000000 3000000 host 1"),
          in_words(next, "02 2 1 p2", "1 t f f f f 0 7 1000001500 1030001500 1000000 0 "), third}));
  // And of one that was handed over.
  EXPECT_EQ(leave("x", 1, 0), "h");
  EXPECT_EQ(leave("x", 2, 0), "h");
  EXPECT_EQ(look(), "03 - 0 0");
  pass(200);
  attempt("x", 4);
  EXPECT_EQ(look(), "03 04 0 0");
  pass(100);
  EXPECT_EQ(leave("x", 3, 0), "h");
  EXPECT_EQ(look(), "04 - 0 0");
  EXPECT_EQ(rows(), std::vector<std::string>{
                        in_words(claim_on("x", 4), "04 1 0 p1",
                                 "1 t t f t f 1000001800 1 1000001800 1002001800 30000000 0 ")});
}

TEST_F(postgresql_line, who_is_beside_the_seat_is_listed) {
  attempt("x", 1);
  leave("x", 1, 30'000'000);
  attempt("x", 1);
  attempt("x", 2);
  EXPECT_EQ(look(), "01 02 0 0");
  EXPECT_EQ(server.ask("SELECT " + schema + ".list_1('', '\\xff')").front(),
            sql::to_hex("/x") + " 1 1 0");
}

TEST_F(postgresql_line, an_offer_counts_from_when_the_row_was_had) {
  // Broken: a release that waited long for the row makes an offer that is over when it is heard of.
  set_clock();
  attempt("x", 1);
  leave("x", 1, 30'000'000);
  pass(1'000);
  attempt("x", 1);
  attempt("x", 2);
  EXPECT_EQ(look(), "01 02 0 0");
  server.run("BEGIN");
  server.ask("SELECT id FROM " + schema + ".resources FOR UPDATE");
  auto left = std::async(std::launch::async, [&] {
    postgresql_session other{url()};
    return other.ask("SELECT " + schema + "." + leave_call(claim_on("x", 1), 0, 0)).front();
  });
  EXPECT_TRUE(waits_for_the_row());
  pass(5'000'000);
  server.run("COMMIT");
  EXPECT_EQ(left.get(), "h");
  EXPECT_EQ(look(), "02 - 0 0");
  EXPECT_EQ(server.ask("SELECT next_end FROM " + schema + ".resources").front(),
            std::to_string(1'000'001'000 + 5'000'000 + 2'000'000));
}

TEST_F(postgresql_line, a_hand_over_that_waited_for_the_name_finds_its_row_where_it_is_now) {
  // Broken: the row has moved meanwhile, and who is handed the lock is in no table any more.
  attempt("x", 1);
  server.run("BEGIN");  // has the row's lock, and moves it three times
  for (std::uint8_t number = 2; number <= 4; ++number) attempt("x", number);
  auto left = std::async(std::launch::async, [&] {
    postgresql_session other{url()};
    return other.ask("SELECT " + schema + "." + leave_call(claim_on("x", 1), 0, 30'000'000))
        .front();
  });
  EXPECT_TRUE(waits_for_the_row());
  server.run("COMMIT");
  EXPECT_EQ(left.get(), "h");
  EXPECT_EQ(look(), "02 - 2 2");
}

}  // namespace
}  // namespace holdfast::test

#endif
