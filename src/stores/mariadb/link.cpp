#include "stores/mariadb/link.hpp"

#include "stores/mariadb/schema.hpp"
#include "stores/sql/answers.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace holdfast::mariadb {

namespace {

constexpr unsigned long oldest_version = 100500;  // MariaDB 10.5
// Eighty statements, each of which the server writes to its disk.
constexpr duration installation_limit = std::chrono::seconds(30);

// CONNECTION_ID, read-only, Galera, binary log by statement.
constexpr const char* greeting =
    "SELECT CONCAT_WS(' ', CONNECTION_ID(), @@global.read_only NOT IN ('0', 'OFF'), "
    "(SELECT COUNT(*) FROM information_schema.global_variables "
    "WHERE variable_name = 'WSREP_ON' AND variable_value IN ('ON', '1')), "
    "@@global.log_bin AND @@session.binlog_format = 'STATEMENT')";

// What must hold in the session, whatever the server's or the user's defaults are: no timeout ends
// it while it is idle, none of its statements waits forever, a commit is a commit. Read committed:
// with the default, neighbours of a name would wait for each other.
constexpr const char* settings =
    "SET SESSION character_set_client = 'utf8mb4', character_set_connection = 'utf8mb4', "
    "character_set_results = 'utf8mb4', time_zone = '+00:00', tx_isolation = 'READ-COMMITTED', "
    "tx_read_only = 0, "
    "autocommit = 1, completion_type = 0, sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', "
    "wait_timeout = 31536000, interactive_timeout = 31536000, innodb_lock_wait_timeout = 3, "
    "lock_wait_timeout = 5, max_statement_time = 10, idle_transaction_timeout = 0, "
    "idle_write_transaction_timeout = 0, idle_readonly_transaction_timeout = 0, "
    "sql_select_limit = 18446744073709551615, sql_safe_updates = 0, max_join_size = "
    "18446744073709551615, sql_big_selects = 1, timestamp = DEFAULT, group_concat_max_len = "
    "16777216";

std::string_view first_of(const sql::rows& rows) noexcept {
  return rows.empty() ? std::string_view() : std::string_view(rows.front());
}

}  // namespace

link::link(net::network net, std::shared_ptr<const server_options> options,
           std::weak_ptr<sql::link_user> whose, manner how, std::size_t turn)
    : sql::link(std::move(net), options->text(), std::move(whose)),
      options_(std::move(options)),
      how_(std::move(how)),
      host_(options_->hosts[turn % options_->hosts.size()]) {}

link::~link() {
  if (!guard_.forked()) {
    close();
    return;
  }
  if (talk_ != nullptr) talk_.release()->abandon();
}

bool link::send(const call& what) {
  const std::lock_guard lock(mutex_);
  if (phase_ != phase::open || asking_) return false;
  asking_ = true;
  asked_ = what;
  tries_ = 1;
  on_fast_path_ = !what.fast_path.empty();
  ask();
  if (!talk_->finished()) {
    await();
    return true;
  }
  // It ended within the call, and must not be reported from here.
  net_.reactor->post([weak = std::weak_ptr(own())] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    harvest got;
    {
      const std::lock_guard inner(self->mutex_);
      if (self->phase_ == phase::open && self->asking_) self->proceed(got);
    }
    self->deliver(got);
  });
  return true;
}

void link::ask() {
  talk_->ask(on_fast_path_ ? asked_.fast_path
                           : text_of(asked_.which, asked_.with, options_->prefix, home_));
}

// Watches as libmariadb wants; if it wants nothing, to see the server hang up.
void link::await() {
  const int flags = talk_->finished() ? MYSQL_WAIT_READ : talk_->waits_for();
  const bool writable = (flags & MYSQL_WAIT_WRITE) != 0;
  const bool readable = (flags & (MYSQL_WAIT_READ | MYSQL_WAIT_EXCEPT)) != 0 || !writable;
  if (watched() && readable == readable_ && writable == writable_) return;
  readable_ = readable;
  writable_ = writable;
  watch_socket(talk_->socket(), readable, writable);
}

void link::ready(spi::readiness how) {
  harvest got;
  {
    const std::lock_guard lock(mutex_);
    if (phase_ == phase::over || phase_ == phase::resolving) return;
    if (talk_->finished()) {
      // There is no open query, or its answer is being delivered: a server that sends something now
      // is ending the connection.
      if (phase_ == phase::open && !asking_) {
        got.end = error{errc::unavailable, where_ + ": the server closed the connection"};
      }
    } else {
      // libmariadb may close the socket and open another (the next address): it is watched again,
      // but never while libmariadb may close it.
      if (phase_ == phase::connecting) unwatch_within();
      int flags = how.readable || how.hung_up ? MYSQL_WAIT_READ : 0;
      if (how.writable || how.hung_up) flags |= MYSQL_WAIT_WRITE;
      talk_->go_on(flags & (talk_->waits_for() | MYSQL_WAIT_READ));
      proceed(got);
    }
  }
  deliver(got);
}

