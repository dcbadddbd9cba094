// The two guarantees of fences: they grow from grant to grant, and one hold keeps its own.
#pragma once

#include "sim/checker.hpp"

#include <algorithm>
#include <map>

namespace holdfast::sim {

// A grant that was requested after another had ended has the greater fence; no two grants share one.
class fence_order final : public checker {
 public:
  using checker::checker;
  [[nodiscard]] std::string_view name() const noexcept override { return "fence order"; }

  void see(const record& line) override {
    switch (line.kind) {
      case what::acquire_invoked:
        requested_[line.acquisition] = ended_[line.resource];
        return;
      case what::acquire_granted:
        holds_[line.hold] = {line.resource, line.process, line.fence};
        check(line, requested_[line.acquisition]);
        return;
      case what::adopt_granted:
        holds_[line.hold] = {line.resource, line.process, line.fence};
        adopted(line);
        return;
      case what::change_invoked:
        changing_[line.hold] = ended_[line.resource];
        return;
      case what::change_answered:
        if (line.number != 0) return;
        check(line, std::max(changing_[line.hold], holds_[line.hold].fence));
        holds_[line.hold].fence = line.fence;
        return;
      case what::release_invoked:
      case what::validity_ended:
        end(line.hold);
        return;
      default:
        return;
    }
  }

 private:
  struct grant {
    std::int32_t resource = nobody;
    std::int32_t process = nobody;
    std::uint64_t fence = 0;
  };

  void check(const record& line, std::uint64_t ended_before) {
    auto& given = given_[line.resource];
    if (line.fence <= ended_before) {
      fail(line.at,
           "resource " + std::to_string(line.resource) + ": hold " + std::to_string(line.hold) +
               " has fence " + std::to_string(line.fence) + " although one with " +
               std::to_string(ended_before) + " had ended before it was asked for",
           {given[ended_before], line.hold});
    }
    const auto [first, added] = given.try_emplace(line.fence, line.hold);
    if (!added) {
      fail(line.at,
           "resource " + std::to_string(line.resource) + ": fence " + std::to_string(line.fence) +
               " was given twice",
           {first->second, line.hold});
    }
  }
  // The fence of the grant that was detached, not a new one.
  void adopted(const record& line) {
    if (given_[line.resource].contains(line.fence)) return;
    fail(line.at, "resource " + std::to_string(line.resource) + ": hold " +
                      std::to_string(line.hold) + " was adopted with fence " +
                      std::to_string(line.fence) + ", which nobody had before");
  }
  void end(std::int32_t hold) {
    const auto found = holds_.find(hold);
    if (found == holds_.end()) return;
    std::uint64_t& greatest = ended_[found->second.resource];
    greatest = std::max(greatest, found->second.fence);
  }

  std::map<std::int32_t, std::uint64_t> ended_;  // by resource: the greatest fence that ended
  std::map<std::int32_t, std::uint64_t>
      requested_;  // by acquisition: the same when it was asked for
  std::map<std::int32_t, std::uint64_t> changing_;  // by hold
  std::map<std::int32_t, grant> holds_;
  std::map<std::int32_t, std::map<std::uint64_t, std::int32_t>> given_;  // by fence: the hold
};

// The fence of a hold is the one that the engine gave, and re-entry does not change it.
class fence_constancy final : public checker {
 public:
  using checker::checker;
  [[nodiscard]] std::string_view name() const noexcept override { return "fence constancy"; }

  void see(const record& line) override {
    switch (line.kind) {
      case what::acquire_granted:
      case what::adopt_granted:
        fences_[line.hold] = line.fence;
        return;
      case what::change_answered:
        if (line.number == 0) fences_[line.hold] = line.fence;
        return;
      case what::reentered:
      case what::release_invoked:
      case what::detach_invoked:
        if (line.fence != fences_[line.hold]) {
          fail(line.at, "hold " + std::to_string(line.hold) + " was given fence " +
                            std::to_string(fences_[line.hold]) + " and shows " +
                            std::to_string(line.fence));
        }
        return;
      default:
        return;
    }
  }

 private:
  std::map<std::int32_t, std::uint64_t> fences_;
};

}  // namespace holdfast::sim
