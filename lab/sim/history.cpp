#include "sim/history.hpp"

#include <algorithm>

namespace holdfast::sim {

void history::add(record line) {
  line.at = loop_.now();
  loop_.mix((static_cast<std::uint64_t>(line.kind) << 48U) ^
            (static_cast<std::uint64_t>(static_cast<std::uint32_t>(line.claim)) << 16U) ^
            static_cast<std::uint64_t>(line.number) ^ (line.fence << 24U));
  switch (line.kind) {
    case what::validity_ended:
    case what::release_invoked:
      ++ended_;
      break;
    case what::acquire_invoked:
    case what::change_invoked:
      order_ += node::mixed(static_cast<std::uint64_t>(line.process), ended_);
      break;
    default:
      break;
  }
  if (timeline_) timeline_(describe(line));
  for (const auto& each : checkers_) each->see(line);
}

void history::finish() {
  for (const auto& each : checkers_) each->finish(loop_.now());
}

void history::remark(const std::string& text) const {
  if (timeline_) timeline_(text);
}

std::vector<violation> history::violations() const {
  std::vector<violation> all;
  for (const auto& each : checkers_) {
    if (each->found()) all.push_back(*each->found());
  }
  std::stable_sort(all.begin(), all.end(), [](const violation& left, const violation& right) {
    return left.at < right.at;
  });
  return all;
}

bool history::broken() const noexcept {
  return std::any_of(checkers_.begin(), checkers_.end(),
                     [](const auto& each) { return each->found().has_value(); });
}

checker* history::find(std::string_view name) const noexcept {
  const auto found = std::find_if(checkers_.begin(), checkers_.end(),
                                  [&](const auto& each) { return each->name() == name; });
  return found == checkers_.end() ? nullptr : found->get();
}

}  // namespace holdfast::sim
