// Stream sockets, made non-blocking and closed on exec, with what a lock's connection needs: no
// delay of small writes, and no waiting for hours on a peer that is gone.
#pragma once

#include "net/address.hpp"
#include "runtime/descriptor.hpp"

#include <holdfast/result.hpp>

#include <chrono>
#include <string>

namespace holdfast::net {

// A silent peer is asked after `idle`, then every `interval`, and given up after `count` times.
struct keepalive {
  std::chrono::seconds idle{10};
  std::chrono::seconds interval{5};
  int count = 3;
  // Sent and not acknowledged for this long: the connection is dead.
  std::chrono::milliseconds unacknowledged{15'000};
};

// A socket on which connect() was called: connected, or about to be when it becomes writable.
struct connecting_socket {
  runtime::descriptor socket;
  bool connected = false;
};
result<connecting_socket> begin_connect(const address& to, const keepalive& life = {});

// What became of a connect() that was under way, once the socket is ready.
result<void> end_connect(int socket, const address& to);

// "connect 10.0.0.1:6379: Connection refused"
error socket_error(const char* what, const std::string& where, int number);

}  // namespace holdfast::net
