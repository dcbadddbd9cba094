// What the tests of the Redis client layer share: a reactor with its network, connections to a
// port, and calls that wait for their answer.
#pragma once

#include "net/connector.hpp"
#include "stores/redis/client/command.hpp"
#include "stores/redis/client/connection.hpp"
#include "support/also_longer.hpp"
#include "support/eventually.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace holdfast::test {

using namespace std::chrono_literals;
using redis::command;
using redis::connection;

// For commands that must be answered: never reached if all is well.
inline constexpr auto ample = 60s;

inline redis::server_options options_for(std::uint16_t port) {
  redis::server_options options;
  options.where = {"127.0.0.1", port, ""};
  return options;
}

// An answer that is still to come. May be destroyed before that.
class awaited {
 public:
  explicit awaited(std::shared_ptr<spi::reactor> reactor)
      : state_(std::make_shared<state>(std::move(reactor))) {}

  [[nodiscard]] spi::completion<redis::reply> completion() const {
    return [kept = state_](result<redis::reply> answer) {
      if (kept->answer) ADD_FAILURE() << "answered twice";
      kept->answer = std::move(answer);
      kept->done.store(true);
      kept->reactor->wake(kept->done);
    };
  }
  [[nodiscard]] bool there() const { return state_->done.load(); }
  // Drives the reactor until the answer has arrived.
  [[nodiscard]] const result<redis::reply>& get() const {
    state_->reactor->wait(state_->done);
    return *state_->answer;
  }

 private:
  struct state {
    explicit state(std::shared_ptr<spi::reactor> with) : reactor(std::move(with)) {}
    const std::shared_ptr<spi::reactor> reactor;
    std::atomic<bool> done{false};
    std::optional<result<redis::reply>> answer;
  };
  std::shared_ptr<state> state_;
};

class client_side {
 public:
  client_side() : reactor_(spi::make_reactor()), net_(net::make_network(reactor_)) {}
  ~client_side() {
    for (const auto& one : made_) one->close();
  }
  client_side(const client_side&) = delete;
  client_side& operator=(const client_side&) = delete;

  [[nodiscard]] const std::shared_ptr<spi::reactor>& reactor() const noexcept { return reactor_; }
  [[nodiscard]] const net::network& network() const noexcept { return net_; }

  std::shared_ptr<connection> connect(redis::server_options options, connection::events tell = {}) {
    made_.push_back(connection::make(net_, std::move(options), std::move(tell)));
    return made_.back();
  }
  std::shared_ptr<connection> connect(std::uint16_t port) { return connect(options_for(port)); }

  [[nodiscard]] awaited send(const std::shared_ptr<connection>& to, const command& what,
                             duration limit = ample) const {
    awaited answer(reactor_);
    to->send(what, clock::now() + limit, answer.completion());
    return answer;
  }
  [[nodiscard]] result<redis::reply> call(const std::shared_ptr<connection>& to,
                                          const command& what, duration limit = ample) const {
    return send(to, what, limit).get();
  }

 private:
  std::shared_ptr<spi::reactor> reactor_;
  net::network net_;
  std::vector<std::shared_ptr<connection>> made_;
};

// The words of a status or string; else what went wrong, so that a failed comparison shows it.
inline std::string words(const result<redis::reply>& answer) {
  if (!answer) return "error: " + answer.error().message();
  if (answer->is_error()) return "-" + answer->text;
  if (answer->is(redis::reply::type::integer)) return std::to_string(answer->integer);
  return std::string(answer->words());
}

inline std::optional<errc> code(const result<redis::reply>& answer) {
  return answer ? std::nullopt : std::optional(answer.error().code);
}

// `call` takes a limit: no server can be reached, and the reason is reported once there was time to
// find it out.
template <class Call>
testing::AssertionResult unavailable_for(const std::string& reason, duration first,
                                         const Call& call) {
  return also_longer(first, [&](duration limit) {
    const result<redis::reply> answer = call(limit);
    EXPECT_EQ(code(answer), errc::unavailable) << words(answer);
    const std::string detail = answer ? std::string() : answer.error().detail;
    if (detail.find(reason) != std::string::npos) return testing::AssertionSuccess();
    return testing::AssertionFailure() << detail;
  });
}

}  // namespace holdfast::test
