// The local queue of one name in one client: threads of a process queue here, not at the engine.
// One unfair exclusive claim per process goes to the engine. When it is released while other
// threads wait here, it is handed over inside the process, with the next fence of the block that
// the grant reserved, up to 32 times or for 10 ms; once the engine has reported waiters of other
// processes, for one turn (limits::turn). Within its turn a released claim is also kept for a
// moment (limits::keep), for a thread that asks again sooner than another process could take over;
// if none does, this is tried only now and then. Where the engine does not report waiters, the name
// rests between two of our claims once it has been in use here for 10 ms: other processes, which
// poll or are woken, would never find it free. Fair, shared and permit claims bypass the local
// queue: each queues at the engine.
//
// Thread-safe; calls acquisitions and runners under no lock.
#pragma once

#include "core/agenda.hpp"
#include "core/limits.hpp"
#include "core/thread_holds.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/fence.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/claim.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace holdfast::core {

class acquisition;
class claim_runner;
class engine;

// Waiters of other processes that the engine does not report.
enum class unseen_waiters : std::uint8_t { none, woken_by_release, polling };

class local_queue final : public agenda_item, public std::enable_shared_from_this<local_queue> {
 public:
  local_queue(std::weak_ptr<engine> engine, spi::resource_id resource, const limits& limit,
              unseen_waiters others);
  local_queue(const local_queue&) = delete;
  local_queue& operator=(const local_queue&) = delete;
  ~local_queue() override;

  enum class entry : std::uint8_t { entered, queued, refused, answered };
  // refused: the lock is in use here and `may_wait` is false. A rest does not refuse a try.
  // answered: it was given the claim that was kept.
  entry enter(const std::shared_ptr<acquisition>& who, bool may_wait);
  // False: no longer queued.
  bool withdraw(acquisition& who) noexcept;

  // The acquisition inside was granted by the engine: we may hand out the fences up to `last`.
  void granted(time_point now, fence_token last, std::uint64_t thread) noexcept;
  // The acquisition inside is done. True: its claim was handed over or is kept, and must not be
  // released.
  bool pass_on(const std::shared_ptr<claim_runner>& runner, fence_token fence, time_point now);
  // The acquisition inside has left: the next may pursue a claim of its own.
  void leave();
  // The same in two steps, for a caller that is answered in between: it may ask again at once, and
  // must not find itself still inside.
  void vacate() noexcept;
  void admit_next();

  // The thread that holds through this local queue, 0 if unknown.
  [[nodiscard]] std::uint64_t holding_thread() const;

  void give_up_all(const error& why);

  // A rest has ended, or the time for which a claim is kept.
  void due(time_point now) override;

  // Who holds this name through the std face, and the counted entries of a recursive mutex.
  [[nodiscard]] owners& threads() noexcept { return owners_; }
  [[nodiscard]] core::reentry& reentry() noexcept { return reentry_; }
  // Either way.
  [[nodiscard]] bool held_by(std::uint64_t thread) const {
    return owners_.has(thread) || reentry_.inside(thread);
  }

 private:
  std::shared_ptr<acquisition> pop() noexcept;
  void admit(std::unique_lock<std::mutex>& lock);
  // True: nobody is admitted before rest_until_.
  bool begin_rest(time_point now, std::uint64_t random) noexcept;
  [[nodiscard]] bool may_pass_on(const claim_runner& runner, fence_token fence,
                                 time_point now) const;
  [[nodiscard]] bool may_take_over(const acquisition& next, const claim_runner& runner) const;
  // These release the lock that they are given, except for keep() if it returns false.
  bool keep(std::unique_lock<std::mutex>& lock, const std::shared_ptr<claim_runner>& runner,
            fence_token fence, time_point now);
  entry take_kept(std::unique_lock<std::mutex>& lock, const std::shared_ptr<acquisition>& who);
  void end_keeping(std::unique_lock<std::mutex>& lock, time_point now);

  // Released by its thread, but still ours at the engine. The queue counts as occupied meanwhile.
  struct kept_claim {
    std::shared_ptr<claim_runner> runner;
    fence_token fence;
    time_point until;
  };

  const std::weak_ptr<engine> engine_;
  const spi::resource_id resource_;
  const limits limit_;
  const unseen_waiters others_;
  owners owners_;
  core::reentry reentry_;

  mutable std::mutex mutex_;
  bool occupied_ = false;                                       // guarded by mutex_
  bool admitting_ = false;                                      // guarded by mutex_
  std::uint64_t next_sequence_ = 1;                             // guarded by mutex_
  std::map<std::uint64_t, std::shared_ptr<acquisition>> line_;  // guarded by mutex_
  std::uint32_t passed_on_ = 0;     // guarded by mutex_, since granted_at_
  time_point granted_at_{};         // guarded by mutex_
  fence_token last_fence_;          // guarded by mutex_
  std::uint64_t thread_ = 0;        // guarded by mutex_
  std::optional<kept_claim> kept_;  // guarded by mutex_
  std::uint32_t keep_every_;        // guarded by mutex_: one in so many releases within a turn
  std::uint32_t not_kept_ = 0;      // guarded by mutex_: since the last one kept
  // Since when the name has been in use here, with gaps too short for others; max: it is not.
  time_point used_since_ = time_point::max();  // guarded by mutex_
  time_point left_at_{};                       // guarded by mutex_
  time_point rest_until_{};                    // guarded by mutex_
  bool resting_ = false;                       // guarded by mutex_
};

}  // namespace holdfast::core
