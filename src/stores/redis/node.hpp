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

  // A command that script::call() made. Error replies are replies. asking: behind ASKING.
  void run(lane which, const script& what, command made, const net::patience& until,
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
