// A client of a quorum's world: a machine with a clock and a link to every member, the shipped engine
// on the shipped quorum store, and one thread that acquires, holds and releases.
#pragma once

#include "core/acquisition.hpp"
#include "core/engine.hpp"
#include "core/hold.hpp"
#include "sim/quorum/quorum_plan.hpp"
#include "stores/quorum/quorum_store.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace holdfast::sim {

class quorum_world;

class quorum_process final : public node {
 public:
  quorum_process(quorum_world& in, std::int32_t index, random_source random);
  ~quorum_process();
  quorum_process(const quorum_process&) = delete;
  quorum_process& operator=(const quorum_process&) = delete;

  void start();
  [[nodiscard]] bool finished() const noexcept { return finished_ || dead_; }
  [[nodiscard]] bool dead() const noexcept { return dead_; }
  void die() noexcept { dead_ = true; }
  [[nodiscard]] std::int32_t index() const noexcept { return index_; }
  [[nodiscard]] sim::link& link(std::size_t member) noexcept { return *links_[member]; }
  [[nodiscard]] core::engine& engine() noexcept { return *engine_; }

  // Records whether the hold is valid, if that changed. Ends before beginnings.
  void look_for_end();
  void look_for_beginning();
  void tear_down();
  // A member's false statement.
  void hear_lie(std::size_t member) { stores_[member]->cry_gone(); }

  int pauses = 0;

 private:
  void next_round();
  void acquired(result<std::shared_ptr<core::hold>> answer);
  void give_back();
  void after(duration pause, void (quorum_process::*step)());
  [[nodiscard]] record about(what kind) const;

  quorum_world& world_;
  const std::int32_t index_;
  random_source random_;
  std::shared_ptr<sim_runtime> runtime_;
  std::vector<std::unique_ptr<sim::link>> links_;
  std::vector<std::shared_ptr<sim_store>> stores_;
  std::shared_ptr<holdfast::quorum::quorum_store> store_;
  std::shared_ptr<core::engine> engine_;

  std::uint32_t rounds_left_;
  bool finished_ = false;
  bool dead_ = false;
  std::int32_t acquisition_ = nobody;
  std::int32_t hold_number_ = nobody;
  spi::mode mode_ = spi::mode::exclusive;
  std::shared_ptr<core::hold> hold_;
  bool seen_valid_ = false;
  bool looked_at_ = false;
};

}  // namespace holdfast::sim
