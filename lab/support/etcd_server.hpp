// Real etcd servers to test against, on free loopback ports, each in a folder of its own.
#pragma once

#include "support/child_process.hpp"
#include "support/fault_proxy.hpp"
#include "support/temporary_folder.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::test {

struct etcd_options {
  std::vector<std::string> arguments{};  // as on the command line
  std::vector<std::string> admin{};      // for etcdctl: "--user", "root:x"
  bool tls = false;                      // the port speaks TLS; give the certificates as arguments
  bool partable = false;                 // a cluster's members reach each other through proxies
};

// One member, alone or of a cluster. Not thread-safe.
class etcd_server {
 public:
  struct ports {
    std::uint16_t client = 0;
    std::uint16_t peer = 0;
    std::uint16_t peer_seen = 0;  // by the other members, if there is a proxy in between
  };
  // Does not start it. `cluster`: as --initial-cluster has it; empty: alone.
  etcd_server(etcd_options options, std::string name, const ports& where, std::string cluster = {});
  etcd_server(const etcd_server&) = delete;
  etcd_server& operator=(const etcd_server&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return where_.client; }
  [[nodiscard]] std::string host() const { return "127.0.0.1:" + std::to_string(where_.client); }
  [[nodiscard]] std::string log() const;
  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_.path(); }

  void launch();  // also again, with what is in its folder
  void start();   // launched; waits until it is healthy, or throws std::runtime_error
  void kill();    // SIGKILL
  void pause();   // SIGSTOP: connections stay, nothing is answered
  void resume();  // SIGCONT
  // Killed, and launched with the state of `snapshot save`.
  void restore(const std::string& snapshot);
  [[nodiscard]] bool alive() noexcept { return process_.alive(); }

  // etcdctl on this member; what it wrote. Throws if it fails.
  std::string ctl(const std::vector<std::string>& words) const;
  // The command line of an etcdctl call on this member, for a caller that runs it.
  [[nodiscard]] std::vector<std::string> ctl_words(const std::vector<std::string>& words) const;

  // True if it answers and has a leader.
  [[nodiscard]] bool healthy() const;
  [[nodiscard]] bool leads() const;

 private:
  const etcd_options options_;
  const std::string name_;
  const ports where_;
  const std::string cluster_;
  temporary_folder folder_{place_in_memory()};
  child_process process_;
};

// A member alone, started. Throws std::runtime_error if it does not serve in time.
std::unique_ptr<etcd_server> start_etcd(const etcd_options& options = {});

// Three members with a leader. Not thread-safe.
class etcd_cluster {
 public:
  explicit etcd_cluster(const etcd_options& options = {});

  // Cuts the members off from each other. Requires `partable`.
  void part();
  void join();

  [[nodiscard]] std::string hosts() const;
  [[nodiscard]] std::vector<std::unique_ptr<etcd_server>>& servers() noexcept { return servers_; }
  // Waits for one.
  [[nodiscard]] etcd_server& leader();

 private:
  void launch(const etcd_options& options);

  std::vector<std::unique_ptr<fault_proxy>> proxies_;  // to each member, if it is partable
  std::vector<std::unique_ptr<etcd_server>> servers_;
};

// "/t123-1-...": a prefix under which no other test writes.
std::string fresh_etcd_prefix();

}  // namespace holdfast::test
