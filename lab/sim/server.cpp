#include "sim/server.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {

namespace {

// Above every fence that a ledger without memory may have given.
constexpr std::uint64_t fences_skipped = 1'000'000;

template <class T>
reply_value value_of(result<T> answer) {
  if (answer) return std::move(*answer);
  return std::move(answer.error());
}

spi::claim_ptr never_queued(const spi::claim_ptr& claim) {
  auto copy = std::make_shared<spi::claim>(*claim);
  copy->queued = false;
  return copy;
}

}  // namespace

server::server(event_loop& loop, history& log, claim_book& book, node_clock clock,
               const server_settings& settings, step_listener& steps)
    : node(clock),
      loop_(loop),
      log_(log),
      book_(book),
      settings_(settings),
      steps_(steps),
      ledger_(make_ledger(0)) {
  ledger_.born({});
}

memory::ledger server::make_ledger(std::uint64_t fence_floor) {
  return memory::ledger(
      settings_.rules,
      [this](memory::process_id process) { return links_[process]->server_sees_subscription(); },
      fence_floor);
}

reply server::execute(const request& message) {
  reply answer{.operation = message.operation, .value = {}, .at = time()};
  memory::effects out;
  switch (message.what) {
    case verb::attempt:
      answer.value = attempt(message, out);
      break;
    case verb::watch:
      answer.value = watch(message);
      break;
    case verb::leave:
      answer.value = leave(message, out);
      break;
    case verb::renew:
      answer.value = renew(message, out);
      break;
    case verb::change:
      answer.value = change(message, out);
      break;
    case verb::transfer:
      answer.value = transfer(message, out);
      break;
    case verb::raise:
      answer.value = raise(message, out);
      break;
    case verb::change_latch:
    case verb::read_latch:
    case verb::watch_latch:
      answer.value = latch(message, out);
      break;
  }
  if (settings_.timers) arm();
  return answer;
}

reply_value server::attempt(const request& message, memory::effects& out) {
  const spi::claim_ptr& claim = message.claims.front();
  const auto process = static_cast<memory::process_id>(message.process);
  claims_.try_emplace(claim->id, claim);
  auto outcome =
      ledger_.attempt(time(), settings_.dialect == dialect::queueing ? claim : never_queued(claim),
                      process, message.not_after, out);
  const claim_book::entry& known = book_.of(*claim, message.process);
  const auto* grant = outcome ? std::get_if<spi::granted>(&*outcome) : nullptr;
  emit(std::move(out),
       grant == nullptr ? std::nullopt : std::optional(std::pair(claim->id, *grant)));
  record line = about(known, what::executed_attempt);
  line.number = static_cast<int>(kind_of(outcome));
  if (kind_of(outcome) == answer::queued) {
    standing& at = standings_[claim->id];
    if (std::exchange(at.now, standing::state::waiting) != standing::state::waiting) {
      record queued = about(known, what::server_queued);
      queued.fair = claim->fair;
      log_.add(queued);
    }
  }
  log_.add(line);
  return value_of(std::move(outcome));
}

reply_value server::watch(const request& message) {
  const spi::claim& claim = *message.claims.front();
  watchers_[claim.resource][claim.id] = message.process;
  return held(book_.of(claim, message.process).resource) ? spi::armed::no_gap : spi::armed::recheck;
}

reply_value server::leave(const request& message, memory::effects& out) {
  const spi::claim& claim = *message.claims.front();
  const auto departure = ledger_.leave(
      time(), claim, static_cast<memory::process_id>(message.process), message.then, out);
  record line = about(book_.of(claim, message.process), what::server_left);
  line.number = static_cast<int>(departure);
  standings_[claim.id].now = standing::state::unknown;
  log_.add(line);
  watchers_[claim.resource].erase(claim.id);
  if (departure == spi::departure::was_holder) wake_watchers(claim.resource);
  emit(std::move(out));
  return departure;
}

