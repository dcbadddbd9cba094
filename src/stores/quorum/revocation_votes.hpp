// Which members have pushed that they took a claim away. One of them alone proves nothing: its word may
// be older than a grant that followed it, and a majority may still hold.
#pragma once

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace holdfast::quorum {

// Not thread-safe.
class revocation_votes {
 public:
  explicit revocation_votes(std::size_t members) : heard_(members) {}

  // False: it said so before, and nothing since speaks against it.
  bool raise(std::size_t member, time_point now) {
    if (heard_[member]) return false;
    heard_[member] = now;
    return true;
  }
  // A request that was sent then found the claim and prolonged it.
  void refute(std::size_t member, time_point sent_at) {
    if (heard_[member] && sent_at > *heard_[member]) heard_[member].reset();
  }

  [[nodiscard]] bool any() const noexcept { return count() > 0; }
  // Those who are left are no majority, whatever they say. Two at least, where there are two.
  [[nodiscard]] bool decide() const noexcept {
    const std::size_t members = heard_.size();
    const std::size_t minority = members - (members / 2 + 1);
    return count() > minority && count() >= std::min<std::size_t>(2, members);
  }

 private:
  [[nodiscard]] std::size_t count() const noexcept {
    return static_cast<std::size_t>(std::count_if(
        heard_.begin(), heard_.end(), [](const auto& each) { return each.has_value(); }));
  }

  std::vector<std::optional<time_point>> heard_;
};

}  // namespace holdfast::quorum
