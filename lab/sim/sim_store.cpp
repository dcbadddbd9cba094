#include "sim/sim_store.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {

namespace {

// How long after it was sent an attempt may be executed, by the server's clock.
constexpr duration attempt_life = std::chrono::seconds(60);

const error no_answer{errc::unavailable, "no answer in time"};
const error not_connected{errc::unavailable, "not connected"};
const error shut_down{errc::unavailable, "closed"};
const error not_simulated{errc::unsupported, "not simulated"};

// Withdrawn, or a refused try: nothing more will arrive for this claim.
bool ends_wakeup(const request& message, const reply_value& value) {
  if (message.what == verb::leave) return std::holds_alternative<spi::departure>(value);
  if (message.what != verb::attempt || message.claims.front()->queued) return false;
  const auto* outcome = std::get_if<spi::outcome>(&value);
  return outcome != nullptr && std::holds_alternative<spi::blocked>(*outcome);
}

}  // namespace

class sim_store::latch_subscription final : public spi::subscription {
 public:
  latch_subscription(std::weak_ptr<bool> alive, sim_store& owner, std::uint64_t number)
      : alive_(std::move(alive)), owner_(owner), number_(number) {}
  ~latch_subscription() override {
    if (!alive_.expired()) owner_.latch_watches_.erase(number_);
  }
  latch_subscription(const latch_subscription&) = delete;
  latch_subscription& operator=(const latch_subscription&) = delete;

 private:
  std::weak_ptr<bool> alive_;
  sim_store& owner_;
  std::uint64_t number_;
};

sim_store::sim_store(spi::runtime& runtime, sim::link& link, history& log, claim_book& book,
                     std::int32_t process, const store_settings& settings, step_listener& steps)
    : runtime_(runtime),
      link_(link),
      log_(log),
      book_(book),
      process_(process),
      settings_(settings),
      steps_(steps) {
  caps_.engine = "simulated";
  caps_.pushes = settings.dialect != dialect::polling;
  caps_.fair = settings.dialect == dialect::queueing;
  caps_.always_fair = settings.always_fair;
  caps_.supports_detach = true;
  link_.attach(this);
}

sim_store::~sim_store() = default;

void sim_store::begin(request message, const spi::op_context& context, any_completion done) {
  const std::uint64_t number = next_operation_++;
  message.operation = number;
  message.process = process_;
  const auto shared = std::make_shared<const request>(std::move(message));
  operation started{shared, std::move(done), 0, false};
  if (closed_) return complete(std::move(started), shut_down);
  started.sent = link_.send(shared);
  if (!started.sent && settings_.fails_fast) return complete(std::move(started), not_connected);
  started.timer = runtime_.at(context.deadline, [this, number] { overdue(number); });
  operations_.emplace(number, std::move(started));
}

void sim_store::overdue(std::uint64_t number) {
  finish(number, no_answer);
  if (settings_.reconnects_on_silence) link_.abandon();
}

void sim_store::finish(std::uint64_t number, reply_value value) {
  const auto found = operations_.find(number);
  if (found == operations_.end()) return;
  operation done = std::move(found->second);
  operations_.erase(found);
  runtime_.cancel(done.timer);
  complete(std::move(done), std::move(value));
}

void sim_store::complete(operation done, reply_value value) {
  note_answer(done, value);
  if (ends_wakeup(*done.message, value)) wakeups_.erase(done.message->claims.front()->id);
  if (done.message->what == verb::transfer) {
    const auto* failed = std::get_if<error>(&value);
    const bool unknown = failed != nullptr && *failed == errc::unavailable;
    if (!unknown) wakeups_.erase(done.message->from);
    if (failed != nullptr && !unknown) wakeups_.erase(done.message->claims.front()->id);
  }
  std::visit(
      [&]<class T>(spi::completion<T>& completion) {
        if (auto* failed = std::get_if<error>(&value)) {
          completion(tl::unexpected<error>(std::move(*failed)));
        } else {
          completion(std::get<T>(std::move(value)));
        }
      },
      done.done);
}

