// What the servers of a cluster have in common: distinct ports, their addresses, a leader.
#pragma once

#include "support/eventually.hpp"
#include "support/free_port.hpp"

#include <holdfast/clock.hpp>

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace holdfast::test {

// Ports that nobody uses now, each given once.
class distinct_ports {
 public:
  std::uint16_t next() {
    for (;;) {
      const std::uint16_t port = free_port();
      if (given_.insert(port).second) return port;
    }
  }

 private:
  std::set<std::uint16_t> given_;
};

template <class Server>
std::string hosts_of(const std::vector<std::unique_ptr<Server>>& servers) {
  std::string text;
  for (const auto& each : servers) text += (text.empty() ? "" : ",") + each->host();
  return text;
}

// Waits for the server for which `leads` is true. Throws std::runtime_error.
template <class Server, class Leads>
Server& leader_of(const std::vector<std::unique_ptr<Server>>& servers, Leads leads) {
  Server* found = nullptr;
  const bool there = eventually(
      [&] {
        for (const auto& each : servers) {
          if (each->alive() && leads(*each)) found = each.get();
        }
        return found != nullptr;
      },
      patience * 2);
  if (!there) throw std::runtime_error("no leader: " + servers.front()->log());
  return *found;
}

// A path that no other test has.
inline std::string fresh_path() {
  static int number = 0;
  return "/t" + std::to_string(::getpid()) + "-" + std::to_string(++number) + "-" +
         std::to_string(clock::now().time_since_epoch().count());
}

}  // namespace holdfast::test
