// A connection as the HTTP library wants it, with limits that its own does not have: the whole request
// arrives within a time and has a greatest size, however slowly it drips.
#pragma once

#include "cli/http/server.hpp"

#include <httplib.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>

namespace holdfast::http {

class connection : public httplib::Stream {
 public:
  connection(int socket, const limits& bounds);

  bool is_readable() const override;
  // False also where the client has gone.
  bool is_writable() const override;
  ssize_t read(char* into, std::size_t size) override;
  ssize_t write(const char* data, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

  // Says that the answer is complete and gives the client a moment to read it: closing with unread bytes
  // resets the connection, and the answer would be lost. Closes.
  void finish() noexcept;

 private:
  [[nodiscard]] bool ready(short events, std::chrono::steady_clock::time_point by) const noexcept;

  const int socket_;
  const limits limits_;
  const std::chrono::steady_clock::time_point read_by_;
  std::size_t taken_ = 0;  // bytes of the request
  std::array<char, 4096> buffer_{};
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

// Answers without reading and closes; never blocks.
void refuse(int socket) noexcept;

}  // namespace holdfast::http
