#include "torture/figures.hpp"

#include <holdfast/result.hpp>

#include <algorithm>
#include <array>
#include <cstdio>

namespace holdfast::torture {

namespace {

class hand_offs {
 public:
  void see(const sim::record& line) {
    switch (line.kind) {
      case sim::what::acquire_invoked:
        if (line.number == 1) waiting_[line.hold] = line.resource;
        return;
      case sim::what::acquire_failed:
        waiting_.erase(line.hold);
        return;
      case sim::what::release_invoked: {
        const bool awaited = std::any_of(waiting_.begin(), waiting_.end(), [&](const auto& each) {
          return each.second == line.resource;
        });
        if (awaited && line.mode == spi::mode::exclusive) released_[line.resource] = line.at;
        return;
      }
      case sim::what::acquire_granted: {
        waiting_.erase(line.hold);
        const auto found = released_.find(line.resource);
        if (found == released_.end()) return;
        spans_.push_back(line.at - found->second);
        released_.erase(found);
        return;
      }
      default:
        return;
    }
  }

  void tell(figures& into) {
    if (spans_.empty()) return;
    std::sort(spans_.begin(), spans_.end());
    into.hand_off_half = spans_[spans_.size() / 2];
    into.hand_off_most = spans_[spans_.size() * 99 / 100];
  }

 private:
  std::map<std::int32_t, std::int32_t> waiting_;  // by hold: the resource
  std::map<std::int32_t, sim::moment> released_;  // by resource
  std::vector<duration> spans_;
};

class outages {
 public:
  void see(const sim::record& line) {
    switch (line.kind) {
      case sim::what::acquire_invoked:
        if (line.number != 1) return;
        if (waiting_.empty()) since_ = line.at;
        waiting_[line.hold] = line.process;
        return;
      case sim::what::acquire_granted:
        look(line.at);
        since_ = line.at;
        waiting_.erase(line.hold);
        return;
      case sim::what::acquire_failed:
        look(line.at);
        waiting_.erase(line.hold);
        return;
      case sim::what::killed:
        look(line.at);
        std::erase_if(waiting_, [&](const auto& each) { return each.second == line.process; });
        return;
      default:
        return;
    }
  }
  [[nodiscard]] duration longest() const noexcept { return longest_; }

 private:
  void look(sim::moment now) {
    if (!waiting_.empty()) longest_ = std::max<duration>(longest_, now - since_);
  }

  std::map<std::int32_t, std::int32_t> waiting_;  // by hold: the process
  sim::moment since_{};
  duration longest_{};
};

}  // namespace

figures figures_of(const run_record& told) {
  figures made;
  hand_offs passing;
  outages silent;
  for (const sim::record& line : told.records) {
    passing.see(line);
    silent.see(line);
    switch (line.kind) {
      case sim::what::acquire_granted:
        ++made.grants;
        ++made.grants_of[told.resources.at(static_cast<std::size_t>(line.resource)).used_by];
        break;
      case sim::what::latch_told:
        ++made.grants_of[workload::latch];
        break;
      case sim::what::acquire_failed:
        ++made.refusals[std::string(describe(static_cast<errc>(line.number)))];
        break;
      case sim::what::trouble_began:
        ++made.faults[static_cast<fault>(line.number)];
        break;
      case sim::what::started:
        ++made.clients;
        break;
      case sim::what::write_refused:
        ++made.stale_writes;
        break;
      default:
        break;
    }
  }
  passing.tell(made);
  made.longest_outage = silent.longest();
  return made;
}

std::string short_time(duration span) {
  using std::chrono::duration_cast;
  std::array<char, 32> text{};
  const double milliseconds = std::chrono::duration<double, std::milli>(span).count();
  if (milliseconds < 1000) {
    std::snprintf(text.data(), text.size(), milliseconds < 10 ? "%.2f ms" : "%.0f ms",
                  milliseconds);
  } else {
    std::snprintf(text.data(), text.size(), "%.1f s", milliseconds / 1000);
  }
  return text.data();
}

}  // namespace holdfast::torture
