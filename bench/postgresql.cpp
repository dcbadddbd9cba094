// The PostgreSQL store against bare libpq on the same server, durable commits, each strategy. Starts a
// server of its own.
#include "bare_postgresql.hpp"
#include "sql_rounds.hpp"
#include "support/postgresql_server.hpp"

namespace {

struct postgresql {
  static holdfast::test::postgresql_server& server() {
    return bench::durable<holdfast::test::postgresql_server>();
  }
  static std::string url(const std::string& strategy) {
    return server().url(holdfast::test::fresh_schema(), "&strategy=" + strategy);
  }
  static std::shared_ptr<bench::bare_row> row(const std::string& name) {
    return std::make_shared<bench::bare_row>(
        "host=127.0.0.1 user=tester dbname=postgres port=" + std::to_string(server().port()), name);
  }
};

const bool registered = bench::measure_strategies<postgresql>();

}  // namespace
