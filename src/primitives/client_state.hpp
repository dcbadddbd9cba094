// The inside of a client: its runtime, its engine, and how callbacks reach the user.
//
// Shutdown: close() first (nobody waits, nothing is held), then the engine, then the runtime.
#pragma once

#include "core/blame.hpp"
#include "core/engine.hpp"

#include <holdfast/client.hpp>
#include <holdfast/result.hpp>
#include <holdfast/spi/reactor.hpp>
#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast {

// What waits in a client for something other than a claim (latches), so that closing the client can
// notify it. Thread-safe; notifies under no lock.
class wait_registry {
 public:
  class entry {
   public:
    virtual ~entry() = default;
    virtual void cancel(const error& why) noexcept = 0;
  };

  static constexpr std::size_t limit = 100'000;

  // Keeps the entry alive until remove(). cancelled: closed; overloaded: too many.
  result<std::uint64_t> add(std::shared_ptr<entry> waiting) {
    const std::lock_guard lock(mutex_);
    if (closed_) return failure(errc::cancelled, "the client is closed");
    if (entries_.size() >= limit) return failure(errc::overloaded, "too many wait in this client");
    entries_.emplace(next_, std::move(waiting));
    return next_++;
  }

  void remove(std::uint64_t id) noexcept {
    std::shared_ptr<entry> removed;  // destroyed after the lock is gone
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end()) return;
    removed = std::move(found->second);
    entries_.erase(found);
  }

  void close(const error& why) noexcept {
    std::map<std::uint64_t, std::shared_ptr<entry>> told;
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      told.swap(entries_);
    }
    for (const auto& [id, waiting] : told) waiting->cancel(why);
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<entry>> entries_;  // guarded by mutex_
  std::uint64_t next_ = 1;                                   // guarded by mutex_
  bool closed_ = false;                                      // guarded by mutex_
};

struct client::state {
  static constexpr duration operator_limit = std::chrono::seconds(5);

  state(std::shared_ptr<spi::reactor> with, std::shared_ptr<spi::store> store, client_options given,
        core::engine_settings settings);
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state();

  // `within`: instead of the client's own limit.
  std::vector<std::string> close(std::optional<duration> within = {});
  // Runs user code on the executor; what it throws is swallowed and raised as an event.
  void deliver(spi::task work) const;
  // For a call that somebody waits for: a failed connection is the answer.
  [[nodiscard]] spi::op_context soon(duration limit = operator_limit) const;
  // cancelled: closed, or in a forked child.
  [[nodiscard]] result<void> usable() const;
  // invalid and cancelled are answered at once.
  void inspect(const std::string& name, spi::completion<resource_state> done) const;
  // Wraps `done`: a failure then says what was asked, of which server, and about which name.
  template <class T>
  spi::completion<T> telling(spi::completion<T> done, const char* verb, std::string name) const {
    return [where = engine->settings().where, verb, name = std::move(name),
            done = std::move(done)](result<T> answer) mutable {
      if (answer) return done(std::move(answer));
      done(tl::unexpected(core::blamed(std::move(answer.error()), where, verb, name)));
    };
  }

  const client_options options;
  const std::shared_ptr<spi::reactor> runtime;
  const std::shared_ptr<core::engine> engine;
  wait_registry waits;
};

namespace detail {

// What `make` returns, or what its constructor threw.
template <class Make>
auto made(Make&& make) -> result<decltype(make())> {
  try {
    return std::forward<Make>(make)();
  } catch (const lock_error& thrown) {
    return tl::unexpected(thrown.cause());
  }
}

}  // namespace detail
}  // namespace holdfast
