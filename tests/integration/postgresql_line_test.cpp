// The stored functions called one by one: what a line costs, who sits where, what a batch is answered.
#ifdef HOLDFAST_WITH_POSTGRESQL

#include "stores/postgresql/schema.hpp"
#include "support/eventually.hpp"
#include "support/postgresql_server.hpp"
#include "support/postgresql_session.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <future>
#include <string>

namespace holdfast::test {
namespace {

class postgresql_line : public testing::Test {
 protected:
  postgresql_line() { server.run(postgresql::installation(schema)); }

  static std::string url() {
    const std::string whole = shared_postgresql().url("x");
    return whole.substr(0, whole.find('?'));
  }

  postgresql_session server{url()};
  const std::string schema = fresh_schema();
};

TEST_F(postgresql_line, a_batch_of_re_checks_writes_the_name_not_once_for_each) {
  // Broken: each re-check passes the row's versions that those before it left, and a line of thousands
  // keeps the server busy by itself.
  const std::string id = "decode(lpad(to_hex(i), 32, '0'), 'hex')";
  server.ask("SELECT " + schema + ".attempt_1('/x', " + id +
             ", 'a' || i, 'p1', 0::int2, 1, 0, true, true, true, 30000000, 0, 1, '') "
             "FROM generate_series(1, 100) i");
  const auto written = [&] {
    return std::stol(
        server.ask("SELECT pg_stat_get_xact_tuples_updated('" + schema + ".resources'::regclass)")
            .front());
  };
  server.run("BEGIN");  // so that the numbers are of one transaction
  const long before = written();
  const auto answers =
      server.ask("SELECT " + schema + ".renew_1(array_agg('/x'::bytea), array_agg(" + id +
                 "), 'p1') FROM generate_series(1, 100) i");
  const long after = written();
  server.run("COMMIT");
  ASSERT_EQ(answers.size(), 100U);
  EXPECT_EQ(answers.front().substr(0, 4), "r g ");
  EXPECT_EQ(answers.back().substr(0, 2), "w ");
  EXPECT_EQ(after - before, 1);
}

TEST_F(postgresql_line, a_batch_of_renewals_answers_each_claim_in_its_place) {
  // Broken: one statement renews all who are alone on their name, and their answers are told to others.
  const auto attempt = [&](const std::string& name, int number) {
    return server
        .ask("SELECT " + schema + ".attempt_1('" + name + "', '\\x" + std::to_string(number) +
             "', 'a', 'p1', 0::int2, 1, 0, true, true, true, 30000000, 0, 1, '')")
        .front();
  };
  const auto fence = [](const std::string& grant) {
    const auto at = grant.find("g ") + 2;
    return grant.substr(at, grant.find(' ', at) - at);
  };
  const std::string first = attempt("/a", 10);
  const std::string other = attempt("/c", 11);
  attempt("/c", 12);
  const std::string last = attempt("/d", 13);
  const auto answers =
      server.ask("SELECT " + schema +
                 ".renew_1(ARRAY['/a', '/b', '/c', '/c', '/d']::bytea[], "
                 "ARRAY['\\x10', '\\x20', '\\x11', '\\x12', '\\x13']::bytea[], 'p1')");
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
  const auto attempt = [&](const std::string& id) {
    return server
        .ask("SELECT " + schema + ".attempt_1('/x', '\\x" + id +
             "', 'public', 'p1', 0::int2, 1, 0, true, true, true, 30000000, 0, 1, '')")
        .front()
        .substr(0, 3);
  };
  const auto leave = [&](const std::string& id, const std::string& ttl) {
    return server.ask("SELECT " + schema + ".leave_1('/x', '\\x" + id + "', 0::int2, " + ttl + ")")
        .front();
  };
  // Who sits, how many wait, and how many are in the other table.
  const auto look = [&] {
    return server
        .ask("SELECT concat_ws(' ', encode((seat).id, 'hex'), waiting, (SELECT count(*) FROM " +
             schema + ".claims)) FROM " + schema + ".resources")
        .front();
  };
  attempt("01");  // the name's first time makes its row, the long way
  EXPECT_EQ(leave("01", "30000000"), "h");
  attempt("01");
  EXPECT_EQ(attempt("02"), "b 1");
  EXPECT_EQ(attempt("03"), "b 1");
  EXPECT_EQ(look(), "01 2 2");
  server.ask("SELECT " + schema + R"(.renew_1('{"/x"}', '{"\\x03"}', 'p1'))");
  EXPECT_EQ(look(), "01 2 2");
  EXPECT_EQ(leave("01", "30000000"), "h");  // it has not heard of them
  EXPECT_EQ(look(), "02 1 1");
  const auto renewed = server.ask("SELECT " + schema + R"(.renew_1('{"/x"}', '{"\\x02"}', 'p1'))");
  EXPECT_EQ(renewed.front().substr(0, 4), "r g ");
  EXPECT_TRUE(renewed.front().ends_with(" 0 1")) << "a lease now, and somebody waits";
  EXPECT_EQ(look(), "1 2");  // with somebody waiting it is renewed the long way
  EXPECT_EQ(leave("02", "0"), "h");
  EXPECT_EQ(look(), "03 0 0");
  EXPECT_EQ(leave("03", "0"), "h");
  EXPECT_EQ(look(), "0 0");
  attempt("04");
  EXPECT_EQ(look(), "04 0 0");
}

TEST_F(postgresql_line, a_hand_over_that_waited_for_the_name_finds_its_row_where_it_is_now) {
  // Broken: the row has moved meanwhile, and who is handed the lock is in no table any more.
  const auto attempt = [&](const std::string& id) {
    server.ask("SELECT " + schema + ".attempt_1('/x', '\\x" + id +
               "', 'public', 'p1', 0::int2, 1, 0, true, true, true, 30000000, 0, 1, '')");
  };
  attempt("01");
  server.run("BEGIN");  // has the row's lock, and moves it three times
  for (const char* id : {"02", "03", "04"}) attempt(id);
  auto left = std::async(std::launch::async, [&] {
    postgresql_session other{url()};
    return other.ask("SELECT " + schema + ".leave_1('/x', '\\x01', 0::int2, 0)").front();
  });
  postgresql_session witness{url()};
  EXPECT_TRUE(eventually([&] {
    return witness
               .ask(
                   "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query "
                   "LIKE '%" +
                   schema + ".leave_1%'")
               .front() == "1";
  }));
  server.run("COMMIT");
  EXPECT_EQ(left.get(), "h");
  EXPECT_EQ(
      server
          .ask("SELECT concat_ws(' ', encode((seat).id, 'hex'), waiting, (SELECT count(*) FROM " +
               schema + ".claims)) FROM " + schema + ".resources")
          .front(),
      "02 2 2");
}

}  // namespace
}  // namespace holdfast::test

#endif
