#include "stores/sql/renewal_batch.hpp"

#include <utility>

namespace holdfast::sql {

renewal_batch::renewal_batch(std::size_t claims, std::size_t parts, answer done)
    : parts_(parts), answers_(claims), open_(parts), done_(std::move(done)) {}

void renewal_batch::take(const std::vector<std::size_t>& part,
                         result<std::vector<spi::renewal>> given) {
  answer finish;
  bool none = false;
  {
    const std::lock_guard lock(mutex_);
    if (given) {
      for (std::size_t i = 0; i < part.size(); ++i) answers_[part[i]] = (*given)[i];
    } else {
      ++failed_;
      why_ = given.error();
      for (const std::size_t i : part) answers_[i].why = why_.detail;
    }
    if (--open_ > 0) return;
    none = failed_ == parts_;
    finish = std::move(done_);
  }
  if (none) return finish(tl::unexpected(why_));
  finish(std::move(answers_));
}

}  // namespace holdfast::sql
