#include "torture/testbeds.hpp"

#include "support/eventually.hpp"

#include <chrono>
#include <stdexcept>

namespace holdfast::torture {

namespace {

using way = test::fault_proxy::way;
constexpr std::chrono::milliseconds lateness{60};
constexpr std::size_t answer_head = 48;  // bytes: most answers are longer

}  // namespace

proxies::proxies(std::uint16_t server_port, std::uint32_t clients) {
  for (std::uint32_t i = 0; i < clients; ++i) {
    proxies_.push_back(std::make_unique<test::fault_proxy>(server_port));
  }
}

void proxies::begin(fault what, std::uint32_t client) {
  test::fault_proxy& proxy = *proxies_[client % proxies_.size()];
  if (what == fault::cut) proxy.reset();
  // Anywhere in the next answer, also before its first byte.
  if (what == fault::truncate) {
    proxy.cut_after(way::to_client, proxy.bytes(way::to_client) % answer_head);
  }
  if (what == fault::garble) proxy.garble(way::to_client);
  for (const way each : {way::to_server, way::to_client}) {
    if (what == fault::partition) proxy.lose(each);
    if (what == fault::delay) proxy.delay(each, lateness);
  }
}

void proxies::end(std::uint32_t client) {
  test::fault_proxy& proxy = *proxies_[client % proxies_.size()];
  proxy.pass();
  // The swallowed bytes leave a gap that TCP never has: such a connection is not used again.
  proxy.reset();
}

test::redis_options durable_redis() {
  return {
      .tls = false, .arguments = {"--appendonly", "yes", "--appendfsync", "always"}, .admin = {}};
}

etcd_cluster_testbed::etcd_cluster_testbed(std::uint32_t clients) {
  for (const auto& each : cluster_.servers()) {
    proxies_.push_back(std::make_unique<proxies>(each->port(), clients));
  }
}

std::string etcd_cluster_testbed::url(std::uint32_t client) const {
  std::string hosts;
  for (const auto& each : proxies_) {
    hosts += (hosts.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(each->port(client));
  }
  return "etcd://" + hosts + "/torture";
}

std::string etcd_cluster_testbed::quiet_url() const {
  return "etcd://" + cluster_.hosts() + "/torture";
}

bool etcd_cluster_testbed::can(fault what) const {
  return proxies::can(what) || what == fault::pause_server || what == fault::kill_server;
}

// It is the leader that is hit: nobody notices the loss of another.
void etcd_cluster_testbed::begin(fault what, std::uint32_t target) {
  if (what == fault::pause_server || what == fault::kill_server) {
    stopped_ = &cluster_.leader();
    return what == fault::pause_server ? stopped_->pause() : stopped_->kill();
  }
  for (const auto& each : proxies_) each->begin(what, target);
}

void etcd_cluster_testbed::end(fault what, std::uint32_t target) {
  if (what == fault::pause_server) return stopped_->resume();
  if (what == fault::kill_server) return stopped_->start();
  for (const auto& each : proxies_) each->end(target);
}

redlock_testbed::redlock_testbed(std::uint32_t clients) : servers_(members, durable_redis()) {
  for (std::size_t i = 0; i < members; ++i) {
    proxies_.push_back(std::make_unique<proxies>(servers_[i].port(), clients));
  }
}

std::string redlock_testbed::url(std::uint32_t client) const {
  std::string hosts;
  for (const auto& each : proxies_) {
    hosts += (hosts.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(each->port(client));
  }
  return "redlock://" + hosts + "?longest_ttl=30s";
}

std::string redlock_testbed::quiet_url() const { return servers_.url(); }

bool redlock_testbed::can(fault what) const {
  return proxies::can(what) || what == fault::pause_server || what == fault::kill_server ||
         what == fault::script_flush;
}

void redlock_testbed::begin(fault what, std::uint32_t target) {
  test::redis_server& member = servers_[target % members];
  if (what == fault::pause_server) return member.pause();
  if (what == fault::kill_server) return member.kill();
  if (what == fault::script_flush) return flush_scripts(member);
  for (const auto& each : proxies_) each->begin(what, target);
}

void redlock_testbed::end(fault what, std::uint32_t target) {
  test::redis_server& member = servers_[target % members];
  if (what == fault::pause_server) return member.resume();
  if (what == fault::script_flush) return;
  if (what == fault::kill_server) {
    member.start();
    // It kept every write: its vote counts at once, as an operator may declare.
    return test::redlock_servers::settle(member);
  }
  for (const auto& each : proxies_) each->end(target);
}

sentinel_testbed::sentinel_testbed() : sentinels_(durable_redis().arguments) {}

bool sentinel_testbed::can(fault what) const {
  return what == fault::failover || what == fault::pause_server || what == fault::script_flush;
}

bool sentinel_testbed::forgets(fault what) const {
  return what == fault::failover || what == fault::pause_server;
}

void sentinel_testbed::begin(fault what, std::uint32_t) {
  if (what == fault::failover) return sentinels_.fail_over();
  if (what == fault::script_flush) return flush_scripts(sentinels_.master());
  // Only now: an unplanned failover would forget grants that are counted.
  sentinels_.replace_after(std::chrono::seconds(1));
  stopped_ = &sentinels_.master();
  stopped_->pause();
}

void sentinel_testbed::end(fault what, std::uint32_t) {
  if (what != fault::pause_server || stopped_ == nullptr) return;
  stopped_->resume();
  stopped_ = nullptr;
  if (!test::eventually([this] { return sentinels_.settled(); }, 2 * test::patience)) {
    throw std::runtime_error("the sentinels do not agree again");
  }
  sentinels_.replace_after(test::redis_sentinels::not_within_a_test);
}

bool cluster_testbed::can(fault what) const {
  return what == fault::failover || what == fault::pause_server || what == fault::script_flush;
}

bool cluster_testbed::forgets(fault what) const {
  return what == fault::failover || what == fault::pause_server;
}

void cluster_testbed::begin(fault what, std::uint32_t target) {
  const std::size_t slot = target * 5461 % 16384;
  if (what == fault::failover) {
    return cluster_.fail_over_to(cluster_.replica_of(cluster_.owner(static_cast<int>(slot))));
  }
  test::redis_server& node = cluster_.node(target % test::redis_cluster::node_count);
  if (what == fault::script_flush) return flush_scripts(node);
  cluster_.replace_after(std::chrono::seconds(2));  // only now, as above
  node.pause();
}

void cluster_testbed::end(fault what, std::uint32_t target) {
  if (what != fault::pause_server) return;
  cluster_.node(target % test::redis_cluster::node_count).resume();
  if (!test::eventually([this] { return cluster_.settled(); }, 2 * test::patience)) {
    throw std::runtime_error("the cluster does not recover");
  }
  cluster_.replace_after(test::redis_cluster::not_within_a_test);
}

}  // namespace holdfast::torture
