// No leak: a withdrawn claim does not come back, is not renewed, and is not given up on before its
// lease can have run out; whatever a client asked for, it also withdraws; and a world at rest has
// no claim, no timer and no traffic.
#pragma once

#include "sim/checker.hpp"

#include <map>
#include <set>

namespace holdfast::sim {

class leak final : public checker {
 public:
  using checker::checker;
  [[nodiscard]] std::string_view name() const noexcept override { return "no leak"; }

  void see(const record& line) override;
  void finish(moment now) override;

 private:
  struct claim {
    std::int32_t process = nobody;
    bool attempted = false;
    bool unanswered = false;  // some attempt was
    // The engine has said that it has no such claim, or must end it by itself.
    bool absent = false;
    bool stays_blocked = false;  // with a lock delay: a lost hold is left to run out
    bool detached = false;       // nothing is renewed from then on
    bool given_away = false;     // answered: another claim holds instead
    bool left = false;           // answered
    bool forgotten = false;      // the server lost its state, or its clock was set
    moment leaving{};            // when a withdrawal was last sent
    moment sent{};               // when an attempt or a renewal was last sent
    duration ttl{};
  };

  void answered(claim& about, const record& line);
  void deny_afterlife(const record& line);

  std::map<std::int32_t, claim> claims_;
  std::set<std::int32_t> gone_;             // processes that were killed or closed
  std::map<std::int32_t, moment> resumed_;  // by process
};

}  // namespace holdfast::sim
