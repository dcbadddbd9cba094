#include "support/etcd_server.hpp"

#include "support/eventually.hpp"
#include "support/free_port.hpp"
#include "support/server_group.hpp"

#include <signal.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace holdfast::test {

namespace {

std::string local(std::uint16_t port, bool tls = false) {
  return (tls ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(port);
}

// The number after `"name":` in JSON.
std::string number_in(const std::string& json, const std::string& name) {
  const std::string key = "\"" + name + "\":";
  const auto at = json.find(key);
  if (at == std::string::npos) return {};
  const auto from = at + key.size();
  return json.substr(from, json.find_first_not_of("0123456789", from) - from);
}

}  // namespace

etcd_server::etcd_server(etcd_options options, std::string name, const ports& where,
                         std::string cluster)
    : options_(std::move(options)),
      name_(std::move(name)),
      where_{where.client, where.peer, where.peer_seen != 0 ? where.peer_seen : where.peer},
      cluster_(cluster.empty() ? name_ + "=" + local(where_.peer_seen) : std::move(cluster)) {}

void etcd_server::launch() {
  std::vector<std::string> words{"etcd",
                                 "--name",
                                 name_,
                                 "--data-dir",
                                 (folder_.path() / "data").string(),
                                 "--listen-client-urls",
                                 local(where_.client, options_.tls),
                                 "--advertise-client-urls",
                                 local(where_.client, options_.tls),
                                 "--listen-peer-urls",
                                 local(where_.peer),
                                 "--initial-advertise-peer-urls",
                                 local(where_.peer_seen),
                                 "--initial-cluster",
                                 cluster_,
                                 "--initial-cluster-token",
                                 cluster_};
  words.insert(words.end(), options_.arguments.begin(), options_.arguments.end());
  process_ = child_process(words, folder_.path() / "log");
}

void etcd_server::start() {
  launch();
  if (!eventually([this] { return healthy(); }, patience * 2)) {
    throw std::runtime_error("etcd does not start again: " + log());
  }
}

std::string etcd_server::log() const { return end_of_log(folder_.path() / "log"); }

void etcd_server::restore(const std::string& snapshot) {
  kill();
  const std::string data = (folder_.path() / "data").string();
  std::filesystem::remove_all(data);
  ctl({"snapshot", "restore", snapshot, "--data-dir", data, "--name", name_, "--initial-cluster",
       cluster_, "--initial-cluster-token", cluster_, "--initial-advertise-peer-urls",
       local(where_.peer_seen)});
  launch();
}

void etcd_server::kill() { process_.end(SIGKILL); }
void etcd_server::pause() { process_.pause(); }
void etcd_server::resume() { process_.signal(SIGCONT); }

std::vector<std::string> etcd_server::ctl_words(const std::vector<std::string>& words) const {
  std::vector<std::string> all{"env", "ETCDCTL_API=3", "etcdctl", "--endpoints",
                               local(where_.client, options_.tls)};
  all.insert(all.end(), options_.admin.begin(), options_.admin.end());
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

std::string etcd_server::ctl(const std::vector<std::string>& words) const {
  return run_program(ctl_words(words));
}

bool etcd_server::healthy() const {
  try {
    const std::string status = ctl({"endpoint", "status", "-w", "json", "--command-timeout", "2s"});
    const std::string leader = number_in(status, "leader");
    return !leader.empty() && leader != "0";
  } catch (const std::exception&) {
    return false;
  }
}

bool etcd_server::leads() const {
  try {
    const std::string status = ctl({"endpoint", "status", "-w", "json", "--command-timeout", "2s"});
    const std::string leader = number_in(status, "leader");
    return !leader.empty() && leader == number_in(status, "member_id");
  } catch (const std::exception&) {
    return false;
  }
}

std::unique_ptr<etcd_server> start_etcd(const etcd_options& options) {
  constexpr int attempts = 3;  // another process may take a port before the server does
  std::string last;
  for (int left = attempts; left > 0; --left) {
    auto made = std::make_unique<etcd_server>(
        options, "alone", etcd_server::ports{.client = free_port(), .peer = free_port()});
    made->launch();
    if (eventually([&] { return made->healthy() || !made->alive(); }, patience * 2) &&
        made->alive()) {
      return made;
    }
    last = made->log();
  }
  throw std::runtime_error("etcd does not start: " + last);
}

etcd_cluster::etcd_cluster(const etcd_options& options) {
  constexpr int attempts = 3;
  for (int left = attempts; left > 0; --left) {
    launch(options);
    const auto all_healthy = [&] {
      return std::all_of(servers_.begin(), servers_.end(),
                         [](const auto& each) { return each->healthy(); });
    };
    if (eventually(all_healthy, patience * 2)) return;
  }
  std::string logs;
  for (const auto& each : servers_) logs += each->log();
  throw std::runtime_error("the cluster does not start: " + logs);
}

void etcd_cluster::launch(const etcd_options& options) {
  constexpr std::size_t size = 3;
  servers_.clear();
  proxies_.clear();
  distinct_ports ports;
  std::vector<std::uint16_t> peers;
  std::vector<std::uint16_t> seen;
  std::string cluster;
  for (std::size_t i = 0; i < size; ++i) {
    peers.push_back(ports.next());
    seen.push_back(peers.back());
    if (options.partable) {
      proxies_.push_back(std::make_unique<fault_proxy>(peers.back()));
      seen.back() = proxies_.back()->port();
    }
    cluster += (i == 0 ? "" : ",") + ("m" + std::to_string(i)) + "=" + local(seen.back());
  }
  for (std::size_t i = 0; i < size; ++i) {
    const etcd_server::ports where{.client = ports.next(), .peer = peers[i], .peer_seen = seen[i]};
    servers_.push_back(
        std::make_unique<etcd_server>(options, "m" + std::to_string(i), where, cluster));
    servers_.back()->launch();
  }
}

void etcd_cluster::part() {
  for (const auto& each : proxies_) {
    each->lose(fault_proxy::way::to_server);
    each->lose(fault_proxy::way::to_client);
  }
}

void etcd_cluster::join() {
  for (const auto& each : proxies_) {
    each->reset();  // what was lost is missing on these connections
    each->pass();
  }
}

std::string etcd_cluster::hosts() const { return hosts_of(servers_); }

etcd_server& etcd_cluster::leader() {
  return leader_of(servers_, [](const etcd_server& each) { return each.leads(); });
}

std::string fresh_etcd_prefix() { return fresh_path(); }

}  // namespace holdfast::test
