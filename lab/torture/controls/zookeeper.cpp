// Broken locks on ZooKeeper, with a client of a few calls: connect, create,
// read, ping.
#include "torture/controls/zookeeper.hpp"

#include "runtime/descriptor.hpp"
#include "support/eventually.hpp"
#include "torture/controls/stage.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>

namespace holdfast::torture::controls {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds shortest_session{800};  // two ticks of the server
constexpr milliseconds pinged_session{4000};
constexpr milliseconds ping_interval{100};
constexpr milliseconds usual_limit{5000};  // for an answer
constexpr milliseconds brief_limit{2000};  // for a caller that must go on with other things
constexpr std::int32_t create = 1;
constexpr std::int32_t get_data = 4;
constexpr std::int32_t ping_request = 11;
constexpr std::int32_t ping_number = -2;  // of all pings
constexpr std::int32_t ephemeral = 1;
constexpr std::int32_t all_permissions = 31;
constexpr std::size_t longest_answer = 1U << 16U;

// Big-endian numbers and counted strings, one after another.
class jute {
 public:
  jute& number(std::int32_t value) {
    const std::uint32_t swapped = htonl(static_cast<std::uint32_t>(value));
    bytes_.append(reinterpret_cast<const char*>(&swapped), sizeof swapped);
    return *this;
  }
  jute& wide(std::int64_t value) {
    number(static_cast<std::int32_t>(value >> 32));
    return number(static_cast<std::int32_t>(value & 0xffffffff));
  }
  jute& text(const std::string& value) {
    number(static_cast<std::int32_t>(value.size()));
    bytes_ += value;
    return *this;
  }
  jute& flag(bool value) {
    bytes_ += value ? '\1' : '\0';
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

 private:
  std::string bytes_;
};

std::int32_t number_at(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  if (at + sizeof value > bytes.size()) throw std::runtime_error("a short answer of zookeeper");
  bytes.copy(reinterpret_cast<char*>(&value), sizeof value, at);
  return static_cast<std::int32_t>(ntohl(value));
}

// A session that sends no pings by itself. Not closed when destroyed: that is the point.
class short_session {
 public:
  explicit short_session(std::uint16_t port, milliseconds lives = shortest_session,
                         milliseconds answer_limit = usual_limit)
      : socket_(runtime::checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket")) {
    const auto whole = std::chrono::duration_cast<std::chrono::seconds>(answer_limit);
    const timeval limit{whole.count(), std::chrono::microseconds(answer_limit - whole).count()};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
      throw std::runtime_error("zookeeper does not answer");
    }
    jute hello;
    hello.number(0).wide(0).number(static_cast<std::int32_t>(lives.count()));
    hello.wide(0).text(std::string(16, '\0')).flag(false);
    exchange(hello);
  }

  // True: made. False: there is one.
  bool make(const std::string& path, const std::string& data) {
    jute request;
    request.number(++sent_).number(create).text(path).text(data);
    request.number(1).number(all_permissions).text("world").text("anyone").number(ephemeral);
    return error_in(exchange(request)) == 0;
  }
  // Empty: there is none.
  std::string read(const std::string& path) {
    jute request;
    request.number(++sent_).number(get_data).text(path).flag(false);
    const std::string answer = exchange(request);
    if (error_in(answer) != 0) return {};
    constexpr std::size_t header = 16;
    return answer.substr(header + 4, static_cast<std::size_t>(number_at(answer, header)));
  }
  // True: somebody answered.
  bool ping() {
    jute request;
    request.number(ping_number).number(ping_request);
    try {
      return error_in(exchange(request)) == 0;
    } catch (const std::runtime_error&) {
      return false;
    }
  }

 private:
  static std::int32_t error_in(const std::string& answer) { return number_at(answer, 12); }

  std::string exchange(const jute& request) {
    jute framed;
    framed.text(request.bytes());
    const std::string& bytes = framed.bytes();
    if (::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(bytes.size())) {
      throw std::runtime_error("zookeeper hung up");
    }
    const auto size = static_cast<std::size_t>(number_at(receive(4), 0));
    if (size > longest_answer) throw std::runtime_error("unexpected reply of zookeeper");
    return receive(size);
  }
  std::string receive(std::size_t size) {
    std::string bytes(size, '\0');
    for (std::size_t got = 0; got < size;) {
      const ssize_t more = ::recv(socket_.get(), bytes.data() + got, size - got, 0);
      if (more <= 0) throw std::runtime_error("zookeeper hung up");
      got += static_cast<std::size_t>(more);
    }
    return bytes;
  }

  runtime::descriptor socket_;
  std::int32_t sent_ = 0;
};

}  // namespace

run_record node_without_its_owner(servers& all) {
  const std::uint16_t port = all.zookeeper().port();
  stage scene("zookeeper");
  const std::int32_t first = scene.asks(0);
  short_session(port).make("/lock", "client 0");  // its answer is lost with the connection
  short_session again(port);
  if (!again.make("/lock", "client 0") && again.read("/lock") == "client 0") {
    scene.granted(first);  // mine, it thinks: my name is in it
  }
  const std::int32_t second = scene.asks(1);
  // A new session each time: none of them pings.
  if (test::eventually([&] { return short_session(port).make("/lock", "client 1"); })) {
    scene.granted(second);
  }
  scene.releases(first);
  scene.releases(second);
  return scene.told();
}

run_record lease_dated_by_pings(servers& all) {
  test::zookeeper_ensemble& ensemble = all.ensemble();
  // The last one is late to notice that it is cut off, whether it leads or follows.
  const std::size_t cut_off = ensemble.servers().size() - 1;
  const std::size_t lead = ensemble.number_of(ensemble.leader());
  const std::size_t fine = lead == cut_off ? 0 : lead;
  stage scene("zookeeper");
  const std::int32_t first = scene.asks(0);
  short_session holder(ensemble.servers()[cut_off]->port(), pinged_session);
  if (holder.make("/pinged", "client 0")) scene.granted(first);
  const std::int32_t second = scene.asks(1);
  for (std::size_t other = 0; other < cut_off; ++other) ensemble.cut(cut_off, other);
  // The server answers, so the client takes its session to be alive. Without a pause: a leading
  // server ends the session of a client that it does not hear from.
  std::atomic<bool> believes{true};
  std::jthread pings([&](const std::stop_token& ended) {
    while (believes && !ended.stop_requested()) {
      believes = holder.ping();
      std::this_thread::sleep_for(ping_interval);
    }
  });
  const bool taken = test::eventually(
      [&] {
        if (!believes) return true;
        try {
          short_session other(ensemble.servers()[fine]->port(), shortest_session, brief_limit);
          return other.make("/pinged", "client 1");
        } catch (const std::runtime_error&) {
          return false;  // a leader is being elected
        }
      },
      2 * test::patience);
  pings.request_stop();
  pings.join();
  if (!believes) scene.gives_up(first);
  if (taken && believes) scene.granted(second);
  if (believes && !holder.ping()) scene.gives_up(first);
  scene.releases(first);
  scene.releases(second);
  return scene.told();
}

}  // namespace holdfast::torture::controls
