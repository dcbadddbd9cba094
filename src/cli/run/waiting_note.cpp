#include "cli/run/waiting_note.hpp"

#include "cli/text.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace holdfast::cli {

namespace {

constexpr duration quiet_at_first = std::chrono::seconds(1);
constexpr duration between_lines = std::chrono::seconds(1);
// In between, the time is counted here: a waiter should cost the engine next to nothing.
constexpr duration between_looks = std::chrono::seconds(5);

std::string seconds_text(duration span) {
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(span).count();
  if (whole < 60) return std::to_string(whole) + " s";
  const auto minutes = whole / 60;
  if (minutes < 60) return std::to_string(minutes) + " min " + std::to_string(whole % 60) + " s";
  return std::to_string(minutes / 60) + " h " + std::to_string(minutes % 60) + " min";
}

// A line that is rewritten would interfere with what is typed at the shell.
bool in_foreground() noexcept { return ::tcgetpgrp(STDERR_FILENO) == ::getpgrp(); }

}  // namespace

struct waiting_note::sight {
  std::string name;
  std::optional<resource_state> state;  // none: nobody holds it, or the engine did not answer
  time_point at;
};

waiting_note::waiting_note(const client& client, const hold_arguments& how)
    : client_(client),
      names_(how.names),
      gives_up_(how.acquire.wait >= time_point::max() - clock::now()
                    ? time_point::max()
                    : clock::now() + how.acquire.wait) {
  const bool waits = how.acquire.wait > duration{0};
  if (!waits || how.quiet || !status_line::possible()) return;
  writer_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

waiting_note::~waiting_note() { over(); }

void waiting_note::over() noexcept {
  writer_.request_stop();
  const std::lock_guard lock(mutex_);
  over_ = true;
  line_.wipe();
}

void waiting_note::work(const std::stop_token& stop) {
  time_point next = clock::now() + quiet_at_first;
  while (pause_until(stop, next)) {
    const sight seen = look(stop);
    const time_point look_again = seen.at + between_looks;
    while (next < look_again) {
      show(text(seen));
      next = clock::now() + between_lines;
      if (!pause_until(stop, next)) return;
    }
  }
}

bool waiting_note::pause_until(const std::stop_token& stop, time_point when) {
  std::unique_lock lock(mutex_);
  const duration rest = when - clock::now();
  changed_.wait_for(lock, stop, rest, [this] { return over_; });
  return !over_ && !stop.stop_requested();
}

// Of several locks, the first that is held.
waiting_note::sight waiting_note::look(const std::stop_token& stop) const {
  for (const std::string& name : names_) {
    if (stop.stop_requested()) break;
    auto state = client_.inspect(name);
    if (!state || (state->holders.empty() && !state->blocked_for)) continue;
    return {name, std::move(*state), clock::now()};
  }
  return {names_.front(), std::nullopt, clock::now()};
}

std::string waiting_note::text(const sight& seen) const {
  const time_point now = clock::now();
  std::string line = "waiting for " + plain(seen.name);
  if (seen.state && seen.state->blocked_for && seen.state->holders.empty()) {
    line += ", blocked by its lock delay";
  } else if (seen.state) {
    const holder& first = seen.state->holders.front();
    line += ", held by " + plain(first.payload.empty() ? first.claim : first.payload);
    if (first.held_for) line += " for " + seconds_text(*first.held_for + (now - seen.at));
    const std::size_t others = seen.state->holders.size() - 1;
    if (others > 0) {
      line += " and " + std::to_string(others) + (others == 1 ? " other" : " others");
    }
  }
  if (gives_up_ != time_point::max()) {
    line += "; giving up in " + seconds_text(std::max(duration{0}, gives_up_ - now));
  }
  return line;
}

void waiting_note::show(const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (over_) return;
  if (in_foreground()) {
    line_.show(line);
  } else if (!std::exchange(told_, true)) {
    tell(line);
  }
}

}  // namespace holdfast::cli
