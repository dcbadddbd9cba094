#include "cli/bench/traffic.hpp"

// Not netinet/tcp.h, whose structure ends before the counters.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <charconv>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>

namespace holdfast::cli {

namespace {

// Of one descriptor, which may be anything.
enum class found : std::uint8_t { nothing, counted, uncounted };

found look(int file, std::uint64_t& socket, traffic& into) {
  int protocol = 0;
  socklen_t size = sizeof protocol;
  if (::getsockopt(file, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0) return found::nothing;
  if (protocol != IPPROTO_TCP) return found::nothing;
  struct stat status {};
  tcp_info info{};
  size = sizeof info;
  if (::fstat(file, &status) != 0 || ::getsockopt(file, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
      size < offsetof(tcp_info, tcpi_bytes_sent) + sizeof info.tcpi_bytes_sent) {
    return found::uncounted;
  }
  socket = status.st_ino;
  into = {.sent = info.tcpi_bytes_sent,
          .received = info.tcpi_bytes_received,
          .sends = info.tcpi_data_segs_out,
          .receives = info.tcpi_data_segs_in};
  return found::counted;
}

}  // namespace

std::optional<traffic_by_socket> count_traffic() {
  traffic_by_socket all;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", problem)) {
    const std::string name = entry.path().filename().string();
    int file = -1;
    std::from_chars(name.data(), name.data() + name.size(), file);
    std::uint64_t socket = 0;
    traffic one;
    switch (look(file, socket, one)) {
      case found::nothing:
        break;
      case found::counted:
        all[socket] = one;
        break;
      case found::uncounted:
        return std::nullopt;
    }
  }
  if (problem) return std::nullopt;
  return all;
}

std::optional<traffic> difference(const std::optional<traffic_by_socket>& before,
                                  const std::optional<traffic_by_socket>& after) {
  if (!before || !after || after->empty()) return std::nullopt;
  for (const auto& [socket, ignored] : *before) {
    if (!after->contains(socket)) return std::nullopt;
  }
  traffic sum;
  for (const auto& [socket, now] : *after) {
    const auto then = before->find(socket);
    const traffic base = then == before->end() ? traffic{} : then->second;
    sum.sent += now.sent - base.sent;
    sum.received += now.received - base.received;
    sum.sends += now.sends - base.sends;
    sum.receives += now.receives - base.receives;
  }
  return sum;
}

}  // namespace holdfast::cli
