#include "support/postgresql_server.hpp"

#include "support/eventually.hpp"
#include "support/first_data.hpp"
#include "support/free_port.hpp"
#include "support/lent_names.hpp"

#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace holdfast::test {

namespace {

// Debian installs the server's programs in a folder per version, not in PATH. The newest one.
std::string program(const std::string& name) {
  std::vector<std::filesystem::path> found;
  std::error_code none;
  for (const auto& each : std::filesystem::directory_iterator("/usr/lib/postgresql", none)) {
    if (std::filesystem::exists(each.path() / "bin" / name)) found.push_back(each.path());
  }
  if (found.empty()) return name;
  std::sort(found.begin(), found.end(), [](const auto& left, const auto& right) {
    return std::stoi(left.filename()) < std::stoi(right.filename());
  });
  return found.back() / "bin" / name;
}

// The user that runs the server if we are root.
const passwd* postgresql_user() {
  const passwd* entry = ::getpwnam("postgres");
  return entry != nullptr ? entry : ::getpwnam("nobody");
}

}  // namespace

postgresql_server::postgresql_server(postgresql_options options)
    : options_(std::move(options)),
      folder_(options_.durable ? std::filesystem::temp_directory_path() : place_in_memory()) {
  initialise();
  constexpr int attempts = 5;  // another process may take the port before the server does
  for (int left = attempts; left > 0; --left) {
    port_ = free_port();
    launch();
    if (eventually([this] { return answers() || !process_.alive(); }) && process_.alive()) return;
  }
  throw std::runtime_error("postgres does not start: " + log());
}

postgresql_server::~postgresql_server() {
  // So that no child outlives it: an immediate shutdown ends them all.
  if (process_.alive()) stop(shutdown::immediate);
}

