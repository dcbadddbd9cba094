// The life of one claim, without input or output: gets answers, wake-ups and the time, returns
// orders. Everything that decides whether a lock counts as held is here and in the two .cpp files.
//
// Not thread-safe: claim_runner feeds it one input at a time.
//
//   phase    | entered by                 | ends with
//   seeking  | start                      | grant -> held; deadline, cancel, refusal -> leaving
//   held     | a grant with validity left | release, local deadline, longest hold -> leaving; engine's word -> ended,
//            |                            | or leaving where an unanswered attempt may yet arrive
//   leaving  | the engine may know of us, | answered, or nothing of ours can be left -> ended;
//            | or it is being detached    | after a revocation: the holder's release, or the lease's end
//   ended    |                            |
//
// Invariants, cited by number in the .cpp files:
//  I1  A hold is dated from before the request that proved it was sent (or by date_push).
//  I2  No answer is unknown: neither success nor loss.
//  I3 A grant is sticky: once accepted, a later "blocked" or "waiting" of an older request is void.
//  I4 However the seeking ends, a claim that the engine may know of is left, by a request with a
//      deadline of its own, until last_sent + ttl: a renewal that was sent but not answered counts.
//  I5 No claim is renewed after it was released, nor after its transfer to a detached claim was
//      sent.
#pragma once

#include "core/backoff.hpp"
#include "core/dating.hpp"
#include "core/limits.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/options.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/store.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>

namespace holdfast::core {

// A re-check sooner than this would be a spin.
inline constexpr duration shortest_pause = std::chrono::milliseconds(1);

struct machine_settings {
  duration ttl{};
  bool queued = true;  // false: a try
  bool renewed = true;
  bool pushes = true;  // of the engine
  duration notice{0};
  duration lock_delay{0};                   // of the claim
  duration max_hold = forever;              // from the grant on
  time_point deadline = time_point::max();  // of the seeking
  retry_policy retry{};
  // An engine that this client never reached: how long a connection is waited for, whatever the
  // deadline. A request that was sent and not answered is an outage like any other.
  duration first_contact = forever;
  const limits* limit = &default_limits;  // outlives the machine
  std::uint64_t seed = 0;                 // for jitter
};

class claim_machine {
 public:
  enum class phase : std::uint8_t { seeking, held, leaving, ended };

  // What to do now, in the order of the members. At most one of each.
  struct orders {
    std::optional<error> lose;           // tells the holder
    loss_cause loss = loss_cause::none;  // with lose
    bool attempt = false;
    bool watch = false;
    bool renew = false;
    bool leave = false;
    bool transfer = false;                      // to the detached claim
    std::optional<result<void>> detached;       // answers the detaching caller
    bool unanswered = false;                    // with leave and transfer: keep a tombstone
    bool starved = false;                       // with settle: it was not sent in time
    bool forget = false;                        // nothing of it is at the engine
    std::optional<result<fence_token>> settle;  // answers the requester
    std::optional<result<void>> released;       // answers the releasing caller
    bool release_pending = false;               // events
    bool release_abandoned = false;
    std::optional<std::string> renewal_failed;  // why
    bool renewed = false;
    bool wanted = false;  // tells the holder that somebody waits
  };

  explicit claim_machine(const machine_settings& settings);

  orders start(time_point now);
  // The attempt that was just ordered is not sent yet: the client's window is full.
  void postpone(time_point now);
  // Its turn has come. It is not sent if it is no longer wanted, or if the answer would come too
  // late. `usual`: how long answers take.
  orders admitted(time_point now, duration usual);
  orders attempted(time_point now, time_point sent_at, const result<spi::outcome>& answer);
  orders watched(time_point now, const result<spi::armed>& answer);
  orders notified(time_point now, const std::optional<spi::granted>& grant);
  orders refreshed(time_point now, time_point sent_at, const spi::renewal& answer);
  orders gone(time_point now, const error& why);
  orders cancel(time_point now, const error& why);  // while seeking
  orders release(time_point now);                   // while held
  // While held: nothing is renewed from here on, then it is transferred.
  orders detach(time_point now);
  orders transferred(time_point now, const result<spi::granted>& answer);
  orders close(time_point now);  // the client is closed
  orders departed(time_point now, const result<spi::departure>& answer);
  // The leave that was ordered is still not sent: the releasing caller waits no longer.
  orders leave_delayed(const error& why);
  orders tick(time_point now);
  // tick, but also renews what is due before the horizon.
  orders join(time_point now, time_point horizon);

  // When tick() is wanted next.
  [[nodiscard]] time_point wake_at() const noexcept;

