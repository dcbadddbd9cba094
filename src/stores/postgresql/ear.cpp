// See the header.
#include "stores/postgresql/ear.hpp"

#include <string_view>
#include <utility>

namespace holdfast::postgresql {

std::shared_ptr<ear> ear::make(net::network net, std::shared_ptr<const server_options> options,
                               const std::string& process,
                               std::shared_ptr<sql::switchboard> board) {
  std::shared_ptr<ear> made(new ear());
  connection::events tell;
  tell.opened = [board] { board->opened(); };
  tell.notified = [board](std::string_view message) { board->hear(message); };
  made->connection_ =
      connection::make(std::move(net), std::move(options),
                       {.duty = duty::ear, .channel = "hf_" + process}, std::move(tell));
  return made;
}

}  // namespace holdfast::postgresql
