// To whom each message of a server goes, and who waits until messages are heard at all.
#pragma once

#include "stores/sql/answers.hpp"
#include "stores/sql/common/subscribers.hpp"
#include "stores/sql/connection.hpp"
#include "stores/sql/wakeup_registry.hpp"

#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::sql {

// Thread-safe. Calls others under no lock.
class switchboard {
 public:
  // `taken`: a hold was taken away, and its holder has been told; may be empty.
  switchboard(std::shared_ptr<wakeup_registry> wakeup_registry,
              std::shared_ptr<subscribers> subscribers,
              std::function<void(const spi::claim_id&)> taken)
      : wakeups_(std::move(wakeup_registry)),
        subscribers_(std::move(subscribers)),
        taken_(std::move(taken)) {}

  // Words that are none of ours are for nobody.
  void hear(std::string_view message) {
    const auto what = to_notification(message);
    if (!what) return;
    if (what->event) return subscribers_->tell(what->key, *what->event);
    if (!what->push) return subscribers_->tell_latch(what->key);
    wakeups_->notify(*what->push);
    if (what->push->what == stores::push::kind::gone && taken_) taken_(what->push->claim);
  }
  // From now on messages are heard. Those before may have been missed: waiters ask again.
  void opened() {
    answer({});
    wakeups_->notify_all();
    subscribers_->tell_all_latches();
  }

  // Answered by opened(), or by answer().
  void await(spi::completion<void> done) {
    const std::lock_guard lock(mutex_);
    awaited_.push_back(std::move(done));
  }
  // Everybody at once: a deadline that passes too early for one of them costs it a repetition.
  void answer(const result<void>& outcome) {
    std::vector<spi::completion<void>> all;
    {
      const std::lock_guard lock(mutex_);
      all.swap(awaited_);
    }
    for (auto& each : all) each(outcome);
  }

 private:
  const std::shared_ptr<wakeup_registry> wakeups_;
  const std::shared_ptr<subscribers> subscribers_;
  const std::function<void(const spi::claim_id&)> taken_;
  std::mutex mutex_;
  std::vector<spi::completion<void>> awaited_;  // guarded by mutex_
};

// How a client hears from the others: one connection that listens. Thread-safe. When it is connected again everybody who
// waits is told to ask. Each engine says how it is made.
class notification_listener {
 public:
  explicit notification_listener(std::shared_ptr<connection> over) : connection_(std::move(over)) {}
  virtual ~notification_listener() = default;
  notification_listener(const notification_listener&) = delete;
  notification_listener& operator=(const notification_listener&) = delete;

  // Connects; the first call does, the others do nothing.
  void start() { connection_->start(); }
  [[nodiscard]] bool is_open() const { return connection_->is_open(); }
  // Why it does not hear, if it was tried.
  [[nodiscard]] std::optional<error> last_failure() const { return connection_->last_failure(); }

  // It goes to the server that this one is connected to, whenever it is; `lead`: the other way round.
  void follow(connection& command_connection) const { command_connection.lead(connection_); }
  void lead(const std::shared_ptr<connection>& control_connection) const {
    connection_->lead(control_connection);
  }

  // Afterwards nothing is heard any more.
  virtual void close() noexcept { connection_->close(); }

 protected:
  notification_listener() = default;

  std::shared_ptr<connection> connection_;  // set when it is made
};

}  // namespace holdfast::sql
