// The documents about engines and all of their names: JSON, and the text that Prometheus reads.
#include "cli/inspection.hpp"
#include "cli/serve/answers.hpp"
#include "cli/serve/engine_view.hpp"
#include "cli/serve/site.hpp"
#include "cli/text.hpp"
#include "core/exposition.hpp"

#include <holdfast_version.hpp>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::cli::serve {

namespace {

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  file >> pages >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// What Prometheus gets from the last listing.
struct listing_gauge {
  const char* name;
  const char* help;
  std::string (*value)(const listing& all);
};
constexpr std::array listing_gauges{
    listing_gauge{"holdfast_engine_names", "Names that are held, waited for or blocked.",
                  [](const listing& all) { return std::to_string(all.names); }},
    listing_gauge{"holdfast_engine_held", "Holds, of all clients of the engine.",
                  [](const listing& all) { return std::to_string(all.held); }},
    listing_gauge{"holdfast_engine_waiting", "Waiters, of all clients of the engine.",
                  [](const listing& all) { return std::to_string(all.waiting); }},
    listing_gauge{"holdfast_engine_blocked", "Names that are blocked by a lock delay.",
                  [](const listing& all) { return std::to_string(all.blocked); }},
    listing_gauge{"holdfast_engine_list_seconds", "How long the last listing took.",
                  [](const listing& all) {
                    return core::seconds_text(static_cast<std::uint64_t>(all.took.count()));
                  }}};

std::uint64_t count_of(const event_counts& counts, spi::event_kind kind) {
  return counts[static_cast<std::size_t>(kind)];
}

std::uint64_t lost_of(const event_counts& counts) {
  return count_of(counts, spi::event_kind::expired) + count_of(counts, spi::event_kind::forced);
}

json::value seconds_value(const std::vector<event_counts>& seconds) {
  json::value granted = json::value::array();
  json::value queued = json::value::array();
  json::value lost = json::value::array();
  for (const event_counts& one : seconds) {
    granted.push_back(count_of(one, spi::event_kind::granted));
    queued.push_back(count_of(one, spi::event_kind::queued));
    lost.push_back(lost_of(one));
  }
  return {
      {"granted", std::move(granted)}, {"queued", std::move(queued)}, {"lost", std::move(lost)}};
}

json::value status_value(const engine_view& engine, const engine_status& status) {
  json::value made{{"engine", engine.id()}, {"up", status.up}, {"trouble", status.trouble}};
  if (status.last) {
    made["names"] = status.last->names;
    made["held"] = status.last->held;
    made["waiting"] = status.last->waiting;
    made["blocked"] = status.last->blocked;
    made["listed_at"] = rfc3339(status.last->at);
  }
  return made;
}

std::vector<engine_view*> pointers_to(const std::vector<std::unique_ptr<engine_view>>& engines) {
  std::vector<engine_view*> made;
  for (const auto& one : engines) made.push_back(one.get());
  return made;
}

}  // namespace

http::response site::engines_document() {
  json::value all = json::value::array();
  for (const auto& one : engines_) {
    one->look();
    const engine_status status = one->status();
    json::value made = status_value(*one, status);
    made["scheme"] = one->scheme();
    made["url"] = one->shown_url();
    made["lists"] = status.lists;
    made["checks"] = json::of(status.checks);
    made["seconds"] = seconds_value(log_.seconds(one->number()));
    all.push_back(std::move(made));
  }
  return document(json::line({{"version", HOLDFAST_VERSION},
                              {"now", rfc3339(std::chrono::system_clock::now())},
                              {"may_revoke", may_revoke_},
                              {"most_names", most_names},
                              {"engines", std::move(all)}}));
}

// The last seconds that are over, of every engine.
std::string site::statistics(std::size_t seconds) const {
  json::value all = json::value::array();
  for (const auto& one : engines_) {
    json::value made = status_value(*one, one->status());
    std::vector<event_counts> last = log_.seconds(one->number());
    if (last.size() > seconds)
      last.erase(last.begin(), last.end() - static_cast<std::ptrdiff_t>(seconds));
    made["seconds"] = seconds_value(last);
    all.push_back(std::move(made));
  }
  return "event: stats\ndata: " + json::line(all) + "\n";
}

