// A client: a connection to one engine, from which locks are made.
//
//   auto client = holdfast::client::open("sqlite:/var/lib/shop/locks.db");
//   if (!client) die(client.error().message());
//   holdfast::mutex stock(*client, "stock/42");
#pragma once

#include <holdfast/awaitable.hpp>
#include <holdfast/clock.hpp>
#include <holdfast/inspection.hpp>
#include <holdfast/lease.hpp>
#include <holdfast/metrics.hpp>
#include <holdfast/move_only_function.hpp>
#include <holdfast/observer.hpp>
#include <holdfast/options.hpp>
#include <holdfast/result.hpp>

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

namespace spi {

class reactor;
class store;

}  // namespace spi

struct client_options {
  // Names in different namespaces never conflict. 0 to 64 bytes of [A-Za-z0-9._-].
  std::string name_space{};
  // Who we are, shown to people who look at holders; empty: "host:pid:program". At most 256 bytes.
  std::string payload{};
  // Used instead of a password in the URL.
  std::string password{};
  std::shared_ptr<holdfast::observer> observer{};
  // Counts what this client does; one object may count for several clients.
  std::shared_ptr<holdfast::metrics> metrics{};
  // Where callbacks run and coroutines resume; empty: the client's notifier thread, where no blocking
  // call may be made. <holdfast/awaitable.hpp> has the whole rule.
  holdfast::executor executor{};
  // Threads of this process pass an unfair mutex on among themselves, within a budget, before it
  // goes back to the engine. Reserves 33 fences with each grant.
  bool hand_over_locally = true;
  // For everything that is retried while the engine is silent. Locks with a policy of their own use
  // that; connections and releases use only its pauses, and keep trying.
  retry_policy retry{};
  // How long closing may wait for releases.
  duration close_within = std::chrono::seconds(2);
};

// A cheap handle, copied freely; the locks made from it keep it open. Thread-safe. The client is
// closed when its last handle is destroyed. There is no empty handle: a moved-from one is still a
// handle until it is destroyed. After fork() the child's copy is inert: every call answers
// cancelled, nothing is sent.
class client {
 public:
  client(const client&) = default;
  client& operator=(const client&) = default;
  ~client() = default;

  // invalid: the URL or an option is wrong; unsupported: an engine that was not built in; overloaded:
  // no descriptor or thread is left; otherwise what the engine or the file says.
  [[nodiscard]] static result<client> open(std::string_view url, client_options options = {});
  // With a store of your own, <holdfast/spi/store.hpp>, and the runtime that it was made with,
  // <holdfast/spi/reactor.hpp>.
  [[nodiscard]] static result<client> open(std::shared_ptr<spi::reactor> runtime,
                                           std::shared_ptr<spi::store> store,
                                           client_options options = {});

  // Cancels all waiting calls (they answer cancelled before this returns), fires lost() of all
  // leases, releases them, and waits for that at most options.close_within. Returns the names whose
  // release could not be confirmed: their ttl ends them. May be called twice.
  std::vector<std::string> close();

  [[nodiscard]] const capabilities& caps() const noexcept;

  // Does the engine answer? For checks at start-up: connects, logs in and reads, once. unavailable,
  // with the cause: not reached, or no answer in time; else the engine's reason for refusing us.
  [[nodiscard]] result<void> ping(duration timeout = std::chrono::seconds(5)) const;

  // Continues a lease that was detached, by any client of the same engine and namespace: with the same
  // fence, renewed as from now. This uses up the token. Errors: invalid: not a token, or one of
  // another engine or namespace; lost: the lease has ended, was adopted or released before, was
  // revoked, or is of another server; unavailable: no answer in time, so it is not known whether
  // the token is used up: if it is, the lock is released in the background, else nothing has
  // changed. unsupported.
  [[nodiscard]] result<lease> adopt(std::string_view token, const adopt_options& options = {},
                                    std::stop_token stop = {}) const;
  awaitable<lease> async_adopt(std::string_view token, const adopt_options& options = {},
                               std::stop_token stop = {}) const;
  // For programs that only pass a token on. Each waits at most 5 s, answers as adopt() does, and
  // leaves the token as it is. The lease ends `ttl` after this call; zero: after the time that it
  // was acquired with.
  [[nodiscard]] result<void> renew(std::string_view token, duration ttl = duration{0}) const;
  awaitable<void> async_renew(std::string_view token, duration ttl = duration{0}) const;
  // Frees the lock at once. unavailable: no answer; if it was not carried out, the ttl ends it.
  [[nodiscard]] result<void> release(std::string_view token) const;
  awaitable<void> async_release(std::string_view token) const;

  // For operators. Each waits at most 5 s; on Redis, list() waits 5 s for each part of its answer,
  // and 60 s in all.
  [[nodiscard]] result<resource_state> inspect(const std::string& name) const;
  [[nodiscard]] result<std::vector<resource_summary>> list(const std::string& prefix = {}) const;
  // Break-glass; returns the holders that were removed. `claim`: a public id, empty for all.
  [[nodiscard]] result<std::vector<holder>> revoke(const std::string& name, revocation how,
                                                   const std::string& claim = {});
  // Events of one name, or of all where it is empty, until the subscription is destroyed. The sink
  // is called on the client's executor.
  [[nodiscard]] result<std::unique_ptr<subscription>> observe(
      const std::string& name, move_only_function<void(const lock_event&)> sink) const;
  [[nodiscard]] result<std::vector<health_check>> probe() const;  // the checks of `holdfast doctor`

  // For the primitives of this library.
  struct state;
  [[nodiscard]] const std::shared_ptr<state>& inside() const noexcept { return state_; }

 private:
  explicit client(std::shared_ptr<state> inside) noexcept : state_(std::move(inside)) {}

  std::shared_ptr<state> state_;
};

}  // namespace holdfast
