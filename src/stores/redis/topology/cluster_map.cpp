// See the header.
#include "stores/redis/topology/cluster_map.hpp"

#include "stores/redis/topology/parse_number.hpp"

namespace holdfast::redis {

namespace {

std::int64_t epoch_in(std::string_view info) noexcept {
  constexpr std::string_view name = "cluster_current_epoch:";
  const auto at = info.find(name);
  if (at == std::string_view::npos) return 0;
  const std::string_view rest = info.substr(at + name.size());
  return parse_number<std::int64_t>(rest.substr(0, rest.find('\r'))).value_or(0);
}

net::target target_of(std::string_view host, std::uint16_t port, const std::string& asked) {
  const bool named = !host.empty() && host != "?";
  return {named ? std::string(host) : asked, port, {}};
}

}  // namespace

std::uint16_t slot_of(std::string_view tag) noexcept {
  unsigned crc = 0;
  for (const char each : tag) {
    crc ^= static_cast<unsigned>(static_cast<unsigned char>(each)) << 8U;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 0x8000U) != 0 ? (crc << 1U) ^ 0x1021U : crc << 1U;
    }
    crc &= 0xffffU;
  }
  return static_cast<std::uint16_t>(crc % slot_count);
}

std::uint16_t slot_of_lane(lane which) {
  const std::string prefix = lane_prefix(which);
  const auto open = prefix.find('{');
  return slot_of(std::string_view(prefix).substr(open + 1, prefix.find('}') - open - 1));
}

command cluster_question() {
  command both{"CLUSTER", "INFO"};
  both.then(command{"CLUSTER", "SLOTS"});
  return both;
}

std::optional<cluster_map> read_cluster(const reply& answer, const std::string& asked) {
  if (answer.elements.size() != 2 || answer.elements[0].is_error() ||
      answer.elements[1].kind != reply::type::array) {
    return std::nullopt;
  }
  cluster_map made;
  made.epoch = epoch_in(answer.elements[0].words());
  bool any = false;
  for (const reply& range : answer.elements[1].elements) {
    // first slot, last slot, master (host, port, id, ...), replicas
    if (range.elements.size() < 3 || range.elements[2].elements.size() < 2) return std::nullopt;
    const reply& master = range.elements[2];
    const std::int64_t port = master.elements[1].integer;
    if (port <= 0 || port > 65'535) continue;
    const net::target where =
        target_of(master.elements[0].words(), static_cast<std::uint16_t>(port), asked);
    for (std::size_t i = 0; i < lane_count; ++i) {
      const std::uint16_t slot = slot_of_lane(static_cast<lane>(i));
      if (slot < range.elements[0].integer || slot > range.elements[1].integer) continue;
      made.masters[i] = where;
      any = true;
    }
  }
  if (!any) return std::nullopt;
  return made;
}

std::optional<net::target> redirection(std::string_view text, const std::string& asked) {
  const auto space = text.rfind(' ');
  const auto colon = text.rfind(':');
  if (space == std::string_view::npos || colon == std::string_view::npos || colon < space) {
    return std::nullopt;
  }
  const auto port = parse_number<std::uint16_t>(text.substr(colon + 1));
  if (!port || *port == 0) return std::nullopt;
  std::string_view host = text.substr(space + 1, colon - space - 1);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return target_of(host, *port, asked);
}

}  // namespace holdfast::redis
