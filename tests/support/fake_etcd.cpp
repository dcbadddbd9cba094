#ifdef HOLDFAST_WITH_ETCD
#include "support/fake_etcd.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace holdfast::test {

namespace {

nghttp2_nv field(std::string_view name, std::string_view value) {
  return {reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
          reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())), name.size(),
          value.size(), NGHTTP2_NV_FLAG_NONE};
}

std::size_t size_in(std::string_view prefix) {
  std::size_t size = 0;
  for (std::size_t i = 1; i < 5; ++i) size = size << 8U | static_cast<std::uint8_t>(prefix[i]);
  return size;
}

}  // namespace

struct fake_etcd::connection {
  struct stream {
    request about;
    std::string in;
    std::string out;
    bool begun = false;  // our headers are on their way
    bool ended = false;
    int status = 0;
    std::string text;
    std::string more;
  };

  fake_etcd* owner = nullptr;
  int number = 0;
  int socket = -1;
  nghttp2_session* session = nullptr;
  std::map<std::int32_t, stream> streams;
  std::vector<request> arrived;
  bool over = false;

  ~connection() {
    ::nghttp2_session_del(session);
    ::close(socket);
  }
};

struct fake_etcd::callbacks {
  static connection& self(void* user) { return *static_cast<connection*>(user); }

  static int on_begin(nghttp2_session* /*session*/, const nghttp2_frame* frame, void* user) {
    auto& made = self(user).streams[frame->hd.stream_id];
    made.about.connection = self(user).number;
    made.about.stream = frame->hd.stream_id;
    return 0;
  }
  static int on_header(nghttp2_session* /*session*/, const nghttp2_frame* frame,
                       const std::uint8_t* name, std::size_t name_size, const std::uint8_t* value,
                       std::size_t value_size, std::uint8_t /*flags*/, void* user) {
    const std::string_view which(reinterpret_cast<const char*>(name), name_size);
    const std::string_view what(reinterpret_cast<const char*>(value), value_size);
    request& about = self(user).streams[frame->hd.stream_id].about;
    if (which == ":path") about.path = what;
    if (which == "token") about.token = what;
    return 0;
  }
  static int on_data(nghttp2_session* /*session*/, std::uint8_t /*flags*/, std::int32_t id,
                     const std::uint8_t* data, std::size_t size, void* user) {
    auto& from = self(user).streams[id];
    from.in.append(reinterpret_cast<const char*>(data), size);
    while (from.in.size() >= 5 && from.in.size() - 5 >= size_in(from.in)) {
      const std::size_t length = size_in(from.in);
      request one = from.about;
      one.body = from.in.substr(5, length);
      from.in.erase(0, 5 + length);
      self(user).arrived.push_back(std::move(one));
    }
    return 0;
  }
  static int on_close(nghttp2_session* /*session*/, std::int32_t id, std::uint32_t /*code*/,
                      void* user) {
    self(user).streams.erase(id);
    return 0;
  }
  static ssize_t read(nghttp2_session* session, std::int32_t id, std::uint8_t* into,
                      std::size_t size, std::uint32_t* flags, nghttp2_data_source* /*source*/,
                      void* user) {
    auto& from = self(user).streams[id];
    const std::size_t part = std::min(size, from.out.size());
    if (part == 0 && !from.ended) return NGHTTP2_ERR_DEFERRED;
    std::memcpy(into, from.out.data(), part);
    from.out.erase(0, part);
    if (from.ended && from.out.empty()) {
      *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const std::string status = std::to_string(from.status);
      std::vector<nghttp2_nv> trailer{field("grpc-status", status),
                                      field("grpc-message", from.text)};
      if (!from.more.empty()) trailer.push_back(field("more", from.more));
      ::nghttp2_submit_trailer(session, id, trailer.data(), trailer.size());
    }
    return static_cast<ssize_t>(part);
  }
};

fake_etcd::fake_etcd(script what) : script_(std::move(what)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bell_ = ::eventfd(0, EFD_CLOEXEC);
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof here;
  if (listener_ < 0 || bell_ < 0 ||
      ::bind(listener_, reinterpret_cast<sockaddr*>(&here), size) != 0 ||
      ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&here), &size) != 0) {
    throw std::runtime_error("no port for a server");
  }
  port_ = ::ntohs(here.sin_port);
  thread_ = std::jthread([this] { run(); });
}

