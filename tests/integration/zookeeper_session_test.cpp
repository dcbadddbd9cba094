// Sessions: what a cut, a lost answer, an expiry and a clamp do to holders and waiters.
#ifdef HOLDFAST_WITH_ZOOKEEPER
#include "stores/zookeeper/zookeeper_store.hpp"
#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "support/rounds.hpp"
#include "support/zookeeper_server.hpp"

#include <holdfast/holdfast.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

// A client whose connection to the server can be disturbed, and one whose connection is fine.
class zookeeper_session : public testing::Test {
 protected:
  [[nodiscard]] client open(const std::string& options = {}) const {
    return client::open("zookeeper://" + server_.hosts + root_ + options).value();
  }
  [[nodiscard]] client through_proxy() const {
    return client::open("zookeeper://127.0.0.1:" + std::to_string(proxy_.port()) + root_).value();
  }
  [[nodiscard]] static std::uint16_t port_of(const std::string& hosts) {
    return static_cast<std::uint16_t>(std::stoi(hosts.substr(hosts.find(':') + 1)));
  }
  [[nodiscard]] static bool becomes_free(const client& from, const std::string& name) {
    return eventually([&] {
      const auto state = from.inspect(name);
      return state && state->holders.empty() && state->waiters.empty();
    });
  }

  [[nodiscard]] static bool has_waiters(const client& from, const std::string& name,
                                        std::size_t count) {
    return eventually([&] {
      const auto state = from.inspect(name);
      return state && state->waiters.size() == count;
    });
  }

  const shared_zookeeper server_ = use_shared_zookeeper();
  const std::string root_ = fresh_chroot();
  fault_proxy proxy_{port_of(server_.hosts)};
};

TEST_F(zookeeper_session, a_disconnection_is_not_a_loss) {
  // Broken: a moment without network costs the lock (H58, H64).
  const client cut = through_proxy();
  const client other = open();
  const auto held = mutex(cut, "stock", {.ttl = 20s}).acquire({.wait = patience});
  ASSERT_TRUE(held);
  for (int i = 0; i < 3; ++i) {
    const std::size_t before = proxy_.accepted();
    proxy_.reset();
    ASSERT_TRUE(eventually([&] { return proxy_.accepted() > before; }));
  }
  EXPECT_EQ(mutex(other, "stock").acquire({.wait = 0s}).error(), errc::busy);
  EXPECT_TRUE(held->valid());
  EXPECT_FALSE(held->lost().stop_requested());
}

TEST_F(zookeeper_session, a_hold_whose_downgrade_was_not_answered_learns_that_it_was_taken_away) {
  // Broken: nobody watches the node that the downgrade may have made, and the holder continues
  // beside the next one after a forced release.
  const client cut = through_proxy();
  client other = open();
  shared_mutex price(cut, "price", {.ttl = 20s});
  auto held = price.acquire({.wait = patience});
  ASSERT_TRUE(held);
  const std::size_t before = proxy_.pieces(fault_proxy::way::to_client);
  proxy_.swallow(fault_proxy::way::to_client, 1);
  auto changes = std::async(std::launch::async, [&] { return price.downgrade(*held); });
  ASSERT_TRUE(eventually([&] { return proxy_.pieces(fault_proxy::way::to_client) > before; }));
  proxy_.reset();
  EXPECT_FALSE(changes.get());
  EXPECT_FALSE(held->lost().stop_requested());
  const auto taken = other.revoke("price", revocation::force, {});
  ASSERT_TRUE(taken) << taken.error().message();
  EXPECT_EQ(taken->size(), 1U);
  EXPECT_TRUE(eventually([&] { return held->lost().stop_requested(); }));
}

