#include "stores/etcd/channel.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::etcd {

namespace {

constexpr duration short_life = std::chrono::milliseconds(50);  // of a connection: a failure

bool definite_failure(const error& why) noexcept {
  return why == errc::denied || why == errc::unsupported || why == errc::invalid;
}

}  // namespace

channel::channel(net::network net, std::shared_ptr<const server_options> options)
    : net_(std::move(net)),
      options_(std::move(options)),
      next_server_(net_.reactor->random() % options_->servers.size()),
      backoff_(options_->backoff) {}

std::shared_ptr<channel> channel::make(net::network net,
                                       std::shared_ptr<const server_options> options) {
  return std::shared_ptr<channel>(new channel(std::move(net), std::move(options)));
}

channel::~channel() {
  if (!guard_.forked()) close();
}

void channel::tell(news& told) {
  for (answered_one& one : told.answers) one.who->answered(one.index, std::move(one.answer));
  for (news::heard& each : told.streams) {
    const auto who = each.who.lock();
    if (who == nullptr) continue;
    if (each.end) {
      who->stream_ended(each.stream, *each.end);
    } else {
      who->message(each.stream, each.message);
    }
  }
  told = {};
}

void channel::ask(std::vector<call> batch, const net::patience& until, asker& who) {
  const std::size_t size = batch.size();  // who may be gone with its last answer
  const auto refuse_all = [&](const error& why) {
    for (std::size_t i = 0; i < size; ++i) who.answered(i, tl::unexpected(why));
  };
  if (guard_.forked()) return refuse_all({errc::cancelled, "forked from the client's process"});
  const time_point now = net_.reactor->now();
  news told;
  mutex_lock lock(mutex_);
  std::optional<error> refusal;
  if (state_ == state::closed) {
    refusal = error{errc::cancelled, "closed"};
  } else if (until.deadline <= now) {
    refusal = error{errc::unavailable, "etcd: no time left", true};
  } else if (in_flight_.size() + waiting_.size() + size > call_limit) {
    refusal = error{errc::overloaded, "etcd: too many requests at once"};
  } else if (std::any_of(batch.begin(), batch.end(),
                         [](const call& each) { return each.body.size() > size_limit; })) {
    refusal = error{errc::overloaded, "etcd: a request that is too large for the server"};
  } else if (state_ == state::resting && last_failure_ && definite_failure(*last_failure_)) {
    refusal = last_failure_;
  }
  if (refusal) {
    lock.unlock();
    return refuse_all(*refusal);
  }
  const bool sends = state_ == state::open;
  for (std::size_t i = 0; i < size; ++i) {
    pending one{std::move(batch[i]), &who, i, until, {}};
    if (sends) {
      send_call(std::move(one), now, told);
    } else {
      waiting_.push_back(std::move(one));
    }
  }
  watch_deadline(sends ? std::min(until.deadline, now + options_->stall_limit) : until.first_end());
  if (state_ == state::idle || (state_ == state::resting && until.at_once)) return connect(lock);
  const std::shared_ptr<http2_connection> out = link_;
  const bool later = delivering_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  lock.unlock();
  if (sends && !later) out->flush();
  tell(told);
}

// Called with the mutex held, while open.
void channel::send_call(pending one, time_point now, news& told) {
  one.sent = now;
  one.term_before = term_;
  const std::int32_t stream =
      link_->begin(path_of(one.what.what), one.what.body, http2_connection::kind::call, token_);
  if (stream == 0) {  // it is about to end
    told.answers.push_back(
        {one.who, one.index,
         tl::unexpected(error{errc::unavailable, "etcd: connection closed while sending", true})});
    return;
  }
  // Without a login no call is sent twice.
  if (options_->user.empty()) one.what.body.clear();
  in_flight_.emplace(stream, std::move(one));
}

// Called with the mutex held, which it releases.
void channel::connect(mutex_lock& lock) {
  net_.reactor->cancel(rest_timer_);
  state_ = state::connecting;
  const net::target& where = options_->servers[next_server_ % options_->servers.size()];
  link_ = std::make_shared<http2_connection>(net_, where, options_, weak_from_this());
  const std::shared_ptr<http2_connection> made = link_;
  lock.unlock();
  made->start(net_.reactor->now() + options_->connect_limit);
}

// After a failure: the next member at once; all of them having failed, a pause. Called with the mutex
// held, which it may release.
void channel::connect_or_rest(mutex_lock& lock, time_point now) {
  ++next_server_;
  if (waiting_.empty() && streams_.empty()) {
    state_ = state::idle;
    return;
  }
  if (failures_ % options_->servers.size() != 0 || failures_ == 0) return connect(lock);
  state_ = state::resting;
  rest_timer_ =
      net_.reactor->at(now + backoff_.next(net_.reactor->random()), [weak = weak_from_this()] {
        const auto self = weak.lock();
        if (self == nullptr) return;
        mutex_lock again(self->mutex_);
        if (self->state_ == state::resting) self->connect(again);
      });
}

