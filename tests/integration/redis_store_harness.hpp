// What the tests of the Redis store share: a server, a proxy in front of it, clients through the
// proxy and directly.
#pragma once

#include "support/eventually.hpp"
#include "support/fault_proxy.hpp"
#include "support/redis_server.hpp"

#include <holdfast/holdfast.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <utility>

namespace holdfast::test {

using namespace std::chrono_literals;

inline std::string redis_url(std::uint16_t port, const std::string& rest = {}) {
  return "redis://127.0.0.1:" + std::to_string(port) + rest;
}

inline client open_client(const std::string& url) {
  auto opened = client::open(url);
  if (!opened) throw lock_error(opened.error());
  return *std::move(opened);
}

template <class T>
std::string told(const result<T>& answer) {
  return answer ? "ok" : std::string(describe(answer.error().code));
}

inline std::size_t line_length(const client& from, const std::string& name) {
  const auto state = from.inspect(name);
  return state ? state->waiters.size() : 0;
}

[[nodiscard]] inline bool is_free(const client& from, const std::string& name) {
  return eventually([&] {
    const auto state = from.inspect(name);
    return state && state->holders.empty() && state->waiters.empty();
  });
}

class redis_store_test : public testing::Test {
 protected:
  explicit redis_store_test(redis_options options = {}) : server(std::move(options)) {}

  redis_server server;
  fault_proxy proxy{server.port()};
  client through = open_client(redis_url(proxy.port()));
  client past = open_client(redis_url(server.port()));

  // Acquires in a separate thread, and is in the queue when this returns.
  [[nodiscard]] std::future<result<lease>> waits_for(const client& with, const std::string& name,
                                                     std::size_t place = 1) {
    auto waiting = in_thread([&with, name] {
      mutex lock(with, name, {.ttl = 10s});
      return lock.acquire({.wait = patience});
    });
    EXPECT_TRUE(eventually([&] { return line_length(past, name) >= place; }));
    return waiting;
  }
};

}  // namespace holdfast::test
