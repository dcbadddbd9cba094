#include "cli/serve/exposition.hpp"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <string_view>

namespace holdfast::cli::serve {

namespace {

std::string label_value(std::string_view text) {
  std::string made;
  for (const char c : text) {
    if (c == '\\' || c == '"') made += '\\';
    made += c;
  }
  return made;
}

std::string number_text(double value) {
  char text[32] = {};
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

void begin(std::string& text, std::string_view name, std::string_view type, std::string_view help) {
  text += "# HELP " + std::string(name) + " " + std::string(help) + "\n# TYPE " +
          std::string(name) + " " + std::string(type) + "\n";
}

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  double pages = 0;
  file >> pages >> pages;
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

// A gauge from the last listing; an engine that is down or cannot list has none.
void gauge(std::string& text, const std::vector<exposed_engine>& engines, std::string_view name,
           std::string_view help, const std::function<double(const listing&)>& value) {
  begin(text, name, "gauge", help);
  for (const exposed_engine& one : engines) {
    if (!one.status.last) continue;
    text += std::string(name) + "{engine=\"" + label_value(one.id) + "\"} " +
            number_text(value(*one.status.last)) + "\n";
  }
}

}  // namespace

std::string exposition(const std::vector<exposed_engine>& engines, const exposed_server& server) {
  std::string text;
  begin(text, "holdfast_engine_up", "gauge", "1 if the engine answered when it was last asked.");
  for (const exposed_engine& one : engines) {
    text += "holdfast_engine_up{engine=\"" + label_value(one.id) + "\"} " +
            (one.status.up ? "1" : "0") + "\n";
  }
  const auto count = [](std::size_t number) { return static_cast<double>(number); };
  gauge(text, engines, "holdfast_engine_names", "Names that are held, waited for or blocked.",
        [&](const listing& all) { return count(all.names); });
  gauge(text, engines, "holdfast_engine_held", "Holds, of all clients of the engine.",
        [&](const listing& all) { return count(all.held); });
  gauge(text, engines, "holdfast_engine_waiting", "Waiters, of all clients of the engine.",
        [&](const listing& all) { return count(all.waiting); });
  gauge(text, engines, "holdfast_engine_blocked", "Names that are blocked by a lock delay.",
        [&](const listing& all) { return count(all.blocked); });
  gauge(text, engines, "holdfast_engine_list_seconds", "How long the last listing took.",
        [](const listing& all) { return std::chrono::duration<double>(all.took).count(); });
  begin(text, "holdfast_engine_events_total", "counter",
        "Events seen: granted, released, expired and forced (lost), queued, withdrawn.");
  for (const exposed_engine& one : engines) {
    for (std::size_t kind = 0; kind < event_kinds; ++kind) {
      if (static_cast<spi::event_kind>(kind) == spi::event_kind::renewed) continue;
      text += "holdfast_engine_events_total{engine=\"" + label_value(one.id) + "\",event=\"" +
              std::string(name_of(static_cast<spi::event_kind>(kind))) + "\"} " +
              std::to_string(one.counts[kind]) + "\n";
    }
  }
  begin(text, "holdfast_serve_streams", "gauge", "Event streams that are open.");
  text += "holdfast_serve_streams " + std::to_string(server.streams) + "\n";
  begin(text, "holdfast_serve_missed_events_total", "counter",
        "Events that were gone before a slow stream could have them.");
  text += "holdfast_serve_missed_events_total " + std::to_string(server.missed) + "\n";
  begin(text, "holdfast_serve_past_events", "gauge", "Events kept for timelines.");
  text += "holdfast_serve_past_events " + std::to_string(server.past_events) + "\n";
  begin(text, "holdfast_serve_answers_total", "counter", "Answers by HTTP status.");
  for (const auto& [status, number] : server.answers) {
    text += "holdfast_serve_answers_total{code=\"" + std::to_string(status) + "\"} " +
            std::to_string(number) + "\n";
  }
  begin(text, "process_resident_memory_bytes", "gauge", "Resident memory size in bytes.");
  char bytes[32] = {};
  std::snprintf(bytes, sizeof bytes, "%.0f", resident_bytes());
  text += "process_resident_memory_bytes " + std::string(bytes) + "\n";
  return text;
}

}  // namespace holdfast::cli::serve