fake_etcd::~fake_etcd() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto rung = ::write(bell_, &one, sizeof one);
  thread_.join();
  ::close(listener_);
  ::close(bell_);
}

void fake_etcd::run() {
  for (;;) {
    std::vector<pollfd> watched{{bell_, POLLIN, 0}, {listener_, POLLIN, 0}};
    std::vector<int> numbers;
    for (const auto& [number, each] : open_) {
      watched.push_back({each->socket, POLLIN, 0});
      numbers.push_back(number);
    }
    ::poll(watched.data(), watched.size(), -1);
    if (watched[0].revents != 0) break;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (watched[i + 2].revents != 0) serve(*open_.at(numbers[i]));
    }
    std::erase_if(open_, [](const auto& each) { return each.second->over; });
    if (watched[1].revents == 0) continue;
    auto made = std::make_unique<connection>();
    made->owner = this;
    made->number = ++connections_;
    made->socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const int on = 1;  // an answer is several writes, of which none waits for the client's ACK
    ::setsockopt(made->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    nghttp2_session_callbacks* calls = nullptr;
    ::nghttp2_session_callbacks_new(&calls);
    ::nghttp2_session_callbacks_set_on_begin_headers_callback(calls, callbacks::on_begin);
    ::nghttp2_session_callbacks_set_on_header_callback(calls, callbacks::on_header);
    ::nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, callbacks::on_data);
    ::nghttp2_session_callbacks_set_on_stream_close_callback(calls, callbacks::on_close);
    ::nghttp2_session_server_new(&made->session, calls, made.get());
    ::nghttp2_session_callbacks_del(calls);
    ::nghttp2_submit_settings(made->session, NGHTTP2_FLAG_NONE, nullptr, 0);
    open_.emplace(made->number, std::move(made));
  }
  open_.clear();
}

void fake_etcd::serve(connection& one) {
  std::array<char, 16'384> bytes{};
  const ssize_t size = ::recv(one.socket, bytes.data(), bytes.size(), 0);
  if (size <= 0 ||
      ::nghttp2_session_mem_recv(one.session, reinterpret_cast<std::uint8_t*>(bytes.data()),
                                 static_cast<std::size_t>(size)) < 0) {
    one.over = true;
    return;
  }
  for (const request& each : std::exchange(one.arrived, {})) script_(*this, each);
  for (;;) {
    const std::uint8_t* out = nullptr;
    const ssize_t ready = ::nghttp2_session_mem_send(one.session, &out);
    if (ready <= 0 || one.over) return;
    if (::send(one.socket, out, static_cast<std::size_t>(ready), MSG_NOSIGNAL) != ready) {
      one.over = true;
      return;
    }
  }
}

void fake_etcd::say(const request& to, std::string_view message) {
  std::string framed(1, '\0');
  for (int shift = 24; shift >= 0; shift -= 8) framed += static_cast<char>(message.size() >> shift);
  say_raw(to, framed.append(message));
}

void fake_etcd::say_raw(const request& to, std::string_view bytes) {
  connection& one = *open_.at(to.connection);
  auto& stream = one.streams[to.stream];
  stream.out += bytes;
  if (stream.begun) {
    ::nghttp2_session_resume_data(one.session, to.stream);
    return;
  }
  stream.begun = true;
  const std::array<nghttp2_nv, 2> headers{field(":status", "200"),
                                          field("content-type", "application/grpc")};
  nghttp2_data_provider body{};
  body.read_callback = callbacks::read;
  ::nghttp2_submit_response(one.session, to.stream, headers.data(), headers.size(), &body);
}

void fake_etcd::end(const request& to, int status, const std::string& text,
                    const std::string& more_headers) {
  auto& stream = open_.at(to.connection)->streams[to.stream];
  stream.ended = true;
  stream.status = status;
  stream.text = text;
  stream.more = more_headers;
  say_raw(to, {});
}

void fake_etcd::say_goodbye(const request& to) {
  connection& one = *open_.at(to.connection);
  ::nghttp2_submit_goaway(one.session, NGHTTP2_FLAG_NONE,
                          ::nghttp2_session_get_last_proc_stream_id(one.session), NGHTTP2_NO_ERROR,
                          nullptr, 0);
}

void fake_etcd::hang_up(const request& to) { open_.at(to.connection)->over = true; }

}  // namespace holdfast::test
#endif