void channel::opened(http2_connection& which) {
  const time_point now = net_.reactor->now();
  news told;
  mutex_lock lock(mutex_);
  if (&which != link_.get()) return;
  ++connection_;
  term_ = 0;
  last_answered_sent_ = time_point{};
  opened_at_ = now;
  if (!options_->user.empty()) {
    log_in(now);
  } else {
    begin_open(told, now);
  }
  lock.unlock();
  flush();
  tell(told);
}

// Called with the mutex held.
void channel::log_in(time_point now) {
  state_ = state::login;
  const call asks = authenticate_call(options_->user, options_->password.reveal());
  login_stream_ =
      link_->begin(path_of(asks.what), asks.body, http2_connection::kind::call, std::string());
  opened_at_ = now;
  watch_deadline(now + options_->stall_limit);
}

// Called with the mutex held.
void channel::begin_open(news& told, time_point now) {
  state_ = state::open;
  last_failure_.reset();
  for (pending& one : std::exchange(waiting_, {})) {
    send_call(std::move(one), now, told);
  }
  for (auto& [id, each] : streams_) {
    if (each.stream == 0) begin_stream(each);
  }
  if (!in_flight_.empty()) watch_deadline(now + options_->stall_limit);
}

// Called with the mutex held, while open.
void channel::begin_stream(listening& one) {
  const std::vector<std::string> messages = std::exchange(one.unsent, {});
  one.stream =
      link_->begin(path_of(one.what), messages.front(), http2_connection::kind::stream, token_);
  for (std::size_t i = 1; i < messages.size(); ++i) link_->send(one.stream, messages[i]);
}

std::uint64_t channel::open_stream(method what, std::string first,
                                   std::weak_ptr<stream_listener> who) {
  mutex_lock lock(mutex_);
  if (state_ == state::closed || guard_.forked()) return 0;
  const std::uint64_t id = next_stream_++;
  listening& made = streams_[id];
  made.what = what;
  made.unsent.push_back(std::move(first));
  made.who = std::move(who);
  if (state_ == state::idle) {
    // Not from here: a connection that is refused at once would be told within this call.
    net_.reactor->post([weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self == nullptr) return;
      mutex_lock again(self->mutex_);
      if (self->state_ == state::idle && !self->streams_.empty()) self->connect(again);
    });
  } else if (state_ == state::open) {
    begin_stream(made);
    const std::shared_ptr<http2_connection> out = link_;
    lock.unlock();
    out->flush();
  }
  return id;
}

void channel::send(std::uint64_t stream, const std::string& message) {
  mutex_lock lock(mutex_);
  const auto found = streams_.find(stream);
  if (found == streams_.end()) return;
  if (found->second.stream == 0) {
    found->second.unsent.push_back(message);
    return;
  }
  link_->send(found->second.stream, message);
  const std::shared_ptr<http2_connection> out = link_;
  lock.unlock();
  out->flush();
}

// What completions asked goes out together: over the connection of now, which may be another.
void channel::flush() {
  mutex_lock lock(mutex_);
  if (state_ != state::open && state_ != state::login) return;
  const std::shared_ptr<http2_connection> out = link_;
  lock.unlock();
  out->flush();
}

void channel::received(http2_connection& which, std::vector<http2_event> events) {
  const time_point now = net_.reactor->now();
  news told;
  std::optional<error> broken;
  mutex_lock lock(mutex_);
  if (&which != link_.get()) return;
  for (http2_event& each : events) {
    if (!broken) take_event(each, now, told, broken);
  }
  if (broken) {
    drop(lock, *broken, now);
  } else {
    lock.unlock();
  }
  delivering_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  tell(told);
  delivering_.store({}, std::memory_order_relaxed);
  flush();
}

