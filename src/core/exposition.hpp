// Writes the text format of Prometheus (version 0.0.4): families with HELP and TYPE, samples with labels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::core {

// Samples of a family follow its family() at once, before the next one.
class exposition {
 public:
  using labels = std::vector<std::pair<std::string_view, std::string_view>>;

  // `common`: on every sample; outlives this.
  explicit exposition(const std::vector<std::pair<std::string, std::string>>& common)
      : common_(common) {}

  void family(std::string_view name, std::string_view type, std::string_view help);
  // `suffix`: "_bucket", "_sum", "_count" of a histogram, else empty.
  void sample(std::string_view suffix, const labels& with, std::string_view value);
  void sample(const labels& with, std::uint64_t value);

  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  void label(std::string_view name, std::string_view value, char before);

  const std::vector<std::pair<std::string, std::string>>& common_;
  std::string text_;
  std::string_view family_;
};

// The value of a label for all that is beyond a limit, and counted together.
inline constexpr std::string_view other_names = "other";

// Nanoseconds as seconds, exactly: "0.0001", "12.5", "0".
std::string seconds_text(std::uint64_t nanoseconds);

}  // namespace holdfast::core
