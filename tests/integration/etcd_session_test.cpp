// The etcd store when its member is in trouble: restarts, restored snapshots, leases and keys taken away
// from outside, compaction, lost answers.
#ifdef HOLDFAST_WITH_ETCD
#include "contract/contract.hpp"
#include "net/connector.hpp"
#include "stores/etcd/watch_hub.hpp"
#include "support/etcd_server.hpp"
#include "support/fault_proxy.hpp"
#include "support/rounds.hpp"
#include "support/task.hpp"

#include <atomic>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using testing::HasSubstr;

class etcd_session : public testing::Test {
 protected:
  [[nodiscard]] client open(const std::string& more = {}) const {
    return client::open("etcd://" + server_->host() + "/shop" + more).value();
  }
  // Of the holder's key, in hex.
  [[nodiscard]] std::string lease_of(const std::string& prefix) const {
    const std::string json = server_->ctl({"get", "--prefix", prefix, "-w", "json"});
    const std::string name = "\"lease\":";
    const auto at = json.find(name);
    if (at == std::string::npos) throw std::runtime_error("no lease: " + json);
    char text[32];
    std::snprintf(text, sizeof text, "%llx",
                  std::strtoull(json.c_str() + at + name.size(), nullptr, 10));
    return text;
  }

  std::unique_ptr<etcd_server> server_ = start_etcd();
};

TEST_F(etcd_session, a_key_is_where_etcdctl_and_go_look_for_it) {
  // Broken: others' clients do not see our lock.
  const client a = open();
  const auto held = mutex(a, "stock-42").acquire();
  ASSERT_THAT(held, succeeds());
  const std::string keys = server_->ctl({"get", "--prefix", "shop/stock-42/", "--keys-only"});
  EXPECT_THAT(keys, HasSubstr("shop/stock-42/"));
}

TEST_F(etcd_session, a_lease_that_is_revoked_from_outside_ends_ours) {
  // Broken: somebody frees the lock, and its holder continues.
  const client a = open();
  auto held = mutex(a, "stock", {.ttl = 30s}).acquire();
  ASSERT_THAT(held, succeeds());
  server_->ctl({"lease", "revoke", lease_of("shop/stock/")});
  EXPECT_THAT(held->wait_lost(patience), succeeds());
  EXPECT_FALSE(held->valid());
  const auto next = mutex(a, "stock").acquire({.wait = patience});
  ASSERT_THAT(next, succeeds());
  EXPECT_GT(next->fence(), held->fence());
}

TEST_F(etcd_session, what_is_acquired_after_idling_leaves_no_key_that_nobody_owns) {
  // Broken: the end of the old lease ended the claim that had just found out about it, and the key
  // that it put on the next lease blocked the lock.
  const client a = open("?connect_timeout=30s");
  mutex stock(a, "stock", {.ttl = 1s});
  for (const duration wait : {duration(0s), duration(patience)}) {
    EXPECT_THAT(stock.acquire({.wait = patience})->release(), succeeds());
    ASSERT_TRUE(eventually([&] { return server_->ctl({"lease", "list"}).starts_with("found 0"); }));
    auto held = stock.acquire({.wait = wait});
    ASSERT_THAT(held, succeeds());
    EXPECT_THAT(held->release(), succeeds());
    EXPECT_EQ(server_->ctl({"get", "--prefix", "shop/stock/", "--keys-only"}), "");
  }
}

TEST_F(etcd_session, a_waiter_whose_key_is_removed_queues_again) {
  // Broken: it waits forever for a place in the queue that it does not have.
  const client a = open();
  const client b = open();
  auto held = mutex(a, "stock").acquire();
  ASSERT_THAT(held, succeeds());
  reply<lease> waits;
  mutex(b, "stock", {.ttl = 3s}).async_acquire({.wait = 10min}, {}, waits.callback());
  ASSERT_TRUE(has_waiters(a, "stock", 1));
  const std::string keys =
      server_->ctl({"get", "--prefix", "shop/stock/", "--keys-only", "--sort-by", "CREATE",
                    "--order", "DESCEND", "--limit", "1"});
  server_->ctl({"del", keys.substr(0, keys.find('\n'))});
  ASSERT_TRUE(has_waiters(a, "stock", 1));
  EXPECT_THAT(held->release(), succeeds());
  ASSERT_TRUE(arrives(waits.future));
  EXPECT_THAT(waits.future.get(), succeeds());
}

