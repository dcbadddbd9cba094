// The holder that is stored in the row of its name, and what happens to it.
#ifdef HOLDFAST_WITH_POSTGRESQL

#include "core/hex.hpp"
#include "integration/postgresql_by_hand.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using postgresql_inline = postgresql_by_hand;

TEST_F(postgresql_inline, the_next_in_line_becomes_the_holder_and_the_queue_leaves_it_there) {
  // Broken: each hand-over and each wait moves the holder between two tables, on the slow path.
  set_clock();
  attempt("x", 1);
  EXPECT_EQ(leave("x", 1, 30'000'000), "h");
  EXPECT_EQ(look(), "- 0 0");
  pass(1);
  attempt("x", 1);
  EXPECT_EQ(look(), "01 0 0");
  EXPECT_EQ(attempt("x", 2).substr(0, 3), "b 1");
  EXPECT_EQ(look(), "01 1 1");
  EXPECT_EQ(attempt("x", 3).substr(0, 3), "b 1");
  EXPECT_EQ(attempt("x", 4).substr(0, 3), "b 1");
  EXPECT_EQ(look(), "01 3 3");
  EXPECT_EQ(leave("x", 1, 30'000'000), "h");  // it has not heard of them
  EXPECT_EQ(look(), "02 2 2");
  EXPECT_EQ(renew({claim_on("x", 4)}).front().substr(0, 2), "w ");
  EXPECT_EQ(look(), "02 2 2") << "a waiter needs nothing of it";
  EXPECT_EQ(leave("x", 2, 0), "h");
  EXPECT_EQ(look(), "03 1 1");
  const auto renewed = renew({claim_on("x", 3)});
  EXPECT_EQ(renewed.front().substr(0, 4), "r g ");
  EXPECT_TRUE(renewed.front().ends_with(" 0 1")) << "a lease now, and somebody waits";
  EXPECT_EQ(look(), "- 1 2") << "with somebody waiting it is renewed the long way";
  EXPECT_EQ(leave("x", 3, 0), "h");
  EXPECT_EQ(look(), "04 0 0");
  EXPECT_EQ(leave("x", 4, 0), "h");
  EXPECT_EQ(look(), "- 0 0");
  pass(10);
  attempt("x", 5);
  EXPECT_EQ(look(), "05 0 0");
}

TEST_F(postgresql_inline, the_waiter_keeps_its_place_in_the_other_table) {
  // Broken: the first waiter is behind later ones, or looks as if it had just arrived.
  attempt("x", 1);
  leave("x", 1, 30'000'000);
  for (std::uint8_t number = 1; number <= 3; ++number) attempt("x", number);
  EXPECT_EQ(look(), "01 2 2");
  const auto seen = server.ask("SELECT " + schema + ".inspect_3(" + literal("/x") + ")");
  EXPECT_EQ(look(), "- 2 3");
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0].substr(0, 18), "h " + spi::public_id(claim_on("x", 1).id));
  EXPECT_EQ(seen[1].substr(0, 18), "w " + spi::public_id(claim_on("x", 2).id));
  EXPECT_EQ(seen[2].substr(0, 18), "w " + spi::public_id(claim_on("x", 3).id));
  EXPECT_EQ(server.ask("SELECT " + schema + ".list_3('', '\\xff')").front(),
            core::hex_of("/x") + " 1 2 0");
}

