// A quorum of memory stores behind unreliable connections, one thread, time moved by hand.
#pragma once

#include "stores/memory/memory_store.hpp"
#include "stores/quorum/quorum_store.hpp"
#include "support/lossy_store.hpp"
#include "support/manual_runtime.hpp"
#include "unit/ledger_harness.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

namespace holdfast::quorum {

using namespace std::chrono_literals;
using memory::hub;
using memory::make_claim;
using memory::memory_store;
using test::lossy_store;
using test::trouble;

inline constexpr std::size_t member_count = 5;

// One client of the quorum.
struct client {
  std::vector<std::shared_ptr<lossy_store>> ways;
  std::shared_ptr<quorum_store> store;
};

class quorum_of_five : public testing::Test {
 protected:
  quorum_of_five() {
    for (std::size_t i = 0; i < member_count; ++i) hubs.push_back(std::make_shared<hub>());
  }

  // Delivers what members still owe, or it would keep them alive forever.
  ~quorum_of_five() override { runtime->run_for(10s); }

  client join(const std::vector<std::shared_ptr<hub>>& servers) {
    client made;
    std::vector<member> members;
    for (const auto& each : servers) {
      made.ways.push_back(
          std::make_shared<lossy_store>(runtime, std::make_shared<memory_store>(runtime, each)));
      members.push_back({"member" + std::to_string(members.size()), made.ways.back()});
    }
    made.store = std::make_shared<quorum_store>(runtime, std::move(members), settings{});
    return made;
  }

  result<spi::outcome> attempt(const client& from, const spi::claim_ptr& claim) {
    std::optional<result<spi::outcome>> answer;
    from.store->attempt(claim, nullptr, soon(),
                        [&](result<spi::outcome> given) { answer = given; });
    runtime->run_for(4s);
    EXPECT_TRUE(answer) << "every call is answered by its deadline";
    return answer.value_or(failure(errc::unavailable));
  }
  std::optional<spi::granted> granted(const client& from, const spi::claim_ptr& claim) {
    const auto answer = attempt(from, claim);
    const auto* grant = answer ? std::get_if<spi::granted>(&*answer) : nullptr;
    return grant == nullptr ? std::nullopt : std::optional(*grant);
  }
  bool blocked(const client& from, const spi::claim_ptr& claim) {
    const auto answer = attempt(from, claim);
    return answer && std::holds_alternative<spi::blocked>(*answer);
  }
  result<spi::departure> leave(const client& from, const spi::claim_ptr& claim) {
    std::optional<result<spi::departure>> answer;
    from.store->leave(claim, soon(), [&](result<spi::departure> given) { answer = given; });
    runtime->run_for(4s);
    return answer.value_or(failure(errc::unavailable));
  }
  spi::renewal renewal(const client& from, const spi::claim_ptr& claim) {
    std::optional<spi::renewal> answer;
    from.store->renew({claim}, soon(), [&](const result<std::vector<spi::renewal>>& given) {
      answer = given ? given->front() : spi::renewal();
    });
    runtime->run_for(3s);
    return answer.value_or(spi::renewal());
  }
  spi::hold_state renew(const client& from, const spi::claim_ptr& claim) {
    return renewal(from, claim).state;
  }
  spi::op_context soon() const { return {.deadline = runtime->now() + 3s}; }

  std::size_t holders_at(std::size_t member) {
    memory::effects out;
    return hubs[member]->run(*runtime, [&](memory::ledger& book, spi::server_time now, auto&) {
      return book.inspect(now, {"", "stock"}, out).holders.size();
    });
  }
  std::vector<std::size_t> holders() {
    std::vector<std::size_t> all;
    for (std::size_t i = 0; i < member_count; ++i) all.push_back(holders_at(i));
    return all;
  }
  void forget(std::size_t member) {
    hubs[member]->run(*runtime, [&](memory::ledger& book, spi::server_time, auto&) {
      book = memory::ledger();
      return 0;
    });
  }

  std::shared_ptr<test::manual_runtime> runtime = std::make_shared<test::manual_runtime>();
  std::vector<std::shared_ptr<hub>> hubs;
};

inline spi::claim_ptr claim_of(std::uint64_t number) {
  return make_claim(number, {.queued = true, .ttl = 60s, .fence_block = 33});
}

}  // namespace holdfast::quorum
