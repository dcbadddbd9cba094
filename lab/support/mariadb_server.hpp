// A real MariaDB server for tests and torture, on a free loopback port and a unix socket, in a folder of
// its own, as an unprivileged user even when the tests run as root: the server refuses root.
#pragma once

#include "support/child_process.hpp"
#include "support/temporary_folder.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::test {

struct mariadb_options {
  std::vector<std::string> settings{};  // as on its command line: "max_connections=20"
  bool durable = false;                 // on a disk, and every commit waits for it
};

// Not thread-safe. Runs from its construction to its destruction, except between kill() or stop()
// and start(). Its user is "tester", who may do everything; its database "locks".
// A commit survives the server, and with `durable` the machine.
class mariadb_server {
 public:
  // Throws std::runtime_error if it does not answer in time.
  explicit mariadb_server(mariadb_options options = {});
  ~mariadb_server();
  mariadb_server(const mariadb_server&) = delete;
  mariadb_server& operator=(const mariadb_server&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] std::string socket() const { return folder_.path() / "socket"; }
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_.path(); }
  [[nodiscard]] std::string log() const;

  // For holdfast, with a prefix of its own; `extra` is appended: "&connections=1".
  [[nodiscard]] std::string url(const std::string& prefix, const std::string& extra = {}) const;

  void stop();   // as an administrator would
  void kill();   // SIGKILL
  void start();  // again, on the same port and with the same folder
  void restart();
  void pause();   // SIGSTOP: connections stay, nothing is answered
  void resume();  // SIGCONT
  // Makes it a replica of the other server, which has a binary log, from its first event on:
  // read-only until it is promoted, and then with what it had received.
  void replicate(const mariadb_server& primary);
  void promote();

  // Runs statements with the command line client over the unix socket; returns its bare output
  // without the final newline. Throws std::runtime_error, also if the server does not greet in time.
  std::string sql(const std::string& statements,
                  std::chrono::seconds greeted = std::chrono::minutes(1)) const;

 private:
  void initialise();
  void launch();
  bool has_started();
  [[nodiscard]] bool answers() const;

  const mariadb_options options_;
  const temporary_folder folder_;
  std::uint16_t port_ = 0;
  child_process process_;
};

// One for all tests of this program that need nothing special, started by the first.
mariadb_server& shared_mariadb();

// A prefix that no other test has.
std::string fresh_prefix();

// A prefix on the shared server with empty tables, which the next test may use once this one has
// ended: creating the tables takes longer than most tests.
class borrowed_prefix {
 public:
  borrowed_prefix();
  ~borrowed_prefix();
  borrowed_prefix(const borrowed_prefix&) = delete;
  borrowed_prefix& operator=(const borrowed_prefix&) = delete;

  [[nodiscard]] std::string url(const std::string& extra = {}) const {
    return shared_mariadb().url(name_, extra);
  }

 private:
  std::string name_;
};

}  // namespace holdfast::test
