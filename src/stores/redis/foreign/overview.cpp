// What is not about a claim of ours: who holds, what an operator takes away, latches.
#include "stores/redis/event_feed.hpp"
#include "stores/redis/foreign/foreign_store.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

namespace holdfast::redis {

namespace {

// For what a refusal says is missing.
const foreign_form latch_form{nullptr, nullptr,       nullptr,
                              nullptr, nullptr,       nullptr,
                              false,   "~holdfast:*", "&redisson_countdownlatch__channel__*"};

// What became of each holder that is to be taken away.
class takings {
 public:
  explicit takings(spi::completion<std::vector<spi::holder>> done) : done_(std::move(done)) {}

  void expect_one_more() noexcept { missing_.fetch_add(1, std::memory_order_relaxed); }
  void answered(const spi::holder& one, const result<spi::departure>& answer) {
    {
      const std::lock_guard lock(mutex_);
      if (!answer) failure_ = answer.error();
      if (answer && *answer == spi::departure::was_holder) taken_.push_back(one);
    }
    arrived();
  }
  void arrived() {
    if (missing_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    if (failure_) return done_(tl::unexpected(*failure_));
    done_(std::move(taken_));
  }

 private:
  std::atomic<std::size_t> missing_{1};  // and who sends them
  std::mutex mutex_;
  std::vector<spi::holder> taken_;  // guarded by mutex_
  std::optional<error> failure_;    // guarded by mutex_
  spi::completion<std::vector<spi::holder>> done_;
};

}  // namespace

// The owner is the key to the lock: it is never shown. A foreign holder has no fence of ours.
void foreign_store::look(const spi::resource_id& resource, const spi::op_context& context,
                         spi::completion<seen> done) {
  ask<seen>(
      resource, format_.lock, (*scripts_).*format_.inspect, {format_.key(resource.name)}, {},
      "inspect", context, std::move(done),
      [format = &format_](const script_answer& from) -> result<seen> {
        if (from.kind < 0) return tl::unexpected(refusal_of(from, nullptr));
        const bool permits = from.text(3) == "permit";
        const bool both = !from.text(3).empty() && !permits;
        seen found{{}, {}, permits ? format->permits : both ? format->read_write : &format->lock};
        const auto count = static_cast<std::size_t>(from.number(4));
        for (std::size_t i = 0; i < count; ++i) {
          const std::string& owner = found.owners.emplace_back(from.text(5 + i));
          spi::holder holder;
          holder.claim = public_owner(owner);
          if (both && reads(owner)) holder.mode = spi::mode::shared;
          if (permits) holder.mode = spi::mode::permit;
          const std::int64_t left = from.number(permits ? 5 + count + i : 2);
          if (left >= 0) holder.remaining = std::chrono::milliseconds(left);
          found.state.holders.push_back(std::move(holder));
        }
        for (std::size_t i = 5 + count; !permits && i < from.fields->size(); ++i) {
          found.state.waiters.emplace_back().claim = public_owner(from.text(i));
        }
        return found;
      });
}

void foreign_store::inspect(const spi::resource_id& resource, const spi::op_context& context,
                            spi::completion<spi::resource_state> done) {
  look(resource, context, [done = std::move(done)](result<seen> found) mutable {
    if (!found) return done(tl::unexpected(std::move(found.error())));
    done(std::move(found->state));
  });
}

void foreign_store::list(const std::string&, const std::string&, const spi::op_context&,
                         spi::completion<std::vector<spi::resource_summary>> done) {
  done(unsupported("list: any key may be a lock"));
}

// First who holds, then each of those by its owner: who comes in between keeps it.
void foreign_store::revoke(const spi::resource_id& resource, spi::revocation how,
                           const std::string& claim, const spi::op_context& context,
                           spi::completion<std::vector<spi::holder>> done) {
  look(resource, context,
       [self = shared_from_this(), resource, how, claim, context,
        done = std::move(done)](result<seen> found) mutable {
         if (!found) return done(tl::unexpected(std::move(found.error())));
         const auto& holders = found->state.holders;
         const bool safe = how == spi::revocation::safe;
         const auto all = std::make_shared<takings>(std::move(done));
         for (std::size_t i = 0; i < holders.size(); ++i) {
           if (!claim.empty() && holders[i].claim != claim) continue;
           all->expect_one_more();
           if (safe && !holders[i].remaining) {
             all->answered(holders[i], failure(errc::unsupported,
                                               "the hold has no end that could be waited for; "
                                               "release --force takes it away at once"));
             continue;
           }
           self->end(resource, *found->form, found->owners[i], 1,
                     safe ? leaving::is_revoked : leaving::releases,
                     self->format_.fence_key(resource), duration{0}, context,
                     [all, one = holders[i]](const result<spi::departure>& answer) {
                       all->answered(one, answer);
                     });
         }
         all->arrived();
       });
}

result<std::unique_ptr<spi::subscription>> foreign_store::observe(
    const spi::resource_id&, spi::function<void(const spi::store_event&)>) {
  return unsupported("events");
}

void foreign_store::ask_latch(const spi::resource_id& resource, const script& what,
                              const fields& arguments, const char* verb,
                              const spi::op_context& context,
                              spi::completion<spi::latch_state> done) {
  if (!caps_.latches) return done(unsupported("latches"));
  const std::string ids = format_.prefix(resource) + "i:" + resource.name;
  ask<spi::latch_state>(
      resource, latch_form, what, {format_.key(resource.name), ids}, arguments, verb, context,
      std::move(done), [](const script_answer& from) -> result<spi::latch_state> {
        if (from.kind < 0) return tl::unexpected(refusal_of(from, nullptr));
        const auto most = std::int64_t{UINT32_MAX};
        return spi::latch_state{static_cast<std::uint32_t>(std::min(from.number(2), most))};
      });
}

void foreign_store::change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                                 const spi::op_context& context,
                                 spi::completion<spi::latch_state> done) {
  constexpr duration default_life = std::chrono::hours(24);
  const bool set = change.what == spi::latch_change::kind::set;
  const duration life = change.life > duration{0} ? change.life : default_life;
  ask_latch(resource, set ? scripts_->redisson_latch_set : scripts_->redisson_latch_down,
            {std::to_string(change.count), spi::to_hex(change.id), milliseconds(life),
             redisson_latch_channel(resource.name)},
            set ? "latch set" : "latch down", context, std::move(done));
}

void foreign_store::read_latch(const spi::resource_id& resource, const spi::op_context& context,
                               spi::completion<spi::latch_state> done) {
  ask_latch(resource, scripts_->redisson_latch_count, {}, "latch count", context, std::move(done));
}

result<std::unique_ptr<spi::subscription>> foreign_store::watch_latch(
    const spi::resource_id& resource, spi::latch_watch on_change) {
  if (!caps_.latches) return unsupported("latches");
  const auto where = place(resource);
  if (!where) return tl::unexpected(where.error());
  return feed_->watch_channel(*where, redisson_latch_channel(resource.name), {},
                              std::move(on_change));
}

void foreign_store::probe(const spi::op_context& context,
                          spi::completion<std::vector<spi::check>> done) {
  doctor::start(runtime_, topology_, needed_by(format_), context, std::move(done));
}

}  // namespace holdfast::redis
