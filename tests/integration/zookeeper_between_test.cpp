// What others do between two requests of one change.
#ifdef HOLDFAST_WITH_ZOOKEEPER
#include "stores/zookeeper/zookeeper_store.hpp"
#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "support/zookeeper_server.hpp"

#include <holdfast/holdfast.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

// Clients, and a session by which a test makes the nodes of another one.
class zookeeper_between : public testing::Test {
 protected:
  ~zookeeper_between() override { by_hand_->close(); }

  [[nodiscard]] std::uint16_t port() const {
    return static_cast<std::uint16_t>(std::stoi(server_.hosts.substr(server_.hosts.find(':') + 1)));
  }
  [[nodiscard]] client open() const { return open(port()); }
  [[nodiscard]] client open(std::uint16_t at) const {
    return client::open("zookeeper://127.0.0.1:" + std::to_string(at) + root_).value();
  }
  [[nodiscard]] zookeeper::server_options options_to(std::uint16_t at) const {
    zookeeper::server_options options;
    options.servers = {{"127.0.0.1", at, {}}};
    options.root = root_;
    return options;
  }

  [[nodiscard]] std::shared_ptr<zookeeper::zookeeper_store> store_on(std::uint16_t at) const {
    return std::make_shared<zookeeper::zookeeper_store>(runtime_, options_to(at));
  }

  // Its code, and the body.
  zookeeper::reply ask(zookeeper::request what) {
    struct : zookeeper::asker {
      void answered(std::size_t, result<zookeeper::reply> answer) override {
        promise.set_value(std::move(answer));
      }
      std::promise<result<zookeeper::reply>> promise;
    } who;
    std::vector<zookeeper::question> batch;
    batch.push_back({std::move(what)});
    by_hand_->ask(std::move(batch), clock::now() + patience, who, 0);
    return who.promise.get_future().get().value();
  }
  // An upgrade that is carried out, but whose answer is cut off. From then on all answers are late.
  static void upgrade_unanswered(shared_mutex& lock, lease& held, const client& other,
                                 fault_proxy& proxy) {
    proxy.delay(fault_proxy::way::to_client, 500ms);
    auto upgrades = in_thread([&] { return lock.try_upgrade(held); });
    EXPECT_TRUE(eventually([&] {
      const auto state = other.inspect(lock.name());
      return state && state->holders.size() == 1 && state->holders[0].mode == lock_mode::exclusive;
    }));
    proxy.reset();
    EXPECT_FALSE(upgrades.get());
  }
  // The nodes of a claim of one kind; the name is told.
  std::string queue(const std::string& path, zookeeper::claim_kind kind) {
    const std::string node =
        path + "/" + zookeeper::prefix_of(zookeeper::node_naming::curator, someone_, kind);
    const auto made = ask(zookeeper::make_create(
        node, {}, zookeeper::node_kind::ephemeral_sequential, zookeeper::openness::everybody));
    return zookeeper::read_created(made.body).value().path;
  }

  const shared_zookeeper server_ = use_shared_zookeeper();
  const std::string root_ = fresh_chroot();
  const spi::claim_id someone_{{1, 2, 3}};
  const std::shared_ptr<spi::reactor> runtime_ = spi::make_reactor();
  const std::shared_ptr<zookeeper::session> by_hand_ = zookeeper::session::make(
      net::make_network(runtime_),
      std::make_shared<const zookeeper::server_options>(options_to(port())), 20s, {});
};

