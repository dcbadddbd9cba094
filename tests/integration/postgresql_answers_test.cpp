// Requests and answers that are lost, late or truncated: the n-th of each, for every n.
#ifdef HOLDFAST_WITH_POSTGRESQL

#include "integration/postgresql_harness.hpp"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using way = fault_proxy::way;

TEST(postgresql_answers, whatever_answer_is_lost_nothing_is_left_behind) {
  // Broken: an orphan that blocks everybody until its ttl ends, or a lock given twice. All at the
  // same time: most of each run is waiting for what was lost.
  const borrowed_schema schema;
  const client witness = open_client(schema.url());
  ASSERT_THAT(mutex(witness, "stock").acquire(), succeeds());
  std::vector<std::future<void>> rounds;
  for (std::size_t nth = 1; nth <= 12; ++nth) {
    rounds.push_back(in_thread([&, nth] {
      SCOPED_TRACE("answer " + std::to_string(nth));
      const std::string name = "stock/" + std::to_string(nth);
      fault_proxy proxy(shared_postgresql().port());
      client a = open_client(by_port(schema.url("&connections=1"), proxy.port()));
      proxy.swallow(nth % 2 == 0 ? way::to_client : way::to_server, (nth + 1) / 2);
      {
        mutex stock(a, name, {.ttl = 1s});
        auto held = stock.acquire({.wait = patience});
        // A first contact that is lost is given up after connect_timeout; the next one is not lost.
        if (!held && held.error() == errc::unavailable) held = stock.acquire({.wait = patience});
        EXPECT_THAT(held, succeeds());
      }
      a.close();
      EXPECT_TRUE(becomes_free(witness, name));
    }));
  }
  for (auto& each : rounds) each.get();
}

TEST(postgresql_answers, a_request_that_arrives_late_revives_nothing) {
  // Broken: a claim that was given up holds the lock after all, for a whole ttl.
  const borrowed_schema schema;
  const client witness = open_client(schema.url());
  fault_proxy proxy(shared_postgresql().port());
  client a = open_client(by_port(schema.url("&connections=1"), proxy.port()));
  mutex stock(a, "stock", {.ttl = 30s});
  ASSERT_THAT(stock.acquire(), succeeds());
  ASSERT_TRUE(becomes_free(witness, "stock"));
  proxy.hold(way::to_server);
  EXPECT_THAT(stock.acquire({.wait = 200ms}), fails_with(errc::unavailable));
  proxy.pass();
  // What was held arrives now, then the withdrawal: in between the lock is seen held.
  EXPECT_THAT(mutex(witness, "stock").acquire({.wait = 25s}), succeeds());
}

TEST(postgresql_answers, answers_in_single_bytes_are_answers) {
  // Broken: a parser that takes a part for the whole.
  const borrowed_schema schema;
  fault_proxy proxy(shared_postgresql().port());
  proxy.drip(way::to_client);
  const client a = open_client(by_port(schema.url("&connections=1"), proxy.port()));
  EXPECT_THAT(mutex(a, "stock").acquire({.wait = patience}), succeeds());
}

}  // namespace
}  // namespace holdfast::test

#endif
