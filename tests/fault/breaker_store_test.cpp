// A circuit breaker around a store: who is refused while the engine does not answer, and who is not.
#include "fault/degraded_harness.hpp"
#include "stores/forwarding_store.hpp"
#include "support/also_longer.hpp"

#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

TEST(breaker_store, while_it_is_open_a_waiting_caller_is_told_at_once) {
  // Broken: every request of a web server hangs until its own timeout because the engine is
  // unreachable.
  degraded_harness world("breaker=3");
  mutex stock(world.guarded(), "stock");
  world.way().set(trouble::no_request);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(stock.acquire({.wait = 0s}).error().code, errc::unavailable);
  }
  const int before = world.way().requests();
  const time_point start = clock::now();
  const auto refused = stock.acquire({.wait = patience});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::unavailable);
  EXPECT_THAT(refused.error().detail, testing::HasSubstr("did not answer 3 times in a row"));
  EXPECT_TRUE(world.seen().sees(event_kind::engine_unreachable));
  EXPECT_EQ(world.seen().all(event_kind::engine_unreachable).size(), 1U);
  const auto looks = (clock::now() - start) / 20ms + 1;
  EXPECT_LE(world.way().requests() - before, looks + 10) << "looks, and nothing else";
}

TEST(breaker_store, it_closes_by_itself_when_the_engine_answers) {
  // Broken: somebody has to restart the program.
  degraded_harness world("breaker=1");
  world.cut_off();
  world.restore();
  EXPECT_TRUE(mutex(world.guarded(), "stock").acquire({.wait = 0s}));
  EXPECT_EQ(world.seen().all(event_kind::engine_back).size(), 1U);
}

TEST(breaker_store, contention_does_not_open_it) {
  // Broken: a busy lock is taken for a dead engine.
  degraded_harness world("breaker=1");
  const client other = world.direct();
  auto held = mutex(other, "stock").acquire();
  ASSERT_TRUE(held);
  mutex stock(world.guarded(), "stock");
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(stock.acquire({.wait = 0s}).error().code, errc::busy);
  }
  EXPECT_EQ(stock.acquire({.wait = 5ms}).error().code, errc::timed_out);
  EXPECT_TRUE(world.seen().all(event_kind::engine_unreachable).empty());
  EXPECT_TRUE(held->release());
  EXPECT_TRUE(stock.acquire({.wait = 10s}));
}

TEST(breaker_store, one_lost_answer_among_many_does_not_open_it) {
  // Broken: a flaky network is taken for a dead engine.
  degraded_harness world("breaker=2");
  mutex stock(world.guarded(), "stock");
  for (int i = 0; i < 5; ++i) {
    world.way().set(trouble::no_request, 1);
    EXPECT_EQ(stock.acquire({.wait = 0s}).error().code, errc::unavailable);
    auto held = stock.acquire({.wait = 10s});
    ASSERT_TRUE(held) << held.error().message();
    EXPECT_TRUE(held->release());
  }
  EXPECT_TRUE(world.seen().all(event_kind::engine_unreachable).empty());
}

TEST(breaker_store, an_engine_that_answers_a_look_is_there) {
  // Broken: requests that an engine cannot serve are mistaken for silence.
  degraded_harness world("degrade=local&breaker=1");
  mutex stock(world.guarded(), "stock");
  for (int i = 0; i < 5; ++i) {
    world.way().set(trouble::no_request, 1);
    EXPECT_EQ(stock.acquire({.wait = 0s}).error().code, errc::unavailable);
  }
  EXPECT_TRUE(world.seen().all(event_kind::engine_unreachable).empty());
  const auto held = stock.acquire({.wait = 10s});
  ASSERT_TRUE(held) << held.error().message();
  EXPECT_FALSE(held->degraded());
}

TEST(breaker_store, one_look_at_a_time_is_made) {
  // Broken: every failing thread checks the engine itself, and an overloaded engine gets ever more
  // requests.
  degraded_harness world("breaker=1");
  world.way().set(trouble::silence);
  const int before = world.way().requests();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] {
        mutex own(world.guarded(), "stock" + std::to_string(i),
                  {.ttl = 300ms, .retry = retry_policy::never()});
        EXPECT_EQ(own.acquire({.wait = 10s}).error().code, errc::unavailable);
      });
    }
  }
  EXPECT_TRUE(world.seen().sees(event_kind::engine_unreachable));
  EXPECT_EQ(world.seen().all(event_kind::engine_unreachable).size(), 1U);
  // Eight attempts, what each of them leaves behind, and few looks.
  EXPECT_LE(world.way().requests() - before, 8 + 8 * 12 + 8);
}

// A store that knows by itself what it holds and what it does not, like one with sessions.
class knowing_store final : public stores::forwarding_store {
 public:
  using forwarding_store::forwarding_store;

  void renew(std::vector<spi::claim_ptr> claims, const spi::op_context& /*context*/,
             spi::completion<std::vector<spi::renewal>> done) override {
    spi::renewal known;
    known.state = spi::hold_state::renewed;
    known.grant.ttl = claims.front()->ttl;
    done(std::vector<spi::renewal>(claims.size(), known));
  }
  void leave(spi::claim_ptr /*claim*/, const spi::op_context& /*context*/,
             spi::completion<spi::departure> done) override {
    done(spi::departure::gone);
  }
};

