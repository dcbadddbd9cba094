// One thread with poll(): a listener, pairs of sockets, and for each direction of each pair a
// queue of pieces with the time at which each may be forwarded.
#include "support/fault_proxy.hpp"

#include "runtime/descriptor.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace holdfast::test {

namespace {

using std::chrono::milliseconds;
using steady = std::chrono::steady_clock;
using runtime::checked;
using runtime::descriptor;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void no_delay(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// close() then sends a reset.
void abort_on_close(int socket) {
  const linger now{1, 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

// What is requested for one direction.
struct rule {
  milliseconds delay{0};
  bool lose = false;
  bool hold = false;
  bool drip = false;
  bool garble = false;
  std::size_t swallow = 0;  // 0: none
  std::optional<std::size_t> cut_after;
};

struct piece {
  std::string bytes;
  steady::time_point due;
};

struct flow {
  std::deque<piece> line;
  bool lost = false;   // what comes in is not forwarded
  bool ended = false;  // no more comes in; what is queued still goes out
};

struct connection {
  std::array<descriptor, 2> ends;  // 0: the client's, 1: the server's
  std::array<flow, 2> flows;       // 0: to the server, from end 0; 1: to the client, from end 1
  bool over = false;
};

}  // namespace

class fault_proxy::mover {
 public:
  explicit mover(std::uint16_t server_port)
      : server_port_(server_port),
        listener_(
            checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), "socket")),
        wake_event_(checked(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    if (::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
        ::listen(listener_.get(), SOMAXCONN) != 0 ||
        ::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::system_error(errno, std::system_category(), "listen");
    }
    port_ = ntohs(address.sin_port);
  }

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

  // Changes settings and notifies the thread.
  template <class Change>
  void change(Change&& how) {
    {
      const std::scoped_lock lock(mutex_);
      how(*this);
    }
    wake();
  }
  template <class Look>
  auto look(Look&& at) const {
    const std::scoped_lock lock(mutex_);
    return at(*this);
  }

  void stop() {
    stopping_.store(true);
    wake();
  }

  void run() {
    while (!stopping_.load()) {
      std::vector<pollfd> watched;
      int timeout = -1;
      {
        const std::scoped_lock lock(mutex_);
        watched = interests(timeout);
      }
      ::poll(watched.data(), watched.size(), timeout);
      const std::scoped_lock lock(mutex_);
      std::uint64_t wakes = 0;
      [[maybe_unused]] const ssize_t taken = ::read(wake_event_.get(), &wakes, sizeof wakes);
      accept_all();
      for (connection& one : connections_) {
        for (std::size_t i = 0; i < 2 && !one.over; ++i) take_in(one, i);
        for (std::size_t i = 0; i < 2 && !one.over; ++i) give_on(one, i);
      }
      connections_.remove_if([](const connection& one) { return one.over; });
    }
  }

  // Guarded by mutex_, as all below.
  void tear(bool with_reset) {
    for (connection& one : connections_) {
      for (const descriptor& end : one.ends) {
        if (with_reset) abort_on_close(end.get());
      }
    }
    connections_.clear();
  }

  std::array<rule, 2> rules;
  bool refuse = false;
  std::size_t accepted = 0;
  std::array<std::size_t, 2> pieces{};
  std::array<std::size_t, 2> bytes{};
  [[nodiscard]] std::size_t open() const { return connections_.size(); }

 private:
  static constexpr std::size_t read_size = 65'536;
  static constexpr std::size_t line_limit = 10'000;  // queued pieces; more must wait

  void wake() const noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_event_.get(), &one, sizeof one);
  }

  std::vector<pollfd> interests(int& timeout) const {
    std::vector<pollfd> watched{{listener_.get(), POLLIN, 0}, {wake_event_.get(), POLLIN, 0}};
    const auto now = steady::now();
    for (const connection& one : connections_) {
      for (std::size_t i = 0; i < 2; ++i) {
        const flow& in = one.flows[i];
        const flow& out = one.flows[1 - i];
        short events = 0;
        if (!in.ended && in.line.size() < line_limit) events |= POLLIN;
        if (!out.line.empty() && !rules[1 - i].hold) {
          const auto left = out.line.front().due - now;
          if (left <= steady::duration::zero()) {
            events |= POLLOUT;
          } else {
            const auto wait = std::chrono::ceil<milliseconds>(left).count();
            timeout = static_cast<int>(timeout < 0 ? wait : std::min<long>(timeout, wait));
          }
        }
        if (events != 0) watched.push_back({one.ends[i].get(), events, 0});
      }
    }
    return watched;
  }

