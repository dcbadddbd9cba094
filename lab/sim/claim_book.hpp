// Small numbers for claims, and their owners, as the history and the timeline name them.
#pragma once

#include "sim/record.hpp"

#include <holdfast/spi/claim.hpp>

#include <charconv>
#include <cstdint>
#include <map>
#include <string>

namespace holdfast::sim {

// "r3" is resource 3; the text of an acquisition's payload is its number.
inline std::int32_t number_in(std::string_view text) noexcept {
  std::int32_t number = nobody;
  const auto end = text.data() + text.size();
  if (std::from_chars(text.data(), end, number).ptr != end) return nobody;
  return number;
}

class claim_book {
 public:
  struct entry {
    std::int32_t number = nobody;
    std::int32_t acquisition = nobody;  // nobody: the claim names none
    std::int32_t resource = nobody;
    std::int32_t process = nobody;
    // The server lost its state or its clock was set while it knew this claim: no exclusion.
    bool unprotected = false;
  };

  entry& of(const spi::claim& claim, std::int32_t process) {
    const auto [found, made] = entries_.try_emplace(claim.id);
    if (made) {
      found->second.number = static_cast<std::int32_t>(entries_.size()) - 1;
      found->second.acquisition = number_in(claim.payload);
      found->second.resource = number_in(std::string_view(claim.resource.name).substr(1));
      found->second.process = process;
    }
    return found->second;
  }
  [[nodiscard]] entry* find(const spi::claim_id& id) noexcept {
    const auto found = entries_.find(id);
    return found == entries_.end() ? nullptr : &found->second;
  }
  void lose_protection() noexcept {
    for (auto& [id, each] : entries_) each.unprotected = true;
  }

 private:
  std::map<spi::claim_id, entry> entries_;
};

// A record that is about this claim.
inline record about(const claim_book::entry& claim, what kind) noexcept {
  record line;
  line.kind = kind;
  line.process = claim.process;
  line.resource = claim.resource;
  line.acquisition = claim.acquisition;
  line.claim = claim.number;
  return line;
}

}  // namespace holdfast::sim
