// Real engines that can be lost and restored, each in its own way: ended, stopped, cut off.
#pragma once

#include "contract/contract.hpp"
#include "support/fault_proxy.hpp"
#include "support/recording_observer.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace holdfast::test {

// Not thread-safe. Behind a proxy, which makes it unreachable unless a subclass has another way.
// What it held before the loss, it holds afterwards.
class lost_engine {
 public:
  explicit lost_engine(std::uint16_t port) : proxy_(port) {}
  virtual ~lost_engine() = default;
  lost_engine(const lost_engine&) = delete;
  lost_engine& operator=(const lost_engine&) = delete;

  // Through the proxy; with at least one option.
  [[nodiscard]] virtual std::string url() const = 0;

  virtual void lose() {
    proxy_.lose(fault_proxy::way::to_server);
    proxy_.lose(fault_proxy::way::to_client);
  }
  virtual void give_back() {
    proxy_.pass();
    proxy_.reset();
  }

  [[nodiscard]] fault_proxy& proxy() noexcept { return proxy_; }
  [[nodiscard]] const fault_proxy& proxy() const noexcept { return proxy_; }

 private:
  fault_proxy proxy_;
};

struct way_to_lose {
  std::string name;
  std::function<std::unique_ptr<lost_engine>()> make;

  friend std::ostream& operator<<(std::ostream& out, const way_to_lose& way) {
    return out << way.name;
  }
};

const std::vector<way_to_lose>& ways_to_lose();
// One of each engine: the ways above work the same with any of their proxies.
const std::vector<way_to_lose>& engines_behind_proxies();

}  // namespace holdfast::test
