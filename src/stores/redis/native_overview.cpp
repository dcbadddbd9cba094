// What people see and do, and latches.
#include "stores/redis/doctor.hpp"
#include "stores/redis/listing.hpp"
#include "stores/redis/native_ask.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::redis {

namespace {

std::string_view text_of(const spi::claim_id& id) noexcept {
  return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()};
}

struct seen {
  std::vector<stored_holder> holders;
  std::vector<spi::waiting> waiters;
  std::optional<duration> shut_for;
};

result<seen> seen_of(const script_answer& from) {
  if (from.kind < 0) return tl::unexpected(refusal_of(from, nullptr));
  if (from.fields->size() < 5) return failure(errc::unavailable, "unexpected reply");
  seen found;
  for (const reply& each : (*from.fields)[2].elements) {
    if (auto holder = holder_of(each.words(), from.at)) found.holders.push_back(*std::move(holder));
  }
  std::ranges::sort(found.holders, {}, [](const stored_holder& one) { return one.shown.fence; });
  for (const reply& each : (*from.fields)[3].elements) {
    if (auto waiter = waiter_of(each.words(), from.at)) found.waiters.push_back(*std::move(waiter));
  }
  found.shut_for = shut_of(from.number(4));
  return found;
}

}  // namespace

void native_store::inspect(const spi::resource_id& resource, const spi::op_context& context,
                           spi::completion<spi::resource_state> done) {
  ask<spi::resource_state>(place_of(resource), scripts_->inspect, {}, "inspect", context,
                           std::move(done),
                           [](const script_answer& from) -> result<spi::resource_state> {
                             auto found = seen_of(from);
                             if (!found) return tl::unexpected(std::move(found.error()));
                             spi::resource_state state;
                             for (stored_holder& one : found->holders) {
                               state.holders.push_back(std::move(one.shown));
                             }
                             state.waiters = std::move(found->waiters);
                             state.shut_for = found->shut_for;
                             return state;
                           });
}

void native_store::list(const std::string& space, const std::string& prefix,
                        const spi::op_context& context,
                        spi::completion<std::vector<spi::resource_summary>> done) {
  listing::start(topology_, scripts_, {space, prefix}, context, std::move(done));
}

// The server knows claims by their ids, people by a hash of them: one of them is looked up first.
void native_store::revoke(const spi::resource_id& resource, spi::revocation how,
                          const std::string& claim, const spi::op_context& context,
                          spi::completion<std::vector<spi::holder>> done) {
  const place where = place_of(resource);
  if (claim.empty()) return send_revoke(where, how, {}, context, std::move(done));
  ask<std::vector<spi::claim_id>>(
      where, scripts_->inspect, {}, "inspect", context,
      [self = shared_from_this(), where, how, until = net::patience(context),
       done = std::move(done)](result<std::vector<spi::claim_id>> those) mutable {
        if (!those) return done(tl::unexpected(std::move(those.error())));
        if (those->empty()) return done(std::vector<spi::holder>{});
        self->send_revoke(where, how, *those, until, std::move(done));
      },
      [claim](const script_answer& from) -> result<std::vector<spi::claim_id>> {
        const auto found = seen_of(from);
        if (!found) return tl::unexpected(found.error());
        std::vector<spi::claim_id> those;
        for (const stored_holder& one : found->holders) {
          if (one.shown.claim == claim) those.push_back(one.id);
        }
        return those;
      });
}

void native_store::send_revoke(const place& where, spi::revocation how,
                               const std::vector<spi::claim_id>& those, const net::patience& until,
                               spi::completion<std::vector<spi::holder>> done) {
  fields words{how == spi::revocation::force ? "1" : "0"};
  for (const spi::claim_id& id : those) words.push_back(text_of(id));
  ask<std::vector<spi::holder>>(where, scripts_->revoke, words, "revoke", until, std::move(done),
                                [](const script_answer& from) -> result<std::vector<spi::holder>> {
                                  if (from.kind < 0) {
                                    return tl::unexpected(refusal_of(from, nullptr));
                                  }
                                  std::vector<spi::holder> taken;
                                  for (std::size_t i = 2; i < from.fields->size(); ++i) {
                                    auto one = holder_of(from.text(i), from.at);
                                    if (one) taken.push_back(std::move(one->shown));
                                  }
                                  return taken;
                                });
}

result<std::unique_ptr<spi::subscription>> native_store::observe(
    const spi::resource_id& resource, spi::function<void(const spi::store_event&)> sink) {
  if (closed_.load(std::memory_order_acquire)) return failure(errc::cancelled, "redis: closed");
  return feed_->observe(resource, std::move(sink));
}

void native_store::send_latch(const spi::resource_id& resource, const script& what,
                              const fields& arguments, const char* verb, const net::patience& until,
                              spi::completion<spi::latch_state> done) {
  ask<spi::latch_state>(place_of(resource), what, arguments, verb, until, std::move(done),
                        [](const script_answer& from) -> result<spi::latch_state> {
                          if (from.kind < 0) return tl::unexpected(refusal_of(from, nullptr));
                          spi::latch_state state;
                          if (from.number(2) >= 0) {
                            state.count = static_cast<std::uint32_t>(from.number(2));
                          }
                          return state;
                        });
}

void native_store::change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                                const spi::op_context& context,
                                spi::completion<spi::latch_state> done) {
  constexpr std::uint32_t max_count = 1'000'000;
  constexpr duration default_life = std::chrono::hours(24);
  if (change.count == 0 || change.count > max_count) {
    return done(failure(errc::invalid, "a latch counts from 1 to " + std::to_string(max_count)));
  }
  const duration life = change.life > duration{0} ? change.life : default_life;
  const std::string count = std::to_string(change.count);
  const std::string micro = std::to_string(std::chrono::duration_cast<microseconds>(life).count());
  const bool set = change.what == spi::latch_change::kind::set;
  send_latch(resource, scripts_->latch,
             {set ? "s" : "d", count, text_of(change.id), micro, place_of(resource).written},
             set ? "latch set" : "latch down", context, std::move(done));
}

void native_store::read_latch(const spi::resource_id& resource, const spi::op_context& context,
                              spi::completion<spi::latch_state> done) {
  send_latch(resource, scripts_->latch_count, {}, "latch count", context, std::move(done));
}

result<std::unique_ptr<spi::subscription>> native_store::watch_latch(
    const spi::resource_id& resource, spi::latch_watch on_change) {
  if (closed_.load(std::memory_order_acquire)) return failure(errc::cancelled, "redis: closed");
  return feed_->watch_latch(resource, std::move(on_change));
}

void native_store::probe(const spi::op_context& context,
                         spi::completion<std::vector<spi::check>> done) {
  doctor::start(runtime_, topology_, {scripts_, &scripts_->version}, context, std::move(done));
}

}  // namespace holdfast::redis
