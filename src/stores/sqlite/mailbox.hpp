// How the clients of one database reach each other: each listens on a socket in the folder, and a
// client that has something to send, or must know when another one ends, connects. One connection
// per pair serves both ways. When a process ends, however it ends, its connections hang up.
//
// Messages are hints: a message that finds no room is dropped, and the
// receiver looks again by itself.
#pragma once

#include "stores/ledger/records.hpp"
#include "stores/sqlite/descriptor.hpp"
#include "stores/sqlite/location.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace holdfast::sqlite {

// The messages between clients, through their sockets: one packet each, with a fixed head and two
// texts. Described in docs/formats/embedded.md. A packet that is malformed, of a newer version or
// of an unknown kind is ignored: messages are hints, and a process that misses one looks again.
struct message {
  enum class kind : std::uint8_t { hello, push, event, latch };
  static constexpr std::size_t max_size = 2048;

  kind what = kind::hello;
  peer from{};               // hello, the first on a connection: who connected
  ledgers::push push{};      // for one claim
  std::string key{};         // event, latch: the resource's
  spi::store_event event{};  // for an observer
};

std::string encode(const message& message);
std::optional<message> decode(std::string_view packet);

// Thread-safe. open -> closed. Once close() has returned nothing is called any more (unless it was
// called from within a call).
class mailbox : public std::enable_shared_from_this<mailbox> {
 public:
  // Connections of one client; more are neither made nor accepted from the queue.
  static constexpr std::size_t link_limit = 4096;

  // Called on the reactor's threads, under no lock.
  struct handlers {
    std::function<void(const message&)> received;
    // A connection ended. Its client may be dead, or have closed, or be out of descriptors.
    std::function<void(const peer&)> hung_up;
  };

  enum class delivery : std::uint8_t {
    sent,
    refused,  // nobody listens there: very probably it is dead
    failed,   // no room, no descriptors: may be alive and did not get it
  };

  static result<std::shared_ptr<mailbox>> open(std::shared_ptr<spi::reactor> reactor,
                                               std::shared_ptr<const folder> at, peer self,
                                               handlers call);
  ~mailbox();
  mailbox(const mailbox&) = delete;
  mailbox& operator=(const mailbox&) = delete;

  delivery send(const peer& to, const message& what);
  // Makes sure that there is a connection, so that its end is noticed.
  delivery connect(const peer& to);
  [[nodiscard]] bool connected(std::int64_t client) const;

  // A further descriptor of the listening socket, close-on-exec, which the caller owns. Connections
  // that nobody accepts are closed with the last such descriptor. -1 with errno.
  [[nodiscard]] int share() const noexcept;

  void close() noexcept;

 private:
  struct link;
  using link_ptr = std::shared_ptr<link>;

  mailbox(std::shared_ptr<spi::reactor> reactor, std::shared_ptr<const folder> at, peer self,
          handlers call, descriptor listener);

  void heed(bool newcomers) noexcept;  // under mutex_
  void accept_some();
  void pause_accepting();
  bool adopt(const link_ptr& made);
  void ready(const link_ptr& from);
  void handle(const link_ptr& from, message what);
  void drop(const link_ptr& ended);
  link_ptr find(std::int64_t client) const;
  delivery dial(const peer& to, link_ptr& made);

  const std::shared_ptr<spi::reactor> reactor_;
  const std::shared_ptr<const folder> folder_;
  const peer self_;
  const handlers call_;

  mutable std::mutex mutex_;
  descriptor listener_;                     // guarded by mutex_
  spi::reactor::watch_id listening_ = 0;    // guarded by mutex_
  bool closed_ = false;                     // guarded by mutex_
  std::set<link_ptr> links_;                // guarded by mutex_
  std::map<std::int64_t, link_ptr> known_;  // guarded by mutex_; by the client at the other end
};

}  // namespace holdfast::sqlite
