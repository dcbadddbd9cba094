#include "stores/redis/client/connection.hpp"

#include "stores/redis/client/command.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <utility>

namespace holdfast::redis {

connection::connection(net::network net, server_options options, events tell)
    : reconnecting_connection(std::move(net), options.backoff, 1),
      options_(std::make_shared<const server_options>(std::move(options))),
      tell_(std::move(tell)),
      pacing_(options_->pace) {}

std::shared_ptr<connection> connection::make(net::network net, server_options options,
                                             events tell) {
  return std::shared_ptr<connection>(
      new connection(std::move(net), std::move(options), std::move(tell)));
}

connection::~connection() {
  if (!guard_.forked()) close();
}

void connection::send(const command& what, pending&& rest) {
  if (guard_.forked()) {
    return rest.done(failure(errc::cancelled, "forked from the client's process"));
  }
  const time_point now = net_.reactor->now();
  const time_point deadline = rest.until.deadline;
  mutex_lock lock(mutex_);
  if (state_ != state::open || deadline <= now) {
    return send_later(lock, what, std::move(rest), now);
  }
  if (pacing_.under_way() + held_.size() >= command_limit ||
      link_->unsent() >= net::stream::unsent_limit) {
    lock.unlock();
    return rest.done(failure(errc::overloaded, where() + ": too many commands at once"));
  }
  watch_deadline(deadline);
  if (!unknown_.empty()) {
    if (!rest.kept) rest.kept = what;
    return held_.push_back(std::move(rest));
  }
  if (rest.reloads > 0 && (!held_.empty() || pacing_.holds_back())) {
    held_.push_back(std::move(rest));
    if (held_.size() < options_->pace.enough) return;
    queue_held();
  } else {
    queue_held();
    rest.again = now - heard_at_ >= quiet;
    if (rest.again && !rest.kept) rest.kept = what;
    queue(what, std::move(rest));
  }
  if (delivering_.load(std::memory_order_relaxed) == std::this_thread::get_id()) return;
  pacing_.begin_write(now);
  const std::shared_ptr<link> out = link_;
  lock.unlock();
  out->flush();
}

// Called with the mutex held and the link open.
void connection::queue(const command& what, pending&& rest) {
  if (rest.runs != nullptr) {
    queue_script(what, rest);
  } else {
    if (rest.asking) queue_ahead(command{"ASKING"}, pending::ahead::asking, rest.until);
    link_->queue(what.bytes());
  }
  pacing_.queue(rest.size());
  rest.sent = true;
  for (pending& member : rest.members) member.sent = true;
  in_flight_.push_back(std::move(rest));
}

// What the server has to know of it: its library, or itself. Called with the mutex held.
const void* connection::source_of(const script& runs) const noexcept {
  if (functions_ && runs.functions() != nullptr) return runs.functions();
  return &runs;
}

// Its bytes, behind what the server needs to know first. Called with the mutex held and the link open.
void connection::queue_script(const command& what, const pending& rest) {
  const script& runs = *rest.runs;
  const void* const source = source_of(runs);
  const bool as_function = source != &runs;
  const bool missing = known_.brings(source, as_function);
  if (missing && as_function) {
    queue_ahead(command{"FUNCTION", "LOAD", runs.functions()->text}, pending::ahead::library,
                rest.until);
  }
  if (rest.asking) queue_ahead(command{"ASKING"}, pending::ahead::asking, rest.until);
  if (as_function || (!missing && runs.functions() == nullptr)) {
    link_->queue(what.bytes());
  } else {
    link_->queue((missing ? runs.in_full(what) : runs.by_hash(what)).bytes());
  }
}

// Called with the mutex held and the link open.
void connection::queue_ahead(const command& what, pending::ahead kind, const net::patience& until) {
  link_->queue(what.bytes());
  pacing_.queue(1);
  in_flight_.push_back({.until = until, .is_ahead = kind});
}

// Called with the mutex held and the link open.
void connection::queue_held() {
  while (!held_.empty()) {
    pending next = take_batch(held_, batch_size(held_));
    queue(*next.kept, std::move(next));
  }
}

// Once more, as soon as nothing else is on its way. Called with the mutex held and the link open.
void connection::queue_unknown() {
  if (!in_flight_.empty()) return;
  for (pending& one : unknown_) queue(*one.kept, std::move(one));
  unknown_.clear();
}

// The way of a command that finds no open link. Called with the mutex held, which it releases.
void connection::send_later(mutex_lock& lock, const command& what, pending&& rest, time_point now) {
  const auto refused = refusal(rest.until, waiting_.size() >= command_limit, what.verb(), now);
  if (refused) {
    lock.unlock();
    return rest.done(tl::unexpected(*refused));
  }
  watch_deadline(rest.until.first_end());
  const bool at_once = rest.until.at_once;
  if (!rest.kept) rest.kept = what;
  waiting_.push_back(std::move(rest));
  reach(lock, at_once, now);
}

void connection::opened(link& which, const server_info& server) {
  mutex_lock lock(mutex_);
  if (&which != link_.get()) return;
  set_open(net_.reactor->now());
  heard_at_ = opened_at_;
  server_ = server;
  functions_ = options_->functions && server.version >= first_with_functions;
  known_.clear();
  load_failure_.clear();
  pacing_.restart();
  for (pending& one : waiting_) queue(*one.kept, std::move(one));
  waiting_.clear();
  pacing_.begin_write(opened_at_);
  lock.unlock();
  if (tell_.opened) tell_.opened(server);
  which.flush();
}

void connection::received(link& which, std::vector<reply>& replies) {
  // A lone caller's answer needs no memory.
  std::array<std::byte, 2'048> nearby;
  std::pmr::monotonic_buffer_resource memory(nearby.data(), nearby.size());
  std::pmr::vector<answered> finished(&memory);
  finished.reserve(replies.size());
  const bool demoted =
      options_->wanted == server_options::role::master &&
      std::ranges::any_of(replies, [](const reply& one) { return one.is_error("READONLY"); });
  mutex_lock lock(mutex_);
  if (&which != link_.get()) return;
  heard_at_ = net_.reactor->now();
  std::size_t taken = 0;
  while (taken < replies.size() && !in_flight_.empty()) {
    reply& answer = replies[taken++];
    if (!is_unknown_script(answer) || !keep_unknown()) match(answer, finished);
  }
  const bool unasked = taken < replies.size();
  pacing_.end_writes(heard_at_);
  if (!unknown_.empty()) queue_unknown();
  if (unknown_.empty() && !pacing_.holds_back()) queue_held();
  const bool more = pacing_.begin_write(heard_at_);
  lock.unlock();
  if (more) which.flush();  // the server is at it while we tell

  delivering_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  for (answered& one : finished) one.done(std::move(one.answer));
  delivering_.store({}, std::memory_order_relaxed);

  const bool sound = !unasked && !demoted;
  if (sound && which.unsent() == 0) return;
  lock.lock();
  if (&which != link_.get()) return;
  if (sound) {
    pacing_.begin_write(heard_at_);
    lock.unlock();
    return which.flush();
  }
  drop_link(lock,
            {errc::unavailable, where() + (unasked ? ": protocol error: a reply to no request"
                                                   : ": became a replica")},
            net_.reactor->now());
}

// The server does not know the script of the first in flight. True: it goes once more. Called with the mutex held;
// in_flight_ is not empty.
bool connection::keep_unknown() {
  pending& first = in_flight_.front();
  if (first.runs == nullptr) return false;
  const void* const source = source_of(*first.runs);
  known_.forget(source, source != first.runs);
  if (first.reloads == 0 || !load_failure_.empty()) return false;
  --first.reloads;
  first.again = false;
  pacing_.answer(first.size());
  unknown_.push_back(in_flight_.take_front());
  return true;
}

// Called with the mutex held; in_flight_ is not empty.
void connection::match(reply& answer, std::pmr::vector<answered>& into) {
  pending& first = in_flight_.front();
  if (first.is_ahead != pending::ahead::no) {
    if (first.is_ahead == pending::ahead::library) {
      // Another client may have loaded it meanwhile.
      const bool there = !answer.is_error() || answer.text.ends_with("already exists");
      load_failure_ = there ? "" : std::move(answer.text);
    }
    pacing_.answer(1);
    return in_flight_.drop_front();
  }
  if (is_unknown_script(answer) && !load_failure_.empty()) answer.text = load_failure_;
  if (first.replies > 1 || !first.gathered.empty()) {
    first.gathered.push_back(std::move(answer));
    if (--first.replies > 0) return;
    answer = reply{};
    answer.kind = reply::type::array;
    answer.elements = std::move(first.gathered);
  }
  pacing_.answer(first.size());
  if (!first.members.empty()) return open_batch(answer, into);
  into.push_back({std::move(first.done), std::move(answer)});
  in_flight_.drop_front();
}

// Called with the mutex held; a batch is the first in flight.
void connection::open_batch(reply& answer, std::pmr::vector<answered>& into) {
  pending whole = in_flight_.take_front();
  std::vector<reply> answers = batch_answers(whole, std::move(answer));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    pending& one = whole.members[i];
    if (answers[i].is(reply::type::nil)) {
      queue(*one.kept, std::move(one));
    } else {
      into.push_back({std::move(one.done), std::move(answers[i])});
    }
  }
}

