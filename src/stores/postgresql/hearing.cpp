// See the header.
#include "stores/postgresql/hearing.hpp"

#include "stores/sql/names.hpp"

#include <atomic>
#include <utility>

namespace holdfast::postgresql {

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

std::shared_ptr<hearing> hearing::make(const net::network& net,
                                       const std::shared_ptr<const server_options>& options,
                                       std::shared_ptr<connection> desk,
                                       std::function<void(const spi::claim_id&)> taken) {
  std::shared_ptr<hearing> made(new hearing(net, std::move(desk)));
  made->audience_ = std::make_shared<sql::audience>(
      [weak = std::weak_ptr(made)](const sql::audience::wishes& over) {
        const auto self = weak.lock();
        if (self == nullptr || self->closed_) return;
        arguments with;
        with.list(over.events).list(over.latches).text(self->process());
        self->desk_->send(statement::ignore, std::move(with), self->reactor_->now() + wish_limit,
                          [](const result<sql::rows>&) {});
      });
  made->ear_ = ear::make(net, options, made->bells_, made->audience_, std::move(taken));
  return made;
}

void hearing::close() noexcept {
  if (closed_.exchange(true)) return;
  ear_->close();
  audience_->close();
  bells_->clear();
}

void hearing::tell_wishes(const sql::audience::wishes& what, time_point deadline,
                          spi::completion<void> done) {
  arguments with;
  with.list(what.events).list(what.latches).text(ear_->process());
  with.number(sql::microseconds(wish_life));
  desk_->send(statement::listen, std::move(with), deadline,
              [done = std::move(done)](result<sql::rows> rows) mutable {
                if (!rows) return done(tl::unexpected(std::move(rows.error())));
                done({});
              });
  keep_wishes();
}

void hearing::keep_wishes() {
  if (keeping_wishes_.exchange(true)) return;
  reactor_->at(reactor_->now() + wish_interval, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr || self->closed_) return;
    self->keeping_wishes_ = false;
    const auto all = self->audience_->all();
    if (all.empty()) return;
    self->tell_wishes(all, self->reactor_->now() + wish_limit, [](const result<void>&) {});
  });
}

// Registered when it returns, unless the calling thread must not wait.
result<void> hearing::await_observation(const std::string& key) {
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

result<std::unique_ptr<spi::subscription>> hearing::observe(
    const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) {
  const std::string key = sql::key_of(resource);
  auto made = audience_->observe(key, std::move(sink));
  if (auto told = await_observation(key); !told) return tl::unexpected(std::move(told.error()));
  return made;
}

result<std::unique_ptr<spi::subscription>> hearing::watch_latch(const spi::resource_id& resource,
                                                                spi::latch_watch on_change) {
  const std::string key = sql::key_of(resource);
  auto made = audience_->watch_latch(key, std::move(on_change));
  // What changes before the server knows of us is found by looking again once it does.
  tell_wishes({{}, {key}}, reactor_->now() + wish_limit,
              [audience = audience_, key](const result<void>& told) {
                if (told) audience->tell_latch(key);
              });
  return made;
}

}  // namespace holdfast::postgresql
