#include "core/engine.hpp"

#include "core/acquisition.hpp"
#include "core/backoff.hpp"
#include "core/blame.hpp"
#include "core/claim_runner.hpp"
#include "core/dating.hpp"
#include "core/local_queue.hpp"

#include <utility>

namespace holdfast::core {

namespace {

engine_settings complete(engine_settings given, const spi::store& store) {
  if (given.where.empty()) given.where = store.caps().engine;
  return given;
}

}  // namespace

engine::engine(std::shared_ptr<spi::runtime> runtime, std::shared_ptr<spi::store> store,
               engine_settings settings)
    : runtime_(std::move(runtime)),
      store_(std::move(store)),
      settings_(complete(std::move(settings), *store_)),
      agenda_(std::make_shared<agenda>(*runtime_)),
      window_(std::make_shared<attempt_window>(agenda_, ttls_, settings_.limit)),
      watchdog_(
          std::make_shared<core::watchdog>(*runtime_, store_, agenda_, window_, settings_.limit)) {
  agenda_->on_swept([watchdog = std::weak_ptr(watchdog_)] {
    if (const auto alive = watchdog.lock()) alive->flush();
  });
  watchdog_->report_to(settings_.meter);
  watched_by_store_ = store_->report_to(
      [observer = settings_.observer, meter = settings_.meter, engine = store_->caps().engine,
       time = std::weak_ptr(runtime_)](spi::reach now, const error& why) {
        if (meter) meter->reached(now == spi::reach::back);
        const auto alive = time.lock();
        if (!alive || !observer) return;
        const auto kind =
            now == spi::reach::lost ? event_kind::engine_unreachable : event_kind::engine_back;
        alive->notify([observer, engine, kind, why] {
          event told;
          told.kind = kind;
          told.engine = engine;
          if (kind == event_kind::engine_unreachable) told.cause = &why;
          observer->on_event(told);
        });
      });
}

engine::~engine() {
  window_->stop();
  agenda_->stop();
}

void engine::judge(const error* why) {
  if (why == nullptr) {
    if (!heard() && !heard_.exchange(true, std::memory_order_relaxed) && meter() != nullptr) {
      meter()->reached(true);
    }
    if (unreachable_.load(std::memory_order_relaxed) && unreachable_.exchange(false)) {
      if (meter() != nullptr) meter()->reached(true);
      raise(event_kind::engine_back, {});
    }
    return;
  }
  if (!why->unsent || watched_by_store_ || closed() || unreachable_.exchange(true)) return;
  if (meter() != nullptr) meter()->reached(false);
  const error told = blamed(*why, settings_.where, "connect", {});
  raise(event_kind::engine_unreachable, {}, {}, {}, &told);
}

duration engine::reach_limit(bool tries) const noexcept {
  return settings_.connect_timeout.value_or(tries ? settings_.limit.try_once
                                                  : settings_.limit.command);
}

result<void> check_limits(const request& request, const limits& limit) {
  const lock_options& lock = request.lock;
  if (lock.ttl < limit.min_ttl || lock.ttl > limit.max_ttl) {
    return failure(errc::invalid, "ttl must be from 100 ms to 24 h");
  }
  if (lock.notice < duration{0} || lock.notice >= lock.ttl / 2) {
    return failure(errc::invalid, "notice must be less than half of ttl");
  }
  if (lock.lock_delay < duration{0} || lock.lock_delay > limit.max_ttl) {
    return failure(errc::invalid, "lock_delay must be from 0 to 24 h");
  }
  if (lock.max_hold != forever &&
      (lock.max_hold < limit.min_ttl || lock.notice >= lock.max_hold / 2)) {
    return failure(errc::invalid,
                   "max_hold must be at least 100 ms and more than twice the notice");
  }
  if (lock.retry) {
    if (auto fine = check_retry(*lock.retry, limit.max_ttl); !fine) return fine;
  }
  if (request.mode == spi::mode::permit &&
      (request.permits == 0 || request.max == 0 || request.permits > request.max)) {
    return failure(errc::invalid, "permits must be from 1 to max");
  }
  return {};
}

result<void> engine::check(const request& request) const {
  if (auto fine = check_limits(request, settings_.limit); !fine) return fine;
  const lock_options& lock = request.lock;
  const spi::caps& caps = store_->caps();
  const auto lacks = [&caps](const std::string& what) {
    return failure(errc::unsupported, caps.engine + " has no " + what);
  };
  if (lock.fair && !caps.fair) return lacks("fair locks");
  if (request.mode == spi::mode::shared && !caps.shared) return lacks("shared locks");
  if (request.mode == spi::mode::permit && !caps.permits) {
    return lacks("semaphores" + (caps.why_no_permits.empty() ? "" : ": " + caps.why_no_permits));
  }
  if (request.role == spi::role::leader && !caps.reports_holders) return lacks("elections");
  if (request.adopts && !caps.supports_detach) return lacks("leases that move between processes");
  return {};
}

std::shared_ptr<acquisition> engine::acquire(request request,
                                             spi::completion<std::shared_ptr<hold>> done) {
  if (auto fine = check(request); !fine) {
    done(tl::unexpected<error>(std::move(fine.error())));
    return nullptr;
  }
  if (inert()) {
    done(failure(errc::cancelled, closed() ? "the client is closed" : "in a forked child"));
    return nullptr;
  }
  if (settings_.meter) {
    meter()->asked(primitive_of(request.mode, request.role), request.resource.name);
  }
  if (pending_.fetch_add(1, std::memory_order_relaxed) >= settings_.limit.waiters) {
    answered();
    if (settings_.meter) {
      meter()->refused(primitive_of(request.mode, request.role), request.resource.name,
                       errc::overloaded);
    }
    done(failure(errc::overloaded, "too many waiting acquisitions in this client"));
    return nullptr;
  }
  std::shared_ptr<local_queue> local_queue;
  // An adopted lease waits for nobody, not even for waiters of this client.
  if (request.mode == spi::mode::exclusive && !request.lock.fair && !store_->caps().always_fair &&
      !request.adopts) {
    local_queue =
        request.local_queue ? std::move(request.local_queue) : local_queue_of(request.resource);
  }
  auto wanted =
      std::make_shared<acquisition>(shared_from_this(), std::move(request), runtime_->now(),
                                    std::move(local_queue), std::move(done));
  wanted->start();
  return wanted;
}

std::shared_ptr<local_queue> engine::local_queue_of(const spi::resource_id& resource) {
  const std::lock_guard lock(mutex_);
  auto& known = local_queues_[resource];
  if (auto alive = known.lock()) return alive;
  const spi::caps& caps = store_->caps();
  const auto unseen = caps.reports_waiters ? unseen_waiters::none
                      : caps.pushes        ? unseen_waiters::woken_by_release
                                           : unseen_waiters::polling;
  auto made = std::make_shared<local_queue>(weak_from_this(), resource, settings_.limit, unseen);
  known = made;
  return made;
}

void engine::forget_local_queue(const spi::resource_id& resource) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = local_queues_.find(resource);
  if (found != local_queues_.end() && found->second.expired()) local_queues_.erase(found);
}