// Called with the mutex held.
void channel::take_event(http2_event& event, time_point now, news& told,
                         std::optional<error>& broken) {
  if (event.stream == login_stream_) return take_token(event, now, told, broken);
  const std::string where = "etcd " + link_->where().text() + ": ";
  const auto call = in_flight_.find(event.stream);
  if (call != in_flight_.end()) {
    pending one = std::move(call->second);
    in_flight_.erase(call);
    if (event.status.code == status_code::unauthenticated && !options_->user.empty() &&
        !one.again && one.who != nullptr) {
      one.again = true;  // refused before anything was done
      waiting_.push_back(std::move(one));
      if (state_ == state::open) log_in(now);
      return;
    }
    last_answered_sent_ = std::max(last_answered_sent_, one.sent);
    reply answer{std::move(event.status),
                 std::move(event.message),
                 {},
                 one.sent,
                 one.term_before,
                 connection_};
    if (event.broken) {
      if (one.who == nullptr) return;
      told.answers.push_back(
          {one.who, one.index, failure(errc::unavailable, where + answer.status.text)});
      return;
    }
    const auto header = answer.ok() ? read_header(answer.body) : std::nullopt;
    if (header) {
      answer.header = *header;
      term_ = header->term;
    }
    if (one.who != nullptr) told.answers.push_back({one.who, one.index, std::move(answer)});
    return;
  }
  const auto found = std::find_if(streams_.begin(), streams_.end(), [&](const auto& each) {
    return each.second.stream == event.stream;
  });
  if (found == streams_.end()) return;
  news::heard heard{found->second.who, found->first, std::move(event.message), std::nullopt};
  if (event.ended) {
    heard.end = error{errc::unavailable, where + event.status.text};
    if (event.status.code == status_code::unauthenticated && state_ == state::open &&
        !options_->user.empty()) {
      log_in(now);
    } else if (event.status.code == status_code::permission_denied) {
      heard.end->code = errc::denied;
    }
    streams_.erase(found);
  }
  told.streams.push_back(std::move(heard));
}

// Called with the mutex held.
void channel::take_token(const http2_event& event, time_point now, news& told,
                         std::optional<error>& broken) {
  login_stream_ = 0;
  const std::string where = "etcd " + link_->where().text() + ": ";
  if (event.status.code == status_code::ok && !event.broken) {
    const auto token = read_token(event.message);
    if (token) {
      token_ = *token;
      return begin_open(told, now);
    }
  }
  // Where nobody has to log in, nobody is kept out.
  if (event.status.code == status_code::failed_precondition && !event.broken) {
    token_.clear();
    return begin_open(told, now);
  }
  const bool refused = event.status.code == status_code::invalid_argument ||
                       event.status.code == status_code::unauthenticated ||
                       event.status.code == status_code::permission_denied;
  broken = error{refused && !event.broken ? errc::denied : errc::unavailable,
                 where + "the login was refused: " + event.status.text};
}

void channel::ended(http2_connection& which, const error& why) {
  mutex_lock lock(mutex_);
  if (&which != link_.get()) return;
  drop(lock, why, net_.reactor->now());
}

// The end of a connection, whoever noticed it. Called with the mutex held, which it releases.
void channel::drop(mutex_lock& lock, const error& why, time_point now) {
  const bool lasted = state_ == state::open && now - opened_at_ > short_life;
  failures_ = lasted ? 0 : failures_ + 1;
  if (lasted) backoff_.succeeded(now - opened_at_);
  last_failure_ = why;
  login_stream_ = 0;
  const std::shared_ptr<http2_connection> gone = std::move(link_);
  news told;
  for (auto& [stream, one] : std::exchange(in_flight_, {})) {
    if (one.who != nullptr) told.answers.push_back({one.who, one.index, tl::unexpected(why)});
  }
  const bool all_failed = failures_ > 0 && failures_ % options_->servers.size() == 0;
  if (definite_failure(why) || all_failed) take_waiting(why, told);
  std::erase_if(streams_, [&](auto& each) {
    if (each.second.stream == 0 && !definite_failure(why)) return false;
    told.streams.push_back({each.second.who, each.first, {}, why});
    return true;
  });
  connect_or_rest(lock, now);
  if (lock.owns_lock()) lock.unlock();
  if (gone != nullptr) gone->close();
  tell(told);
}

// Those that are not to wait for the next connection. Called with the mutex held.
void channel::take_waiting(const error& why, news& told) {
  std::erase_if(waiting_, [&](pending& one) {
    if (!definite_failure(why) && !one.until.takes_failure()) return false;
    told.answers.push_back({one.who, one.index, tl::unexpected(net::unsent(why))});
    return true;
  });
}

void channel::close(std::vector<call> farewell) noexcept {
  if (guard_.forked()) return;
  mutex_lock lock(mutex_);
  const bool was_open = state_ == state::open;
  if (std::exchange(state_, state::closed) == state::closed) return;
  const std::shared_ptr<http2_connection> gone = std::move(link_);
  const error why{errc::unavailable, "closed"};
  news told;
  for (auto& [stream, one] : std::exchange(in_flight_, {})) {
    if (one.who != nullptr) told.answers.push_back({one.who, one.index, tl::unexpected(why)});
  }
  for (pending& one : std::exchange(waiting_, {})) {
    told.answers.push_back({one.who, one.index, tl::unexpected(why)});
  }
  streams_.clear();
  const std::string token = token_;
  const auto timers = {alarm_, rest_timer_};
  lock.unlock();
  for (const auto timer : timers) net_.reactor->cancel(timer);
  if (was_open) {
    for (const call& each : farewell) {
      gone->begin(path_of(each.what), each.body, http2_connection::kind::call, token);
    }
    gone->flush();
  }
  if (gone != nullptr) gone->close();
  tell(told);
}

}  // namespace holdfast::etcd
