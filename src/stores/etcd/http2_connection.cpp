#include "stores/etcd/http2_connection.hpp"

#include "core/hex.hpp"
#include "stores/etcd/nghttp2.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace holdfast::etcd {

namespace {

constexpr std::uint32_t window = std::uint32_t{8} * 1024 * 1024;
constexpr std::size_t text_limit = 256;
constexpr std::size_t prefix_size = 5;  // of a message: compressed or not, and its size

std::string framed(std::string_view message) {
  std::string bytes(prefix_size, '\0');
  const auto size = static_cast<std::uint32_t>(message.size());
  for (unsigned i = 0; i < 4; ++i) bytes[1 + i] = static_cast<char>(size >> (24 - 8 * i));
  bytes += message;
  return bytes;
}

// gRPC's percent-encoding of a status text, made safe to show.
std::string shown(std::string_view encoded) {
  std::string text;
  for (std::size_t i = 0; i < encoded.size() && text.size() < text_limit; ++i) {
    char c = encoded[i];
    const int byte = c == '%' ? core::hex_byte(encoded.substr(i + 1)) : -1;
    if (byte >= 0) {
      c = static_cast<char>(byte);
      i += 2;
    }
    text += c >= 0x20 && c < 0x7f ? c : '?';
  }
  return text;
}

nghttp2_nv header(std::string_view name, std::string_view value, std::uint8_t flags = 0) {
  return {reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
          reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())), name.size(),
          value.size(), flags};
}

}  // namespace

// What the library calls, always within one of our calls and under the mutex.
struct http2_connection::callbacks {
  static http2_connection& self(void* user) { return *static_cast<http2_connection*>(user); }

  static int on_frame(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    if (frame->hd.type == NGHTTP2_SETTINGS && (frame->hd.flags & NGHTTP2_FLAG_ACK) == 0) {
      self(user).settings_came_ = true;
    }
    if (frame->hd.type == NGHTTP2_GOAWAY) self(user).going_away_ = true;
    const bool carries = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (carries && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
      // The answer is complete, though our side of the stream is still open.
      const auto found = self(user).streams_.find(frame->hd.stream_id);
      if (found != self(user).streams_.end() && !found->second.finished) {
        self(user).take_end(frame->hd.stream_id, NGHTTP2_NO_ERROR);
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_CANCEL);
      }
    }
    return 0;
  }
  static int on_header(nghttp2_session* /*session*/, const nghttp2_frame* frame,
                       const std::uint8_t* name, std::size_t name_size, const std::uint8_t* value,
                       std::size_t value_size, std::uint8_t /*flags*/, void* user) {
    const auto found = self(user).streams_.find(frame->hd.stream_id);
    if (found == self(user).streams_.end()) return 0;
    found->second.headers += name_size + value_size;
    if (found->second.headers > header_limit) {
      found->second.problem = "headers that are too large";
      return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    self(user).take_header(found->second, {reinterpret_cast<const char*>(name), name_size},
                           {reinterpret_cast<const char*>(value), value_size});
    return 0;
  }
  static int on_data(nghttp2_session* session, std::uint8_t /*flags*/, std::int32_t id,
                     const std::uint8_t* data, std::size_t size, void* user) {
    const auto found = self(user).streams_.find(id);
    if (found == self(user).streams_.end()) return 0;
    if (!self(user).take_data(found->second, id, {reinterpret_cast<const char*>(data), size})) {
      nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_INTERNAL_ERROR);
    }
    return 0;
  }
  static int on_close(nghttp2_session* /*session*/, std::int32_t id, std::uint32_t code,
                      void* user) {
    self(user).take_end(id, code);
    return 0;
  }
  static ssize_t read(nghttp2_session* /*session*/, std::int32_t id, std::uint8_t* into,
                      std::size_t size, std::uint32_t* flags, nghttp2_data_source* /*source*/,
                      void* user) {
    const auto found = self(user).streams_.find(id);
    if (found == self(user).streams_.end()) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    one_stream& from = found->second;
    const std::size_t part = std::min(size, from.outgoing.size() - from.sent);
    if (part == 0 && !from.finished) return NGHTTP2_ERR_DEFERRED;
    from.outgoing.copy(reinterpret_cast<char*>(into), part, from.sent);
    from.sent += part;
    if (from.sent == from.outgoing.size()) {
      from.outgoing.clear();
      from.sent = 0;
      if (from.finished) *flags |= NGHTTP2_DATA_FLAG_EOF;
    }
    return static_cast<ssize_t>(part);
  }

  static nghttp2_session* make(http2_connection& user) {
    nghttp2_session_callbacks* made = nullptr;
    nghttp2_session* session = nullptr;
    if (nghttp2_session_callbacks_new(&made) != 0) return nullptr;
    nghttp2_session_callbacks_set_on_frame_recv_callback(made, on_frame);
    nghttp2_session_callbacks_set_on_header_callback(made, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(made, on_close);
    if (nghttp2_session_client_new(&session, made, &user) != 0) session = nullptr;
    nghttp2_session_callbacks_del(made);
    return session;
  }
};

