#include "stores/postgresql/notification_listener.hpp"

#include <string_view>
#include <utility>

namespace holdfast::postgresql {

std::shared_ptr<notification_listener> notification_listener::make(
    net::network net, std::shared_ptr<const server_options> options, const std::string& process,
    std::shared_ptr<sql::switchboard> board) {
  std::shared_ptr<notification_listener> made(new notification_listener());
  connection::events tell;
  tell.opened = [board] { board->opened(); };
  tell.notified = [board](std::string_view message) { board->hear(message); };
  made->connection_ = connection::make(
      std::move(net), std::move(options),
      {.duty = duty::notification_listener, .channel = "hf_" + process}, std::move(tell));
  return made;
}

}  // namespace holdfast::postgresql
