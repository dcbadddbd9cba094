// Who observes names and waits for latches: the server is told, again and again while it lasts.
#include "stores/mariadb/mariadb_store.hpp"
#include "stores/sql/names.hpp"

#include <atomic>
#include <utility>

namespace holdfast::mariadb {

namespace {

constexpr duration wish_life = std::chrono::seconds(30);
constexpr duration wish_interval = std::chrono::seconds(10);
constexpr duration wish_limit = std::chrono::seconds(5);  // for one call

// An answer that a thread waits for while it drives the reactor.
struct meeting {
  std::atomic<bool> done{false};
  result<void> outcome;
};

}  // namespace

void mariadb_store::tell_wishes(const sql::audience::wishes& what, time_point deadline,
                                spi::completion<void> done) {
  arguments with;
  with.list(what.events).list(what.latches).bytes(ear_->process());
  with.number(sql::microseconds(wish_life));
  connections_.front()->send(statement::wish, with, deadline,
                             [done = std::move(done)](result<sql::rows> rows) mutable {
                               if (!rows) return done(tl::unexpected(std::move(rows.error())));
                               done({});
                             });
  keep_wishes();
}

void mariadb_store::keep_wishes() {
  if (keeping_wishes_.exchange(true)) return;
  reactor_->at(reactor_->now() + wish_interval, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr || !self->usable()) return;
    self->keeping_wishes_ = false;
    const auto all = self->audience_->all();
    if (all.empty()) return;
    self->tell_wishes(all, self->reactor_->now() + wish_limit, [](const result<void>&) {});
  });
}

// Registered when it returns, unless the calling thread must not wait.
result<void> mariadb_store::await_observation(const std::string& key) {
  const time_point deadline = reactor_->now() + wish_limit;
  auto met = std::make_shared<meeting>();
  const auto arrive = [met, reactor = reactor_](const result<void>& outcome) {
    met->outcome = outcome;
    met->done.store(true, std::memory_order_release);
    reactor->wake(met->done);
  };
  ear_->when_open(deadline,
                  [weak = weak_from_this(), key, deadline, arrive](const result<void>& open) {
                    const auto self = weak.lock();
                    if (!open) return arrive(open);
                    if (self == nullptr) return arrive(failure(errc::cancelled, "closed"));
                    self->tell_wishes({{key}, {}}, deadline, arrive);
                  });
  if (reactor_->on_own_thread()) return {};
  reactor_->wait(met->done);
  if (!met->done.load(std::memory_order_acquire)) return failure(errc::cancelled, "closed");
  return met->outcome;
}

result<std::unique_ptr<spi::subscription>> mariadb_store::observe(
    const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) {
  if (!usable()) return failure(errc::cancelled, "mariadb: closed or forked");
  const std::string key = sql::key_of(resource);
  auto made = audience_->observe(key, std::move(sink));
  if (auto told = await_observation(key); !told) return tl::unexpected(std::move(told.error()));
  return made;
}

result<std::unique_ptr<spi::subscription>> mariadb_store::watch_latch(
    const spi::resource_id& resource, spi::latch_watch on_change) {
  if (!usable()) return failure(errc::cancelled, "mariadb: closed or forked");
  const std::string key = sql::key_of(resource);
  auto made = audience_->watch_latch(key, std::move(on_change));
  // What changes before the server knows of us is found by looking again once it does.
  tell_wishes({{}, {key}}, reactor_->now() + wish_limit,
              [audience = audience_, key](const result<void>& told) {
                if (told) audience->tell_latch(key);
              });
  return made;
}

}  // namespace holdfast::mariadb