http2_connection::http2_connection(net::network net, net::target where,
                                   std::shared_ptr<const server_options> options,
                                   std::weak_ptr<http2_user> user)
    : link_base(std::move(net), std::move(where), options->tls, "etcd"),
      options_(std::move(options)),
      authority_(this->where().text()),
      user_(std::move(user)) {}

http2_connection::~http2_connection() {
  if (!guard_.forked()) close();
  if (session_ != nullptr) nghttp2_session_del(session_);
}

void http2_connection::start(time_point deadline) {
  connect(weak_from_this(), deadline, "no answer in time");
}

void http2_connection::connected() {
  {
    const std::scoped_lock lock(mutex_);
    if (over_) return;
    session_ = callbacks::make(*this);
    if (session_ != nullptr) {
      const std::array<nghttp2_settings_entry, 2> settings{
          {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}, {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window}}};
      nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
      nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, window);
      pump();
    }
  }
  if (session_ == nullptr) return fail({errc::unavailable, "etcd: out of memory"});
  stream_->start(weak_from_this());
  stream_->flush();
}

void http2_connection::tell_end(const error& why) {
  if (const auto user = user_.lock()) user->ended(*this, why);
}

// Called with the mutex held. Queues what the library wants to send.
void http2_connection::pump() {
  for (;;) {
    const std::uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
    if (size <= 0) return;
    stream_->queue({reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size)});
  }
}

std::int32_t http2_connection::begin(std::string_view path, std::string_view message, kind what,
                                     const std::string& token) {
  const std::scoped_lock lock(mutex_);
  if (over_ || going_away_ || session_ == nullptr) return 0;
  std::vector<nghttp2_nv> headers{
      header(":method", "POST"),
      header(":scheme", options_->tls == nullptr ? "http" : "https"),
      header(":path", path),
      header(":authority", authority_),
      header("te", "trailers"),
      header("content-type", "application/grpc"),
      header("user-agent", "holdfast"),
      // A member without a leader then says so, instead of waiting for one.
      header("hasleader", "true"),
  };
  if (!token.empty()) headers.push_back(header("token", token));
  nghttp2_data_provider body{};
  body.read_callback = callbacks::read;
  const std::int32_t id =
      nghttp2_submit_request(session_, nullptr, headers.data(), headers.size(), &body, nullptr);
  if (id <= 0) return 0;
  one_stream& made = streams_[id];
  made.what = what;
  made.outgoing = framed(message);
  made.finished = what == kind::call;
  pump();
  return id;
}

void http2_connection::send(std::int32_t stream, std::string_view message) {
  const std::scoped_lock lock(mutex_);
  const auto found = streams_.find(stream);
  if (over_ || found == streams_.end()) return;
  found->second.outgoing += framed(message);
  nghttp2_session_resume_data(session_, stream);
  pump();
}