  void accept_all() {
    while (true) {
      descriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (client.get() < 0) return;
      ++accepted;
      descriptor server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const sockaddr_in to = loopback(server_port_);
      // On the loopback interface connect() does not wait.
      if (refuse ||
          ::connect(server.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
        abort_on_close(client.get());
        continue;
      }
      no_delay(client.get());
      no_delay(server.get());
      connections_.push_back({{std::move(client), std::move(server)}, {}, false});
    }
  }

  void take_in(connection& one, std::size_t i) {
    flow& in = one.flows[i];
    std::array<char, read_size> buffer;
    while (!in.ended && in.line.size() < line_limit) {
      const ssize_t got = ::recv(one.ends[i].get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (got <= 0) {
        in.ended = true;
        return;
      }
      const auto size = static_cast<std::size_t>(got);
      ++pieces[i];
      bytes[i] += size;
      rule& now = rules[i];
      if (now.swallow > 0 && --now.swallow == 0) in.lost = true;
      if (now.lose || in.lost) continue;
      if (now.garble) buffer[0] = static_cast<char>(buffer[0] ^ 0x40);
      in.line.push_back({std::string(buffer.data(), size), steady::now() + now.delay});
    }
  }

  void give_on(connection& one, std::size_t i) {
    flow& out = one.flows[i];
    rule& now = rules[i];
    while (!out.line.empty() && !now.hold && out.line.front().due <= steady::now()) {
      std::string& front = out.line.front().bytes;
      std::size_t size = now.drip ? 1 : front.size();
      if (now.cut_after) size = std::min(size, *now.cut_after);
      if (size > 0) {
        const ssize_t sent =
            ::send(one.ends[1 - i].get(), front.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno == EAGAIN) return;
        if (sent < 0) {
          one.over = true;
          return;
        }
        front.erase(0, static_cast<std::size_t>(sent));
        if (now.cut_after) *now.cut_after -= static_cast<std::size_t>(sent);
      }
      if (now.cut_after && *now.cut_after == 0) {
        now.cut_after.reset();
        one.over = true;
        return;
      }
      if (front.empty()) out.line.pop_front();
    }
    // The end of the stream travels behind the bytes, and is lost with them.
    if (out.ended && out.line.empty() && !out.lost && !now.lose && !now.hold) one.over = true;
  }

  const std::uint16_t server_port_;
  const descriptor listener_;
  const descriptor wake_event_;
  std::uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  mutable std::mutex mutex_;
  std::list<connection> connections_;
};

fault_proxy::fault_proxy(std::uint16_t server_port)
    : mover_(std::make_unique<mover>(server_port)), thread_([this] { mover_->run(); }) {}

fault_proxy::~fault_proxy() {
  mover_->stop();
  thread_.join();
}

std::uint16_t fault_proxy::port() const noexcept { return mover_->port(); }

void fault_proxy::pass() {
  mover_->change([](mover& all) {
    all.rules = {};
    all.refuse = false;
  });
}
void fault_proxy::delay(way which, milliseconds time) {
  mover_->change([=](mover& all) { all.rules[static_cast<std::size_t>(which)].delay = time; });
}
void fault_proxy::lose(way which) {
  mover_->change([=](mover& all) { all.rules[static_cast<std::size_t>(which)].lose = true; });
}
void fault_proxy::hold(way which) {
  mover_->change([=](mover& all) { all.rules[static_cast<std::size_t>(which)].hold = true; });
}
void fault_proxy::swallow(way which, std::size_t nth) {
  mover_->change([=](mover& all) { all.rules[static_cast<std::size_t>(which)].swallow = nth; });
}
void fault_proxy::cut_after(way which, std::size_t bytes) {
  mover_->change([=](mover& all) { all.rules[static_cast<std::size_t>(which)].cut_after = bytes; });
}
void fault_proxy::drip(way which) {
  mover_->change([=](mover& all) { all.rules[static_cast<std::size_t>(which)].drip = true; });
}
void fault_proxy::garble(way which) {
  mover_->change([=](mover& all) { all.rules[static_cast<std::size_t>(which)].garble = true; });
}
void fault_proxy::refuse() {
  mover_->change([](mover& all) { all.refuse = true; });
}
void fault_proxy::reset() {
  mover_->change([](mover& all) { all.tear(true); });
}
void fault_proxy::close() {
  mover_->change([](mover& all) { all.tear(false); });
}

std::size_t fault_proxy::accepted() const {
  return mover_->look([](const mover& all) { return all.accepted; });
}
std::size_t fault_proxy::open() const {
  return mover_->look([](const mover& all) { return all.open(); });
}
std::size_t fault_proxy::pieces(way which) const {
  return mover_->look(
      [=](const mover& all) { return all.pieces[static_cast<std::size_t>(which)]; });
}
std::size_t fault_proxy::bytes(way which) const {
  return mover_->look([=](const mover& all) { return all.bytes[static_cast<std::size_t>(which)]; });
}

}  // namespace holdfast::test
