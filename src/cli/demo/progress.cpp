#include "cli/demo/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace holdfast::cli {

progress::progress(std::string label, std::size_t total)
    : label_(std::move(label)), total_(total), visible_(::isatty(STDERR_FILENO) == 1) {}

progress::~progress() {
  if (visible_) std::fputs("\r\x1b[K", stderr);
}

void progress::show(std::size_t done) const {
  if (!visible_ || total_ == 0) return;
  constexpr std::size_t width = 40;
  const std::size_t full = std::min(width, done * width / total_);
  std::string bar(full, '#');
  bar.resize(width, '.');
  std::fprintf(stderr, "\r%-10s [%s] %zu of %zu buyers", label_.c_str(), bar.c_str(), done, total_);
}

}  // namespace holdfast::cli
