// One thread of a simulated client: acquires, holds and releases what its rounds say, and records
// in the history what it was answered.
#pragma once

#include "core/acquisition.hpp"
#include "core/engine.hpp"
#include "core/hold.hpp"
#include "core/thread_holds.hpp"
#include "sim/random.hpp"
#include "sim/record.hpp"

#include <memory>
#include <optional>
#include <stop_token>
#include <string>

namespace holdfast::sim {

class process;
class world;

class actor : public std::enable_shared_from_this<actor> {
 public:
  actor(world& in, process& of, std::int32_t number, random_source random);
  ~actor();
  actor(const actor&) = delete;
  actor& operator=(const actor&) = delete;

  void start();
  // Instead of rounds: adopts a lease that another actor has detached, and releases it.
  struct token {
    std::string text;
    std::int32_t resource = nobody;
  };
  void start_adopting(const token& detached);
  // No round is left, or none is possible any more.
  [[nodiscard]] bool finished() const noexcept { return finished_; }

  // A message of this acquisition moved.
  void stepped(std::int32_t acquisition);
  // Checks whether its hold is valid, and records a change. Ends first, then beginnings.
  void look_for_end();
  void look_for_beginning();

  // The machine is dead: nothing of this actor runs any more.
  void die() noexcept;

 private:
  struct round {
    std::int32_t acquisition = nobody;
    std::int32_t resource = 0;
    core::request request;
    duration hold{};
    std::uint32_t cancel_after_steps = 0;  // 0: not by steps
    bool asks_for_answer = true;           // of the release
    std::optional<spi::mode> changes_to;
    std::uint32_t reentries = 0;
    bool moves = false;    // it is detached instead of released
    bool adopted = false;  // it is adopted instead of acquired
  };
  struct holding {
    std::int32_t number = nobody;
    std::int32_t claim = nobody;
    std::shared_ptr<core::hold> hold;
    bool looked_at = false;
    bool seen_valid = false;
    bool ended_early = false;  // before its validity had run out
    time_point valid_until{};  // as last seen
  };
  class lost_callback;

  void next_round();
  void draw_round();
  void draw_request();
  void acquire();
  void acquired(result<std::shared_ptr<core::hold>> answer);
  void keep(std::shared_ptr<core::hold> hold);
  void reenter();
  void work();
  void change();
  void changed(spi::mode to, const result<void>& answer);
  void give_back();
  void detach();
  void told_lost(std::int32_t hold);
  void cancel(std::int32_t acquisition);
  void end_round();
  void after(duration pause, void (actor::*step)());
  [[nodiscard]] record about(what kind) const;

  // A latch has no lease: it is set, counted down, waited for (actor_latch.cpp).
  void use_latch();
  void set_latch(spi::latch_change change);
  void down_latch(spi::latch_change change);
  void watch_latch();
  void read_latch();
  void latch_was_read(const result<spi::latch_state>& answer);
  void end_latch_wait();
  void again(spi::task step);
  [[nodiscard]] spi::op_context latch_context();

  world& world_;
  process& process_;
  const std::int32_t number_;
  random_source random_;
  std::uint32_t rounds_left_;
  bool finished_ = false;
  bool dead_ = false;
  round round_;
  std::uint32_t steps_ = 0;
  std::int32_t acquiring_ = nobody;  // the acquisition that has no answer yet
  bool cancels_soon_ = false;        // requested during the call that sets pending_
  std::shared_ptr<core::acquisition> pending_;
  std::optional<holding> holding_;
  core::reentry reentry_;
  std::unique_ptr<lost_callback> lost_;
  std::unique_ptr<spi::subscription> latch_watch_;
  moment latch_deadline_{};
  bool reading_latch_ = false;
  bool latch_changed_ = false;  // while it was being read
};

}  // namespace holdfast::sim
