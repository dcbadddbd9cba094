// Subscriptions: what is published after the confirmation arrives, and a possible gap is reported.
#ifdef HOLDFAST_WITH_REDIS

#include "redis_client_harness.hpp"
#include "stores/redis/client/subscriber.hpp"
#include "support/fault_proxy.hpp"
#include "support/redis_server.hpp"

#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace holdfast::test {
namespace {

using redis::channel_id;
using redis::subscriber;
using testing::ElementsAre;
using testing::HasSubstr;

// Records what it is notified of.
class listener final : public redis::channel_listener {
 public:
  void confirmed() override { ++confirmations; }
  void interrupted(const error& why) override {
    const std::scoped_lock lock(mutex_);
    ++interruptions;
    last_ = why;
  }
  void message(std::string_view payload) override {
    const std::scoped_lock lock(mutex_);
    messages_.emplace_back(payload);
  }
  [[nodiscard]] std::vector<std::string> messages() const {
    const std::scoped_lock lock(mutex_);
    return messages_;
  }
  [[nodiscard]] error last() const {
    const std::scoped_lock lock(mutex_);
    return last_;
  }

  std::atomic<int> confirmations{0};
  std::atomic<int> interruptions{0};

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> messages_;  // guarded by mutex_
  error last_;                         // guarded by mutex_
};

struct redis_subscriber : testing::Test {
  redis_server server;
  fault_proxy proxy{server.port()};
  client_side client;
  std::shared_ptr<subscriber> line = make(proxy.port());

