// The memory store: wake-ups and subscribers are called without holding a lock, in order, and not
// after the end; names are shared as the URL says.
#include "memory_harness.hpp"
#include "support/manual_runtime.hpp"

namespace holdfast::memory {

class memory_store_test : public ::testing::Test {
 protected:
  const std::shared_ptr<test::manual_runtime> runtime = std::make_shared<test::manual_runtime>();
  std::shared_ptr<spi::store> store = open_or_fail("memory:", runtime);
  const spi::claim_ptr one = make_claim(1), two = make_claim(2, fair()),
                       three = make_claim(3, fair());
  std::shared_ptr<noting_wakeup> wakeup = std::make_shared<noting_wakeup>();
  std::shared_ptr<noting_wakeup> second = std::make_shared<noting_wakeup>();

  spi::op_context context;
};

TEST_F(memory_store_test, a_lock_goes_from_one_to_the_next_by_push) {
  EXPECT_TRUE(is_granted(attempt(*store, one, wakeup)));
  EXPECT_FALSE(is_granted(attempt(*store, two, second)));
  EXPECT_EQ(wakeup->notes, said{"wanted"});
  EXPECT_EQ(leave(*store, one).value(), spi::departure::was_holder);
  EXPECT_EQ(second->notes, said{"granted"});
  EXPECT_TRUE(second->last_grant->offer);
  EXPECT_EQ(second->last_grant->fence.value(), 2U);
  EXPECT_EQ(renew(*store, {two, three}).value()[0].state, spi::hold_state::renewed);
  EXPECT_EQ(renew(*store, {three, two}).value()[0].state, spi::hold_state::lost);
}

// A core that answers a grant at once with the next verb must find no lock held.
TEST_F(memory_store_test, a_wake_up_may_use_the_store) {
  static_cast<void>(attempt(*store, one, wakeup));
  static_cast<void>(attempt(*store, two, second));
  spi::departure left{};
  second->on_notify = [&] { left = leave(*store, two).value(); };
  static_cast<void>(leave(*store, one));
  EXPECT_EQ(left, spi::departure::was_holder);
}

// A chain of hand-overs must not nest: a thousand waiters would overflow the stack.
TEST_F(memory_store_test, a_chain_of_hand_overs_does_not_recurse) {
  static_cast<void>(attempt(*store, one, wakeup));
  int depth = 0, deepest = 0, granted = 0;
  std::vector<std::shared_ptr<noting_wakeup>> wakeups;
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    const auto claim = make_claim(100 + i, fair());
    wakeups.push_back(std::make_shared<noting_wakeup>());
    wakeups.back()->on_notify = [&, claim] {
      deepest = std::max(deepest, ++depth);
      ++granted;
      static_cast<void>(leave(*store, claim));
      --depth;
    };
    static_cast<void>(attempt(*store, claim, wakeups.back()));
  }
  static_cast<void>(leave(*store, one));
  runtime->run_ready();
  EXPECT_EQ(granted, 1'000);
  EXPECT_EQ(deepest, 1);
}

TEST_F(memory_store_test, a_forced_release_is_notified_at_once) {
  static_cast<void>(attempt(*store, one, wakeup));
  EXPECT_EQ(revoke(*store, spi::revocation::force).value().size(), 1U);
  EXPECT_EQ(wakeup->notes, said{"gone"});
  EXPECT_EQ(wakeup->last_error, errc::lost);
}

TEST_F(memory_store_test, after_close_no_wake_up_comes_and_nothing_is_placed) {
  const auto shared = open_or_fail("memory:close", runtime);
  const auto other = open_or_fail("memory:close", runtime);
  static_cast<void>(attempt(*other, one, wakeup));
  static_cast<void>(attempt(*shared, two, second));
  shared->close();
  static_cast<void>(leave(*other, one));
  EXPECT_EQ(second->notes, said{});
  EXPECT_EQ(attempt(*shared, three, second).error(), errc::cancelled);
  EXPECT_EQ(leave(*shared, two).error(), errc::cancelled);
  EXPECT_EQ(renew(*shared, {two}).error(), errc::cancelled);
  EXPECT_FALSE(shared->observe({}, [](const spi::store_event&) {}).has_value());
  // Its waiter is passed over; one that still exists gets in.
  EXPECT_TRUE(is_granted(attempt(*other, three, wakeup)));
}

TEST_F(memory_store_test, clients_of_one_name_exclude_each_other_and_others_do_not) {
  const auto left = open_or_fail("memory:shop", runtime);
  const auto right = open_or_fail("memory:shop", runtime);
  const auto elsewhere = open_or_fail("memory:bank", runtime);
  const auto alone = open_or_fail("memory:", runtime);
  EXPECT_TRUE(is_granted(attempt(*left, one, wakeup)));
  EXPECT_FALSE(is_granted(attempt(*right, two, second)));
  EXPECT_TRUE(is_granted(attempt(*elsewhere, two, second)));
  EXPECT_TRUE(is_granted(attempt(*alone, two, second)));
  EXPECT_TRUE(is_granted(attempt(*store, two, second)));
}

// A client that ends is a process that ends: what it did not release is protected until its ttl.
TEST_F(memory_store_test, a_name_outlives_its_clients) {
  static_cast<void>(attempt(*open_or_fail("memory:passing", runtime), one, wakeup));
  EXPECT_FALSE(is_granted(attempt(*open_or_fail("memory:passing", runtime), two, second)));
  runtime->pause_for(10s);
  const auto answer = attempt(*open_or_fail("memory:passing", runtime), three, second);
  EXPECT_EQ(std::get<spi::granted>(answer.value()).fence.value(), 2U);
}

TEST_F(memory_store_test, a_url_with_a_host_or_an_option_is_refused) {
  for (const char* text : {"memory://host", "memory:?fair=yes", "memory://user@host/name"}) {
    EXPECT_EQ(open_memory(spi::parse_url(text).value(), runtime).error(), errc::invalid) << text;
  }
}

// A store that keeps a wake-up forever keeps the whole client behind it.
TEST_F(memory_store_test, wake_ups_are_dropped_when_their_claim_is_over) {
  const auto dropped = [&](const auto& end) {
    const std::weak_ptr<spi::wakeup> watched = wakeup;
    static_cast<void>(
        attempt(*store, one, std::exchange(wakeup, std::make_shared<noting_wakeup>())));
    EXPECT_FALSE(watched.expired());
    end();
    return watched.expired();
  };
  EXPECT_TRUE(dropped([&] { static_cast<void>(leave(*store, one)); }));
  EXPECT_TRUE(dropped([&] { static_cast<void>(revoke(*store, spi::revocation::force)); }));
  EXPECT_TRUE(dropped([&] {
    runtime->pause_for(10s);
    static_cast<void>(renew(*store, {one}));
  }));
  EXPECT_TRUE(dropped([&] { store->close(); }));
}

TEST_F(memory_store_test, a_try_that_is_turned_away_keeps_no_wake_up) {
  static_cast<void>(attempt(*store, one, wakeup));
  const auto tried = make_claim(2, {.queued = false});
  const std::weak_ptr<spi::wakeup> watched = second;
  EXPECT_FALSE(is_granted(attempt(*store, tried, std::move(second))));
  EXPECT_TRUE(watched.expired());
}

// It ended and queued again in one step: the old end must not silence the new claim.
TEST_F(memory_store_test, a_claim_that_comes_again_is_still_reached) {
  static_cast<void>(attempt(*store, one, wakeup));
  runtime->pause_for(10s);
  EXPECT_TRUE(is_granted(attempt(*store, one, wakeup)));
  static_cast<void>(attempt(*store, two, second));
  EXPECT_EQ(wakeup->notes, said{"wanted"});
}

TEST_F(memory_store_test, a_claim_with_an_unanswered_request_is_not_placed_after_it_was_left) {
  static_cast<void>(leave(*store, one, true));
  EXPECT_EQ(attempt(*store, one, wakeup).error(), errc::lost);
}

TEST_F(memory_store_test, observers_see_their_name_or_their_namespace_until_they_end) {
  std::vector<std::string> named, all, elsewhere;
  auto first =
      store->observe({"", "stock"}, [&](const auto& event) { named.push_back(event.name); });
  auto rest = store->observe({"", ""}, [&](const auto& event) { all.push_back(event.name); });
  auto other = store->observe({"x", ""}, [&](const auto& e) { elsewhere.push_back(e.name); });
  static_cast<void>(attempt(*store, one, wakeup));
  static_cast<void>(attempt(*store, make_claim(2, {.name = "other"}), second));
  EXPECT_EQ(named, said{"stock"});
  EXPECT_EQ(all, (said{"stock", "other"}));
  first->reset();
  static_cast<void>(leave(*store, one));
  EXPECT_EQ(named.size(), 1U);
  EXPECT_EQ(all.size(), 3U);
  EXPECT_TRUE(elsewhere.empty());
}

TEST_F(memory_store_test, latch_watchers_are_called_when_it_changes) {
  int calls = 0;
  auto watching = store->watch_latch({"", "start"}, [&] { ++calls; });
  const auto change = [&](spi::latch_change::kind what, std::uint64_t id) {
    return answer_of<spi::latch_state>([&](auto done) {
      store->change_latch({"", "start"}, {what, 1, id_of(id), 1h}, context, std::move(done));
    });
  };
  EXPECT_EQ(change(spi::latch_change::kind::down, 1).error(), errc::not_held);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(change(spi::latch_change::kind::set, 2)->count, 1U);
  EXPECT_EQ(change(spi::latch_change::kind::down, 3)->count, 0U);
  EXPECT_EQ(change(spi::latch_change::kind::down, 3)->count, 0U);
  EXPECT_EQ(calls, 2);
  const auto read = answer_of<spi::latch_state>([&](auto done) {
    store->read_latch({"", "start"}, context, std::move(done));
  });
  EXPECT_EQ(read->count, 0U);
  watching->reset();
  static_cast<void>(change(spi::latch_change::kind::set, 4));
  EXPECT_EQ(calls, 2);
}

TEST_F(memory_store_test, people_see_and_change_through_the_store_too) {
  static_cast<void>(attempt(*store, one, wakeup));
  const auto state = answer_of<spi::resource_state>([&](auto done) {
    store->inspect({"", "stock"}, context, std::move(done));
  });
  EXPECT_EQ(state->holders.size(), 1U);
  const auto names = answer_of<std::vector<spi::resource_summary>>(
      [&](auto done) { store->list("", "st", context, std::move(done)); });
  EXPECT_EQ(names->size(), 1U);
  const auto changed = answer_of<spi::granted>(
      [&](auto done) { store->change(one, spi::mode::shared, context, std::move(done)); });
  EXPECT_EQ(changed->fence.value(), 2U);
  const auto armed = answer_of<spi::armed>(
      [&](auto done) { store->watch(one, spi::blocked{}, context, std::move(done)); });
  EXPECT_EQ(armed.value(), spi::armed::recheck);
}

TEST_F(memory_store_test, it_says_what_it_is_and_what_it_is_not) {
  EXPECT_EQ(store->caps().engine, "memory");
  EXPECT_TRUE(store->caps().expires);
  EXPECT_FALSE(store->caps().excludes_processes);
  const auto checks = answer_of<std::vector<spi::check>>(
      [&](auto done) { store->probe(context, std::move(done)); });
  ASSERT_EQ(checks->size(), 2U);
  EXPECT_EQ((*checks)[0].state, spi::check::status::ok);
  EXPECT_EQ((*checks)[1].state, spi::check::status::warn);
}

}  // namespace holdfast::memory