spi::claim_id engine::new_claim_id() {
  spi::claim_id id;
  for (std::size_t half = 0; half < 2; ++half) {
    const std::uint64_t bits = runtime_->random();
    for (std::size_t byte = 0; byte < 8; ++byte) {
      id.bytes[half * 8 + byte] = static_cast<std::uint8_t>(bits >> (byte * 8));
    }
  }
  return id;
}

void engine::raise(event_kind kind, const spi::claim& claim, fence_token fence, duration took,
                   const error* cause, loss_cause loss) {
  if (!settings_.observer) return;
  const bool of_engine = claim.resource.name.empty();
  const primitive what = of_engine ? primitive::none : primitive_of(claim.mode, claim.role);
  runtime_->notify([observer = settings_.observer, engine = store_->caps().engine, kind,
                    name = claim.resource.name,
                    id = of_engine ? std::string() : spi::public_id(claim.id), fence, took, what,
                    loss, why = cause != nullptr ? std::optional<error>(*cause) : std::nullopt] {
    observer->on_event({.kind = kind,
                        .name = name,
                        .claim = id,
                        .fence = fence,
                        .took = took,
                        .cause = why ? &*why : nullptr,
                        .engine = engine,
                        .primitive = what,
                        .loss = loss});
  });
}

void engine::deliver(spi::task work, const holdfast::executor& where) {
  spi::task guarded = [work = std::move(work), owner = weak_from_this()]() mutable {
    try {
      work();
    } catch (...) {
      if (const auto alive = owner.lock()) alive->raise(event_kind::callback_threw, {});
    }
  };
  const holdfast::executor& chosen = where ? where : settings_.executor;
  if (!chosen) return runtime_->notify(std::move(guarded));
  try {
    chosen(std::move(guarded));
  } catch (...) {
    // The task is destroyed; a lease in it releases itself.
    raise(event_kind::callback_threw, {});
  }
}

