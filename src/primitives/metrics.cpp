#include "core/exposition.hpp"
#include "primitives/metrics_state.hpp"

#include <holdfast/metrics.hpp>
#include <holdfast/result.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

namespace holdfast {

namespace {

using core::engine_numbers;
using core::exposition;
using core::histogram;
using core::series;

bool is_label_name(std::string_view name) {
  const auto letter = [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  return !name.empty() && letter(name.front()) && !name.starts_with("__") &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

metrics_options checked(metrics_options options) {
  std::set<std::string_view> taken{"engine", "primitive", "result", "cause", "name", "le"};
  for (const auto& [name, value] : options.labels) {
    if (!is_label_name(name)) {
      throw lock_error(error{errc::invalid, "a label's name is [a-zA-Z_][a-zA-Z0-9_]*"});
    }
    if (!taken.insert(name).second) {
      throw lock_error(error{errc::invalid, "a label with this name exists already"});
    }
  }
  if (options.names > metrics::most_names) {
    throw lock_error(error{errc::invalid, "at most 1,000 names can be labels"});
  }
  return options;
}

// In the order of errc. The first five are shown even if they are zero: a series that appears with
// its first event hides that event from rate().
constexpr std::array<std::pair<errc, std::string_view>, 9> refusals{
    {{errc::busy, "busy"},
     {errc::timed_out, "timed_out"},
     {errc::cancelled, "cancelled"},
     {errc::unavailable, "unavailable"},
     {errc::overloaded, "overloaded"},
     {errc::denied, "denied"},
     {errc::conflict, "conflict"},
     {errc::name_conflict, "name_conflict"},
     {errc{}, "other"}}};
constexpr std::size_t always_shown = 5;

// One line of numbers with the labels that tell it from others.
struct line {
  const series* numbers;
  exposition::labels labels;
};

// Whether or not its name is a label, a primitive that nobody used is left out.
std::vector<line> lines_of(const std::vector<const engine_numbers*>& engines) {
  std::vector<line> found;
  const auto take = [&](const engine_numbers& from, primitive what, const series& numbers,
                        std::string_view name) {
    if (numbers.asked.load(std::memory_order_acquire) == 0) return;
    exposition::labels labels{{"engine", from.engine}, {"primitive", to_string(what)}};
    if (from.by_name) labels.emplace_back("name", name);
    found.push_back({&numbers, std::move(labels)});
  };
  for (const engine_numbers* each : engines) {
    for (const auto* own : each->named.all()) take(*each, own->what, own->value, own->name);
    for (std::size_t i = 0; i < core::primitive_count; ++i) {
      take(*each, static_cast<primitive>(i), each->all[i], core::other_names);
    }
  }
  return found;
}

exposition::labels with(exposition::labels labels, std::string_view name, std::string_view value) {
  labels.emplace_back(name, value);
  return labels;
}

void write_histogram(exposition& to, const histogram& seen, const exposition::labels& labels) {
  const auto buckets = seen.buckets();
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    below += buckets[i];
    const std::string bound =
        i < core::bucket_count
            ? core::seconds_text(static_cast<std::uint64_t>(seen.bounds()[i].count()))
            : "+Inf";
    to.sample("_bucket", with(labels, "le", bound), std::to_string(below));
  }
  to.sample("_sum", labels, core::seconds_text(static_cast<std::uint64_t>(seen.sum().count())));
  to.sample("_count", labels, std::to_string(below));
}

void write_acquisitions(exposition& to, const std::vector<line>& lines) {
  to.family("holdfast_acquisitions_total", "counter",
            "Acquisitions that were answered, by result.");
  for (const line& each : lines) {
    to.sample(with(each.labels, "result", "granted"), each.numbers->waits.count());
    std::uint64_t named = 0;
    std::uint64_t all = 0;
    for (const auto& one : each.numbers->refused) all += one.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < refusals.size(); ++i) {
      const auto& [code, word] = refusals[i];
      const bool rest = code == errc{};
      const std::uint64_t count = rest ? all - std::min(all, named)
                                       : each.numbers->refused[static_cast<std::size_t>(code)].load(
                                             std::memory_order_acquire);
      named += count;
      if (count > 0 || i < always_shown) to.sample(with(each.labels, "result", word), count);
    }
  }
}

void write_locks(exposition& to, const std::vector<line>& lines) {
  write_acquisitions(to, lines);
  to.family("holdfast_acquire_seconds", "histogram", "How long granted acquisitions took.");
  for (const line& each : lines) write_histogram(to, each.numbers->waits, each.labels);
  to.family("holdfast_hold_seconds", "histogram", "How long leases that ended were held.");
  for (const line& each : lines) write_histogram(to, each.numbers->holds, each.labels);
  to.family("holdfast_lost_total", "counter", "Leases that were lost, by cause.");
  for (const line& each : lines) {
    for (std::size_t i = 1; i < core::loss_cause_count; ++i) {
      to.sample(with(each.labels, "cause", to_string(static_cast<loss_cause>(i))),
                each.numbers->lost[i].load(std::memory_order_acquire));
    }
  }
  to.family("holdfast_held", "gauge", "Leases held now.");
  for (const line& each : lines) to.sample(each.labels, each.numbers->held());
  to.family("holdfast_waiting", "gauge", "Acquisitions without an answer now.");
  for (const line& each : lines) to.sample(each.labels, each.numbers->waiting());
}

void write_engines(exposition& to, const std::vector<const engine_numbers*>& engines) {
  to.family("holdfast_renewals_total", "counter", "Renewals of leases, by result.");
  for (const engine_numbers* each : engines) {
    const exposition::labels labels{{"engine", each->engine}};
    to.sample(with(labels, "result", "renewed"), each->renewed.load(std::memory_order_acquire));
    to.sample(with(labels, "result", "failed"),
              each->renewal_failed.load(std::memory_order_acquire));
  }
  to.family("holdfast_engine_up", "gauge",
            "1 if the engine answers, 0 if a client finds that it does not.");
  for (const engine_numbers* each : engines) {
    const bool down = each->unreached.load(std::memory_order_relaxed) > 0;
    if (!down && each->reached.load(std::memory_order_relaxed) <= 0) continue;  // nobody knows
    to.sample({{"engine", each->engine}}, down ? 0 : 1);
  }
  to.family("holdfast_engine_round_trip_seconds", "histogram",
            "From sending a request to the engine's answer.");
  for (const engine_numbers* each : engines) {
    write_histogram(to, each->round_trips, {{"engine", each->engine}});
  }
}

// Two engines may have an election of the same name: leading either of them counts as leading.
void write_elections(exposition& to, const std::vector<const engine_numbers*>& engines) {
  std::vector<std::pair<std::string_view, bool>> found;
  for (const engine_numbers* each : engines) {
    for (const auto* own : each->terms.all()) {
      const bool leads = own->value.load(std::memory_order_acquire) > 0;
      const auto known = std::find_if(found.begin(), found.end(),
                                      [&](const auto& one) { return one.first == own->name; });
      if (known == found.end()) {
        found.emplace_back(own->name, leads);
      } else {
        known->second = known->second || leads;
      }
    }
  }
  if (found.empty()) return;
  to.family("leader_election_master_status", "gauge", "1 while this process leads, 0 otherwise.");
  for (const auto& [name, leads] : found) to.sample({{"name", name}}, leads ? 1 : 0);
}

}  // namespace

std::shared_ptr<core::meter> metrics::state::meter_for(const std::string& engine) {
  const std::lock_guard lock(mutex_);
  const auto known = std::find_if(engines_.begin(), engines_.end(),
                                  [&](const auto& each) { return each->engine == engine; });
  if (known != engines_.end()) return std::make_shared<core::meter>(shared_from_this(), **known);
  engines_.push_back(
      std::make_unique<core::engine_numbers>(engine, options.names, metrics::most_elections));
  return std::make_shared<core::meter>(shared_from_this(), *engines_.back());
}

std::vector<const core::engine_numbers*> metrics::state::engines() const {
  const std::lock_guard lock(mutex_);
  std::vector<const core::engine_numbers*> all;
  for (const auto& each : engines_) all.push_back(each.get());
  return all;
}

metrics::metrics(metrics_options options)
    : state_(std::make_shared<state>(checked(std::move(options)))) {}

metrics::~metrics() = default;

std::string metrics::prometheus_text() const {
  const auto engines = state_->engines();
  exposition text(state_->options.labels);
  const auto lines = lines_of(engines);
  if (!lines.empty()) write_locks(text, lines);
  if (!engines.empty()) write_engines(text, engines);
  write_elections(text, engines);
  return std::move(text).text();
}

}  // namespace holdfast
