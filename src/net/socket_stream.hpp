// The stream over a connected socket.
#pragma once

#include "net/address.hpp"
#include "net/stream.hpp"
#include "runtime/descriptor.hpp"
#include "runtime/fork_guard.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::net {

// Stream sockets, made non-blocking and closed on exec, with what a lock's connection needs: small
// writes are not delayed, and a peer that is gone is not waited for for hours.

// A silent peer is probed after `idle`, then every `interval`, and given up after `count` probes.
struct keepalive {
  std::chrono::seconds idle{10};
  std::chrono::seconds interval{5};
  int count = 3;
  // Sent and not acknowledged for this long: the connection is dead.
  std::chrono::milliseconds unacknowledged{15'000};
};

// A socket on which connect() was called: connected, or about to be when it becomes writable.
struct connecting_socket {
  runtime::descriptor socket;
  bool connected = false;
};
result<connecting_socket> begin_connect(const address& to, const keepalive& life = {});

// What became of a connect() that was under way, once the socket is ready.
result<void> end_connect(int socket, const address& to);

// "connect 10.0.0.1:6379: Connection refused"
error socket_error(const char* what, const std::string& where, int number);

// Writing has three states, under the mutex: nobody writes; one thread writes (outside the mutex,
// and takes along what others queue meanwhile); blocked, until the reactor finds the socket
// writable. The socket is closed once close() was called, no callback runs and no thread writes:
// until then its number must not be reused for another connection.
class socket_stream final : public stream, public std::enable_shared_from_this<socket_stream> {
 public:
  // The socket is connected. `where`: the peer, for messages.
  socket_stream(std::shared_ptr<spi::reactor> reactor, runtime::descriptor socket,
                std::string where);
  ~socket_stream() override;
  socket_stream(const socket_stream&) = delete;
  socket_stream& operator=(const socket_stream&) = delete;

  void start(std::weak_ptr<stream_user> user) override;
  void queue(std::string_view bytes) override;
  void flush() noexcept override;
  [[nodiscard]] std::size_t unsent() const noexcept override;
  void close() noexcept override;

 private:
  static constexpr std::size_t read_size = 16'384;
  // How long a read may sleep for its answer if the reactor allows it (the kernel's ticks add to
  // it).
  static constexpr std::chrono::microseconds read_patience{1'000};
  static constexpr int reads_per_turn = 16;    // then other descriptors have their turn
  static constexpr int writes_per_thread = 8;  // then the reactor writes on: a sender has own work
  static constexpr std::size_t kept_capacity = 65'536;  // of a buffer between uses

  using mutex_lock = std::unique_lock<std::mutex>;

  void ready(spi::readiness what);
  void receive(stream_user& user, bool awaited);
  void end(stream_user* user, error why);
  void write(mutex_lock& lock) noexcept;
  bool write_once(mutex_lock& lock) noexcept;
  void write_failed(int number) noexcept;
  void await_writable(bool wanted) noexcept;
  void end_socket() noexcept;

  const runtime::fork_guard guard_;
  const std::shared_ptr<spi::reactor> reactor_;
  const std::string where_;
  std::weak_ptr<stream_user> user_;     // set by start(), before the watch
  std::vector<char> incoming_;          // only within ready()
  bool patient_ = false;                // a read may sleep; set when made
  std::atomic<std::size_t> unsent_{0};  // bytes queued and not sent; changed under the mutex

  mutable std::mutex mutex_;
  // All below: guarded by mutex_, except for `sending_`, which belongs to the writer.
  runtime::descriptor socket_;
  std::string queued_;
  std::string sending_;
  std::size_t sent_ = 0;      // of sending_
  std::optional<error> why_;  // a write failed; reported when the reactor notices
  spi::reactor::watch_id watch_ = 0;
  bool writing_ = false;
  bool blocked_ = false;
  bool closed_ = false;     // close() was called
  bool unwatched_ = false;  // and no callback runs any more
};

}  // namespace holdfast::net
