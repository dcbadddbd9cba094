#include "stores/redis/client/connection.hpp"

#include "stores/redis/client/command.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
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

void connection::send(pending_ptr call) {
  if (guard_.forked()) {
    return call->answer(failure(errc::cancelled, "forked from the client's process"));
  }
  const time_point now = net_.reactor->now();
  mutex_lock lock(mutex_);
  if (state_ != state::open || call->until.deadline <= now) {
    return send_later(lock, std::move(call), now);
  }
  if (pacing_.under_way() + held_.size() >= command_limit ||
      link_->unsent() >= net::stream::unsent_limit) {
    lock.unlock();
    return call->answer(failure(errc::overloaded, where() + ": too many commands at once"));
  }
  watch_deadline(call->until.deadline);
  if (!unknown_.empty()) return held_.push_back(std::move(call));
  if (call->reloads > 0 && (!held_.empty() || pacing_.holds_back())) {
    held_.push_back(std::move(call));
    if (held_.size() < options_->pace.enough) return;
    queue_held();
  } else {
    queue_held();
    const bool once = call->runs != nullptr && call->runs->sent_once();
    call->again = !once && now - heard_at_ >= quiet;
    queue(std::move(call));
  }
  if (delivering_.load(std::memory_order_relaxed) == std::this_thread::get_id()) return;
  pacing_.begin_write(now);
  const std::shared_ptr<link> out = link_;
  lock.unlock();
  out->flush();
}

// Called with the mutex held and the link open.
void connection::queue(pending_ptr call) {
  if (call->runs != nullptr) {
    queue_script(*call);
  } else {
    if (call->asking) queue_ahead(command{"ASKING"}, pending::ahead::asking, call->until);
    link_->queue(call->what.bytes());
  }
  pacing_.queue(call->size());
  call->gathered.clear();  // of another link
  call->sent = true;
  for (const pending_ptr& member : call->members) member->sent = true;
  in_flight_.push_back(std::move(call));
}

// What the server must know to run it: its library, or the script itself.
// Called with the mutex held.
const void* connection::source_of(const script& runs) const noexcept {
  if (functions_ && runs.functions() != nullptr) return runs.functions();
  return &runs;
}

// Queues its bytes, after what the server needs first. Called with the
// mutex held and the link open.
void connection::queue_script(const pending& call) {
  const script& runs = *call.runs;
  const void* const source = source_of(runs);
  const bool as_function = source != &runs;
  const bool missing = known_.brings(source, as_function);
  if (missing && as_function) {
    queue_ahead(command{"FUNCTION", "LOAD", runs.functions()->text}, pending::ahead::library,
                call.until);
  }
  if (call.asking) queue_ahead(command{"ASKING"}, pending::ahead::asking, call.until);
  if (as_function || (!missing && runs.functions() == nullptr)) {
    link_->queue(call.what.bytes());
  } else {
    link_->queue((missing ? runs.in_full(call.what) : runs.by_hash(call.what)).bytes());
  }
}

// Called with the mutex held and the link open.
void connection::queue_ahead(const command& what, pending::ahead kind, const net::patience& until) {
  link_->queue(what.bytes());
  pacing_.queue(1);
  pending& sent = *in_flight_.emplace_back(std::make_unique<pending>());
  sent.until = until;
  sent.is_ahead = kind;
}

// Called with the mutex held and the link open.
void connection::queue_held() {
  while (!held_.empty()) queue(take_batch(held_, batch_size(held_)));
}

// Sends them again, as soon as nothing else is in flight. Called with the
// mutex held and the link open.
void connection::queue_unknown() {
  if (!in_flight_.empty()) return;
  for (pending_ptr& one : unknown_) queue(std::move(one));
  unknown_.clear();
}

// Keeps a command that finds no open link. Called with the mutex held, which it releases.
void connection::send_later(mutex_lock& lock, pending_ptr call, time_point now) {
  const auto refused =
      refusal(call->until, waiting_.size() >= command_limit, call->what.verb(), now);
  if (refused) {
    lock.unlock();
    return call->answer(tl::unexpected(*refused));
  }
  watch_deadline(call->until.first_end());
  const bool at_once = call->until.at_once;
  waiting_.push_back(std::move(call));
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
  for (pending_ptr& one : waiting_) queue(std::move(one));
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
  const bool demoted = options_->wanted == server_options::role::master &&
                       std::ranges::any_of(replies, says_demoted);
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
  if (more) which.flush();  // the server works on it while we call completions

  delivering_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  for (answered& one : finished) one.call->answer(std::move(one.answer));
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

// The server does not know the script of the first command in flight. True: it will be sent again.
// Called with the mutex held; in_flight_ is not empty.
bool connection::keep_unknown() {
  pending& first = *in_flight_.front();
  if (first.runs == nullptr) return false;
  const void* const source = source_of(*first.runs);
  known_.forget(source, source != first.runs);
  if (first.reloads == 0 || !load_failure_.empty()) return false;
  --first.reloads;
  first.again = false;
  pacing_.answer(first.size());
  unknown_.push_back(take_front(in_flight_));
  return true;
}

// Called with the mutex held; in_flight_ is not empty.
void connection::match(reply& answer, std::pmr::vector<answered>& into) {
  pending& first = *in_flight_.front();
  if (first.is_ahead != pending::ahead::no) {
    if (first.is_ahead == pending::ahead::library) {
      // Another client may have loaded it meanwhile.
      const bool there = !answer.is_error() || answer.text.ends_with("already exists");
      load_failure_ = there ? "" : std::move(answer.text);
    }
    pacing_.answer(1);
    return in_flight_.pop_front();
  }
  if (is_unknown_script(answer) && !load_failure_.empty()) answer.text = load_failure_;
  if (first.what.replies() > 1) {
    first.gathered.push_back(std::move(answer));
    if (first.gathered.size() < first.what.replies()) return;
    answer = reply{};
    answer.kind = reply::type::array;
    answer.elements = std::move(first.gathered);
  }
  answer.repeated = first.repeated;
  pacing_.answer(first.size());
  pending_ptr call = take_front(in_flight_);
  if (!call->members.empty()) return open_batch(*call, answer, into);
  into.push_back({std::move(call), std::move(answer)});
}

// Called with the mutex held.
void connection::open_batch(pending& whole, reply& answer, std::pmr::vector<answered>& into) {
  std::vector<reply> answers = batch_answers(whole, std::move(answer));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    pending_ptr& one = whole.members[i];
    if (answers[i].is(reply::type::nil)) {
      queue(std::move(one));
    } else {
      into.push_back({std::move(one), std::move(answers[i])});
    }
  }
}

