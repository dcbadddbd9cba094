// A server on Asio: a coroutine per connection, each selling under a lock that other servers share.
#include <holdfast/asio.hpp>

#include <asio.hpp>

#include <iostream>
#include <string>

using asio::ip::tcp;
using namespace std::chrono_literals;

asio::awaitable<void> serve(tcp::socket socket, holdfast::mutex& stock, int& left) {
  std::string answer = "too busy\n";
  if (auto lease = co_await holdfast::async_acquire(stock, {.wait = 1s}, asio::use_awaitable)) {
    answer = left > 0 ? "sold " + std::to_string(left--) + "\n" : "sold out\n";
  }
  co_await asio::async_write(socket, asio::buffer(answer), asio::use_awaitable);
}

asio::awaitable<void> listen(tcp::acceptor& acceptor, holdfast::mutex& stock, int& left) {
  for (;;) {
    auto socket = co_await acceptor.async_accept(asio::use_awaitable);
    asio::co_spawn(acceptor.get_executor(), serve(std::move(socket), stock, left), asio::detached);
  }
}

asio::awaitable<void> buy(tcp::endpoint where, std::string& heard) {
  tcp::socket socket(co_await asio::this_coro::executor);
  co_await socket.async_connect(where, asio::use_awaitable);
  char buffer[64];
  const auto size = co_await socket.async_read_some(asio::buffer(buffer), asio::use_awaitable);
  heard.append(buffer, size);
}

int main(int argc, char** argv) {
  auto client = holdfast::client::open(argc > 1 ? argv[1] : "memory:").value();
  holdfast::mutex stock(client, "stock/42");
  int left = 3;  // guarded by the lock
  std::string heard;

  asio::io_context io;
  tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
  asio::co_spawn(io, listen(acceptor, stock, left), asio::detached);
  int buyers = 5;
  for (int i = buyers; i > 0; --i) {
    asio::co_spawn(io, buy(acceptor.local_endpoint(), heard), [&](const std::exception_ptr&) {
      if (--buyers == 0) io.stop();
    });
  }
  io.run();
  client.close();  // before `io` is destroyed: the client's threads call into it
  std::cout << heard;
  return left == 0 ? 0 : 1;
}
