// One Redis server as the store sees it: a connection for commands, one for subscriptions.
#pragma once

#include "net/connector.hpp"
#include "stores/redis/client/command.hpp"
#include "stores/redis/client/connection.hpp"
#include "stores/redis/client/subscriber.hpp"
#include "stores/redis/layout.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::redis {

// wait_replicas: a grant counts once so many replicas have it. On connections of its own, because
// WAIT holds up everything behind it.

// Thread-safe. All scripts of a partition go over one connection, so that they stay in order; those that
// give something are followed by a write and a WAIT. The write is there because WAIT counts from
// the last write of its own connection: a script that finds its claim granted already, by a push or
// by an attempt whose answer was lost, writes nothing.
class confirmer : public std::enable_shared_from_this<confirmer> {
 public:
  static constexpr std::size_t connection_count = 8;
  static constexpr duration longest_wait = std::chrono::seconds(1);

  confirmer(const net::network& net, const server_options& options, const connection::events& tell);

  // A command that script::call() made. unavailable: too few replicas confirmed it in time;
  // whether it stays granted is not known, as if there had been no answer.
  void run(partition which, const script& what, command made, const net::patience& until,
           spi::completion<reply> done, bool asking);
  void close() noexcept;

 private:
  void confirm(partition which, const script& what, std::shared_ptr<const command> made,
               const net::patience& until, spi::completion<reply> done, bool asking, int reloads);

  const std::shared_ptr<spi::reactor> reactor_;
  const std::string where_;
  const std::uint32_t replicas_;
  std::array<std::shared_ptr<connection>, connection_count> connections_;
};

// Thread-safe. Both connect when they are first needed.
class node {
 public:
  node(const net::network& net, const server_options& options, const connection::events& tell = {});
  ~node();
  node(const node&) = delete;
  node& operator=(const node&) = delete;

  // A command that script::call() made. Error replies are replies. asking: behind ASKING.
  void run(partition which, const script& what, command made, const net::patience& until,
           spi::completion<reply> done, bool asking = false);
  void send(const command& what, const net::patience& until, spi::completion<reply> done,
            bool asking = false) {
    commands_->send(what, until, std::move(done), asking);
  }
  result<std::unique_ptr<spi::subscription>> listen(const channel_id& channel,
                                                    std::weak_ptr<channel_listener> listener);

  [[nodiscard]] const server_options& options() const noexcept { return commands_->options(); }
  // "redis db.example:6379"
  [[nodiscard]] std::string where() const { return "redis " + options().where.text(); }
  [[nodiscard]] std::optional<server_info> server() const { return commands_->server(); }

  // Every command has been answered and no listener is called afterwards.
  void close() noexcept;

 private:
  const std::shared_ptr<connection> commands_;
  const std::shared_ptr<subscriber> channels_;
  const std::shared_ptr<confirmer> confirmer_;  // with wait_replicas: the way of all scripts
};

}  // namespace holdfast::redis
