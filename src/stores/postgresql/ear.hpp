// How this client hears from the others: one connection that listens to a channel of its own, and to
// whom each message goes.
#pragma once

#include "net/connector.hpp"
#include "stores/postgresql/connection.hpp"
#include "stores/postgresql/options.hpp"
#include "stores/sql/audience.hpp"
#include "stores/sql/bells.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/store.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::postgresql {

// Thread-safe. Messages sent while it is not connected are lost; when it is connected again everybody
// who waits is told to ask.
// `taken`: a hold was taken away, and its holder has been told; may be empty.
class ear : public std::enable_shared_from_this<ear> {
 public:
  static std::shared_ptr<ear> make(net::network net, std::shared_ptr<const server_options> options,
                                   std::shared_ptr<sql::bells> bells,
                                   std::shared_ptr<sql::audience> audience,
                                   std::function<void(const spi::claim_id&)> taken);

  // By which the others know us: 32 random hexadecimal digits, so that nobody guesses the channel.
  [[nodiscard]] const std::string& process() const noexcept { return process_; }

  // Connects; the first call does, the others do nothing.
  void start() { connection_->start(); }
  // Once it listens; unavailable at the deadline, or why it cannot.
  void when_open(time_point deadline, spi::completion<void> done);
  [[nodiscard]] bool is_open() const { return connection_->is_open(); }

  // Afterwards nothing is heard any more, and who waited for it to open has been answered.
  void close() noexcept;

 private:
  ear(net::network net, std::shared_ptr<sql::bells> bells, std::shared_ptr<sql::audience> audience,
      std::string process, std::function<void(const spi::claim_id&)> taken);

  void opened();
  void heard(std::string_view message);
  void answer(const result<void>& outcome);

  const net::network net_;
  const std::shared_ptr<sql::bells> bells_;
  const std::shared_ptr<sql::audience> audience_;
  const std::string process_;
  const std::function<void(const spi::claim_id&)> taken_;
  std::shared_ptr<connection> connection_;  // set by make()

  std::mutex mutex_;
  std::vector<spi::completion<void>> awaited_;  // guarded by mutex_
};

}  // namespace holdfast::postgresql
