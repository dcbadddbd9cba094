#include "stores/etcd/channel.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::etcd {

namespace {

bool says(const grpc_status& what, std::string_view text) {
  return what.text.find(text) != std::string::npos;
}

// The token is not valid any more, was given before the rights were changed, or there is none
// because no login was needed when we connected. Nothing was done.
bool wants_login(const grpc_status& what) {
  if (what.code == status_code::unauthenticated) return true;
  return what.code == status_code::invalid_argument &&
         (says(what, "revision of auth store is old") || says(what, "user name is empty"));
}

// This member is cut off from the others, or does not count yet: another one may serve.
bool wants_another(const grpc_status& what) {
  return what.code == status_code::unavailable &&
         (says(what, "no leader") || says(what, "request timed out") || says(what, "learner"));
}

}  // namespace

channel::channel(const net::network& net, std::shared_ptr<const server_options> options)
    : reconnecting_connection(net, options->backoff, options->servers.size(),
                              net.reactor->random() % options->servers.size()),
      options_(std::move(options)) {}

std::shared_ptr<channel> channel::make(const net::network& net,
                                       std::shared_ptr<const server_options> options) {
  return std::shared_ptr<channel>(new channel(net, std::move(options)));
}

channel::~channel() {
  if (!guard_.forked()) close();
}

void channel::tell(news& told) {
  for (answered_one& one : told.answers) one.tell();
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
  mutex_lock lock(mutex_);
  const bool full = in_flight_.size() + waiting_.size() + size > call_limit;
  std::optional<error> refused_for = refusal(until, full, {}, now);
  if (!refused_for &&
      std::ranges::any_of(batch, [](const call& each) { return each.body.size() > size_limit; })) {
    refused_for = error{errc::overloaded, "etcd: a request that is too large for the server"};
  }
  if (refused_for) {
    lock.unlock();
    return refuse_all(*refused_for);
  }
  const bool sends = state_ == state::open && !retiring_;
  for (std::size_t i = 0; i < size; ++i) {
    pending one{std::move(batch[i]), &who, i, until, {}};
    if (sends) {
      send_call(std::move(one), now);
    } else {
      waiting_.push_back(std::move(one));
    }
  }
  watch_deadline(sends ? std::min(until.deadline, now + options_->stall_limit) : until.first_end());
  if (!sends) return reach(lock, until.at_once, now);
  const std::shared_ptr<http2_connection> out = link_;
  const bool later = delivering_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  lock.unlock();
  if (!later) out->flush();
}

// Called with the mutex held, while open.
void channel::send_call(pending one, time_point now) {
  one.sent = now;
  one.term_before = term_;
  const std::int32_t stream =
      link_->begin(path_of(one.what.what), one.what.body, http2_connection::kind::call, token_);
  if (stream == 0) {
    watch_deadline(one.until.first_end());
    waiting_.push_back(std::move(one));
    return retire();
  }
  // Without a login no call is sent again.
  if (options_->user.empty()) one.what.body.clear();
  in_flight_.emplace(stream, std::move(one));
}

// Called with the mutex held, while open. The connection takes no more calls: new ones wait for the
// next connection, which is made when the calls on this one are answered.
void channel::retire() {
  if (std::exchange(retiring_, true)) return;
  net_.reactor->post([weak = weak_from_this(), old = std::weak_ptr(link_)] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    mutex_lock lock(self->mutex_);
    if (self->link_ == nullptr || self->link_ != old.lock() || !self->in_flight_.empty()) return;
    self->drop(lock, self->goodbye(), self->net_.reactor->now());
  });
}

// Called with the mutex held, while there is a connection.
error channel::goodbye() const {
  return {errc::unavailable, where() + ": the server says goodbye"};
}

// Called with the mutex held.
std::shared_ptr<http2_connection> channel::make_link() {
  const net::target& next = options_->servers[turn_ % options_->servers.size()];
  return std::make_shared<http2_connection>(net_, next, options_, weak_from_this());
}

void channel::start_link(http2_connection& made) {
  made.start(net_.reactor->now() + options_->connect_limit);
}

// Called with the mutex held.
std::string channel::where() const {
  return link_ == nullptr ? "etcd" : "etcd " + link_->where().text();
}

