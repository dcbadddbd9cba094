// A master, its replicas and the sentinels that watch them, for tests and torture.
#pragma once

#include "support/redis_server.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::test {

struct sentinels_options {
  redis_options servers;           // of each data server
  bool tls = false;                // the sentinels' ports use TLS
  std::vector<std::string> lines;  // more of each sentinel's configuration; the master is "stock"
  std::vector<std::string> admin;  // for redis-cli to a sentinel: "--user", "admin", "--pass", "x"
};

// Not thread-safe. Runs from its construction, which waits until all know each other, to its
// destruction.
class redis_sentinels {
 public:
  static constexpr std::size_t server_count = 3;
  static constexpr std::size_t sentinel_count = 3;

  // `arguments`: of each server, as on the command line.
  explicit redis_sentinels(const std::vector<std::string>& arguments = {});
  explicit redis_sentinels(sentinels_options options);

  [[nodiscard]] std::string url() const;
  // The current master, according to the first sentinel; waits until it is one of the servers.
  [[nodiscard]] redis_server& master() const;
  [[nodiscard]] const std::vector<std::unique_ptr<redis_server>>& servers() const noexcept {
    return servers_;
  }
  // A command to one sentinel.
  std::string ask(std::size_t sentinel, const std::vector<std::string>& words) const;
  // A planned failover; returns when every sentinel names the new master and it has replicas.
  void fail_over() const;
  // How long a master may be silent. Initially so long that a host that is paused for seconds does
  // not cause a failover that no test asked for.
  static constexpr std::chrono::minutes not_within_a_test{5};
  void replace_after(std::chrono::milliseconds silence) const;
  // All sentinels name one master, it answers as one, and all other servers follow it.
  [[nodiscard]] bool settled() const;

 private:
  struct watchman {
    temporary_folder folder;
    std::uint16_t port = 0;
    child_process process;
  };

  void start_sentinel();
  [[nodiscard]] std::vector<std::string> cli_words(std::uint16_t sentinel) const;
  [[nodiscard]] std::uint16_t master_port(std::size_t sentinel) const;

  const sentinels_options options_;
  std::vector<std::unique_ptr<redis_server>> servers_;
  std::vector<std::unique_ptr<watchman>> sentinels_;
};

}  // namespace holdfast::test
