// What every contract test starts with: a fresh engine, clients of it, and ways to inspect it.
#pragma once

#include "contract/stores.hpp"
#include "support/eventually.hpp"

#include <holdfast/holdfast.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace holdfast::test {

using namespace std::chrono_literals;

// One store: the base of all fixtures, whatever else they are parameterised by.
class engine_fixture {
 public:
  explicit engine_fixture(const store_setup& setup) : engine_(setup.make()) {}

  // A separate client: another process's view.
  [[nodiscard]] client open(client_options options = {}) const {
    auto opened = client::open(patient_url(), std::move(options));
    if (!opened) throw lock_error(opened.error());
    return *std::move(opened);
  }
  [[nodiscard]] const std::string& url() const noexcept { return engine_.url; }

  // Takes it from its holder, immediately: by force, or behind the store's back if it has no such
  // verb.
  void take_away(client by, const std::string& name) const;

 private:
  // A try allows a server one second, which is not much on a busy machine.
  [[nodiscard]] std::string patient_url() const {
    const std::string& url = engine_.url;
    if (url.find("://") == std::string::npos) return url;  // no server
    return url + (url.find('?') == std::string::npos ? "?" : "&") + "connect_timeout=30s";
  }

  fresh_engine engine_;
};

class store_test : public testing::TestWithParam<store_setup>, public engine_fixture {
 protected:
  store_test() : engine_fixture(GetParam()) {}
};

inline std::string name_of_store(const testing::TestParamInfo<store_setup>& info) {
  return info.param.name;
}

// Makes a fixture's suite and runs it on every store.
#define HOLDFAST_ON_EVERY_STORE(suite)                                                   \
  class suite : public holdfast::test::store_test {};                                    \
  INSTANTIATE_TEST_SUITE_P(on, suite, testing::ValuesIn(holdfast::test::store_setups()), \
                           holdfast::test::name_of_store)

// --- looking at the engine -----------------------------------------------------------------------

inline std::size_t waiters(const client& from, const std::string& name) {
  const auto state = from.inspect(name);
  return state ? state->waiters.size() : 0;
}

inline std::size_t holders(const client& from, const std::string& name) {
  const auto state = from.inspect(name);
  return state ? state->holders.size() : 0;
}

// False: waiters are not visible, and no order is promised.
[[nodiscard]] inline bool keeps_line(const client& from) { return from.caps().reports_waiters; }

// True if there is no queue to look at. A waiter may then arrive after the test has continued,
// which changes none of the promised outcomes.
[[nodiscard]] inline bool has_waiters(const client& from, const std::string& name,
                                      std::size_t count) {
  if (!keeps_line(from)) return true;
  return eventually([&] { return waiters(from, name) == count; });
}

// Options with which a holder soon learns that its lock was taken away: if nothing is pushed, or
// before the connection for pushes exists, from the next renewal. An answer may take a third of it,
// even on a machine that pauses.
inline constexpr lock_options told_soon{.ttl = 12s};

// Neither a holder nor a waiter: nothing was left behind.
[[nodiscard]] inline bool becomes_free(const client& from, const std::string& name) {
  return eventually([&] {
    const auto state = from.inspect(name);
    return state && state->holders.empty() && state->waiters.empty();
  });
}

// --- answers -------------------------------------------------------------------------------------

template <class T>
std::string code_of(const result<T>& answer) {
  return answer ? "ok" : std::string(describe(answer.error().code));
}

// EXPECT_THAT(answer, fails_with(errc::busy)).
MATCHER_P(fails_with, code, std::string("fails with ") + std::string(describe(code))) {
  *result_listener << code_of(arg);
  return !arg && arg.error().code == code;
}

MATCHER(succeeds, "succeeds") {
  *result_listener << (arg ? std::string("ok") : arg.error().message());
  return static_cast<bool>(arg);
}

// The code of the lock_error that a call throws; "nothing" if it throws none.
template <class Call>
std::string thrown_by(Call&& call) {
  try {
    std::forward<Call>(call)();
  } catch (const lock_error& thrown) {
    return std::string(describe(static_cast<errc>(thrown.code().value())));
  }
  return "nothing";
}

// A waiter is passed over until the engine can reach its client (G7.1), whose connection for pushes
// may be made later.
template <class Try>
[[nodiscard]] bool becomes_busy(Try&& attempt) {
  return eventually([&] {
    const auto answer = attempt();
    return !answer && answer.error().code == errc::busy;
  });
}

inline void engine_fixture::take_away(client by, const std::string& name) const {
  EXPECT_THAT(by.revoke(name, revocation::force), succeeds());
}

// If the store does not report holders, an election is refused; the test then ends.
[[nodiscard]] inline bool elects(const client& from) {
  if (from.caps().reports_holders) return true;
  election scheduler(from, "scheduler", "host");
  EXPECT_THAT(scheduler.campaign({.wait = 0s}), fails_with(errc::unsupported));
  EXPECT_THAT(scheduler.leader(), fails_with(errc::unsupported));
  EXPECT_THAT(scheduler.observe([](const std::optional<leader_info>&) {}),
              fails_with(errc::unsupported));
  return false;
}

// A callback form's answer as a future. A test that fails may end before the answer comes.
template <class T>
class reply {
  using promise = std::promise<result<T>>;
  const std::shared_ptr<promise> promise_ = std::make_shared<promise>();

 public:
  std::future<result<T>> future = promise_->get_future();

  auto callback() const {
    return [to = promise_](result<T> answer) { to->set_value(std::move(answer)); };
  }
};

}  // namespace holdfast::test
