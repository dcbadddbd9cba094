#include "cli/bench/bench_message.hpp"

#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace holdfast::cli {

namespace {

using json = nlohmann::json;

constexpr std::size_t zipf_locks = 1'000;

template <class T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

std::optional<std::string> text_or_none(const json& value) {
  if (value.is_null()) return std::nullopt;
  return value.get<std::string>();
}

json of(const histogram& one) {
  return {{"cells", one.cells()}, {"sum", one.sum().count()}, {"max", one.greatest().count()}};
}

void read(const json& from, histogram& into) {
  const auto cells = from.at("cells").get<std::vector<histogram::cell>>();
  if (!into.add(cells, duration(from.at("sum").get<std::int64_t>()),
                duration(from.at("max").get<std::int64_t>()))) {
    throw json::other_error::create(501, "no cell of a histogram", nullptr);
  }
}

json of(const worker_result& result) {
  json made{{"grants", result.grants},
            {"acquire", of(result.acquire)},
            {"release", of(result.release)},
            {"hand_off", of(result.hand_off)},
            {"processor", result.processor.count()},
            {"memory", result.memory},
            {"traffic", nullptr}};
  if (result.traffic) {
    made["traffic"] = {result.traffic->sent, result.traffic->received, result.traffic->sends,
                       result.traffic->receives};
  }
  return made;
}

worker_result result_of(const json& from) {
  worker_result made;
  from.at("grants").get_to(made.grants);
  read(from.at("acquire"), made.acquire);
  read(from.at("release"), made.release);
  read(from.at("hand_off"), made.hand_off);
  made.processor = duration(from.at("processor").get<std::int64_t>());
  from.at("memory").get_to(made.memory);
  if (const json& traffic = from.at("traffic"); !traffic.is_null()) {
    made.traffic = {.sent = traffic.at(0),
                    .received = traffic.at(1),
                    .sends = traffic.at(2),
                    .receives = traffic.at(3)};
  }
  return made;
}

std::string line(const json& document) {
  return document.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace

duration warm_up(duration length) noexcept {
  constexpr duration most = std::chrono::milliseconds(500);
  return std::min(length / 5, most);
}

std::size_t locks_of(const bench_arguments& how) noexcept {
  switch (how.locks) {
    case lock_choice::same:
      return 1;
    case lock_choice::own:
      return how.all_threads();
    case lock_choice::zipf:
      return zipf_locks;
  }
  return 1;
}

std::string to_line(const worker_plan& plan) {
  return line({{"threads", plan.how.threads},
               {"processes", plan.how.processes},
               {"locks", static_cast<int>(plan.how.locks)},
               {"mode", static_cast<int>(plan.how.mode)},
               {"reads", plan.how.reads},
               {"permits", plan.how.permits},
               {"hold", plan.how.hold.count()},
               {"length", plan.how.length.count()},
               {"url", plan.url},
               {"password", or_null(plan.password)},
               {"password_file", or_null(plan.password_file)},
               {"space", or_null(plan.space)},
               {"name", plan.name},
               {"first", plan.first}});
}

std::optional<worker_plan> read_plan(const std::string& line) try {
  const json from = json::parse(line);
  worker_plan plan;
  from.at("threads").get_to(plan.how.threads);
  from.at("processes").get_to(plan.how.processes);
  plan.how.locks = static_cast<lock_choice>(from.at("locks").get<int>());
  plan.how.mode = static_cast<lock_kind>(from.at("mode").get<int>());
  from.at("reads").get_to(plan.how.reads);
  from.at("permits").get_to(plan.how.permits);
  plan.how.hold = duration(from.at("hold").get<std::int64_t>());
  plan.how.length = duration(from.at("length").get<std::int64_t>());
  from.at("url").get_to(plan.url);
  plan.password = text_or_none(from.at("password"));
  plan.password_file = text_or_none(from.at("password_file"));
  plan.space = text_or_none(from.at("space"));
  from.at("name").get_to(plan.name);
  from.at("first").get_to(plan.first);
  return plan;
} catch (const json::exception&) {
  return std::nullopt;
}

std::string start_line(time_point start) {
  return line({{"start", start.time_since_epoch().count()}});
}

std::optional<time_point> read_start(const std::string& line) try {
  return time_point(duration(json::parse(line).at("start").get<std::int64_t>()));
} catch (const json::exception&) {
  return std::nullopt;
}

std::string to_line(const worker_message& message) {
  if (message.trouble) {
    return line({{"trouble", message.trouble->text}, {"code", message.trouble->code}});
  }
  if (message.result) return line({{"result", of(*message.result)}});
  return line({{"ready", message.ready}});
}

std::optional<worker_message> read_message(const std::string& line) try {
  const json from = json::parse(line);
  worker_message made;
  made.ready = from.value("ready", false);
  if (from.contains("trouble")) {
    made.trouble = complaint{from.at("code").get<int>(), from.at("trouble").get<std::string>()};
  }
  if (from.contains("result")) made.result = result_of(from.at("result"));
  return made;
} catch (const json::exception&) {
  return std::nullopt;
}

bool line_reader::fill() {
  std::array<char, 65536> part;  // NOLINT(cppcoreguidelines-pro-type-member-init)
  ssize_t size = 0;
  do {
    size = ::read(file_, part.data(), part.size());
  } while (size < 0 && errno == EINTR);
  if (size < 0 && errno == EAGAIN) return true;
  if (size <= 0 || text_.size() > longest) return false;
  text_.append(part.data(), static_cast<std::size_t>(size));
  return true;
}

std::optional<std::string> line_reader::next() {
  const auto end = text_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = text_.substr(0, end);
  text_.erase(0, end + 1);
  return line;
}

std::optional<std::string> line_reader::wait() {
  for (;;) {
    if (auto line = next()) return line;
    if (!fill()) return std::nullopt;
  }
}

bool write_all(int file, const std::string& text) noexcept {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t size = ::send(file, text.data() + done, text.size() - done, MSG_NOSIGNAL);
    if (size < 0 && errno != EINTR) return false;
    if (size > 0) done += static_cast<std::size_t>(size);
  }
  return true;
}

}  // namespace holdfast::cli
