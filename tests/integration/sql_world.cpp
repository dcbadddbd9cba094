#include "integration/sql_world.hpp"

namespace holdfast::test {

namespace {

// What is shared lives until the program ends.
template <class Server>
std::shared_ptr<Server> server_for(bool shared, Server& (*troubled)()) {
  if (shared) return std::shared_ptr<Server>(&troubled(), [](Server*) {});
  return std::make_shared<Server>();
}

}  // namespace

std::vector<sql_setup> sql_setups(const std::vector<std::string>& strategies) {
  std::vector<sql_setup> all;
  for (const std::string& each : strategies) {
    const std::string suffix = each == "lease" ? "" : "_" + each;
#ifdef HOLDFAST_WITH_POSTGRESQL
    all.push_back({"postgresql" + suffix, each, [](bool shared) -> std::unique_ptr<sql_world> {
                     return std::make_unique<postgresql_world>(server_for(shared, troubled_server));
                   }});
#endif
#ifdef HOLDFAST_WITH_MARIADB
    all.push_back({"mariadb" + suffix, each, [](bool shared) -> std::unique_ptr<sql_world> {
                     return std::make_unique<mariadb_world>(server_for(shared, troubled_mariadb));
                   }});
#endif
  }
  return all;
}

}  // namespace holdfast::test
