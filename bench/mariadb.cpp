// The MariaDB store against bare libmariadb on the same server, durable commits, each strategy. Starts a
// server of its own.
#include "bare_mariadb.hpp"
#include "sql_rounds.hpp"
#include "support/mariadb_server.hpp"

namespace {

struct mariadb {
  static holdfast::test::mariadb_server& server() {
    return bench::durable<holdfast::test::mariadb_server>();
  }
  static std::string url(const std::string& strategy) {
    return server().url(holdfast::test::fresh_prefix(), "&strategy=" + strategy);
  }
  static std::shared_ptr<bench::bare_mariadb_row> row(const std::string& name) {
    return std::make_shared<bench::bare_mariadb_row>(server().port(), name);
  }
};

const bool registered = bench::measure_strategies<mariadb>();

}  // namespace
