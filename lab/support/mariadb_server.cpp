#include "support/mariadb_server.hpp"

#include "support/eventually.hpp"
#include "support/first_data.hpp"
#include "support/free_port.hpp"
#include "support/lent_names.hpp"

#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace holdfast::test {

namespace {

constexpr int attempts = 5;  // to start it

// Debian installs the server in a folder of root's PATH, and the scripts of its system tables
// beside it.
std::string program() {
  constexpr const char* usual = "/usr/sbin/mariadbd";
  return ::access(usual, X_OK) == 0 ? usual : "mariadbd";
}

std::string system_tables() {
  for (const char* folder : {"/usr/share/mysql", "/usr/share/mariadb"}) {
    if (std::filesystem::exists(std::string(folder) + "/mysql_system_tables.sql")) return folder;
  }
  throw std::runtime_error("no mysql_system_tables.sql: is mariadb-server installed?");
}

// The user that runs the server if we are root.
const passwd* mariadb_user() {
  const passwd* entry = ::getpwnam("mysql");
  return entry != nullptr ? entry : ::getpwnam("nobody");
}

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& each : words) line += "'" + each + "' ";
  return line;
}

std::vector<std::string> as_user(std::vector<std::string> words) {
  if (::geteuid() != 0) return words;
  std::vector<std::string> all{"setpriv", "--reuid", mariadb_user()->pw_name, "--regid",
                               std::to_string(mariadb_user()->pw_gid), "--clear-groups",
                               // Changing the user clears what child_process has requested.
                               "--pdeathsig", "KILL", "--"};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

std::vector<std::string> server_words(const std::filesystem::path& folder, bool durable) {
  return {program(),
          "--no-defaults",
          "--datadir=" + (folder / "data").string(),
          "--tmpdir=" + folder.string(),
          durable ? "--innodb-flush-log-at-trx-commit=1" : "--innodb-flush-log-at-trx-commit=2",
          "--innodb-doublewrite=0",
          "--innodb-buffer-pool-size=32M",
          "--innodb-log-file-size=16M"};
}

void give_to_user(const std::filesystem::path& folder) {
  if (::geteuid() == 0) run_program({"chown", "-R", mariadb_user()->pw_name, folder});
}

// Only the system's tables, without help texts: what mariadb-install-db does takes much longer.
void make_system_tables(const std::filesystem::path& folder) {
  const std::string tables = system_tables();
  std::filesystem::create_directories(folder / "data" / "mysql");
  give_to_user(folder);
  run_program({"sh", "-c",
               "(printf 'USE mysql;\\nSET @auth_root_socket = NULL;\\n'; cat '" + tables +
                   "/mysql_system_tables.sql' '" + tables + "/mysql_system_tables_data.sql') | " +
                   joined(as_user(server_words(folder, false))) +
                   " --bootstrap --skip-networking >'" + (folder / "bootstrap.log").string() +
                   "' 2>&1"});
}

}  // namespace

mariadb_server::mariadb_server(mariadb_options options)
    : options_(std::move(options)),
      folder_(options_.durable ? std::filesystem::temp_directory_path() : place_in_memory()) {
  initialise();
  for (int left = attempts; left > 0; --left) {
    port_ = free_port();  // another process may take it before the server does
    launch();
    if (has_started()) return;
  }
  throw std::runtime_error("mariadbd does not start: " + log());
}

mariadb_server::~mariadb_server() {
  if (process_.alive()) process_.end(SIGKILL);
}

void mariadb_server::initialise() {
  copy_first_data(program(), folder_.path() / "data",
                  [this](const auto&) { make_system_tables(folder_.path()); });
  std::ofstream(folder_.path() / "init.sql")
      << "SET SESSION sql_log_bin = 0;\n"
         "CREATE USER IF NOT EXISTS tester@'%';\n"
         "GRANT ALL ON *.* TO tester@'%' WITH GRANT OPTION;\n"
         "CREATE DATABASE IF NOT EXISTS locks;\n";
  give_to_user(folder_.path());
}

void mariadb_server::launch() {
  std::vector<std::string> words = server_words(folder_.path(), options_.durable);
  const auto set = [&](const std::string& setting) { words.push_back("--" + setting); };
  set("port=" + std::to_string(port_));
  set("bind-address=127.0.0.1");
  set("socket=" + socket());
  set("init-file=" + (folder_.path() / "init.sql").string());
  for (const char* each :
       {"skip-name-resolve", "max-connections=300", "innodb-fast-shutdown=2",
        "innodb-buffer-pool-dump-at-shutdown=0", "innodb-buffer-pool-load-at-startup=0"}) {
    set(each);
  }
  for (const std::string& each : options_.settings) set(each);
  process_ = child_process(as_user(std::move(words)), folder_.path() / "log");
}

