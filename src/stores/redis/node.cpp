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

void node::run(lane which, const script& what, std::span<const std::string_view> keys,
               std::span<const std::string_view> arguments, const net::patience& until,
               spi::completion<reply> done) {
  if (confirmer_ == nullptr) {
    return run_script(commands_, what, keys, arguments, until, std::move(done));
  }
  const auto sent = std::make_shared<const command>(what.by_hash(keys, arguments));
  confirmer_->run(which, what, *sent, until,
                  [weak = std::weak_ptr(confirmer_), which, &what, sent, until,
                   done = std::move(done)](result<reply> answer) mutable {
                    const auto again = weak.lock();
                    if (!answer || !answer->is_error("NOSCRIPT") || again == nullptr) {
                      return done(std::move(answer));
                    }
                    again->run(which, what, *sent, until, std::move(done));
                  });
}

void node::run(lane which, const script& what, const command& by_hash, const net::patience& until,
               spi::completion<reply> done) {
  if (confirmer_ != nullptr) {
    return confirmer_->run(which, what, by_hash, until, std::move(done));
  }
  commands_->run(what, by_hash, until, std::move(done));
}

void node::send(const command& what, const net::patience& until, spi::completion<reply> done) {
  commands_->send(what, until, std::move(done));
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
