// By hand, since redis-cli --cluster create takes ten seconds and asks questions.
#include "support/redis_cluster.hpp"

#include "support/eventually.hpp"

#include <sstream>
#include <stdexcept>
#include <utility>

namespace holdfast::test {

namespace {

constexpr int slot_count = 16'384;

std::string port_of(const redis_server& server) { return std::to_string(server.port()); }

}  // namespace

redis_cluster::redis_cluster(redis_options how) : options_(std::move(how)) {
  redis_options options = options_;
  options.arguments.insert(options.arguments.end(),
                           {"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
                            "--cluster-node-timeout", "2000", "--repl-diskless-sync-delay", "0"});
  for (std::size_t i = 0; i < node_count; ++i) {
    nodes_.push_back(std::make_unique<redis_server>(options));
    ids_.push_back(nodes_[i]->cli({"CLUSTER", "MYID"}));
    nodes_[i]->cli({"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
  }
  constexpr int share = slot_count / static_cast<int>(master_count) + 1;
  for (std::size_t i = 0; i < master_count; ++i) {
    const int first = static_cast<int>(i) * share;
    const int last = std::min(first + share, slot_count) - 1;
    std::vector<std::string> words{"CLUSTER", "ADDSLOTS"};  // by ranges only from Redis 7 on
    for (int slot = first; slot <= last; ++slot) words.push_back(std::to_string(slot));
    nodes_[i]->cli(words);
  }
  for (std::size_t i = 0; i < node_count; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      nodes_[i]->cli({"CLUSTER", "MEET", "127.0.0.1", port_of(*nodes_[j])});
    }
  }
  bool fine = eventually([this] { return settled(); });
  for (std::size_t i = master_count; fine && i < node_count; ++i) {
    nodes_[i]->cli({"CLUSTER", "REPLICATE", ids_[i - master_count]});
  }
  fine =
      fine && eventually([this] {
        for (std::size_t i = 0; i < master_count; ++i) {
          if (nodes_[i]->cli({"INFO", "replication"}).find("state=online") == std::string::npos) {
            return false;
          }
        }
        return settled();
      });
  if (!fine) throw std::runtime_error("the cluster does not come up");
  replace_after(not_within_a_test);
}

void redis_cluster::replace_after(std::chrono::milliseconds silence) {
  silence_ = silence;
  for (const auto& each : nodes_) {
    each->cli({"CONFIG", "SET", "cluster-node-timeout", std::to_string(silence.count())});
  }
}

bool redis_cluster::settled() const {
  for (const auto& each : nodes_) {
    const std::string facts = each->cli({"CLUSTER", "INFO"});
    if (facts.find("cluster_state:ok") == std::string::npos) return false;
    if (facts.find("cluster_known_nodes:6") == std::string::npos) return false;
  }
  return true;
}

std::string redis_cluster::url() const {
  std::string hosts;
  for (std::size_t i = 0; i < master_count; ++i) {
    hosts += (hosts.empty() ? "" : ",") + ("127.0.0.1:" + port_of(*nodes_[i]));
  }
  return "redis+cluster://" + hosts;
}

void redis_cluster::flush() const {
  for (std::size_t i = 0; i < master_count; ++i) nodes_[i]->tell({"FLUSHALL"});
}

std::size_t redis_cluster::owner(int slot) const {
  std::size_t found = node_count;
  const bool known = eventually([&] {
    for (std::size_t i = 0; i < node_count; ++i) {
      std::istringstream lines(nodes_[i]->cli({"CLUSTER", "NODES"}));
      for (std::string line; std::getline(lines, line);) {
        if (line.find("myself,master") == std::string::npos) continue;
        std::istringstream words(line);
        std::string word;
        for (int skip = 0; skip < 8; ++skip) words >> word;
        while (words >> word) {
          if (word.starts_with('[')) continue;
          const auto dash = word.find('-');
          const int first = std::stoi(word.substr(0, dash));
          const int last = dash == std::string::npos ? first : std::stoi(word.substr(dash + 1));
          if (slot >= first && slot <= last) found = i;
        }
      }
    }
    return found < node_count;
  });
  if (!known) throw std::runtime_error("nobody serves the slot");
  return found;
}

void redis_cluster::begin_move(int slot, std::size_t to) const {
  const std::size_t from = owner(slot);
  const std::string number = std::to_string(slot);
  nodes_[to]->cli({"CLUSTER", "SETSLOT", number, "IMPORTING", ids_[from]});
  nodes_[from]->cli({"CLUSTER", "SETSLOT", number, "MIGRATING", ids_[to]});
}

void redis_cluster::move_keys(int slot, std::size_t from, std::size_t to) const {
  for (;;) {
    std::istringstream keys(
        nodes_[from]->cli({"CLUSTER", "GETKEYSINSLOT", std::to_string(slot), "100"}));
    std::vector<std::string> words{"MIGRATE", "127.0.0.1", port_of(*nodes_[to]), "", "0", "5000"};
    // "-a", PASSWORD
    if (options_.admin.size() == 2) words.insert(words.end(), {"AUTH", options_.admin[1]});
    words.emplace_back("KEYS");
    const std::size_t before = words.size();
    for (std::string key; std::getline(keys, key);) {
      if (!key.empty()) words.push_back(key);
    }
    if (words.size() == before) return;
    const std::string said = nodes_[from]->cli(words);
    if (said != "OK" && said != "NOKEY") throw std::runtime_error("MIGRATE: " + said);
  }
}

void redis_cluster::end_move(int slot, std::size_t to) const {
  const std::size_t from = owner(slot);
  const std::string number = std::to_string(slot);
  move_keys(slot, from, to);
  nodes_[to]->cli({"CLUSTER", "SETSLOT", number, "NODE", ids_[to]});
  nodes_[from]->cli({"CLUSTER", "SETSLOT", number, "NODE", ids_[to]});
}

std::size_t redis_cluster::replica_of(std::size_t which) const {
  for (std::size_t i = 0; i < node_count; ++i) {
    const std::string role = nodes_[i]->cli({"ROLE"});
    if (role.starts_with("slave") && role.find(port_of(*nodes_[which])) != std::string::npos) {
      return i;
    }
  }
  throw std::runtime_error("no replica");
}

void redis_cluster::fail_over_to(std::size_t replica) {
  // Nobody votes again for a replica of the same master within twice this time.
  constexpr std::chrono::seconds soon{2};
  const auto before = silence_;
  replace_after(soon);
  // Given up by the replica itself after five seconds, if its master is too busy to agree.
  constexpr std::chrono::seconds given_up{6};
  time_point next_request = clock::now();
  const bool done = eventually(
      [&] {
        if (nodes_[replica]->cli({"ROLE"}).starts_with("master")) return true;
        if (clock::now() < next_request) return false;
        nodes_[replica]->cli({"CLUSTER", "FAILOVER"});
        next_request = clock::now() + given_up;
        return false;
      },
      patience * 4);
  replace_after(before);
  if (!done) throw std::runtime_error("no failover");
}

}  // namespace holdfast::test