void connection::ended(link& which, const error& why) {
  mutex_lock lock(mutex_);
  if (&which != link_.get()) return;
  move_all(unknown_, waiting_);
  // Ended by the peer, not by us: see `quiet`. Only if nothing was answered since.
  if (state_ == state::open && !in_flight_.empty() && in_flight_.front()->again) {
    while (!in_flight_.empty() && std::exchange(in_flight_.front()->again, false)) {
      in_flight_.front()->repeated = true;
      waiting_.push_back(take_front(in_flight_));
    }
  }
  drop_link(lock, why, net_.reactor->now());
}

// The end of a link, whichever side noticed it. Called with the mutex held, which it releases.
void connection::drop_link(mutex_lock& lock, const error& why, time_point now) {
  const std::shared_ptr<link> gone = take_link(why, now);
  pending_queue unanswered = std::exchange(in_flight_, {});
  move_all(unknown_, waiting_);
  move_all(held_, waiting_);
  take_waiting(why, unanswered);
  for (const pending_ptr& one : waiting_) watch_deadline(one->until.first_end());
  rest_or_idle(now);
  lock.unlock();
  if (gone != nullptr) gone->close();
  refuse(unanswered, why);
  if (tell_.ended) tell_.ended(why);
}

// The commands that wait for a link and must not wait for the next one. Called with the mutex held.
void connection::take_waiting(const error& why, pending_queue& into) {
  move_if(waiting_, into, [&](const pending& one) {
    return net::definite(why) || (!one.sent && answers(why, one.until));
  });
}

void connection::refuse(const pending_queue& those, const error& why) {
  for (const pending_ptr& one : those) {
    one->answer(tl::unexpected(one->sent ? why : net::unsent(why)));
    for (const pending_ptr& member : one->members) member->answer(tl::unexpected(why));
  }
}

void connection::check_deadlines() {
  mutex_lock lock(mutex_);
  const time_point now = net_.reactor->now();
  if (!alarm_is_due(now)) return;
  const error late = lateness();
  pending_queue expired;
  const auto answer_by = [](const pending& one) { return one.until.deadline; };
  const auto link_by = [](const pending& one) {
    return one.sent ? one.until.deadline : one.until.first_end();
  };
  move_if(waiting_, expired, [&](const pending& one) { return link_by(one) <= now; });
  for (pending_queue* const unsent : {&unknown_, &held_}) {
    move_if(*unsent, expired, [&](const pending& one) { return answer_by(one) <= now; });
  }
  const bool unanswered = std::ranges::any_of(
      in_flight_, [&](const pending_ptr& one) { return answer_by(*one) <= now; });
  time_point next = time_point::max();
  if (!unanswered) {
    for (const pending_ptr& one : in_flight_) next = std::min(next, answer_by(*one));
  }
  for (const pending_ptr& one : unknown_) next = std::min(next, answer_by(*one));
  for (const pending_ptr& one : held_) next = std::min(next, answer_by(*one));
  for (const pending_ptr& one : waiting_) next = std::min(next, link_by(*one));
  watch_deadline(next);
  if (unanswered) {
    drop_link(lock, {errc::unavailable, where() + ": no answer in time"}, now);
  } else {
    lock.unlock();
  }
  refuse(expired, late);
}

void connection::close() noexcept {
  if (guard_.forked()) return;
  mutex_lock lock(mutex_);
  if (state_ == state::closed) return;
  const std::shared_ptr<link> gone = set_closed();
  pending_queue unanswered = std::exchange(in_flight_, {});
  for (pending_queue* const unsent : {&unknown_, &held_, &waiting_}) move_all(*unsent, unanswered);
  lock.unlock();
  if (gone != nullptr) gone->close();
  refuse(unanswered, {errc::unavailable, "closed"});
}

std::optional<server_info> connection::server() const {
  if (guard_.forked()) return std::nullopt;
  const std::scoped_lock lock(mutex_);
  return server_;
}

}  // namespace holdfast::redis
