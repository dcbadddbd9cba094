// A hold that passes to the owner of its token: nothing is renewed any more, and a missing answer
// is neither success nor loss.
#include "support/claim_script.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {
namespace {

using phase = core::claim_machine::phase;

result<spi::granted> transferred_to() { return lease_of(7); }
result<spi::granted> nobody_holds() { return failure(errc::not_held, "not held any more"); }

TEST(claim_machine_detach, nothing_is_renewed_from_then_on) {
  // Broken: a renewal prolongs what nobody holds (I5).
  auto machine = held_claim();
  EXPECT_EQ(said(machine.detach(at(8s))), "transfer");
  EXPECT_EQ(machine.where(), phase::leaving);
  EXPECT_EQ(said(machine.join(at(9s), at(20s))), "");
  EXPECT_EQ(said(machine.tick(at(10s))), "");
  EXPECT_EQ(said(machine.transferred(at(10s), transferred_to())), "detached:ok");
  EXPECT_EQ(machine.where(), phase::ended);
  EXPECT_EQ(machine.wake_at(), time_point::max());
}

TEST(claim_machine_detach, an_engine_that_does_not_have_it_says_that_it_is_lost) {
  // Broken: a token without a hold.
  auto machine = held_claim();
  machine.detach(at(8s));
  EXPECT_EQ(said(machine.transferred(at(8s), nobody_holds())), "detached:lost");
  EXPECT_EQ(machine.where(), phase::ended);
}

TEST(claim_machine_detach, what_the_engine_granted_again_meanwhile_is_another_hold) {
  // Broken: the token has the fence of a hold that has ended, and that others may have followed.
  auto machine = held_claim();
  machine.detach(at(8s));
  EXPECT_EQ(said(machine.transferred(at(8s), lease_of(9))), "detached:lost leave");
  EXPECT_EQ(machine.where(), phase::leaving);
}

TEST(claim_machine_detach, a_request_without_an_answer_is_repeated) {
  // Broken: one broken connection costs the lock of a pipeline.
  auto machine = held_claim();
  machine.detach(at(8s));
  EXPECT_EQ(said(machine.transferred(at(8100ms), no_answer<spi::granted>())), "");
  const time_point again = machine.wake_at();
  EXPECT_LT(again, at(10s));
  EXPECT_EQ(said(machine.tick(again)), "transfer");
  EXPECT_EQ(said(machine.transferred(again + 1ms, transferred_to())), "detached:ok");
}

TEST(claim_machine_detach, no_answer_in_time_is_unknown_and_the_claim_is_left) {
  // Broken: the caller of detach() assumes that the token works, or that it does not, and the lock
  // stays.
  auto machine = held_claim();
  machine.detach(at(8s));
  EXPECT_EQ(said(machine.transferred(at(13s), no_answer<spi::granted>())),
            "detached:unavailable leave");
  EXPECT_EQ(machine.where(), phase::leaving);
  EXPECT_EQ(said(machine.transferred(at(14s), transferred_to())), "");  // of an earlier request
  EXPECT_EQ(said(machine.departed(at(14s), spi::departure::gone)), "");
  EXPECT_EQ(machine.where(), phase::ended);
}

TEST(claim_machine_detach, of_one_that_has_ended_is_lost) {
  // Broken: a token that is dead when it is made.
  auto machine = held_claim();
  EXPECT_EQ(said(machine.detach(at(29699ms))), "detached:lost");
  auto released = held_claim();
  released.release(at(1s));
  EXPECT_EQ(said(released.detach(at(2s))), "detached:lost");
}

TEST(claim_machine_detach, a_client_that_is_closed_waits_for_the_answer_that_is_under_way_only) {
  // Broken: close() cuts off a token that was nearly made, or waits for one forever.
  auto answered = held_claim();
  answered.detach(at(8s));
  EXPECT_EQ(said(answered.close(at(8001ms))), "");
  EXPECT_EQ(said(answered.transferred(at(8002ms), transferred_to())), "detached:ok");
  auto silent = held_claim();
  silent.detach(at(8s));
  silent.close(at(8001ms));
  EXPECT_EQ(said(silent.transferred(at(8002ms), no_answer<spi::granted>())),
            "detached:unavailable leave");
  auto between = held_claim();
  between.detach(at(8s));
  between.transferred(at(8001ms), no_answer<spi::granted>());
  EXPECT_EQ(said(between.close(at(8002ms))), "detached:unavailable leave");
}

TEST(claim_machine_detach, a_renewal_that_was_under_way_changes_nothing) {
  // Broken: its answer brings the hold back, or ends what is being handed over.
  auto machine = held_claim();
  EXPECT_EQ(said(machine.join(at(8s), at(12s))), "renew");
  machine.detach(at(8001ms));
  EXPECT_EQ(said(machine.refreshed(at(8002ms), at(8s), not_there())), "");
  EXPECT_EQ(said(machine.refreshed(at(8003ms), at(8s), renewed(7))), "");
  EXPECT_EQ(said(machine.gone(at(8004ms), {errc::lost, "revoked"})), "");
  EXPECT_EQ(said(machine.transferred(at(8005ms), transferred_to())), "detached:ok");
}

}  // namespace
}  // namespace holdfast::test
