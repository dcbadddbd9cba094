// See the header.
#include "stores/redis/node.hpp"

#include <utility>

namespace holdfast::redis {

node::node(const net::network& net, const server_options& options, const connection::events& tell)
    : commands_(connection::make(net, options, tell)),
      channels_(subscriber::make(net, options)),
      confirmer_(options.wait_replicas > 0 ? std::make_shared<confirmer>(net, options, tell)
                                           : nullptr) {}

node::~node() = default;

void node::run(lane which, const script& what, command made, const net::patience& until,
               spi::completion<reply> done, bool asking) {
  if (confirmer_ != nullptr) {
    return confirmer_->run(which, what, std::move(made), until, std::move(done), asking);
  }
  commands_->run(what, std::move(made), until, std::move(done), asking);
}

result<std::unique_ptr<spi::subscription>> node::listen(const channel_id& channel,
                                                        std::weak_ptr<channel_listener> listener) {
  return channels_->subscribe(channel, std::move(listener));
}

void node::close() noexcept {
  channels_->close();
  if (confirmer_ != nullptr) confirmer_->close();
  commands_->close();
}

}  // namespace holdfast::redis
