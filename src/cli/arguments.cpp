#include "cli/arguments.hpp"

#include "cli/hold_options.hpp"
#include "cli/number_text.hpp"
#include "core/lease_token.hpp"
#include "core/limits.hpp"
#include "core/names.hpp"
#include "tools/bench/bench_arguments.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace holdfast::cli {

namespace {

constexpr std::uint32_t most_latch = 1'000'000;
constexpr std::uint32_t most_processes = 64;
constexpr std::uint32_t most_buyers = 20'000;  // each is a thread
constexpr std::uint32_t most_stock = 1'000'000;

using checked = outcome<void>;

// Words before and after "--" are the same where no command follows.
std::vector<std::string> all_words(const raw_arguments& raw) {
  std::vector<std::string> words = raw.words;
  words.insert(words.end(), raw.tail.begin(), raw.tail.end());
  return words;
}

checked one_name(const raw_arguments& raw, std::string& into) {
  const auto words = all_words(raw);
  if (words.size() != 1) return usage("needs one NAME", raw.command);
  into = words.front();
  return check_name(into, raw.command);
}

checked read_latch(const raw_arguments& raw, latch_arguments& into) {
  constexpr std::array<std::pair<std::string_view, latch_arguments::verb>, 4> verbs{
      {{"set", latch_arguments::verb::set},
       {"down", latch_arguments::verb::down},
       {"wait", latch_arguments::verb::wait},
       {"count", latch_arguments::verb::count}}};
  const auto words = all_words(raw);
  if (words.size() < 2) return usage("needs NAME and one of set, down, wait, count", "latch");
  into.name = words[0];
  if (auto fine = check_name(into.name, raw.command); !fine) return fine;
  const auto found = std::find_if(verbs.begin(), verbs.end(),
                                  [&](const auto& one) { return one.first == words[1]; });
  if (found == verbs.end()) return usage("after NAME comes set, down, wait or count", "latch");
  into.what = found->second;
  const bool is_set = into.what == latch_arguments::verb::set;
  const bool is_down = into.what == latch_arguments::verb::down;
  if (words.size() > (is_set || is_down ? 3U : 2U)) return usage("too many arguments", "latch");
  if (is_set && words.size() < 3) return usage("set needs a number", "latch");
  if (words.size() == 3) {
    const auto count = parse_number(words[2], 1, most_latch);
    if (!count) return usage("a latch's count " + count.error(), "latch");
    into.count = *count;
  }
  if (raw.id && !is_down) return usage("--id goes with down", "latch");
  if (raw.id && raw.id->empty()) return usage("--id must not be empty", "latch");
  if (raw.wait && into.what != latch_arguments::verb::wait) {
    return usage("--wait goes with wait", "latch");
  }
  into.id = raw.id.value_or("");
  if (raw.wait) {
    const auto wait = parse_duration(*raw.wait);
    if (!wait) return usage("--wait " + wait.error(), "latch");
    into.wait.wait = *wait;
  }
  return {};
}

// Where the token is: one of an argument, --token and --token-file.
checked read_token(const raw_arguments& raw, token_arguments& into) {
  into.token_file = raw.token_file;
  into.json = raw.json;
  if (raw.token_file && raw.token_file->empty()) {
    return usage("--token-file needs a file", raw.command);
  }
  if (raw.command == "acquire") return {};
  const auto words = all_words(raw);
  const bool argument = raw.command == "renew" && !words.empty();
  if (words.size() > (argument ? 1U : 0U)) {
    return usage(raw.command == "renew" ? "takes one TOKEN" : "a token needs no NAME", raw.command);
  }
  if (raw.force || raw.claim || raw.yes) {
    return usage("--force, --claim and --yes go with a NAME, not with a token", raw.command);
  }
  if (int{argument} + int{raw.token.has_value()} + int{raw.token_file.has_value()} != 1) {
    return usage(raw.command == "renew" ? "needs a TOKEN or --token-file"
                                        : "takes either --token or --token-file",
                 raw.command);
  }
  if (argument) into.token = words.front();
  if (raw.token) into.token = *raw.token;
  if (!raw.token_file && !core::parse_token(into.token)) {
    return usage("that is not a token, or not all of one", raw.command);
  }
  if (!raw.ttl) return {};
  const auto ttl = parse_duration(*raw.ttl);
  if (!ttl) return usage("--ttl " + ttl.error(), raw.command);
  into.ttl = *ttl;
  constexpr core::limits limit;
  if (into.ttl < limit.min_ttl || into.ttl > limit.max_ttl) {
    return usage("--ttl must be from 100ms to 24h", raw.command);
  }
  return {};
}

checked read_look(const raw_arguments& raw, look_arguments& into) {
  into.json = raw.json;
  into.names = raw.names;
  into.force = raw.force;
  into.yes = raw.yes;
  into.all = raw.all;
  into.claim = raw.claim.value_or("");
  const auto words = all_words(raw);
  if (raw.command == "doctor" || raw.command == "redis-library") {
    return words.empty() ? checked{} : usage("takes no name", raw.command);
  }
  if (raw.json && raw.names) return usage("--json and --names exclude each other", raw.command);
  if (raw.command == "ls" || raw.command == "watch") {
    if (words.empty()) return {};
    if (words.size() > 1) return usage("takes at most one name", raw.command);
    into.name = words.front();
    return check_name(into.name, raw.command);
  }
  if (raw.claim && raw.claim->empty()) return usage("--claim needs an id", raw.command);
  if (auto fine = one_name(raw, into.name); !fine) return fine;
  if (raw.command == "release" && !raw.force) {
    return usage(
        "release takes a lock from its holder and needs --force, or the --token of acquire; "
        "revoke is the safe way",
        raw.command);
  }
  return {};
}

checked read_serve(const raw_arguments& raw, serve_arguments& into) {
  if (!all_words(raw).empty()) return usage("takes no name", raw.command);
  if (raw.allow_revoke && !raw.token_file) {
    return usage("--allow-revoke needs --token-file: the token allows to revoke", raw.command);
  }
  into.urls = raw.urls;
  into.listen = raw.listen.value_or(into.listen);
  into.hosts = raw.hosts;
  into.token_file = raw.token_file;
  into.allow_revoke = raw.allow_revoke;
  return {};
}

checked read_count(const std::optional<std::string>& text, const char* option, std::uint32_t most,
                   std::uint32_t& into) {
  if (!text) return {};
  const auto count = parse_number(*text, 1, most);
  if (!count) return usage(std::string(option) + " " + count.error(), "demo flash-sale");
  into = *count;
  return {};
}

checked read_sale(const raw_arguments& raw, sale_arguments& into) {
  if (!all_words(raw).empty()) return usage("takes no name", raw.command);
  if (auto fine = read_count(raw.buyers, "--buyers", most_buyers, into.buyers); !fine) return fine;
  if (auto fine = read_count(raw.stock, "--stock", most_stock, into.stock); !fine) return fine;
  if (auto fine = read_count(raw.processes, "--processes", most_processes, into.processes); !fine) {
    return fine;
  }
  if (!raw.locks) return {};
  const std::vector<std::string> known = std::exchange(into.locks, {});
  for (std::size_t at = 0; at <= raw.locks->size();) {
    const std::size_t end = std::min(raw.locks->find(',', at), raw.locks->size());
    const std::string one = raw.locks->substr(at, end - at);
    if (std::find(known.begin(), known.end(), one) == known.end()) {
      return usage("--lock is a list of none, mutex, fair, rw, semaphore", raw.command);
    }
    if (std::find(into.locks.begin(), into.locks.end(), one) != into.locks.end()) {
      return usage("--lock lists a kind twice", raw.command);
    }
    into.locks.push_back(one);
    at = end + 1;
  }
  return {};
}

checked read_global(const raw_arguments& raw, global_arguments& into) {
  constexpr std::array<std::string_view, 5> levels{"off", "error", "warn", "info", "debug"};
  if (raw.urls.size() > 1 && raw.command != "serve") {
    return usage("--url takes one value and can be given once", raw.command);
  }
  if (!raw.urls.empty()) into.url = raw.urls.front();
  into.space = raw.space;
  into.password_file = raw.password_file;
  if (raw.log_level) {
    const auto found = std::find(levels.begin(), levels.end(), *raw.log_level);
    if (found == levels.end()) {
      return usage("--log-level is off, error, warn, info or debug", raw.command);
    }
    into.level = static_cast<log_level>(found - levels.begin());
  }
  return {};
}

}  // namespace