  std::shared_ptr<subscriber> make(std::uint16_t port, redis::subscriber_limits limits = {}) {
    auto options = options_for(port);
    options.backoff = {1ms, 20ms};
    return subscriber::make(client.network(), std::move(options), limits);
  }
  static channel_id named(const std::string& name) { return {channel_id::flavour::classic, name}; }
  std::unique_ptr<spi::subscription> listen(const std::shared_ptr<listener>& who,
                                            const channel_id& channel) {
    auto made = line->subscribe(channel, who);
    EXPECT_TRUE(made);
    return made ? std::move(*made) : nullptr;
  }
  void publish(const std::string& channel, const std::string& text) {
    server.cli({"PUBLISH", channel, text});
  }
  std::string subscribers(const std::string& channel) {
    return server.cli({"PUBSUB", "NUMSUB", channel}).substr(channel.size() + 1);
  }
  void TearDown() override { line->close(); }
};

TEST_F(redis_subscriber, what_is_published_after_the_confirmation_arrives_in_order) {
  // Broken: grants pushed to a waiter would not reach it.
  const auto who = std::make_shared<listener>();
  const auto held = listen(who, named("news"));
  ASSERT_TRUE(eventually([&] { return who->confirmations == 1; }));
  publish("news", "one");
  publish("other", "no");
  publish("news", std::string("two\r\nlines"));
  ASSERT_TRUE(eventually([&] { return who->messages().size() == 2; }));
  EXPECT_THAT(who->messages(), ElementsAre("one", "two\r\nlines"));
  EXPECT_EQ(who->interruptions, 0);
}

TEST_F(redis_subscriber, listeners_of_a_channel_share_it_until_the_last_leaves) {
  // Broken: subscriptions would leak, or end for all when one leaves.
  const auto first = std::make_shared<listener>();
  const auto second = std::make_shared<listener>();
  auto one = listen(first, named("news"));
  ASSERT_TRUE(eventually([&] { return first->confirmations == 1; }));
  auto two = listen(second, named("news"));
  ASSERT_TRUE(eventually([&] { return second->confirmations == 1; }));
  EXPECT_EQ(subscribers("news"), "1");
  publish("news", "both");
  ASSERT_TRUE(eventually([&] { return second->messages().size() == 1; }));
  one.reset();
  publish("news", "second");
  ASSERT_TRUE(eventually([&] { return second->messages().size() == 2; }));
  EXPECT_THAT(first->messages(), ElementsAre("both"));
  two.reset();
  EXPECT_TRUE(eventually([&] { return subscribers("news") == "0"; }));
  // And again: the channel works as at first.
  const auto third = std::make_shared<listener>();
  const auto three = listen(third, named("news"));
  ASSERT_TRUE(eventually([&] { return third->confirmations == 1; }));
  publish("news", "third");
  EXPECT_TRUE(eventually([&] { return third->messages().size() == 1; }));
}

TEST_F(redis_subscriber, leaving_and_coming_back_at_once_ends_with_a_subscription) {
  // Broken: an answer to UNSUBSCRIBE would be taken for one to SUBSCRIBE.
  const auto who = std::make_shared<listener>();
  auto held = listen(who, named("news"));
  for (int i = 0; i < 100; ++i) {
    held.reset();
    held = listen(who, named("news"));
  }
  ASSERT_TRUE(eventually([&] { return who->confirmations > 0 && subscribers("news") == "1"; }));
  const int before = who->confirmations;
  held.reset();
  held = listen(who, named("news"));
  ASSERT_TRUE(eventually([&] { return who->confirmations > before; }));
  publish("news", "here");
  EXPECT_TRUE(eventually([&] { return who->messages().size() == 1; }));
}

TEST_F(redis_subscriber, a_lost_connection_is_reported_and_confirmed_again) {
  // Broken (H22): a waiter would sleep on a subscription that no longer exists.
  const auto who = std::make_shared<listener>();
  const auto held = listen(who, named("news"));
  const auto more = std::make_shared<listener>();
  const auto second = listen(more, named("more"));
  for (int round = 1; round <= 5; ++round) {
    ASSERT_TRUE(
        eventually([&] { return who->confirmations == round && more->confirmations == round; }));
    publish("news", std::to_string(round));
    ASSERT_TRUE(
        eventually([&] { return who->messages().size() == static_cast<std::size_t>(round); }));
    server.cli({"CLIENT", "KILL", "TYPE", "pubsub"});
    ASSERT_TRUE(
        eventually([&] { return who->interruptions == round && more->interruptions == round; }));
  }
}

TEST_F(redis_subscriber, a_server_that_restarts_is_subscribed_to_again) {
  // Broken: after a restart pushes would be lost forever.
  const auto who = std::make_shared<listener>();
  const auto held = listen(who, named("news"));
  ASSERT_TRUE(eventually([&] { return who->confirmations == 1; }));
  server.kill();
  ASSERT_TRUE(eventually([&] { return who->interruptions > 0; }));
  server.start();
  ASSERT_TRUE(eventually([&] { return who->confirmations == 2; }));
  publish("news", "back");
  EXPECT_TRUE(eventually([&] { return who->messages().size() == 1; }));
}

TEST_F(redis_subscriber, a_silent_connection_is_found_out_by_asking) {
  // Broken (H24): a half-open connection would look like a quiet channel.
  EXPECT_TRUE(also_longer(100ms, [&](duration answer) {
    line->close();
    line = make(proxy.port(), {50ms, answer});
    const auto who = std::make_shared<listener>();
    const auto held = listen(who, named("news"));
    EXPECT_TRUE(eventually([&] { return who->confirmations >= 1; }));
    // Alive: pinged and answered, more than once.
    const std::size_t before = proxy.pieces(fault_proxy::way::to_client);
    EXPECT_TRUE(eventually([&] { return proxy.pieces(fault_proxy::way::to_client) > before + 3; }));
    if (who->interruptions > 0) return testing::AssertionFailure() << "not answered in time";
    proxy.lose(fault_proxy::way::to_client);
    EXPECT_TRUE(eventually([&] { return who->interruptions > 0; }));
    proxy.pass();
    EXPECT_TRUE(eventually([&] { return who->confirmations >= 2; }));
    return testing::AssertionSuccess();
  }));
}

TEST_F(redis_subscriber, a_forbidden_channel_is_reported_with_what_to_grant) {
  // Broken: a waiter would wait for pushes that never come, and nobody would know why.
  server.cli({"ACL", "SETUSER", "few", "on", "nopass", "+@all", "~*", "resetchannels", "&mine:*"});
  auto options = options_for(server.port());
  options.user = "few";
  options.backoff = {1ms, 20ms};
  line->close();
  line = subscriber::make(client.network(), options, {50ms, 5s});
  const auto refused = std::make_shared<listener>();
  const auto allowed = std::make_shared<listener>();
  const auto one = listen(refused, named("other"));
  const auto two = listen(allowed, named("mine:1"));
  ASSERT_TRUE(
      eventually([&] { return refused->interruptions > 0 && allowed->confirmations == 1; }));
  EXPECT_EQ(refused->last(), errc::denied);
  EXPECT_THAT(refused->last().detail, HasSubstr("&other"));
  EXPECT_EQ(allowed->interruptions, 0);
  // Requested again with patience: once it is granted, it works.
  server.cli({"ACL", "SETUSER", "few", "&other"});
  EXPECT_TRUE(eventually([&] { return refused->confirmations == 1; }));
}

TEST_F(redis_subscriber, many_channels_come_and_go_under_fire) {
  // Broken: requests and answers would get out of step, or a listener be called after its
  // destruction.
  std::atomic<bool> stop{false};
  std::jthread trouble([&] {
    while (!stop) {
      const std::size_t seen = proxy.pieces(fault_proxy::way::to_client);
      if (eventually(
              [&] { return stop || proxy.pieces(fault_proxy::way::to_client) > seen + 5; })) {
        proxy.reset();
      }
    }
  });
  {
    std::vector<std::jthread> all;
    for (int thread = 0; thread < 4; ++thread) {
      all.emplace_back([&, thread] {
        for (int i = 0; i < 100; ++i) {
          const auto who = std::make_shared<listener>();
          const auto held = line->subscribe(named("c" + std::to_string((thread + i) % 5)), who);
          EXPECT_TRUE(eventually([&] { return who->confirmations > 0; }));
        }
      });
    }
  }
  stop = true;
  trouble.join();
  const auto who = std::make_shared<listener>();
  const auto held = listen(who, named("last"));
  ASSERT_TRUE(eventually([&] { return who->confirmations > 0; }));
  EXPECT_TRUE(eventually([&] { return subscribers("c0") == "0" && subscribers("c1") == "0"; }));
}

TEST_F(redis_subscriber, closing_calls_nobody_afterwards) {
  // Broken: a destroyed store would be called back.
  const auto who = std::make_shared<listener>();
  const auto held = listen(who, named("news"));
  ASSERT_TRUE(eventually([&] { return who->confirmations == 1; }));
  line->close();
  publish("news", "late");
  EXPECT_FALSE(line->subscribe(named("news"), who));
  EXPECT_EQ(who->interruptions, 0);
  EXPECT_TRUE(who->messages().empty());
}

TEST(redis_sharded_subscriber, a_slot_that_moves_away_is_a_loss_until_it_is_back) {
  // Broken: after a resharding pushes would be lost silently (the server ends the subscription).
  const redis_server server({.tls = false, .arguments = {"--cluster-enabled", "yes"}, .admin = {}});
  server.cli({"CLUSTER", "ADDSLOTSRANGE", "0", "16383"});
  ASSERT_TRUE(eventually([&] {
    return server.cli({"CLUSTER", "INFO"}).find("cluster_state:ok") != std::string::npos;
  }));
  server.cli({"CONFIG", "SET", "cluster-require-full-coverage", "no"});
  client_side client;
  auto options = options_for(server.port());
  options.backoff = {1ms, 20ms};
  const auto line = subscriber::make(client.network(), options, {50ms, 5s});
  const auto who = std::make_shared<listener>();
  const channel_id channel{channel_id::flavour::sharded, "{partition}:1"};
  const auto held = line->subscribe(channel, who);
  ASSERT_TRUE(eventually([&] { return who->confirmations == 1; }));
  server.cli({"SPUBLISH", "{partition}:1", "one"});
  ASSERT_TRUE(eventually([&] { return who->messages().size() == 1; }));

  const std::string slot = server.cli({"CLUSTER", "KEYSLOT", "{partition}:1"});
  server.cli({"CLUSTER", "DELSLOTS", slot});
  ASSERT_TRUE(eventually([&] { return who->interruptions > 0; }));
  server.cli({"CLUSTER", "ADDSLOTS", slot});
  ASSERT_TRUE(eventually([&] { return who->confirmations == 2; }));
  server.cli({"SPUBLISH", "{partition}:1", "two"});
  EXPECT_TRUE(eventually([&] { return who->messages().size() == 2; }));
  line->close();
}

}  // namespace
}  // namespace holdfast::test

#endif