void link::proceed(harvest& into) {
  while (talk_->finished() && !into.end && !into.opened && into.answers.empty()) finish(into);
  if (!into.end) await();
}

void link::finish(harvest& into) {
  if (phase_ == phase::open) return finish_question(into);
  if (phase_ == phase::connecting) return finish_connecting(into);
  finish_phase(into);
}

void link::finish_question(harvest& into) {
  if (talk_->code() == 0 && on_fast_path_) {
    on_fast_path_ = false;
    if (talk_->changed() == 0) return ask();
    into.answers.emplace_back(sql::rows{std::to_string(talk_->number())});
  } else if (talk_->code() == 0) {
    into.answers.emplace_back(std::move(talk_->rows()));
  } else if (asked_.which == statement::listen && talk_->code() == er_query_interrupted) {
    into.answers.emplace_back(sql::rows{});  // that is how a listener is woken
  } else {
    server_error failed = to_error(talk_->code(), talk_->message(), where_, name_of(asked_.which));
    if (failed.retry && tries_ < try_limit) {
      ++tries_;
      return ask();
    }
    into.answers.emplace_back(tl::unexpected(failed.what));
    if (failed.ends_link) into.end = std::move(failed.what);
  }
  asking_ = false;
}

std::int64_t link::home() {
  const std::lock_guard lock(mutex_);
  return home_;
}

std::string link::place() { return host_.host + ":" + std::to_string(host_.port); }

// How it begins: addresses, the driver's handshake, and the session's set-up.

void link::start() {
  {
    const std::lock_guard lock(mutex_);
    limit_set_up(options_->connect_limit);
  }
  if (host_.host.starts_with('/')) return located(net::addresses{});
  net_.resolver->resolve(
      host_.host, host_.port, net_.reactor->now() + options_->connect_limit,
      [self = own()](const result<net::addresses>& found) { self->located(found); });
}

// libmariadb would look names up itself, and block. It gets an address, except where it must
// compare the name with a certificate: then the look-up has just been made, and is cached.
void link::located(const result<net::addresses>& found) {
  if (!found) return fail(found.error());
  harvest got;
  {
    const std::lock_guard lock(mutex_);
    if (phase_ != phase::resolving) return;
    conversation::place where{host_.host, host_.port};
    if (!found->empty() && options_->tls != tls_mode::verified) {
      std::string text = found->front().text();
      text.resize(std::min(text.rfind(':'), text.size()));
      if (text.starts_with('[')) text = text.substr(1, text.size() - 2);
      where.host = std::move(text);
    }
    phase_ = phase::connecting;
    auto done = [weak = std::weak_ptr(own()), reactor = net_.reactor] {
      reactor->post([weak] {
        if (const auto self = weak.lock()) self->connected();
      });
    };
    if (!talk_->connect(*options_, std::move(where), std::move(done))) return;
    proceed(got);
  }
  deliver(got);
}

// Called on its own thread. The time limit may have come first.
void link::connected() {
  harvest got;
  {
    const std::lock_guard lock(mutex_);
    if (phase_ != phase::connecting) return;
    proceed(got);
  }
  deliver(got);
}

void link::finish_connecting(harvest& into) {
  if (talk_->code() != 0) {
    into.end = connect_error(talk_->code(), talk_->message(), where_);
    return;
  }
  // libmariadb continues in plain text if the server offers nothing else, whatever it was told.
  if (options_->tls != tls_mode::disabled && mysql_get_ssl_cipher(talk_->handle()) == nullptr) {
    into.end = error{errc::denied, where_ + ", connect: the server does not support TLS"};
    return;
  }
  if (mariadb_connection(talk_->handle()) == 0) {
    into.end = error{errc::unsupported,
                     where_ + ": MySQL, not MariaDB: its stored procedures have no row variables"};
    return;
  }
  if (mysql_get_server_version(talk_->handle()) < oldest_version) {
    into.end = error{errc::unsupported, where_ + ": MariaDB 10.5 or newer is required"};
    return;
  }
  enter(phase::settling);
}

std::string link::question(phase next) const {
  const std::string lock = installation_lock(options_->database, options_->prefix);
  switch (next) {
    case phase::greeting:
      return greeting;
    case phase::settling:
      return settings;
    case phase::checking:
    case phase::rechecking:
      return "SELECT format FROM " + options_->prefix + "meta";
    case phase::locking:
      return "SELECT GET_LOCK('" + lock + "', 8)";
    case phase::installing:
      return script_[installed_];
    case phase::unlocking:
      return "SELECT RELEASE_LOCK('" + lock + "')";
    case phase::naming:
      return "SELECT CONCAT(GET_LOCK('" + how_.lock + "', 1), ' ', IS_USED_LOCK('" + how_.lock +
             "'))";
    case phase::beginning:
      return "CALL " + options_->prefix + "begin_3('" + how_.carries + "')";
    case phase::preparing:
      return "CALL " + options_->prefix + "prepare_3()";
    case phase::evicting:
      return "KILL " + former_;
    default:
      return {};
  }
}