void connection::ended(link& which, const error& why) {
  mutex_lock lock(mutex_);
  if (&which != link_.get()) return;
  for (pending& one : unknown_) waiting_.push_back(std::move(one));
  unknown_.clear();
  // The peer's end, not one of ours: see `quiet`. Only if nothing was answered since.
  if (state_ == state::open && !in_flight_.empty() && in_flight_.front().again) {
    while (!in_flight_.empty() && std::exchange(in_flight_.front().again, false)) {
      waiting_.push_back(in_flight_.take_front());
    }
  }
  drop_link(lock, why, net_.reactor->now());
}

// The end of a link, whoever noticed it. Called with the mutex held, which it releases.
void connection::drop_link(mutex_lock& lock, const error& why, time_point now) {
  const std::shared_ptr<link> gone = take_link(why, now);
  std::vector<pending> unanswered(std::make_move_iterator(in_flight_.begin()),
                                  std::make_move_iterator(in_flight_.end()));
  in_flight_.clear();
  for (auto* const unsent : {&unknown_, &held_}) {
    for (pending& one : *unsent) waiting_.push_back(std::move(one));
    unsent->clear();
  }
  take_waiting(why, unanswered);
  for (const pending& one : waiting_) watch_deadline(one.until.first_end());
  rest_or_idle(now);
  lock.unlock();
  if (gone != nullptr) gone->close();
  refuse(std::move(unanswered), why);
  if (tell_.ended) tell_.ended(why);
}