reply_value server::renew(const request& message, memory::effects& out) {
  std::vector<spi::renewal> answers;
  answers.reserve(message.claims.size());
  for (const spi::claim_ptr& claim : message.claims) {
    const spi::renewal answer =
        ledger_.renew(time(), *claim, static_cast<memory::process_id>(message.process), out);
    const bool holds =
        answer.state == spi::hold_state::renewed || answer.state == spi::hold_state::held;
    claims_.try_emplace(claim->id, claim);
    emit(std::exchange(out, {}),
         holds ? std::optional(std::pair(claim->id, answer.grant)) : std::nullopt);
    if (answer.state == spi::hold_state::lost) note_end(claim->id);
    record line = about(book_.of(*claim, message.process), what::executed_renewal);
    line.number = static_cast<int>(answer.state);
    log_.add(line);
    answers.push_back(answer);
  }
  return answers;
}

reply_value server::change(const request& message, memory::effects& out) {
  const spi::claim& claim = *message.claims.front();
  auto answer = ledger_.change(time(), claim, message.to,
                               static_cast<memory::process_id>(message.process), out);
  if (answer) note_grant(claim.id, *answer, what::server_changed);
  emit(std::move(out));
  return value_of(std::move(answer));
}

// Recorded as a hold that begins beside another, which then ends: nobody is let in between.
reply_value server::transfer(const request& message, memory::effects& out) {
  auto to = std::make_shared<spi::claim>(*message.claims.front());
  const claim_book::entry& known = book_.of(*to, message.process);
  auto answer =
      ledger_.transfer(time(), message.from, message.claims.front(),
                       static_cast<memory::process_id>(message.process), message.then, out);
  record line = about(known, what::executed_attempt);
  line.number = static_cast<int>(answer ? answer::granted : answer::refused);
  log_.add(line);
  if (answer) {
    // The fences that its grant reserved stay reserved.
    const auto before = claims_.find(message.from);
    if (before != claims_.end()) to->fence_block = before->second->fence_block;
    claims_[to->id] = to;
    note_grant(to->id, *answer, what::server_changed);
    standing& at = standings_[message.from];
    if (message.from != to->id &&
        std::exchange(at.now, standing::state::unknown) == standing::state::holding) {
      record left = about(*book_.find(message.from), what::server_left);
      left.number = static_cast<int>(spi::departure::was_holder);
      log_.add(left);
    }
  }
  emit(std::move(out));
  return value_of(std::move(answer));
}

reply_value server::raise(const request& message, memory::effects& out) {
  const spi::claim_ptr& claim = message.claims.front();
  auto answer = ledger_.raise(time(), *claim, message.fence,
                              static_cast<memory::process_id>(message.process), out);
  claims_.try_emplace(claim->id, claim);
  if (answer) note_grant(claim->id, *answer, what::server_changed);
  emit(std::move(out));
  return value_of(std::move(answer));
}

reply_value server::latch(const request& message, memory::effects& out) {
  if (message.what == verb::watch_latch) latch_watchers_[message.resource].insert(message.process);
  auto answer = message.what == verb::change_latch
                    ? ledger_.change_latch(time(), message.resource, message.latch, out)
                    : ledger_.read_latch(time(), message.resource, out);
  emit(std::move(out));
  return value_of(std::move(answer));
}

