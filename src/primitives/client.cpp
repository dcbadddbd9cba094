#include "core/backoff.hpp"
#include "core/dating.hpp"
#include "core/limits.hpp"
#include "core/names.hpp"
#include "net/time_option.hpp"
#include "primitives/call_guard.hpp"
#include "primitives/client_state.hpp"
#include "primitives/metrics_state.hpp"
#include "primitives/wait_for.hpp"
#include "stores/table.hpp"

#include <holdfast/client.hpp>

#include <unistd.h>

#include <atomic>
#include <climits>
#include <system_error>
#include <utility>

namespace holdfast {

namespace {

std::string default_payload() {
  char host[HOST_NAME_MAX + 1] = {};
  if (gethostname(host, sizeof host - 1) != 0) host[0] = '?';
  return std::string(host) + ":" + std::to_string(getpid()) + ":" + program_invocation_short_name;
}

result<void> complete(client_options& options) {
  if (auto fine = core::check_space(options.name_space); !fine) return fine;
  if (options.payload.size() > core::longest_payload) {
    return failure(errc::invalid, "a payload has at most 256 bytes");
  }
  if (options.close_within < duration{0}) {
    return failure(errc::invalid, "close_within must not be negative");
  }
  if (auto fine = core::check_retry(options.retry, core::limits{}.max_ttl); !fine) return fine;
  if (options.payload.empty()) options.payload = default_payload();
  options.payload = core::clean_payload(options.payload);
  return {};
}

core::engine_settings settings_from(const client_options& options, const spi::store& store) {
  return {.payload = options.payload,
          .limit = {},
          .hand_over_locally = options.hand_over_locally,
          .retry = options.retry,
          .where = {},
          .connect_timeout = {},
          .observer = options.observer,
          .meter =
              options.metrics ? options.metrics->inside()->meter_for(store.caps().engine) : nullptr,
          .executor = options.executor};
}

// For messages: "redis db:6379", "sqlite /var/lib/locks.db".
std::string server_text(const spi::url& url, const std::string& engine) {
  std::string text = engine;
  for (std::size_t i = 0; i < url.hosts.size(); ++i) {
    const bool six = url.hosts[i].host.find(':') != std::string::npos;
    text += (i == 0 ? " " : ",") + (six ? "[" + url.hosts[i].host + "]" : url.hosts[i].host);
    if (url.hosts[i].port != 0) text += ":" + std::to_string(url.hosts[i].port);
  }
  return url.hosts.empty() && !url.path.empty() ? text + " " + url.path : text;
}

}  // namespace

client::state::state(std::shared_ptr<spi::reactor> with, std::shared_ptr<spi::store> store,
                     client_options given, core::engine_settings settings)
    : options(std::move(given)),
      runtime(std::move(with)),
      engine(std::make_shared<core::engine>(runtime, std::move(store), std::move(settings))) {}

client::state::~state() { close(); }

namespace {

// Waits until the callbacks that were queued before have run: every waiter has its answer when
// close() returns. Bounded, since a callback may itself wait for the caller of close().
void flush_callbacks(const std::shared_ptr<spi::reactor>& runtime, duration limit) {
  auto meeting = std::make_shared<rendezvous<void>>(runtime);
  auto met = std::make_shared<std::atomic<bool>>(false);
  const auto arrive = [meeting, met] {
    if (!met->exchange(true)) meeting->arrive({});
  };
  runtime->notify(arrive);
  const auto timer = runtime->at(core::end_of(runtime->now(), limit), arrive);
  static_cast<void>(meeting->wait());
  runtime->cancel(timer);
}

}  // namespace

std::vector<std::string> client::state::close(std::optional<duration> within) {
  if (runtime->forked()) return {};
  const duration limit = within.value_or(options.close_within);
  waits.close({errc::cancelled, "the client was closed"});
  if (runtime->on_own_thread()) {
    // The last handle was dropped inside a callback: we would wait for ourselves.
    engine->close(limit, [keep = engine](const core::engine::abandoned&) {});
    return {};
  }
  auto names = wait_for<core::engine::abandoned>(
      runtime, [this, limit](spi::completion<core::engine::abandoned> done) {
        engine->close(limit, [done = std::move(done)](core::engine::abandoned left) mutable {
          done(std::move(left));
        });
      });
  if (!options.executor) flush_callbacks(runtime, limit);
  return names ? *std::move(names) : core::engine::abandoned{};
}

void client::state::deliver(spi::task work) const { engine->deliver(std::move(work)); }

spi::op_context client::state::soon(duration limit) const {
  const time_point until = core::end_of(runtime->now(), limit);
  return {.deadline = until, .reach_by = until, .at_once = true};
}

result<client> client::open(std::string_view url, client_options options) try {
  if (auto fine = complete(options); !fine) return tl::unexpected(fine.error());
  auto parsed = spi::parse_url(url);
  if (!parsed) return tl::unexpected(parsed.error());
  if (!options.password.empty()) {
    parsed->password = spi::secret(std::exchange(options.password, {}));
  }
  auto runtime = spi::make_reactor();
  auto store = stores::open(*parsed, runtime, options.retry);
  if (!store) return tl::unexpected(store.error());
  auto settings = settings_from(options, **store);
  settings.where = server_text(*parsed, (*store)->caps().engine);
  const auto limit = net::connect_timeout(*parsed);
  if (!limit) return tl::unexpected(limit.error());
  settings.connect_timeout = *limit;
  return client(std::make_shared<state>(std::move(runtime), std::move(*store), std::move(options),
                                        std::move(settings)));
} catch (const std::system_error& problem) {
  // No descriptor is left, or no thread can be made. Nothing was asked for yet.
  return failure(errc::overloaded, std::string("cannot open a client: ") + problem.what());
}

result<client> client::open(std::shared_ptr<spi::reactor> runtime,
                            std::shared_ptr<spi::store> store, client_options options) {
  if (auto fine = complete(options); !fine) return tl::unexpected(fine.error());
  auto settings = settings_from(options, *store);
  return client(std::make_shared<state>(std::move(runtime), std::move(store), std::move(options),
                                        std::move(settings)));
}

std::vector<std::string> client::close() { return state_->close(); }

const spi::caps& client::caps() const noexcept { return state_->engine->store().caps(); }

namespace {

result<spi::resource_id> named(const client::state& state, const std::string& name) {
  if (auto fine = state.usable(); !fine) return tl::unexpected(fine.error());
  if (auto fine = core::check_name(name); !fine) return tl::unexpected(fine.error());
  return spi::resource_id{state.options.name_space, name};
}

}  // namespace

result<void> client::state::usable() const {
  if (!engine->inert()) return {};
  return failure(errc::cancelled,
                 "the client is closed, or this process was forked from the one that opened it");
}

// Nobody locks this name: it is only inspected.
result<void> client::ping(duration timeout) const {
  if (auto fine = state_->usable(); !fine) return fine;
  if (timeout <= duration{0}) return failure(errc::invalid, "a ping needs time");
  const spi::resource_id nobodys{state_->options.name_space, "holdfast ping"};
  const auto seen =
      wait_for<resource_state>(state_->runtime, [&](spi::completion<resource_state> done) {
        state_->engine->store().inspect(nobodys, state_->soon(timeout), std::move(done));
      });
  state_->engine->judge(seen ? nullptr : &seen.error());
  if (seen) return {};
  return tl::unexpected(core::blamed(seen.error(), state_->engine->settings().where, "ping", {}));
}

void client::state::inspect(const std::string& name, spi::completion<resource_state> done) const {
  auto answer = telling(std::move(done), "inspect", name);
  const auto resource = named(*this, name);
  if (!resource) return answer(tl::unexpected(resource.error()));
  engine->store().inspect(*resource, soon(), std::move(answer));
}

result<resource_state> client::inspect(const std::string& name) const {
  return wait_for<resource_state>(state_->runtime, [&](spi::completion<resource_state> done) {
    state_->inspect(name, std::move(done));
  });
}

result<std::vector<spi::resource_summary>> client::list(const std::string& prefix) const {
  using answer = std::vector<spi::resource_summary>;
  if (auto fine = state_->usable(); !fine) return tl::unexpected(fine.error());
  return wait_for<answer>(state_->runtime, [&](spi::completion<answer> done) {
    state_->engine->store().list(state_->options.name_space, prefix, state_->soon(),
                                 state_->telling(std::move(done), "list", prefix));
  });
}

result<std::vector<spi::holder>> client::revoke(const std::string& name, spi::revocation how,
                                                const std::string& claim) {
  using answer = std::vector<spi::holder>;
  const auto resource = named(*state_, name);
  if (!resource) return tl::unexpected(resource.error());
  return wait_for<answer>(state_->runtime, [&](spi::completion<answer> done) {
    state_->engine->store().revoke(*resource, how, claim, state_->soon(),
                                   state_->telling(std::move(done), "revoke", name));
  });
}

result<std::unique_ptr<spi::subscription>> client::observe(
    const std::string& name, move_only_function<void(const lock_event&)> sink) const {
  if (auto fine = state_->usable(); !fine) return tl::unexpected(fine.error());
  if (!name.empty()) {
    if (auto fine = core::check_name(name); !fine) return tl::unexpected(fine.error());
  }
  struct listener {
    move_only_function<void(const lock_event&)> sink;
    call_guard calls;
  };
  auto shared = std::make_shared<listener>();
  shared->sink = std::move(sink);
  auto made = state_->engine->store().observe(
      {state_->options.name_space, name},
      [shared, weak = std::weak_ptr(state_)](const spi::store_event& event) {
        const auto alive = weak.lock();
        if (!alive) return;
        alive->deliver([shared, event] { shared->calls.run([&] { shared->sink(event); }); });
      });
  if (!made) return tl::unexpected(std::move(made.error()));
  return std::make_unique<guarded_subscription>(
      std::move(*made), std::shared_ptr<call_guard>(shared, &shared->calls), state_->runtime);
}

result<std::vector<spi::check>> client::probe() const {
  using answer = std::vector<spi::check>;
  if (auto fine = state_->usable(); !fine) return tl::unexpected(fine.error());
  return wait_for<answer>(state_->runtime, [&](spi::completion<answer> done) {
    state_->engine->store().probe(state_->soon(), std::move(done));
  });
}

}  // namespace holdfast
