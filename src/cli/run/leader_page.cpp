#include "cli/run/leader_page.hpp"

#include "cli/inspection.hpp"

#include <holdfast/clock.hpp>

#include <algorithm>
#include <utility>

namespace holdfast::cli {

leader_page::leader_page(std::string name, std::string id)
    : name_(std::move(name)), id_(std::move(id)) {}

leader_page::~leader_page() {
  if (server_ != nullptr) server_->stop();
}

outcome<void> leader_page::listen(const listen_address& at) {
  if (!http::in_this_build) {
    return tl::unexpected(complaint{
        exit_code::engine,
        "--listen is not in this build (system, cpp-httplib was missing when it was compiled)"});
  }
  const auto cannot = [&](const std::string& why) {
    return tl::unexpected(complaint{
        exit_code::engine,
        "cannot listen on " + at.host + ":" + std::to_string(at.port) + " (system, " + why + ")"});
  };
  auto made = http::make_server([this](const http::request& asked) { return answer(asked); });
  if (!made) return cannot(made.error());
  server_ = std::move(*made);
  if (const auto bound = server_->bind(at.host, at.port); !bound) {
    return cannot("bind, " + bound.error());
  }
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

}  // namespace holdfast::cli