outcome<void> check_name(const std::string& name, std::string_view topic) {
  if (auto fine = core::check_name(name); !fine) return usage(fine.error().detail, topic);
  return {};
}

outcome<arguments> understand(const raw_arguments& raw) {
  arguments made;
  made.command = raw.command;
  if (auto fine = read_global(raw, made.global); !fine) return tl::unexpected(fine.error());
  checked fine;
  if (raw.command == "run" || raw.command == "elect" || raw.command == "multi run") {
    fine = read_hold(raw, made.hold);
  } else if (raw.command == "acquire") {
    fine = read_hold(raw, made.hold);
    if (fine) fine = read_token(raw, made.token);
  } else if (raw.command == "renew" ||
             (raw.command == "release" && (raw.token || raw.token_file))) {
    fine = read_token(raw, made.token);
  } else if (raw.command == "latch") {
    fine = read_latch(raw, made.latch);
  } else if (raw.command == "serve") {
    fine = read_serve(raw, made.serve);
  } else if (raw.command == "demo flash-sale") {
    fine = read_sale(raw, made.sale);
  } else if (raw.command == "bench") {
    fine = read_bench(raw, made.bench);
  } else if (raw.command == "torture") {
    fine = read_torture(raw, made.torture);
  } else if (raw.command == "multi" || raw.command == "demo") {
    fine = usage(raw.command == "multi" ? "multi is followed by run: multi run NAME NAME... -- CMD"
                                        : "which demo? there is one, a sale without and with "
                                          "locks; run holdfast demo flash-sale",
                 raw.command);
  } else if (raw.command.empty()) {
    fine = usage("a command is missing");
  } else {
    fine = read_look(raw, made.look);
  }
  if (!fine) return tl::unexpected(fine.error());
  return made;
}

tl::expected<listen_address, std::string> parse_listen_address(const std::string& text) {
  const auto malformed = [] {
    return tl::unexpected(std::string("is written HOST:PORT, as in 127.0.0.1:4040 or [::1]:4040"));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return malformed();
  std::string host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (host.empty() || bracketed != (host.find(':') != std::string::npos)) return malformed();
  const auto port = parse_number(text.substr(colon + 1), 0, 65'535);
  if (!port) return tl::unexpected("has a port that " + port.error());
  return listen_address{std::move(host), static_cast<std::uint16_t>(*port)};
}

}  // namespace holdfast::cli
