// Listening to the channels on which holders of a foreign format announce releases.
#ifdef HOLDFAST_WITH_REDIS

#include "redis_client_harness.hpp"
#include "stores/redis/client/subscriber.hpp"
#include "stores/redis/foreign/release_channels.hpp"
#include "support/redis_server.hpp"
#include "support/silent_wakeup.hpp"

#include <future>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::test {
namespace {

class deaf_listener final : public redis::channel_listener {
 public:
  void confirmed() override {}
  void message(std::string_view) override {}
  void interrupted(const error&) override {}
};

TEST(redis_release_channels, that_could_not_be_listened_to_are_tried_again) {
  // Broken: whoever waits for a lock while the process listens to as many channels as it may never
  // hears of its release, also when there is room again.
  const redis_server server;
  const client_side client;
  const auto servers = std::make_shared<redis::single_server>(
      std::make_shared<redis::node>(client.network(), options_for(server.port())));
  const auto channels = std::make_shared<redis::release_channels>(client.reactor(), servers);
  spi::claim claim;
  claim.id.bytes[0] = 1;
  const auto listen = [&] {
    std::promise<result<spi::armed>> answer;
    channels->listen(claim, 0, "released", clock::now() + ample,
                     [&](result<spi::armed> armed) { answer.set_value(std::move(armed)); });
    return answer.get_future().get();
  };
  channels->enter(claim, "released", std::make_shared<silent_wakeup>());
  {
    const auto others = std::make_shared<deaf_listener>();
    std::vector<std::unique_ptr<spi::subscription>> all;
    for (std::size_t i = 0; i < redis::subscriber::channel_limit; ++i) {
      auto made = servers->listen(0, std::to_string(i), others);
      ASSERT_TRUE(made) << made.error().message();
      all.push_back(std::move(*made));
    }
    const auto refused = listen();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, errc::overloaded);
  }
  EXPECT_TRUE(eventually([&] { return listen() == spi::armed::recheck; }));
  channels->forget(claim, "released");
  channels->close();
  servers->close();
}

}  // namespace
}  // namespace holdfast::test

#endif
