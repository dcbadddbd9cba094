// Memory stores for tests: opened by URL, with a wake-up that records its notifications.
#pragma once

#include "ledger_harness.hpp"
#include "stores/memory/memory_store.hpp"

#include <holdfast/spi/url.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::memory {

inline std::shared_ptr<spi::store> open_or_fail(const std::string& url,
                                                std::shared_ptr<spi::runtime> runtime) {
  const auto parsed = spi::parse_url(url);
  EXPECT_TRUE(parsed.has_value()) << url;
  auto opened = open_memory(parsed.value(), std::move(runtime));
  EXPECT_TRUE(opened.has_value()) << url;
  return opened.value();
}

// The answer of a verb, which must have arrived before the call returned.
template <class T, class Call>
result<T> answer_of(Call&& call) {
  std::optional<result<T>> answer;
  std::forward<Call>(call)(spi::completion<T>([&answer](result<T> given) {
    EXPECT_FALSE(answer.has_value()) << "answered twice";
    answer = std::move(given);
  }));
  EXPECT_TRUE(answer.has_value()) << "not answered";
  return answer ? *std::move(answer) : failure(errc::unavailable, "not answered");
}

inline result<spi::outcome> attempt(spi::store& store, const spi::claim_ptr& claim,
                                    std::shared_ptr<spi::wakeup> wakeup) {
  return answer_of<spi::outcome>([&](auto done) {
    store.attempt(claim, std::move(wakeup), spi::op_context{}, std::move(done));
  });
}
inline result<spi::departure> leave(spi::store& store, const spi::claim_ptr& claim,
                                    bool unanswered = false) {
  const spi::op_context context{.deadline = {}, .unanswered = unanswered};
  return answer_of<spi::departure>(
      [&](auto done) { store.leave(claim, context, std::move(done)); });
}
inline result<std::vector<spi::renewal>> renew(spi::store& store,
                                               std::vector<spi::claim_ptr> claims) {
  return answer_of<std::vector<spi::renewal>>(
      [&](auto done) { store.renew(std::move(claims), spi::op_context{}, std::move(done)); });
}
inline result<std::vector<spi::holder>> revoke(spi::store& store, spi::revocation how,
                                               const std::string& name = "stock") {
  return answer_of<std::vector<spi::holder>>([&](auto done) {
    store.revoke({"", name}, how, "", spi::op_context{}, std::move(done));
  });
}
inline bool is_granted(const result<spi::outcome>& answer) {
  return answer && std::holds_alternative<spi::granted>(*answer);
}

class noting_wakeup : public spi::wakeup {
 public:
  void notify(std::optional<spi::granted> grant) noexcept override {
    notes.emplace_back(grant ? "granted" : "freed");
    last_grant = grant;
    if (on_notify) on_notify();
  }
  void wanted() noexcept override { notes.emplace_back("wanted"); }
  void gone(const error& why) noexcept override {
    notes.emplace_back("gone");
    last_error = why;
  }

  std::vector<std::string> notes;
  std::optional<spi::granted> last_grant;
  error last_error;
  std::function<void()> on_notify;
};

}  // namespace holdfast::memory
