#include "cli/serve/site.hpp"

#include "cli/arguments.hpp"
#include "cli/inspection.hpp"
#include "cli/serve/answers.hpp"
#include "cli/text.hpp"
#include "core/hex.hpp"
#include "core/names.hpp"

#include <algorithm>
#include <charconv>
#include <thread>
#include <utility>

namespace holdfast::cli::serve {

namespace {

constexpr std::string_view locks_prefix = "/api/locks/";
constexpr std::string_view revoke_suffix = "/revoke";
// How many connections may be event streams: the others are for requests that end.
constexpr std::size_t most_streams = 32;
// Names that one request may ask about in detail, and how long that may take.
constexpr std::size_t most_details = 64;
constexpr duration details_within = std::chrono::seconds(3);
// A stream sends something at least this often, so that a client that is gone is noticed.
constexpr duration heartbeat_every = std::chrono::seconds(10);
// Events come in batches: each is a message, but not each a wake-up.
constexpr duration gathering = std::chrono::milliseconds(100);
constexpr duration stream_waits = std::chrono::milliseconds(400);

constexpr const char* bad_escape = "'%' is followed by two hexadecimal digits";

tl::expected<std::string, http::response> lock_name(std::string_view encoded) {
  auto name = core::unescaped(encoded);
  if (!name) return tl::unexpected(problem(400, bad_escape));
  if (const auto fine = core::check_name(*name); !fine) {
    return tl::unexpected(problem(400, fine.error().detail));
  }
  return *std::move(name);
}

http::response wrong_method(std::string allowed) {
  http::response made = problem(405, "use " + allowed);
  made.headers.emplace_back("Allow", std::move(allowed));
  return made;
}

json::value past_value(const past_event& one) {
  return json::of({.kind = one.kind,
                   .name = {},
                   .claim = one.claim,
                   .mode = one.mode,
                   .fence = one.fence,
                   .payload = one.payload},
                  one.at);
}

}  // namespace

site::site(access_rules rules, bool may_revoke, std::vector<std::unique_ptr<engine_view>>& engines,
           event_log& log)
    : rules_(std::move(rules)), may_revoke_(may_revoke), engines_(engines), log_(log) {}

site::question site::understood(std::string_view target) {
  question made;
  const std::size_t mark = std::min(target.find('?'), target.size());
  made.path = target.substr(0, mark);
  std::string_view rest = target.substr(std::min(mark + 1, target.size()));
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    const std::string_view key = pair.substr(0, pair.find('='));
    const auto value = core::unescaped(pair.substr(std::min(key.size() + 1, pair.size())));
    if (!value) {
      made.malformed = true;
    } else if (key == "engine") {
      made.engine = *value;
    } else if (key == "prefix") {
      made.prefix = *value;
    } else if (key == "claim") {
      made.claim = *value;
    } else if (key == "name") {
      made.names.push_back(*value);
    }
  }
  return made;
}

http::response site::answer(const http::request& request) {
  http::response made = route(request);
  const std::lock_guard lock(mutex_);
  ++answered_with_[made.status];
  return made;
}

http::response site::route(const http::request& request) {
  const question asked = understood(request.target);
  const std::string& path = asked.path;
  const bool is_open = path == "/" || path == "/healthz";
  if (auto no = refusal(rules_, request, is_open ? needs::nothing : needs::token))
    return *std::move(no);
  if (asked.malformed) return problem(400, bad_escape);
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (path.starts_with(locks_prefix) && request.method == "POST" && path.ends_with(revoke_suffix) &&
      path.size() > locks_prefix.size() + revoke_suffix.size()) {
    std::string_view name = std::string_view(path).substr(locks_prefix.size());
    name.remove_suffix(revoke_suffix.size());
    return revoke(asked, name);
  }
  if (!reads) return wrong_method("GET, HEAD");
  if (path == "/") return live_page(!rules_.token.empty());
  if (path == "/healthz") return text_document("ok\n");
  if (path == "/metrics") return metrics();
  if (path == "/api/engines") return engines_document();
  if (path == "/api/locks") {
    return asked.names.empty() ? names_document(request, asked) : details_document(asked);
  }
  if (path == "/api/events") return events(request, asked);
  if (path.starts_with(locks_prefix) && path.size() > locks_prefix.size()) {
    return lock_document(asked, std::string_view(path).substr(locks_prefix.size()));
  }
  return problem(404,
                 "there is /, /healthz, /metrics, /api/engines, /api/locks, /api/locks/NAME, "
                 "/api/events");
}

