// A server that speaks gRPC over HTTP/2 and says what a test wants it to say, including what no
// sane server would.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace holdfast::test {

// The script runs on the server's thread, once for each message that arrives.
class fake_etcd {
 public:
  struct request {
    int connection = 0;  // counted from 1
    std::int32_t stream = 0;
    std::string path;
    std::string token;
    std::string body;
  };
  using script = std::function<void(fake_etcd&, const request&)>;

  explicit fake_etcd(script what);
  ~fake_etcd();
  fake_etcd(const fake_etcd&) = delete;
  fake_etcd& operator=(const fake_etcd&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] int connections() const noexcept { return connections_; }  // ever

  // For the script.
  void say(const request& to, std::string_view message);  // one more message
  void say_raw(const request& to, std::string_view bytes);
  void end(const request& to, int status = 0, const std::string& text = {},
           const std::string& more_headers = {});
  void answer(const request& to, std::string_view message) {
    say(to, message);
    end(to);
  }
  void say_goodbye(const request& to);  // no new streams on this connection, the others go on
  void hang_up(const request& to);

 private:
  struct connection;
  struct callbacks;
  friend struct callbacks;

  void run();
  void serve(connection& one);

  const script script_;
  int listener_ = -1;
  int bell_ = -1;
  std::uint16_t port_ = 0;
  std::atomic<int> connections_{0};
  std::map<int, std::unique_ptr<connection>> open_;  // only by the thread
  std::jthread thread_;
};

}  // namespace holdfast::test