TEST_F(zookeeper_between, a_reader_behind_one_that_becomes_the_writer_does_not_become_one_too) {
  // Broken: each of two readers that upgrade stops looking at the other one's new node: two writers.
  using zookeeper::claim_kind;
  const client second = open();
  shared_mutex price(second, "price", {.ttl = 20s});
  ASSERT_TRUE(price.acquire_shared({.wait = patience})->release());  // makes the folder
  const std::string path = root_ + "/price";
  const std::string reader = queue(path, claim_kind::reader);
  auto held = price.acquire_shared({.wait = patience});
  ASSERT_TRUE(held) << held.error().message();
  std::string writer = reader;
  writer.replace(writer.find(zookeeper::stem_of(claim_kind::reader)),
                 zookeeper::stem_of(claim_kind::reader).size(),
                 zookeeper::stem_of(claim_kind::writer));
  const auto renamed =
      ask(zookeeper::make_multi({zookeeper::make_create(writer, {}, zookeeper::node_kind::ephemeral,
                                                        zookeeper::openness::everybody),
                                 zookeeper::make_remove(reader)}));
  ASSERT_EQ(renamed.code, zookeeper::code::ok);
  const auto upgraded = price.try_upgrade(*held);
  ASSERT_FALSE(upgraded);
  EXPECT_EQ(upgraded.error(), errc::would_deadlock) << upgraded.error().message();
  EXPECT_TRUE(held->valid());
  // The first one goes back to reading, or ends.
  ASSERT_EQ(ask(zookeeper::make_remove(writer)).code, zookeeper::code::ok);
  EXPECT_TRUE(price.try_upgrade(*held));
}

TEST_F(zookeeper_between, an_upgrade_that_is_repeated_looks_for_readers_again) {
  // Broken: an upgrade that was not answered is taken for done when it is asked for again, beside a
  // reader that had come before it.
  fault_proxy proxy(port());
  const client cut = open(proxy.port());
  const client other = open();
  shared_mutex price(cut, "price", {.ttl = 20s});
  auto held = price.acquire_shared({.wait = patience});
  ASSERT_TRUE(held) << held.error().message();
  upgrade_unanswered(price, *held, other, proxy);
  proxy.pass();
  auto reads = in_thread(
      [&] { return shared_mutex(other, "price").acquire_shared({.wait = 2 * patience}); });
  ASSERT_TRUE(eventually([&] {
    const auto state = other.inspect("price");
    return state && state->waiters.size() == 1;
  }));
  const auto again = price.try_upgrade(*held);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error(), errc::would_deadlock) << again.error().message();
  EXPECT_TRUE(held->valid());
  const auto read = reads.get();
  EXPECT_TRUE(read) << read.error().message();
}

TEST_F(zookeeper_between, an_upgrade_that_is_not_answered_ends_no_lease) {
  // Broken: the node that it replaced is missed before the new one is found: the lease is lost, and
  // the new node stays, in everybody's way.
  fault_proxy proxy(port());
  const client slow = open(proxy.port());
  const client other = open();
  shared_mutex price(slow, "price", {.ttl = 40s});
  auto held = price.acquire_shared({.wait = patience});
  ASSERT_TRUE(held) << held.error().message();
  upgrade_unanswered(price, *held, other, proxy);
  EXPECT_TRUE(eventually([&] { return price.try_upgrade(*held).has_value(); }));
  EXPECT_TRUE(held->valid());
  EXPECT_TRUE(held->release());
  EXPECT_TRUE(shared_mutex(other, "price").acquire({.wait = patience}));
}

// A change of the latch "gate", by a store without a client around it.
class changing_a_latch {
 public:
  changing_a_latch(const std::shared_ptr<spi::store>& store, const spi::latch_change& change) {
    store->change_latch({"", "gate"}, change, {.deadline = clock::now() + patience},
                        [answer = answer_](result<spi::latch_state> state) {
                          answer->set_value(std::move(state));
                        });
  }
  [[nodiscard]] result<spi::latch_state> get() { return answer_->get_future().get(); }

 private:
  std::shared_ptr<std::promise<result<spi::latch_state>>> answer_ =
      std::make_shared<std::promise<result<spi::latch_state>>>();
};

