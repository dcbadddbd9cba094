// One Redis server as the store sees it: a connection for commands, one for subscriptions.
#pragma once

#include "net/connector.hpp"
#include "stores/redis/client/connection.hpp"
#include "stores/redis/client/script.hpp"
#include "stores/redis/client/subscriber.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/topology/confirmer.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::redis {

// Thread-safe. Both connect when they are first needed.
class node {
 public:
  node(const net::network& net, const server_options& options, const connection::events& tell = {});
  ~node();
  node(const node&) = delete;
  node& operator=(const node&) = delete;

  // By hash, in full where the server does not know it. Error replies are replies.
  void run(lane which, const script& what, std::span<const std::string_view> keys,
           std::span<const std::string_view> arguments, const net::patience& until,
           spi::completion<reply> done);
  // A command that script::by_hash() made. NOSCRIPT is a reply; sent again, it goes in full.
  void run(lane which, const script& what, const command& by_hash, const net::patience& until,
           spi::completion<reply> done);
  void send(const command& what, const net::patience& until, spi::completion<reply> done);
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
