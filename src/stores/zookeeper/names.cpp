#include "stores/zookeeper/names.hpp"

#include "core/hex.hpp"

#include <array>
#include <cstdio>

namespace holdfast::zookeeper {

namespace {

constexpr std::string_view digits = "0123456789ABCDEF";
constexpr std::string_view protection = "_c_";
constexpr std::size_t uuid_size = 36;
constexpr std::size_t hex_size = 32;
constexpr std::string_view kazoo_lock = "__lock__";
constexpr std::string_view kazoo_reader = "__rlock__";
constexpr std::array kinds{claim_kind::lock, claim_kind::writer, claim_kind::reader,
                           claim_kind::leader, claim_kind::lease};

bool plain(char c) noexcept {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

// Names that have a meaning of their own in a place where a lock's name could be.
bool reserved(std::string_view name) noexcept {
  return name == "." || name == ".." || name == "zookeeper" || name == locks_folder ||
         name == leases_folder || name.starts_with(protection) || name.starts_with("_holdfast");
}

void append_byte(std::string& into, char c) {
  const auto byte = static_cast<std::uint8_t>(c);
  into += '%';
  into += digits[byte >> 4U];
  into += digits[byte & 15U];
}

std::optional<spi::claim_id> parse_uuid(std::string_view text) {
  const bool dashes = text.size() == uuid_size;
  spi::claim_id id;
  std::size_t nibble = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = dashes && (i == 8 || i == 13 || i == 18 || i == 23);
    if (dash != (text[i] == '-')) return std::nullopt;
    if (dash) continue;
    const int value = core::hex_value(text[i]);
    if (value < 0) return std::nullopt;
    auto& byte = id.bytes[nibble / 2];
    byte = static_cast<std::uint8_t>(byte << 4U | value);
    ++nibble;
  }
  return id;
}

std::optional<std::int32_t> parse_sequence(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty() || text.size() > 10) return std::nullopt;
  std::int64_t value = 0;
  for (const char each : text) {
    if (each < '0' || each > '9') return std::nullopt;
    value = value * 10 + (each - '0');
  }
  return static_cast<std::int32_t>(negative ? -value : value);
}

// "<32 hex digits>__lock__<sequence>"
std::optional<claim_node> parse_kazoo(std::string_view name) {
  if (name.size() <= hex_size) return std::nullopt;
  claim_node node;
  node.name = name;
  node.id = parse_uuid(name.substr(0, hex_size));
  if (!node.id) return std::nullopt;
  name.remove_prefix(hex_size);
  const bool reads = name.starts_with(kazoo_reader);
  if (!reads && !name.starts_with(kazoo_lock)) return std::nullopt;
  const auto sequence = parse_sequence(name.substr((reads ? kazoo_reader : kazoo_lock).size()));
  if (!sequence) return std::nullopt;
  node.kind = reads ? claim_kind::reader : claim_kind::writer;
  node.sequence = *sequence;
  return node;
}

}  // namespace

std::string encoded(std::string_view name) {
  std::string text;
  const bool first_too = reserved(name);
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (plain(name[i]) && !(first_too && i == 0)) {
      text += name[i];
    } else {
      append_byte(text, name[i]);
    }
  }
  if (name == "..") text = "%2E%2E";
  return text;
}

std::optional<std::string> decoded(std::string_view component) {
  std::optional<std::string> name = core::unescaped(component);
  if (!name || name->empty() || encoded(*name) != component) return std::nullopt;  // one spelling
  return name;
}

std::string folder_of(const server_options& options, const std::string& space) {
  if (space.empty()) return options.root;
  // Where '/' nests, a name could look like a namespace with a name in it.
  const bool nests = options.layout == name_layout::path;
  return options.root + (nests ? "/" + std::string(spaces_folder) + "/" : "/") + encoded(space);
}

std::string path_of(const server_options& options, const spi::resource_id& resource) {
  std::string path = folder_of(options, resource.space);
  if (options.layout == name_layout::flat) return path + "/" + encoded(resource.name);
  std::string_view rest = resource.name;
  for (bool more = true; more;) {
    const auto slash = rest.find('/');
    more = slash != std::string_view::npos;
    const std::string_view part = rest.substr(0, slash);
    path += '/';
    path += part.empty() ? "%" : encoded(part);  // no name is encoded like that
    if (more) rest.remove_prefix(slash + 1);
  }
  return path;
}

std::string_view stem_of(claim_kind kind) noexcept {
  switch (kind) {
    case claim_kind::lock:
      return "lock-";
    case claim_kind::writer:
      return "__WRIT__";
    case claim_kind::reader:
      return "__READ__";
    case claim_kind::leader:
      return "latch-";
    case claim_kind::lease:
      return "lease-";
  }
  return {};
}

std::string protection_of(node_naming naming, const spi::claim_id& id) {
  std::string hex = spi::to_hex(id);
  if (naming == node_naming::kazoo) return hex + "__";
  for (const std::size_t at : {8U, 13U, 18U, 23U}) hex.insert(at, 1, '-');
  return std::string(protection) + hex + "-";
}

std::string prefix_of(node_naming naming, const spi::claim_id& id, claim_kind kind) {
  if (naming == node_naming::kazoo) {
    const bool reads = kind == claim_kind::reader;
    return spi::to_hex(id) + std::string(reads ? kazoo_reader : kazoo_lock);
  }
  return protection_of(naming, id) + std::string(stem_of(kind));
}

std::optional<claim_node> parse_node(std::string_view name) {
  if (auto node = parse_kazoo(name)) return node;
  claim_node node;
  node.name = name;
  if (name.starts_with(protection)) {
    name.remove_prefix(protection.size());
    if (name.size() <= uuid_size || name[uuid_size] != '-') return std::nullopt;
    node.id = parse_uuid(name.substr(0, uuid_size));
    if (!node.id) return std::nullopt;
    name.remove_prefix(uuid_size + 1);
  }
  for (const claim_kind each : kinds) {
    if (!name.starts_with(stem_of(each))) continue;
    const auto sequence = parse_sequence(name.substr(stem_of(each).size()));
    if (!sequence) return std::nullopt;
    node.kind = each;
    node.sequence = *sequence;
    return node;
  }
  return std::nullopt;
}

std::string sequence_text(std::int32_t sequence) {
  std::array<char, 16> text{};
  const int size = std::snprintf(text.data(), text.size(), "%010d", sequence);
  return {text.data(), static_cast<std::size_t>(size)};
}

std::string id_text(const claim_node& node) {
  return node.id ? spi::public_id(*node.id) : node.name.substr(0, 32);
}

}  // namespace holdfast::zookeeper
