// The server, by cpp-httplib: the one file that knows it.
#include "cli/http/server.hpp"
#include "runtime/descriptor.hpp"

#include <httplib.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace holdfast::http {

namespace {

using time_point = std::chrono::steady_clock::time_point;

constexpr std::chrono::milliseconds parting{500};
constexpr std::chrono::milliseconds accept_pause{10};
constexpr std::size_t most_dropped = 1UL << 20;

constexpr std::string_view too_many =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: 22\r\n"
    "Retry-After: 1\r\nConnection: close\r\n\r\ntoo many connections.\n";

constexpr std::string_view range_header = "\nrange";

int left_until(time_point by) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(by - std::chrono::steady_clock::now());
  return static_cast<int>(std::max<std::chrono::milliseconds::rep>(left.count(), 0));
}

// A connection as the HTTP library needs it, with limits that its own does not have: on the time
// for the whole request and on its size, however slowly it arrives.
class connection final : public httplib::Stream {
 public:
  // `end_by`: when an answer that is still being written is given up.
  connection(int socket, const limits& bounds, const std::atomic<time_point>& end_by);

  bool is_readable() const override;
  // False, too, if the client is gone.
  bool is_writable() const override;
  ssize_t read(char* into, std::size_t size) override;
  ssize_t write(const char* data, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

  // Signals that the answer is complete and gives the client a moment to read it: closing with
  // unread bytes resets the connection, and the answer would be lost. Closes.
  void finish() noexcept;

 private:
  [[nodiscard]] bool ready(short events, time_point by) const noexcept;
  // Waits until something can be written, as long as the client goes on reading enough.
  [[nodiscard]] bool has_room() const noexcept;
  [[nodiscard]] std::size_t unread() const noexcept;  // bytes
  // Gives each Range header that has just arrived another name: the library would repeat the answer
  // for every range, after a recursion as deep as the header is long.
  void rename_ranges() noexcept;

  const int socket_;
  const limits limits_;
  const std::atomic<time_point>& end_by_;
  const time_point read_by_;
  std::size_t taken_ = 0;  // bytes of the request
  std::array<char, 4096> buffer_{};
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t matched_ = 0;  // how much of range_header ends what has arrived
};

connection::connection(int socket, const limits& bounds, const std::atomic<time_point>& end_by)
    : socket_(socket),
      limits_(bounds),
      end_by_(end_by),
      read_by_(std::chrono::steady_clock::now() + bounds.read_within) {}

bool connection::ready(short events, time_point by) const noexcept {
  for (;;) {
    pollfd file{socket_, events, 0};
    const int found = ::poll(&file, 1, left_until(by));
    if (found > 0) return (file.revents & (events | POLLHUP)) != 0;
    if (found == 0 || errno != EINTR) return false;
  }
}

bool connection::is_readable() const { return begin_ < end_ || ready(POLLIN, read_by_); }

bool connection::is_writable() const {
  char next = 0;
  const ssize_t peeked = ::recv(socket_, &next, 1, MSG_PEEK | MSG_DONTWAIT);
  if (peeked == 0 || (peeked < 0 && errno != EAGAIN && errno != EINTR)) return false;
  return has_room();
}

std::size_t connection::unread() const noexcept {
  int bytes = 0;
  ::ioctl(socket_, SIOCOUTQ, &bytes);
  return static_cast<std::size_t>(bytes);
}

// There is room only when a good part of the kernel's buffer was read, which may be megabytes.
bool connection::has_room() const noexcept {
  for (std::size_t left = unread();;) {
    const auto now = std::chrono::steady_clock::now();
    const time_point end_by = end_by_.load();
    if (now >= end_by) return false;
    if (ready(POLLOUT, std::min(now + limits_.write_within, end_by))) return true;
    const std::size_t before = std::exchange(left, unread());
    if (left + limits_.write_least > before) return false;
  }
}

ssize_t connection::read(char* into, std::size_t size) {
  if (begin_ == end_) {
    if (taken_ >= limits_.request_bytes || !ready(POLLIN, read_by_)) return -1;
    const ssize_t got = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got <= 0) return got;
    begin_ = 0;
    end_ = static_cast<std::size_t>(got);
    taken_ += end_;
    rename_ranges();
  }
  const std::size_t given = std::min(size, end_ - begin_);
  std::memcpy(into, buffer_.data() + begin_, given);
  begin_ += given;
  return static_cast<ssize_t>(given);
}

void connection::rename_ranges() noexcept {
  for (std::size_t i = begin_; i < end_; ++i) {
    const char c = buffer_[i];
    if (c == '\n') matched_ = 0;
    const bool fits = matched_ < range_header.size() &&
                      std::tolower(static_cast<unsigned char>(c)) == range_header[matched_];
    matched_ = fits ? matched_ + 1 : 0;
    if (matched_ == range_header.size()) buffer_[i] = '-';
  }
}

