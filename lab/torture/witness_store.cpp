#include "torture/witness_store.hpp"

#include <utility>

namespace holdfast::torture {

void witness_store::expect(const sim::record& asked) {
  const std::lock_guard lock(mutex_);
  expected_.insert_or_assign(std::this_thread::get_id(), asked);
}

std::optional<sim::record> witness_store::take_expected() {
  const std::lock_guard lock(mutex_);
  const auto found = expected_.extract(std::this_thread::get_id());
  if (found.empty()) return std::nullopt;
  return found.mapped();
}

void witness_store::attempt(spi::claim_ptr claim, std::shared_ptr<spi::wakeup> wakeup,
                            const spi::op_context& context, spi::completion<spi::outcome> done) {
  std::optional<sim::record> asked;
  if (claim->fair) asked = take_expected();
  if (asked) {
    done = [this, line = *asked, done = std::move(done)](result<spi::outcome> answer) mutable {
      const auto* waits = answer ? std::get_if<spi::blocked>(&*answer) : nullptr;
      if (waits != nullptr && waits->queued) {
        line.kind = sim::what::attempt_answered;
        line.at = clock::now() - start_;
        line.number = static_cast<std::int64_t>(sim::answer::queued);
        line.until = {};
        history_.add(line);
      }
      done(std::move(answer));
    };
  }
  forwarding_store::attempt(std::move(claim), std::move(wakeup), context, std::move(done));
}

}  // namespace holdfast::torture
