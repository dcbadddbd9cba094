// One run of an explored world, seen from outside: lists what can happen next, and lets one of
// those events happen. The clients run the shipped engine, the server the shipped ledger, on the
// simulator's network and clocks; the simulator's checkers watch.
//
// Time is paused as long as a message can arrive or a timer is due: a run is a sequence of such
// events, and only when none is left does the clock advance to the next timer. A message that takes
// longer than that is a stall. A machine that always has something to do at the current moment does
// not stop the clock forever.
//
// Not thread-safe; worlds share nothing.
#pragma once

#include "explore/caller.hpp"
#include "explore/scenario.hpp"
#include "sim/checker.hpp"
#include "sim/history.hpp"
#include "sim/server.hpp"
#include "sim/step_listener.hpp"

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::explore {

struct choice {
  enum class kind : std::uint8_t {
    run,  // an event: a message arrives, a timer is due
    advance,
    ask,
    release,
    change,
    cancel,
    lose,
    stall,
    unstall,
    pause,
    freeze,
    resume,
    crash,
    cut_off,
    heal,
    wipe,
  };
  kind what = kind::run;
  std::int32_t client = sim::nobody;  // of an event: the client it belongs to; nobody: the server
  sim::event_loop::event_id event = 0;
  std::uint32_t channel = 0;
  sim::moment when{};
};

std::string to_string(const choice& one);

class small_world final : public sim::step_listener {
 public:
  explicit small_world(const scenario& in, sim::history::sink timeline = nullptr);
  ~small_world() override;
  small_world(const small_world&) = delete;
  small_world& operator=(const small_world&) = delete;

  // What can happen next, always in the same order. None: the run is over.
  void choices(std::vector<choice>& into);
  void take(const choice& one);

  // Two runs with the same number are in the same state, including the state of the checkers.
  [[nodiscard]] std::uint64_t fingerprint();

  // Everything that is still in progress finishes, without trouble; then the checkers do their
  // final checks. Called once, at the end of a run.
  void finish();
  [[nodiscard]] std::vector<sim::violation> violations() const { return history_.violations(); }
  [[nodiscard]] bool broken() const { return history_.broken(); }

  void stepped(std::int32_t, std::int32_t) override {}

 private:
  using channel = std::pair<const sim::node*, std::uint32_t>;

  void look();
  void list_events();
  void add_ends(std::vector<choice>& into) const;
  void add_faults(std::vector<choice>& into) const;
  void add_callers(std::vector<choice>& into) const;
  [[nodiscard]] bool over() const;
  [[nodiscard]] bool may_ask(std::size_t index) const;
  [[nodiscard]] bool fresh(const sim::event_loop::scheduled& event) const noexcept;
  [[nodiscard]] bool in_turn(std::int32_t client) const noexcept;
  [[nodiscard]] choice about(choice::kind what, const sim::event_loop::scheduled& event) const;
  [[nodiscard]] bool must_act(sim::moment at) const;
  [[nodiscard]] bool waits(std::size_t index) const;
  [[nodiscard]] bool may_strike(std::uint32_t left) const noexcept;
  void spend(std::uint32_t& left);
  void act(std::int32_t client, void (caller::*step)());
  void trouble(bool began, sim::trouble kind, std::int32_t client);
  void pause(std::int32_t client);
  void freeze();
  void crash(std::int32_t client);
  void cut_off(std::int32_t client);
  void heal(std::int32_t client);
  void wipe();
  void tear_down();
  [[nodiscard]] sim::process& client(std::int32_t index) {
    return *processes_[static_cast<std::size_t>(index)];
  }

  const scenario& scenario_;
  const sim::plan plan_;
  const sim::facts facts_;
  sim::event_loop loop_;
  sim::history history_;
  sim::claim_book book_;
  sim::server server_;
  sim::node outside_{sim::node_clock{}};
  board shared_;
  std::vector<std::unique_ptr<sim::process>> processes_;
  std::vector<std::unique_ptr<caller>> callers_;
  budget left_;
  std::set<channel> stalled_;
  // Which machine ran last. A choice that commutes with everything that others do is offered only
  // right after an event that it does not commute with: later it would lead to the same states.
  // Every way to a state has passed there, so the fingerprint need not know this.
  bool moment_begins_ = true;         // nothing has run since the clock advanced
  std::uint32_t in_this_moment_ = 0;  // how many events have; part of the history of each machine
  std::int32_t last_client_ = sim::nobody;
  std::uint32_t last_channel_ = 0;
  std::uint64_t last_sequence_ = 0;  // events from here on are new
  sim::moment stalled_since_{};
  sim::moment paused_since_{};
  std::int32_t cut_off_ = sim::nobody;
  sim::moment cut_off_since_{};
  std::vector<sim::event_loop::scheduled> events_;   // all
  std::vector<sim::event_loop::scheduled> enabled_;  // can run now
  sim::moment next_{};                               // when another one can, if none can now
};

}  // namespace holdfast::explore
