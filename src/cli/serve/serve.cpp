// holdfast serve: metrics, JSON, events and a live page over HTTP.
#include "cli/commands.hpp"
#include "cli/http/server.hpp"
#include "cli/output.hpp"
#include "cli/run/service_manager.hpp"
#include "cli/serve/answers.hpp"
#include "cli/serve/engine_view.hpp"
#include "cli/serve/event_log.hpp"
#include "cli/serve/site.hpp"
#include "cli/signals.hpp"
#include "cli/text.hpp"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace holdfast::cli {

namespace {

constexpr std::size_t most_engines = 16;
constexpr std::size_t shortest_token = 16;

struct named_engine {
  std::string id;
  address to;
  credentials with;
};

bool is_id(std::string_view text) {
  return !text.empty() && text.size() <= 32 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

// "main=redis://host" has a name; a URL has none: its scheme ends with ':' before any '='.
outcome<named_engine> named(const context& general, const std::optional<std::string>& given) {
  named_engine made;
  context one = general;
  if (given) {
    one.global.url = given;
    const auto mark = given->find('=');
    if (mark != std::string::npos && mark < given->find(':')) {
      made.id = given->substr(0, mark);
      one.global.url = given->substr(mark + 1);
      if (!is_id(made.id)) {
        return usage(
            "an engine's name has 1 to 32 of [A-Za-z0-9._-], as in --url main=redis://host",
            "serve");
      }
    }
  }
  auto to = find_address(one);
  if (!to) return tl::unexpected(std::move(to.error()));
  made.to = std::move(*to);
  auto with = credentials_for(one, made.to);
  if (!with) return tl::unexpected(std::move(with.error()));
  made.with = std::move(*with);
  return made;
}

// Engines without a name are named after their scheme; several of one scheme are numbered.
outcome<void> name_all(std::vector<named_engine>& engines) {
  for (named_engine& one : engines) {
    if (!one.id.empty()) continue;
    const auto alike =
        std::count_if(engines.begin(), engines.end(),
                      [&](const named_engine& other) { return other.to.engine == one.to.engine; });
    one.id = one.to.engine;
    std::replace(one.id.begin(), one.id.end(), '+', '-');
    if (alike > 1) one.id += "-" + std::to_string(&one - engines.data() + 1);
  }
  std::set<std::string> ids;
  for (const named_engine& one : engines) {
    if (!ids.insert(one.id).second) return usage("two engines have the same name", "serve");
  }
  return {};
}

outcome<std::vector<named_engine>> all_engines(const context& context, const serve_arguments& how) {
  if (how.urls.size() > most_engines) {
    return usage("at most " + std::to_string(most_engines) + " engines", "serve");
  }
  if (how.urls.size() > 1 && (context.global.password_file || context.taken.password)) {
    return usage("one password would go to several engines: put each into its URL", "serve");
  }
  std::vector<named_engine> made;
  if (how.urls.empty()) {
    auto one = named(context, std::nullopt);
    if (!one) return tl::unexpected(std::move(one.error()));
    made.push_back(std::move(*one));
  }
  for (const std::string& url : how.urls) {
    auto one = named(context, url);
    if (!one) return tl::unexpected(std::move(one.error()));
    made.push_back(std::move(*one));
  }
  if (auto fine = name_all(made); !fine) return tl::unexpected(std::move(fine.error()));
  return made;
}

outcome<serve::access_rules> rules_for(const serve_arguments& how) {
  const bool loopback = serve::is_loopback(how.listen.host);
  serve::access_rules made{.loopback = loopback, .hosts = how.hosts, .token = {}};
  if (how.token_file) {
    auto token = read_secret("--token-file", *how.token_file, "serve");
    if (!token) return tl::unexpected(std::move(token.error()));
    // The HTTP library takes '%' and two digits in a header for one character.
    const bool sendable = std::all_of(token->begin(), token->end(),
                                      [](char c) { return c > ' ' && c < '\x7f' && c != '%'; });
    if (token->size() < shortest_token || !sendable) {
      return usage("the token in --token-file must have at least " +
                       std::to_string(shortest_token) +
                       " characters of ASCII without spaces and '%', as from: openssl rand -hex 32",
                   "serve");
    }
    made.token = std::move(*token);
  }
  if (!loopback && made.token.empty()) {
    return usage("--listen " + how.listen.host +
                     " needs --token-file: everybody who can reach it could read here",
                 "serve");
  }
  return made;
}

}  // namespace

// Shutdown, in this order: nothing new is accepted and streams are notified; answers under way are
// finished; the engines' threads end; the connections to the engines are closed.
int serve_engines(const context& context, const serve_arguments& how) {
  const auto rules = rules_for(how);
  if (!rules) return tell(rules.error());
  auto found = all_engines(context, how);
  if (!found) return tell(found.error());
  signal_inbox inbox;  // before any thread exists

  std::vector<std::string> ids;
  for (const named_engine& one : *found) ids.push_back(one.id);
  serve::event_log log(ids);
  std::vector<std::unique_ptr<serve::engine_view>> engines;
  serve::site site(*rules, how.allow_revoke, engines, log);
  const auto made =
      http::listen([&site](const http::request& request) { return site.answer(request); },
                   how.listen.host, how.listen.port);
  if (!made) return tell(cannot_listen(how.listen, made.error()));
  http::server& server = **made;
  for (named_engine& one : *found) {
    engines.push_back(std::make_unique<serve::engine_view>(
        one.id, engines.size(), std::move(one.to), std::move(one.with), log, context.global.level));
  }
  std::jthread serving([&server] { server.run(); });
  const std::string status =
      "serving " + joined(ids) + " at http://" + to_text({how.listen.host, server.port()}) + "/";
  note(status + "\n");
  const service_manager manager;
  manager.tell("READY=1\nSTATUS=" + status);
  const int number =
      inbox.wait_for_end(manager.watchdog_beat(), [&manager] { manager.tell("WATCHDOG=1"); });
  manager.tell("STOPPING=1\nSTATUS=ending");
  log.close();
  server.stop();
  serving.join();
  for (const auto& one : engines) one->stop();
  engines.clear();
  if (context.global.level >= log_level::info) tell("ended by " + signal_name(number));
  return exit_code::ok;
}

}  // namespace holdfast::cli
