// A client that waits in a fair queue knows it, and so does its history.
#include "stores/memory/memory_store.hpp"
#include "support/eventually.hpp"
#include "support/temporary_folder.hpp"
#include "torture/witness_store.hpp"

#include <holdfast/holdfast.hpp>
#include <holdfast/spi/reactor.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace holdfast::torture {
namespace {

using namespace std::chrono_literals;

class witness : public ::testing::Test {
 protected:
  // Asks like a torture thread.
  result<lease> ask(std::int32_t hold, bool fair, duration wait) {
    sim::record line;
    line.hold = hold;
    if (fair) store_->expect(line);
    mutex lock(client_, "line", {.ttl = 10s, .fair = fair});
    return lock.acquire({.wait = wait});
  }
  std::vector<std::int32_t> told_to_wait() {
    std::vector<std::int32_t> holds;
    for (const sim::record& each : history_.read()) {
      EXPECT_EQ(each.kind, sim::what::attempt_answered);
      holds.push_back(each.hold);
    }
    return holds;
  }
  bool waits(std::size_t number) {
    return test::eventually([&] { return told_to_wait().size() == number; });
  }

  const test::temporary_folder folder_;
  recorder history_{folder_.path() / "records"};
  const std::shared_ptr<spi::reactor> runtime_ = spi::make_reactor();
  const std::shared_ptr<witness_store> store_ = std::make_shared<witness_store>(
      memory::open_memory(spi::parse_url("memory:").value(), runtime_).value(), clock::now(),
      history_);
  client client_ = client::open(runtime_, store_).value();
};

TEST_F(witness, writes_down_the_place_of_each_that_waits_and_of_nobody_else) {
  // Broken: order is judged by guesses, or one waiter's place is taken for another's.
  auto held = ask(1, true, 1s);
  ASSERT_TRUE(held);
  auto second = test::in_thread([&] { return ask(2, true, test::patience); });
  ASSERT_TRUE(waits(1));
  auto third = test::in_thread([&] { return ask(3, true, test::patience); });
  ASSERT_TRUE(waits(2));
  EXPECT_FALSE(ask(4, true, 0s)) << "a try does not wait";
  EXPECT_EQ(told_to_wait(), (std::vector<std::int32_t>{2, 3}));
  ASSERT_TRUE(held->release());
  auto next = second.get();
  ASSERT_TRUE(next);
  ASSERT_TRUE(next->release());
  EXPECT_TRUE(third.get());
  EXPECT_EQ(told_to_wait().size(), 2U) << "once each";
}

}  // namespace
}  // namespace holdfast::torture
