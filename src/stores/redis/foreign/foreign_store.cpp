#include "stores/redis/foreign/foreign_store.hpp"

#include "stores/redis/client/reply.hpp"
#include "stores/redis/event_feed.hpp"
#include "stores/redis/foreign/release_channels.hpp"
#include "stores/redis/layout.hpp"
#include "stores/redis/topology/cluster_topology.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

namespace holdfast::redis {

namespace {

spi::caps capabilities(const foreign_format& format) {
  spi::caps caps;
  caps.engine = std::string("redis, dialect=") + format.dialect;
  caps.pushes = !format.lock.channel("x").empty();
  caps.fair = format.fair != nullptr;
  caps.shared = format.read_write != nullptr;
  caps.permits = format.permits != nullptr;
  caps.supports_mode_change = false;
  caps.latches = format.latches;
  caps.supports_listing = false;
  caps.reports_holders = false;
  caps.reports_waiters = false;
  caps.supports_lock_delay = false;
  caps.supports_namespaces = false;
  caps.can_vote = format.votes;
  return caps;
}

std::string tombstone_key(const foreign_format& format, const spi::claim& claim) {
  return format.prefix(claim.resource) + "t:" + spi::to_hex(claim.id);
}

// The lock's own key, one or two others, and the key that the form adds.
std::vector<std::string> keys_of(const foreign_format& format, const foreign_form& form,
                                 const std::string& name, const std::string& owner,
                                 std::initializer_list<std::string> more) {
  std::vector<std::string> keys{format.key(name)};
  keys.insert(keys.end(), more);
  if (std::string last = form.beside(name, owner); !last.empty()) keys.push_back(std::move(last));
  return keys;
}

// How many fences a grant takes: those after the first are for hand-overs inside this process, and
// nobody else may get one of them.
std::string fences(const spi::claim& claim) {
  return std::to_string(std::max(claim.fence_block, 1U));
}

// By default, Redisson renews all readers of a lock for this long, even if one asked for more.
constexpr duration longest_read = std::chrono::seconds(30);

// Of one claim: each is an entry at the server.
constexpr std::uint32_t most_permits = 1'000;

constexpr duration tombstone_extra = std::chrono::seconds(60);

// Other users of these formats ask several times a second, and get what is free first. Not all at
// the same time: each claim has its own pause.
duration longest_poll(const spi::claim& claim) {
  const auto part = std::int64_t{claim.id.bytes[0]};
  return std::chrono::microseconds(50'000 + 200 * part);
}

// The place in the queue is kept for five seconds from each attempt on: see the script.
constexpr duration longest_in_line = std::chrono::seconds(1);

// Where this claim is notified that the lock may be free.
std::string channel_of(const foreign_form& form, const spi::claim& claim) {
  std::string channel = form.channel(claim.resource.name);
  return form.in_line ? channel + ":" + form.owner(claim) : channel;
}

}  // namespace

foreign_store::foreign_store(std::shared_ptr<spi::runtime> runtime,
                             std::shared_ptr<topology> servers, const foreign_format& format)
    : runtime_(std::move(runtime)),
      topology_(std::move(servers)),
      format_(format),
      scripts_(scripts::make(topology_->flavour())),
      caps_(capabilities(format)),
      releases_(std::make_shared<release_channels>(runtime_, topology_)),
      feed_(std::make_shared<event_feed>(runtime_, topology_)) {}

foreign_store::~foreign_store() {
  if (!runtime_->forked()) close();
}

tl::unexpected<error> foreign_store::unsupported(const std::string& what) const {
  return failure(errc::unsupported, caps_.engine + " has no " + what);
}

// The raw name is the key: there is no room for a namespace. In a cluster its other keys are in its
// slot only if its braces, if any, are those of a hash tag.
result<partition> foreign_store::place(const spi::resource_id& resource) const {
  if (!resource.space.empty()) return unsupported("namespaces");
  if (topology_->flavour() == channel_id::flavour::classic) return partition_of(resource);
  const std::uint16_t slot = slot_of_key(format_.key(resource.name));
  if (slot == slot_of_key(format_.prefix(resource))) return slot;
  return failure(
      errc::invalid,
      "the name has braces that are no hash tag: in a cluster Redisson cannot lock it either");
}

result<void> foreign_store::fits(const spi::claim& claim) const {
  if (claim.mode == spi::mode::permit && !caps_.permits) return unsupported("semaphores");
  if (claim.mode == spi::mode::permit && claim.permits > most_permits) {
    return unsupported("claims of more than 1,000 permits");
  }
  if (claim.mode == spi::mode::shared && !caps_.shared) return unsupported("shared locks");
  if (claim.mode == spi::mode::shared && claim.ttl > longest_read) {
    return unsupported("shared locks with a ttl above 30 s: another reader's renewal shortens it");
  }
  if (claim.fair && !format_.of(claim).in_line) return unsupported("order");
  if (claim.lock_delay > duration{0}) return unsupported("lock delay");
  return {};
}

void foreign_store::close() noexcept {
  releases_->close();
  topology_->close();
}

void foreign_store::run(const spi::resource_id& resource, const foreign_form& form,
                        const script& what, const fields& keys, const fields& arguments,
                        const char* verb, const net::patience& until, heard done) {
  const auto where = place(resource);
  if (!where) return done(tl::unexpected(where.error()));
  const std::vector<std::string_view> key_words(keys.begin(), keys.end());
  const std::vector<std::string_view> words(arguments.begin(), arguments.end());
  const time_point sent = runtime_->now();
  topology_->run(
      *where, what, key_words, words, until,
      [self = shared_from_this(), &form, verb, sent, at = *where, name = keys[0],
       done = std::move(done)](result<reply> answer) mutable {
        if (!answer) return done(tl::unexpected(std::move(answer.error())));
        if (answer->is_error()) {
          return done(tl::unexpected(to_error(*answer, verb, self->topology_->where(at),
                                              {"~" + name + " " + form.keys, form.channels})));
        }
        const auto found = answer_of(*answer);
        if (found) self->times_.learn(sent, self->runtime_->now(), found->at);
        done(found);
      });
}

void foreign_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                            const spi::op_context& context, spi::completion<spi::outcome> done) {
  if (auto fine = fits(*claim); !fine) return done(tl::unexpected(std::move(fine.error())));
  const foreign_form& form = format_.of(*claim);
  std::string channel = channel_of(form, *claim);
  if (claim->queued && caps_.pushes) releases_->enter(*claim, channel, std::move(wakeup));
  const auto not_after = times_.latest(context.deadline);
  const auto since = not_after ? not_after->time_since_epoch() : duration{0};
  ask<spi::outcome>(
      claim->resource, form, ((*scripts_).*form.calls).attempt,
      keys_of(format_, form, claim->resource.name, form.owner(*claim),
              {format_.fence_key(claim->resource), tombstone_key(format_, *claim)}),
      {form.owner(*claim), milliseconds(claim->ttl),
       std::to_string(since / std::chrono::microseconds(1)), fences(*claim),
       claim->proposed_fence ? std::to_string(*claim->proposed_fence) : "",
       form.channel(claim->resource.name), form.in_line ? "fair" : "", claim->queued ? "1" : "0",
       std::to_string(claim->permits), std::to_string(claim->max)},
      "attempt", context, std::move(done),
      [claim, channel = std::move(channel), releases = releases_](const script_answer& from) {
        result<spi::outcome> outcome = outcome_of(from, *claim);
        auto* blocked = outcome ? std::get_if<spi::blocked>(&*outcome) : nullptr;
        if (blocked != nullptr) {
          // Behind others in the queue, it is notified when it is the first.
          const bool behind = from.number(5) == 1;
          const duration most = behind ? longest_in_line : longest_poll(*claim);
          blocked->recheck_after = std::min(blocked->recheck_after, most);
        } else if (outcome || outcome.error() != errc::unavailable) {
          releases->forget(*claim, channel);
        }
        auto* grant = outcome ? std::get_if<spi::granted>(&*outcome) : nullptr;
        if (grant != nullptr) grant->server = server_number(from.text(6));
        return outcome;
      });
}

void foreign_store::watch(spi::claim_ptr claim, const spi::blocked&, const spi::op_context& context,
                          spi::completion<spi::armed> done) {
  const auto where = place(claim->resource);
  if (!where) return done(tl::unexpected(where.error()));
  releases_->listen(*claim, *where, channel_of(format_.of(*claim), *claim), context.deadline,
                    std::move(done));
}

void foreign_store::end(const spi::resource_id& resource, const foreign_form& form,
                        const std::string& owner, std::uint32_t permits, leaving how,
                        const std::string& tombstone_key, duration tombstone,
                        const spi::op_context& context, spi::completion<spi::departure> done) {
  ask<spi::departure>(resource, form, ((*scripts_).*form.calls).leave,
                      keys_of(format_, form, resource.name, owner, {tombstone_key}),
                      {owner, milliseconds(tombstone),
                       how == leaving::is_revoked ? "revoke"
                       : how == leaving::releases ? ""
                                                  : "fair",
                       form.channel(resource.name), std::to_string(permits)},
                      "leave", context, std::move(done),
                      [](const script_answer& from) -> result<spi::departure> {
                        return static_cast<spi::departure>(from.kind);
                      });
}

void foreign_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                          spi::completion<spi::departure> done) {
  const foreign_form& form = format_.of(*claim);
  releases_->forget(*claim, channel_of(form, *claim));
  end(claim->resource, form, form.owner(*claim), claim->permits,
      form.in_line ? leaving::releases_or_waits_in_line : leaving::releases,
      tombstone_key(format_, *claim),
      context.unanswered ? claim->ttl + tombstone_extra : duration{0}, context, std::move(done));
}