void link::enter(phase next) {
  phase_ = next;
  talk_->ask(question(next));
}

void link::greeted(harvest& into) {
  sql::words line(first_of(talk_->rows()));
  const auto id = line.number<unsigned long>();
  home_ = static_cast<std::int64_t>(id);
  const bool read_only = line.number() != 0;
  const bool galera = line.number() != 0;
  const bool statements = line.number() != 0;
  if (!line.fine()) {
    into.end = error{errc::unavailable, where_ + ": the server does not say who it is"};
  } else if (!options_->pooler_is_fine && id != mysql_thread_id(talk_->handle())) {
    into.end =
        error{errc::unsupported,
              where_ +
                  ": a proxy is in between; named locks and the session's settings do not stay "
                  "where it shares a server connection. Connect directly, or, if it keeps "
                  "whole sessions, say pooler=session"};
  } else if (galera) {
    into.end = error{errc::unsupported,
                     where_ +
                         ": a Galera cluster (wsrep_on): two nodes may grant one lock before they "
                         "compare, and named locks are each node's own"};
  } else if (statements) {
    into.end =
        error{errc::unsupported,
              where_ + ": binlog_format=STATEMENT takes no READ COMMITTED; set MIXED or ROW"};
  } else if (read_only) {
    into.end = error{errc::unavailable, where_ + ": read-only, perhaps a replica"};
  } else {
    enter(phase::checking);
  }
}

bool link::format_fits() const {
  const auto& rows = talk_->rows();
  return rows.size() == 1 && rows.front() == std::to_string(format);
}

// The tables exist, in some format.
void link::enter_checked(harvest& into) {
  if (!format_fits()) {
    into.end = error{errc::unsupported, where_ + ": the tables " + options_->prefix +
                                            "* have format " + talk_->rows().front() +
                                            ", this version reads " + std::to_string(format)};
    return;
  }
  if (phase_ == phase::rechecking) return enter(phase::unlocking);
  if (!how_.lock.empty()) return enter(phase::naming);
  enter_named(into);
}

void link::enter_named(harvest& into) {
  if (!how_.carries.empty()) return enter(phase::beginning);
  enter_begun(into);
}

void link::enter_begun(harvest& into) {
  if (how_.fast_paths) return enter(phase::preparing);
  open_up(into);
}

// Nobody else knows the name: it is held by a former connection of ours that the
// server still considers alive.
bool link::named() {
  sql::words line(first_of(talk_->rows()));
  const bool ours = line.number() == 1;
  former_ = line.rest();
  return ours;
}

// A query of the set-up was answered completely.
void link::finish_phase(harvest& into) {
  const bool looked = phase_ == phase::checking || phase_ == phase::rechecking;
  const bool absent = looked && (talk_->code() == er_no_such_table ||
                                 (talk_->code() == 0 && talk_->rows().empty()));
  if (phase_ == phase::evicting) {
    into.end = error{errc::unavailable, where_ + ": waiting for the previous connection to close"};
    return;
  }
  if (talk_->code() != 0 && !absent) {
    into.end = to_error(talk_->code(), talk_->message(), where_, "set-up").what;
    return;
  }
  switch (phase_) {
    case phase::greeting:
      return greeted(into);
    case phase::settling:
      return enter(phase::greeting);
    case phase::checking:
    case phase::rechecking:
      if (!absent) return enter_checked(into);
      if (phase_ == phase::checking) {
        limit_set_up(installation_limit);
        return enter(phase::locking);
      }
      // Not always the first time: the tables may have been dropped again meanwhile.
      script_ = installation(options_->prefix);
      installed_ = 0;
      return enter(phase::installing);
    case phase::locking:
      if (talk_->rows().empty() || talk_->rows().front() != "1") {
        into.end = error{errc::unavailable,
                         where_ + ": another client has been creating the tables for too long"};
        return;
      }
      return enter(phase::rechecking);
    case phase::installing:
      if (++installed_ < script_.size()) return enter(phase::installing);
      return enter(phase::unlocking);
    case phase::unlocking:
      return enter(phase::checking);
    case phase::naming:
      return named() ? enter_named(into) : enter(phase::evicting);
    case phase::beginning:
      return enter_begun(into);
    default:
      open_up(into);
  }
}

}  // namespace holdfast::mariadb
