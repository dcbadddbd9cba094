#include "torture/proxies.hpp"

#include <chrono>

namespace holdfast::torture {

namespace {

using way = test::fault_proxy::way;
constexpr std::chrono::milliseconds lateness{60};
constexpr std::size_t head = 48;  // bytes: most answers are longer

}  // namespace

proxies::proxies(std::uint16_t server_port, std::uint32_t clients) {
  for (std::uint32_t i = 0; i < clients; ++i) {
    proxies_.push_back(std::make_unique<test::fault_proxy>(server_port));
  }
}

void proxies::begin(fault what, std::uint32_t client) {
  test::fault_proxy& proxy = *proxies_[client % proxies_.size()];
  if (what == fault::cut) proxy.reset();
  // Anywhere in the next answer, also before its first byte.
  if (what == fault::truncate) {
    proxy.cut_after(way::to_client, proxy.bytes(way::to_client) % head);
  }
  if (what == fault::garble) proxy.garble(way::to_client);
  for (const way each : {way::to_server, way::to_client}) {
    if (what == fault::partition) proxy.lose(each);
    if (what == fault::delay) proxy.delay(each, lateness);
  }
}

void proxies::end(std::uint32_t client) {
  test::fault_proxy& proxy = *proxies_[client % proxies_.size()];
  proxy.pass();
  // What was swallowed is a hole that TCP does not have: such a connection is not used again.
  proxy.reset();
}

}  // namespace holdfast::torture