std::vector<std::string> postgresql_server::as_user(std::vector<std::string> words) const {
  if (::geteuid() != 0) return words;
  std::vector<std::string> all{"setpriv", "--reuid", postgresql_user()->pw_name, "--regid",
                               std::to_string(postgresql_user()->pw_gid), "--clear-groups",
                               // Changing the user clears what child_process has requested.
                               "--pdeathsig", "KILL", "--"};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

void postgresql_server::initialise() {
  std::filesystem::permissions(folder_.path(), std::filesystem::perms::owner_all);
  if (::geteuid() == 0 &&
      ::chown(folder_.path().c_str(), postgresql_user()->pw_uid, postgresql_user()->pw_gid) != 0) {
    throw std::runtime_error("chown: " + folder_.path().string());
  }
  if (options_.primary != nullptr) return copy_primary();
  copy_first_data(program("initdb"), folder_.path() / "data", [this](const auto& into) {
    run_program(
        as_user({program("initdb"), "--pgdata", into, "--username", "tester", "--auth", "trust",
                 "--no-sync", "--no-instructions", "--encoding", "UTF8", "--locale", "C"}));
  });
  if (::geteuid() == 0) run_program({"chown", "-R", postgresql_user()->pw_name, folder_.path()});
  if (options_.access.empty()) return;
  std::ofstream access(folder_.path() / "data" / "pg_hba.conf");
  access << "local all tester trust\n";
  for (const std::string& line : options_.access) access << line << "\n";
}

void postgresql_server::copy_primary() {
  run_program(as_user({program("pg_basebackup"), "--pgdata", folder_.path() / "data", "--host",
                       options_.primary->folder(), "--port",
                       std::to_string(options_.primary->port()), "--username", "tester",
                       "--checkpoint", "fast", "--no-sync", "--write-recovery-conf"}));
}

void postgresql_server::launch() {
  std::vector<std::string> words{program("postgres"), "-D", folder_.path() / "data"};
  const auto set = [&](const std::string& setting) { words.insert(words.end(), {"-c", setting}); };
  set("port=" + std::to_string(port_));
  set("listen_addresses=127.0.0.1");
  set("unix_socket_directories=" + folder_.path().string());
  if (!options_.durable) {
    set("fsync=off");
    set("max_wal_size=128MB");
  }
  for (const char* each :
       {"dynamic_shared_memory_type=mmap", "shared_buffers=16MB", "max_connections=200",
        "wal_level=minimal", "max_wal_senders=0", "log_min_messages=fatal"}) {
    set(each);
  }
  for (const std::string& each : options_.settings) set(each);
  process_ = child_process(as_user(std::move(words)), folder_.path() / "log");
}

std::string postgresql_server::log() const { return end_of_log(folder_.path() / "log"); }

bool postgresql_server::answers() const {
  try {
    return sql("SELECT 1") == "1";
  } catch (const std::runtime_error&) {
    return false;
  }
}

std::string postgresql_server::url(const std::string& schema, const std::string& extra) const {
  return "postgresql://tester@127.0.0.1:" + std::to_string(port_) + "/postgres?schema=" + schema +
         extra;
}

void postgresql_server::stop(shutdown how) {
  resume();  // a stopped process does not end
  switch (how) {
    case shutdown::smart:
      return process_.end(SIGTERM);
    case shutdown::fast:
      return process_.end(SIGINT);
    case shutdown::immediate:
      return process_.end(SIGQUIT);
  }
}

// Each connection is a process, and while one is left the server refuses to start again.
void postgresql_server::kill() {
  resume();
  process_.kill_all();
}

void postgresql_server::await_start() {
  if (!eventually([this] { return answers() || !process_.alive(); }) || !process_.alive()) {
    throw std::runtime_error("postgres does not start again: " + log());
  }
}

void postgresql_server::start() {
  launch();
  await_start();
}

void postgresql_server::restart(shutdown how) {
  stop(how);
  start();
}

// Every connection is a process of its own.
void postgresql_server::pause() {
  process_.pause_all();
  paused_ = true;
}

void postgresql_server::resume() {
  if (std::exchange(paused_, false)) process_.resume_all();
}

void postgresql_server::promote() {
  if (sql("SELECT pg_promote()") != "t") throw std::runtime_error("not promoted: " + log());
}

std::string postgresql_server::sql(const std::string& statement) const {
  std::string output =
      // Not Debian's own psql: that looks for a server in Perl first, which takes longer than the statement.
      run_program({program("psql"), "--host", folder_.path(), "--port", std::to_string(port_),
                   "--username", "tester", "--dbname", "postgres", "--no-psqlrc", "--quiet",
                   "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1", "--command",
                   statement});
  while (!output.empty() && output.back() == '\n') output.pop_back();
  return output;
}

postgresql_server& shared_postgresql() {
  static postgresql_server server;
  return server;
}

std::string fresh_schema() {
  static std::atomic<int> count{0};
  return "test_" + std::to_string(::getpid()) + "_" + std::to_string(++count);
}

namespace {

lent_names& lent_schemas() {
  static lent_names all;
  return all;
}

// Also if a test never made its tables, or broke them: what is there is emptied.
std::vector<std::string> emptied_schemas(std::vector<std::string> used) {
  std::string names;
  for (const std::string& each : used) names += (names.empty() ? "" : ",") + each;
  shared_postgresql().sql(
      "DO $$ DECLARE t record; BEGIN FOR t IN SELECT schemaname, tablename FROM pg_tables WHERE "
      "schemaname = ANY ('{" +
      names +
      "}') AND tablename <> 'meta' LOOP "
      "EXECUTE format('DELETE FROM %I.%I', t.schemaname, t.tablename); END LOOP; END $$");
  return used;
}

}  // namespace

borrowed_schema::borrowed_schema() : name_(lent_schemas().take(fresh_schema, emptied_schemas)) {}

borrowed_schema::~borrowed_schema() { lent_schemas().give_back(name_); }

}  // namespace holdfast::test
