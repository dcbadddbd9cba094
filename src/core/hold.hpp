// A hold: a granted claim in the hands of one user, the inside of a lease. A local hand-over gives
// the same claim to another hold, with the next fence.
//
// Thread-safe. States: held -> (lost | released). lost() fires at the latest when validity ends;
// after release() or a hand-over it never fires any more.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/fence.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/runtime.hpp>
#include <holdfast/spi/store.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace holdfast::core {

class claim_runner;
class engine;
class local_queue;

class hold : public std::enable_shared_from_this<hold> {
 public:
  hold(std::shared_ptr<claim_runner> runner, std::shared_ptr<local_queue> local_queue,
       fence_token fence, time_point since);
  hold(const hold&) = delete;
  hold& operator=(const hold&) = delete;
  ~hold();  // releases, without waiting

  [[nodiscard]] bool valid()
      const noexcept;  // compares with the clock: right even if a notice is late
  [[nodiscard]] time_point valid_until() const noexcept;
  [[nodiscard]] fence_token fence() const noexcept;
  [[nodiscard]] duration ttl() const noexcept;  // what the engine granted
  [[nodiscard]] bool degraded() const noexcept;
  [[nodiscard]] const spi::claim& claim() const noexcept;
  [[nodiscard]] const std::shared_ptr<spi::runtime>& runtime() const noexcept;
  [[nodiscard]] std::shared_ptr<engine> owner() const;
  [[nodiscard]] time_point since() const noexcept { return since_; }
  [[nodiscard]] std::stop_token lost();
  [[nodiscard]] std::stop_token wanted();

  // Calls back once, on any thread, under no lock: ok when it is lost; not_held when it is released
  // first; at once where it has ended. The id is for ignore_end(), after which no call begins.
  std::uint64_t watch_end(spi::completion<void> told);
  void ignore_end(std::uint64_t id) noexcept;
  // Keeps an object of the caller's for as long as this one lives: the first one given stays.
  // Returns the one that is kept; null if none was given.
  std::shared_ptr<void> keep(std::shared_ptr<void> companion);

  // ok; lost (it was gone before); unavailable (goes on in the background); not_held (released
  // before).
  void release(spi::completion<void> done);
  // The same without an answer; what unlock() and destructors use.
  void release() noexcept;

  // ok; else why it cannot be detached, and nothing changes.
  [[nodiscard]] result<void> detachable() const;
  // Detaches it, so that the token continues it. It is no longer held, whatever the answer, and
  // never lost. lost: it was gone before; unavailable: the outcome is unknown, and the claim is
  // left in the background.
  void detach(spi::completion<std::string> done);

  // Downgrade or upgrade: see spi::store::change. The fence changes with it.
  void change(spi::mode to, spi::completion<void> done);

  // The next fence, after a change of mode.
  void renumber(fence_token fence) noexcept {
    fence_.store(fence.value(), std::memory_order_release);
  }

  // Ends it without notifying anybody, as if it had never been granted.
  void disown() noexcept;

  // From the runner.
  // True: lost() fires when the notifier comes to it; what is given to it now comes after that.
  bool tell_lost(const error& why, loss_cause cause) noexcept;
  void tell_wanted() noexcept;

 private:
  enum class state : std::uint8_t {
    held,
    lost,
    returned,  // released after the loss
    released
  };

  struct end_watch {
    std::uint64_t id;
    spi::completion<void> told;
  };

  bool leave_held(state to) noexcept;
  time_point count_release();  // when
  void count_loss(const error& why, loss_cause cause) noexcept;
  [[nodiscard]] bool gone() const noexcept;
  void tell_ended(const result<void>& how) noexcept;
  void release_lost(spi::completion<void> done);
  // The local queue, if we had not yet left it or handed it on; null otherwise.
  std::shared_ptr<local_queue> take_local_queue() noexcept;
  void leave_local_queue() noexcept;

  const std::shared_ptr<claim_runner> runner_;
  const time_point since_;
  std::atomic<std::uint64_t> fence_;
  std::atomic<spi::mode> mode_;  // change() makes it differ from the claim's
  std::atomic<state> state_{state::held};
  std::atomic<bool> in_local_queue_;  // we must leave it or hand it on, once
  std::shared_ptr<local_queue>
      local_queue_;  // touched only by the thread that cleared in_local_queue_, which drops it,
                     // since the local queue may own this hold
  std::atomic<bool> downgrade_unanswered_{false};

  std::atomic<bool> end_watched_{false};
  std::mutex mutex_;
  std::vector<end_watch> end_watches_;      // guarded by mutex_
  std::uint64_t next_watch_ = 1;            // guarded by mutex_
  std::shared_ptr<void> companion_;         // guarded by mutex_
  bool wanted_told_ = false;                // guarded by mutex_
  std::optional<std::stop_source> lost_;    // guarded by mutex_; made when asked for
  std::optional<std::stop_source> wanted_;  // guarded by mutex_; made when asked for
};

}  // namespace holdfast::core
