// A world of several members and a few clients that must agree: first with everything that goes
// wrong, then healed, so that everybody must finish; then nothing may be left at any member.
//
// Not thread-safe; worlds share nothing and may run beside each other.
#pragma once

#include "sim/event_loop.hpp"
#include "sim/history.hpp"
#include "sim/quorum/quorum_plan.hpp"
#include "sim/quorum/quorum_process.hpp"
#include "sim/random.hpp"
#include "sim/server.hpp"
#include "sim/world.hpp"

#include <deque>
#include <memory>
#include <vector>

namespace holdfast::sim {

class quorum_world;

// One member: a server with a history of its own, which no checker looks at, since what one member
// says alone means nothing.
struct quorum_member final : step_listener {
  quorum_member(quorum_world& in, std::int32_t number, const node_clock& clock);
  void stepped(std::int32_t process, std::int32_t acquisition) override;

  quorum_world& world;
  const std::int32_t index;
  history log;
  claim_book book;
  sim::server server;
  int pauses = 0;
  int stops = 0;
  bool wiped = false;  // while it was down
};

class quorum_world {
 public:
  explicit quorum_world(quorum_plan plan, history::sink timeline = nullptr);
  ~quorum_world();
  quorum_world(const quorum_world&) = delete;
  quorum_world& operator=(const quorum_world&) = delete;

  world_outcome run();

  // For the clients and members.
  [[nodiscard]] const quorum_plan& plan() const noexcept { return plan_; }
  [[nodiscard]] event_loop& loop() noexcept { return loop_; }
  [[nodiscard]] quorum_member& member(std::size_t index) noexcept { return *members_[index]; }
  void add(const record& line) { history_.add(line); }
  void granted() noexcept { ++grants_; }
  std::int32_t next_number() noexcept { return numbers_++; }
  void strike(std::int32_t process, std::int32_t member);
  [[nodiscard]] history::sink timeline_of(std::int32_t member) const;

 private:
  void schedule(const quorum_trouble& each);
  void begin(const quorum_trouble& each);
  void end(const quorum_trouble& each);
  void begin_at_member(const quorum_trouble& each, quorum_member& at);
  void end_at_member(const quorum_trouble& each, quorum_member& at);
  void begin_at_client(const quorum_trouble& each, quorum_process& at);
  void bend(quorum_process& at, std::size_t member);
  void kill(quorum_process& at);
  void look();
  [[nodiscard]] bool over() const;
  bool run_until(moment limit, bool until_over);
  void look_for_leftovers();
  void tear_down();

  const quorum_plan plan_;
  const facts facts_;
  event_loop loop_;
  history history_;
  node outside_{node_clock{}};
  std::vector<std::unique_ptr<quorum_member>> members_;
  std::vector<std::unique_ptr<quorum_process>> processes_;
  std::vector<const quorum_trouble*> active_;
  std::deque<quorum_trouble> struck_;
  random_source chance_;
  std::int32_t numbers_ = 0;
  std::uint32_t grants_ = 0;
  std::uint32_t dead_ = 0;
};

// One world from its seed.
world_outcome run_quorum_seed(std::uint64_t seed, history::sink timeline = nullptr);

}  // namespace holdfast::sim
