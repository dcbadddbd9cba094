// Outcomes are honest: a hold is backed by a grant of the server with that fence; "busy" and "timed
// out" by its answer that somebody else is there; an early loss by its answer that the claim is
// gone; a release that was answered has happened, or will happen when the turn of its client ends.
// No answer means unknown, and is reported as nothing else.
#pragma once

#include "sim/checker.hpp"

#include <map>
#include <optional>
#include <set>

namespace holdfast::sim {

class honesty final : public checker {
 public:
  using checker::checker;
  [[nodiscard]] std::string_view name() const noexcept override { return "outcome honesty"; }

  void see(const record& line) override;
  void finish(moment now) override;

 private:
  struct block {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };
  struct claim {
    std::vector<block> fences;  // that the server gave it
    bool blocked = false;       // the server said that it must wait
    bool ended = false;         // it lapsed or was taken away
    bool holds = false;
    moment until{};
    std::optional<moment> taken_at;  // by its first hold
    bool kept = false;               // released, and the server still has it
  };
  struct acquisition {
    std::int32_t process = nobody;
    std::int32_t resource = nobody;
    bool blocked = false;
    bool contended = false;  // others of its client were there: it may have waited for them
  };

  void server_said(const record& line);
  void granted(const record& line);
  void failed(const record& line);
  void lost(const record& line);
  void released(const record& line);

  std::map<std::int32_t, claim> claims_;
  std::map<std::int32_t, acquisition> acquisitions_;
  std::map<std::int32_t, std::int32_t> holds_;  // hold to claim
  std::map<std::int32_t, std::pair<std::int32_t, std::int32_t>>
      held_;  // hold to (process, resource)
  std::set<std::int32_t> closed_;
  bool void_ = false;  // the server lost its state or its clock was set
};

}  // namespace holdfast::sim