task take_a_turn(client from, std::atomic<std::size_t>& granted) {
  auto held = co_await mutex(from, "queue", {.fair = true}).async_acquire({.wait = 10min});
  if (!held) co_return;
  ++granted;
  (void)co_await held->async_release();
}

TEST_F(etcd_session, a_turn_reads_a_few_keys_however_long_the_queue_is) {
  // Broken: each of a thousand waiters is sent the keys of all others when its turn comes.
  constexpr std::size_t length = 300;
  constexpr std::size_t key_bytes = 100;  // of a claim, at least: its name, its id, who it is
  const client far = open();
  fault_proxy between(server_->port());
  const client near =
      client::open("etcd://127.0.0.1:" + std::to_string(between.port()) + "/shop").value();
  auto held = mutex(far, "queue", {.fair = true}).acquire();
  ASSERT_THAT(held, succeeds());
  std::atomic<std::size_t> granted = 0;
  std::vector<task> queue;
  for (std::size_t i = 0; i < length; ++i) queue.push_back(take_a_turn(near, granted));
  ASSERT_TRUE(has_waiters(far, "queue", length));
  const std::size_t before = between.bytes(fault_proxy::way::to_client);
  EXPECT_THAT(held->release(), succeeds());
  for (const task& each : queue) ASSERT_TRUE(each.finishes());
  EXPECT_EQ(granted, length);
  EXPECT_LT(between.bytes(fault_proxy::way::to_client) - before, length * length / 4 * key_bytes);
}

TEST_F(etcd_session, a_restart_of_the_server_is_not_a_loss) {
  // Broken: the restart of a member costs all locks, or nobody is woken afterwards.
  const client a = open();
  const client b = open();
  auto held = mutex(a, "stock", {.ttl = 60s}).acquire();
  ASSERT_THAT(held, succeeds());
  reply<lease> waits;
  mutex(b, "stock", {.ttl = 60s}).async_acquire({.wait = 10min}, {}, waits.callback());
  ASSERT_TRUE(has_waiters(a, "stock", 1));
  server_->kill();
  server_->start();
  ASSERT_TRUE(eventually([&] { return a.inspect("stock").has_value(); }));
  EXPECT_TRUE(held->valid());
  EXPECT_THAT(held->release(), succeeds());
  ASSERT_TRUE(arrives(waits.future));
  EXPECT_THAT(waits.future.get(), succeeds());
}

TEST_F(etcd_session, a_restored_snapshot_ends_what_came_after_it_and_nothing_else) {
  // Broken: a holder that the cluster no longer knows continues.
  const client a = open();
  auto before = mutex(a, "before", {.ttl = 60s}).acquire();
  ASSERT_THAT(before, succeeds());
  const std::string file = (server_->folder() / "snapshot").string();
  server_->ctl({"snapshot", "save", file});
  auto after = mutex(a, "after", {.ttl = 60s}).acquire();
  ASSERT_THAT(after, succeeds());
  server_->restore(file);
  EXPECT_THAT(after->wait_lost(2 * patience), succeeds());
  EXPECT_TRUE(before->valid());
  const client b = open();
  EXPECT_THAT(mutex(b, "after").acquire({.wait = patience}), succeeds());
  EXPECT_THAT(mutex(b, "before").acquire({.wait = 1s}), fails_with(errc::timed_out));
  EXPECT_THAT(before->release(), succeeds());
  EXPECT_THAT(mutex(b, "before").acquire({.wait = patience}), succeeds());
}

