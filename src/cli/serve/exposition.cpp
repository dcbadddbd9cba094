#include "cli/serve/exposition.hpp"

#include "core/exposition.hpp"

#include <unistd.h>

#include <fstream>
#include <functional>
#include <string_view>

namespace holdfast::cli::serve {

namespace {

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t pages = 0;
  file >> pages >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// A gauge from the last listing; an engine that is down or cannot list has none.
void gauge(core::exposition& out, const std::vector<exposed_engine>& engines, std::string_view name,
           std::string_view help, const std::function<std::string(const listing&)>& value) {
  out.family(name, "gauge", help);
  for (const exposed_engine& one : engines) {
    if (one.status.last) out.sample({}, {{"engine", one.id}}, value(*one.status.last));
  }
}

void write_engines(core::exposition& out, const std::vector<exposed_engine>& engines) {
  out.family("holdfast_engine_up", "gauge", "1 if the engine answered when it was last asked.");
  for (const exposed_engine& one : engines) {
    out.sample({{"engine", one.id}}, one.status.up ? 1 : 0);
  }
  gauge(out, engines, "holdfast_engine_names", "Names that are held, waited for or blocked.",
        [](const listing& all) { return std::to_string(all.names); });
  gauge(out, engines, "holdfast_engine_held", "Holds, of all clients of the engine.",
        [](const listing& all) { return std::to_string(all.held); });
  gauge(out, engines, "holdfast_engine_waiting", "Waiters, of all clients of the engine.",
        [](const listing& all) { return std::to_string(all.waiting); });
  gauge(out, engines, "holdfast_engine_blocked", "Names that are blocked by a lock delay.",
        [](const listing& all) { return std::to_string(all.blocked); });
  gauge(out, engines, "holdfast_engine_list_seconds", "How long the last listing took.",
        [](const listing& all) {
          return core::seconds_text(static_cast<std::uint64_t>(all.took.count()));
        });
  out.family("holdfast_engine_events_total", "counter",
             "Events seen: granted, released, expired and forced (lost), queued, withdrawn.");
  for (const exposed_engine& one : engines) {
    for (std::size_t i = 0; i < event_kinds; ++i) {
      const auto kind = static_cast<spi::event_kind>(i);
      if (kind == spi::event_kind::renewed) continue;
      out.sample({{"engine", one.id}, {"event", name_of(kind)}}, one.counts[i]);
    }
  }
}

}  // namespace

std::string exposition(const std::vector<exposed_engine>& engines, const exposed_server& server) {
  const std::vector<std::pair<std::string, std::string>> none;
  core::exposition out(none);
  write_engines(out, engines);
  out.family("holdfast_serve_streams", "gauge", "Event streams that are open.");
  out.sample({}, server.streams);
  out.family("holdfast_serve_missed_events_total", "counter",
             "Events that were gone before a slow stream could have them.");
  out.sample({}, server.missed);
  out.family("holdfast_serve_past_events", "gauge", "Events kept for timelines.");
  out.sample({}, server.past_events);
  out.family("holdfast_serve_answers_total", "counter", "Answers by HTTP status.");
  for (const auto& [status, number] : server.answers) {
    out.sample({{"code", std::to_string(status)}}, number);
  }
  out.family("process_resident_memory_bytes", "gauge", "Resident memory size in bytes.");
  out.sample({}, resident_bytes());
  return std::move(out).text();
}

}  // namespace holdfast::cli::serve
