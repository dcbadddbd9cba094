// What the reactor's tests share: waiting for a thing with a generous limit, a pair of connected
// sockets, and a flag with its wake.
#pragma once

#include "runtime/descriptor.hpp"
#include "runtime/reactor.hpp"
#include "support/eventually.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <utility>

namespace holdfast::test {

using namespace std::chrono_literals;
using runtime::epoll_reactor;
using runtime::event_loop;

// Far longer than anything here takes, even on a loaded machine with sanitizers.
inline constexpr auto generous = 60s;

// As eventually(), without a pause between two looks: for a condition that does the work itself.
template <class Condition>
[[nodiscard]] bool spin_until(Condition condition) {
  const auto limit = std::chrono::steady_clock::now() + generous;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    std::this_thread::yield();
  }
  return true;
}

// Waits without driving any reactor.
template <class T>
[[nodiscard]] bool arrives(std::future<T>& future) {
  return future.wait_for(generous) == std::future_status::ready;
}

struct socket_pair {
  runtime::descriptor near;
  runtime::descriptor far;

  socket_pair() {
    std::array<int, 2> ends{};
    const int type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
    if (::socketpair(AF_UNIX, type, 0, ends.data()) != 0) throw std::runtime_error("socketpair");
    near = runtime::descriptor(ends[0]);
    far = runtime::descriptor(ends[1]);
  }
  // What the other end sends becomes readable at the near one.
  void say(char letter) const { check(::send(far.get(), &letter, 1, MSG_NOSIGNAL)); }
  void answer(char letter) const { check(::send(near.get(), &letter, 1, MSG_NOSIGNAL)); }
  // '\0': nothing to read.
  [[nodiscard]] char hear() const { return read_from(near.get()); }
  [[nodiscard]] char hear_far() const { return read_from(far.get()); }

 private:
  static void check(ssize_t sent) {
    if (sent != 1) throw std::runtime_error("send");
  }
  static char read_from(int socket) {
    char letter = '\0';
    return ::recv(socket, &letter, 1, 0) == 1 ? letter : '\0';
  }
};

// Sets the flag as a completion does.
inline void finish(epoll_reactor& reactor, std::atomic<bool>& done) {
  done.store(true, std::memory_order_release);
  reactor.wake(done);
}

inline bool engine_leads(const epoll_reactor& reactor) {
  return reactor.loop().leader() == event_loop::lead::engine;
}
inline bool caller_leads(const epoll_reactor& reactor) {
  return reactor.loop().leader() == event_loop::lead::caller;
}

// Runs the task on the calling thread, which drives until the task has set the flag. Not by a timer:
// on a loaded machine that may go off before the caller drives.
inline void run_while_driving(epoll_reactor& reactor, std::atomic<bool>& done, spi::task work) {
  std::jthread other([&] {
    if (eventually([&] { return caller_leads(reactor); })) reactor.post(std::move(work));
  });
  reactor.wait(done);
}

}  // namespace holdfast::test
