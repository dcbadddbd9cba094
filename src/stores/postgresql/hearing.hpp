// How a store hears of what others do: an ear, who is reached by it, and the wishes of those who
// observe names or wait for latches, told to the server again and again while they last.
#pragma once

#include "net/connector.hpp"
#include "stores/postgresql/connection.hpp"
#include "stores/postgresql/ear.hpp"
#include "stores/postgresql/options.hpp"
#include "stores/sql/audience.hpp"
#include "stores/sql/bells.hpp"

#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

namespace holdfast::postgresql {

// Thread-safe.
class hearing : public std::enable_shared_from_this<hearing> {
 public:
  // `desk`: over which the server is told. `taken`: after the holder has been told that its hold was
  // taken away.
  static std::shared_ptr<hearing> make(const net::network& net,
                                       const std::shared_ptr<const server_options>& options,
                                       std::shared_ptr<connection> desk,
                                       std::function<void(const spi::claim_id&)> taken = {});

  [[nodiscard]] sql::bells& bells() noexcept { return *bells_; }
  [[nodiscard]] const std::shared_ptr<sql::bells>& shared_bells() noexcept { return bells_; }
  [[nodiscard]] const std::string& process() const noexcept { return ear_->process(); }

  void start() { ear_->start(); }
  // Once it hears; unavailable at the deadline, or why it cannot.
  void when_open(time_point deadline, spi::completion<void> done) {
    ear_->when_open(deadline, std::move(done));
  }

  result<std::unique_ptr<spi::subscription>> observe(
      const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink);
  result<std::unique_ptr<spi::subscription>> watch_latch(const spi::resource_id& resource,
                                                         spi::latch_watch on_change);

  // Afterwards nothing is heard any more.
  void close() noexcept;

 private:
  hearing(const net::network& net, std::shared_ptr<connection> desk)
      : reactor_(net.reactor), desk_(std::move(desk)) {}

  void tell_wishes(const sql::audience::wishes& what, time_point deadline,
                   spi::completion<void> done);
  void keep_wishes();
  result<void> await_observation(const std::string& key);

  const std::shared_ptr<spi::reactor> reactor_;
  const std::shared_ptr<connection> desk_;
  const std::shared_ptr<sql::bells> bells_ = std::make_shared<sql::bells>();
  // Set by make(), then constant.
  std::shared_ptr<sql::audience> audience_;
  std::shared_ptr<ear> ear_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> keeping_wishes_{false};
};

}  // namespace holdfast::postgresql
