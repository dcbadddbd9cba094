// Real ZooKeeper servers to test against, on free loopback ports, each in a folder of its own.
#pragma once

#include "support/child_process.hpp"
#include "support/fault_proxy.hpp"
#include "support/temporary_folder.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::test {

struct zookeeper_options {
  int tick = 400;                  // ms; sessions live 2 to 300 of them
  std::vector<std::string> lines;  // more of zoo.cfg
  // The lines "ssl...." of zoo.cfg: there is a second port then, which speaks TLS.
  std::vector<std::string> tls;
};

// One server, alone or of an ensemble. Not thread-safe.
class zookeeper_server {
 public:
  // Does not start it. `members`: the lines "server.N=..." of an ensemble, in which it is `number`.
  zookeeper_server(zookeeper_options options, std::uint16_t port, int number = 1,
                   std::vector<std::string> members = {});
  zookeeper_server(const zookeeper_server&) = delete;
  zookeeper_server& operator=(const zookeeper_server&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] std::uint16_t tls_port() const noexcept { return tls_port_; }
  [[nodiscard]] std::string host() const { return "127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] std::string log() const;

  void launch();
  void start();   // launched; waits until it serves, or throws std::runtime_error
  void kill();    // SIGKILL
  void pause();   // SIGSTOP: connections stay, nothing is answered
  void resume();  // SIGCONT
  [[nodiscard]] bool alive() noexcept { return process_.alive(); }

  // Its role according to "srvr": "leader", "follower", "standalone"; empty: it does not serve.
  [[nodiscard]] std::string mode() const;

 private:
  const zookeeper_options options_;
  const std::uint16_t port_;
  std::uint16_t tls_port_ = 0;
  const int number_;
  const std::vector<std::string> members_;
  temporary_folder folder_;
  child_process process_;
};

// A server alone, started. Throws std::runtime_error if it does not serve in time.
std::unique_ptr<zookeeper_server> start_zookeeper(const zookeeper_options& options = {});

// Three servers with a leader. Each connection to another server's quorum port, where a leader
// accepts its followers, goes through its own proxy. Not thread-safe.
class zookeeper_ensemble {
 public:
  explicit zookeeper_ensemble(const zookeeper_options& options = {});

  // Makes the last one the leader. It is slow to notice that nobody follows: 80 s at the usual
  // tick.
  zookeeper_server& let_the_slow_one_lead();

  // No byte between the two from now on; their connections stay open, and there are no new ones.
  void cut(std::size_t from, std::size_t to);
  [[nodiscard]] std::size_t number_of(const zookeeper_server& server) const;

  [[nodiscard]] std::string hosts() const;
  [[nodiscard]] std::vector<std::unique_ptr<zookeeper_server>>& servers() noexcept {
    return servers_;
  }
  // Waits for one.
  [[nodiscard]] zookeeper_server& leader();

 private:
  void launch(const zookeeper_options& options);

  std::vector<std::vector<std::unique_ptr<fault_proxy>>> proxies_;  // [from][to]
  std::vector<std::unique_ptr<zookeeper_server>> servers_;
};

// The hosts of a server that test programs share: a Java program takes long to start, and tests run
// in a process each. It ends by itself shortly after the last of them, however they ended. Hold
// what is returned while using it.
struct shared_zookeeper {
  std::string hosts;
  std::shared_ptr<const void> keep;
};
shared_zookeeper use_shared_zookeeper();

// A path under which no other test writes.
std::string fresh_chroot();

}  // namespace holdfast::test
