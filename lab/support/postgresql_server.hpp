// A real PostgreSQL server for tests and torture, on a free loopback port and a unix socket, in a folder of its
// own, as an unprivileged user even when the tests run as root: the server refuses root.
#pragma once

#include "support/child_process.hpp"
#include "support/temporary_folder.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace holdfast::test {

class postgresql_server;

struct postgresql_options {
  std::vector<std::string> settings{};  // as in the configuration: "max_connections=20"
  std::vector<std::string> access{};    // lines of pg_hba.conf; none: everybody is trusted
  bool durable = false;                 // on a disk, and every commit waits for it
  // A streaming standby of this one, which must have wal_level=replica and max_wal_senders.
  const postgresql_server* primary = nullptr;
};

// Not thread-safe. Runs from its construction to its destruction, except between kill() or stop()
// and start(). Its only role at first is "tester", a superuser. Without fsync.
class postgresql_server {
 public:
  // Throws std::runtime_error if it does not answer in time.
  explicit postgresql_server(postgresql_options options = {});
  ~postgresql_server();
  postgresql_server(const postgresql_server&) = delete;
  postgresql_server& operator=(const postgresql_server&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_.path(); }
  [[nodiscard]] std::string log() const;

  // For holdfast, with a schema of its own; `extra` is appended: "&connections=1".
  [[nodiscard]] std::string url(const std::string& schema, const std::string& extra = {}) const;

  enum class shutdown : std::uint8_t { smart, fast, immediate };
  void stop(shutdown how = shutdown::fast);
  void kill();   // SIGKILL to all of it
  void start();  // again, on the same port and with the same folder
  void restart(shutdown how);
  void pause();    // SIGSTOP to all of it: connections stay, nothing is answered
  void resume();   // SIGCONT
  void promote();  // of a standby: it accepts writes when this returns

  // Runs one statement with psql over the unix socket; returns its bare output without the final
  // newline.
  std::string sql(const std::string& statement) const;

 private:
  void initialise();
  void copy_primary();
  void launch();
  void await_start();
  [[nodiscard]] bool answers() const;
  [[nodiscard]] std::vector<std::string> as_user(std::vector<std::string> words) const;

  const postgresql_options options_;
  const temporary_folder folder_;
  std::uint16_t port_ = 0;
  bool paused_ = false;
  child_process process_;
};

// One for all tests of this program that need nothing special, started by the first.
postgresql_server& shared_postgresql();

// A schema's name that no other test has.
std::string fresh_schema();

// An empty schema on the shared server, which the next test may use once this one has ended:
// creating one takes longer than most tests.
class borrowed_schema {
 public:
  borrowed_schema();
  ~borrowed_schema();
  borrowed_schema(const borrowed_schema&) = delete;
  borrowed_schema& operator=(const borrowed_schema&) = delete;

  [[nodiscard]] std::string url(const std::string& extra = {}) const {
    return shared_postgresql().url(name_, extra);
  }

 private:
  std::string name_;
};

}  // namespace holdfast::test
