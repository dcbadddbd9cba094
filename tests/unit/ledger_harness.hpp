// A ledger, a clock that is moved by hand, and short names for both. Claims are known by a
// number; their process has the same number unless said otherwise.
#pragma once

#include "stores/memory/ledger.hpp"

#include <holdfast/spi/store.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::memory {

using namespace std::chrono_literals;

inline spi::claim_id id_of(std::uint64_t number) {
  spi::claim_id id;
  for (std::size_t i = 0; i < 8; ++i)
    id.bytes[i] = static_cast<std::uint8_t>(number >> (56 - 8 * i));
  return id;
}

struct request {
  spi::mode mode = spi::mode::exclusive;
  bool fair = false;
  bool queued = true;
  bool renewed = true;
  duration ttl = 10s;
  duration lock_delay{0};
  std::uint32_t permits = 1;
  std::uint32_t max = 1;
  std::uint32_t fence_block = 1;
  std::string name = "stock";
};

inline request exclusive() { return {}; }
inline request fair() { return {.fair = true}; }
inline request shared() { return {.mode = spi::mode::shared}; }
inline request permits(std::uint32_t n, std::uint32_t max) {
  return {.mode = spi::mode::permit, .permits = n, .max = max};
}

inline spi::claim_ptr make_claim(std::uint64_t number, const request& request = {}) {
  spi::claim claim;
  claim.id = id_of(number);
  claim.resource = {"", request.name};
  claim.mode = request.mode;
  claim.permits = request.permits;
  claim.max = request.max;
  claim.fair = request.fair;
  claim.queued = request.queued;
  claim.renewed = request.renewed;
  claim.ttl = request.ttl;
  claim.lock_delay = request.lock_delay;
  claim.fence_block = request.fence_block;
  claim.payload = "host:" + std::to_string(number);
  return std::make_shared<const spi::claim>(std::move(claim));
}

class ledger_harness : public ::testing::Test {
 protected:
  memory::rules rules;
  std::set<process_id> unreachable;
  memory::ledger book{rules, [this](process_id process) { return !unreachable.contains(process); }};
  spi::server_time now{1000s};
  effects out;

  void pass(duration time) { now += time; }

  result<spi::outcome> attempt(const spi::claim_ptr& claim) { return attempt(claim, of(claim)); }
  result<spi::outcome> attempt(const spi::claim_ptr& claim, process_id process) {
    return book.attempt(now, claim, process, std::nullopt, out);
  }
  spi::granted granted(const spi::claim_ptr& claim) {
    const auto answer = attempt(claim);
    EXPECT_TRUE(answer && std::holds_alternative<spi::granted>(*answer)) << claim->payload;
    return answer && answer->index() == 0 ? std::get<spi::granted>(*answer) : spi::granted{};
  }
  spi::blocked blocked(const spi::claim_ptr& claim) {
    const auto answer = attempt(claim);
    EXPECT_TRUE(answer && std::holds_alternative<spi::blocked>(*answer)) << claim->payload;
    return answer && answer->index() == 1 ? std::get<spi::blocked>(*answer) : spi::blocked{};
  }
  errc refused(const spi::claim_ptr& claim) {
    const auto answer = attempt(claim);
    EXPECT_FALSE(answer.has_value());
    return answer ? errc{} : answer.error().code;
  }
  spi::departure leave(const spi::claim_ptr& claim, on_leave then = on_leave::forget) {
    return book.leave(now, *claim, of(claim), then, out);
  }
  spi::renewal renew(const spi::claim_ptr& claim) {
    return book.renew(now, *claim, of(claim), out);
  }
  result<spi::granted> change(const spi::claim_ptr& claim, spi::mode to) {
    return book.change(now, *claim, to, of(claim), out);
  }

  // The pushes since the last call, as "granted 2", in order.
  std::vector<std::string> pushes() {
    static const char* const words[] = {"granted", "freed", "wanted", "gone"};
    std::vector<std::string> said;
    for (const push& each : out.pushes) {
      said.push_back(std::string(words[static_cast<int>(each.what)]) + " " +
                     std::to_string(each.process));
      if (each.grant) last_grant = *each.grant;
    }
    out.pushes.clear();
    return said;
  }
  // From the last pushed grant that pushes() saw.
  spi::granted last_grant;

  std::size_t holders(const std::string& name = "stock") {
    return book.inspect(now, {"", name}, out).holders.size();
  }

 private:
  static process_id of(const spi::claim_ptr& claim) {
    process_id number = 0;
    for (std::size_t i = 0; i < 8; ++i) number = number << 8U | claim->id.bytes[i];
    return number;
  }
};

using said = std::vector<std::string>;

}  // namespace holdfast::memory
