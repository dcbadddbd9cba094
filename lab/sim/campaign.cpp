#include "sim/campaign.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <thread>

namespace holdfast::sim {

namespace {

// Seeds that a thread takes at a time.
constexpr std::uint64_t portion = 64;

class running {
 public:
  running(const campaign_settings& settings, campaign_result& result)
      : settings_(settings), result_(result), start_(std::chrono::steady_clock::now()) {}

  void work() {
    campaign_result own;
    while (!stopped_.load(std::memory_order_relaxed)) {
      const std::uint64_t from = next_.fetch_add(portion, std::memory_order_relaxed);
      if (from >= settings_.seeds) break;
      const std::uint64_t to = std::min(settings_.seeds, from + portion);
      for (std::uint64_t i = from; i < to; ++i) run(settings_.first + i, own);
      if (settings_.limit && std::chrono::steady_clock::now() - start_ >= *settings_.limit) break;
    }
    const std::lock_guard lock(mutex_);
    result_.seeds += own.seeds;
    result_.steps += own.steps;
    result_.grants += own.grants;
    result_.hash ^= own.hash;
  }

  [[nodiscard]] std::chrono::steady_clock::duration age() const {
    return std::chrono::steady_clock::now() - start_;
  }

 private:
  void run(std::uint64_t seed, campaign_result& own) {
    const world_outcome outcome =
        settings_.run ? settings_.run(seed) : run_seed(seed, settings_.at_most);
    ++own.seeds;
    own.steps += outcome.steps;
    own.grants += outcome.grants;
    own.hash ^= outcome.hash * (2 * seed + 1);
    if (outcome.violations.empty()) return;
    const std::lock_guard lock(mutex_);
    result_.failed.push_back({seed, outcome.violations});
    if (result_.failed.size() >= settings_.failures) stopped_ = true;
  }

  const campaign_settings& settings_;
  campaign_result& result_;
  const std::chrono::steady_clock::time_point start_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;  // of result_
};

bool still_fails(std::uint64_t seed, std::string_view checker, const restrictions& at_most) {
  const auto outcome = run_seed(seed, at_most);
  return std::any_of(outcome.violations.begin(), outcome.violations.end(),
                     [&](const violation& each) { return each.checker == checker; });
}

}  // namespace

world_outcome run_seed(std::uint64_t seed, const restrictions& at_most, history::sink timeline) {
  world made(draw_plan(seed, at_most), std::move(timeline));
  return made.run();
}

campaign_result run_campaign(const campaign_settings& settings) {
  campaign_result result;
  running state(settings, result);
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 1; i < settings.threads; ++i) {
      threads.emplace_back([&state] { state.work(); });
    }
    state.work();
  }
  result.took = state.age();
  std::sort(
      result.failed.begin(), result.failed.end(),
      [](const failed_seed& left, const failed_seed& right) { return left.seed < right.seed; });
  return result;
}

std::string campaign_result::summary() const {
  std::array<char, 200> text{};
  const double count = static_cast<double>(seeds);
  const double least = std::max(1.0, count);
  std::snprintf(text.data(), text.size(),
                "%.0f seeds in %.1f s: %.0f seeds/s, %.0f events and %.1f grants each, %zu failed, "
                "trace %016llx",
                count, took.count(), count / took.count(), static_cast<double>(steps) / least,
                static_cast<double>(grants) / least, failed.size(),
                static_cast<unsigned long long>(hash));
  return text.data();
}

restrictions shrink(std::uint64_t seed, std::string_view checker, const restrictions& from) {
  restrictions best = from;
  const auto keep_if = [&](const restrictions& tried) {
    if (!still_fails(seed, checker, tried)) return false;
    best = tried;
    return true;
  };
  const auto lower = [&](std::uint32_t restrictions::*what, std::size_t largest,
                         std::uint32_t least = 1) {
    best.*what = std::min(best.*what, static_cast<std::uint32_t>(largest));
    while (best.*what > least) {
      restrictions tried = best;
      --(tried.*what);
      if (!keep_if(tried)) return;
    }
  };
  const plan whole = draw_plan(seed, from);
  best.troubles = whole.troubles;
  for (std::size_t kind = 0; kind < trouble_kinds; ++kind) {
    restrictions tried = best;
    tried.troubles.drop(static_cast<trouble>(kind));
    keep_if(tried);
  }
  lower(&restrictions::clients, whole.clients);
  lower(&restrictions::actors, whole.actors);
  lower(&restrictions::rounds, whole.rounds);
  lower(&restrictions::resources, whole.resources.size());
  lower(&restrictions::disturbances, std::max<std::size_t>(1, whole.disturbances.size()), 0);
  return best;
}

std::string report(const failed_seed& failed, const restrictions& at_most,
                   const std::string& program) {
  const std::string seed = " --seed " + std::to_string(failed.seed);
  std::string text = "seed " + std::to_string(failed.seed) + " breaks a guarantee\n";
  for (const violation& each : failed.violations) {
    std::array<char, 32> at{};
    std::snprintf(at.data(), at.size(), "%.6f s", static_cast<double>(each.at.count()) / 1e9);
    text.append("  ").append(each.checker).append(", at ").append(at.data());
    text.append(": ").append(each.message).append("\n");
  }
  text += "  again:  " + program + seed + at_most.to_options() + " --trace\n";
  const restrictions small = shrink(failed.seed, failed.violations.front().checker, at_most);
  text += "  shrunk: " + program + seed + small.to_options() + " --trace\n";
  return text;
}

}  // namespace holdfast::sim
