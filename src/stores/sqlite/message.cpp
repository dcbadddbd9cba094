#include "stores/sqlite/message.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace holdfast::sqlite {

namespace {

constexpr std::uint32_t magic = 0x53414648;  // "HFAS"
constexpr std::uint16_t version = 1;
constexpr unsigned about_wanted = 1;
constexpr unsigned about_offer = 2;

// Both ends run on one machine: its own byte order.
struct packet_head {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t kind;
  std::int64_t client;
  std::uint8_t claim[16];
  std::uint64_t fence;
  std::int64_t ttl;
  std::int64_t at;
  std::uint8_t about;
  std::uint8_t fenced;
  std::uint8_t mode;
  std::uint8_t event;
  std::uint16_t name_size;
  std::uint16_t text_size;
};
static_assert(sizeof(packet_head) == 64);
static_assert(std::is_trivially_copyable_v<packet_head>);
static_assert(std::has_unique_object_representations_v<packet_head>);

std::uint16_t fitting(std::size_t size, std::size_t room) {
  return static_cast<std::uint16_t>(std::min(size, room));
}

}  // namespace

std::string encode(const message& message) {
  packet_head head{};
  head.magic = magic;
  head.version = version;
  head.kind = static_cast<std::uint16_t>(message.what);
  head.client = message.client;
  std::copy(message.claim.bytes.begin(), message.claim.bytes.end(), head.claim);
  head.fence = message.fence;
  head.ttl = message.ttl;
  head.at = message.at;
  head.about = static_cast<std::uint8_t>((message.wanted ? about_wanted : 0) |
                                         (message.offer ? about_offer : 0));
  head.fenced = message.fenced ? 1 : 0;
  head.mode = static_cast<std::uint8_t>(message.mode);
  head.event = static_cast<std::uint8_t>(message.event);
  std::size_t room = message::max_size - sizeof head;
  head.name_size = fitting(message.name.size(), room);
  room -= head.name_size;
  head.text_size = fitting(message.text.size(), room);
  std::string packet(sizeof head, '\0');
  std::memcpy(packet.data(), &head, sizeof head);
  packet.append(message.name, 0, head.name_size);
  packet.append(message.text, 0, head.text_size);
  return packet;
}

std::optional<message> decode(std::string_view packet) {
  packet_head head{};
  if (packet.size() < sizeof head || packet.size() > message::max_size) return std::nullopt;
  std::memcpy(&head, packet.data(), sizeof head);
  if (head.magic != magic || head.version != version) return std::nullopt;
  if (packet.size() != sizeof head + head.name_size + head.text_size) return std::nullopt;
  if (head.kind < static_cast<std::uint16_t>(message::kind::hello) ||
      head.kind > static_cast<std::uint16_t>(message::kind::latch) ||
      head.mode > static_cast<std::uint8_t>(spi::mode::permit) ||
      head.event > static_cast<std::uint8_t>(spi::event_kind::forced)) {
    return std::nullopt;
  }
  message read;
  read.what = static_cast<message::kind>(head.kind);
  read.client = head.client;
  std::copy(std::begin(head.claim), std::end(head.claim), read.claim.bytes.begin());
  read.fence = head.fence;
  read.ttl = head.ttl;
  read.at = head.at;
  read.wanted = (head.about & about_wanted) != 0;
  read.offer = (head.about & about_offer) != 0;
  read.fenced = head.fenced != 0;
  read.mode = static_cast<spi::mode>(head.mode);
  read.event = static_cast<spi::event_kind>(head.event);
  read.name = packet.substr(sizeof head, head.name_size);
  read.text = packet.substr(sizeof head + head.name_size, head.text_size);
  return read;
}

}  // namespace holdfast::sqlite
