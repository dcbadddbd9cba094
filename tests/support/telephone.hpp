// A channel between a test and a process that it forked: bytes in both directions, each waited for
// with a limit.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <stdexcept>
#include <utility>

namespace holdfast::test {

class telephone {
 public:
  telephone() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      throw std::runtime_error("socketpair");
    }
    near_ = ends[0];
    far_ = ends[1];
  }
  telephone(telephone&& other) noexcept
      : near_(std::exchange(other.near_, -1)), far_(std::exchange(other.far_, -1)) {}
  telephone& operator=(telephone&& other) noexcept {
    std::swap(near_, other.near_);
    std::swap(far_, other.far_);
    return *this;
  }
  telephone(const telephone&) = delete;
  telephone& operator=(const telephone&) = delete;
  ~telephone() {
    if (near_ >= 0) ::close(near_);
    if (far_ >= 0) ::close(far_);
  }

  // The test's end.
  void say(char letter) const { say_at(near_, letter); }
  [[nodiscard]] char hear() const { return hear_at(near_); }
  // The child's end.
  void say_back(char letter) const { say_at(far_, letter); }
  [[nodiscard]] char hear_back() const { return hear_at(far_); }

 private:
  static constexpr int limit_ms = 60'000;

  static void say_at(int end, char letter) {
    if (::send(end, &letter, 1, MSG_NOSIGNAL) != 1) throw std::runtime_error("telephone: send");
  }
  static char hear_at(int end) {
    pollfd ready{end, POLLIN, 0};
    char letter = '\0';
    if (::poll(&ready, 1, limit_ms) != 1 || ::recv(end, &letter, 1, 0) != 1) {
      throw std::runtime_error("telephone: nobody spoke");
    }
    return letter;
  }

  int near_ = -1;
  int far_ = -1;
};

}  // namespace holdfast::test
