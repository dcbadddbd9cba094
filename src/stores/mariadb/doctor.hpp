// What `doctor` asks of the server, and what it says to the answers.
#pragma once

#include "stores/mariadb/options.hpp"
#include "stores/sql/answers.hpp"

#include <holdfast/spi/store.hpp>

#include <vector>

namespace holdfast::mariadb {

// `answer`: of examine.sql.inc, a word and its value a line. `hears`: wake-ups arrive.
std::vector<spi::check> examined(const sql::rows& answer, const server_options& options,
                                 bool hears);

// What it says where no server answers, or one that does not let us in.
std::vector<spi::check> refused(const error& why, const server_options& options);

}  // namespace holdfast::mariadb
