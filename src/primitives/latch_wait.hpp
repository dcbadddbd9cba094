// One wait for a latch, from the call to its single answer. The latch is watched first and then
// read, so that nothing is missed in between; it is read again at every change, and each second in
// case a notification was lost.
//
// Thread-safe. States: looking (a read is in flight) <-> resting (a timer is set) -> answered.
#pragma once

#include "core/backoff.hpp"
#include "primitives/client_state.hpp"
#include "primitives/operation.hpp"

#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

namespace holdfast {

class latch_wait final : public wait_registry::entry,
                         public std::enable_shared_from_this<latch_wait> {
 public:
  latch_wait(std::shared_ptr<client::state> client, spi::resource_id resource, duration wait,
             spi::completion<void> done);

  // The answer may come before this returns.
  void start(std::stop_token token);
  void cancel(const error& why) noexcept override;
  void cancel() noexcept { cancel({errc::cancelled, "cancelled while waiting"}); }

 private:
  // Posts a look, since this is called by a store, which must not be called in turn.
  spi::latch_watch on_change();
  void watch();
  void look();
  void looked(result<spi::latch_state> answer);
  // None: go on. Called for one look after the other.
  std::optional<result<void>> judge(const result<spi::latch_state>& answer, time_point now);
  void rest_until(time_point when);
  void answer(result<void> outcome) noexcept;

  const std::shared_ptr<client::state> client_;
  const spi::resource_id resource_;
  const time_point deadline_;
  // Touched by one look after the other.
  std::optional<spi::latch_state> seen_;  // by the previous look
  std::uint32_t unanswered_ = 0;          // unanswered looks in a row
  time_point tired_at_{};                 // when the retry policy gives up, unless answered

  std::mutex mutex_;
  // All below: guarded by mutex_.
  spi::completion<void> done_;  // empty once answered
  std::optional<std::uint64_t> place_;
  std::unique_ptr<spi::subscription> subscription_;
  bool looking_ = false;
  bool again_ = false;  // something changed while a read was in flight
  core::backoff backoff_;
  spi::runtime::timer_id timer_ = 0;

  detail::stop_cancels<latch_wait> on_stop_;  // touched by start() only
};

}  // namespace holdfast
