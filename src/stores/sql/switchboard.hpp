// Delivers each message of a server, and answers those who wait until messages arrive at all.
#pragma once

#include "stores/sql/answers.hpp"
#include "stores/sql/common/subscribers.hpp"
#include "stores/sql/connection.hpp"
#include "stores/sql/wakeup_registry.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

namespace holdfast::sql {

// Thread-safe. Makes outside calls under no lock.
class switchboard {
 public:
  // `taken`: a hold was revoked, and its holder has been notified; may be empty.
  switchboard(std::shared_ptr<wakeup_registry> wakeup_registry,
              std::shared_ptr<subscribers> subscribers,
              std::function<void(const spi::claim_id&)> taken)
      : wakeups_(std::move(wakeup_registry)),
        subscribers_(std::move(subscribers)),
        taken_(std::move(taken)) {}

  // Messages that are not ours are ignored.
  void hear(std::string_view message) {
    const auto what = to_notification(message);
    if (!what) return;
    if (what->event) return subscribers_->tell(what->key, *what->event);
    if (!what->push) return subscribers_->tell_latch(what->key);
    wakeups_->notify(*what->push);
    if (what->push->what == stores::push::kind::gone && taken_) taken_(what->push->claim);
  }
  // From now on messages arrive. Earlier ones may have been missed: waiters ask again.
  void opened() {
    answer({});
    wakeups_->notify_all();
    subscribers_->tell_all_latches();
  }

  // Answered by opened(), by answer(), or by expire() with the number that it returns.
  std::uint64_t await(spi::completion<void> done) {
    const std::lock_guard lock(mutex_);
    awaited_.emplace(++last_, std::move(done));
    return last_;
  }
  void answer(const result<void>& outcome) {
    std::map<std::uint64_t, spi::completion<void>> all;
    {
      const std::lock_guard lock(mutex_);
      all.swap(awaited_);
    }
    for (auto& [number, each] : all) each(outcome);
  }
  void expire(std::uint64_t number, const error& why) {
    spi::completion<void> done;
    {
      const std::lock_guard lock(mutex_);
      const auto found = awaited_.find(number);
      if (found == awaited_.end()) return;
      done = std::move(found->second);
      awaited_.erase(found);
    }
    done(tl::unexpected(why));
  }

 private:
  const std::shared_ptr<wakeup_registry> wakeups_;
  const std::shared_ptr<subscribers> subscribers_;
  const std::function<void(const spi::claim_id&)> taken_;
  std::mutex mutex_;
  std::uint64_t last_ = 0;                                  // guarded by mutex_
  std::map<std::uint64_t, spi::completion<void>> awaited_;  // guarded by mutex_
};

// How a client is notified by the others: one connection that listens. Thread-safe. When it
// reconnects, all waiters are notified to ask again. Each engine says how it is made.
class notification_listener {
 public:
  explicit notification_listener(std::shared_ptr<connection> over) : connection_(std::move(over)) {}
  virtual ~notification_listener() = default;
  notification_listener(const notification_listener&) = delete;
  notification_listener& operator=(const notification_listener&) = delete;

  // Connects; only the first call does anything.
  void start() { connection_->start(); }
  [[nodiscard]] bool is_open() const { return connection_->is_open(); }
  // Why it does not listen, if it was tried.
  [[nodiscard]] std::optional<error> last_failure() const { return connection_->last_failure(); }

  // It goes to the server that the other one is connected to, whenever that is
  // connected; `lead`: the reverse.
  void follow(connection& command_connection) const { command_connection.lead(connection_); }
  void lead(const std::shared_ptr<connection>& control_connection) const {
    connection_->lead(control_connection);
  }

  // Afterwards no notifications arrive any more.
  virtual void close() noexcept { connection_->close(); }

 protected:
  notification_listener() = default;

  std::shared_ptr<connection> connection_;  // set when it is made
};

}  // namespace holdfast::sql
