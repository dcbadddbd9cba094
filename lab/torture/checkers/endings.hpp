// Every client ends when it is told to, and none by itself; and when all have ended and their ttl
// has passed, nothing of theirs is left at the engine.
#pragma once

#include "sim/checker.hpp"

namespace holdfast::torture {

class endings final : public sim::checker {
 public:
  using checker::checker;
  [[nodiscard]] std::string_view name() const noexcept override { return "every process ends"; }

  void see(const sim::record& line) override {
    if (line.kind != sim::what::ended || line.number == 0) return;
    constexpr std::int64_t by_signal = 1000;
    const std::string who = "client " + std::to_string(line.process);
    if (line.number < 0) return fail(line.at, who + " did not end when told to");
    if (line.number > by_signal) {
      return fail(line.at, who + " died of signal " + std::to_string(line.number - by_signal));
    }
    fail(line.at, who + " ended with status " + std::to_string(line.number));
  }
};

class leaks final : public sim::checker {
 public:
  using checker::checker;
  [[nodiscard]] std::string_view name() const noexcept override { return "nothing left behind"; }

  void see(const sim::record& line) override {
    if (line.kind != sim::what::left_behind || line.number == 0) return;
    fail(line.at, "resource " + std::to_string(line.resource) + ": " + std::to_string(line.number) +
                      " claims left after all clients had gone");
  }
};

}  // namespace holdfast::torture