std::string mariadb_server::log() const { return end_of_log(folder_.path() / "log"); }

bool mariadb_server::answers() const {
  try {
    return sql("SELECT 1", std::chrono::seconds(5)) == "1";
  } catch (const std::runtime_error&) {
    return false;
  }
}

std::string mariadb_server::url(const std::string& prefix, const std::string& extra) const {
  return "mariadb://tester@127.0.0.1:" + std::to_string(port_) + "/locks?prefix=" + prefix + extra;
}

// The server waits for the end of all connections, and was seen to wait forever for some that had
// just been killed.
void mariadb_server::stop() {
  constexpr std::chrono::seconds enough{15};
  process_.signal(SIGTERM);
  eventually([this] { return !process_.alive(); }, enough);
  process_.end(SIGKILL);
}

void mariadb_server::kill() { process_.end(SIGKILL); }

// Otherwise it has ended. MariaDB 10.11 was seen to start forever: its first thread waited for
// another one of its own, which had been there before it.
bool mariadb_server::has_started() {
  const bool known = eventually([this] { return answers() || !process_.alive(); });
  if (known && process_.alive()) return true;
  if (process_.alive()) process_.end(SIGKILL);
  return false;
}

void mariadb_server::start() {
  for (int left = attempts; left > 0; --left) {
    launch();
    if (has_started()) return;
  }
  throw std::runtime_error("mariadbd does not start again: " + log());
}

void mariadb_server::restart() {
  stop();
  start();
}

void mariadb_server::pause() { process_.pause(); }
void mariadb_server::resume() { process_.signal(SIGCONT); }

void mariadb_server::replicate(const mariadb_server& primary) {
  sql("SET GLOBAL read_only = 1; CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = " +
      std::to_string(primary.port()) +
      ", MASTER_USER = 'tester', MASTER_USE_GTID = slave_pos; START SLAVE");
}

void mariadb_server::promote() { sql("STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0"); }

std::string mariadb_server::sql(const std::string& statements, std::chrono::seconds greeted) const {
  std::string output =
      run_program({"mariadb", "--no-defaults", "--socket", socket(), "--user", "tester",
                   "--connect-timeout", std::to_string(greeted.count()), "--batch",
                   "--skip-column-names", "--database", "locks", "--execute", statements});
  while (!output.empty() && output.back() == '\n') output.pop_back();
  return output;
}

mariadb_server& shared_mariadb() {
  static mariadb_server server;
  return server;
}

std::string fresh_prefix() {
  static std::atomic<int> count{0};
  return "test_" + std::to_string(::getpid()) + "_" + std::to_string(++count) + "_";
}

namespace {

lent_names& lent_prefixes() {
  static lent_names all;
  return all;
}

// Without names whose tables are not as they were made: a test never made them, or broke them.
std::vector<std::string> emptied_prefixes(const std::vector<std::string>& used) {
  std::istringstream tables(shared_mariadb().sql(
      "SELECT table_name FROM information_schema.tables WHERE table_schema = 'locks'"));
  std::map<std::string, std::string> statements;  // by prefix
  for (std::string table; std::getline(tables, table);) {
    for (const std::string& prefix : used) {
      if (!table.starts_with(prefix)) continue;
      const bool meta = table == prefix + "meta";
      statements[prefix] += (meta ? "SELECT format FROM " : "DELETE FROM ") + table + ";";
    }
  }
  std::vector<std::string> whole;
  std::string together;
  for (const auto& [prefix, own] : statements) {
    if (own.find(prefix + "meta;") == std::string::npos) continue;
    together += own;
    whole.push_back(prefix);
  }
  try {
    if (!whole.empty()) shared_mariadb().sql(together);
  } catch (const std::runtime_error&) {
    whole.clear();
  }
  return whole;
}

}  // namespace

borrowed_prefix::borrowed_prefix() : name_(lent_prefixes().take(fresh_prefix, emptied_prefixes)) {}

borrowed_prefix::~borrowed_prefix() { lent_prefixes().give_back(name_); }

}  // namespace holdfast::test
