// The caller of an explored client: acquires, holds and releases when the explorer says so, and
// records in the history what it was answered.
#pragma once

#include "core/acquisition.hpp"
#include "core/hold.hpp"
#include "core/lease_token.hpp"
#include "core/thread_holds.hpp"
#include "explore/scenario.hpp"
#include "sim/process.hpp"

#include <memory>
#include <optional>
#include <stop_token>

namespace holdfast::explore {

// What all callers of a world share.
struct board {
  std::int32_t acquisitions = 0;  // how many
  std::int32_t holds = 0;
  std::optional<core::lease_token> detached;  // for those that adopt
};

class caller {
 public:
  enum class state : std::uint8_t { idle, asking, holding, releasing, finished };

  caller(const scenario& in, const role& part, sim::process& of, sim::event_loop& loop,
         sim::history& log, sim::claim_book& book, board& shared);
  ~caller();
  caller(const caller&) = delete;
  caller& operator=(const caller&) = delete;

  // What may be done next; each once in its state.
  [[nodiscard]] bool may_ask() const noexcept {
    return state_ == state::idle && (!role_.adopts || shared_.detached);
  }
  [[nodiscard]] bool asked() const noexcept { return acquisition_ != sim::nobody; }
  [[nodiscard]] bool may_cancel() const noexcept { return state_ == state::asking && pending_; }
  [[nodiscard]] bool may_release() const noexcept {
    return state_ == state::holding && !changing_ && !lost_told_ && !role_.keeps;
  }
  [[nodiscard]] bool may_change() const noexcept { return may_release() && changes_left_; }
  [[nodiscard]] bool over() const noexcept { return dead_ || state_ == state::finished; }
  [[nodiscard]] sim::moment holds_since() const noexcept { return holds_since_; }
  [[nodiscard]] sim::moment idle_since() const noexcept { return idle_since_; }
  [[nodiscard]] state now() const noexcept { return state_; }

  void ask();
  void cancel();
  void release();  // or passes it on
  void change();

  // Records whether its hold became valid or invalid. Call it for the ends of all callers first.
  void look_for_end();
  void look_for_beginning();

  void die() noexcept { dead_ = true; }

 private:
  class lost_callback;

  void answered(result<std::shared_ptr<core::hold>> answer);
  void keep(std::shared_ptr<core::hold> hold);
  void told_lost();
  void detach();
  void end_round();
  // A latch has no lease (caller_latch.cpp).
  void use_latch();
  void change_latch(const spi::latch_change& change);
  void latch_changed(const spi::latch_change& change, const result<spi::latch_state>& answer);
  [[nodiscard]] core::request request() const;
  [[nodiscard]] sim::record about(sim::what kind) const;

  const scenario& scenario_;
  const role& role_;
  sim::process& process_;
  sim::event_loop& loop_;
  sim::history& log_;
  sim::claim_book& book_;
  board& shared_;
  const std::shared_ptr<caller*> self_ = std::make_shared<caller*>(this);

  state state_ = state::idle;
  bool dead_ = false;
  bool changing_ = false;
  bool changes_left_ = false;
  bool lost_told_ = false;
  std::uint32_t rounds_left_;
  std::int32_t acquisition_ = sim::nobody;
  std::int32_t number_ = sim::nobody;  // of the hold
  std::int32_t claim_ = sim::nobody;
  spi::mode mode_;
  sim::moment idle_since_{};
  sim::moment holds_since_{};
  std::shared_ptr<core::acquisition> pending_;
  std::shared_ptr<core::hold> hold_;
  core::reentry reentry_;
  std::unique_ptr<lost_callback> lost_;
  bool looked_at_ = false;
  bool seen_valid_ = false;
  bool ended_early_ = false;
  time_point valid_until_{};
};

}  // namespace holdfast::explore
