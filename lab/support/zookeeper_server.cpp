#include "support/zookeeper_server.hpp"

#include "support/eventually.hpp"
#include "support/free_port.hpp"
#include "support/server_group.hpp"

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace holdfast::test {

namespace {

// The last ones are what a port with TLS needs in addition.
constexpr const char* classes =
    "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar:/usr/share/java/"
    "netty-codec.jar:"
    "/usr/share/java/netty-resolver.jar:/usr/share/java/netty-transport-native-unix-common.jar";

// One question without a session.
std::string ask(std::uint16_t port, const std::string& word) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return {};
  const timeval limit{1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string text;
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 &&
      ::send(socket, word.data(), word.size(), MSG_NOSIGNAL) > 0) {
    char buffer[4096];
    for (ssize_t size = 0; (size = ::recv(socket, buffer, sizeof buffer, 0)) > 0;) {
      text.append(buffer, static_cast<std::size_t>(size));
    }
  }
  ::close(socket);
  return text;
}

}  // namespace

zookeeper_server::zookeeper_server(zookeeper_options options, std::uint16_t port, int number,
                                   std::vector<std::string> members)
    : options_(std::move(options)), port_(port), number_(number), members_(std::move(members)) {
  std::ofstream settings(folder_.path() / "zoo.cfg");
  settings << "tickTime=" << options_.tick << "\ninitLimit=10\nsyncLimit=5\n"
           << "dataDir=" << folder_.path().string() << "\nclientPort=" << port_
           << "\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\nmaxClientCnxns=0\n"
           << "4lw.commands.whitelist=*\nforceSync=no\npreAllocSize=64\n"
           << "maxSessionTimeout=" << options_.tick * 300 << "\n";
  for (const std::string& line : members_) settings << line << "\n";
  for (const std::string& line : options_.lines) settings << line << "\n";
  if (!options_.tls.empty()) {
    tls_port_ = free_port();
    settings << "secureClientPort=" << tls_port_ << "\nsecureClientPortAddress=127.0.0.1\n"
             << "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n";
  }
  for (const std::string& line : options_.tls) settings << line << "\n";
  std::ofstream(folder_.path() / "myid") << number_ << "\n";
}

void zookeeper_server::launch() {
  process_ = child_process(
      {"java", "-Xmx256m", "-Xshare:auto", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
       "-Dzookeeper.jmx.log4j.disable=true", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp",
       classes, "org.apache.zookeeper.server.quorum.QuorumPeerMain",
       (folder_.path() / "zoo.cfg").string()},
      folder_.path() / "log");
}

void zookeeper_server::start() {
  launch();
  if (!eventually([this] { return !mode().empty(); }, patience * 2)) {
    throw std::runtime_error("zookeeper does not start again: " + log());
  }
}

std::string zookeeper_server::log() const { return end_of_log(folder_.path() / "log"); }

void zookeeper_server::kill() { process_.end(SIGKILL); }
void zookeeper_server::pause() { process_.pause(); }
void zookeeper_server::resume() { process_.signal(SIGCONT); }

std::string zookeeper_server::mode() const {
  const std::string text = ask(port_, "srvr");
  const auto at = text.find("Mode: ");
  if (at == std::string::npos) return {};
  return text.substr(at + 6, text.find('\n', at) - at - 6);
}

std::unique_ptr<zookeeper_server> start_zookeeper(const zookeeper_options& options) {
  constexpr int attempts = 3;  // somebody may take the port before the server does
  std::string last;
  for (int left = attempts; left > 0; --left) {
    auto made = std::make_unique<zookeeper_server>(options, free_port());
    made->launch();
    if (eventually([&] { return !made->mode().empty() || !made->alive(); }, patience * 2) &&
        made->alive()) {
      return made;
    }
    last = made->log();
  }
  throw std::runtime_error("zookeeper does not start: " + last);
}

zookeeper_ensemble::zookeeper_ensemble(const zookeeper_options& options) {
  constexpr int attempts = 3;  // somebody may take a port before a server does
  for (int left = attempts; left > 0; --left) {
    launch(options);
    const auto answers = [](const auto& each) { return !each->mode().empty(); };
    const auto lives = [](const auto& each) { return each->alive(); };
    const auto decided = [&] {
      return !std::ranges::all_of(servers_, lives) || std::ranges::all_of(servers_, answers);
    };
    if (eventually(decided, patience * 4) && std::ranges::all_of(servers_, lives)) return;
  }
  std::string logs;
  for (const auto& each : servers_) logs += each->log();
  throw std::runtime_error("the ensemble does not start: " + logs);
}

void zookeeper_ensemble::launch(const zookeeper_options& options) {
  constexpr std::size_t size = 3;
  servers_.clear();
  proxies_.clear();
  distinct_ports ports;
  std::vector<std::uint16_t> quorum;
  std::vector<std::uint16_t> election;
  for (std::size_t i = 0; i < size; ++i) {
    quorum.push_back(ports.next());
    election.push_back(ports.next());
  }
  for (std::size_t from = 0; from < size; ++from) {
    proxies_.emplace_back();
    std::vector<std::string> members;
    for (std::size_t to = 0; to < size; ++to) {
      proxies_[from].push_back(std::make_unique<fault_proxy>(quorum[to]));
      const std::uint16_t port = from == to ? quorum[to] : proxies_[from][to]->port();
      members.push_back("server." + std::to_string(to + 1) + "=127.0.0.1:" + std::to_string(port) +
                        ":" + std::to_string(election[to]));
    }
    zookeeper_options own = options;
    if (from + 1 == size) own.lines.emplace_back("syncLimit=200");
    servers_.push_back(std::make_unique<zookeeper_server>(
        std::move(own), ports.next(), static_cast<int>(from) + 1, std::move(members)));
    servers_.back()->launch();
  }
}

void zookeeper_ensemble::cut(std::size_t from, std::size_t to) {
  for (fault_proxy* each : {proxies_[from][to].get(), proxies_[to][from].get()}) {
    each->lose(fault_proxy::way::to_server);
    each->lose(fault_proxy::way::to_client);
    each->refuse();
  }
}

zookeeper_server& zookeeper_ensemble::let_the_slow_one_lead() {
  constexpr int attempts = 5;
  for (int left = attempts; left > 0; --left) {
    zookeeper_server& now = leader();
    if (&now == servers_.back().get()) return now;
    // It has the highest number of the remaining servers.
    now.kill();
    static_cast<void>(leader());
    now.launch();
    if (!eventually([&] { return now.mode() == "follower"; }, patience * 2)) break;
  }
  throw std::runtime_error("the last one does not lead: " + servers_.back()->log());
}

std::size_t zookeeper_ensemble::number_of(const zookeeper_server& server) const {
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (servers_[i].get() == &server) return i;
  }
  throw std::runtime_error("a server of another ensemble");
}

std::string zookeeper_ensemble::hosts() const { return hosts_of(servers_); }

zookeeper_server& zookeeper_ensemble::leader() {
  return leader_of(servers_, [](const zookeeper_server& each) { return each.mode() == "leader"; });
}

std::string fresh_chroot() { return fresh_path(); }

}  // namespace holdfast::test