void http2_connection::reset(std::int32_t stream) {
  const std::scoped_lock lock(mutex_);
  const auto found = streams_.find(stream);
  if (over_ || found == streams_.end()) return;
  count(found->second, 0);
  streams_.erase(found);
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
  pump();
}

// Called with the mutex held.
void http2_connection::count(one_stream& of, std::size_t now) noexcept {
  buffered_ += now - of.counted;
  of.counted = now;
}

// Called with the mutex held. False: not gRPC, or too much data.
bool http2_connection::take_data(one_stream& into, std::int32_t id, std::string_view bytes) {
  into.incoming += bytes;
  std::string_view rest = into.incoming;
  while (rest.size() >= prefix_size) {
    std::size_t size = 0;
    for (std::size_t i = 1; i < prefix_size; ++i) {
      size = size << 8U | static_cast<std::uint8_t>(rest[i]);
    }
    if (rest[0] != 0 || size > message_limit || (into.answered && into.what == kind::call)) {
      into.problem = "an answer that is not gRPC, or too large";
      return false;
    }
    if (rest.size() - prefix_size < size) break;
    std::string message(rest.substr(prefix_size, size));
    rest.remove_prefix(prefix_size + size);
    if (into.what == kind::call) {
      into.message = std::move(message);
      into.answered = true;
    } else {
      events_.push_back({id, false, std::move(message), {}});
    }
  }
  into.incoming.erase(0, into.incoming.size() - rest.size());
  count(into, into.incoming.size() + into.message.size());
  if (buffered_ <= buffer_limit) return true;
  into.problem = "too much at once";
  return false;
}

// Called with the mutex held.
void http2_connection::take_header(one_stream& into, std::string_view name,
                                   std::string_view value) {
  const auto number = [&](int& out) {
    return std::from_chars(value.data(), value.data() + value.size(), out).ec == std::errc{};
  };
  if (name == ":status") number(into.http_status);
  if (name == "grpc-status") into.has_status = number(into.status.code);
  if (name == "grpc-message") into.status.text = shown(value);
}

// Called with the mutex held.
void http2_connection::take_end(std::int32_t id, std::uint32_t code) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  one_stream one = std::move(found->second);
  count(one, 0);
  streams_.erase(found);
  http2_event event{id, true, std::move(one.message), std::move(one.status)};
  const bool silent = one.status.code == status_code::ok && one.what == kind::call && !one.answered;
  if (!one.has_status || !one.problem.empty() || silent) {
    event.broken = true;
    event.status.code = status_code::unknown;
    event.status.text = !one.problem.empty() ? one.problem
                        : one.http_status != 0 && one.http_status != 200
                            ? "HTTP status " + std::to_string(one.http_status)
                            : "stream ended (" + std::string(nghttp2_http2_strerror(code)) + ")";
  }
  events_.push_back(std::move(event));
}

void http2_connection::received(std::string_view bytes) {
  const std::shared_ptr<http2_user> user = user_.lock();
  if (user == nullptr) return close();
  std::vector<http2_event> events;
  bool opens = false;
  bool leaves = false;
  std::string wrong;
  spi::runtime::timer_id timer = 0;
  {
    const std::scoped_lock lock(mutex_);
    if (over_) return;
    const ssize_t taken = nghttp2_session_mem_recv(
        session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    if (taken < 0) wrong = nghttp2_strerror(static_cast<int>(taken));
    pump();
    events = std::exchange(events_, {});
    opens = settings_came_ && !std::exchange(opened_, settings_came_);
    leaves = going_away_ && streams_.empty();
    if (opens) timer = greeted();
  }
  stream_->flush();
  if (opens) {
    net_.reactor->cancel(timer);
    user->opened(*this);
  }
  if (!events.empty()) user->received(*this, std::move(events));
  if (!wrong.empty()) {
    return fail(problem(wrong + (opened_ ? "" : "; this is not HTTP/2")));
  }
  if (leaves) fail(problem("the server says goodbye"));
}

}  // namespace holdfast::etcd
