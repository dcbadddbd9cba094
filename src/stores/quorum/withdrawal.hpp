// Leaves a claim at one member in the background: again and again, until it is answered or nothing
// of it can be left there. Late grants of a round that failed end this way.
#pragma once

#include "stores/quorum/quorum_context.hpp"

#include <holdfast/clock.hpp>
#include <holdfast/spi/store.hpp>

#include <cstddef>
#include <memory>

namespace holdfast::quorum {

// Begins after a pause: its caller has just asked once, without an answer. Ends when answered, at
// `until`, when the store is closed, or at once where too many are under way.
void withdraw_later(const std::shared_ptr<quorum_context>& quorum_context, std::size_t member,
                    spi::claim_ptr claim, time_point until);

}  // namespace holdfast::quorum