TEST_F(etcd_session, compaction_disturbs_nobody) {
  // Broken: a watch that the server cancels is not set again.
  const client a = open();
  const client b = open();
  auto held = mutex(a, "stock").acquire();
  ASSERT_THAT(held, succeeds());
  reply<lease> waits;
  mutex(b, "stock").async_acquire({.wait = 10min}, {}, waits.callback());
  ASSERT_TRUE(has_waiters(a, "stock", 1));
  for (int i = 0; i < 20; ++i) server_->ctl({"put", "other", std::to_string(i)});
  const std::string put = server_->ctl({"put", "other", "x", "-w", "json"});
  const auto at = put.find("\"revision\":");
  const std::string revision = std::to_string(std::strtoull(put.c_str() + at + 11, nullptr, 10));
  server_->ctl({"compact", revision, "--physical"});
  EXPECT_THAT(held->release(), succeeds());
  ASSERT_TRUE(arrives(waits.future));
  EXPECT_THAT(waits.future.get(), succeeds());
}

TEST_F(etcd_session, a_silent_network_ends_the_lease_before_another_is_let_in) {
  // Broken: two valid holders across a cut cable.
  fault_proxy proxy(server_->port());
  const client cut =
      client::open("etcd://127.0.0.1:" + std::to_string(proxy.port()) + "/shop").value();
  const client b = open();
  auto held = mutex(cut, "stock", {.ttl = 3s}).acquire({.wait = patience});
  ASSERT_THAT(held, succeeds());
  proxy.lose(fault_proxy::way::to_server);
  proxy.lose(fault_proxy::way::to_client);
  const auto next = mutex(b, "stock").acquire({.wait = 2 * patience});
  ASSERT_THAT(next, succeeds());
  EXPECT_FALSE(held->valid());
}

TEST_F(etcd_session, only_one_waiter_of_a_client_looks_for_permits) {
  // Broken: every end of a permit has every waiter read the whole queue.
  constexpr std::size_t waiters = 60;
  constexpr std::size_t few = 2'000'000;  // bytes; all of them looking take ten times that
  fault_proxy proxy(server_->port());
  const client mine =
      client::open("etcd://127.0.0.1:" + std::to_string(proxy.port()) + "/shop").value();
  semaphore seats(mine, "seats", {.max = 1});
  auto held = seats.acquire();
  ASSERT_THAT(held, succeeds());
  std::atomic<std::size_t> served{0};
  for (std::size_t i = 0; i < waiters; ++i) {
    seats.async_acquire({.wait = 10min}, {}, [&](result<lease> got) {
      if (got) ++served;  // and it is released
    });
  }
  ASSERT_TRUE(has_waiters(open(), "seats", waiters));
  const std::size_t before = proxy.bytes(fault_proxy::way::to_client);
  EXPECT_THAT(held->release(), succeeds());
  ASSERT_TRUE(eventually([&] { return served == waiters; }, 2 * patience));
  EXPECT_LT(proxy.bytes(fault_proxy::way::to_client) - before, few);
}

TEST_F(etcd_session, a_lost_answer_leaves_no_orphan) {
  // Broken: an attempt whose answer was lost holds the lock for nobody.
  for (std::size_t piece = 1; piece <= 6; ++piece) {
    fault_proxy proxy(server_->port());
    const std::string name = "stock" + std::to_string(piece);
    {
      const client lossy =
          client::open("etcd://127.0.0.1:" + std::to_string(proxy.port()) + "/shop").value();
      proxy.swallow(fault_proxy::way::to_client, piece);
      static_cast<void>(mutex(lossy, name, {.ttl = 2s}).acquire({.wait = 1s}));
      proxy.pass();
    }
    EXPECT_THAT(mutex(open(), name).acquire({.wait = patience}), succeeds()) << piece;
  }
}

