// A simulated client process: a machine with a clock, a link to the server, the shipped engine on
// the simulated runtime and store, and its threads.
#pragma once

#include "core/engine.hpp"
#include "sim/actor.hpp"
#include "sim/node.hpp"
#include "sim/plan.hpp"
#include "sim/sim_runtime.hpp"
#include "sim/sim_store.hpp"

#include <memory>
#include <string>
#include <vector>

namespace holdfast::sim {

class process final : public node {
 public:
  process(const plan& world, event_loop& loop, history& log, claim_book& book, sim::server& server,
          std::int32_t index, random_source random, step_listener& steps)
      : node(world.client_clocks[static_cast<std::size_t>(index)]),
        index_(index),
        link_(loop, log, *this, server, index, random.branch(1), world.normal),
        runtime_(std::make_shared<sim_runtime>(loop, *this, random.branch(2), world.late)),
        store_(
            std::make_shared<sim_store>(*runtime_, link_, log, book, index, world.store, steps)) {
    core::engine_settings settings;
    settings.payload = "client";
    settings.limit = world.limit;
    settings.hand_over_locally = world.hand_over_locally;
    engine_ = std::make_shared<core::engine>(runtime_, store_, settings);
  }

  [[nodiscard]] std::int32_t index() const noexcept { return index_; }
  [[nodiscard]] sim::link& link() noexcept { return link_; }
  [[nodiscard]] sim_runtime& runtime() noexcept { return *runtime_; }
  [[nodiscard]] sim_store& store() noexcept { return *store_; }
  [[nodiscard]] core::engine& engine() noexcept { return *engine_; }

  std::vector<std::shared_ptr<actor>> actors;
  bool dead = false;
  bool closed = false;
  bool closing = false;  // close() was called and has not been answered
  int pauses = 0;        // how many troubles pause it

 private:
  const std::int32_t index_;
  sim::link link_;
  std::shared_ptr<sim_runtime> runtime_;
  std::shared_ptr<sim_store> store_;
  std::shared_ptr<core::engine> engine_;
};

}  // namespace holdfast::sim
