#include "stores/mariadb/conversation.hpp"

#include "runtime/service_thread.hpp"

#include <fcntl.h>
#include <mariadb/errmsg.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>

namespace holdfast::mariadb {

namespace {

// The library sets up its own state once, and also ignores SIGPIPE for the whole process: that is
// not its business, and a program that `run` starts would inherit it.
void prepare_library() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction before {};
    ::sigaction(SIGPIPE, nullptr, &before);
    mysql_server_init(0, nullptr, nullptr);
    ::sigaction(SIGPIPE, &before, nullptr);
  });
}

// A peer that disappears silently is noticed within half a minute, not after two hours.
void keep_alive(int socket) {
  const auto set = [socket](int level, int option, int value) {
    ::setsockopt(socket, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 20000);
  set(IPPROTO_TCP, TCP_NODELAY, 1);
}

void set_up(MYSQL* handle, const server_options& options) {
  constexpr unsigned goodbye = 1;  // seconds: only the last call could block
  const my_bool off = 0;
  const my_bool on = 1;
  const unsigned no_files = 0;
  mysql_options(handle, MYSQL_OPT_NONBLOCK, nullptr);
  mysql_options(handle, MYSQL_OPT_WRITE_TIMEOUT, &goodbye);
  mysql_options(handle, MYSQL_OPT_RECONNECT, &off);
  // Otherwise a server could request any file of this machine.
  mysql_options(handle, MYSQL_OPT_LOCAL_INFILE, &no_files);
  mysql_options(handle, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  mysql_options4(handle, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", "holdfast");
  if (!options.defaults.empty()) {
    mysql_options(handle, MYSQL_READ_DEFAULT_FILE, options.defaults.c_str());
    mysql_options(handle, MYSQL_READ_DEFAULT_GROUP, "client");
  }
  if (options.tls == tls_mode::disabled) return;
  const auto name = [](const std::string& file) { return file.empty() ? nullptr : file.c_str(); };
  mysql_options(handle, MYSQL_OPT_SSL_ENFORCE, &on);
  mysql_options(handle, MYSQL_OPT_SSL_VERIFY_SERVER_CERT,
                options.tls == tls_mode::verified ? &on : &off);
  mysql_options(handle, MYSQL_OPT_SSL_CA, name(options.tls_authorities));
  mysql_options(handle, MYSQL_OPT_SSL_CERT, name(options.tls_certificate));
  mysql_options(handle, MYSQL_OPT_SSL_KEY, name(options.tls_key));
}

}  // namespace

conversation::~conversation() {
  {
    const std::lock_guard lock(mutex_);
    given_up_ = true;
    if (cut_.get() >= 0) ::shutdown(cut_.get(), SHUT_RDWR);
  }
  runtime::end_service(std::move(connecting_));
  if (handle_ != nullptr) mysql_close(handle_);
}

void conversation::abandon() noexcept {
  cut_.close();
  // The handle is leaked: whatever frees it would also write to the parent's socket.
  MYSQL* parents = std::exchange(handle_, nullptr);
  if (parents == nullptr) return;
  const int socket = static_cast<int>(mysql_get_socket(parents));
  if (socket >= 0) ::close(socket);
}

int conversation::socket() const noexcept {
  return handle_ == nullptr ? -1 : static_cast<int>(mysql_get_socket(handle_));
}

void conversation::fail() {
  code_ = mysql_errno(handle_);
  message_ = mysql_error(handle_);
  if (code_ == 0) code_ = CR_UNKNOWN_ERROR;
  step_ = step::idle;
  waits_for_ = 0;
}

bool conversation::connect(const server_options& options, place where, spi::task done) {
  prepare_library();
  where_ = std::move(where);
  code_ = 0;
  handle_ = mysql_init(nullptr);
  if (handle_ == nullptr) {
    code_ = CR_OUT_OF_MEMORY;
    message_ = "out of memory";
    return true;
  }
  set_up(handle_, options);
  if (options.tls == tls_mode::disabled) {
    begin_connecting(options);
    return true;
  }
  try {
    connecting_ =
        runtime::start_service("holdfast-tls", [this, &options, done = std::move(done)]() mutable {
          connect_and_wait(options);
          done();
        });
  } catch (const std::system_error& problem) {
    code_ = CR_UNKNOWN_ERROR;
    message_ = problem.what();
    return true;
  }
  return false;
}

void conversation::begin_connecting(const server_options& options) {
  const auto text = [](const std::string& value) {
    return value.empty() ? nullptr : value.c_str();
  };
  const bool local = where_.host.starts_with('/');
  // By the name "localhost" libmariadb means its own socket.
  const unsigned protocol = local ? MYSQL_PROTOCOL_SOCKET : MYSQL_PROTOCOL_TCP;
  mysql_options(handle_, MYSQL_OPT_PROTOCOL, &protocol);
  MYSQL* made = nullptr;
  step_ = step::connecting;
  waits_for_ = mysql_real_connect_start(
      &made, handle_, local ? nullptr : where_.host.c_str(), text(options.user),
      text(options.password.reveal()), options.database.c_str(), where_.port,
      local ? where_.host.c_str() : nullptr, CLIENT_MULTI_RESULTS | CLIENT_REMEMBER_OPTIONS);
  if (waits_for_ == 0) connected(made != nullptr);
}

void conversation::connect_and_wait(const server_options& options) {
  begin_connecting(options);
  while (waits_for_ != 0 && may_wait()) {
    const bool writes = (waits_for_ & MYSQL_WAIT_WRITE) != 0;
    pollfd watched{socket(), static_cast<short>(writes ? POLLOUT : POLLIN), 0};
    if (::poll(&watched, 1, -1) > 0) go_on(waits_for_);
  }
  const std::lock_guard lock(mutex_);
  cut_.close();
  if (waits_for_ != 0 || code_ != 0) return;
  // libmariadb leaves the socket blocking. In plain text it uses MSG_DONTWAIT in
  // each call; OpenSSL does not.
  ::fcntl(socket(), F_SETFL, ::fcntl(socket(), F_GETFL) | O_NONBLOCK);
}

// False: the connection was given up. Otherwise, giving it up will end the wait for the socket, and
// a handshake that waits for it.
bool conversation::may_wait() {
  const std::lock_guard lock(mutex_);
  cut_ = runtime::descriptor(::fcntl(socket(), F_DUPFD_CLOEXEC, 0));
  return !given_up_;
}

void conversation::connected(bool well) {
  step_ = step::idle;
  well ? keep_alive(socket()) : fail();
}

void conversation::ask(std::string text) {
  text_ = std::move(text);
  rows_.clear();
  code_ = 0;
  message_.clear();
  step_ = step::asking;
  int failed = 0;
  waits_for_ = mysql_real_query_start(&failed, handle_, text_.data(), text_.size());
  if (waits_for_ == 0) asked(failed);
}

void conversation::go_on(int ready) {
  int failed = 0;
  switch (step_) {
    case step::idle:
      return;
    case step::connecting: {
      MYSQL* made = nullptr;
      waits_for_ = mysql_real_connect_cont(&made, handle_, ready);
      if (waits_for_ == 0) connected(made != nullptr);
      return;
    }
    case step::asking:
      waits_for_ = mysql_real_query_cont(&failed, handle_, ready);
      if (waits_for_ == 0) asked(failed);
      return;
    case step::storing: {
      MYSQL_RES* result = nullptr;
      waits_for_ = mysql_store_result_cont(&result, handle_, ready);
      if (waits_for_ == 0) take(result);
      return;
    }
    case step::advancing:
      waits_for_ = mysql_next_result_cont(&failed, handle_, ready);
      if (waits_for_ == 0) asked(failed);
      return;
  }
}

// A result begins, or there is none.
void conversation::asked(int failed) {
  if (failed > 0) return fail();
  if (mysql_field_count(handle_) == 0) {
    // libmariadb has been seen to report success although the connection was
    // reset: no packet had said so.
    constexpr auto unsaid = static_cast<my_ulonglong>(-1);
    return mysql_affected_rows(handle_) == unsaid ? fail() : advance();
  }
  MYSQL_RES* result = nullptr;
  step_ = step::storing;
  waits_for_ = mysql_store_result_start(&result, handle_);
  if (waits_for_ == 0) take(result);
}

void conversation::take(MYSQL_RES* result) {
  if (result == nullptr) return fail();
  while (MYSQL_ROW row = mysql_fetch_row(result)) {
    const unsigned long* lengths = mysql_fetch_lengths(result);
    std::string_view value(row[0] == nullptr ? "" : row[0], row[0] == nullptr ? 0 : lengths[0]);
    while (!value.empty()) {
      const std::size_t end = std::min(value.find('\n'), value.size());
      rows_.emplace_back(value.substr(0, end));
      value.remove_prefix(std::min(end + 1, value.size()));
    }
  }
  mysql_free_result(result);
  advance();
}

void conversation::advance() {
  step_ = step::idle;
  if (!mysql_more_results(handle_)) return;
  int failed = 0;
  step_ = step::advancing;
  waits_for_ = mysql_next_result_start(&failed, handle_);
  if (waits_for_ == 0) asked(failed);
}

}  // namespace holdfast::mariadb
