#include "core/backoff.hpp"
#include "core/limits.hpp"
#include "core/names.hpp"
#include "primitives/call_guard.hpp"
#include "primitives/client_state.hpp"
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

constexpr duration operator_limit = std::chrono::seconds(5);

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

core::engine_settings settings_from(const client_options& options) {
  return {.payload = options.payload,
          .limit = {},
          .hand_over_locally = options.hand_over_locally,
          .retry = options.retry,
          .observer = options.observer,
          .executor = options.executor};
}

}  // namespace

client::state::state(std::shared_ptr<spi::reactor> with, std::shared_ptr<spi::store> store,
                     client_options given)
    : options(std::move(given)),
      runtime(std::move(with)),
      engine(std::make_shared<core::engine>(runtime, std::move(store), settings_from(options))) {}

client::state::~state() { close(); }

namespace {

// Waits until the callbacks that were handed over before have run: who waited has its answer when
// close() returns. Bounded, since a callback may itself wait for whoever closes.
void flush_callbacks(const std::shared_ptr<spi::reactor>& runtime, duration limit) {
  auto meeting = std::make_shared<rendezvous<void>>(runtime);
  auto met = std::make_shared<std::atomic<bool>>(false);
  const auto arrive = [meeting, met] {
    if (!met->exchange(true)) meeting->arrive({});
  };
  runtime->notify(arrive);
  const auto timer = runtime->at(runtime->now() + limit, arrive);
  static_cast<void>(meeting->wait());
  runtime->cancel(timer);
}

}  // namespace

std::vector<std::string> client::state::close() {
  if (runtime->forked()) return {};
  waits.close({errc::cancelled, "the client was closed"});
  if (runtime->on_own_thread()) {
    // The last handle was dropped inside a callback: waiting here would wait for ourselves.
    engine->close(options.close_within, [keep = engine](const core::engine::abandoned&) {});
    return {};
  }
  auto names = wait_for<core::engine::abandoned>(
      runtime, [this](spi::completion<core::engine::abandoned> done) {
        engine->close(options.close_within,
                      [done = std::move(done)](core::engine::abandoned left) mutable {
                        done(std::move(left));
                      });
      });
  if (!options.executor) flush_callbacks(runtime, options.close_within);
  return names ? *std::move(names) : core::engine::abandoned{};
}

void client::state::deliver(spi::task work) const { engine->deliver(std::move(work)); }

spi::op_context client::state::soon() const {
  return {.deadline = runtime->now() + operator_limit};
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
  return client(std::make_shared<state>(std::move(runtime), std::move(*store), std::move(options)));
} catch (const std::system_error& problem) {
  // No descriptor is left, or no thread can be made. Nothing was asked for yet.
  return failure(errc::overloaded, std::string("cannot open a client: ") + problem.what());
}

result<client> client::open(std::shared_ptr<spi::reactor> runtime,
                            std::shared_ptr<spi::store> store, client_options options) {
  if (auto fine = complete(options); !fine) return tl::unexpected(fine.error());
  return client(std::make_shared<state>(std::move(runtime), std::move(store), std::move(options)));
}

std::vector<std::string> client::close() { return state_->close(); }

const spi::caps& client::caps() const noexcept { return state_->engine->store().caps(); }

namespace {

result<void> usable(const client::state& state) {
  if (state.engine->inert())
    return failure(errc::cancelled, "the client is closed, or the process was forked");
  return {};
}

result<spi::resource_id> named(const client::state& state, const std::string& name) {
  if (auto fine = usable(state); !fine) return tl::unexpected(fine.error());
  if (auto fine = core::check_name(name); !fine) return tl::unexpected(fine.error());
  return spi::resource_id{state.options.name_space, name};
}

}  // namespace

void client::state::inspect(const std::string& name, spi::completion<resource_state> done) const {
  const auto resource = named(*this, name);
  if (!resource) return done(tl::unexpected(resource.error()));
  engine->store().inspect(*resource, soon(), std::move(done));
}

result<resource_state> client::inspect(const std::string& name) const {
  return wait_for<resource_state>(state_->runtime, [&](spi::completion<resource_state> done) {
    state_->inspect(name, std::move(done));
  });
}

result<std::vector<spi::resource_summary>> client::list(const std::string& prefix) const {
  using answer = std::vector<spi::resource_summary>;
  if (auto fine = usable(*state_); !fine) return tl::unexpected(fine.error());
  return wait_for<answer>(state_->runtime, [&](spi::completion<answer> done) {
    state_->engine->store().list(state_->options.name_space, prefix, state_->soon(),
                                 std::move(done));
  });
}

result<std::vector<spi::holder>> client::revoke(const std::string& name, spi::revocation how,
                                                const std::string& claim) {
  using answer = std::vector<spi::holder>;
  const auto resource = named(*state_, name);
  if (!resource) return tl::unexpected(resource.error());
  return wait_for<answer>(state_->runtime, [&](spi::completion<answer> done) {
    state_->engine->store().revoke(*resource, how, claim, state_->soon(), std::move(done));
  });
}

result<std::unique_ptr<spi::subscription>> client::observe(
    const std::string& name, move_only_function<void(const lock_event&)> sink) const {
  if (auto fine = usable(*state_); !fine) return tl::unexpected(fine.error());
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
  if (auto fine = usable(*state_); !fine) return tl::unexpected(fine.error());
  return wait_for<answer>(state_->runtime, [&](spi::completion<answer> done) {
    state_->engine->store().probe(state_->soon(), std::move(done));
  });
}

}  // namespace holdfast
