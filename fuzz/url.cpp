// URLs of engines, as anybody may type them.
// sources: src/core/url.cpp src/core/result.cpp
#include <holdfast/spi/url.hpp>

#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace holdfast::spi;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string bare = without_password(text);
  if (without_password(bare) != bare) std::abort();  // once is enough
  if (const auto parsed = parse_url(text)) {
    static_cast<void>(parsed->redacted());
    const auto again = parse_url(bare);
    // What is shown names the same engine at the same hosts.
    if (again && (again->scheme != parsed->scheme || again->hosts != parsed->hosts)) std::abort();
    if (again && !again->password.empty()) std::abort();
  }
  return 0;
}