TEST(breaker_store, what_a_store_knows_by_itself_is_no_sign_of_life) {
  // Broken: an unreachable engine is never considered unreachable, because something is held or was
  // given up.
  const auto runtime = spi::make_reactor();
  auto way = std::make_shared<lossy_store>(
      runtime, stores::open(spi::parse_url("memory:").value(), runtime).value());
  const auto seen = std::make_shared<recording_observer>();
  client_options options;
  options.observer = seen;
  degraded::options watched;
  watched.breaker = degraded::breaker_settings{.failures = 3, .pause = 20ms, .look_limit = 1s};
  const client a =
      client::open(runtime,
                   degraded::wrap(watched, std::make_shared<knowing_store>(way), nullptr, runtime),
                   options)
          .value();
  const auto held = mutex(a, "held", {.ttl = 3s}).acquire();  // renewed every second
  ASSERT_TRUE(held);
  way->set(trouble::no_request);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(mutex(a, "stock").acquire({.wait = 0s}).error().code, errc::unavailable);
    const std::size_t renewed = seen->all(event_kind::renewed).size();
    EXPECT_TRUE(seen->sees(event_kind::renewed, renewed + 1));
  }
  EXPECT_TRUE(seen->sees(event_kind::engine_unreachable));
  const std::size_t renewed = seen->all(event_kind::renewed).size();
  EXPECT_TRUE(seen->sees(event_kind::renewed, renewed + 2));
  EXPECT_TRUE(seen->all(event_kind::engine_back).empty());
}

TEST(breaker_store, what_is_held_is_renewed_and_released_whatever_its_state) {
  // Broken: the breaker costs a lease that the engine would have renewed.
  EXPECT_TRUE(also_longer(600ms, [](duration ttl) {
    degraded_harness world("breaker=1");
    mutex stock(world.guarded(), "stock", {.ttl = ttl});
    auto held = stock.acquire({.wait = 0s});
    if (!held) return testing::AssertionFailure() << held.error().message();
    world.cut_off();
    const std::size_t before = world.seen().all(event_kind::renewed).size();
    world.way().set(trouble::none);
    EXPECT_TRUE(eventually(
        [&] { return world.seen().all(event_kind::renewed).size() > before || !held->valid(); }));
    const auto released = held->release();
    if (released) return testing::AssertionSuccess();
    return testing::AssertionFailure() << released.error().message();
  }));
}

TEST(breaker_store, a_waiter_whose_engine_dies_is_notified_when_the_breaker_opens) {
  // Broken: a client that waited before the outage waits forever.
  degraded_harness world("breaker=2");
  const client other = world.direct();
  auto held = mutex(other, "stock").acquire();
  ASSERT_TRUE(held);
  mutex stock(world.guarded(), "stock");
  auto waits = in_thread([&] { return stock.acquire({.wait = patience}); });
  ASSERT_TRUE(eventually([&] { return other.inspect("stock")->waiters.size() == 1; }));
  world.cut_off();
  const auto answer = waits.get();
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, errc::unavailable);
  world.restore();
  EXPECT_TRUE(eventually([&] { return other.inspect("stock")->waiters.empty(); }))
      << "its place in line is left once the engine answers";
}

TEST(breaker_store, what_happens_while_something_is_told_is_told_afterwards) {
  // Broken: two threads report at the same time, "unreachable" arrives last, and an engine that
  // answers is considered unreachable.
  const auto runtime = spi::make_reactor();
  const auto way = std::make_shared<lossy_store>(
      runtime, stores::open(spi::parse_url("memory:").value(), runtime).value());
  const auto watched = std::make_shared<degraded::breaker_store>(
      runtime, way, degraded::breaker_settings{.failures = 1, .pause = 20ms});
  const auto look = [&] {
    std::promise<void> answered;
    watched->inspect({"", "stock"}, {.deadline = clock::now() + patience},
                     [&](const result<spi::resource_state>&) { answered.set_value(); });
    answered.get_future().wait();
  };
  std::mutex guard;
  std::vector<std::string> told;
  const auto tell = [&](const std::string& what) {
    const std::lock_guard lock(guard);
    told.push_back(what);
  };
  watched->report_to([&](spi::reach now, const error&) {
    tell(now == spi::reach::lost ? "lost" : "back");
    if (now == spi::reach::lost) {
      way->set(trouble::none);
      std::jthread(look).join();
    }
    tell("end");
  });
  way->set(trouble::no_request);
  look();
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(guard);
    return told == std::vector<std::string>{"lost", "end", "back", "end"};
  }));
  EXPECT_FALSE(watched->open());
  watched->close();
}

TEST(breaker_store, its_options_are_checked) {
  // Broken: a typo in a URL is silently something else.
  for (const char* wrong : {"breaker=0", "breaker=x", "breaker=1001", "breaker_pause=1s",
                            "breaker=1&breaker_pause=fast", "degrade=redis", "degrade="}) {
    const auto opened = client::open(std::string("memory:?") + wrong);
    ASSERT_FALSE(opened) << wrong;
    EXPECT_EQ(opened.error().code, errc::invalid) << wrong;
  }
  for (const char* right : {"breaker=1", "breaker=1000&breaker_pause=250ms", "degrade=no",
                            "degrade=local", "degrade=local&breaker=5"}) {
    EXPECT_TRUE(client::open(std::string("memory:?") + right)) << right;
  }
}

}  // namespace
}  // namespace holdfast::test
