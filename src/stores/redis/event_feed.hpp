// Events of claims and changes of latches, as the server publishes them: for `watch`, elections and
// waiting for latches.
#pragma once

#include "stores/redis/client/subscriber.hpp"
#include "stores/redis/topology.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <memory>

namespace holdfast::redis {

// Thread-safe. Scripts publish events only while a mark in the partition says that somebody
// listens; listeners renew the mark.
class event_feed : public std::enable_shared_from_this<event_feed> {
 public:
  static constexpr duration mark_life = std::chrono::seconds(30);
  static constexpr duration mark_again = std::chrono::seconds(10);
  // How long observe() waits, at most, for the server's confirmation that events will come.
  static constexpr duration patience = std::chrono::seconds(2);

  event_feed(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<topology> servers);

  // Returns once events come, or after `patience`; at once if the caller must not block. denied:
  // the server forbids the channels, or the marks.
  result<std::unique_ptr<spi::subscription>> observe(
      const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink);
  result<std::unique_ptr<spi::subscription>> watch_latch(const spi::resource_id& resource,
                                                         spi::latch_watch on_change);
  // only: the message to react to; empty: any.
  result<std::unique_ptr<spi::subscription>> watch_channel(partition which,
                                                           const std::string& channel,
                                                           std::string only,
                                                           spi::latch_watch on_change);

 private:
  const std::shared_ptr<spi::runtime> runtime_;
  const std::shared_ptr<topology> topology_;
};

}  // namespace holdfast::redis