void foreign_store::renew_one(const spi::claim& claim, std::optional<fence_token> fence,
                              const spi::op_context& context,
                              spi::function<void(spi::renewal)> done) {
  const foreign_form& form = format_.of(claim);
  const fields keys = keys_of(format_, form, claim.resource.name, form.owner(claim),
                              {format_.fence_key(claim.resource)});
  const fields words{form.owner(claim),
                     milliseconds(claim.ttl),
                     claim.renewed ? "1" : "0",
                     fences(claim),
                     fence ? std::to_string(fence->value()) : "",
                     form.channel(claim.resource.name),
                     std::to_string(claim.permits)};
  const std::vector<std::string_view> key_words(keys.begin(), keys.end());
  const std::vector<std::string_view> argument_words(words.begin(), words.end());
  const auto where = place(claim.resource);
  if (!where) {
    spi::renewal unknown;
    unknown.why = where.error().detail;
    return done(std::move(unknown));
  }
  topology_->run(*where, ((*scripts_).*form.calls).renew, key_words, argument_words, context,
                 [done = std::move(done)](const result<reply>& answer) mutable {
                   spi::renewal one;
                   if (answer && !answer->elements.empty()) {
                     const auto at = to_server_time(answer->elements[0].integer);
                     reply rest;
                     rest.elements.assign(answer->elements.begin() + 1, answer->elements.end());
                     one = renewal_of(rest, at);
                   } else {
                     one.why = answer ? answer->text : answer.error().detail;
                   }
                   done(std::move(one));
                 });
}