TEST_F(postgresql_inline, nothing_is_lost_on_the_way_into_the_other_table) {
  // Broken: a claim with another end, fence, age or payload than requested.
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
  EXPECT_EQ(call(attempt_call(next, "p2")), "b 1 29999500 1000001500 " + core::hex_of("host 1"));
  attempt("x", 3);
  const auto rows = [&] {
    server.ask("SELECT " + schema + ".inspect_3(" + literal("/x") + ")");
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
  EXPECT_EQ(look(), "03 0 0");
  pass(200);
  attempt("x", 4);
  EXPECT_EQ(look(), "03 1 1");
  pass(100);
  EXPECT_EQ(leave("x", 3, 0), "h");
  EXPECT_EQ(look(), "04 0 0");
  EXPECT_EQ(rows(), std::vector<std::string>{
                        in_words(claim_on("x", 4), "04 1 0 p1",
                                 "1 t t f t f 1000001800 1 1000001800 1002001800 30000000 0 ")});
  // And after it was accepted.
  EXPECT_EQ(leave("x", 4, 0), "h");
  attempt("x", 5);
  attempt("x", 6);
  EXPECT_EQ(leave("x", 5, 0), "h");
  pass(300);
  EXPECT_EQ(renew({claim_on("x", 6)}).front(), "r g 1000001802 30000000 1000002100 0 0");
  EXPECT_EQ(look(), "06 0 0");
  EXPECT_EQ(rows(), std::vector<std::string>{
                        in_words(claim_on("x", 6), "06 1 0 p1",
                                 "1 t t f f f 1000001802 1 1000001800 1030002100 30000000 0 ")});
}

TEST_F(postgresql_inline, the_waiter_is_listed) {
  attempt("x", 1);
  leave("x", 1, 30'000'000);
  attempt("x", 1);
  attempt("x", 2);
  EXPECT_EQ(look(), "01 1 1");
  EXPECT_EQ(server.ask("SELECT " + schema + ".list_3('', '\\xff')").front(),
            core::hex_of("/x") + " 1 1 0");
}

TEST_F(postgresql_inline, an_offer_counts_from_when_the_row_was_had) {
  // Broken: a release that waited long for the row makes an offer that is over by the time it
  // arrives.
  set_clock();
  attempt("x", 1);
  leave("x", 1, 30'000'000);
  pass(1'000);
  attempt("x", 1);
  attempt("x", 2);
  EXPECT_EQ(look(), "01 1 1");
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
  EXPECT_EQ(look(), "02 0 0");
  EXPECT_EQ(server.ask("SELECT next_end FROM " + schema + ".resources").front(),
            std::to_string(1'000'001'000 + 5'000'000 + 2'000'000));
}

TEST_F(postgresql_inline, a_renewal_that_waited_for_the_row_does_not_shorten_a_later_one) {
  // Broken: the end that the later one was answered is taken back, and others get in while its holder is valid.
  set_clock();
  attempt("x", 1);
  server.run("BEGIN");
  server.ask("SELECT id FROM " + schema + ".resources FOR UPDATE");
  auto early = std::async(std::launch::async, [&] {
    postgresql_session other{url()};
    return renew({claim_on("x", 1)}, other).front();
  });
  EXPECT_TRUE(waits_for_the_row("renew_3"));
  pass(5'000'000);
  EXPECT_EQ(renew({claim_on("x", 1)}).front(), "r g 1000000000 30000000 1005000000 0 0");
  server.run("COMMIT");
  EXPECT_EQ(early.get(), "r g 1000000000 30000000 1000000000 0 0");
  EXPECT_EQ(server.ask("SELECT next_end FROM " + schema + ".resources").front(), "1035000000");
}

TEST_F(postgresql_inline, a_hand_over_that_waited_for_the_name_finds_its_row_where_it_is_now) {
  // Broken: the row has moved meanwhile, and the claim that is handed the lock is in no table any
  // more.
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
  EXPECT_EQ(look(), "02 2 2");
}

TEST_F(postgresql_inline, a_holder_whose_time_is_over_holds_nothing) {
  // Broken: a lease that has ended is released or renewed as if it had not.
  set_clock();
  attempt("x", 1);
  pass(30'000'000);
  EXPECT_EQ(renew({claim_on("x", 1)}).front().substr(0, 2), "l ");
  EXPECT_EQ(leave("x", 1, 30'000'000), "n");
  pass(1'000);
  attempt("x", 2);
  pass(30'000'000);
  EXPECT_EQ(look(), "02 0 0");
  EXPECT_EQ(leave("x", 2, 30'000'000), "n");
}

TEST_F(postgresql_inline, a_holder_whose_time_is_over_hands_nothing_over) {
  // Broken: it is told that it released what had been lost.
  set_clock();
  attempt("x", 1);
  pass(10'000'000);
  attempt("x", 2);
  pass(20'000'000);
  EXPECT_EQ(look(), "01 1 1");
  EXPECT_EQ(leave("x", 1, 0), "n");
  EXPECT_EQ(look(), "- 0 1") << "and the next one holds, the long way";
}

TEST_F(postgresql_inline, a_waiter_that_was_silent_too_long_is_handed_nothing) {
  // Broken: an offer to a client that has not been heard from for half a minute.
  set_clock();
  spi::claim longer = claim_on("x", 1);
  longer.ttl = std::chrono::seconds(60);
  call(attempt_call(longer, "p1"));
  attempt("x", 2);
  pass(30'000'000);
  EXPECT_EQ(look(), "01 1 1");
  EXPECT_EQ(leave("x", 1, 0), "h");
  EXPECT_EQ(look(), "- 0 0");
}

TEST_F(postgresql_inline, fences_grow_over_a_clock_that_is_set_back) {
  // Broken: a resource that checks fences refuses the new holder.
  set_clock();
  EXPECT_EQ(attempt("x", 1), "g 1000000000");
  attempt("x", 2);
  pass(-5'000);
  EXPECT_EQ(leave("x", 1, 0), "h");
  EXPECT_EQ(look(), "02 0 0");
  EXPECT_EQ(server.ask("SELECT last FROM " + schema + ".resources").front(), "1000000001");
}

TEST_F(postgresql_inline, a_silent_waiter_is_passed_over) {
  // Broken: each claim of a process that sleeps costs those behind it an offer.
  set_clock();
  for (std::uint8_t number = 1; number <= 3; ++number) attempt("x", number);
  EXPECT_EQ(leave("x", 1, 0), "h");
  EXPECT_EQ(look(), "02 1 1");
  pass(1'000'000);
  attempt("x", 4);
  pass(1'000'000);  // the offer runs out
  attempt("x", 5);
  EXPECT_EQ(standing(), (std::vector<std::string>{"03 2", "04 1", "05 2"}));
  EXPECT_EQ(leave("x", 4, 0), "h");
  EXPECT_EQ(look(), "05 1 1");
  // Once it is heard from, it has its place again.
  attempt("x", 6);
  EXPECT_EQ(renew({claim_on("x", 3)}).front().substr(0, 2), "w ");
  EXPECT_EQ(leave("x", 5, 0), "h");
  EXPECT_EQ(look(), "03 1 1");
}

TEST_F(postgresql_inline, a_waiter_that_does_not_listen_is_passed_over_without_an_offer) {
  // Broken: each process that was killed in the queue costs those behind it 2 s.
  for (const std::int64_t heard : {30'000'000, 0}) {
    server.run("TRUNCATE " + schema + ".claims, " + schema + ".resources");
    attempt("x", 1);
    const std::string gone = "gone" + schema;
    for (std::uint8_t number = 2; number <= 4; ++number) {
      call(attempt_call(claim_on("x", number), gone));
    }
    attempt("x", 5);
    EXPECT_EQ(leave("x", 1, heard), "h");
    EXPECT_EQ(look(), "05 3 3");
    EXPECT_EQ(standing(), (std::vector<std::string>{"02 2", "03 2", "04 2"}));
    // Nor does it keep a newcomer waiting, once nobody else is there.
    EXPECT_EQ(leave("x", 5, heard), "h");
    EXPECT_EQ(attempt("x", 6).substr(0, 2), "g ");
    EXPECT_EQ(leave("x", 6, heard), "h");
    // It may be alive and just not connected: a claim that asks is answered.
    EXPECT_EQ(call(attempt_call(claim_on("x", 3), gone)).substr(0, 2), "g ");
  }
}

TEST_F(postgresql_inline, an_observer_hears_of_a_hand_over) {
  // Broken: a dashboard on which a lock changes hands without ever being released.
  set_clock();
  attempt("x", 1);
  attempt("x", 2);
  EXPECT_EQ(look(), "01 1 1");
  server.run("LISTEN hf_p9");
  server.ask("SELECT " + schema + ".interest_3(ARRAY[" + literal("/x") +
             "], ARRAY[]::bytea[], 'p9', 30000000)");
  EXPECT_EQ(leave("x", 1, 0), "h");
  std::vector<std::string> heard;
  for (const auto& [channel, message] : server.heard()) heard.push_back(message.substr(0, 10));
  EXPECT_EQ(heard, (std::vector<std::string>{"e released", "e granted "}));
}

TEST_F(postgresql_inline, the_waiter_is_answered_when_it_asks_again) {
  // Broken: it is told that it is lost, or waits twice.
  set_clock();
  attempt("x", 1);
  attempt("x", 2);
  EXPECT_EQ(renew({claim_on("x", 2)}).front().substr(0, 2), "w ");
  EXPECT_EQ(look(), "01 1 1");
  server.run("TRUNCATE " + schema + ".claims, " + schema + ".resources");
  attempt("x", 3);
  attempt("x", 4);
  EXPECT_EQ(look(), "03 1 1");
  EXPECT_EQ(attempt("x", 4).substr(0, 3), "b 1");
  EXPECT_EQ(look(), "- 1 2");
}

TEST_F(postgresql_inline, a_reader_is_handed_it_as_a_reader) {
  // Broken: a reader is handed the lock as if it were a writer.
  set_clock();
  attempt("x", 1);
  spi::claim reader = claim_on("x", 2);
  reader.mode = spi::mode::shared;
  EXPECT_EQ(call(attempt_call(reader, "p1")).substr(0, 3), "b 1");
  EXPECT_EQ(look(), "01 1 1");
  EXPECT_EQ(leave("x", 1, 0), "h");
  EXPECT_EQ(look(), "- 0 1");
  EXPECT_EQ(server.ask("SELECT concat(holders, exclusive) FROM " + schema + ".resources").front(),
            "10");
}

TEST_F(postgresql_inline, an_end_of_before_means_nothing_to_the_next_holder) {
  // Broken: a waiter asks again when a hold would have ended that was released long before.
  set_clock();
  attempt("x", 1);
  EXPECT_EQ(leave("x", 1, 30'000'000), "h");
  pass(1'000);
  server.ask("SELECT " + schema + ".interest_3(ARRAY[" + literal("/z") +
             "], ARRAY[]::bytea[], 'p9', 30000000)");  // no fast paths
  spi::claim longer = claim_on("x", 2);
  longer.ttl = std::chrono::seconds(60);
  call(attempt_call(longer, "p1"));
  EXPECT_EQ(server.ask("SELECT next_end FROM " + schema + ".resources").front(), "1060001000");
}

TEST_F(postgresql_inline, nobody_is_inline_where_there_are_tombstones) {
  // Broken: a late attempt of a withdrawn claim is queued, and handed the lock.
  set_clock();
  for (std::uint8_t number = 1; number <= 3; ++number) attempt("x", number);
  EXPECT_EQ(call(leave_call(claim_on("x", 9), 1, 30'000'000)), "n");
  EXPECT_EQ(look(), "- 2 3");
  EXPECT_EQ(leave("x", 1, 0), "h");
  EXPECT_EQ(look(), "- 1 2") << "the long way";
  EXPECT_EQ(attempt("x", 9), "e lost left before");
}

TEST_F(postgresql_inline, another_process_that_renews_is_the_one_to_push_to) {
  // Broken: a client that is gone is notified of a waiter.
  set_clock();
  attempt("x", 1);
  EXPECT_EQ(server
                .ask("SELECT " + schema + ".renew_3(ARRAY[" + literal("/x") + "], ARRAY[" +
                     literal(sql::bytes_of(claim_on("x", 1).id)) + "], 'p2')")
                .front()
                .substr(0, 4),
            "r g ");
  EXPECT_EQ(server.ask("SELECT process FROM " + schema + ".claims").front(), "p2");
}

}  // namespace
}  // namespace holdfast::test

#endif
