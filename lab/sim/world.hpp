// One world: a server, a few clients and their troubles, from the first event to the last. First
// safety, with everything that goes wrong; then everything is healed except what is dead, and
// everybody must finish; then it must come to rest.
//
// Not thread-safe; worlds share nothing and may run beside each other.
#pragma once

#include "sim/claim_book.hpp"
#include "sim/event_loop.hpp"
#include "sim/history.hpp"
#include "sim/plan.hpp"
#include "sim/process.hpp"
#include "sim/random.hpp"
#include "sim/server.hpp"

#include <deque>
#include <map>
#include <memory>
#include <vector>

namespace holdfast::sim {

struct world_outcome {
  std::vector<violation> violations;
  std::uint64_t hash = 0;
  std::uint64_t steps = 0;
  std::uint32_t grants = 0;
  moment length{};
};

class world final : public step_listener {
 public:
  explicit world(sim::plan plan, history::sink timeline = nullptr);
  ~world() override;
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  world_outcome run();

  // For the actors.
  [[nodiscard]] const sim::plan& plan() const noexcept { return plan_; }
  [[nodiscard]] event_loop& loop() noexcept { return loop_; }
  [[nodiscard]] claim_book& book() noexcept { return book_; }
  void record(sim::record line) { history_.add(line); }
  std::int32_t next_acquisition() noexcept { return acquisitions_++; }
  std::int32_t next_hold() noexcept { return holds_++; }
  // The last of these is not a grant.
  void note_adoption() noexcept { ++adoptions_; }
  // One actor adopts it, or several try to, or nobody does in time.
  void pass_on(const actor::token& detached, random_source& random);
  // Every latch is set once, by the first actor that arrives.
  struct latch_book {
    bool claimed = false;
    bool set = false;
  };
  latch_book& latch(std::int32_t resource) { return latches_[resource]; }

  void stepped(std::int32_t process, std::int32_t acquisition) override;

 private:
  void strike(std::int32_t process);
  void begin(const disturbance& each);
  void end(const disturbance& each);
  void begin_at(const disturbance& each, process& target);
  void end_at(const disturbance& each, process& target);
  void bend(process& target);
  [[nodiscard]] duration longest_delay(const disturbance& each) const;
  void kill(process& target, std::uint64_t detail);
  void close(process& target, duration limit);
  void pause_server();
  void resume_server();
  void look();
  [[nodiscard]] bool over() const;
  bool run_until(moment limit, bool until_over);
  void come_to_rest();
  void tear_down();

  const sim::plan plan_;
  const facts facts_;
  event_loop loop_;
  history history_;
  claim_book book_;
  sim::server server_;
  node outside_{node_clock{}};  // where troubles come from
  std::vector<std::unique_ptr<process>> processes_;
  std::vector<const disturbance*> active_;
  std::deque<disturbance> struck_;  // made by steps
  random_source chance_;
  std::map<std::int32_t, latch_book> latches_;
  int server_pauses_ = 0;
  int server_stops_ = 0;
  int tokens_under_way_ = 0;
  std::int32_t acquisitions_ = 0;
  std::int32_t holds_ = 0;
  std::int32_t adoptions_ = 0;
};

}  // namespace holdfast::sim
