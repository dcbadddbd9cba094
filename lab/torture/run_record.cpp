#include "torture/run_record.hpp"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <system_error>

namespace holdfast::torture {

namespace {

using nlohmann::json;

constexpr const char* format = "holdfast-torture-1";
constexpr std::size_t most_records = 50'000'000;
constexpr std::size_t most_resources = 256;
constexpr std::int64_t most_number = std::numeric_limits<std::int32_t>::max();
// Sums of a few such times do not overflow.
constexpr std::int64_t far = std::int64_t{1} << 60;

[[noreturn]] void refuse(const std::string& why) {
  throw std::runtime_error("not the history of a torture: " + why);
}

// at, kind, process, resource, hold, fence, number, until, mode, fair, permits
json to_json(const sim::record& line) {
  return json::array({line.at.count(), static_cast<int>(line.kind), line.process, line.resource,
                      line.hold, line.fence, line.number, line.until.count(),
                      static_cast<int>(line.mode), line.fair ? 1 : 0, line.permits});
}

// What looks like a number may be a fraction, or far too large.
const json& whole(const json& value) {
  if (!value.is_number_integer()) refuse("a number that is not whole");
  return value;
}

template <class T>
T bounded(const json& value, std::int64_t least, std::int64_t most) {
  const std::int64_t number = whole(value).get<std::int64_t>();
  if (number < least || number > most) refuse("a number out of its limits");
  return static_cast<T>(number);
}

duration span_from(const json& value) {
  if (whole(value).get<std::int64_t>() == forever.count()) return forever;
  return duration(bounded<std::int64_t>(value, -far, far));
}

sim::record record_from(const json& read) {
  constexpr std::size_t fields = 11;
  if (!read.is_array() || read.size() != fields) refuse("a record of another shape");
  sim::record line;
  line.at = duration(bounded<std::int64_t>(read[0], -far, far));
  line.kind = bounded<sim::what>(read[1], 0, static_cast<int>(sim::what::left_behind));
  line.process = bounded<std::int32_t>(read[2], sim::nobody, most_number);
  line.resource = bounded<std::int32_t>(read[3], sim::nobody, most_number);
  line.hold = line.acquisition = bounded<std::int32_t>(read[4], sim::nobody, most_number);
  line.fence = whole(read[5]).get<std::uint64_t>();
  line.number = bounded<std::int64_t>(read[6], -most_number, most_number);
  line.until = span_from(read[7]);
  line.mode = bounded<spi::mode>(read[8], 0, 2);
  line.fair = bounded<int>(read[9], 0, 1) == 1;
  line.permits = bounded<std::uint32_t>(read[10], 0, most_number);
  return line;
}

json to_json(const resource& one) {
  return {{"name", one.name},
          {"workload", to_string(one.used_by)},
          {"kind", static_cast<int>(one.rule.kind)},
          {"max", one.rule.max}};
}

resource resource_from(const json& read) {
  resource one;
  one.name = read.at("name").get<std::string>();
  const auto used_by = workload_named(read.at("workload").get<std::string>());
  if (!used_by) refuse("an unknown workload");
  one.used_by = *used_by;
  one.rule.kind = bounded<sim::resource_kind>(read.at("kind"), 0, 3);
  one.rule.max = bounded<std::uint32_t>(read.at("max"), 0, 1'000'000);
  return one;
}

// Latches have numbers of their own, and a killed client cannot say what it had. Every other record
// of a resource names a listed one.
bool placed(const sim::record& line, std::size_t resources) {
  using sim::what;
  if (line.kind >= what::latch_set && line.kind <= what::latch_read) return true;
  if (line.resource != sim::nobody) return static_cast<std::size_t>(line.resource) < resources;
  return line.kind != what::acquire_invoked && line.kind != what::acquire_granted &&
         line.kind != what::acquire_failed;
}

run_record understood(const json& read) {
  if (!read.is_object() || read.value("format", "") != format) refuse("its format is not known");
  run_record told;
  told.wanted = plan_from(read.at("plan"));
  told.engine = read.at("engine").get<std::string>();
  for (const auto& each : read.at("forgets")) {
    const auto what = fault_named(each.get<std::string>());
    if (!what) refuse("an unknown fault");
    told.forgets.push_back(*what);
  }
  told.looked_for_leaks = read.at("looked_for_leaks").get<bool>();
  told.wake_bound = duration(bounded<std::int64_t>(read.at("wake_bound"), 0, far));
  told.order_margin = duration(bounded<std::int64_t>(read.at("order_margin"), 0, far));
  if (read.at("resources").size() > most_resources) refuse("too many resources");
  for (const auto& each : read.at("resources")) told.resources.push_back(resource_from(each));
  const json& records = read.at("records");
  if (records.size() > most_records) refuse("too many records");
  told.records.reserve(records.size());
  for (const auto& each : records) {
    told.records.push_back(record_from(each));
    const sim::record& line = told.records.back();
    if (!placed(line, told.resources.size())) refuse("a record of an unknown resource");
    if (told.records.size() > 1 && told.records[told.records.size() - 2].at > line.at) {
      refuse("records that are not in order");
    }
  }
  return told;
}

}  // namespace

std::string to_text(const run_record& told) {
  json forgets = json::array();
  for (const fault each : told.forgets) forgets.push_back(to_string(each));
  json resources = json::array();
  for (const resource& each : told.resources) resources.push_back(to_json(each));
  json head{{"format", format},
            {"plan", to_json(told.wanted)},
            {"engine", told.engine},
            {"forgets", forgets},
            {"looked_for_leaks", told.looked_for_leaks},
            {"wake_bound", told.wake_bound.count()},
            {"order_margin", told.order_margin.count()},
            {"resources", resources}};
  // A record per line, for people and for diff.
  std::string text = head.dump();
  text.pop_back();
  text += ",\n\"records\":[";
  bool first = true;
  for (const sim::record& each : told.records) {
    text += (first ? "\n" : ",\n") + to_json(each).dump();
    first = false;
  }
  return text + "\n]}\n";
}

void save(const run_record& told, const std::filesystem::path& file) {
  std::ofstream out(file, std::ios::trunc);
  out << to_text(told);
  if (!out.flush()) throw std::runtime_error("cannot write " + file.string());
}

run_record run_record_from(const std::string& text) {
  const json read = json::parse(text, nullptr, false);
  if (read.is_discarded()) refuse("no JSON");
  try {
    return understood(read);
  } catch (const json::exception&) {
    refuse("something is missing or of another type");
  }
}

run_record load_run_record(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) {
    throw std::runtime_error("cannot read " + file.string() + ": " +
                             std::system_category().message(errno));
  }
  return run_record_from({std::istreambuf_iterator<char>(in), {}});
}

}  // namespace holdfast::torture
