// Digests in hexadecimal digits, by OpenSSL.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::redis {

[[nodiscard]] std::string sha1_of(std::string_view text);
[[nodiscard]] std::string sha256_of(std::string_view text);

}  // namespace holdfast::redis
