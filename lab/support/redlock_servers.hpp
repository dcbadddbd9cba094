// Independent redis-servers for a quorum. New servers do not count for the longest ttl of any client;
// settle() declares for all running servers that no lease can be outstanding, as an operator may.
#pragma once

#include "support/redis_server.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::test {

class redlock_servers {
 public:
  explicit redlock_servers(std::size_t count, const redis_options& options = {}) {
    for (std::size_t i = 0; i < count; ++i) {
      servers_.push_back(std::make_unique<redis_server>(options));
    }
    settle();
  }

  void settle() const {
    for (const auto& each : servers_) settle(*each);
  }
  static void settle(const redis_server& server) {
    const std::string info = server.cli({"INFO", "server"});
    const auto at = info.find("run_id:") + 7;
    server.cli(
        {"SET", "holdfast:born", "0 " + info.substr(at, info.find_first_of("\r\n", at) - at)});
  }

  // Empties them, as if they had never been used. In one step: a test may do this hundreds of
  // times.
  void flush() const {
    for (const auto& each : servers_) {
      each->tell({"EVAL",
                  "redis.call('FLUSHALL') local id = string.match(redis.call('INFO', 'server'), "
                  "'run_id:(%w+)') return redis.call('SET', 'holdfast:born', '0 ' .. id)",
                  "0"});
    }
  }

  [[nodiscard]] std::string url(const std::string& options = "longest_ttl=30s") const {
    std::string text = "redlock://";
    for (const auto& each : servers_) {
      text += (each == servers_.front() ? "" : ",") + std::string("127.0.0.1:") +
              std::to_string(each->port());
    }
    return text + "?" + options;
  }

  redis_server& operator[](std::size_t index) { return *servers_[index]; }
  [[nodiscard]] std::size_t size() const noexcept { return servers_.size(); }

 private:
  std::vector<std::unique_ptr<redis_server>> servers_;
};

}  // namespace holdfast::test