ssize_t connection::write(const char* data, std::size_t size) {
  for (std::size_t sent = 0; sent < size;) {
    if (!has_room()) return -1;
    const ssize_t now = ::send(socket_, data + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (now < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (now <= 0) return -1;
    sent += static_cast<std::size_t>(now);
  }
  return static_cast<ssize_t>(size);
}

// Unused: access is decided by what is sent, not by where it comes from.
void connection::get_remote_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

void connection::get_local_ip_and_port(std::string& ip, int& port) const {
  ip.clear();
  port = 0;
}

void connection::finish() noexcept {
  ::shutdown(socket_, SHUT_WR);
  const auto by = std::chrono::steady_clock::now() + parting;
  for (std::size_t dropped = 0; dropped < most_dropped && ready(POLLIN, by);) {
    const ssize_t got = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (got <= 0) break;
    dropped += static_cast<std::size_t>(got);
  }
  ::close(socket_);
}

// Answers without reading and closes; never blocks.
void refuse(int socket) noexcept {
  [[maybe_unused]] const ssize_t sent =
      ::send(socket, too_many.data(), too_many.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  ::shutdown(socket, SHUT_WR);
  ::close(socket);
}

// A thread per connection, made when it is needed and kept.
class connection_threads {
 public:
  connection_threads(std::size_t most, std::function<void(int socket)> serve)
      : most_(most), serve_(std::move(serve)) {}
  connection_threads(const connection_threads&) = delete;
  connection_threads& operator=(const connection_threads&) = delete;
  // Returns when all are served.
  ~connection_threads() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
  }

  // False: over the limit, ours or the system's. Does not block.
  bool take(int socket) {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= idle_ && !add_thread()) return false;
    waiting_.push_back(socket);
    changed_.notify_one();
    return true;
  }

 private:
  // Called with the mutex held.
  bool add_thread() {
    if (threads_.size() >= most_) return false;
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      return false;
    }
    return true;
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      changed_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
      --idle_;
      if (waiting_.empty()) return;
      const int socket = waiting_.back();
      waiting_.pop_back();
      lock.unlock();
      serve_(socket);
      lock.lock();
    }
  }

  const std::size_t most_;
  const std::function<void(int)> serve_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> waiting_;  // guarded by mutex_, as are the next two
  std::size_t idle_ = 0;
  bool closed_ = false;
  std::vector<std::jthread> threads_;  // last: they use all of the above
};

request taken_over(const httplib::Request& from) {
  request made{.method = from.method, .target = from.target, .headers = {}};
  made.headers.assign(from.headers.begin(), from.headers.end());
  return made;
}

void hand_over(response&& from, httplib::Response& to) {
  to.status = from.status;
  for (const header& one : from.headers) to.set_header(one.first, one.second);
  if (!from.stream) {
    to.set_content(from.body, from.type);
    return;
  }
  to.set_chunked_content_provider(from.type, [next = std::move(from.stream), text = std::string()](
                                                 std::size_t, httplib::DataSink& sink) mutable {
    text.clear();
    bool more = false;
    try {
      more = next(text);
    } catch (const std::exception&) {
      return false;  // no memory: the client sees a broken connection, and retries
    }
    if (!text.empty() && !sink.write(text.data(), text.size())) return false;
    if (!more) sink.done();
    return true;
  });
}

// The library binds, and answers requests. Its own loop would read one of any size, wait for as long
// as bytes trickle in, and end when the system cannot accept a connection.
class library_server final : public server, private httplib::Server {
 public:
  library_server(handler answer, limits bounds) : handler_(std::move(answer)), limits_(bounds) {
    // Without SO_REUSEPORT, the library's default: two servers would share a port without noticing.
    set_socket_options([](socket_t socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    set_payload_max_length(limits_.request_bytes);
    // All routes are the handler's: the library's are regular expressions on a decoded path.
    set_pre_routing_handler([this](const httplib::Request& from, httplib::Response& to) {
      try {
        hand_over(handler_(taken_over(from)), to);
      } catch (const std::exception&) {
        to.status = 500;
        to.set_content("out of resources\n", "text/plain");
      }
      return HandlerResponse::Handled;
    });
  }

  tl::expected<void, std::string> bind(const std::string& host, std::uint16_t port) override {
    errno = 0;
    const int bound = port == 0 ? bind_to_any_port(host) : bind_to_port(host, port) ? port : 0;
    if (bound <= 0) {
      return tl::unexpected(errno != 0 ? std::string(std::strerror(errno)) : "no such address");
    }
    port_ = static_cast<std::uint16_t>(bound);
    listener_ = runtime::descriptor(svr_sock_.load());
    // The library's own backlog is 5: a client that connects along with a few others would wait for
    // a second.
    ::listen(listener_.get(), SOMAXCONN);
    return {};
  }

  [[nodiscard]] std::uint16_t port() const noexcept override { return port_; }

  void run() override {
    connection_threads threads(limits_.connections, [this](int socket) { serve(socket); });
    while (!stopped()) {
      const int socket = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) {
        // For a moment the system may have no descriptor or no memory.
        if (!stopped()) std::this_thread::sleep_for(accept_pause);
      } else if (!threads.take(socket)) {
        refuse(socket);
      }
    }
  }

  void stop() noexcept override {
    time_point running = time_point::max();
    end_by_.compare_exchange_strong(running,
                                    std::chrono::steady_clock::now() + limits_.write_within);
    svr_sock_.store(INVALID_SOCKET);  // the library ends the answers that are streams
    ::shutdown(listener_.get(), SHUT_RDWR);
  }

 private:
  [[nodiscard]] bool stopped() const noexcept { return end_by_.load() != time_point::max(); }

  void serve(int socket) {
    connection stream(socket, limits_, end_by_);
    bool closed = false;
    // Compressing takes longer than it saves on the loopback interface.
    process_request(stream, true, closed,
                    [](httplib::Request& request) { request.headers.erase("Accept-Encoding"); });
    stream.finish();
  }

  const handler handler_;
  const limits limits_;
  std::uint16_t port_ = 0;
  runtime::descriptor listener_;
  std::atomic<time_point> end_by_{time_point::max()};
};

}  // namespace

}  // namespace holdfast::http

extern "C" __attribute__((visibility("default"))) holdfast::http::server* holdfast_http_server(
    holdfast::http::handler&& answer, const holdfast::http::limits& bounds) {
  return new holdfast::http::library_server(std::move(answer), bounds);
}