void engine::enlist(const std::shared_ptr<claim_runner>& runner) {
  const std::lock_guard lock(mutex_);
  ttls_.add(runner->claim().ttl);
  runner->place = runners_.insert(runners_.end(), runner);
}

void engine::discharge(claim_runner& runner) noexcept {
  agenda_->drop(runner);
  runner_list dropped;  // destroyed after the lock is gone
  bool finished = false;
  {
    const std::lock_guard lock(mutex_);
    if (!runner.place) return;
    ttls_.remove(runner.claim().ttl);
    dropped.splice(dropped.end(), runners_, *std::exchange(runner.place, std::nullopt));
    finished = runners_.empty() && on_closed_;
  }
  if (finished) finish_close();
}

std::size_t engine::live_claims() const {
  const std::lock_guard lock(mutex_);
  return runners_.size();
}

void engine::close(duration limit, spi::function<void(abandoned)> done) {
  if (closed_.exchange(true)) return done({});
  std::vector<std::shared_ptr<local_queue>> local_queues;
  std::vector<std::shared_ptr<claim_runner>> runners;
  {
    const std::lock_guard lock(mutex_);
    on_closed_ = std::move(done);
    for (const auto& [resource, known] : local_queues_) {
      if (auto alive = known.lock()) local_queues.push_back(std::move(alive));
    }
    runners.assign(runners_.begin(), runners_.end());
  }
  if (runtime_->forked()) return finish_close();
  for (const auto& local_queue : local_queues)
    local_queue->give_up_all({errc::cancelled, "the client was closed"});
  // Waiters first, or a release would grant the lock to one of them.
  for (const auto& runner : runners) runner->cancel({errc::cancelled, "the client was closed"});
  const time_point now = runtime_->now();
  for (const auto& runner : runners) runner->close(end_of(now, limit / 2));
  if (live_claims() == 0) return finish_close();
  if (limit >= time_point::max() - now) return;  // forever: the last release ends it
  runtime_->at(now + limit, [self = weak_from_this()] {
    if (const auto alive = self.lock()) alive->finish_close();
  });
}

void engine::finish_close() {
  spi::function<void(abandoned)> done;
  runner_list left;
  {
    const std::lock_guard lock(mutex_);
    done = std::move(on_closed_);
    on_closed_ = nullptr;
    if (!done) return;
    left.swap(runners_);
    for (const auto& runner : left) runner->place.reset();
  }
  window_->stop();
  agenda_->stop();
  if (!runtime_->forked()) store_->close();
  abandoned names;
  for (const auto& runner : left) names.push_back(runner->claim().resource.name);
  done(std::move(names));
}

}  // namespace holdfast::core
