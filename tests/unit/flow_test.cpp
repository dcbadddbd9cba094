// Tasks that end with the error of what they await.
#include "stores/flow.hpp"

#include <gtest/gtest.h>

#include <coroutine>
#include <deque>
#include <memory>
#include <string>
#include <utility>

namespace holdfast::stores {
namespace {

// Something that is answered later.
std::deque<std::coroutine_handle<>> pending;

struct later {
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> then) const { pending.push_back(then); }
  void await_resume() const noexcept {}
};

void answer_all() {
  while (!pending.empty()) {
    const auto next = pending.front();
    pending.pop_front();
    next.resume();
  }
}

// Where the work fails; 0: nowhere.
struct plan {
  int fails_at = 0;
  bool waits = false;
  std::shared_ptr<int> kept = std::make_shared<int>(0);
};

error failure_at(int step) {
  return {errc::denied, "a detail that is longer than a small string, " + std::to_string(step)};
}

result<std::string> ready(const plan& how) {
  if (how.fails_at == 1) return tl::unexpected(failure_at(1));
  return std::string("a text that is longer than a small string");
}

task<result<std::string>> read(plan how, std::string text) {
  if (how.waits) co_await later{};
  if (how.fails_at == 2) co_return tl::unexpected(failure_at(2));
  co_return text;
}

task<result<void>> write(plan how) {
  if (how.waits) co_await later{};
  if (how.fails_at == 3) co_return tl::unexpected(failure_at(3));
  co_return result<void>{};
}

task<result<std::size_t>> work(plan how) {
  const std::string first = co_await value_of(ready(how));
  std::size_t sum = 0;
  for (int i = 0; i < 2; ++i) {
    const auto local = how.kept;
    const std::string second = co_await value_of(read(how, first + std::to_string(i)));
    co_await value_of(write(how));
    sum += second.size();
  }
  co_return sum;
}

task<result<std::string>> whole(plan how) {
  const auto local = how.kept;
  const std::size_t sum = co_await value_of(work(how));
  if (how.fails_at == 4) co_return tl::unexpected(failure_at(4));
  co_return std::to_string(sum);
}

class flow_errors : public testing::TestWithParam<bool> {};

TEST_P(flow_errors, end_every_task_that_awaits_a_value_and_free_what_it_has) {
  // Broken: a verb goes on without a value, is never answered, or its frames are not freed.
  for (int step = 0; step <= 4; ++step) {
    const plan how{step, GetParam()};
    int answers = 0;
    answer(whole(how), spi::completion<std::string>([&](result<std::string> outcome) {
             ++answers;
             if (step == 0) {
               EXPECT_EQ(outcome, std::string("84"));
             } else {
               EXPECT_EQ(outcome.error(), failure_at(step));
             }
           }));
    answer_all();
    EXPECT_EQ(answers, 1) << step;
    EXPECT_EQ(how.kept.use_count(), 1) << step;
  }
}

INSTANTIATE_TEST_SUITE_P(answered, flow_errors, testing::Bool());

TEST(flow, an_error_that_is_looked_at_ends_nothing) {
  std::string told;
  const auto looks = [](plan how) -> task<result<std::string>> {
    const result<void> done = co_await write(how);
    co_return done ? "well" : done.error().detail;
  };
  plan how;
  how.fails_at = 3;
  answer(looks(how),
         spi::completion<std::string>([&](result<std::string> outcome) { told = *outcome; }));
  EXPECT_EQ(told, failure_at(3).detail);
}

}  // namespace
}  // namespace holdfast::stores
