// The service manager that started us, if it wants notifications: systemd, with a datagram to
// $NOTIFY_SOCKET. Without one nothing here has any effect.
#pragma once

#include <holdfast/clock.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

// Thread-safe.
class service_manager {
 public:
  // From the environment of this process.
  service_manager();

  [[nodiscard]] bool exists() const noexcept { return !socket_.empty(); }
  // "READY=1\nSTATUS=..."; a message that cannot be delivered is dropped.
  void tell(std::string_view message) const noexcept;
  // How often to send it WATCHDOG=1, twice as often as it requires; forever: never.
  [[nodiscard]] duration watchdog_beat() const noexcept { return beat_; }

 private:
  std::string socket_;
  duration beat_ = forever;
};

enum class notify_socket : bool { kept, passed_on };

// Which variables the command does not get: the socket belongs to the service's main process,
// unless it is passed on; the watchdog's pid is always ours.
std::vector<std::string_view> service_variables_kept(notify_socket how);

}  // namespace holdfast::cli
