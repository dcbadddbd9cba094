#include "stores/etcd/names.hpp"

#include "core/hex.hpp"

#include <algorithm>

namespace holdfast::etcd {

namespace {

constexpr std::size_t id_size = 32;
constexpr std::size_t shown_id = 32;  // bytes of another client's id
constexpr std::string_view mode_part = "/mode";
constexpr std::string_view revoked_part = "/revoked";
constexpr std::string_view owner_part = "/owner";
constexpr std::string_view detached_mark = " detached";
constexpr std::string_view owner_mark = "\nholdfast/1 claim=";  // at the end of a value
constexpr std::size_t public_id_size = 16;

// What follows the folder of its kind: an id, and perhaps one of its parts.
std::optional<parsed_key> parse_claim(claim_kind kind, std::string_view text) {
  parsed_key key{key_part::claim, kind, {}};
  if (text.ends_with(mode_part)) {
    key.part = key_part::mode;
    text.remove_suffix(mode_part.size());
  } else if (text.ends_with(revoked_part)) {
    key.part = key_part::revoked;
    text.remove_suffix(revoked_part.size());
  } else if (text.ends_with(owner_part)) {
    key.part = key_part::owner;
    text.remove_suffix(owner_part.size());
  }
  if (text.empty() || text.find('/') != std::string_view::npos) return std::nullopt;
  key.id = text;
  return key;
}

}  // namespace

std::optional<spi::claim_id> parse_id(std::string_view text) {
  if (text.size() != id_size) return std::nullopt;
  spi::claim_id id;
  for (std::size_t i = 0; i < id_size; i += 2) {
    const int byte = core::hex_byte(text.substr(i));
    if (byte < 0) return std::nullopt;
    id.bytes[i / 2] = static_cast<std::uint8_t>(byte);
  }
  if (spi::to_hex(id) != text) return std::nullopt;  // one spelling
  return id;
}

std::string encoded(std::string_view name, name_layout layout) {
  std::string text;
  for (const char each : name) {
    if (each == '%') {
      text += "%25";
    } else if (each == '/' && layout == name_layout::flat) {
      text += "%2F";
    } else {
      text += each;
    }
  }
  return text;
}

std::optional<std::string> decoded(std::string_view text, name_layout layout) {
  std::optional<std::string> name = core::unescaped(text);
  if (!name || name->empty() || encoded(*name, layout) != text)
    return std::nullopt;  // one spelling
  return name;
}

std::string space_prefix(const server_options& options, const std::string& space) {
  return space.empty() ? options.root : options.root + "%%" + space + "/";
}

std::string prefix_of(const server_options& options, const spi::resource_id& resource) {
  return space_prefix(options, resource.space) + encoded(resource.name, options.layout) + "/";
}

std::string tombstone_of(const server_options& options, const spi::claim_id& id) {
  return options.root + "%%/left/" + spi::to_hex(id);
}

std::string_view folder_of(claim_kind kind) noexcept {
  switch (kind) {
    case claim_kind::lock:
      return "";
    case claim_kind::writer:
      return "write/";
    case claim_kind::reader:
      return "read/";
    case claim_kind::permit:
      return "permit/";
  }
  return {};
}

std::optional<parsed_key> parse_key(std::string_view rest) {
  if (rest == latch_count_key || rest.starts_with(latch_marks)) {
    return parsed_key{key_part::latch, {}, {}};
  }
  for (const claim_kind each : {claim_kind::writer, claim_kind::reader, claim_kind::permit}) {
    if (!rest.starts_with(folder_of(each))) continue;
    return parse_claim(each, rest.substr(folder_of(each).size()));
  }
  return parse_claim(claim_kind::lock, rest);
}

std::optional<named_key> name_in(std::string_view rest, name_layout layout) {
  std::size_t slash = rest.find('/');
  if (layout == name_layout::path) {
    // The shortest of the possible names: for a/write/1 it is a, not a/write.
    slash = std::string_view::npos;
    for (std::size_t at = rest.find('/'); at != std::string_view::npos;
         at = rest.find('/', at + 1)) {
      const auto key = parse_key(rest.substr(at + 1));
      if (!key) continue;
      slash = at;
      break;
    }
  }
  if (slash == std::string_view::npos) return std::nullopt;
  const auto name = decoded(rest.substr(0, slash), layout);
  if (!name) return std::nullopt;
  return named_key{*name, std::string(rest.substr(slash + 1))};
}

std::string claim_key(const std::string& prefix, claim_kind kind, const std::string& id) {
  return prefix + std::string(folder_of(kind)) + id;
}

std::string mode_key(const std::string& prefix, claim_kind kind, const std::string& id) {
  const claim_kind seen_as = kind == claim_kind::reader ? claim_kind::writer : kind;
  return claim_key(prefix, seen_as, id) + std::string(mode_part);
}

std::string revoked_key(const std::string& prefix, claim_kind kind, const std::string& id) {
  return claim_key(prefix, kind, id) + std::string(revoked_part);
}

std::string owner_key(const std::string& claim_key) { return claim_key + std::string(owner_part); }

std::string owner_text(const spi::claim& claim) {
  std::string text = spi::to_hex(claim.id);
  if (claim.detached) text += detached_mark;
  return text;
}

bool is_detached(std::string_view owner_text) noexcept {
  return owner_text.ends_with(detached_mark);
}

std::string id_text(const std::string& id) {
  const auto ours = parse_id(id);
  return ours ? spi::public_id(*ours) : id.substr(0, shown_id);
}

std::string with_owner(std::string value, const spi::claim_id& owner) {
  value += owner_mark;
  value += spi::public_id(owner);
  return value;
}

std::optional<std::string> owner_in(std::string_view value) {
  if (value.size() < owner_mark.size() + public_id_size) return std::nullopt;
  const std::string_view id = value.substr(value.size() - public_id_size);
  value.remove_suffix(public_id_size);
  const bool hex = std::ranges::all_of(id, [](char each) { return core::hex_value(each) >= 0; });
  if (!value.ends_with(owner_mark) || !hex) return std::nullopt;
  return std::string(id);
}

}  // namespace holdfast::etcd
