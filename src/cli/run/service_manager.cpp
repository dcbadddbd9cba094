#include "cli/run/service_manager.hpp"

#include "runtime/descriptor.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace holdfast::cli {

namespace {

std::optional<std::int64_t> number_in(const char* variable) {
  const char* text = ::secure_getenv(variable);
  if (text == nullptr) return std::nullopt;
  std::int64_t number = 0;
  const char* end = text + std::strlen(text);
  const auto [at, problem] = std::from_chars(text, end, number);
  if (problem != std::errc{} || at != end || number <= 0) return std::nullopt;
  return number;
}

}  // namespace

service_manager::service_manager() {
  const char* socket = ::secure_getenv("NOTIFY_SOCKET");
  // A path, or an abstract name that begins with '@'.
  if (socket == nullptr || (socket[0] != '/' && socket[0] != '@')) return;
  socket_ = socket;
  const auto pid = number_in("WATCHDOG_PID");
  const auto wanted = number_in("WATCHDOG_USEC");
  if (wanted && (!pid || *pid == ::getpid())) beat_ = std::chrono::microseconds(*wanted) / 2;
}

void service_manager::tell(std::string_view message) const noexcept {
  sockaddr_un to{};
  if (socket_.empty() || socket_.size() >= sizeof to.sun_path) return;
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, socket_.data(), socket_.size());
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  const runtime::descriptor sender(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (sender.get() < 0) return;
  // Never waits: a manager that does not read must not stop us from watching the lease.
  [[maybe_unused]] const ssize_t sent =
      ::sendto(sender.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
               reinterpret_cast<const sockaddr*>(&to), size);
}

std::vector<std::string_view> service_variables_kept(notify_socket how) {
  if (how == notify_socket::passed_on) return {"WATCHDOG_PID="};
  return {"NOTIFY_SOCKET=", "WATCHDOG_USEC=", "WATCHDOG_PID="};
}

}  // namespace holdfast::cli
