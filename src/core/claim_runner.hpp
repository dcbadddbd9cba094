// Runs one claim: feeds its machine and carries out its orders on the store. One input at a time,
// on whatever thread brought it; no lock is held while the store or the user is called.
//
// Thread-safe. Kept alive by the engine's list until its machine has ended.
#pragma once

#include "core/agenda.hpp"
#include "core/attempt_window.hpp"
#include "core/claim_machine.hpp"
#include "core/engine.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/function.hpp>
#include <holdfast/spi/store.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::core {

// Inputs that arrived for a claim while another thread was feeding its machine, in order. The first
// is stored inline: usually there is only one, an answer that the store gives before its call
// returns. Not thread-safe.
class inbox {
 public:
  using input = spi::function<claim_machine::orders(time_point now)>;

  [[nodiscard]] bool empty() const noexcept { return !first_; }

  void add(input step) {
    if (first_) {
      others_.push_back(std::move(step));
    } else {
      first_ = std::move(step);
    }
  }

  // The inbox must not be empty.
  [[nodiscard]] input take() {
    input step = std::exchange(first_, nullptr);
    if (!others_.empty()) {
      first_ = std::move(others_.front());
      others_.erase(others_.begin());
    }
    return step;
  }

 private:
  input first_;                // empty: there is none
  std::vector<input> others_;  // after it
};

class acquisition;
class hold;

