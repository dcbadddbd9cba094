#include "fault/fault_world.hpp"

#include "stores/memory/memory_store.hpp"

#include <gtest/gtest.h>

namespace holdfast::test {

namespace {

constexpr duration slice = 100ms;

// One unanswered request (a third of the ttl) and a retry: less than the rest of a leaked lease.
constexpr duration soon = 3s;

// Longer than the latest of the late requests.
constexpr duration quiescence = 40s;

}  // namespace

core::request brief_request(const std::string& name, duration wait) {
  auto request = request_for(name, wait);
  request.lock.ttl = usual_ttl;
  return request;
}

fault_world::fault_world(const fault_plan& plan)
    : runtime_(std::make_shared<manual_runtime>()), server_(std::make_shared<memory::hub>()) {
  const auto store = [this] { return std::make_shared<memory::memory_store>(runtime_, server_); };
  faulty_ = std::make_shared<faulty_store>(runtime_, store(), plan);
  other_store_ = store();
  troubled_ = std::make_unique<engine_bench>(runtime_, faulty_);
  other_ = std::make_unique<engine_bench>(runtime_, other_store_);
  third_ = std::make_unique<engine_bench>(runtime_, store());
}

fault_world::~fault_world() { runtime_->run_for(quiescence); }

question_ptr fault_world::ask(engine_bench& who, core::request request) {
  holds_.push_back({nullptr, request});
  const std::size_t place = holds_.size() - 1;
  auto asked = who.ask(std::move(request));
  holds_[place].asked = asked;
  check_exclusion();
  return asked;
}

void fault_world::check_exclusion() const {
  for (const tracked_hold& one : holds_) {
    if (!one.asked || !one.asked->granted || !one.asked->granted->valid()) continue;
    EXPECT_LE(one.asked->answers, 1);
    std::uint32_t permits = 0;
    for (const tracked_hold& each : holds_) {
      if (!each.asked || !each.asked->granted || !each.asked->granted->valid()) continue;
      if (each.request.resource != one.request.resource) continue;
      permits += each.request.permits;
      if (&each == &one) continue;
      const bool both_shared =
          one.request.mode == spi::mode::shared && each.request.mode == spi::mode::shared;
      EXPECT_TRUE(both_shared || one.request.mode == spi::mode::permit)
          << "two valid holders at " << (runtime_->now() - at(0s)).count();
    }
    if (one.request.mode == spi::mode::permit) {
      EXPECT_LE(permits, one.request.max);
    }
  }
}

void fault_world::pass(duration span) {
  const time_point end = runtime_->now() + span;
  while (runtime_->now() < end) {
    runtime_->run_until(std::min(end, runtime_->now() + slice));
    check_exclusion();
  }
}

bool fault_world::wait_until(const std::function<bool()>& so, duration limit) {
  const time_point end = runtime_->now() + limit;
  while (!so()) {
    if (runtime_->now() >= end) return false;
    pass(slice);
  }
  return true;
}

void fault_world::expect_granted(const question_ptr& asked, duration limit) {
  EXPECT_TRUE(wait_until([&] { return asked->answered(); }, limit)) << "not answered";
  EXPECT_TRUE(asked->granted) << asked->state();
}

void fault_world::expect_release(const question_ptr& asked) {
  if (!asked->granted) return;
  const auto said = troubled_->release(*asked);
  EXPECT_TRUE(wait_until([&] { return *said != "nothing yet"; }, usual_ttl));
  EXPECT_TRUE(*said == "ok" || *said == "unavailable") << *said;
}

void fault_world::expect_hold(const question_ptr& asked, duration span) {
  if (!asked->granted) return;
  const bool lost = wait_until([&] { return !asked->granted->valid(); }, span);
  EXPECT_FALSE(lost) << "lost by one fault";
}

spi::resource_state fault_world::on_server(const std::string& name) {
  spi::resource_state state;
  other_store_->inspect({"", name}, {.deadline = runtime_->now() + 1s},
                        [&state](result<spi::resource_state> answer) {
                          ASSERT_TRUE(answer.has_value());
                          state = std::move(*answer);
                        });
  return state;
}

void fault_world::expect_nothing_left() {
  holds_.clear();
  // Soon, not just when leases have run out; and whatever arrives late changes nothing.
  pass(soon);
  EXPECT_EQ(troubled_->engine->live_claims(), 0U);
  EXPECT_EQ(other_->engine->live_claims(), 0U);
  EXPECT_EQ(third_->engine->live_claims(), 0U);
  for (const time_point end = runtime_->now() + quiescence; runtime_->now() < end; pass(500ms)) {
    const auto state = on_server("stock");
    if (state.holders.empty() && state.waiters.empty()) continue;
    ADD_FAILURE() << state.holders.size() << " holders and " << state.waiters.size()
                  << " waiters were left on the server";
    return;
  }
}

void fault_world::becomes(const question_ptr& asked, spi::mode mode) {
  for (tracked_hold& each : holds_) {
    if (each.asked == asked) each.request.mode = mode;
  }
  check_exclusion();
}

}  // namespace holdfast::test
