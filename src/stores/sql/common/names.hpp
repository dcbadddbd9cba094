// Names as the SQL stores store them: bytes, so that no collation decides
// whether two locks are one.
#pragma once

#include <holdfast/spi/claim.hpp>
#include <holdfast/spi/runtime.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::sql {

// Namespaces have no '/', so this is injective, and a namespace is a prefix: "shop/stock/42".
std::string key_of(const spi::resource_id& resource);
spi::resource_id resource_of(std::string_view key);
// The key under which events of a whole namespace are requested: "shop/".
std::string space_of(std::string_view key);

// By which the other clients know this one: 32 hexadecimal digits that nobody can guess.
std::string fresh_process(spi::runtime& runtime);

// "@." in a statement's text becomes the prefix.
std::string with_prefix(std::string_view text, std::string_view prefix);

// The bytes of an id.
std::string_view bytes_of(const spi::claim_id& id) noexcept;

// Nothing if they are not hexadecimal.
std::optional<std::string> from_hex(std::string_view digits);
std::optional<spi::claim_id> claim_from_hex(std::string_view digits);

}  // namespace holdfast::sql