class claim_runner final : public agenda_item,
                           public window_item,
                           public spi::wakeup,
                           public std::enable_shared_from_this<claim_runner> {
 public:
  claim_runner(std::shared_ptr<engine> engine, spi::claim_ptr claim,
               const machine_settings& settings, std::shared_ptr<acquisition> requester);
  ~claim_runner() override;

  void start();
  void cancel(error why) noexcept;
  void release(spi::completion<void> done) noexcept;
  // Transfers the hold to `to`. ok; lost; unavailable: the outcome is unknown, and the claim is
  // left in the background.
  void transfer_to(spi::claim_ptr to, spi::completion<void> done) noexcept;
  // `tell_by`: then it is given back, though lost() has not fired.
  void close(time_point tell_by) noexcept;
  void change(spi::mode to, spi::completion<fence_token> done);

  // spi::wakeup
  void notify(std::optional<spi::granted> grant) noexcept override;
  void wanted() noexcept override;
  void gone(const error& why) noexcept override;

  // agenda_item
  void due(time_point now) override;
  void join(time_point now, time_point horizon) override;

  // window_item
  void admitted(slot taken, duration usual) override;

  // From the watchdog.
  void refreshed(time_point sent_at, const spi::renewal& answer);

  // In the engine's list, if it is there; guarded by the engine's mutex.
  std::optional<runner_list::iterator> place;

  // Sets the hold that is notified of a loss from now on. False: already lost.
  bool attach(const std::shared_ptr<hold>& holder);
  void detach() noexcept;

  [[nodiscard]] const spi::claim& claim() const noexcept { return *claim_; }
  [[nodiscard]] const spi::claim_ptr& shared_claim() const noexcept { return claim_; }
  [[nodiscard]] core::engine& owner() const noexcept { return *engine_; }
  [[nodiscard]] time_point valid_until() const noexcept {
    return time_point(duration(valid_until_.load(std::memory_order_acquire)));
  }
  [[nodiscard]] duration ttl() const noexcept {
    return duration(ttl_.load(std::memory_order_acquire));
  }
  [[nodiscard]] bool degraded() const noexcept { return degraded_.load(std::memory_order_acquire); }
  // False once it is being left: a renewal that was collected for a batch before that must not be
  // sent.
  [[nodiscard]] bool renewable() const noexcept {
    return renewable_.load(std::memory_order_acquire);
  }
  [[nodiscard]] bool wanted_by_others() const noexcept {
    return wanted_.load(std::memory_order_acquire);
  }

 private:
  template <class Step>
  void feed(Step&& step);
  template <class Step>
  void feed(time_point now, Step&& step);
  template <class Step>
  void run(std::unique_lock<std::mutex>& lock, time_point now, Step& step);
  void drain(std::unique_lock<std::mutex>& lock);
  void after_step(claim_machine::orders&& todo, time_point now);
  void carry_out(claim_machine::orders&& todo, time_point begun);
  void settle(result<fence_token> answer, time_point now);
  bool tell_lost(const error& why, loss_cause cause);  // as hold::tell_lost()
  void tell_wanted();
  void send_attempt(time_point sent_at);
  void ask(time_point sent_at, spi::completion<spi::outcome> done);
  void send_transfer(time_point sent_at, bool unanswered);
  void answer_release(result<void> how, std::string_view verb);
  void order_leave(time_point begun, bool unanswered, bool in_passing);
  void order_leave_when_told(time_point begun, bool unanswered, bool in_passing);
  void order_untold_leave(time_point now);
  void send_leave(slot taken, time_point sent_at, bool unanswered, bool in_passing);
  void send_waiting_leave(slot taken, time_point now);
  void publish() noexcept;
  [[nodiscard]] spi::op_context context(time_point now) const;
  [[nodiscard]] spi::op_context attempt_context(time_point now) const;
  [[nodiscard]] spi::op_context leave_context(time_point now, bool unanswered) const;

  const std::shared_ptr<engine> engine_;
  const time_point deadline_;  // of the seeking
  const duration first_contact_;
  const duration patience_;     // with an engine that does not answer
  spi::claim_ptr detached_;     // used while running_: what it is being transferred to
  spi::claim_ptr claim_;        // never replaced, but by the mutant new_id_on_retry
  std::uint32_t attempts_ = 0;  // used while running_
  time_point first_attempt_{};  // used while running_
  // Of the one attempt that is in flight: set by its completion, read by the step that this feeds.
  result<spi::outcome> attempt_answer_;
  result<spi::departure> leave_answer_;  // likewise, of the one leave
  bool announced_ = false;  // used while running_: this step is a release others wait for
  bool in_window_ = false;  // used while running_: it may be queued in the window
  slot admitted_ = 0;       // used while running_: this step's attempt has its slot already
  // Used while running_: a leave that waits for its slot, or for lost() to fire. To the machine it
  // has been sent.
  struct waiting_leave {
    bool unanswered;
    bool in_passing;
    time_point until;  // then the releasing caller is notified; not told: then it is sent
    bool told = true;  // false: lost() has not fired yet
  };
  std::optional<waiting_leave> waiting_leave_;
  time_point tell_by_ = time_point::max();  // used while running_
  std::shared_ptr<acquisition> requester_;  // used while running_; until settled
  spi::completion<void> on_released_;       // used while running_; also for transfer_to()

  std::mutex mutex_;
  bool running_ = false;        // guarded by mutex_: somebody feeds the machine
  inbox inputs_;                // guarded by mutex_
  std::weak_ptr<hold> holder_;  // guarded by mutex_
  bool lost_ = false;           // guarded by mutex_

  claim_machine machine_;  // touched only by the thread that set running_
  std::atomic<duration::rep> valid_until_{time_point::min().time_since_epoch().count()};
  std::atomic<duration::rep> ttl_{0};
  std::atomic<bool> degraded_{false};
  std::atomic<bool> renewable_{true};
  std::atomic<bool> wanted_{false};
};

// The first thread to arrive feeds the machine, then feeds it whatever other threads have brought
// meanwhile. An answer that comes before the store's call returns is such an input, so there is no
// recursion.
template <class Step>
void claim_runner::feed(Step&& step) {
  feed(engine_->runtime().now(), std::forward<Step>(step));
}

template <class Step>
void claim_runner::feed(time_point now, Step&& step) {
  if (engine_->runtime().forked()) return;  // the parent's claim, and perhaps its locked mutex
  const auto self = shared_from_this();     // the engine's list may drop us at the end
  std::unique_lock lock(mutex_);
  if (running_) {
    inputs_.add(std::forward<Step>(step));
    return;
  }
  run(lock, now, step);
}

// Called with the mutex held, which it releases, while no other thread feeds the machine.
template <class Step>
void claim_runner::run(std::unique_lock<std::mutex>& lock, time_point now, Step& step) {
  running_ = true;
  lock.unlock();
  after_step(step(now), now);
  lock.lock();
  drain(lock);
}

}  // namespace holdfast::core
