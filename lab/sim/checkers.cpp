#include "sim/checkers.hpp"

#include "sim/checkers/exclusion.hpp"
#include "sim/checkers/fences.hpp"
#include "sim/checkers/fifo.hpp"
#include "sim/checkers/honesty.hpp"
#include "sim/checkers/latch.hpp"
#include "sim/checkers/leak.hpp"
#include "sim/checkers/liveness.hpp"
#include "sim/checkers/lock_delay.hpp"
#include "sim/checkers/lost_wakeup.hpp"
#include "sim/checkers/needless_loss.hpp"
#include "sim/checkers/one_offer.hpp"
#include "sim/checkers/self_block.hpp"
#include "sim/checkers/silent_loss.hpp"

#include <memory>

namespace holdfast::sim {

namespace {

template <class... Checkers>
void watch_each(history& log, const facts& world) {
  (log.watch(std::make_unique<Checkers>(world)), ...);
}

}  // namespace

void watch_all(history& log, const facts& world) {
  watch_each<exclusion, readers_writers, permits, fence_order, fence_constancy, silent_loss,
             needless_loss, lock_delay, lost_wakeup, fifo, one_offer, latch_count, leak, self_block,
             liveness, honesty>(log, world);
}

}  // namespace holdfast::sim
