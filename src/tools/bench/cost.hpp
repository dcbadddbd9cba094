// What a measurement costs: the processor time and memory of the engine's server, if it runs on
// this machine and we may inspect it, and what the TCP connections of a process have sent and
// received. As counted by the kernel: the same for every engine, without asking the engine.
#pragma once

#include <holdfast/clock.hpp>

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::cli {

// Not thread-safe. Includes what a server has forked (PostgreSQL: a process per connection).
class server_process {
 public:
  // Found by the port that it listens on. None: the engine has no server, or not all of its servers
  // were found here.
  static std::optional<server_process> find(const std::string& url);

  struct use {
    duration processor{};
    std::uint64_t memory = 0;  // resident bytes; what processes share counts in each
  };
  // None: the server is gone.
  [[nodiscard]] std::optional<use> look() const;

 private:
  explicit server_process(std::vector<pid_t> pids) : pids_(std::move(pids)) {}

  std::vector<pid_t> pids_;  // one per server
};

struct traffic {
  std::uint64_t sent = 0;      // bytes
  std::uint64_t received = 0;  // bytes
  std::uint64_t sends = 0;     // segments with data
  std::uint64_t receives = 0;

  traffic& operator+=(const traffic& more) noexcept;
  traffic& operator-=(const traffic& less) noexcept;
};

// By socket, so that we notice one that was closed in the meantime.
using traffic_by_socket = std::map<std::uint64_t, traffic>;

// Of this process. Empty where it has no TCP connection. None: the kernel does not count.
std::optional<traffic_by_socket> count_traffic();

// Between two counts. None if there was no connection, or one was closed in between, whose last
// bytes are unknown.
std::optional<traffic> difference(const std::optional<traffic_by_socket>& before,
                                  const std::optional<traffic_by_socket>& after);

}  // namespace holdfast::cli
