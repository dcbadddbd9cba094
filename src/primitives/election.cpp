#include "core/names.hpp"
#include "primitives/election_watch.hpp"
#include "primitives/lock_handle_inside.hpp"
#include "primitives/made.hpp"
#include "primitives/operation.hpp"

#include <holdfast/election.hpp>

#include <utility>

namespace holdfast {

namespace {

lock_options fair_where_possible(const client& client, lock_options options) {
  options.fair = client.caps().fair;
  return options;
}

std::string checked(const std::string& id) {
  if (id.size() > core::longest_payload) {
    throw lock_error(error{errc::invalid, "an id has at most 256 bytes"});
  }
  return core::clean_payload(id);
}

// A leader that nobody can be told of is none.
result<void> elects(const client& client) {
  const spi::caps& caps = client.caps();
  if (caps.reports_holders) return {};
  return failure(errc::unsupported, caps.engine + " has no elections");
}

class watching final : public spi::subscription {
 public:
  explicit watching(std::shared_ptr<election_watch> watch) : watch_(std::move(watch)) {}
  watching(const watching&) = delete;
  watching& operator=(const watching&) = delete;
  ~watching() override { watch_->end(); }

 private:
  const std::shared_ptr<election_watch> watch_;
};

}  // namespace

election::election(const client& client, std::string name, const std::string& id,
                   const lock_options& options)
    : client_(client),
      id_(checked(id.empty() ? client.inside()->options.payload : id)),
      handle_(client, std::move(name), fair_where_possible(client, options),
              {.payload = id_, .role = spi::role::leader}) {}

result<lease> election::campaign(const acquire_options& options, std::stop_token token) {
  return handle_.acquire(options, std::move(token));
}

acquire_awaitable election::async_campaign(const acquire_options& options, std::stop_token token) {
  return handle_.async_acquire(options, std::move(token));
}

void election::async_campaign(const acquire_options& options, std::stop_token token,
                              acquire_callback done) {
  handle_.async_acquire(options, std::move(token), std::move(done));
}

namespace {

result<std::optional<leader_info>> leader_seen(const result<resource_state>& state) {
  if (!state) return tl::unexpected(state.error());
  return leader_of(*state);
}

}  // namespace

result<election> election::make(const client& client, std::string name, const std::string& id,
                                const lock_options& options) {
  return detail::made([&] { return election(client, std::move(name), id, options); });
}

result<std::optional<leader_info>> election::leader() const {
  if (auto fine = elects(client_); !fine) return tl::unexpected(std::move(fine.error()));
  return leader_seen(client_.inspect(name()));
}

awaitable<std::optional<leader_info>> election::async_leader() const {
  using answer = std::optional<leader_info>;
  if (auto fine = elects(client_); !fine) return detail::make_refusal<answer>(fine.error());
  return detail::make_awaitable<answer>(
      client_.inside()->engine,
      [state = client_.inside(), name = name()](spi::completion<answer> done) {
        state->inspect(name, [done = std::move(done)](const result<resource_state>& seen) mutable {
          done(leader_seen(seen));
        });
      });
}

result<std::unique_ptr<spi::subscription>> election::observe(
    std::function<void(const std::optional<leader_info>&)> on_change) const {
  if (auto fine = elects(client_); !fine) return tl::unexpected(std::move(fine.error()));
  const auto& state = client_.inside();
  if (state->engine->inert())
    return failure(errc::cancelled, "the client is closed, or the process was forked");
  auto watch = std::make_shared<election_watch>(state, handle_.in().resource, std::move(on_change));
  watch->start();
  return std::make_unique<watching>(std::move(watch));
}

}  // namespace holdfast