// Grants of one step are recorded in the order of their fences: the caller is granted by the answer
// and not by a push, but in its turn.
void server::emit(memory::effects out, std::optional<told_grant> answered) {
  std::vector<told_grant> grants;
  if (answered) grants.push_back(*answered);
  for (const memory::push& each : out.pushes) {
    if (each.what == memory::push::kind::granted) grants.emplace_back(each.claim, *each.grant);
    if (each.what == memory::push::kind::gone) note_end(each.claim);
  }
  std::sort(grants.begin(), grants.end(), [](const told_grant& left, const told_grant& right) {
    return left.second.fence < right.second.fence;
  });
  for (const auto& [id, grant] : grants) note_grant(id, grant);
  if (settings_.dialect == dialect::polling) return;
  for (memory::push& each : out.pushes) {
    link* const to = links_[each.process];
    steps_.stepped(static_cast<std::int32_t>(each.process), book_.find(each.claim)->acquisition);
    to->push(std::move(each));
  }
  for (const spi::resource_id& changed : out.latches) {
    for (const std::int32_t process : latch_watchers_[changed]) {
      links_[static_cast<std::size_t>(process)]->push(changed);
    }
  }
}

void server::note_grant(const spi::claim_id& id, const spi::granted& grant, what grant_kind) {
  const spi::claim& claim = *claims_.at(id);
  standing& at = standings_[id];
  const bool known_already = at.now == standing::state::holding && at.fence == grant.fence.value();
  at = {standing::state::holding, grant.fence.value(), grant.at + grant.ttl};
  const claim_book::entry& known = *book_.find(id);
  record line = about(known, known_already ? what::server_prolonged : grant_kind);
  line.fence = grant.fence.value();
  line.fair = claim.fair;
  line.offer = grant.offer;
  line.number = claim.fence_block;
  line.until = clock().when(at.until.time_since_epoch());
  line.lock_delay = claim.lock_delay;
  greatest_fence_ = std::max(greatest_fence_, grant.fence.value() + claim.fence_block);
  log_.add(line);
}

void server::note_end(const spi::claim_id& id) {
  standing& at = standings_[id];
  if (std::exchange(at.now, standing::state::unknown) == standing::state::unknown) return;
  log_.add(about(*book_.find(id), what::server_forgot));
}

void server::wake_watchers(const spi::resource_id& resource) {
  if (settings_.dialect != dialect::watching) return;
  for (const auto& [id, process] : watchers_[resource]) {
    links_[static_cast<std::size_t>(process)]->push(
        memory::push{{memory::push::kind::freed, id}, static_cast<memory::process_id>(process)});
  }
}

bool server::held(std::int32_t resource) const {
  return std::any_of(standings_.begin(), standings_.end(), [&](const auto& each) {
    return each.second.now == standing::state::holding && each.second.until > time() &&
           book_.find(each.first)->resource == resource;
  });
}

// One timer for the earliest end that it told any client.
void server::arm() {
  moment next = moment::max();
  for (const auto& [id, each] : standings_) {
    if (each.now != standing::state::holding) continue;
    const spi::server_time end = each.until + claims_.at(id)->lock_delay;
    if (end > time()) next = std::min(next, clock().when(end.time_since_epoch()));
  }
  if (next == timer_at_) return;
  loop_.cancel(timer_);
  timer_at_ = next;
  if (next == moment::max()) return;
  timer_ = loop_.at(next, *this, event_class::timer, [this] {
    timer_at_ = moment::max();
    if (!up_) return;
    memory::effects out;
    ledger_.settle(time(), out);
    emit(std::move(out));
    arm();
  });
}

void server::stop() {
  up_ = false;
  for (link* each : links_) each->server_died();
}

void server::start(bool with_state) {
  up_ = true;
  if (!with_state) {
    ledger_ = make_ledger(settings_.forgets_fences ? 0 : greatest_fence_ + fences_skipped);
    standings_.clear();
    watchers_.clear();
    latch_watchers_.clear();
    book_.lose_protection();
    log_.add({.kind = what::state_lost});
  }
  timer_at_ = moment::max();
  if (settings_.timers) arm();
}

void server::jump(duration by) {
  jump_clock(by);
  book_.lose_protection();
  log_.add({.kind = what::clock_jumped, .number = by.count()});
  if (settings_.timers) arm();
}

bool server::empty() {
  memory::effects out;
  ledger_.settle(time(), out);
  return ledger_.empty();
}

}  // namespace holdfast::sim
