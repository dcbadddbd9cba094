#include "torture/formatter.hpp"

#include "torture/vocabulary.hpp"

#include <holdfast/result.hpp>

#include <array>
#include <cstdio>

namespace holdfast::torture {

namespace {

std::string_view mode_of(const sim::record& line) {
  switch (line.mode) {
    case spi::mode::exclusive:
      return "exclusively";
    case spi::mode::shared:
      return "shared";
    case spi::mode::permit:
      return "for permits";
  }
  return "";
}

std::string answer_of(const sim::record& line) {
  return line.number == 0 ? "ok" : std::string(describe(static_cast<errc>(line.number)));
}

std::string fault_of(const sim::record& line) {
  const bool known = line.number >= 0 && line.number < std::int64_t{all_faults.size()};
  return known ? std::string(to_string(static_cast<fault>(line.number))) : "a fault";
}

std::string event_of(const sim::record& line) {
  const std::string hold = "hold " + std::to_string(line.hold);
  const std::string fence = "fence " + std::to_string(line.fence);
  const std::string number = std::to_string(line.number);
  switch (line.kind) {
    case sim::what::acquire_invoked:
      return hold + " is asked for, " + std::string(mode_of(line)) + (line.fair ? ", fair" : "");
    case sim::what::attempt_answered:
      return hold + " is in line";
    case sim::what::acquire_granted:
      return hold + " is granted, " + fence;
    case sim::what::acquire_failed:
      return hold + " is not granted: " + answer_of(line);
    case sim::what::validity_ended:
      return hold + " is no longer valid";
    case sim::what::release_invoked:
      return hold + " is given back";
    case sim::what::release_answered:
      return hold + " was given back: " + answer_of(line);
    case sim::what::write_accepted:
      return hold + " writes with " + fence + ": accepted";
    case sim::what::write_refused:
      return hold + " writes with " + fence + ": refused";
    case sim::what::latch_set:
      return "latch " + std::to_string(line.resource) + " is set to " + number;
    case sim::what::latch_down:
      return "latch " + std::to_string(line.resource) + " is counted down";
    case sim::what::latch_told:
      return "latch " + std::to_string(line.resource) + " is open, a waiter is told";
    case sim::what::paused:
      return line.number == 1 ? "paused: the machine is busy" : "paused";
    case sim::what::trouble_began:
      return fault_of(line) + " begins";
    case sim::what::trouble_ended:
      return fault_of(line) + " ends";
    case sim::what::ended:
      return "ends with " + number;
    case sim::what::left_behind:
      return number + " claims are left at resource " + std::to_string(line.resource);
    default:
      return std::string(sim::to_string(line.kind));
  }
}

}  // namespace

std::string tell(const sim::record& line) {
  std::array<char, 64> head{};
  const std::string who =
      line.process == sim::nobody ? "-" : "client " + std::to_string(line.process);
  std::snprintf(head.data(), head.size(), "%11.6f  %-10s  ",
                std::chrono::duration<double>(line.at).count(), who.c_str());
  return head.data() + event_of(line);
}

}  // namespace holdfast::torture
