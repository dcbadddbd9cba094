// The engine's server, where it runs on this machine and we may look at it: its processor time and
// memory, as /proc has them. Found by the port that it listens at.
#pragma once

#include <holdfast/clock.hpp>

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::cli {

// Not thread-safe. Includes what a server has forked (PostgreSQL: a process per connection).
class server_process {
 public:
  // None: the engine has no server, or not all of its servers were found here.
  static std::optional<server_process> find(const std::string& url);

  struct use {
    duration processor{};
    std::uint64_t memory = 0;  // resident bytes; what processes share counts in each
  };
  // None: it is gone.
  [[nodiscard]] std::optional<use> look() const;

 private:
  explicit server_process(std::vector<pid_t> pids) : pids_(std::move(pids)) {}

  std::vector<pid_t> pids_;  // one per server
};

}  // namespace holdfast::cli