tl::expected<engine_view*, http::response> site::chosen(const question& asked) const {
  if (asked.engine.empty() && engines_.size() == 1) return engines_.front().get();
  for (const auto& one : engines_) {
    if (one->id() == asked.engine) return one.get();
  }
  std::vector<std::string> ids;
  for (const auto& one : engines_) ids.push_back(one->id());
  const std::string known = joined(ids);
  return tl::unexpected(asked.engine.empty()
                            ? problem(400, "which engine? add ?engine= with one of " + known)
                            : problem(404, "no such engine; there is " + known));
}

http::response site::lock_document(const question& asked, std::string_view encoded) {
  const auto name = lock_name(encoded);
  if (!name) return name.error();
  const auto found = chosen(asked);
  if (!found) return found.error();
  engine_view* const engine = *found;
  const auto state = engine->inspect(*name);
  if (!state) return problem(state.error(), engine->told(state.error(), "inspect"));
  json::value made = json::of(*name, *state);
  made["engine"] = engine->id();
  json::value past = json::value::array();
  for (const past_event& one : log_.past_of(engine->number(), *name)) {
    past.push_back(past_value(one));
    past.back().erase("name");
  }
  made["past"] = std::move(past);
  return document(json::line(made));
}

http::response site::details_document(const question& asked) {
  const auto found = chosen(asked);
  if (!found) return found.error();
  engine_view* const engine = *found;
  if (asked.names.size() > most_details) {
    return problem(400, "at most " + std::to_string(most_details) + " names at once");
  }
  const time_point end = clock::now() + details_within;
  json::value all = json::value::array();
  for (const std::string& name : asked.names) {
    if (const auto fine = core::check_name(name); !fine) return problem(400, fine.error().detail);
    const auto state = engine->inspect(name);
    if (!state) return problem(state.error(), engine->told(state.error(), "inspect"));
    all.push_back(json::of(name, *state));
    all.back()["engine"] = engine->id();
    if (clock::now() > end) break;
  }
  return document(json::line({{"locks", std::move(all)}}));
}

http::response site::revoke(const question& asked, std::string_view encoded) {
  if (!may_revoke_) {
    return problem(403, "this server only reads; it revokes with --allow-revoke --token-file F");
  }
  const auto name = lock_name(encoded);
  if (!name) return name.error();
  const auto found = chosen(asked);
  if (!found) return found.error();
  engine_view* const engine = *found;
  const auto taken = engine->revoke(*name, asked.claim);
  if (!taken) return problem(taken.error(), engine->told(taken.error(), "revoke"));
  if (taken->empty()) return problem(404, "nobody holds it");
  for (const spi::holder& one : *taken) {
    tell("revoked over HTTP: '" + *name + "' of " + engine->id() + ", held by " + one.payload +
         " (" + one.claim + ")");
  }
  return document(
      json::line({{"name", *name},
                  {"engine", engine->id()},
                  {"revoked", json::of(*taken)},
                  {"consequence",
                   "no longer renewed: the holders are notified, and nobody else is granted "
                   "before their leases end"}}));
}

http::response site::events(const http::request& request, const question& asked) {
  event_log::filter only;
  if (!asked.names.empty()) only.name = asked.names.front();
  if (!asked.engine.empty()) {
    const auto found = chosen(asked);
    if (!found) return found.error();
    only.engine = (*found)->number();
  }
  const std::shared_ptr<void> place(nullptr, [streams = streams_](void*) { --*streams; });
  if (++*streams_ > most_streams) {
    http::response made = problem(503, "too many event streams; try again later");
    made.headers.emplace_back("Retry-After", "5");
    return made;
  }
  std::uint64_t last = log_.last();
  if (const std::string_view known = request.value_of("Last-Event-ID"); !known.empty()) {
    std::from_chars(known.data(), known.data() + known.size(), last);
  }
  http::response made = document({});
  made.type = "text/event-stream";
  made.stream = [this, only, last, place, first = true, told = event_log::this_second() - 1,
                 wrote = clock::now()](std::string& into) mutable {
    if (std::exchange(first, false)) into += "retry: 2000\n\n";
    std::this_thread::sleep_for(gathering);
    event_log::batch batch = log_.after(last, only, stream_waits);
    last = batch.last;
    if (batch.missed != 0) {
      missed_ += batch.missed;
      into += "event: missed\ndata: {\"count\":" + std::to_string(batch.missed) + "}\n\n";
    }
    into += batch.text;
    const time_point now = clock::now();
    const std::int64_t second = event_log::this_second();
    if (only.name.empty() && second > told) {
      for (const auto& one : engines_) one->look();
      into += statistics(static_cast<std::size_t>(second - std::exchange(told, second)));
    } else if (into.empty() && now - wrote > heartbeat_every) {
      into += ":\n\n";
    }
    if (!into.empty()) wrote = now;
    return !log_.closed();
  };
  return made;
}

}  // namespace holdfast::cli::serve
