#include "core/watchdog.hpp"

#include "core/claim_runner.hpp"

#include <bit>
#include <map>
#include <utility>

namespace holdfast::core {

watchdog::watchdog(spi::runtime& runtime, std::shared_ptr<spi::store> store,
                   std::shared_ptr<agenda> schedule, std::shared_ptr<attempt_window> window,
                   const limits& limit)
    : runtime_(runtime),
      store_(std::move(store)),
      agenda_(std::move(schedule)),
      window_(std::move(window)),
      limit_(limit) {}

void watchdog::collect(std::shared_ptr<claim_runner> runner) {
  {
    const std::lock_guard lock(mutex_);
    collected_.push_back(std::move(runner));
    // The agenda's sweep flushes; but a claim may also ask later, on another thread.
    if (std::exchange(flush_posted_, true)) return;
  }
  runtime_.post([self = weak_from_this()] {
    if (const auto alive = self.lock()) alive->flush();
  });
}

void watchdog::flush() {
  const time_point now = runtime_.now();
  {
    const std::lock_guard lock(mutex_);
    flush_posted_ = false;
    if (collected_.empty()) return;
    flush_posted_ = true;  // what joins below must not post another flush
  }
  agenda_->gather(now, now + limit_.renewal_slack);
  std::vector<std::shared_ptr<claim_runner>> runners;
  {
    const std::lock_guard lock(mutex_);
    flush_posted_ = false;
    runners.swap(collected_);
  }
  // One batch has one deadline, so a lease of 100 ms does not share it with one of 30 s.
  std::map<std::size_t, std::vector<std::shared_ptr<claim_runner>>> batches;
  for (auto& runner : runners) {
    if (!runner->renewable()) {
      runner->refreshed(time_point::min(), {});  // never sent
      continue;
    }
    const auto milliseconds = time_for(*runner) / std::chrono::milliseconds(1);
    auto& batch = batches[std::bit_width(static_cast<std::uint64_t>(milliseconds))];
    batch.push_back(std::move(runner));
    if (batch.size() == limit_.renewal_batch) send(std::exchange(batch, {}), now);
  }
  for (auto& [width, batch] : batches) {
    if (!batch.empty()) send(std::move(batch), now);
  }
}

// A third of the lease that depends on the answer: an offer is much shorter than the lease it
// becomes.
duration watchdog::time_for(const claim_runner& runner) const {
  const duration granted = runner.ttl();
  const duration ttl = runner.claim().ttl;
  return command_limit(limit_, granted > duration{0} ? std::min(granted, ttl) : ttl);
}

void watchdog::send(std::vector<std::shared_ptr<claim_runner>> runners, time_point now) {
  std::vector<spi::claim_ptr> claims;
  claims.reserve(runners.size());
  duration limit = limit_.command;
  time_point useful_until{};
  for (const auto& runner : runners) {
    claims.push_back(runner->shared_claim());
    limit = std::min(limit, time_for(*runner));
    useful_until = std::max(useful_until, runner->valid_until());
  }
  const auto began = window_->renewing(now, claims.size());
  store_->renew(std::move(claims), {.deadline = now + limit, .useful_until = useful_until},
                [self = shared_from_this(), runners = std::move(runners), now,
                 began](result<std::vector<spi::renewal>> answer) {
                  const time_point answered = self->runtime_.now();
                  std::size_t unknown = 0;
                  bool asked = false;
                  for (std::size_t i = 0; i < runners.size(); ++i) {
                    spi::renewal one;  // unknown
                    if (answer && i < answer->size()) one = (*answer)[i];
                    if (one.state == spi::hold_state::unknown) {
                      ++unknown;
                    } else if (one.from_engine) {
                      asked = true;
                    }
                    if (!answer) one.why = answer.error().detail;
                    runners[i]->refreshed(now, one);
                  }
                  if (asked && self->meter_) self->meter_->round_trip(answered - now);
                  self->window_->renewed(began, self->runtime_.now(), runners.size(), unknown);
                });
}

}  // namespace holdfast::core
