#include "support/claim_script.hpp"

#include <string_view>
#include <utility>

namespace holdfast::test {

namespace {

template <class T>
std::string word(std::string_view name, const result<T>& answer) {
  std::string text(name);
  text += ':';
  if (!answer) return text += describe(answer.error().code);
  if constexpr (std::is_same_v<T, fence_token>) {
    return text += std::to_string(answer->value());
  } else {
    return text += "ok";
  }
}

}  // namespace

spi::granted lease_of(std::uint64_t fence, duration ttl) {
  return {.fence = fence_token(fence), .ttl = ttl};
}

result<spi::outcome> granted(std::uint64_t fence, duration ttl) {
  return spi::outcome(lease_of(fence, ttl));
}

result<spi::outcome> blocked_in_line(duration server_now, duration recheck_after) {
  return spi::outcome(spi::blocked{.queued = true,
                                   .recheck_after = recheck_after,
                                   .at = server_at(server_now),
                                   .blocker = "other:1:job"});
}

result<spi::outcome> blocked_outside(duration recheck_after) {
  return spi::outcome(spi::blocked{
      .queued = false, .recheck_after = recheck_after, .at = {}, .blocker = "other:1:job"});
}

spi::granted offer(std::uint64_t fence, duration server_now, duration ttl) {
  return {.fence = fence_token(fence), .ttl = ttl, .at = server_at(server_now), .offer = true};
}

spi::renewal renewed(std::uint64_t fence, duration ttl) {
  return {.state = spi::hold_state::renewed, .grant = lease_of(fence, ttl)};
}

spi::renewal still_waiting(duration server_now, duration recheck_after) {
  return {.state = spi::hold_state::waiting,
          .grant = {},
          .recheck_after = recheck_after,
          .at = server_at(server_now)};
}

spi::renewal not_there() { return {.state = spi::hold_state::lost, .grant = {}}; }

spi::renewal no_renewal() { return {.state = spi::hold_state::unknown, .grant = {}}; }

std::string said(const core::claim_machine::orders& orders) {
  std::string text;
  const auto add = [&text](std::string_view what) {
    if (!text.empty()) text += ' ';
    text += what;
  };
  if (orders.settle) add(word("settle", *orders.settle));
  if (orders.lose) add("lose:" + std::string(describe(orders.lose->code)));
  if (orders.attempt) add("attempt");
  if (orders.watch) add("watch");
  if (orders.renew) add("renew");
  if (orders.transfer) add("transfer");
  if (orders.detached) add(word("detached", *orders.detached));
  if (orders.leave) add(orders.unanswered ? "leave+tombstone" : "leave");
  if (orders.released) add(word("released", *orders.released));
  if (orders.release_pending) add("release_pending");
  if (orders.release_abandoned) add("release_abandoned");
  if (orders.renewal_failed) add("renewal_failed");
  if (orders.renewed) add("renewed");
  if (orders.wanted) add("wanted");
  return text;
}

core::machine_settings usual_settings() {
  core::machine_settings settings;
  settings.ttl = 30s;
  settings.seed = 1;
  return settings;
}

core::claim_machine held_claim(core::machine_settings settings) {
  core::claim_machine machine(settings);
  machine.start(at(0s));
  machine.attempted(at(5ms), at(0s), granted(7, settings.ttl));
  return machine;
}

}  // namespace holdfast::test

namespace holdfast::core {

void PrintTo(claim_machine::phase phase, std::ostream* out) {
  switch (phase) {
    case claim_machine::phase::seeking:
      *out << "seeking";
      return;
    case claim_machine::phase::held:
      *out << "held";
      return;
    case claim_machine::phase::leaving:
      *out << "leaving";
      return;
    case claim_machine::phase::ended:
      *out << "ended";
      return;
  }
}

}  // namespace holdfast::core