TEST_F(etcd_session, a_try_is_refused_in_a_cluster_that_was_restored_to_an_earlier_state) {
  // Broken: its revisions are earlier than that of our last release, and the try kept looking until
  // its time was up.
  const client a = open();
  const client b = open();
  const std::string snapshot = (server_->folder() / "snapshot").string();
  server_->ctl({"snapshot", "save", snapshot});
  for (int i = 0; i < 200; ++i) {
    ASSERT_THAT(mutex(a, "stock").acquire({.wait = patience})->release(), succeeds());
  }
  server_->restore(snapshot);
  const auto held = mutex(b, "stock").acquire({.wait = patience});
  ASSERT_THAT(held, succeeds());
  ASSERT_TRUE(eventually([&] { return a.inspect("stock").has_value(); }));
  EXPECT_THAT(mutex(a, "stock").acquire({.wait = 0s}), fails_with(errc::busy));
}

TEST_F(etcd_session, a_try_after_a_release_is_not_refused_because_of_it) {
  // Broken: the server looked before it removed, and answered the removal first.
  const client a = open();
  mutex stock(a, "stock");
  const int last = rounds(1'000, 3'000);
  for (int i = 0; i < last; ++i) {
    auto held = stock.acquire({.wait = patience});
    ASSERT_THAT(held, succeeds());
    held = lease();  // released, not waited for
    const auto next = stock.acquire({.wait = 0s});
    ASSERT_TRUE(next || next.error() != errc::busy) << "round " << i;
  }
}

TEST_F(etcd_session, a_lock_that_is_taken_again_has_the_key_that_it_had) {
  // Broken: etcd keeps deleted keys until it is compacted and scans them at every look, so that
  // each grant made the next one more expensive.
  const client a = open();
  std::set<std::string> keys;
  for (int i = 0; i < 5; ++i) {
    auto held = mutex(a, "stock").acquire({.wait = patience});
    ASSERT_THAT(held, succeeds());
    keys.insert(server_->ctl({"get", "--prefix", "shop/stock/", "--keys-only"}));
    const auto shown = a.inspect("stock");
    ASSERT_THAT(shown, succeeds());
    ASSERT_EQ(shown->holders.size(), 1U);
    EXPECT_EQ(shown->holders[0].claim, held->claim());  // whose it is now
    EXPECT_THAT(held->release(), succeeds());
  }
  EXPECT_EQ(keys.size(), 1U);
}

TEST_F(etcd_session, a_waiter_that_queues_again_is_woken_by_the_existing_watch) {
  // Broken: what happened to the key before its watch was reused is not reported to the new user of
  // the watch.
  const auto reactor = spi::make_reactor();
  const net::network net = net::make_network(reactor);
  etcd::server_options options;
  options.servers.push_back({"127.0.0.1", server_->port(), {}});
  const auto hub = std::make_shared<etcd::watch_hub>(
      reactor, etcd::channel::make(net, std::make_shared<const etcd::server_options>(options)),
      net::backoff_limits{});
  const auto watches = std::make_shared<etcd::blocker_watches>(reactor, hub);
  const auto removed_at = [&] {
    server_->ctl({"put", "key", "x"});
    server_->ctl({"del", "key"});
    const std::string json = server_->ctl({"get", "key", "-w", "json"});
    const std::string name = "\"revision\":";
    return std::stoll(json.substr(json.find(name) + name.size()));
  };
  std::atomic<int> first{0};
  std::atomic<int> second{0};
  std::atomic<int> third{0};
  const auto add = [&](std::int64_t seen, std::atomic<int>& looks) {
    return watches->add("key", etcd::watch_filter::no_put, seen, [&looks] { ++looks; });
  };
  const auto one = add(0, first);
  ASSERT_TRUE(eventually([&] { return first == 1; }));  // the watch is there
  const std::int64_t revision = removed_at();
  ASSERT_TRUE(eventually([&] { return first == 2; }));
  const auto two = add(revision - 1, second);
  EXPECT_EQ(second, 1);  // at once: it was removed after that
  const auto three = add(revision, third);
  EXPECT_EQ(third, 0);
  removed_at();
  EXPECT_TRUE(eventually([&] { return first == 3 && second == 2 && third == 1; }));
  watches->close();
  hub->close();
}

}  // namespace
}  // namespace holdfast::test
#endif
