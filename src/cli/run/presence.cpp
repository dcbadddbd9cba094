#include "cli/run/presence.hpp"

#include "cli/text.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::cli {

namespace {

// While it waits: how often the manager is told, and for how long it is to be patient each time.
constexpr duration waiting_beat = std::chrono::seconds(10);
constexpr std::string_view more_time = "\nEXTEND_TIMEOUT_USEC=30000000";

}  // namespace

presence::presence(const hold_arguments& how, std::string what)
    : how_(how), what_(std::move(what)) {}

presence::~presence() {
  if (heart_.joinable()) {
    heart_.request_stop();
    changed_.notify_all();
  }
}

outcome<void> presence::open() {
  if (!how_.listen) return {};
  page_.emplace(how_.names.front(), how_.id);
  return page_->listen(*how_.listen);
}

void presence::waiting(const client& client) {
  if (!manager_.exists()) return;
  const bool ready = how_.elects && !how_.pass_notify;
  manager_.tell((ready ? "READY=1\nSTATUS=waiting for " : "STATUS=waiting for ") + what_);
  {
    const std::lock_guard lock(mutex_);
    seen_by_ = client;
  }
  heart_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

void presence::holding(const command_lease& held) {
  if (page_) page_->lead(held, how_.lock.notice);
  if (!manager_.exists()) return;
  {
    const std::lock_guard lock(mutex_);
    seen_by_.reset();
  }
  changed_.notify_all();
  manager_.tell((how_.pass_notify ? "STATUS=" : "READY=1\nSTATUS=") +
                std::string(how_.elects ? "leading " : "holding ") + what_);
}

void presence::ending(const std::string& status) noexcept {
  if (page_) page_->resign();
  manager_.tell("STOPPING=1\nSTATUS=" + status + " " + what_);
}

// "waiting for 'nightly', held by host:4711:backup.sh, 2 waiting"
std::string presence::line_text(const client& client) const {
  std::string text = "STATUS=waiting for " + what_;
  const auto seen = client.inspect(how_.names.front());
  if (!seen) return text;
  if (!seen->holders.empty() && !seen->holders.front().payload.empty()) {
    text += ", held by " + plain(seen->holders.front().payload);
  }
  if (!seen->waiters.empty()) text += ", " + std::to_string(seen->waiters.size()) + " waiting";
  return text;
}

void presence::work(const std::stop_token& stop) {
  const bool watched = manager_.watchdog() && !how_.pass_notify;
  // Twice as often as it must be heard.
  const duration watchdog = watched ? *manager_.watchdog() / 2 : forever;
  time_point look_at = clock::now();
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const auto client = seen_by_;
    lock.unlock();
    if (watched) manager_.tell("WATCHDOG=1");
    if (client && clock::now() >= look_at) {
      manager_.tell(line_text(*client) + std::string(how_.elects ? "" : more_time));
      look_at = clock::now() + waiting_beat;
    }
    lock.lock();
    const duration pause = client ? std::min(watchdog, waiting_beat) : watchdog;
    const auto over = [&] { return client.has_value() && !seen_by_; };
    if (pause == forever) {
      changed_.wait(lock, stop, over);
    } else {
      changed_.wait_for(lock, stop, pause, over);
    }
  }
}

}  // namespace holdfast::cli
