#include "cli/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace holdfast::cli {

progress::progress(std::string label, std::size_t total, std::string unit)
    : label_(std::move(label)),
      total_(total),
      unit_(std::move(unit)),
      visible_(::isatty(STDERR_FILENO) == 1) {}

void progress::wipe() const {
  if (visible_) std::fputs("\r\x1b[K", stderr);
}

void progress::show(std::size_t done) const {
  if (!visible_ || total_ == 0) return;
  constexpr std::size_t width = 40;
  const std::size_t full = std::min(width, done * width / total_);
  std::string bar(full, '#');
  bar.resize(width, '.');
  std::fprintf(stderr, "\r%-10s [%s] %zu of %zu %s", label_.c_str(), bar.c_str(),
               std::min(done, total_), total_, unit_.c_str());
}

}  // namespace holdfast::cli
