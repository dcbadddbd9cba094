// A TCP proxy on the loopback interface that does what networks do: delays, loses, cuts, tears. Put
// between a client and its server, and changed while they talk.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>

namespace holdfast::test {

// Thread-safe. A thread of its own moves the bytes; settings apply to all connections, including
// later ones, from the next piece of bytes on. A piece is what one read returns; with quick small
// answers, one answer. Nothing is lost unless it was requested.
class fault_proxy {
 public:
  enum class way : std::uint8_t { to_server, to_client };

  // Listens on a free loopback port and connects to the server's for each client.
  explicit fault_proxy(std::uint16_t server_port);
  ~fault_proxy();
  fault_proxy(const fault_proxy&) = delete;
  fault_proxy& operator=(const fault_proxy&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept;

  // Normal operation from now on; what was held is forwarded.
  void pass();
  // Each piece is forwarded this much later, in order.
  void delay(way which, std::chrono::milliseconds time);
  // A black hole: bytes are accepted and never arrive; connections stay open.
  void lose(way which);
  // Bytes are kept, and go out at pass(), however late.
  void hold(way which);
  // The n-th piece from now on (1: the next) is lost, and what follows it on its connection: TCP
  // leaves no holes. Other connections are not affected.
  void swallow(way which, std::size_t nth);
  // After this many more bytes the connection that carries them is closed on both sides.
  void cut_after(way which, std::size_t bytes);
  // One byte at a time, each in a packet of its own.
  void drip(way which);
  // The first byte of each piece arrives changed.
  void garble(way which);
  // New clients are refused with a reset, until pass().
  void refuse();
  // All connections are torn down: with a reset, or closed as if the server had ended.
  void reset();
  void close();

  [[nodiscard]] std::size_t accepted() const;         // connections, ever
  [[nodiscard]] std::size_t open() const;             // connections, now
  [[nodiscard]] std::size_t pieces(way which) const;  // taken in, ever
  [[nodiscard]] std::size_t bytes(way which) const;   // taken in, ever

 private:
  class mover;

  std::unique_ptr<mover> mover_;
  std::jthread thread_;
};

}  // namespace holdfast::test
