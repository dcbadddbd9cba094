// How this client hears from the others: one connection that waits in the server until KILL QUERY ends
// the wait, then reads its messages; and to whom each of them goes.
#pragma once

#include "net/connector.hpp"
#include "stores/mariadb/connection.hpp"
#include "stores/mariadb/options.hpp"
#include "stores/sql/audience.hpp"
#include "stores/sql/bells.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::mariadb {

// Thread-safe. While it is not connected nothing is written for it; when it is connected again everybody
// who waits is told to ask. Messages that were read are deleted later, many at once: to delete each
// would be a commit on the way of every hand-over.
class ear : public std::enable_shared_from_this<ear> {
 public:
  // Where the sender may not end our wait, messages lie so long.
  static constexpr std::chrono::seconds pause{2};
  static constexpr std::size_t discard_at = 64;

  static std::shared_ptr<ear> make(net::network net, std::shared_ptr<const server_options> options,
                                   std::shared_ptr<sql::bells> bells,
                                   std::shared_ptr<sql::audience> audience);

  // By which the others know us: 32 random hexadecimal digits.
  [[nodiscard]] const std::string& process() const noexcept { return process_; }
  // The lock that another connection holds for this one to wait for.
  [[nodiscard]] std::string pillow() const { return "hfw_" + process_; }

  // Connects; the first call does, the others do nothing.
  void start() { connection_->start(); }
  // Once it listens; unavailable at the deadline, or why it cannot.
  void when_open(time_point deadline, spi::completion<void> done);
  [[nodiscard]] bool is_open() const { return connection_->is_open(); }

  // Afterwards nothing is heard any more, and who waited for it to open has been answered.
  void close() noexcept;

 private:
  ear(net::network net, std::shared_ptr<sql::bells> bells, std::shared_ptr<sql::audience> audience,
      std::string process);

  void opened();
  void listen(std::uint64_t life);
  void discard(std::uint64_t life);
  void read(std::uint64_t life, const sql::rows& rows);
  void heard(std::string_view message);
  void answer(const result<void>& outcome);

  const net::network net_;
  const std::shared_ptr<sql::bells> bells_;
  const std::shared_ptr<sql::audience> audience_;
  const std::string process_;
  std::shared_ptr<connection> connection_;  // set by make()

  std::mutex mutex_;
  std::vector<spi::completion<void>> awaited_;  // guarded by mutex_
  std::uint64_t life_ = 0;       // guarded by mutex_; of the connection: an old one listens no more
  std::set<std::int64_t> seen_;  // guarded by mutex_; read, and not deleted yet
};

}  // namespace holdfast::mariadb
