// A circuit breaker around a store: after a number of requests in a row without an answer, new
// claims are refused at once, instead of waiting for the engine, until it answers again.
//
// Only attempts are refused. Renewals, releases and all other verbs go to the engine whatever the
// state, since they keep promises already made; when they go unanswered, that counts too. What a
// store may answer without its engine (a renewal by an earlier proof, a claim that it does not
// know) is no sign of life. An engine may answer and yet have no usable answer for one claim (its
// row is locked by another program, its quorum is too young). So before the breaker opens, and from
// time to time while it is open, the engine is probed: a look at a name that nobody uses. The same
// probe opens and closes the breaker.
#pragma once

#include "stores/forwarding_store.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/runtime.hpp>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace holdfast::degraded {

// Counts requests without an answer: after a number of them in a row the engine is
// doubted; if it does not answer a simple look either, it is considered unreachable until
// it answers anything at all.
//
// Thread-safe.
//
//   state   | entered by                      | ends with
//   closed  | start, an answer                | `limit` failures in a row -> doubted
//   doubted | the last of `limit` failures    | an answer -> closed; a failed look -> open
//   open    | a failed look                   | an answer, whatever it says -> closed
class breaker {
 public:
  explicit breaker(std::uint32_t limit) noexcept : limit_(limit) {}

  // True: the engine is doubted from now on.
  bool failed() noexcept {
    const std::uint32_t failures = failures_.fetch_add(1, std::memory_order_acq_rel) + 1;
    return failures >= limit_ && moves(state::closed, state::doubted);
  }
  // True: it opened just now.
  bool looked_in_vain() noexcept { return moves(state::doubted, state::open); }
  // True: it is to be closed.
  bool answered() noexcept {
    failures_.store(0, std::memory_order_release);
    return !closed();
  }
  // True: it was open until now.
  bool closes() noexcept {
    return state_.exchange(state::closed, std::memory_order_acq_rel) == state::open;
  }
  [[nodiscard]] bool open() const noexcept {
    return state_.load(std::memory_order_acquire) == state::open;
  }
  [[nodiscard]] bool closed() const noexcept {
    return state_.load(std::memory_order_acquire) == state::closed;
  }
  [[nodiscard]] std::uint32_t limit() const noexcept { return limit_; }

 private:
  enum class state : std::uint8_t { closed, doubted, open };

  bool moves(state from, state to) noexcept {
    return state_.compare_exchange_strong(from, to, std::memory_order_acq_rel);
  }

  const std::uint32_t limit_;
  std::atomic<std::uint32_t> failures_{0};
  std::atomic<state> state_{state::closed};
};

struct breaker_settings {
  std::uint32_t failures = 3;                     // in a row, before the engine is probed
  duration pause = std::chrono::seconds(1);       // between looks: from half of it to all of it
  duration look_limit = std::chrono::seconds(2);  // how long one look may take
};

// Thread-safe; no lock is held while the engine or a listener is called. Reports are made one at a
// time, in the order of the changes, by a thread that brought an answer. Made by make_shared:
// completions keep it.
class breaker_store final : public stores::forwarding_store,
                            public std::enable_shared_from_this<breaker_store> {
 public:
  breaker_store(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<spi::store> inner,
                const breaker_settings& settings);
  ~breaker_store() override;
  breaker_store(const breaker_store&) = delete;
  breaker_store& operator=(const breaker_store&) = delete;

  // The engine is considered unreachable.
  [[nodiscard]] bool open() const noexcept { return breaker_.open(); }

  void attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
               const spi::op_context& context, spi::completion<spi::outcome> done) override;
  void leave(spi::claim_ptr claim, const spi::op_context& context,
             spi::completion<spi::departure> done) override;
  void renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
             spi::completion<std::vector<spi::renewal>> done) override;
  void change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
              spi::completion<spi::granted> done) override;
  void inspect(const spi::resource_id& resource, const spi::op_context& context,
               spi::completion<spi::resource_state> done) override;
  bool report_to(spi::reach_sink sink) override;
  void close() noexcept override;

 private:
  template <class T>
  spi::completion<T> judged(spi::completion<T> done);
  void judge(const std::optional<error>& silence);
  [[nodiscard]] error refusal() const;
  void turn(spi::reach to, const error& why);

  // The probes of an engine that does not answer.
  bool begins_look();
  void look_later();
  void look();
  void looked(const result<spi::resource_state>& answer);
  void stop_looking() noexcept;

  const std::shared_ptr<spi::runtime> runtime_;
  const breaker_settings settings_;
  breaker breaker_;

  mutable std::mutex mutex_;
  error last_;                                   // guarded by mutex_
  std::shared_ptr<spi::reach_sink> sink_;        // guarded by mutex_
  std::optional<spi::runtime::timer_id> timer_;  // guarded by mutex_
  bool looking_ = false;                         // guarded by mutex_: now, or by the timer
  bool closed_ = false;                          // guarded by mutex_
  bool reporting_ = false;                       // guarded by mutex_
  // Guarded by mutex_: changes that are not reported yet.
  std::deque<std::pair<spi::reach, error>> changes_;
};

}  // namespace holdfast::degraded