TEST_F(zookeeper_between, a_late_setter_leaves_the_marks_of_the_next_round) {
  // Broken: a process that is slow to set a latch removes what shows which count-downs the next
  // round has had: one that is repeated counts twice.
  using kind = spi::latch_change::kind;
  const auto step = [](kind what, std::uint32_t count, std::uint8_t id) {
    return spi::latch_change{what, count, spi::claim_id{{id}}, 60s};
  };
  fault_proxy proxy(port());
  const auto slow = store_on(proxy.port());
  const auto quick = store_on(port());
  ASSERT_TRUE(changing_a_latch(slow, step(kind::set, 1, 1)).get());
  ASSERT_TRUE(changing_a_latch(slow, step(kind::down, 1, 2)).get());
  // The latch is read, and the answer is on its way.
  const std::size_t before = proxy.bytes(fault_proxy::way::to_client);
  constexpr std::size_t more_than_pings = 150;
  proxy.hold(fault_proxy::way::to_client);
  changing_a_latch late(slow, step(kind::set, 1, 3));
  ASSERT_TRUE(eventually(
      [&] { return proxy.bytes(fault_proxy::way::to_client) > before + more_than_pings; }));
  ASSERT_TRUE(changing_a_latch(quick, step(kind::set, 2, 4)).get());
  ASSERT_EQ(changing_a_latch(quick, step(kind::down, 1, 5)).get()->count, 1U);
  proxy.pass();
  const auto refused = late.get();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), errc::conflict) << refused.error().message();
  EXPECT_EQ(changing_a_latch(quick, step(kind::down, 1, 5)).get()->count, 1U);
}

TEST_F(zookeeper_between, a_session_that_a_latch_is_watched_by_makes_no_room_for_another) {
  // Broken: the fifth time to live closes the session of somebody who waits for a latch, who is then
  // never told.
  const client other = open();
  latch gate(other, "gate");
  ASSERT_TRUE(gate.set(1));
  const auto store = store_on(port());
  const client one = client::open(runtime_, store).value();
  flag changed;
  const auto watching = store->watch_latch({"", "gate"}, [&] { changed.raise(); });
  ASSERT_TRUE(watching);
  ASSERT_TRUE(one.inspect("gate"));  // by the same session, so the watch is set
  std::vector<lease> held;
  for (const auto ttl : {2s, 3s, 4s, 5s}) {
    auto got =
        mutex(one, "stock" + std::to_string(held.size()), {.ttl = ttl}).acquire({.wait = patience});
    ASSERT_TRUE(got) << got.error().message();
    held.push_back(*std::move(got));
  }
  ASSERT_TRUE(gate.count_down());
  EXPECT_TRUE(changed.wait());
}

TEST_F(zookeeper_between, a_session_that_nobody_uses_any_more_makes_room) {
  // Broken: what watched the queue for the holder of a permit keeps its session, and a later claim gets one that
  // outlives it.
  client other = open();
  const client one = open();
  for (const auto ttl : {2s, 3s, 4s, 5s}) {
    const std::string name = "stock" + std::to_string(ttl.count());
    semaphore pool(one, name, {.max = 1, .lock = {.ttl = ttl}});
    auto held = pool.acquire({.wait = patience});
    ASSERT_TRUE(held) << held.error().message();
    // The answer to this shows that the hold is watched.
    ASSERT_TRUE(other.revoke(name, revocation::safe, {}));
    ASSERT_TRUE(eventually([&] { return held->lost().stop_requested(); }));
    static_cast<void>(held->release());
  }
  EXPECT_TRUE(eventually([&] {
    const auto held = mutex(one, "short", {.ttl = 1s}).acquire({.wait = patience});
    return held && held->ttl() <= 1s;
  }));
}

TEST_F(zookeeper_between, a_session_that_was_closed_proves_nothing) {
  // Broken: its node is gone, and the hold that it was worth is valid.
  const auto answer = ask(zookeeper::make_barrier());
  EXPECT_GT(by_hand_->proven_until(answer.session), clock::now());
  by_hand_->close();
  EXPECT_EQ(by_hand_->proven_until(answer.session), time_point::min());
}

}  // namespace
}  // namespace holdfast::test
#endif