TEST_F(zookeeper_session, a_try_counts_the_permits_when_it_has_its_place_in_line) {
  // Broken: a permit that is taken between the look of a try and its place in the queue is granted
  // twice.
  const client slow = through_proxy();
  const client quick = open();
  const semaphore_options one{.max = 1, .lock = {.ttl = 30s}};
  ASSERT_TRUE(semaphore(slow, "pool", one).acquire({.wait = patience})->release());
  ASSERT_TRUE(becomes_free(quick, "pool"));
  ASSERT_TRUE(semaphore(quick, "pool", one).acquire({.wait = patience})->release());
  ASSERT_TRUE(becomes_free(quick, "pool"));
  proxy_.delay(fault_proxy::way::to_server, 200ms);
  const auto asked = [&, before = proxy_.pieces(fault_proxy::way::to_server)] {
    return proxy_.pieces(fault_proxy::way::to_server) > before;
  };
  auto trying = std::async(std::launch::async,
                           [&] { return semaphore(slow, "pool", one).acquire({.wait = 0s}); });
  ASSERT_TRUE(eventually(asked));
  const auto answered = [&, before = proxy_.pieces(fault_proxy::way::to_client)] {
    return proxy_.pieces(fault_proxy::way::to_client) > before;
  };
  ASSERT_TRUE(eventually(answered));
  const auto other = semaphore(quick, "pool", one).acquire({.wait = 0s});
  const auto tried = trying.get();
  EXPECT_FALSE(tried && other);
  EXPECT_TRUE(tried || other);
}

TEST_F(zookeeper_session, beyond_the_limit_of_a_line_the_others_keep_their_leases) {
  // Broken: the lists grow until the pings of the session wait behind them, and every lease is lost.
  // Every claim reads the others: the real limit keeps a core busy for half a minute.
  const std::size_t limit = rounds<std::size_t>(600, zookeeper::server_options{}.line_limit);
  constexpr std::size_t more = 300;
  constexpr std::chrono::seconds long_wait{240};  // twelve thousand, on a slow machine
  zookeeper::server_options options;
  options.servers = {{"127.0.0.1", port_of(server_.hosts), {}}};
  options.root = root_;
  options.line_limit = limit;
  const auto runtime = spi::make_reactor();
  const client one = client::open(runtime, std::make_shared<zookeeper::zookeeper_store>(
                                               runtime, std::move(options)))
                         .value();
  struct {
    std::mutex mutex;
    std::vector<lease> held;      // guarded by mutex
    std::vector<error> refusals;  // guarded by mutex
    std::atomic<std::size_t> answers{0};
  } all;
  for (std::size_t i = 0; i < limit + more; ++i) {
    shared_mutex(one, "stock", {.ttl = 30s})
        .async_acquire_shared({.wait = long_wait}, {}, [&](result<lease> answer) {
          {
            const std::lock_guard lock(all.mutex);
            if (answer) {
              all.held.push_back(*std::move(answer));
            } else {
              all.refusals.push_back(std::move(answer.error()));
            }
          }
          ++all.answers;
        });
  }
  ASSERT_TRUE(eventually([&] { return all.answers == limit + more; }, long_wait + 10s));
  EXPECT_EQ(all.held.size(), limit);
  ASSERT_EQ(all.refusals.size(), more) << all.refusals.back().message();
  EXPECT_TRUE(std::ranges::all_of(all.refusals, [](const error& each) {
    return each == errc::overloaded;
  })) << all.refusals.front().message();
  EXPECT_TRUE(std::ranges::all_of(all.held, [](const lease& each) { return each.valid(); }));
  // There is room again as soon as one claim has left.
  ASSERT_TRUE(all.held.back().release());
  EXPECT_TRUE(shared_mutex(one, "stock").acquire_shared({.wait = patience}));
}

TEST_F(zookeeper_session, a_holder_is_shown_to_end_with_its_session) {
  // Broken: an operator reads that a lock never ends by itself, and takes it away by force.
  const client one = open();
  const auto held = mutex(one, "stock").acquire({.wait = patience});
  ASSERT_TRUE(held);
  const auto state = open().inspect("stock");
  ASSERT_TRUE(state);
  ASSERT_EQ(state->holders.size(), 1U);
  EXPECT_TRUE(state->holders[0].by_session);
  EXPECT_FALSE(state->holders[0].remaining);
}

