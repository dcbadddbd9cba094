// What a queue costs, and how a batch is answered.
#ifdef HOLDFAST_WITH_POSTGRESQL

#include "integration/postgresql_by_hand.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using postgresql_line = postgresql_by_hand;

TEST_F(postgresql_line, a_batch_of_re_checks_writes_the_name_not_once_for_each) {
  // Broken: each re-check scans the dead row versions of earlier ones, and a queue of thousands
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
  // Broken: one statement renews all holders that are alone on their name, and their answers go to
  // others.
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

}  // namespace
}  // namespace holdfast::test

#endif
