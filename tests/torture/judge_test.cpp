// Every checker convicts a history that breaks its rule, and acquits one that does not.
#include "torture/client_processes.hpp"
#include "torture/history.hpp"

#include <gtest/gtest.h>

namespace holdfast::torture {
namespace {

using what = sim::what;

TEST(judge, acquits_holds_that_follow_each_other) {
  EXPECT_EQ(history().held(0, 10, 1, 1, 5).held(11, 20, 2, 2, 6).findings(), "");
}

TEST(judge, sees_two_valid_holders) {
  EXPECT_EQ(history().held(0, 30, 1, 1, 5).held(20, 40, 2, 2, 6).findings(),
            "at most one valid holder");
}

TEST(judge, a_killed_client_holds_nothing_any_more) {
  history told;
  told.asks(0, 1, 1).granted(0, 1, 1, 5).line(10, what::killed, 1).held(20, 30, 2, 2, 6);
  EXPECT_EQ(told.findings(), "");
}

TEST(judge, a_grant_while_the_killing_signal_is_on_its_way_is_over_at_once) {
  // Broken: a false alarm in every run that kills clients.
  history told;
  told.asks(0, 1, 1).line(9, what::killed, 1).ends(9, 1, 1).granted(10, 1, 1, 5);
  EXPECT_EQ(told.held(20, 30, 2, 2, 6).findings(), "");
}

TEST(judge, what_a_stated_limit_excuses_is_not_judged_but_for_fences) {
  const auto failover = static_cast<std::int64_t>(fault::failover);
  history excused;
  excused.forgets(fault::failover).held(0, 300, 1, 1, 5).held(150, 310, 2, 2, 6);
  excused.line(100, what::trouble_began, sim::nobody, sim::nobody, 0, failover);
  excused.line(120, what::trouble_ended, sim::nobody, sim::nobody, 0, failover);
  EXPECT_EQ(excused.findings(), "");
  history later;
  later.forgets(fault::failover).held(5000, 5300, 1, 1, 5).held(5150, 5310, 2, 2, 6);
  later.line(100, what::trouble_began, sim::nobody, sim::nobody, 0, failover);
  later.line(120, what::trouble_ended, sim::nobody, sim::nobody, 0, failover);
  EXPECT_EQ(later.findings(), "at most one valid holder");
  history fences;
  fences.forgets(fault::failover).held(0, 50, 1, 1, 5).held(150, 310, 2, 2, 4);
  fences.line(100, what::trouble_began, sim::nobody, sim::nobody, 0, failover);
  fences.line(120, what::trouble_ended, sim::nobody, sim::nobody, 0, failover);
  EXPECT_EQ(fences.findings(), "fence order");
}

TEST(judge, sees_a_reader_beside_a_writer_but_readers_may_share) {
  const sim::facts::resource rule{sim::resource_kind::shared, 1};
  history readers(rule);
  readers.as(spi::mode::shared).held(0, 30, 1, 1, 5).held(20, 40, 2, 2, 6);
  EXPECT_EQ(readers.findings(), "");
  history mixed(rule);
  mixed.as(spi::mode::shared).held(0, 30, 1, 1, 5).as(spi::mode::exclusive).held(20, 40, 2, 2, 6);
  EXPECT_EQ(mixed.findings(), "reader-writer");
}

TEST(judge, counts_permits) {
  history told({sim::resource_kind::semaphore, 2});
  told.as(spi::mode::permit).held(0, 50, 1, 1, 5).held(10, 50, 2, 2, 6);
  EXPECT_EQ(told.findings(), "");
  told.held(20, 50, 3, 3, 7);
  EXPECT_EQ(told.findings(), "permits");
}

TEST(judge, sees_a_fence_that_does_not_grow) {
  EXPECT_EQ(history().held(0, 10, 1, 1, 5).held(20, 30, 2, 2, 5).findings(), "fence order");
  EXPECT_EQ(history().held(0, 10, 1, 1, 5).held(20, 30, 2, 2, 4).findings(), "fence order");
}

TEST(judge, sees_a_valid_holders_write_refused_by_its_fence) {
  history told;
  // Requested before the other ended, so that only the resource shows it.
  told.asks(0, 2, 2).asks(0, 1, 1).granted(1, 1, 1, 9);
  told.line(2, what::write_accepted, 1, 1, 9, 1).ends(3, 1, 1);
  told.granted(4, 2, 2, 5).line(5, what::write_refused, 2, 2, 5, 1).ends(6, 2, 2);
  EXPECT_EQ(told.findings(), "fenced writes");
}

TEST(judge, a_stale_write_that_is_refused_is_what_fences_are_for) {
  history told;
  told.held(0, 10, 1, 1, 5).held(20, 40, 2, 2, 6);
  told.line(30, what::write_accepted, 2, 2, 6, 1).line(35, what::write_refused, 1, 1, 5, 0);
  EXPECT_EQ(told.findings(), "");
}

TEST(judge, sees_a_fair_waiter_passed_over) {
  history told;
  told.fair().asks(0, 1, 1).granted(0, 1, 1, 5);
  told.asks(100, 2, 2).asks(400, 3, 3).ends(500, 1, 1);
  told.granted(501, 3, 3, 6).ends(510, 3, 3).granted(511, 2, 2, 7).ends(512, 2, 2);
  EXPECT_EQ(told.findings(), "FIFO");
}

// The first holds; the second is in the queue when the third asks, a millisecond later.
history a_line() {
  history told;
  told.fair().asks(0, 1, 1).granted(0, 1, 1, 5);
  told.asks(100, 2, 2).in_line(101, 2, 2).asks(102, 3, 3).in_line(103, 3, 3).ends(110, 1, 1);
  return told;
}

TEST(judge, sees_a_waiter_overtaken_by_one_that_asked_a_moment_later) {
  // Broken: an order that is only right to the second.
  EXPECT_EQ(a_line().granted(111, 2, 2, 6).ends(112, 2, 2).granted(113, 3, 3, 7).findings(), "");
  EXPECT_EQ(a_line().granted(111, 3, 3, 6).ends(112, 3, 3).granted(113, 2, 2, 7).findings(),
            "FIFO");
  EXPECT_EQ(a_line().granted(111, 3, 3, 6).gives_up(4100, 2, 2, errc::timed_out).findings(),
            "FIFO");
}

TEST(judge, a_slow_grant_at_the_beginning_is_no_sign_of_an_offer_that_ran_out) {
  // Broken: on a slow machine the first waiters of a run may pass each other.
  EXPECT_EQ(a_line().granted(311, 3, 3, 6).ends(312, 3, 3).granted(313, 2, 2, 7).findings(),
            "FIFO");
}

// Fair: the third asks a moment after the second, and is granted first.
std::string passed_over(history told, int asks) {
  told.fair().asks(0, 1, 1).granted(0, 1, 1, 5);
  told.asks(asks, 2, 2).in_line(asks + 1, 2, 2).asks(asks + 2, 3, 3).in_line(asks + 3, 3, 3);
  told.ends(asks + 10, 1, 1).granted(asks + 11, 3, 3, 6).ends(asks + 12, 3, 3);
  return told.granted(asks + 13, 2, 2, 7).findings();
}

TEST(judge, a_waiter_that_is_reconnecting_may_be_passed_over) {
  // Broken: a false alarm if a client waits again before its notification connection is back.
  const auto kill_server = static_cast<int>(fault::kill_server);
  history told;
  told.line(0, what::trouble_began, sim::nobody, sim::nobody, 0, kill_server);
  told.line(120, what::trouble_ended, sim::nobody, sim::nobody, 0, kill_server);
  EXPECT_EQ(passed_over(told, 1000), "");
  EXPECT_EQ(passed_over(told, 3000), "FIFO");
}

TEST(judge, a_waiter_whose_client_has_just_started_may_be_passed_over) {
  // Broken: a false alarm where a client waits before its notification connection is there.
  history told;
  told.line(0, what::started, 2, sim::nobody, 0, 1);
  EXPECT_EQ(passed_over(told, 1000), "");
  EXPECT_EQ(passed_over(told, 3000), "FIFO");
}

TEST(judge, an_offer_to_a_waiter_whose_withdrawal_was_cut_off_runs_out) {
  // Broken: a false alarm if a client gave up just before its network did.
  const auto truncate = static_cast<int>(fault::truncate);
  const auto passed_over = [&](bool disturbed) {
    history told;
    told.fair().asks(0, 1, 1).granted(0, 1, 1, 5);
    told.asks(100, 2, 2).in_line(101, 2, 2).asks(102, 3, 3).in_line(103, 3, 3);
    told.gives_up(110, 2, 2, errc::cancelled);
    if (disturbed) told.line(111, what::trouble_began, 2, sim::nobody, 0, truncate);
    told.ends(115, 1, 1);
    if (disturbed) told.line(500, what::trouble_ended, 2, sim::nobody, 0, truncate);
    told.asks(1110, 4, 4).granted(1116, 4, 4, 6).ends(1117, 4, 4);
    return told.granted(1200, 3, 3, 7).findings();
  };
  EXPECT_EQ(passed_over(true), "");
  EXPECT_EQ(passed_over(false), "FIFO");
}

TEST(judge, a_fault_of_the_network_goes_on_for_the_process_that_replaces_one) {
  // Broken: a false alarm if a client was killed while answers to it were cut off, which cost the
  // next one its connections.
  const auto truncate = static_cast<int>(fault::truncate);
  const auto passed_over = [&](bool disturbed) {
    history told;
    told.fair().line(0, what::started, 2, sim::nobody, 0, 1);
    told.asks(1, 1, 1).granted(1, 1, 1, 5);
    if (disturbed) told.line(100, what::trouble_began, 2, sim::nobody, 0, truncate);
    told.line(110, what::killed, 2).line(120, what::started, 4, sim::nobody, 0, 1);
    told.asks(3200, 4, 4).in_line(3201, 4, 4).asks(3210, 3, 3).in_line(3211, 3, 3);
    told.ends(3220, 1, 1).granted(3221, 3, 3, 6).ends(3222, 3, 3);
    if (disturbed) told.line(3230, what::trouble_ended, 2, sim::nobody, 0, truncate);
    return told.granted(3240, 4, 4, 7).findings();
  };
  EXPECT_EQ(passed_over(true), "");
  EXPECT_EQ(passed_over(false), "FIFO");
}

TEST(judge, a_waiter_that_asked_before_the_other_knew_its_place_may_come_first) {
  // Broken: a false alarm whenever two ask at once.
  history told;
  told.fair().asks(0, 1, 1).granted(0, 1, 1, 5).asks(100, 2, 2).asks(102, 3, 3);
  told.in_line(103, 3, 3).in_line(104, 2, 2).ends(110, 1, 1);
  EXPECT_EQ(told.granted(111, 3, 3, 6).ends(112, 3, 3).granted(113, 2, 2, 7).findings(), "");
}

TEST(judge, a_waiter_that_does_not_know_its_place_is_not_judged) {
  // Broken: a false alarm on a busy machine, where an attempt arrived later than the margin allows.
  history told = a_line().granted(111, 2, 2, 6).ends(112, 2, 2).granted(113, 3, 3, 7);
  told.ends(114, 3, 3).asks(1000, 4, 4).asks(1400, 5, 5);
  told.granted(1401, 5, 5, 8).ends(1410, 5, 5).granted(1411, 4, 4, 9).ends(1412, 4, 4);
  EXPECT_EQ(told.findings(), "");
}

TEST(judge, a_try_must_not_pass_a_fair_waiter_either) {
  history told = a_line();
  told.line(111, what::acquire_invoked, 4, 4).granted(112, 4, 4, 6).ends(113, 4, 4);
  EXPECT_EQ(told.granted(114, 2, 2, 7).findings(), "FIFO");
}

TEST(judge, a_waiter_that_left_the_queue_is_not_overtaken) {
  // Broken: a false alarm at the end of a run, when all are cancelled.
  EXPECT_EQ(a_line().granted(111, 3, 3, 6).gives_up(112, 2, 2, errc::cancelled).findings(), "");
  // Its patience was over before the other was granted; it says so a little later.
  history told = a_line();
  for (sim::record& each : told.told().records) {
    if (each.hold == 2) each.until = std::chrono::milliseconds(10);
  }
  EXPECT_EQ(told.granted(111, 3, 3, 6).gives_up(112, 2, 2, errc::timed_out).findings(), "");
}

TEST(judge, a_fair_waiter_that_was_stopped_may_lose_its_turn) {
  history told;
  told.fair().asks(0, 1, 1).granted(0, 1, 1, 5);
  told.asks(100, 2, 2).line(150, what::paused, 2).asks(400, 3, 3).ends(500, 1, 1);
  told.granted(501, 3, 3, 6).ends(510, 3, 3).line(600, what::resumed, 2);
  told.granted(700, 2, 2, 7).ends(712, 2, 2);
  EXPECT_EQ(told.findings(), "");
  // No matter by whom: a busy machine does it too.
  history busy = a_line();
  busy.line(105, what::paused, 2, sim::nobody, 0, 1).granted(111, 3, 3, 6).ends(112, 3, 3);
  busy.line(600, what::resumed, 2, sim::nobody, 0, 1).granted(700, 2, 2, 7).ends(701, 2, 2);
  EXPECT_EQ(busy.findings(), "");
}

TEST(judge, sees_a_waiter_that_nobody_wakes) {
  history told;
  told.held(0, 10, 1, 1, 5).asks(5, 2, 2).granted(4000, 2, 2, 6).ends(4001, 2, 2);
  EXPECT_EQ(told.findings(), "no lost wake-up");
}

TEST(judge, a_waiter_cut_off_is_not_woken_and_one_behind_a_holder_waits) {
  const auto partition = static_cast<std::int64_t>(fault::partition);
  history cut;
  cut.held(0, 10, 1, 1, 5).asks(5, 2, 2);
  cut.line(20, what::trouble_began, 2, sim::nobody, 0, partition);
  cut.line(3900, what::trouble_ended, 2, sim::nobody, 0, partition);
  EXPECT_EQ(cut.granted(4000, 2, 2, 6).ends(4001, 2, 2).findings(), "");
  history busy;
  busy.held(0, 4000, 1, 1, 5).asks(5, 2, 2).granted(4001, 2, 2, 6).ends(4002, 2, 2);
  EXPECT_EQ(busy.findings(), "");
}

TEST(judge, sees_a_latch_that_opens_early) {
  history told;
  const auto add = [&](int at, what kind, std::int64_t number) {
    told.line(at, kind, 1, sim::nobody, 0, number);
    told.told().records.back().resource = first_latch;
  };
  add(0, what::latch_set, 2);
  add(1, what::latch_down, 0);
  add(2, what::latch_told, 0);
  EXPECT_EQ(told.findings(), "latch");
}

TEST(judge, sees_clients_that_die_or_never_end_and_what_they_leave) {
  EXPECT_EQ(history().line(0, what::ended, 1, sim::nobody, 0, 0).findings(), "");
  EXPECT_EQ(history().line(0, what::ended, 1, sim::nobody, 0, signalled + 11).findings(),
            "every process ends");
  EXPECT_EQ(history().line(0, what::ended, 1, sim::nobody, 0, never_ended).findings(),
            "every process ends");
  EXPECT_EQ(history().line(0, what::left_behind, sim::nobody, 1, 0, 2).findings(),
            "nothing left behind");
}

TEST(judge, shows_only_what_convicts) {
  // Broken: a violation in a run of an hour, and nobody finds it.
  history told;
  for (int i = 0; i < 100; ++i) {
    told.held(i * 10, i * 10 + 5, 1, i + 1, static_cast<std::uint64_t>(i) + 1);
  }
  told.held(2000, 2030, 1, 201, 500).held(2020, 2040, 2, 202, 501);
  ASSERT_EQ(told.findings(), "at most one valid holder");
  const finding found = judge(told.told()).violations.front();
  EXPECT_LE(found.slice.size(), 8U) << to_text(found);
  EXPECT_NE(to_text(found).find("hold 202"), std::string::npos);
}

}  // namespace
}  // namespace holdfast::torture