void foreign_store::renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
                          spi::completion<std::vector<spi::renewal>> done) {
  auto all = std::make_shared<renewing>(claims.size(), std::move(done));
  for (std::size_t i = 0; i < claims.size(); ++i) {
    all->missing.fetch_add(1, std::memory_order_relaxed);
    renew_one(*claims[i], std::nullopt, context, [all, i](spi::renewal one) {
      all->answers[i] = std::move(one);
      all->arrived();
    });
  }
  all->arrived();
}

void foreign_store::raise(spi::claim_ptr claim, fence_token fence, const spi::op_context& context,
                          spi::completion<spi::granted> done) {
  if (!format_.votes) return done(unsupported("votes"));
  renew_one(*claim, fence, context,
            [done = std::move(done)](const spi::renewal& one) mutable { done(grant_of(one)); });
}

void foreign_store::change(spi::claim_ptr, spi::mode, const spi::op_context&,
                           spi::completion<spi::granted> done) {
  done(unsupported("other modes"));
}

namespace {

// For the permissions that a refusal names.
const foreign_form latch_form{nullptr,
                              nullptr,
                              nullptr,
                              nullptr,
                              false,
                              "~holdfast:*",
                              "&redisson_countdownlatch__channel__*"};

// The outcome for each holder that is to be removed.
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
  std::atomic<std::size_t> missing_{1};  // and the sender
  std::mutex mutex_;
  std::vector<spi::holder> taken_;  // guarded by mutex_
  std::optional<error> failure_;    // guarded by mutex_
  spi::completion<std::vector<spi::holder>> done_;
};

}  // namespace

// The owner is the key to the lock: it is never shown. A foreign holder has none of our fences.
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

// First the holders, then each of them by its owner: a holder that comes in between keeps its hold.
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
  const std::string& name = resource.name;
  const fields keys{format_.key(name), format_.prefix(resource) + "i:" + name,
                    format_.prefix(resource) + "b:" + name};
  ask<spi::latch_state>(resource, latch_form, what, keys, arguments, verb, context, std::move(done),
                        [](const script_answer& from) -> result<spi::latch_state> {
                          if (from.kind < 0) return tl::unexpected(refusal_of(from, nullptr));
                          const auto left = std::min<std::int64_t>(from.number(2), UINT32_MAX);
                          return spi::latch_state{static_cast<std::uint32_t>(left)};
                        });
}

void foreign_store::change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                                 const spi::op_context& context,
                                 spi::completion<spi::latch_state> done) {
  const bool set = change.what == spi::latch_change::kind::set;
  const duration life = change.life > duration{0} ? change.life : std::chrono::hours(24);
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
