#include "fault/scenarios.hpp"

#include "core/lease_token.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {

namespace {

// An unanswered request costs a third of the ttl, a lost offer two seconds, a re-check one: any
// single fault is over after this.
constexpr duration recovery = 6s;

// The next waiter gets the lock, and soon.
void expect_free_for_others(fault_world& world) {
  auto next = world.ask(world.third());
  world.expect_granted(next, recovery);
  if (next->granted) next->granted->release();
}

// What a caller does with a verb that is safe to repeat.
result<void> change_until_answered(fault_world& world, const question_ptr& asked, spi::mode to) {
  result<void> last = failure(errc::unavailable);
  for (int tries = 0; tries < 5 && !last && last.error() == errc::unavailable; ++tries) {
    bool answered = false;
    asked->granted->change(to, [&](result<void> answer) {
      last = std::move(answer);
      answered = true;
    });
    EXPECT_TRUE(world.wait_until([&] { return answered; }, usual_ttl));
  }
  return last;
}

spi::latch_state change_latch(fault_world& world, spi::store& store,
                              const spi::latch_change& change) {
  for (int tries = 0; tries < 5; ++tries) {
    std::optional<result<spi::latch_state>> answer;
    store.change_latch({"", "gate"}, change, {.deadline = world.runtime().now() + 2s},
                       [&answer](result<spi::latch_state> given) { answer = std::move(given); });
    EXPECT_TRUE(world.wait_until([&] { return answer.has_value(); }, 3s));
    if (answer && *answer) return **answer;
    EXPECT_EQ((*answer).error(), errc::unavailable) << (*answer).error().message();
  }
  ADD_FAILURE() << "the latch was never changed";
  return {};
}

std::uint32_t read_latch(fault_world& world, spi::store& store) {
  for (int tries = 0; tries < 5; ++tries) {
    std::optional<result<spi::latch_state>> answer;
    store.read_latch({"", "gate"}, {.deadline = world.runtime().now() + 2s},
                     [&answer](result<spi::latch_state> given) { answer = std::move(given); });
    EXPECT_TRUE(world.wait_until([&] { return answer.has_value(); }, 3s));
    if (answer && *answer) return (*answer)->count.value_or(1000);
  }
  return 1001;
}

spi::latch_change latch_step(spi::latch_change::kind what, std::uint32_t count, std::uint8_t id) {
  spi::latch_change change;
  change.what = what;
  change.count = count;
  change.id.bytes[0] = id;
  change.life = 1h;
  return change;
}

}  // namespace

void alone(fault_world& world) {
  const auto asked = world.ask(world.troubled());
  world.expect_granted(asked, recovery);
  world.expect_hold(asked, 15s);
  world.expect_release(asked);
  expect_free_for_others(world);
}

void waiting(fault_world& world) {
  const auto holder = world.ask(world.other());
  world.expect_granted(holder, 0s);
  const auto asked = world.ask(world.troubled());
  world.pass(4s);
  EXPECT_EQ(asked->state(), "waiting");
  world.expect_release(holder);
  world.expect_granted(asked, recovery);
  world.expect_hold(asked, 10s);
  world.expect_release(asked);
  expect_free_for_others(world);
}

void fair_line(fault_world& world) {
  auto fair = brief_request();
  fair.lock.fair = true;
  const auto holder = world.ask(world.other(), fair);
  world.expect_granted(holder, 0s);
  const auto first = world.ask(world.troubled(), fair);
  world.pass(4s);
  const auto second = world.ask(world.third(), fair);
  const auto last = world.ask(world.troubled(), fair);
  world.pass(1s);
  world.expect_release(holder);
  world.expect_granted(first, recovery);
  EXPECT_FALSE(second->answered()) << "overtaken";
  world.expect_hold(first, 3s);
  world.expect_release(first);
  world.expect_granted(second, recovery);
  world.expect_hold(second, 3s);
  world.expect_release(second);
  world.expect_granted(last, recovery);
  world.expect_release(last);
}

