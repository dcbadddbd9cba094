#include "sim/record.hpp"

#include <holdfast/result.hpp>

#include <array>
#include <cstdio>

namespace holdfast::sim {

std::string_view to_string(what kind) noexcept {
  static constexpr std::array names{
      std::string_view("acquire invoked"),
      std::string_view("acquire granted"),
      std::string_view("acquire failed"),
      std::string_view("cancel invoked"),
      std::string_view("validity began"),
      std::string_view("validity ended"),
      std::string_view("lost told"),
      std::string_view("release invoked"),
      std::string_view("release answered"),
      std::string_view("change invoked"),
      std::string_view("change answered"),
      std::string_view("re-entered"),
      std::string_view("attempt sent"),
      std::string_view("renewal sent"),
      std::string_view("leave sent"),
      std::string_view("attempt answered"),
      std::string_view("renewal answered"),
      std::string_view("left"),
      std::string_view("server: attempt"),
      std::string_view("server: renewal"),
      std::string_view("server: queued"),
      std::string_view("server: granted"),
      std::string_view("server: prolonged"),
      std::string_view("server: changed"),
      std::string_view("server: left"),
      std::string_view("server: forgot"),
      std::string_view("server lost its state"),
      std::string_view("server's clock jumped"),
      std::string_view("latch set"),
      std::string_view("latch down"),
      std::string_view("latch told"),
      std::string_view("latch read"),
      std::string_view("paused"),
      std::string_view("resumed"),
      std::string_view("killed"),
      std::string_view("closed"),
      std::string_view("unreachable"),
      std::string_view("reachable"),
      std::string_view("trouble began"),
      std::string_view("trouble ended"),
      std::string_view("healed"),
      std::string_view("started"),
      std::string_view("ended"),
      std::string_view("write accepted"),
      std::string_view("write refused"),
      std::string_view("left behind"),
      std::string_view("detach invoked"),
      std::string_view("detach answered"),
      std::string_view("adopt invoked"),
      std::string_view("adopt granted"),
      std::string_view("adopt failed"),
  };
  static_assert(names.size() == static_cast<std::size_t>(what::adopt_failed) + 1);
  return names[static_cast<std::size_t>(kind)];
}

namespace {

std::string in_seconds(moment at) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%11.6f", static_cast<double>(at.count()) / 1e9);
  return text.data();
}

std::string_view mode_name(spi::mode mode) noexcept {
  switch (mode) {
    case spi::mode::exclusive:
      return "exclusive";
    case spi::mode::shared:
      return "shared";
    case spi::mode::permit:
      return "permit";
  }
  return "?";
}

// The meaning of a record's number, as text.
std::string number_of(const record& line) {
  static constexpr std::array answers{"granted", "queued", "turned away", "refused", "unanswered"};
  static constexpr std::array states{"renewed", "held", "waiting", "lost", "unknown"};
  static constexpr std::array departures{"was waiting", "was holder", "gone", "unanswered"};
  const auto index = static_cast<std::size_t>(line.number);
  switch (line.kind) {
    case what::attempt_answered:
    case what::executed_attempt:
      return answers.at(index);
    case what::renewal_answered:
    case what::executed_renewal:
      return states.at(index);
    case what::left:
    case what::server_left:
      return departures.at(index);
    case what::acquire_failed:
    case what::release_answered:
    case what::change_answered:
    case what::detach_answered:
    case what::adopt_failed:
      return line.number == 0 ? "ok" : std::string(describe(static_cast<errc>(line.number)));
    default:
      return line.number == 0 ? "" : std::to_string(line.number);
  }
}

}  // namespace

std::string describe(const record& line) {
  std::string text = in_seconds(line.at) + "  ";
  text +=
      line.process == nobody ? std::string("world   ") : "client " + std::to_string(line.process);
  text += "  ";
  text += to_string(line.kind);
  const auto add = [&text](std::string_view label, std::int64_t value) {
    if (value == nobody) return;
    text.append(", ").append(label).append(" ").append(std::to_string(value));
  };
  add("resource", line.resource);
  add("acquisition", line.acquisition);
  add("claim", line.claim);
  add("hold", line.hold);
  if (line.fence != 0) text += ", fence " + std::to_string(line.fence);
  if (line.kind == what::acquire_invoked || line.kind == what::change_invoked) {
    text.append(", ").append(mode_name(line.mode)).append(line.fair ? ", fair" : "");
  }
  if (line.until != moment{}) text += ", until" + in_seconds(line.until);
  const std::string number = number_of(line);
  if (!number.empty()) text += ": " + number;
  return text;
}

}  // namespace holdfast::sim
