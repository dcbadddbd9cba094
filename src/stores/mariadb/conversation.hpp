// libmariadb's non-blocking calls as one task that continues when its socket is ready: connect, or
// send a query and read all of its answer.
#pragma once

#include "runtime/descriptor.hpp"
#include "stores/mariadb/libmariadb.hpp"
#include "stores/mariadb/options.hpp"
#include "stores/sql/answers.hpp"

#include <holdfast/spi/runtime.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace holdfast::mariadb {

// Not thread-safe. One task at a time:
//
//   step        waits for                     then
//   idle        -                             connecting, asking
//   connecting  TCP, TLS, authentication      idle: finished
//   asking      the first answer              storing; advancing; idle
//   storing     the rows of one result        advancing; idle
//   advancing   the next result               storing; idle
class conversation {
 public:
  conversation() = default;
  ~conversation();
  conversation(const conversation&) = delete;
  conversation& operator=(const conversation&) = delete;

  struct place {
    std::string host;  // a name or address, or the path of a unix socket
    std::uint16_t port = 0;
  };
  // The options must outlive this object: libmariadb reads them at its own time.
  //
  // False: a thread does it, which calls `done`, and nothing else may be called before that.
  // This is so with TLS, since libmariadb's handshake blocks whatever it was told. Destroying
  // this object ends the wait.
  bool connect(const server_options& options, place where, spi::task done);
  void ask(std::string text);
  // The socket is ready as requested (MYSQL_WAIT_ flags).
  void go_on(int ready);

  [[nodiscard]] bool finished() const noexcept { return waits_for_ == 0; }
  [[nodiscard]] int waits_for() const noexcept { return waits_for_; }
  [[nodiscard]] int socket() const noexcept;
  [[nodiscard]] MYSQL* handle() const noexcept { return handle_; }

  // Of a task that has finished. Values of the first column; a value of several lines is several rows.
  [[nodiscard]] sql::rows& rows() noexcept { return rows_; }
  [[nodiscard]] unsigned code() const noexcept { return code_; }  // 0: success
  // How many rows a statement without rows has changed, and the number that it
  // passed to LAST_INSERT_ID.
  [[nodiscard]] std::uint64_t changed() const noexcept { return mysql_affected_rows(handle_); }
  [[nodiscard]] std::uint64_t number() const noexcept { return mysql_insert_id(handle_); }
  [[nodiscard]] const std::string& message() const noexcept { return message_; }

  // Closes only our copies of the socket: a forked child must not end the session in the parent's
  // name, and does not have the thread. Afterwards this object must not be destroyed.
  void abandon() noexcept;

 private:
  enum class step : std::uint8_t { idle, connecting, asking, storing, advancing };

  void begin_connecting(const server_options& options);
  void connect_and_wait(const server_options& options);
  void connected(bool well);
  bool may_wait();
  void advance();
  void take(MYSQL_RES* result);
  void asked(int failed);
  void fail();

  MYSQL* handle_ = nullptr;
  step step_ = step::idle;
  int waits_for_ = 0;
  place where_;       // libmariadb reads it until it is connected
  std::string text_;  // libmariadb reads it until the query is sent
  sql::rows rows_;
  unsigned code_ = 0;
  std::string message_;

  std::unique_ptr<std::jthread> connecting_;  // with TLS
  std::mutex mutex_;
  bool given_up_ = false;    // guarded by mutex_
  runtime::descriptor cut_;  // guarded by mutex_; of the same socket: libmariadb may close its own
};

}  // namespace holdfast::mariadb
