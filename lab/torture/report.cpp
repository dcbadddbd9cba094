#include "torture/report.hpp"

#include "torture/figures.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>

namespace holdfast::torture {

namespace {

using nlohmann::json;

// report.html, from the folder of this file.
constexpr const char* page =
#include "torture_report.inc"
    ;

constexpr std::size_t most_drawn = 20'000;  // beyond that, too many bars for a browser

double in_seconds(duration span) { return std::chrono::duration<double>(span).count(); }

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char each : text) {
    switch (each) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += each;
    }
  }
  return safe;
}

const char* name_of(spi::mode mode) {
  switch (mode) {
    case spi::mode::exclusive:
      return "exclusive";
    case spi::mode::shared:
      return "shared";
    case spi::mode::permit:
      return "permit";
  }
  return "?";
}

json holds_of(const std::vector<sim::record>& normalised_history) {
  json all = json::array();
  std::map<std::int32_t, sim::record> open;
  for (const sim::record& line : normalised_history) {
    if (line.kind == sim::what::validity_began) open[line.hold] = line;
    if (line.kind != sim::what::validity_ended || all.size() >= most_drawn) continue;
    const auto found = open.find(line.hold);
    if (found == open.end()) continue;
    const sim::record& begin = found->second;
    all.push_back({{"resource", begin.resource},
                   {"client", begin.process},
                   {"fence", std::to_string(begin.fence)},
                   {"mode", name_of(begin.mode)},
                   {"begin", in_seconds(begin.at)},
                   {"end", in_seconds(line.at)}});
    open.erase(found);
  }
  std::stable_sort(all.begin(), all.end(), [](const json& left, const json& right) {
    return left["begin"].get<double>() < right["begin"].get<double>();
  });
  return all;
}

json faults_of(const run_record& told, std::set<std::string>& kinds) {
  json all = json::array();
  std::map<std::pair<std::int64_t, std::int32_t>, sim::moment> open;
  for (const sim::record& line : told.records) {
    const std::pair key{line.number, line.process};
    if (line.kind == sim::what::trouble_began) open[key] = line.at;
    const auto found = open.find(key);
    if (line.kind != sim::what::trouble_ended || found == open.end()) continue;
    const std::string kind(to_string(static_cast<fault>(line.number)));
    kinds.insert(kind);
    all.push_back({{"kind", kind},
                   {"client", line.process},
                   {"begin", in_seconds(found->second)},
                   {"end", in_seconds(line.at)}});
    open.erase(found);
  }
  return all;
}

std::string data_of(const run_record& told, const verdict& given) {
  const std::vector<sim::record> normalised_history = normalised_history_of(told);
  json resources = json::array();
  for (const resource& each : told.resources) resources.push_back(each.name);
  json violations = json::array();
  for (const finding& each : given.violations) violations.push_back(in_seconds(each.at));
  std::set<std::string> kinds;
  json faults = faults_of(told, kinds);
  const sim::moment end = normalised_history.empty() ? sim::moment{} : normalised_history.back().at;
  std::string text = json{
      {"end", std::max(in_seconds(end), 0.001)},
      {"resources", resources},
      {"holds", holds_of(normalised_history)},
      {"faults", faults},
      {"faultKinds", kinds},
      {"violations",
       violations}}.dump(-1, ' ', true);
  // Escaped, so that nothing in it ends the script early.
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos;) {
    text.replace(at, 1, "\\u003c");
  }
  return text;
}

std::string to_string(const std::string& word) { return word; }

template <class Map>
std::string counts(const Map& all) {
  std::string text;
  for (const auto& [what, count] : all) {
    text += (text.empty() ? "" : ", ") + std::string(to_string(what)) + " " + std::to_string(count);
  }
  return text.empty() ? "none" : text;
}

std::string head_of(const run_record& told, const verdict& given) {
  const bool clean = given.violations.empty();
  std::string text =
      "<h1>holdfast torture: " + escaped(told.engine) + "</h1>\n<p class=\"what\">" +
      std::to_string(told.wanted.clients) + " clients, " + escaped(short_time(told.wanted.length)) +
      ", seed " + std::to_string(told.wanted.seed) + ". <span class=\"verdict " +
      (clean ? "clean\">No violation" : "broken\">Violations: ") +
      (clean ? "" : std::to_string(given.violations.size())) + "</span></p>\n<table>\n";
  for (const auto& row : summary_of(told, given)) {
    text += "<tr><th>" + escaped(row[0]) + "</th><td>" + escaped(row[1]) + "</td></tr>\n";
  }
  return text + "</table>\n";
}

std::string tail_of(const verdict& given) {
  std::string text;
  for (const finding& each : given.violations) {
    text += "<h2>" + escaped(each.checker) + "</h2>\n<pre>" + escaped(to_text(each)) + "</pre>\n";
  }
  return text;
}

void put(std::string& into, const std::string& mark, const std::string& text) {
  const std::size_t at = into.find(mark);
  if (at != std::string::npos) into.replace(at, mark.size(), text);
}

}  // namespace

std::vector<std::vector<std::string>> summary_of(const run_record& told, const verdict& given) {
  const figures made = figures_of(told);
  std::string checked;
  for (const std::string& each : given.checked) checked += (checked.empty() ? "" : ", ") + each;
  std::vector<std::vector<std::string>> rows{
      {"acquisitions", std::to_string(made.grants)},
      {"by workload", counts(made.grants_of)},
      {"not granted", counts(made.refusals)},
      {"hand-off", made.hand_off_half ? "p50 " + short_time(*made.hand_off_half) + ", p99 " +
                                            short_time(*made.hand_off_most)
                                      : "none"},
      {"faults", counts(made.faults)},
      {"longest unavailable", short_time(made.longest_outage)},
      {"client processes", std::to_string(made.clients)},
      {"stale writes refused", std::to_string(made.stale_writes)},
      {"checked", checked},
      {"violations", std::to_string(given.violations.size())}};
  if (!told.looked_for_leaks) rows.push_back({"not checked", "leftovers: cannot be listed"});
  return rows;
}

std::string report_page(const run_record& told, const verdict& given) {
  std::string text = page;
  put(text, "<!--HEAD-->", head_of(told, given));
  put(text, "<!--TAIL-->", tail_of(given));
  put(text, "/*DATA*/null", data_of(told, given));
  return text;
}

void save_report(const run_record& told, const verdict& given, const std::filesystem::path& file) {
  std::ofstream out(file, std::ios::trunc);
  out << report_page(told, given);
  if (!out.flush()) throw std::runtime_error("cannot write " + file.string());
}

}  // namespace holdfast::torture