// Those that wait for a link and are not to wait for the next one. Called with the mutex held.
void connection::take_waiting(const error& why, std::vector<pending>& into) {
  waiting_.erase_if([&](pending& one) {
    if (!net::definite(why) && (one.sent || !answers(why, one.until))) return false;
    into.push_back(std::move(one));
    return true;
  });
}

void connection::refuse(std::vector<pending> those, const error& why) {
  for (pending& one : those) {
    if (one.done) one.done(tl::unexpected(one.sent ? why : net::unsent(why)));
    for (pending& member : one.members) member.done(tl::unexpected(why));
  }
}

void connection::check_deadlines() {
  mutex_lock lock(mutex_);
  const time_point now = net_.reactor->now();
  if (!alarm_is_due(now)) return;
  const error late = lateness();
  std::vector<pending> expired;
  const auto take_late = [&](pending_queue& from, auto end_of) {
    from.erase_if([&](pending& one) {
      if (end_of(one) > now) return false;
      expired.push_back(std::move(one));
      return true;
    });
  };
  const auto answer_by = [](const pending& one) { return one.until.deadline; };
  const auto link_by = [](const pending& one) {
    return one.sent ? one.until.deadline : one.until.first_end();
  };
  take_late(waiting_, link_by);
  take_late(unknown_, answer_by);
  take_late(held_, answer_by);
  const bool unanswered = std::ranges::any_of(
      in_flight_, [now](const pending& one) { return one.until.deadline <= now; });
  time_point next = time_point::max();
  if (!unanswered) {
    for (const pending& one : in_flight_) next = std::min(next, answer_by(one));
  }
  for (const pending& one : unknown_) next = std::min(next, answer_by(one));
  for (const pending& one : held_) next = std::min(next, answer_by(one));
  for (const pending& one : waiting_) next = std::min(next, link_by(one));
  watch_deadline(next);
  if (unanswered) {
    drop_link(lock, {errc::unavailable, where() + ": no answer in time"}, now);
  } else {
    lock.unlock();
  }
  refuse(std::move(expired), late);
}

void connection::close() noexcept {
  if (guard_.forked()) return;
  mutex_lock lock(mutex_);
  if (state_ == state::closed) return;
  const std::shared_ptr<link> gone = set_closed();
  std::vector<pending> unanswered(std::make_move_iterator(in_flight_.begin()),
                                  std::make_move_iterator(in_flight_.end()));
  for (auto* const unsent : {&unknown_, &held_, &waiting_}) {
    for (pending& one : *unsent) unanswered.push_back(std::move(one));
    unsent->clear();
  }
  in_flight_.clear();
  lock.unlock();
  if (gone != nullptr) gone->close();
  refuse(std::move(unanswered), {errc::unavailable, "closed"});
}

std::optional<server_info> connection::server() const {
  if (guard_.forked()) return std::nullopt;
  const std::scoped_lock lock(mutex_);
  return server_;
}

}  // namespace holdfast::redis