TEST_F(zookeeper_session, a_waiter_finds_its_turn_although_the_event_came_while_it_was_cut_off) {
  // Broken: a watch is lost with its connection, and the waiter waits forever (H64, H65).
  const client cut = through_proxy();
  const client other = open();
  auto held = mutex(other, "stock").acquire({.wait = patience});
  ASSERT_TRUE(held);
  mutex mine(cut, "stock");
  auto waits = in_thread([&] { return mine.acquire({.wait = 4 * patience}); });
  ASSERT_TRUE(has_waiters(other, "stock", 1));
  proxy_.refuse();
  proxy_.reset();
  ASSERT_TRUE(held->release());
  proxy_.pass();
  const auto next = waits.get();
  ASSERT_TRUE(next) << next.error().message();
}

TEST_F(zookeeper_session, a_silent_network_ends_the_lease_before_another_is_let_in) {
  // Broken: two valid holders after the server has given the lock away (H58, H60).
  const client cut = through_proxy();
  const client other = open();
  auto held = mutex(cut, "stock", {.ttl = 1s}).acquire({.wait = patience});
  ASSERT_TRUE(held);
  const fence_token before = held->fence();
  proxy_.lose(fault_proxy::way::to_server);
  const auto next = mutex(other, "stock").acquire({.wait = patience});
  ASSERT_TRUE(next) << next.error().message();
  EXPECT_FALSE(held->valid());
  EXPECT_TRUE(eventually([&] { return held->lost().stop_requested(); }));
  EXPECT_GT(next->fence(), before);
  proxy_.pass();
  proxy_.reset();
  // Back with an expired session: nothing of the old one is taken for its own.
  EXPECT_TRUE(eventually([&] {
    const auto refused = mutex(cut, "stock", {.ttl = 1s}).acquire({.wait = 0s});
    EXPECT_FALSE(refused);
    return !refused && refused.error() == errc::busy;
  }));
  EXPECT_TRUE(mutex(cut, "other", {.ttl = 1s}).acquire({.wait = patience}));
}

TEST_F(zookeeper_session, a_waiter_whose_session_expired_queues_again) {
  // Broken: it waits for a turn that never comes, or takes another session's node for its own (T1).
  const client cut = through_proxy();
  const client other = open();
  auto held = mutex(other, "stock").acquire({.wait = patience});
  ASSERT_TRUE(held);
  mutex mine(cut, "stock", {.ttl = 1s});
  auto waits = in_thread([&] { return mine.acquire({.wait = 4 * patience}); });
  ASSERT_TRUE(has_waiters(other, "stock", 1));
  proxy_.lose(fault_proxy::way::to_server);
  ASSERT_TRUE(has_waiters(other, "stock", 0));
  proxy_.pass();
  proxy_.reset();
  ASSERT_TRUE(has_waiters(other, "stock", 1));
  ASSERT_TRUE(held->release());
  const auto next = waits.get();
  ASSERT_TRUE(next) << next.error().message();
}

TEST_F(zookeeper_session, a_lost_answer_leaves_no_orphan) {
  // Broken: a node that nobody knows of blocks the lock (H59, T19).
  const client cut = through_proxy();
  const client other = open();
  {
    const auto warm = mutex(cut, "warm").acquire({.wait = patience});
    ASSERT_TRUE(warm);
  }
  for (std::size_t piece = 1; piece <= 4; ++piece) {
    for (const auto way : {fault_proxy::way::to_client, fault_proxy::way::to_server}) {
      proxy_.swallow(way, piece);
      const auto held = mutex(cut, "stock", {.ttl = 3s}).acquire({.wait = 300ms});
      proxy_.pass();
      proxy_.reset();
    }
  }
  EXPECT_TRUE(becomes_free(other, "stock"));
  EXPECT_TRUE(mutex(cut, "stock").acquire({.wait = patience}));
}

