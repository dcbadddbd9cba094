// A proxy for every client on its way to one server, and the faults that it can do.
#pragma once

#include "support/fault_proxy.hpp"
#include "torture/vocabulary.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace holdfast::torture {

// Not thread-safe.
class proxies {
 public:
  proxies(std::uint16_t server_port, std::uint32_t clients);

  [[nodiscard]] std::uint16_t port(std::uint32_t client) const { return proxies_[client]->port(); }

  [[nodiscard]] static bool can(fault what) noexcept {
    return what == fault::partition || what == fault::delay || what == fault::cut ||
           what == fault::truncate || what == fault::garble;
  }
  void begin(fault what, std::uint32_t client);
  void end(std::uint32_t client);

 private:
  std::vector<std::unique_ptr<test::fault_proxy>> proxies_;
};

}  // namespace holdfast::torture
