// Lines from a descriptor.
#pragma once

#include <optional>
#include <string>

namespace holdfast::cli {

// Not thread-safe.
class line_reader {
 public:
  explicit line_reader(int file) noexcept : file_(file) {}

  // Takes in what is there, waiting for it where the descriptor blocks. False: nothing more comes.
  bool fill();
  // The next whole line that was taken in, without its end.
  std::optional<std::string> next();
  // fill() until there is one. None: nothing more comes.
  std::optional<std::string> wait();

 private:
  static constexpr std::size_t longest = std::size_t{64} << 20;

  int file_;
  std::string text_;
};

// All of it, waiting as long as it takes. False: nobody reads.
bool write_all(int file, const std::string& text) noexcept;

}  // namespace holdfast::cli
