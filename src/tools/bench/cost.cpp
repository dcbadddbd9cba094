#include "tools/bench/cost.hpp"

#include <holdfast/spi/url.hpp>

// Not netinet/tcp.h, whose structure ends before the counters.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::cli {

namespace {

namespace fs = std::filesystem;

// Schemes whose hosts are the servers themselves, with the port where the URL names none. Not those
// of sentinels and clusters, whose servers are discovered later and may be elsewhere.
constexpr std::array<std::pair<std::string_view, std::uint16_t>, 10> default_ports{
    {{"redis", 6379},
     {"rediss", 6379},
     {"redlock", 6379},
     {"zookeeper", 2181},
     {"postgresql", 5432},
     {"postgres", 5432},
     {"mariadb", 3306},
     {"mysql", 3306},
     {"etcd", 2379},
     {"etcds", 2379}}};

bool is_here(const std::string& host) {
  return host == "localhost" || host == "::1" || host == "[::1]" || host.starts_with("127.");
}

// Socket numbers that listen at the port, of one of the kernel's two tables.
void add_listeners(const char* table, std::uint16_t port, std::set<std::string>& into) {
  std::ifstream file(table);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::array<std::string, 10> word;
    for (std::string& each : word) words >> each;
    const std::string& local = word[1];
    if (!words || word[3] != "0A") continue;
    unsigned at = 0;
    const auto colon = local.rfind(':') + 1;
    std::from_chars(local.data() + colon, local.data() + local.size(), at, 16);
    if (at == port) into.insert("socket:[" + word[9] + "]");
  }
}

// The number of a process below /proc, or of a descriptor below /proc/self/fd.
std::optional<int> number_of(const fs::path& entry) {
  const std::string name = entry.filename().string();
  int number = 0;
  const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
  if (read.ec != std::errc{} || read.ptr != name.data() + name.size()) return std::nullopt;
  return number;
}

bool has_one(const fs::path& process, const std::set<std::string>& sockets) {
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(process / "fd", problem)) {
    std::error_code ignored;
    if (sockets.contains(fs::read_symlink(entry.path(), ignored).string())) return true;
  }
  return false;
}

struct status {
  pid_t parent = 0;
  duration processor{};
  std::uint64_t memory = 0;
};

// The fields after the name, which may hold spaces and brackets.
std::optional<status> status_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line) || line.rfind(')') == std::string::npos) return std::nullopt;
  std::istringstream words(line.substr(line.rfind(')') + 2));
  std::array<std::string, 22> word;
  for (std::string& each : word) words >> each;
  if (!words) return std::nullopt;
  // user and system time, its own and of the children that it has waited for
  std::int64_t ticks = 0;
  for (std::size_t i = 11; i <= 14; ++i) ticks += std::stoll(word[i]);
  const auto per_second = static_cast<std::int64_t>(::sysconf(_SC_CLK_TCK));
  return status{.parent = std::stoi(word[1]),
                .processor = duration(ticks * (std::nano::den / per_second)),
                .memory = std::stoull(word[21]) * static_cast<std::uint64_t>(::getpagesize())};
}

std::map<pid_t, status> all_processes() {
  std::map<pid_t, status> all;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator("/proc", problem)) {
    const auto pid = number_of(entry.path());
    if (!pid) continue;
    if (const auto one = status_of(*pid)) all[*pid] = *one;
  }
  return all;
}

// The first process that has it: a server's children inherit its sockets.
std::optional<pid_t> listener_at(std::uint16_t port) {
  std::set<std::string> sockets;
  add_listeners("/proc/net/tcp", port, sockets);
  add_listeners("/proc/net/tcp6", port, sockets);
  if (sockets.empty()) return std::nullopt;
  std::set<pid_t> owners;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator("/proc", problem)) {
    const auto pid = number_of(entry.path());
    if (pid && has_one(entry.path(), sockets)) owners.insert(*pid);
  }
  for (const pid_t pid : owners) {
    const auto one = status_of(pid);
    if (one && !owners.contains(one->parent)) return pid;
  }
  return std::nullopt;
}

bool descends(const std::map<pid_t, status>& all, pid_t pid, const std::vector<pid_t>& from) {
  constexpr int deepest = 16;
  for (int depth = 0; depth < deepest && pid > 1; ++depth) {
    if (std::find(from.begin(), from.end(), pid) != from.end()) return true;
    const auto found = all.find(pid);
    if (found == all.end()) return false;
    pid = found->second.parent;
  }
  return false;
}

}  // namespace

std::optional<server_process> server_process::find(const std::string& url) {
  const auto parsed = spi::parse_url(url);
  if (!parsed || parsed->hosts.empty()) return std::nullopt;
  const auto* const usual = std::find_if(default_ports.begin(), default_ports.end(),
                                         [&](auto& one) { return one.first == parsed->scheme; });
  if (usual == default_ports.end()) return std::nullopt;
  std::vector<pid_t> pids;
  for (const spi::endpoint& one : parsed->hosts) {
    if (!is_here(one.host)) return std::nullopt;
    const auto pid = listener_at(one.port != 0 ? one.port : usual->second);
    if (!pid) return std::nullopt;
    if (std::find(pids.begin(), pids.end(), *pid) == pids.end()) pids.push_back(*pid);
  }
  return server_process(std::move(pids));
}

std::optional<server_process::use> server_process::look() const {
  const auto all = all_processes();
  for (const pid_t pid : pids_) {
    if (!all.contains(pid)) return std::nullopt;
  }
  use sum;
  for (const auto& [pid, one] : all) {
    if (!descends(all, pid, pids_)) continue;
    sum.processor += one.processor;
    sum.memory += one.memory;
  }
  return sum;
}

std::optional<traffic_by_socket> count_traffic() {
  traffic_by_socket all;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd", problem)) {
    const int file = number_of(entry.path()).value_or(-1);
    int protocol = 0;
    socklen_t size = sizeof protocol;
    if (::getsockopt(file, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0) continue;
    if (protocol != IPPROTO_TCP) continue;
    struct stat socket {};
    tcp_info info{};
    size = sizeof info;
    if (::fstat(file, &socket) != 0 ||
        ::getsockopt(file, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        size < offsetof(tcp_info, tcpi_bytes_sent) + sizeof info.tcpi_bytes_sent) {
      return std::nullopt;
    }
    all[socket.st_ino] = {.sent = info.tcpi_bytes_sent,
                          .received = info.tcpi_bytes_received,
                          .sends = info.tcpi_data_segs_out,
                          .receives = info.tcpi_data_segs_in};
  }
  if (problem) return std::nullopt;
  return all;
}

traffic& traffic::operator+=(const traffic& more) noexcept {
  sent += more.sent;
  received += more.received;
  sends += more.sends;
  receives += more.receives;
  return *this;
}

traffic& traffic::operator-=(const traffic& less) noexcept {
  sent -= less.sent;
  received -= less.received;
  sends -= less.sends;
  receives -= less.receives;
  return *this;
}

std::optional<traffic> difference(const std::optional<traffic_by_socket>& before,
                                  const std::optional<traffic_by_socket>& after) {
  if (!before || !after || after->empty()) return std::nullopt;
  traffic sum;
  for (const auto& [socket, then] : *before) {
    if (!after->contains(socket)) return std::nullopt;
    sum -= then;
  }
  for (const auto& [socket, now] : *after) sum += now;
  return sum;
}

}  // namespace holdfast::cli
