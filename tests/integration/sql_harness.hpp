// Clients of real SQL servers, and ways to disturb them.
#pragma once

#include "contract/contract.hpp"
#include "support/fault_proxy.hpp"
#include "support/silent_wakeup.hpp"

#include <holdfast/holdfast.hpp>
#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast::test {

// Throws lock_error.
inline client open_client(const std::string& url, client_options options = {}) {
  auto opened = client::open(url, std::move(options));
  if (!opened) throw lock_error(opened.error());
  return *std::move(opened);
}

// The same URL by another port: through a fault_proxy.
inline std::string by_port(const std::string& url, std::uint16_t port) {
  const auto colon = url.find(':', url.find('@'));
  return url.substr(0, colon + 1) + std::to_string(port) + url.substr(url.find('/', colon));
}

// After connections have ended: the client learns over a new one who holds this name. So its next
// call, which is sent only once, does not meet an ending connection.
[[nodiscard]] inline bool is_back(const client& who, const std::string& name) {
  return eventually([&] { return holders(who, name) == 1; });
}

// What doctor says about a running server: asked again if it did not answer in time. Throws
// lock_error.
inline std::vector<spi::check> probed(const client& who) {
  std::vector<spi::check> checks;
  const auto heard = [&] {
    auto answer = who.probe();
    if (!answer) throw lock_error(answer.error());
    checks = *std::move(answer);
    return checks.front().remedy.find("is the server running") == std::string::npos;
  };
  EXPECT_TRUE(eventually(heard)) << checks.front().detail;
  return checks;
}

// What the store answers. Throws nothing.
[[nodiscard]] inline result<spi::outcome> attempted(spi::store& store, const spi::claim_ptr& claim,
                                                    time_point deadline = clock::now() + patience) {
  std::promise<result<spi::outcome>> said;
  store.attempt(claim, std::make_shared<silent_wakeup>(), {.deadline = deadline},
                [&](result<spi::outcome> answer) { said.set_value(std::move(answer)); });
  return said.get_future().get();
}

inline void left(spi::store& store, const spi::claim_ptr& claim) {
  std::promise<void> said;
  store.leave(claim, {.deadline = clock::now() + patience},
              [&](const result<spi::departure>&) { said.set_value(); });
  said.get_future().get();
}

// How soon a claim that has to wait is to ask again, as the store says; zero: it is granted.
[[nodiscard]] inline duration recheck_of(spi::store& store, const std::string& name,
                                         std::uint8_t id) {
  auto claim = std::make_shared<spi::claim>();
  claim->id.bytes[0] = id;
  claim->resource = {"", name};
  claim->ttl = 30s;
  const auto answer = attempted(store, claim);
  if (!answer) throw lock_error(answer.error());
  const auto* blocked = std::get_if<spi::blocked>(&*answer);
  return blocked != nullptr ? blocked->recheck_after : duration{0};
}

// Behind a holder that notifies nobody only the first waiter looks often.
inline void look_often_if_first(spi::store& store, const std::string& name) {
  EXPECT_EQ(recheck_of(store, name, 1), 100ms);
  EXPECT_TRUE(eventually([&] { return recheck_of(store, name, 2) == 1s; }));
  EXPECT_EQ(recheck_of(store, name, 1), 100ms);
  store.close();
}

// Both are renewed once more.
[[nodiscard]] inline testing::AssertionResult both_go_on(const lease& first, const lease& second) {
  for (const lease* each : {&first, &second}) {
    const time_point until = each->valid_until();
    const bool renewed = eventually([&] { return each->valid_until() > until || !each->valid(); });
    if (!renewed) return testing::AssertionFailure() << "it was not renewed";
    if (!each->valid()) return testing::AssertionFailure() << "it was lost";
  }
  return testing::AssertionSuccess();
}

}  // namespace holdfast::test
