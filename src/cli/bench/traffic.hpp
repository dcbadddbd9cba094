// What the TCP connections of this process have sent and received, as the kernel counts it: the
// same for every engine, and nothing that an engine has to be asked for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace holdfast::cli {

struct traffic {
  std::uint64_t sent = 0;      // bytes
  std::uint64_t received = 0;  // bytes
  std::uint64_t sends = 0;     // segments with data
  std::uint64_t receives = 0;
};

// By socket, so that one which was closed meanwhile is noticed.
using traffic_by_socket = std::map<std::uint64_t, traffic>;

// Empty where this process has no TCP connection. None: the kernel does not count.
std::optional<traffic_by_socket> count_traffic();

// Between two counts. None where there was no connection, or one was closed between them, whose
// last bytes nobody knows.
std::optional<traffic> difference(const std::optional<traffic_by_socket>& before,
                                  const std::optional<traffic_by_socket>& after);

}  // namespace holdfast::cli
