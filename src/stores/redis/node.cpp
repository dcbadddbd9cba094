// See the header.
#include "stores/redis/node.hpp"

#include <utility>

namespace holdfast::redis {

node::node(net::network net, const server_options& options, connection::events tell)
    : commands_(connection::make(net, options, std::move(tell))),
      channels_(subscriber::make(net, options)) {}

node::~node() = default;

void node::run(const script& what, std::span<const std::string_view> keys,
               std::span<const std::string_view> arguments, time_point deadline,
               spi::completion<reply> done) {
  run_script(commands_, what, keys, arguments, deadline, std::move(done));
}

void node::run(const script& what, const command& by_hash, time_point deadline,
               spi::completion<reply> done) {
  commands_->run(what, by_hash, deadline, std::move(done));
}

void node::send(const command& what, time_point deadline, spi::completion<reply> done) {
  commands_->send(what, deadline, std::move(done));
}

result<std::unique_ptr<spi::subscription>> node::listen(const channel_id& channel,
                                                        std::weak_ptr<channel_listener> listener) {
  return channels_->subscribe(channel, std::move(listener));
}

void node::close() noexcept {
  channels_->close();
  commands_->close();
}

}  // namespace holdfast::redis
