// How this client is notified by the others: one connection that waits in the server until KILL
// QUERY ends the wait, then reads its messages.
#pragma once

#include "net/connector.hpp"
#include "stores/mariadb/statement.hpp"
#include "stores/sql/switchboard.hpp"

#include <holdfast/result.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace holdfast::mariadb {

// Thread-safe. While it is not connected nothing is stored for it; when it reconnects, all waiters
// are notified to ask again. Messages that were read are deleted later, many at once: deleting each
// would add a commit to every hand-over.
class notification_listener final : public sql::notification_listener,
                                    public std::enable_shared_from_this<notification_listener> {
 public:
  // If the sender may not end our wait, messages wait this long.
  static constexpr std::chrono::seconds pause{2};
  static constexpr std::size_t discard_at = 64;

  // `process`: the others' name for us.
  using make_connection =
      std::function<std::shared_ptr<sql::connection>(sql::connection::events tell)>;
  static std::shared_ptr<notification_listener> make(const net::network& net,
                                                     const make_connection& connected,
                                                     const std::string& process,
                                                     std::shared_ptr<sql::switchboard> board);

  // The lock that another connection of this client holds for the notification listener to wait for.
  static std::string parking_lock(const std::string& process) { return "hfw_" + process; }

  // Afterwards no notifications arrive any more.
  void close() noexcept override;

 private:
  notification_listener(net::network net, std::string process,
                        std::shared_ptr<sql::switchboard> board);

  void opened();
  void listen(std::uint64_t life);
  void discard(std::uint64_t life);
  void read(std::uint64_t life, const sql::rows& rows);

  const net::network net_;
  const std::string process_;
  const std::shared_ptr<sql::switchboard> board_;

  std::mutex mutex_;
  std::uint64_t life_ = 0;       // guarded by mutex_; of the connection: an old one stops listening
  std::set<std::int64_t> seen_;  // guarded by mutex_; read, and not deleted yet
};

}  // namespace holdfast::mariadb