  [[nodiscard]] phase where() const noexcept { return phase_; }
  // What the holder may rely on: not beyond its longest hold.
  [[nodiscard]] time_point valid_until() const noexcept {
    return std::min(valid_until_, hold_until_);
  }
  [[nodiscard]] duration granted_ttl() const noexcept { return granted_ttl_; }
  [[nodiscard]] fence_token fence() const noexcept { return fence_; }
  [[nodiscard]] bool degraded() const noexcept { return degraded_; }
  void adopt(fence_token fence) noexcept { fence_ = fence; }  // after a change of mode
  // An attempt is wanted and waits for its turn.
  [[nodiscard]] bool postponed() const noexcept { return postponed_ && phase_ == phase::seeking; }
  // The engine has answered, and may have a trace of us.
  [[nodiscard]] bool known() const noexcept { return known_ && !outage_; }

 private:
  orders accept(time_point now, time_point proven_at, const spi::granted& grant);
  orders blocked(time_point now, time_point sent_at, const spi::blocked& answer);
  orders unanswered_attempt(time_point now, const error& why);
  orders refreshed_seeking(time_point now, time_point sent_at, const spi::renewal& answer);
  orders refreshed_held(time_point now, time_point sent_at, const spi::renewal& answer);
  orders past_deadline(time_point now);
  orders starve(time_point now);
  orders send_attempt(time_point now);
  orders send_renewal(time_point now);
  orders give_up(time_point now, error why);
  orders lose(time_point now, loss_cause cause, error why, time_point leave_from);
  orders expire(time_point now);
  orders let_run_out(time_point now, loss_cause cause, const std::string& why);
  orders held_too_long(time_point now);
  orders revoked(time_point now, loss_cause cause, error why, time_point leave_from);
  orders retry_transfer(time_point now);
  void begin_leaving(time_point now);
  void send_leave(orders& todo);
  void prove(time_point proven_at, const spi::granted& grant);
  void answered() noexcept;
  // The retry policy's patience with an engine that does not answer is over.
  [[nodiscard]] time_point contact_end() const noexcept;
  [[nodiscard]] bool tired(time_point now) const noexcept;
  [[nodiscard]] bool expired(time_point now) const noexcept;
  [[nodiscard]] bool may_reappear() const noexcept;
  [[nodiscard]] time_point loss_at() const noexcept;
  [[nodiscard]] time_point abandon_at() const noexcept;
  [[nodiscard]] std::uint64_t random() noexcept;

  const machine_settings settings_;
  phase phase_ = phase::seeking;
  backoff backoff_;
  std::uint64_t random_state_;

  // What the engine may know of us.
  std::optional<time_point> first_sent_;  // of the first attempt
  time_point last_sent_{};                // of the last attempt or renewal
  time_point last_answered_sent_{};       // the last of those that was answered
  // Both as they were before the last attempt was ordered, in case it is postponed.
  std::optional<time_point> first_sent_before_;
  time_point last_sent_before_{};
  bool attempting_ = false;  // an attempt is in flight
  bool renewing_ = false;    // a renewal is in flight whose answer is waited for
  std::uint32_t renewals_in_flight_ = 0;
  bool unanswered_ = false;  // some attempt was never answered and may still arrive
  bool known_ = false;       // the engine may have a trace of us, apart from what is in flight

  // Seeking.
  std::uint32_t attempts_ = 0;  // since the last usable answer
  bool in_line_ = false;
  bool postponed_ = false;                     // an attempt waits for its turn, unsent
  time_point starved_at_ = time_point::max();  // a try waits for it until then
  bool woken_ = false;                         // a wake-up came while an attempt was in flight
  bool doubted_ = false;  // the engine said "gone": of a place before the attempt, or of its grant
  bool last_try_ = false;
  error last_error_{errc::unavailable, "not answered"};  // short: no allocation
  bool outage_ = true;                                   // the last request got no usable answer
  time_point last_answer_{};
  std::optional<waiting_proof> proof_;
  time_point next_at_ = time_point::max();  // when to ask again
  time_point seek_until_;
  time_point outage_until_ = time_point::max();   // of the retry policy; max: the engine answers
  time_point contact_until_ = time_point::max();  // while nothing was ever sent
  duration poll_{};

  // Held.
  time_point accepted_at_{};
  std::uint32_t outdated_renewals_ = 0;  // in flight since before accepted_at_
  fence_token fence_;
  duration granted_ttl_{};
  bool offer_ = false;
  bool degraded_ = false;
  time_point valid_until_ = time_point::min();
  time_point hold_until_ = time_point::max();  // when the longest hold is over
  time_point renew_at_ = time_point::max();

  // Leaving.
  bool releasing_ = false;  // somebody waits for the answer of release
  bool was_held_ = false;
  bool leave_in_flight_ = false;
  time_point leave_at_ = time_point::max();
  // The engine took it away, and may keep it until then for a holder that has yet to stop: if that
  // holder releases it earlier, it is free at once. min: not so.
  time_point revoked_until_ = time_point::min();
  // Being detached: the transfer is repeated until then, and its outcome is not known before the
  // answer.
  time_point detach_until_ = time_point::min();
  bool detaching_ = false;
  bool transfer_in_flight_ = false;
  time_point transfer_at_ = time_point::max();
};

}  // namespace holdfast::core
