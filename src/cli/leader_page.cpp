#include "cli/leader_page.hpp"

#include "cli/http/server.hpp"

#include <holdfast/clock.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>

namespace holdfast::cli {

namespace {

class served_leader_page final : public leader_page {
 public:
  served_leader_page(std::string name, std::string id)
      : name_(std::move(name)), id_(std::move(id)) {}
  ~served_leader_page() override {
    if (server_ != nullptr) server_->stop();
  }

  tl::expected<void, std::string> listen(const listen_address& at) {
    auto made = http::make_server([this](const http::request& asked) { return answer(asked); });
    if (!made) return tl::unexpected(made.error());
    server_ = std::move(*made);
    if (const auto bound = server_->bind(at.host, at.port); !bound) {
      return tl::unexpected("bind, " + bound.error());
    }
    worker_ = std::jthread([this] { server_->run(); });
    return {};
  }
  [[nodiscard]] std::uint16_t port() const noexcept { return server_->port(); }

  void lead(const command_lease& held, duration notice) override {
    const std::lock_guard lock(mutex_);
    held_ = &held;
    notice_ = notice;
  }

  void resign() noexcept override {
    const std::lock_guard lock(mutex_);
    held_ = nullptr;
  }

 private:
  [[nodiscard]] http::response answer(const http::request& asked) const {
    const std::string path = asked.target.substr(0, asked.target.find('?'));
    http::response made;
    made.headers = {{"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}};
    if (asked.method != "GET" && asked.method != "HEAD") {
      made.status = 405;
      made.body = "GET only\n";
    } else if (path == "/healthz") {
      made.body = "ok\n";
    } else if (path == "/leader") {
      leader(made);
    } else {
      made.status = 404;
      made.body = "here are /leader and /healthz\n";
    }
    return made;
  }

  void leader(http::response& into) const {
    nlohmann::ordered_json body{{"leader", false}, {"name", name_}, {"id", id_}};
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
    into.body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }

  // Until the notice begins. With mutex_.
  [[nodiscard]] duration time_left() const {
    if (held_ == nullptr || held_->lost().stop_requested()) return duration{0};
    const time_point end = held_->valid_until();
    if (end == time_point::max()) return forever;
    if (end == time_point::min()) return duration{0};
    // An offer is shorter than the lease that it becomes.
    return end - std::min(notice_, held_->ttl() / 2) - clock::now();
  }

  const std::string name_;
  const std::string id_;
  mutable std::mutex mutex_;
  const command_lease* held_ = nullptr;   // guarded by mutex_
  duration notice_{0};                    // guarded by mutex_
  std::unique_ptr<http::server> server_;  // since listen()
  std::jthread worker_;                   // last: runs the server
};

}  // namespace

outcome<std::unique_ptr<leader_page>> leader_page::open(const listen_address& at, std::string name,
                                                        std::string id) {
  auto page = std::make_unique<served_leader_page>(std::move(name), std::move(id));
  if (const auto bound = page->listen(at); !bound) {
    return tl::unexpected(complaint{exit_code::engine, "cannot listen on " + at.host + ":" +
                                                           std::to_string(at.port) + " (system, " +
                                                           bound.error() + ")"});
  }
  if (at.port == 0) tell("listening on port " + std::to_string(page->port()));
  return page;
}

}  // namespace holdfast::cli
