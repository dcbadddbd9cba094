#include "cli/hold_options.hpp"

#include "cli/number_text.hpp"
#include "core/limits.hpp"
#include "core/names.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace holdfast::cli {

namespace {

using checked = outcome<void>;

constexpr duration longest_grace = std::chrono::seconds(5);
constexpr duration least_at_most = std::chrono::seconds(1);
constexpr std::uint32_t most_permits = 1'000'000;

checked read_duration(const std::optional<std::string>& text, const char* option,
                      const std::string& topic, duration& into) {
  if (!text) return {};
  const auto span = parse_duration(*text);
  if (!span) return usage(std::string(option) + " " + span.error(), topic);
  into = *span;
  return {};
}

// Before the grace, which it bounds.
checked read_at_most(const raw_arguments& raw, hold_arguments& into) {
  if (!raw.at_most) return {};
  if (auto fine = read_duration(raw.at_most, "--at-most", raw.command, into.lock.max_hold); !fine) {
    return fine;
  }
  if (into.lock.max_hold < least_at_most) {
    return usage("--at-most must be at least 1s", raw.command);
  }
  return {};
}

checked read_times(const raw_arguments& raw, hold_arguments& into) {
  const core::limits limit;
  if (auto fine = read_duration(raw.wait, "--wait", raw.command, into.acquire.wait); !fine) {
    return fine;
  }
  if (auto fine = read_duration(raw.ttl, "--ttl", raw.command, into.lock.ttl); !fine) return fine;
  if (into.lock.ttl < limit.min_ttl || into.lock.ttl > limit.max_ttl) {
    return usage("--ttl must be from 100ms to 24h", raw.command);
  }
  if (auto fine = read_at_most(raw, into); !fine) return fine;
  into.grace = std::min({longest_grace, into.lock.ttl / 4, into.lock.max_hold / 4});
  if (auto fine = read_duration(raw.grace, "--grace", raw.command, into.grace); !fine) return fine;
  if (into.grace >= into.lock.ttl / 2) {
    return usage("--grace must be less than half of --ttl, which is " + to_text(into.lock.ttl),
                 raw.command);
  }
  if (into.grace >= into.lock.max_hold / 2) {
    return usage("--grace must be less than half of --at-most", raw.command);
  }
  into.lock.notice = std::max(into.grace, kill_margin(into.lock.ttl));
  if (auto fine = read_duration(raw.at_least, "--at-least", raw.command, into.at_least); !fine) {
    return fine;
  }
  if (into.at_least > into.lock.max_hold) {
    return usage("--at-least must not exceed --at-most", raw.command);
  }
  if (auto fine = read_duration(raw.lock_delay, "--lock-delay", raw.command, into.lock.lock_delay);
      !fine) {
    return fine;
  }
  if (into.lock.lock_delay > limit.max_ttl) {
    return usage("--lock-delay must be at most 24h", raw.command);
  }
  return {};
}

checked read_kind(const raw_arguments& raw, hold_arguments& into) {
  into.shared = raw.shared;
  into.lock.fair = raw.fair;
  into.lock.renew = raw.no_renew ? renew::never : renew::automatic;
  into.quiet = raw.quiet;
  into.pass_url = raw.pass_url;
  into.pass_notify = raw.pass_notify;
  into.elects = raw.command == "elect";
  if (raw.busy_exit_code) {
    const auto code = parse_number(*raw.busy_exit_code, 0, 255);
    if (!code) return usage("--busy-exit-code " + code.error(), raw.command);
    into.busy_exit_code = static_cast<int>(*code);
  }
  if (!raw.permits && !raw.max) return {};
  if (raw.shared) return usage("--shared and --permits exclude each other", raw.command);
  if (!raw.max) return usage("--permits needs --max, the total number of permits", raw.command);
  const auto max = parse_number(*raw.max, 1, most_permits);
  if (!max) return usage("--max " + max.error(), raw.command);
  into.max = *max;
  if (raw.permits) {
    const auto permits = parse_number(*raw.permits, 1, most_permits);
    if (!permits) return usage("--permits " + permits.error(), raw.command);
    into.permits = *permits;
  }
  if (into.permits > *into.max) return usage("--permits must not exceed --max", raw.command);
  return {};
}

// NAME... -- CMD ARGS...; a name that begins with '-' stands between two: -- -x -- CMD.
checked read_words(const raw_arguments& raw, hold_arguments& into) {
  if (raw.command == "acquire") {
    into.names = raw.words;
    into.names.insert(into.names.end(), raw.tail.begin(), raw.tail.end());
    if (into.names.size() != 1) return usage("needs one NAME", raw.command);
    return check_name(into.names.front(), raw.command);
  }
  const bool several = raw.command == "multi run";
  if (!raw.split) return usage("the command to run comes after --", raw.command);
  into.names = raw.words;
  into.command = raw.tail;
  const auto second = std::find(raw.tail.begin(), raw.tail.end(), "--");
  if (into.names.empty() && second != raw.tail.end()) {
    into.names.assign(raw.tail.begin(), second);
    into.command.assign(second + 1, raw.tail.end());
  }
  if (into.names.empty()) return usage("a NAME is missing before --", raw.command);
  if (!several && into.names.size() > 1) {
    return usage("takes one NAME before --; multi run takes several", raw.command);
  }
  for (const std::string& name : into.names) {
    if (auto fine = check_name(name, raw.command); !fine) return fine;
  }
  if (std::set(into.names.begin(), into.names.end()).size() != into.names.size()) {
    return usage("the same NAME is given twice", raw.command);
  }
  if (into.command.empty()) return usage("a command to run is missing after --", raw.command);
  return {};
}

checked read_id(const raw_arguments& raw, hold_arguments& into) {
  if (!raw.id) return {};
  if (raw.id->empty()) return usage("--id must not be empty", raw.command);
  if (raw.id->size() > core::longest_payload) {
    return usage("--id has at most 256 bytes", raw.command);
  }
  if (core::clean_payload(*raw.id) != *raw.id) {
    return usage("--id must be UTF-8 without control characters", raw.command);
  }
  into.id = *raw.id;
  return {};
}

}  // namespace

duration kill_margin(duration ttl) noexcept {
  return std::min<duration>(std::chrono::milliseconds(100), ttl / 4);
}

outcome<void> read_hold(const raw_arguments& raw, hold_arguments& into) {
  if (auto fine = read_times(raw, into); !fine) return fine;
  if (auto fine = read_kind(raw, into); !fine) return fine;
  if (auto fine = read_id(raw, into); !fine) return fine;
  if (raw.listen) {
    auto at = parse_listen_address(*raw.listen);
    if (!at) return usage("--listen " + at.error(), raw.command);
    into.listen = *std::move(at);
  }
  return read_words(raw, into);
}

}  // namespace holdfast::cli
