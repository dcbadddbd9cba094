// A real redis-server to test against, on a free loopback port and a unix socket, in a folder of its own.
#pragma once

#include "support/child_process.hpp"
#include "support/temporary_folder.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::test {

struct redis_options {
  bool tls = false;                    // the port speaks TLS; give the certificates as arguments
  std::vector<std::string> arguments;  // as on the command line: "--appendonly", "yes"
  std::vector<std::string> admin;      // for redis-cli: "--user", "admin", "--pass", "x"
};

// Not thread-safe. Runs from its construction to its destruction, except between kill() or stop()
// and start(). Without persistence, unless the arguments say otherwise.
class redis_server {
 public:
  // Throws std::runtime_error if it does not answer in time.
  explicit redis_server(redis_options options = {});
  ~redis_server() = default;
  redis_server(const redis_server&) = delete;
  redis_server& operator=(const redis_server&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] std::string socket() const { return folder_.path() / "redis.sock"; }
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_.path(); }
  [[nodiscard]] std::string log() const;

  void kill();    // SIGKILL
  void stop();    // SIGTERM: persists if so configured
  void start();   // again, on the same port and with the same folder
  void pause();   // SIGSTOP: connections stay, nothing is answered
  void resume();  // SIGCONT

  // Runs one command with redis-cli over the unix socket; returns its plain output without the
  // final newline.
  std::string cli(const std::vector<std::string>& words) const;
  // The same if the answer may not arrive: Sentinel closes every connection of a server that it
  // makes a replica, redis-cli's too. Empty then.
  [[nodiscard]] std::string cli_if_answered(const std::vector<std::string>& words) const;
  // One command whose answer does not matter, unless it is an error, which is thrown. Starts no
  // program: for the set-up of hundreds of tests. Not for a server that requires a password.
  void tell(const std::vector<std::string>& words) const;
  // A number from INFO: "connected_clients".
  [[nodiscard]] long info(const std::string& field) const;

 private:
  void launch();
  [[nodiscard]] bool answers() const;

  const redis_options options_;
  temporary_folder folder_;
  std::uint16_t port_ = 0;
  child_process process_;
};

}  // namespace holdfast::test