void holding(fault_world& world) {
  const auto holder = world.ask(world.troubled());
  world.expect_granted(holder, recovery);
  const auto asked = world.ask(world.other());
  world.expect_hold(holder, 8s);
  EXPECT_EQ(asked->state(), "waiting");
  world.expect_release(holder);
  world.expect_granted(asked, recovery);
  world.expect_hold(asked, 5s);
  world.expect_release(asked);
}

void trying(fault_world& world) {
  const auto free = world.ask(world.troubled(), brief_request("stock", 0s));
  EXPECT_TRUE(world.wait_until([&] { return free->answered(); }, recovery));
  if (free->granted) {
    world.expect_release(free);
  } else {
    EXPECT_EQ(free->state(), "unavailable");  // never busy: nobody has it
  }
  world.pass(20s);  // what the try may have left is gone
  const auto holder = world.ask(world.other());
  world.expect_granted(holder, 0s);
  const auto held = world.ask(world.troubled(), brief_request("stock", 0s));
  EXPECT_TRUE(world.wait_until([&] { return held->answered(); }, recovery));
  EXPECT_TRUE(held->state() == "busy" || held->state() == "unavailable") << held->state();
  world.expect_hold(holder, 5s);
  world.expect_release(holder);
  expect_free_for_others(world);
}

void timing_out(fault_world& world) {
  const auto holder = world.ask(world.other());
  world.expect_granted(holder, 0s);
  const auto asked = world.ask(world.troubled(), brief_request("stock", 3s));
  EXPECT_TRUE(world.wait_until([&] { return asked->answered(); }, 3200ms)) << "the wait is bounded";
  EXPECT_TRUE(asked->state() == "timed out" || asked->state() == "unavailable") << asked->state();
  world.expect_hold(holder, 5s);
  world.expect_release(holder);
  expect_free_for_others(world);
}

void cancelling(fault_world& world) {
  const auto holder = world.ask(world.other());
  world.expect_granted(holder, 0s);
  const auto asked = world.ask(world.troubled());
  world.pass(1500ms);
  asked->handle->cancel();
  EXPECT_EQ(asked->state(), "cancelled");
  world.expect_hold(holder, 1s);
  world.expect_release(holder);
  expect_free_for_others(world);
}

void cancelling_at_once(fault_world& world) {
  const auto asked = world.ask(world.troubled());
  asked->handle->cancel();
  if (!asked->granted) {
    EXPECT_EQ(asked->state(), "cancelled");
  }
  if (asked->granted) world.expect_release(asked);
  expect_free_for_others(world);
}

void changing(fault_world& world) {
  const auto writer = world.ask(world.troubled());
  world.expect_granted(writer, recovery);
  auto shared = brief_request();
  shared.mode = spi::mode::shared;
  const auto reader = world.ask(world.other(), shared);
  world.expect_hold(writer, 3s);
  EXPECT_EQ(reader->state(), "waiting");

  world.becomes(writer, spi::mode::shared);  // from the moment it is requested
  EXPECT_TRUE(change_until_answered(world, writer, spi::mode::shared).has_value());
  world.expect_granted(reader, recovery);
  const auto beside = change_until_answered(world, writer, spi::mode::exclusive);
  EXPECT_FALSE(beside.has_value()) << "two upgrades would wait for each other";
  world.expect_release(reader);
  world.pass(100ms);

  if (change_until_answered(world, writer, spi::mode::exclusive)) {
    world.becomes(writer, spi::mode::exclusive);
    const auto kept_out = world.ask(world.third(), shared);
    world.expect_hold(writer, 20s);
    EXPECT_EQ(kept_out->state(), "waiting");
    world.expect_release(writer);
    world.expect_granted(kept_out, recovery);
    world.expect_release(kept_out);
  } else {
    world.expect_release(writer);
  }
  expect_free_for_others(world);
}