TEST_F(zookeeper_session, a_server_that_leaves_a_request_lying_is_sent_another) {
  // Broken: a busy 3.8.0 server leaves a request unprocessed until another one arrives, which may be
  // left as well; a lone client would wait for it until its time is up.
  constexpr std::size_t ping = 12;  // bytes
  using way = fault_proxy::way;
  const client asked = through_proxy();
  // The shortest of several: on a busy machine some include more than the request.
  std::size_t request = std::numeric_limits<std::size_t>::max();
  for (int i = 0; i < 10; ++i) {
    const std::size_t sent = proxy_.bytes(way::to_server);
    ASSERT_TRUE(asked.inspect("stock"));
    request = std::min(request, proxy_.bytes(way::to_server) - sent);
  }
  proxy_.hold(way::to_client);
  const std::size_t before = proxy_.bytes(way::to_server);
  std::future<bool> answer =
      std::async(std::launch::async, [&] { return asked.inspect("stock").has_value(); });
  EXPECT_TRUE(
      eventually([&] { return proxy_.bytes(way::to_server) >= before + request + 4 * ping; }));
  EXPECT_EQ(proxy_.accepted(), 1U) << "it gave up instead";
  proxy_.pass();
  EXPECT_TRUE(answer.get());
}

TEST_F(zookeeper_session, giving_up_at_any_moment_leaves_nothing) {
  // Broken: a cancelled or timed-out waiter is still in the queue.
  const client a = open();
  const client b = open();
  const auto held = mutex(a, "stock").acquire({.wait = patience});
  ASSERT_TRUE(held);
  mutex mine(b, "stock");
  for (int i = 0; i < 40; ++i) {
    std::stop_source stop;
    auto waits = in_thread([&] { return mine.acquire({}, stop.get_token()); });
    if (i % 2 == 0) std::this_thread::yield();
    stop.request_stop();
    EXPECT_EQ(waits.get().error(), errc::cancelled);
    const auto timed = mine.acquire({.wait = std::chrono::microseconds(i * 100)});
    EXPECT_FALSE(timed);
  }
  EXPECT_TRUE(has_waiters(a, "stock", 0));
}

TEST_F(zookeeper_session, the_servers_time_out_is_what_a_lease_reports) {
  // Broken: a lease of 100 ms is promised although the server keeps it for longer (H67).
  const client a = open();
  const auto held = mutex(a, "stock", {.ttl = 100ms}).acquire({.wait = patience});
  ASSERT_TRUE(held);
  EXPECT_GT(held->ttl(), 100ms);
  EXPECT_LE(held->ttl(), 800ms);
}

TEST_F(zookeeper_session, a_long_lock_delay_leaves_something_of_a_short_ttl) {
  // Broken: the clock margin is subtracted from both, nothing is left, and the caller waits
  // forever.
  const client a = open();
  for (const renew how : {renew::automatic, renew::never}) {
    const lock_options options{.ttl = 1s, .renew = how, .lock_delay = 110s};
    EXPECT_TRUE(mutex(a, "stock", options).acquire({.wait = patience}));
  }
}

TEST_F(zookeeper_session, what_is_too_large_for_the_server_is_refused_before_it_is_sent) {
  // Broken: the server closes the connection, and every other lock of the client goes with it (H62).
  const client a = through_proxy();
  const auto held = mutex(a, "stock").acquire({.wait = patience});
  ASSERT_TRUE(held);
  const std::size_t before = proxy_.accepted();
  semaphore many(a, "many", {.max = 1'000'000});
  const auto refused = many.acquire({.wait = patience}, {}, 900'000);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), errc::overloaded) << refused.error().message();
  EXPECT_TRUE(many.acquire({.wait = patience}, {}, 500));
  EXPECT_EQ(proxy_.accepted(), before);
  EXPECT_TRUE(held->valid());
  EXPECT_TRUE(becomes_free(a, "many"));
}

TEST_F(zookeeper_session, a_host_that_cannot_be_found_is_said_so) {
  // Broken: a name server's trouble looks like a busy lock, or crashes (H30).
  const client a = client::open("zookeeper://no-such-host.invalid:2181/x").value();
  const auto held = mutex(a, "stock", {.ttl = 1s}).acquire({.wait = 0s});
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error(), errc::unavailable);
  EXPECT_THAT(held.error().message(), testing::HasSubstr("zookeeper"));
}

