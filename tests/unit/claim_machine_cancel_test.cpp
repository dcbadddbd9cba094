// Cancellation in every state of an acquisition: it is answered once, and nothing of the claim
// stays behind, whatever the engine answers afterwards.
#include "support/claim_script.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace holdfast::test {
namespace {

using core::claim_machine;
using phase = claim_machine::phase;

struct situation {
  std::string name;
  std::function<void(claim_machine&)> reach;  // ends before at(10s)
  std::string answer;                         // to a cancellation
};

void PrintTo(const situation& where, std::ostream* out) { *out << where.name; }

// Everything an engine may still say to a claim that was cancelled.
void say_everything_late(claim_machine& machine, time_point now) {
  EXPECT_EQ(said(machine.attempted(now, at(0s), granted(7))), "");
  EXPECT_EQ(said(machine.attempted(now, at(0s), blocked_in_line(1s))), "");
  EXPECT_EQ(said(machine.attempted(now, at(0s), no_answer<spi::outcome>())), "");
  EXPECT_EQ(said(machine.watched(now, spi::armed::recheck)), "");
  EXPECT_EQ(said(machine.watched(now, no_answer<spi::armed>())), "");
  EXPECT_EQ(said(machine.notified(now, offer(7, 10s))), "");
  EXPECT_EQ(said(machine.notified(now, std::nullopt)), "");
  EXPECT_EQ(said(machine.refreshed(now, at(0s), renewed(7))), "");
  EXPECT_EQ(said(machine.refreshed(now, at(0s), not_there())), "");
  EXPECT_EQ(said(machine.gone(now, {errc::lost, "gone"})), "");
  EXPECT_EQ(said(machine.cancel(now, {errc::cancelled, ""})), "");
}

class claim_machine_cancel : public ::testing::TestWithParam<situation> {};

TEST_P(claim_machine_cancel, is_answered_once_and_leaves_no_claim) {
  // Broken: a cancelled waiter keeps its place, its lock or its watchdog (redisson#4368).
  claim_machine machine(usual_settings());
  GetParam().reach(machine);
  EXPECT_EQ(said(machine.cancel(at(10s), {errc::cancelled, ""})), GetParam().answer);
  say_everything_late(machine, at(10s + 1ms));
  if (machine.where() == phase::leaving) {
    // Not under the caller's token: repeated until it is answered.
    EXPECT_EQ(said(machine.departed(at(11s), no_answer<spi::departure>())), "");
    const std::string again = said(machine.tick(machine.wake_at()));
    EXPECT_TRUE(again == "leave" || again == "leave+tombstone") << again;
    EXPECT_EQ(said(machine.departed(at(12s), spi::departure::was_holder)), "");
  }
  EXPECT_EQ(machine.where(), phase::ended);
  say_everything_late(machine, at(13s));
  EXPECT_EQ(machine.wake_at(), time_point::max());
}

const situation situations[] = {
    {"before_it_began", [](claim_machine&) {}, "settle:cancelled"},
    {"first_attempt_on_its_way", [](claim_machine& machine) { machine.start(at(0s)); },
     "settle:cancelled leave+tombstone"},
    {"attempt_on_its_way_and_woken",
     [](claim_machine& machine) {
       machine.start(at(0s));
       machine.notified(at(1ms), std::nullopt);
     },
     "settle:cancelled leave+tombstone"},
    {"pausing_after_no_answer",
     [](claim_machine& machine) {
       machine.start(at(0s));
       machine.attempted(at(5s), at(0s), no_answer<spi::outcome>());
     },
     "settle:cancelled leave+tombstone"},
    {"second_attempt_on_its_way",
     [](claim_machine& machine) {
       machine.start(at(0s));
       machine.attempted(at(5s), at(0s), no_answer<spi::outcome>());
       machine.tick(at(6s));
     },
     "settle:cancelled leave+tombstone"},
    {"in_line",
     [](claim_machine& machine) {
       machine.start(at(0s));
       machine.attempted(at(1ms), at(0s), blocked_in_line(1ms));
     },
     "settle:cancelled leave"},
    {"refreshing_its_place",
     [](claim_machine& machine) {
       machine.start(at(0s));
       machine.attempted(at(1ms), at(0s), blocked_in_line(1ms));
       machine.tick(at(2s));
     },
     "settle:cancelled leave"},
    {"in_line_during_an_outage",
     [](claim_machine& machine) {
       machine.start(at(0s));
       machine.attempted(at(1ms), at(0s), blocked_in_line(1ms));
       machine.tick(at(2s));
       machine.refreshed(at(7s), at(2s), no_renewal());
     },
     "settle:cancelled leave"},
    {"arming_a_watch",
     [](claim_machine& machine) {
       machine.start(at(0s));
       machine.attempted(at(1ms), at(0s), blocked_outside());
     },
     "settle:cancelled leave"},
    {"watching",
     [](claim_machine& machine) {
       machine.start(at(0s));
       machine.attempted(at(1ms), at(0s), blocked_outside());
       machine.watched(at(2ms), spi::armed::no_gap);
     },
     "settle:cancelled leave"},
    {"after_a_grant_too_late_to_use",
     [](claim_machine& machine) {
       machine.start(at(-40s));
       machine.attempted(at(0s), at(-40s), granted(7));
     },
     "settle:cancelled leave"},
};

INSTANTIATE_TEST_SUITE_P(everywhere, claim_machine_cancel, ::testing::ValuesIn(situations),
                         [](const auto& each) { return each.param.name; });

TEST(claim_machine_cancellation, of_a_granted_claim_comes_too_late) {
  // Broken: the caller has a lease but is told that it was cancelled, or loses what it was granted.
  claim_machine machine(usual_settings());
  machine.start(at(0s));
  machine.attempted(at(1ms), at(0s), granted(7));
  EXPECT_EQ(said(machine.cancel(at(2ms), {errc::cancelled, ""})), "");
  EXPECT_EQ(machine.where(), phase::held);
}

TEST(claim_machine_cancellation, in_the_last_try_withdraws_too) {
  // Broken: a claim cancelled between its deadline and the last answer stays in the queue.
  auto settings = usual_settings();
  settings.deadline = at(1s);
  claim_machine machine(settings);
  machine.start(at(0s));
  machine.attempted(at(1ms), at(0s), blocked_in_line(1ms));
  machine.tick(at(1s));
  EXPECT_EQ(said(machine.cancel(at(1s + 1ms), {errc::cancelled, ""})),
            "settle:cancelled leave+tombstone");
}

}  // namespace
}  // namespace holdfast::test