void channel::opened(http2_connection& which) {
  const time_point now = net_.reactor->now();
  mutex_lock lock(mutex_);
  if (&which != link_.get()) return;
  ++connection_;
  retiring_ = false;
  term_ = 0;
  last_answered_sent_ = time_point{};
  opened_at_ = now;
  if (!options_->user.empty()) {
    log_in(now);
  } else {
    begin_open(now);
  }
  lock.unlock();
  flush();
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
void channel::begin_open(time_point now) {
  set_open(opened_at_);
  for (pending& one : std::exchange(waiting_, {})) {
    send_call(std::move(one), now);
  }
  for (auto& [id, each] : streams_) {
    if (each.stream == 0) begin_stream(each);
  }
  if (!in_flight_.empty()) watch_deadline(now + options_->stall_limit);
}

// What completions asked for goes out together, over the current connection,
// which may be another one.
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
  if (!broken && retiring_ && in_flight_.empty()) broken = goodbye();
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
  if (event.stream == login_stream_) return take_token(event, now, broken);
  const std::string server = where() + ": ";
  const auto call = in_flight_.find(event.stream);
  if (call != in_flight_.end()) {
    pending one = std::move(call->second);
    in_flight_.erase(call);
    if (wants_login(event.status) && !options_->user.empty() && !one.again && one.who != nullptr) {
      one.again = true;
      waiting_.push_back(std::move(one));
      if (state_ == state::open) log_in(now);
      return;
    }
    last_answered_sent_ = std::max(last_answered_sent_, one.sent);
    if (wants_another(event.status) && options_->servers.size() > 1) {
      broken = error{errc::unavailable, server + event.status.text};
    }
    reply answer{std::move(event.status),
                 std::move(event.message),
                 {},
                 one.sent,
                 one.term_before,
                 connection_};
    if (event.broken) {
      if (one.who == nullptr) return;
      told.answers.push_back(
          {one.who, one.index, failure(errc::unavailable, server + answer.status.text)});
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
    heard.end = error{errc::unavailable, server + event.status.text};
    if (wants_login(event.status) && state_ == state::open && !options_->user.empty()) {
      log_in(now);
    } else if (wants_another(event.status) && options_->servers.size() > 1) {
      broken = heard.end;
    } else if (event.status.code == status_code::permission_denied) {
      heard.end->code = errc::denied;
    }
    streams_.erase(found);
  }
  told.streams.push_back(std::move(heard));
}

// Called with the mutex held.
void channel::take_token(const http2_event& event, time_point now, std::optional<error>& broken) {
  login_stream_ = 0;
  const std::string server = where() + ": ";
  if (event.status.code == status_code::ok && !event.broken) {
    const auto token = read_token(event.message);
    if (token) {
      token_ = *token;
      return begin_open(now);
    }
  }
  // Where no login is needed, nobody is kept out.
  if (event.status.code == status_code::failed_precondition && !event.broken) {
    token_.clear();
    return begin_open(now);
  }
  const bool refused = event.status.code == status_code::invalid_argument ||
                       event.status.code == status_code::unauthenticated ||
                       event.status.code == status_code::permission_denied;
  broken = error{refused && !event.broken ? errc::denied : errc::unavailable,
                 server + "the login was refused: " + event.status.text};
}

void channel::ended(http2_connection& which, const error& why) {
  mutex_lock lock(mutex_);
  if (&which != link_.get()) return;
  drop(lock, why, net_.reactor->now());
}

// The end of a connection, noticed by either side. Called with the mutex held, which it releases.
void channel::drop(mutex_lock& lock, const error& why, time_point now) {
  login_stream_ = 0;
  retiring_ = false;
  const std::shared_ptr<http2_connection> gone = take_link(why, now);
  news told;
  for (auto& [stream, one] : std::exchange(in_flight_, {})) {
    if (one.who != nullptr) told.answers.push_back({one.who, one.index, tl::unexpected(why)});
  }
  stores::take_waiting(waiting_, why, told.answers,
                       [&](const pending& one) { return answers(why, one.until); });
  std::erase_if(streams_, [&](auto& each) {
    if (each.second.stream == 0 && !net::definite(why)) return false;
    told.streams.push_back({each.second.who, each.first, {}, why});
    return true;
  });
  rest_or_idle(now);
  lock.unlock();
  if (gone != nullptr) gone->close();
  tell(told);
}

void channel::close(const std::vector<call>& farewell) noexcept {
  if (guard_.forked()) return;
  mutex_lock lock(mutex_);
  const bool was_open = state_ == state::open;
  if (state_ == state::closed) return;
  const std::shared_ptr<http2_connection> gone = set_closed();
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
  lock.unlock();
  if (was_open) {
    for (const call& each : farewell) {
      gone->begin(path_of(each.what), each.body, http2_connection::kind::call, token);
    }
    gone->flush();
  }
  if (gone != nullptr) gone->close();
  tell(told);
}

error refusal(const char* doing, std::string_view key, const grpc_status& what) {
  const std::string text =
      std::string("etcd: ") + doing + " " + std::string(key) + ": " + what.text;
  switch (what.code) {
    case status_code::permission_denied:
      return {errc::denied, text + "; read and write are needed there"};
    case status_code::unauthenticated:
      return {errc::denied, text};
    case status_code::invalid_argument:
      // "user name is empty": it requires a login. "too many operations", "too
      // large": a limit of its own.
      if (what.text.find("user") != std::string::npos) return {errc::denied, text};
      if (what.text.find("too ") != std::string::npos) return {errc::overloaded, text};
      return {errc::unavailable, text};
    case status_code::exhausted:
      return {errc::overloaded, text};
    case status_code::unimplemented:
      return {errc::unsupported, text};
    default:
      return {errc::unavailable, text};
  }
}

task<result<reply>> ask_one(std::shared_ptr<channel> whom, call& what, const char* doing,
                            std::string_view key, net::patience until) {
  std::vector<call> batch;
  batch.push_back(std::move(what));
  replies answers = co_await asking(std::move(whom), std::move(batch), until);
  result<reply>& answer = answers.front();
  if (answer && !answer->ok()) co_return tl::unexpected(refusal(doing, key, answer->status));
  co_return std::move(answer);
}

result<txn_answer> txn_in(const result<reply>& answer, const char* doing, std::string_view key) {
  if (!answer) return tl::unexpected(answer.error());
  if (answer->ok()) return read_txn(answer->body);
  if (answer->status.code == status_code::not_found && says(answer->status, "lease")) {
    return failure(errc::lost, "the etcd lease has ended");
  }
  return tl::unexpected(refusal(doing, key, answer->status));
}

task<result<txn_answer>> ask_txn(std::shared_ptr<channel> whom, txn_writer& step, const char* doing,
                                 std::string_view key, net::patience until) {
  std::vector<call> batch;
  batch.push_back(std::move(step).made());
  const replies answers = co_await asking(std::move(whom), std::move(batch), until);
  co_return txn_in(answers.front(), doing, key);
}

}  // namespace holdfast::etcd