TEST_F(zookeeper_session, a_login_and_an_acl_keep_others_out) {
  // Broken: everybody can remove a lock that was meant to be protected, or a secret is shown.
  const std::string at = "@" + server_.hosts + root_ + "?acl=creator";
  const client owner = client::open("zookeeper://shop:secret" + at).value();
  const client same = client::open("zookeeper://shop:secret" + at).value();
  const client wrong = client::open("zookeeper://shop:guess" + at).value();
  client nobody = open();
  const auto held = mutex(owner, "stock").acquire({.wait = patience});
  ASSERT_TRUE(held) << held.error().message();
  EXPECT_EQ(mutex(same, "stock").acquire({.wait = 0s}).error(), errc::busy);
  for (const client* each : {&wrong, static_cast<const client*>(&nobody)}) {
    const auto refused = mutex(*each, "stock").acquire({.wait = 0s});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error(), errc::denied) << refused.error().message();
    EXPECT_THAT(refused.error().message(), testing::Not(testing::HasSubstr("secret")));
  }
  EXPECT_FALSE(nobody.revoke("stock", spi::revocation::force));
  EXPECT_TRUE(held->valid());
}

TEST_F(zookeeper_session, slashes_nest_where_that_is_asked_for) {
  // Broken: holdfast and Curator use different nodes for a nested path.
  const client nested = open("?layout=path");
  const client below = client::open("zookeeper://" + server_.hosts + root_ + "/shop").value();
  const auto held = mutex(nested, "shop/stock").acquire({.wait = patience});
  ASSERT_TRUE(held);
  EXPECT_EQ(mutex(below, "stock").acquire({.wait = 0s}).error(), errc::busy);
  const auto names = nested.list("shop/");
  ASSERT_TRUE(names);
  ASSERT_EQ(names->size(), 1U);
  EXPECT_EQ(names->front().name, "shop/stock");
}

TEST_F(zookeeper_session, a_nested_name_is_not_a_name_in_a_namespace) {
  // Broken: the name team/x and the name x of the namespace team are one lock.
  const std::string url = "zookeeper://" + server_.hosts + root_ + "?layout=path";
  const client plain = client::open(url).value();
  const client team = client::open(url, {.name_space = "team"}).value();
  const auto held = mutex(plain, "team/x").acquire({.wait = patience});
  ASSERT_TRUE(held) << held.error().message();
  const auto other = mutex(team, "x").acquire({.wait = patience});
  ASSERT_TRUE(other) << other.error().message();
  for (const client* each : {&plain, &team}) {
    const auto names = each->list();
    ASSERT_TRUE(names);
    ASSERT_EQ(names->size(), 1U);
    EXPECT_EQ(names->front().name, each == &plain ? "team/x" : "x");
  }
}

TEST_F(zookeeper_session, options_that_make_no_sense_are_refused) {
  // Broken: a typo is taken for an option.
  const std::string url = "zookeeper://" + server_.hosts;
  for (const char* each : {"/a//b", "/../x", "/zookeeper/x", "/x?acl=creator", "/x?layout=deep",
                           "/x?tick=0", "/x?tick=ten", "/x?tls=maybe", "/x?nonsense=1"}) {
    const auto opened = client::open(url + each);
    ASSERT_FALSE(opened) << each;
    EXPECT_EQ(opened.error(), errc::invalid) << each;
  }
}

}  // namespace
}  // namespace holdfast::test
#endif
