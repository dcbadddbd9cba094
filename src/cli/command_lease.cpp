#include "cli/command_lease.hpp"

#include <algorithm>

namespace holdfast::cli {

std::vector<const lease*> command_lease::leases() const {
  if (const auto* one = std::get_if<lease>(&held_)) return {one};
  std::vector<const lease*> all;
  for (const lease& each : std::get<multi_lease>(held_).leases()) all.push_back(&each);
  return all;
}

time_point command_lease::valid_until() const noexcept {
  return std::visit([](const auto& held) { return held.valid_until(); }, held_);
}

duration command_lease::ttl() const noexcept {
  duration shortest = forever;
  for (const lease* each : leases()) shortest = std::min(shortest, each->ttl());
  return shortest;
}

std::stop_token command_lease::lost() const {
  return std::visit([](const auto& held) { return held.lost(); }, held_);
}

fence_token command_lease::fence() const noexcept { return leases().front()->fence(); }

result<void> command_lease::release() {
  return std::visit([](auto& held) { return held.release(); }, held_);
}

std::vector<std::string> command_lease::variables() const {
  std::string names;
  std::string fences;
  std::string claims;
  const char* between = "";
  for (const lease* each : leases()) {
    names += between + each->name();
    fences += between + std::to_string(each->fence().value());
    claims += between + each->claim();
    between = "\n";
  }
  return {"HOLDFAST_NAME=" + names, "HOLDFAST_FENCE=" + fences, "HOLDFAST_CLAIM=" + claims};
}

}  // namespace holdfast::cli
