#include "torture/gates.hpp"

#include <chrono>

namespace holdfast::torture {

namespace {

using way = test::tcp_gate::way;
constexpr std::chrono::milliseconds lateness{60};

}  // namespace

gates::gates(std::uint16_t server_port, std::uint32_t clients) {
  for (std::uint32_t i = 0; i < clients; ++i) {
    gates_.push_back(std::make_unique<test::tcp_gate>(server_port));
  }
}

void gates::begin(fault what, std::uint32_t client) {
  test::tcp_gate& gate = *gates_[client % gates_.size()];
  if (what == fault::cut) gate.reset();
  for (const way each : {way::to_server, way::to_client}) {
    if (what == fault::partition) gate.lose(each);
    if (what == fault::delay) gate.delay(each, lateness);
  }
}

void gates::end(std::uint32_t client) {
  test::tcp_gate& gate = *gates_[client % gates_.size()];
  gate.pass();
  // What was swallowed is a hole that TCP does not have: such a connection is not used again.
  gate.reset();
}

}  // namespace holdfast::torture
