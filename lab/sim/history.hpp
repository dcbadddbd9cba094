// The history of a world: dates what happens, hands it to the checkers, adds it to the trace's hash,
// and prints it if a timeline was asked for.
#pragma once

#include "sim/checker.hpp"
#include "sim/event_loop.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace holdfast::sim {

class history {
 public:
  using sink = std::function<void(const std::string&)>;

  history(event_loop& loop, sink timeline) : loop_(loop), timeline_(std::move(timeline)) {}

  void watch(std::unique_ptr<checker> added) { checkers_.push_back(std::move(added)); }

  void add(record line);
  void finish();
  // A line for the timeline only.
  void remark(const std::string& text) const;
  [[nodiscard]] bool traced() const noexcept { return timeline_ != nullptr; }

  // Each broken guarantee once, in the order of the checkers.
  [[nodiscard]] std::vector<violation> violations() const;
  [[nodiscard]] bool broken() const noexcept;
  [[nodiscard]] checker* find(std::string_view name) const noexcept;

  // What a checker remembers of two machines that know nothing of each other: which holds had ended
  // when something was asked for (fence order). Everything else that checkers keep follows from what
  // each machine went through, and when.
  [[nodiscard]] std::uint64_t order() const noexcept { return order_; }

 private:
  event_loop& loop_;
  std::uint64_t order_ = 0;
  std::uint64_t ended_ = 0;
  sink timeline_;
  std::vector<std::unique_ptr<checker>> checkers_;
};

}  // namespace holdfast::sim