void sim_store::note_answer(const operation& of, const reply_value& value) {
  const auto* failed = std::get_if<error>(&value);
  if (of.message->what == verb::transfer) {
    if (of.message->claims.front()->detached) return;
    record line = about(book_.of(*of.message->claims.front(), process_), what::attempt_answered);
    line.number =
        static_cast<int>(failed != nullptr ? kind_of(tl::unexpected(*failed)) : answer::granted);
    log_.add(line);
    steps_.stepped(process_, line.acquisition);
  } else if (of.message->what == verb::attempt) {
    record line = about(book_.of(*of.message->claims.front(), process_), what::attempt_answered);
    line.number = static_cast<int>(failed != nullptr ? kind_of(tl::unexpected(*failed))
                                                     : kind_of(std::get<spi::outcome>(value)));
    log_.add(line);
    steps_.stepped(process_, line.acquisition);
  } else if (of.message->what == verb::leave) {
    if (failed != nullptr) return;
    record line = about(book_.of(*of.message->claims.front(), process_), what::left);
    line.number = static_cast<int>(std::get<spi::departure>(value));
    log_.add(line);
  } else if (of.message->what == verb::renew) {
    for (std::size_t i = 0; i < of.message->claims.size(); ++i) {
      record line = about(book_.of(*of.message->claims[i], process_), what::renewal_answered);
      line.number =
          static_cast<int>(failed != nullptr ? spi::hold_state::unknown
                                             : std::get<std::vector<spi::renewal>>(value)[i].state);
      log_.add(line);
    }
  }
}

void sim_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                        const spi::op_context& context, spi::completion<spi::outcome> done) {
  const claim_book::entry& known = book_.of(*claim, process_);
  record line = about(known, what::attempt_sent);
  line.until = claim->ttl;
  log_.add(line);
  wakeups_[claim->id].wakeup = std::move(wakeup);
  steps_.stepped(process_, known.acquisition);
  request message;
  message.what = verb::attempt;
  message.claims.push_back(std::move(claim));
  if (heard_) {
    const duration since = runtime_.now() - heard_->first;
    message.not_after = heard_->second + since + attempt_life;
  }
  begin(std::move(message), context, std::move(done));
}

void sim_store::watch(spi::claim_ptr claim, const spi::blocked&, const spi::op_context& context,
                      spi::completion<spi::armed> done) {
  request message;
  message.what = verb::watch;
  message.claims.push_back(std::move(claim));
  begin(std::move(message), context, std::move(done));
}

void sim_store::leave(spi::claim_ptr claim, const spi::op_context& context,
                      spi::completion<spi::departure> done) {
  const claim_book::entry& entry = book_.of(*claim, process_);
  log_.add(about(entry, what::leave_sent));
  steps_.stepped(process_, entry.acquisition);
  request message;
  message.what = verb::leave;
  const auto known = wakeups_.find(claim->id);
  const bool copies = known != wakeups_.end() && known->second.copies;
  if (context.unanswered || copies) message.then = memory::on_leave::remember;
  message.claims.push_back(std::move(claim));
  begin(std::move(message), context, std::move(done));
}

void sim_store::renew(std::vector<spi::claim_ptr> claims, const spi::op_context& context,
                      spi::completion<std::vector<spi::renewal>> done) {
  for (const auto& claim : claims) {
    const claim_book::entry& entry = book_.of(*claim, process_);
    log_.add(about(entry, what::renewal_sent));
    steps_.stepped(process_, entry.acquisition);
  }
  request message;
  message.what = verb::renew;
  message.claims = std::move(claims);
  begin(std::move(message), context, std::move(done));
}

void sim_store::change(spi::claim_ptr claim, spi::mode to, const spi::op_context& context,
                       spi::completion<spi::granted> done) {
  request message;
  message.what = verb::change;
  message.to = to;
  message.claims.push_back(std::move(claim));
  begin(std::move(message), context, std::move(done));
}

// An adoption plays the part of an attempt for its claim.
void sim_store::transfer(const spi::claim_id& from, spi::claim_ptr to,
                         std::shared_ptr<spi::wakeup> wakeup, const spi::op_context& context,
                         spi::completion<spi::granted> done) {
  const claim_book::entry& known = book_.of(*to, process_);
  if (!to->detached) {
    record line = about(known, what::attempt_sent);
    line.until = to->ttl;
    log_.add(line);
    wakeups_[to->id].wakeup = std::move(wakeup);
  }
  steps_.stepped(process_, known.acquisition);
  request message;
  message.what = verb::transfer;
  message.from = from;
  const auto held = wakeups_.find(from);
  const bool copies = held != wakeups_.end() && held->second.copies;
  if (context.unanswered || copies) message.then = memory::on_leave::remember;
  message.claims.push_back(std::move(to));
  begin(std::move(message), context, std::move(done));
}

void sim_store::raise(spi::claim_ptr claim, fence_token fence, const spi::op_context& context,
                      spi::completion<spi::granted> done) {
  steps_.stepped(process_, book_.of(*claim, process_).acquisition);
  request message;
  message.what = verb::raise;
  message.fence = fence;
  message.claims.push_back(std::move(claim));
  begin(std::move(message), context, std::move(done));
}

