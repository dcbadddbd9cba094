#include "torture/vocabulary.hpp"

namespace holdfast::torture {

namespace {

constexpr std::array<std::string_view, all_workloads.size()> workload_names{
    "mutex", "fair", "rw", "semaphore", "latch", "multi", "election"};

constexpr std::array<std::string_view, all_faults.size()> fault_names{
    "pause-client", "kill-client",  "pause-server", "kill-server",  "partition", "delay",
    "cut",          "clock-jump",   "failover",     "script-flush", "disk-full", "stop-at-call",
    "kill-at-call", "pause-others", "kill-others",  "truncate",     "garble"};

template <class Word, std::size_t Count>
std::optional<Word> find(const std::array<std::string_view, Count>& names, std::string_view text) {
  for (std::size_t i = 0; i < Count; ++i) {
    if (names[i] == text) return static_cast<Word>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(workload which) noexcept {
  return workload_names[static_cast<std::size_t>(which)];
}
std::string_view to_string(fault which) noexcept {
  return fault_names[static_cast<std::size_t>(which)];
}
std::optional<workload> workload_named(std::string_view text) noexcept {
  return find<workload>(workload_names, text);
}
std::optional<fault> fault_named(std::string_view text) noexcept {
  return find<fault>(fault_names, text);
}

}  // namespace holdfast::torture
