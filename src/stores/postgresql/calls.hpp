// The arguments of calls that have many.
#pragma once

#include "stores/postgresql/statement.hpp"

#include <holdfast/spi/claim.hpp>

#include <string>

namespace holdfast::postgresql {

arguments attempt_arguments(const std::string& key, const spi::claim& claim,
                            const std::string& process);

}  // namespace holdfast::postgresql