void sim_store::change_latch(const spi::resource_id& resource, const spi::latch_change& change,
                             const spi::op_context& context,
                             spi::completion<spi::latch_state> done) {
  request message;
  message.what = verb::change_latch;
  message.resource = resource;
  message.latch = change;
  begin(std::move(message), context, std::move(done));
}

void sim_store::read_latch(const spi::resource_id& resource, const spi::op_context& context,
                           spi::completion<spi::latch_state> done) {
  request message;
  const bool watched = std::any_of(latch_watches_.begin(), latch_watches_.end(),
                                   [&](const auto& each) { return each.second.first == resource; });
  message.what = watched ? verb::watch_latch : verb::read_latch;
  message.resource = resource;
  begin(std::move(message), context, std::move(done));
}

result<std::unique_ptr<spi::subscription>> sim_store::watch_latch(const spi::resource_id& resource,
                                                                  spi::latch_watch on_change) {
  const std::uint64_t number = next_latch_watch_++;
  latch_watches_.emplace(
      number, std::pair(resource, std::make_shared<spi::latch_watch>(std::move(on_change))));
  return std::make_unique<latch_subscription>(alive_, *this, number);
}

void sim_store::received(reply answer) {
  heard_ = {runtime_.now(), answer.at};
  finish(answer.operation, std::move(answer.value));
}

void sim_store::pushed(const push_value& news) {
  if (closed_) return;
  if (const auto* resource = std::get_if<spi::resource_id>(&news)) {
    return tell_latch(*resource);
  }
  const auto& push = std::get<memory::push>(news);
  const auto found = wakeups_.find(push.claim);
  if (found == wakeups_.end()) return;
  const auto wakeup = found->second.wakeup;
  steps_.stepped(process_, book_.find(push.claim)->acquisition);
  push.deliver(*wakeup);
}

void sim_store::cry_gone() {
  std::vector<std::shared_ptr<spi::wakeup>> all;
  for (const auto& [id, each] : wakeups_) all.push_back(each.wakeup);
  for (const auto& each : all) each->gone({errc::lost, "says a liar"});
}

void sim_store::tell_latch(const spi::resource_id& resource) {
  std::vector<std::shared_ptr<spi::latch_watch>> told;
  for (const auto& [number, watch] : latch_watches_) {
    if (watch.first == resource) told.push_back(watch.second);
  }
  for (const auto& each : told) (*each)();
}

// What was in flight is sent again on the next connection, or has failed.
void sim_store::disconnected() {
  std::vector<std::uint64_t> failed;
  for (auto& [number, each] : operations_) {
    if (!each.sent) continue;
    if (!settings_.sends_again) {
      failed.push_back(number);
      continue;
    }
    each.sent = false;
    for (const auto& claim : each.message->claims) {
      if (const auto known = wakeups_.find(claim->id); known != wakeups_.end()) {
        known->second.copies = true;
      }
    }
  }
  for (const std::uint64_t number : failed) finish(number, no_answer);
}

void sim_store::connected() {
  for (auto& [number, each] : operations_) {
    if (!each.sent) each.sent = link_.send(each.message);
  }
}

void sim_store::subscribed() {
  std::vector<std::shared_ptr<spi::wakeup>> waiting;
  for (const auto& [id, each] : wakeups_) waiting.push_back(each.wakeup);
  for (const auto& each : waiting) each->notify(std::nullopt);
  std::vector<spi::resource_id> latches;
  for (const auto& [number, watch] : latch_watches_) latches.push_back(watch.first);
  for (const auto& each : latches) tell_latch(each);
}

void sim_store::close() noexcept {
  closed_ = true;
  wakeups_.clear();
  while (!operations_.empty()) finish(operations_.begin()->first, shut_down);
}

void sim_store::inspect(const spi::resource_id&, const spi::op_context&,
                        spi::completion<spi::resource_state> done) {
  done(tl::unexpected(not_simulated));
}
void sim_store::list(const std::string&, const std::string&, const spi::op_context&,
                     spi::completion<std::vector<spi::resource_summary>> done) {
  done(tl::unexpected(not_simulated));
}
void sim_store::revoke(const spi::resource_id&, spi::revocation, const std::string&,
                       const spi::op_context&, spi::completion<std::vector<spi::holder>> done) {
  done(tl::unexpected(not_simulated));
}
result<std::unique_ptr<spi::subscription>> sim_store::observe(
    const spi::resource_id&, spi::function<void(const spi::store_event&)>) {
  return tl::unexpected(not_simulated);
}
void sim_store::probe(const spi::op_context&, spi::completion<std::vector<spi::check>> done) {
  done(tl::unexpected(not_simulated));
}

}  // namespace holdfast::sim
