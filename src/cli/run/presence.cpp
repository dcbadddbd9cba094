#include "cli/run/presence.hpp"

#include "cli/inspection.hpp"
#include "cli/text.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::cli {

leader_page::leader_page(std::string name, std::string id)
    : name_(std::move(name)), id_(std::move(id)) {}

leader_page::~leader_page() {
  if (server_ != nullptr) server_->stop();
}

outcome<void> leader_page::listen(const listen_address& at) {
  auto made =
      http::listen([this](const http::request& asked) { return answer(asked); }, at.host, at.port);
  if (!made) return tl::unexpected(cannot_listen(at, made.error()));
  server_ = std::move(*made);
  worker_ = std::jthread([this] { server_->run(); });
  if (at.port == 0) tell("listening on port " + std::to_string(server_->port()));
  return {};
}

void leader_page::lead(const command_lease& held, duration notice) {
  const std::lock_guard lock(mutex_);
  held_ = &held;
  notice_ = notice;
}

void leader_page::resign() noexcept {
  const std::lock_guard lock(mutex_);
  held_ = nullptr;
}

http::response leader_page::answer(const http::request& asked) const {
  const std::string path = asked.target.substr(0, asked.target.find('?'));
  http::response made;
  made.headers = {{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}};
  if (asked.method != "GET" && asked.method != "HEAD") {
    made.status = 405;
    made.body = "GET only\n";
  } else if (path == "/healthz") {
    made.body = "ok\n";
  } else if (path == "/leader") {
    tell_leader(made);
  } else {
    made.status = 404;
    made.body = "here are /leader and /healthz\n";
  }
  return made;
}

void leader_page::tell_leader(http::response& into) const {
  json::value body{{"leader", false}, {"name", name_}, {"id", id_}};
  {
    const std::lock_guard lock(mutex_);
    const duration left = time_left();
    if (left > duration{0}) {
      body["leader"] = true;
      body["term"] = held_->fence().value();
      body["fence"] = held_->fence().value();
      if (left != forever) body["valid_ms"] = left / std::chrono::milliseconds(1);
    }
  }
  into.status = body["leader"] ? 200 : 503;
  into.type = "application/json";
  into.body = json::line(body);
}

// Until the notice begins. With mutex_.
duration leader_page::time_left() const {
  if (held_ == nullptr || held_->lost().stop_requested()) return duration{0};
  const time_point end = held_->valid_until();
  if (end == time_point::max()) return forever;
  if (end == time_point::min()) return duration{0};
  // An offer is shorter than the lease that it becomes.
  return end - std::min(notice_, held_->ttl() / 2) - clock::now();
}

namespace {

// While waiting: how often the manager is notified, and how much more time it is asked for.
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
  // A silent engine delays a look, and what the watchdog hears, for so long. A candidate is watched already.
  constexpr duration longest_look = std::chrono::seconds(5);
  if (how_.elects && watchdog_beat() <= longest_look) return text;
  const auto seen = client.inspect(how_.names.front());
  if (!seen) return text;
  if (!seen->holders.empty() && !seen->holders.front().payload.empty()) {
    text += ", held by " + plain(seen->holders.front().payload);
  }
  if (!seen->waiters.empty()) text += ", " + std::to_string(seen->waiters.size()) + " waiting";
  return text;
}

duration presence::watchdog_beat() const {
  return how_.pass_notify ? forever : manager_.watchdog_beat();
}

void presence::work(const std::stop_token& stop) {
  const duration watchdog = watchdog_beat();
  time_point look_at = clock::now();
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    const auto client = seen_by_;
    lock.unlock();
    if (watchdog != forever) manager_.tell("WATCHDOG=1");
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
