#include "cli/http/module/connection.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace holdfast::http {

namespace {

constexpr std::chrono::milliseconds parting{500};
constexpr std::size_t most_dropped = 1UL << 20;

constexpr std::string_view too_many =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 22\r\n"
    "Retry-After: 1\r\nConnection: close\r\n\r\ntoo many connections.\n";

int left_until(std::chrono::steady_clock::time_point by) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(by - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<std::chrono::milliseconds::rep>(left.count(), 0));
}

}  // namespace

connection::connection(int socket, const limits& bounds)
    : socket_(socket),
      limits_(bounds),
      read_by_(std::chrono::steady_clock::now() + bounds.read_within) {}

bool connection::ready(short events, std::chrono::steady_clock::time_point by) const noexcept {
  for (;;) {
    pollfd file{socket_, events, 0};
    const int found = ::poll(&file, 1, left_until(by));
    if (found > 0) return (file.revents & (events | POLLHUP)) != 0;
    if (found == 0 || errno != EINTR) return false;
  }
}

bool connection::is_readable() const { return begin_ < end_ || ready(POLLIN, read_by_); }

bool connection::is_writable() const {
  char next = 0;
  const ssize_t peeked = ::recv(socket_, &next, 1, MSG_PEEK | MSG_DONTWAIT);
  if (peeked == 0 || (peeked < 0 && errno != EAGAIN && errno != EINTR)) return false;
  return ready(POLLOUT, std::chrono::steady_clock::now() + limits_.write_within);
}

ssize_t connection::read(char* into, std::size_t size) {
  if (begin_ == end_) {
    if (taken_ >= limits_.request_bytes || !ready(POLLIN, read_by_)) return -1;
    const ssize_t got = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got <= 0) return got;
    begin_ = 0;
    end_ = static_cast<std::size_t>(got);
    taken_ += end_;
  }
  const std::size_t given = std::min(size, end_ - begin_);
  std::memcpy(into, buffer_.data() + begin_, given);
  begin_ += given;
  return static_cast<ssize_t>(given);
}

ssize_t connection::write(const char* data, std::size_t size) {
  const auto by = std::chrono::steady_clock::now() + limits_.write_within;
  for (std::size_t sent = 0; sent < size;) {
    if (!ready(POLLOUT, by)) return -1;
    const ssize_t now = ::send(socket_, data + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (now < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (now <= 0) return -1;
    sent += static_cast<std::size_t>(now);
  }
  return static_cast<ssize_t>(size);
}

// Nobody asks: who may talk to us is decided by what is sent, not by where it comes from.
void connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

void connection::get_local_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

void connection::finish() noexcept {
  ::shutdown(socket_, SHUT_WR);
  const auto by = std::chrono::steady_clock::now() + parting;
  for (std::size_t dropped = 0; dropped < most_dropped && ready(POLLIN, by);) {
    const ssize_t got = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got <= 0) break;
    dropped += static_cast<std::size_t>(got);
  }
  ::close(socket_);
}

void refuse(int socket) noexcept {
  [[maybe_unused]] const ssize_t sent =
      ::send(socket, too_many.data(), too_many.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::shutdown(socket, SHUT_WR);
  ::close(socket);
}

}  // namespace holdfast::http
