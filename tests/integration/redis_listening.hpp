// A server of its own, and what clients of other libraries receive on its channels: redis-cli
// listens in their place.
#pragma once

#include "integration/redis_store_harness.hpp"
#include "support/child_process.hpp"
#include "support/temporary_folder.hpp"

#include <fstream>
#include <iterator>
#include <string>

namespace holdfast::test {

class redis_listening : public testing::Test {
 protected:
  redis_server server;
  temporary_folder folder;

  [[nodiscard]] child_process listen_to(const std::string& channel) const {
    child_process listener({"redis-cli", "-p", std::to_string(server.port()), "SUBSCRIBE", channel},
                           folder.path() / "heard");
    EXPECT_TRUE(eventually([&] { return heard().ends_with("subscribe\n" + channel + "\n1\n"); }));
    return listener;
  }
  [[nodiscard]] std::string heard() const {
    std::ifstream from(folder.path() / "heard");
    return {std::istreambuf_iterator<char>(from), {}};
  }
  [[nodiscard]] bool hears(const std::string& channel, const std::string& message) const {
    const std::string text = "message\n" + channel + "\n" + message + "\n";
    return eventually([&] { return heard().ends_with(text); });
  }
};

}  // namespace holdfast::test
