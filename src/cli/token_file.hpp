// A file with the token of a lease, which is a secret: nobody but its owner can read it.
#pragma once

#include "cli/complaint.hpp"

#include <string>

namespace holdfast::cli {

// Made before the lock is taken, so that it is not taken for nothing, under another name, so that a token
// that is there already stays until there is a new one. Removed again unless it was filled.
class new_token_file {
 public:
  // usage: it cannot be made there.
  static outcome<new_token_file> make(const std::string& path);
  new_token_file(new_token_file&& other) noexcept;
  new_token_file& operator=(new_token_file&&) = delete;
  new_token_file(const new_token_file&) = delete;
  new_token_file& operator=(const new_token_file&) = delete;
  ~new_token_file();

  // Writes the token, and gives the file its name. An errno, or 0.
  [[nodiscard]] int fill(const std::string& token) noexcept;

 private:
  new_token_file(std::string path, std::string draft, int file)
      : path_(std::move(path)), draft_(std::move(draft)), file_(file) {}

  std::string path_;
  std::string draft_;  // empty: nothing to remove
  int file_ = -1;
};

}  // namespace holdfast::cli
