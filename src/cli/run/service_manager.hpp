// The service manager that started us, where it wants to hear of us: systemd, with a datagram to
// $NOTIFY_SOCKET. Without one everything here does nothing.
#pragma once

#include <holdfast/clock.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace holdfast::cli {

// Thread-safe.
class service_manager {
 public:
  // Of the environment of this process.
  service_manager();

  [[nodiscard]] bool exists() const noexcept { return !socket_.empty(); }
  // "READY=1\nSTATUS=..."; a message that cannot be delivered is dropped.
  void tell(std::string_view message) const noexcept;
  // How often to tell it WATCHDOG=1, which is twice as often as it must hear it; forever: never.
  [[nodiscard]] duration watchdog_beat() const noexcept { return beat_; }

 private:
  std::string socket_;
  duration beat_ = forever;
};

enum class notify_socket : bool { kept, passed_on };

// What of the environment is not for the command: the socket is the service's main process's, unless it is
// passed on; the pid of the watchdog's is ours in any case.
std::vector<std::string_view> service_variables_kept(notify_socket how);

}  // namespace holdfast::cli
