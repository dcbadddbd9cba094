#include "support/redis_sentinels.hpp"

#include "support/eventually.hpp"
#include "support/free_port.hpp"

#include <fstream>
#include <stdexcept>
#include <utility>

namespace holdfast::test {

namespace {

constexpr const char* name = "stock";
constexpr std::chrono::milliseconds gives_up_after{3000};  // a failover

}  // namespace

redis_sentinels::redis_sentinels(const std::vector<std::string>& arguments)
    : redis_sentinels(
          sentinels_options{.servers = {.tls = false, .arguments = arguments, .admin = {}},
                            .tls = false,
                            .lines = {},
                            .admin = {}}) {}

redis_sentinels::redis_sentinels(sentinels_options how) : options_(std::move(how)) {
  for (std::size_t i = 0; i < server_count; ++i) {
    redis_options options = options_.servers;
    // A full synchronisation at once, not after the default five seconds.
    options.arguments.insert(options.arguments.end(), {"--repl-diskless-sync-delay", "0"});
    servers_.push_back(std::make_unique<redis_server>(options));
  }
  for (std::size_t i = 1; i < server_count; ++i) {
    servers_[i]->cli({"REPLICAOF", "127.0.0.1", std::to_string(servers_[0]->port())});
  }
  for (std::size_t i = 0; i < sentinel_count; ++i) start_sentinel();
  const bool known = eventually([this] {
    for (std::size_t i = 0; i < sentinel_count; ++i) {
      const std::string facts = ask(i, {"SENTINEL", "MASTER", name});
      if (facts.find("num-other-sentinels\n2") == std::string::npos) return false;
      if (facts.find("num-slaves\n2") == std::string::npos) return false;
    }
    return settled();
  });
  if (!known) throw std::runtime_error("the sentinels do not find each other");
  replace_after(not_within_a_test);
}

void redis_sentinels::replace_after(std::chrono::milliseconds silence) const {
  for (std::size_t i = 0; i < sentinel_count; ++i) {
    ask(i, {"SENTINEL", "SET", name, "down-after-milliseconds", std::to_string(silence.count())});
  }
}

void redis_sentinels::start_sentinel() {
  auto made = std::make_unique<watchman>();
  made->port = free_port();
  const auto file = made->folder.path() / "sentinel.conf";
  std::ofstream settings(file);
  settings << (options_.tls ? "port 0\ntls-port " : "port ") << made->port
           << "\nbind 127.0.0.1\ndir " << made->folder.path().string() << "\nsentinel monitor "
           << name << " 127.0.0.1 " << servers_[0]->port()
           << " 2\nsentinel down-after-milliseconds " << name << " 1000\nsentinel failover-timeout "
           << name << " " << gives_up_after.count() << "\nsentinel parallel-syncs " << name
           << " 2\n";
  for (const std::string& line : options_.lines) settings << line << "\n";
  settings.close();
  made->process = child_process({"redis-server", file, "--sentinel"}, made->folder.path() / "log");
  auto ping = cli_words(made->port);
  ping.emplace_back("PING");
  const bool answers = eventually([&] {
    try {
      return run_program(ping) == "PONG\n";
    } catch (const std::runtime_error&) {
      return !made->process.alive();
    }
  });
  if (!answers || !made->process.alive()) throw std::runtime_error("a sentinel does not start");
  sentinels_.push_back(std::move(made));
}

std::vector<std::string> redis_sentinels::cli_words(std::uint16_t sentinel) const {
  std::vector<std::string> words{"redis-cli", "-p", std::to_string(sentinel), "--no-auth-warning"};
  words.insert(words.end(), options_.admin.begin(), options_.admin.end());
  return words;
}

std::string redis_sentinels::url() const {
  std::string hosts;
  for (const auto& each : sentinels_) {
    hosts += (hosts.empty() ? "" : ",") + ("127.0.0.1:" + std::to_string(each->port));
  }
  return "redis+sentinel://" + hosts + "/" + name;
}

std::string redis_sentinels::ask(std::size_t sentinel,
                                 const std::vector<std::string>& words) const {
  std::vector<std::string> all = cli_words(sentinels_[sentinel]->port);
  all.insert(all.end(), words.begin(), words.end());
  return run_program(all);
}

std::uint16_t redis_sentinels::master_port(std::size_t sentinel) const {
  const std::string address = ask(sentinel, {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", name});
  const auto line = address.find('\n');
  return static_cast<std::uint16_t>(std::stoi(address.substr(line + 1)));
}

redis_server& redis_sentinels::master() const {
  const std::uint16_t port = master_port(0);
  for (const auto& each : servers_) {
    if (each->port() == port) return *each;
  }
  throw std::runtime_error("the sentinel names an unknown master");
}

bool redis_sentinels::settled() const {
  const std::uint16_t port = master_port(0);
  for (std::size_t i = 1; i < sentinel_count; ++i) {
    if (master_port(i) != port) return false;
  }
  const redis_server& chosen = master();
  if (!chosen.cli_if_answered({"ROLE"}).starts_with("master")) return false;
  const std::string facts = chosen.cli_if_answered({"INFO", "replication"});
  for (std::size_t i = 0; i + 1 < server_count; ++i) {
    const auto at = facts.find("slave" + std::to_string(i) + ":");
    if (at == std::string::npos) return false;
    if (facts.substr(at, facts.find('\n', at) - at).find("state=online") == std::string::npos) {
      return false;
    }
  }
  return true;
}

void redis_sentinels::fail_over() const {
  const std::uint16_t before = master_port(0);
  std::string last;
  time_point next_request = clock::now();
  const auto done = [&] {
    if (master_port(0) != before) return settled();
    // Refused while the last one is in progress, or so shortly after it that no replica is
    // suitable; and given up by the sentinel itself if a busy replica takes too long.
    if (clock::now() < next_request) return false;
    last = ask(0, {"SENTINEL", "FAILOVER", name});
    if (last.starts_with("OK")) next_request = clock::now() + gives_up_after * 2;
    return false;
  };
  // After a pause of the machine sentinels do nothing for half a minute.
  if (!eventually(done, patience * 6)) {
    throw std::runtime_error(
        "no failover (the sentinel's last answer: " + last.substr(0, last.find('\n')) + ")");
  }
}

}  // namespace holdfast::test