http::response site::names_document(const http::request& request, const question& asked) {
  std::vector<engine_view*> engines;
  if (asked.engine.empty()) {
    engines = pointers_to(engines_);
  } else {
    const auto found = chosen(asked);
    if (!found) return found.error();
    engines.push_back(*found);
  }
  for (engine_view* const one : engines) one->look();
  const std::vector<engine_status> known = fresh_status(engines, list_every * 2);
  json::value states = json::value::array();
  std::string rows;
  std::string tag;
  for (std::size_t i = 0; i < engines.size(); ++i) {
    const engine_status& status = known[i];
    states.push_back(status_value(*engines[i], status));
    tag += std::to_string(status.last ? status.last->number : 0) + (status.up ? "u" : "d");
    if (!status.last) continue;
    states.back()["listed"] = status.last->rows.size();
    for (const listed_name& each : status.last->rows) {
      if (!each.name.starts_with(asked.prefix)) continue;
      rows.append(rows.empty() ? "" : ",").append(each.json);
    }
  }
  tag = "\"" + tag + "\"";
  http::response made = document({});
  made.headers.emplace_back("ETag", tag);
  if (asked.prefix.empty() && request.value_of("If-None-Match") == tag) {
    made.status = 304;
    return made;
  }
  std::string head = json::line({{"engines", std::move(states)}});
  head.resize(head.size() - 2);  // the brace and the line end
  made.body = head + ",\"locks\":[" + rows + "]}\n";
  return made;
}

// The engines as a whole, with all their clients. What one process does with its locks is reported
// by holdfast::metrics.
http::response site::metrics() {
  const std::vector<std::pair<std::string, std::string>> none;
  core::exposition out(none);
  // As fresh as the interval of listings, so that a scrape costs one listing.
  const std::vector<engine_status> states = fresh_status(pointers_to(engines_), list_every);
  out.family("holdfast_engine_up", "gauge", "1 if the engine answered when it was last asked.");
  for (std::size_t i = 0; i < states.size(); ++i) {
    out.sample({{"engine", engines_[i]->id()}}, states[i].up ? 1 : 0);
  }
  for (const listing_gauge& gauge : listing_gauges) {
    out.family(gauge.name, "gauge", gauge.help);
    for (std::size_t i = 0; i < states.size(); ++i) {  // none if it is down or cannot list
      const auto& last = states[i].last;
      if (last) out.sample({}, {{"engine", engines_[i]->id()}}, gauge.value(*last));
    }
  }
  out.family("holdfast_engine_events_total", "counter",
             "Events seen: granted, released, expired and forced (lost), queued, withdrawn.");
  for (const auto& one : engines_) {
    const event_counts counts = log_.counts(one->number());
    for (std::size_t i = 0; i < event_kinds; ++i) {
      const auto kind = static_cast<spi::event_kind>(i);
      if (kind == spi::event_kind::renewed) continue;
      out.sample({{"engine", one->id()}, {"event", name_of(kind)}}, counts[i]);
    }
  }
  out.family("holdfast_serve_streams", "gauge", "Event streams that are open.");
  out.sample({}, streams_->load());
  out.family("holdfast_serve_missed_events_total", "counter",
             "Events that were gone before a slow stream could have them.");
  out.sample({}, missed_.load());
  out.family("holdfast_serve_past_events", "gauge", "Events kept for timelines.");
  out.sample({}, log_.kept());
  out.family("holdfast_serve_answers_total", "counter", "Answers by HTTP status.");
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [status, number] : answered_with_) {
      out.sample({{"code", std::to_string(status)}}, number);
    }
  }
  out.family("process_resident_memory_bytes", "gauge", "Resident memory size in bytes.");
  out.sample({}, resident_bytes());
  return text_document(std::move(out).text());
}

}  // namespace holdfast::cli::serve