void permits(fault_world& world) {
  auto two = brief_request();
  two.mode = spi::mode::permit;
  two.permits = 2;
  two.max = 3;
  auto one = two;
  one.permits = 1;
  const auto first = world.ask(world.troubled(), two);
  world.expect_granted(first, recovery);
  const auto second = world.ask(world.other(), one);
  world.expect_granted(second, 0s);
  const auto third = world.ask(world.third(), two);
  const auto fourth = world.ask(world.troubled(), one);
  world.expect_hold(first, 8s);
  EXPECT_EQ(third->state(), "waiting");
  world.expect_release(first);
  world.expect_granted(third, recovery);
  world.expect_release(second);
  world.expect_granted(fourth, recovery);
  world.expect_hold(fourth, 5s);
  world.expect_release(third);
  world.expect_release(fourth);
}

void closing(fault_world& world) {
  const auto holder = world.ask(world.troubled());
  world.expect_granted(holder, recovery);
  const auto in_local_queue = world.ask(world.troubled());
  auto shared = brief_request();
  shared.mode = spi::mode::shared;
  const auto in_line = world.ask(world.troubled(), shared);
  world.expect_hold(holder, 3s);
  bool closed = false;
  world.troubled().engine->close(4s, [&closed](const core::engine::abandoned&) { closed = true; });
  EXPECT_EQ(in_local_queue->state(), "cancelled");
  EXPECT_EQ(in_line->state(), "cancelled");
  EXPECT_FALSE(holder->granted && holder->granted->valid());
  EXPECT_TRUE(world.wait_until([&] { return closed; }, 4200ms));
  expect_free_for_others(world);
}

void handing_off(fault_world& world) {
  const auto asked = world.ask(world.troubled());
  world.expect_granted(asked, recovery);
  if (!asked->granted) return;
  const fence_token fence = asked->granted->fence();
  const auto waiter = world.ask(world.third());
  std::optional<result<std::string>> given;
  asked->granted->detach([&given](result<std::string> token) { given = std::move(token); });
  EXPECT_FALSE(asked->granted->valid());
  ASSERT_TRUE(world.wait_until([&] { return given.has_value(); }, recovery));
  if (!*given) {
    EXPECT_EQ(given->error(), errc::unavailable) << given->error().message();
    world.expect_granted(waiter, recovery);  // nothing was left in its way
    world.expect_release(waiter);
    return;
  }
  const auto token = core::parse_token(**given);
  ASSERT_TRUE(token.has_value());
  auto adopting = brief_request("stock", 5s);
  adopting.adopts = core::adoption{token->id, token->fence};
  world.pass(1s);
  EXPECT_EQ(waiter->state(), "waiting");
  const auto adopted = world.ask(world.troubled(), adopting);
  world.expect_granted(adopted, recovery);
  if (adopted->granted) {
    EXPECT_EQ(adopted->granted->fence(), fence);
  }
  const auto second = world.ask(world.other(), adopting);
  EXPECT_TRUE(world.wait_until([&] { return second->answered(); }, recovery));
  EXPECT_EQ(second->state(), "lost");
  world.expect_hold(adopted, 8s);
  EXPECT_EQ(waiter->state(), "waiting");
  world.expect_release(adopted);
  world.expect_granted(waiter, recovery);
  world.expect_release(waiter);
}

void counting_down(fault_world& world) {
  using kind = spi::latch_change::kind;
  spi::store& store = world.troubled_store();
  int changes = 0;
  const auto watching = world.other_store().watch_latch({"", "gate"}, [&changes] { ++changes; });
  ASSERT_TRUE(watching.has_value());
  change_latch(world, store, latch_step(kind::set, 3, 1));
  change_latch(world, store, latch_step(kind::down, 1, 2));
  EXPECT_EQ(read_latch(world, world.other_store()), 2U);
  change_latch(world, world.other_store(), latch_step(kind::down, 1, 3));
  EXPECT_EQ(read_latch(world, store), 1U);
  change_latch(world, store, latch_step(kind::down, 1, 4));
  EXPECT_EQ(read_latch(world, store), 0U);
  world.pass(20s);  // whatever was late has come by now
  EXPECT_EQ(read_latch(world, world.other_store()), 0U);
  EXPECT_EQ(changes, 4);  // each counted once
}

}  // namespace holdfast::test
