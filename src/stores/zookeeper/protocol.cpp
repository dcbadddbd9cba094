#include "stores/zookeeper/protocol.hpp"

#include <algorithm>

namespace holdfast::zookeeper {

namespace {

template <class Number>
void append(std::string& into, Number value) {
  for (int shift = static_cast<int>(sizeof(Number)) * 8 - 8; shift >= 0; shift -= 8) {
    into += static_cast<char>(value >> shift & 0xff);
  }
}

std::uint64_t unsigned_from(std::string_view bytes) {
  std::uint64_t value = 0;
  for (const char each : bytes) value = value << 8U | static_cast<std::uint8_t>(each);
  return value;
}

}  // namespace

jute_writer& jute_writer::flag(bool value) {
  into_ += value ? '\1' : '\0';
  return *this;
}

jute_writer& jute_writer::number(std::int32_t value) {
  append(into_, static_cast<std::uint32_t>(value));
  return *this;
}

jute_writer& jute_writer::wide(std::int64_t value) {
  append(into_, static_cast<std::uint64_t>(value));
  return *this;
}

jute_writer& jute_writer::text(std::string_view value) {
  number(static_cast<std::int32_t>(value.size()));
  into_ += value;
  return *this;
}

std::string_view jute_reader::take(std::size_t size) {
  if (size > from_.size()) {
    good_ = false;
    from_ = {};
    return {};
  }
  const std::string_view taken = from_.substr(0, size);
  from_.remove_prefix(size);
  return taken;
}

bool jute_reader::flag() { return unsigned_from(take(1)) != 0; }

std::int32_t jute_reader::number() { return static_cast<std::int32_t>(unsigned_from(take(4))); }

std::int64_t jute_reader::wide() { return static_cast<std::int64_t>(unsigned_from(take(8))); }

std::string_view jute_reader::text() {
  const std::int32_t size = number();
  return size <= 0 ? std::string_view{} : take(static_cast<std::size_t>(size));
}

namespace {

constexpr std::int32_t all_permissions = 31;
constexpr std::int32_t end_of_multi = -1;

tl::unexpected<error> nonsense(const char* what) {
  return failure(errc::unavailable, std::string("zookeeper: ") + what + " makes no sense");
}

stat take_stat(jute_reader& from) {
  stat read;
  read.created = from.wide();
  read.changed = from.wide();
  from.wide();  // ctime
  read.changed_at = from.wide();
  read.version = from.number();
  from.number();  // cversion
  from.number();  // aversion
  read.owner = from.wide();
  from.number();  // dataLength
  from.number();  // numChildren
  from.wide();    // pzxid
  return read;
}

request with_path(opcode what, const std::string& path) {
  request made{what, {}};
  jute_writer(made.body).text(path);
  return made;
}

request with_watch(opcode what, const std::string& path, bool watch) {
  request made{what, {}};
  jute_writer(made.body).text(path).flag(watch);
  return made;
}

}  // namespace

std::string text_of(code what) {
  switch (what) {
    case code::ok:
      return "Ok";
    case code::connection_loss:
      return "ConnectionLoss";
    case code::unimplemented:
      return "Unimplemented (ZooKeeper 3.5 or newer is needed)";
    case code::no_node:
      return "NoNode";
    case code::no_auth:
      return "NoAuth";
    case code::bad_version:
      return "BadVersion";
    case code::node_exists:
      return "NodeExists";
    case code::session_expired:
      return "SessionExpired";
    case code::invalid_acl:
      return "InvalidACL (acl=creator needs a user and a password)";
    case code::auth_failed:
      return "AuthFailed";
    case code::session_moved:
      return "SessionMoved";
  }
  return "error " + std::to_string(static_cast<std::int32_t>(what));
}

bool request::writes() const noexcept {
  switch (what) {
    case opcode::remove:
    case opcode::set_data:
    case opcode::multi:
    case opcode::create:
    case opcode::create_container:
      return true;
    default:
      return false;
  }
}

request make_create(const std::string& path, std::string_view data, node_kind kind, openness acl) {
  const bool container = kind == node_kind::container;
  request made{container ? opcode::create_container : opcode::create, {}};
  jute_writer into(made.body);
  into.text(path).text(data).number(1).number(all_permissions);
  if (acl == openness::creator) {
    into.text("auth").text("");
  } else {
    into.text("world").text("anyone");
  }
  into.number(static_cast<std::int32_t>(kind));
  return made;
}

request make_remove(const std::string& path, std::int32_t version) {
  request made{opcode::remove, {}};
  jute_writer(made.body).text(path).number(version);
  return made;
}

request make_exists(const std::string& path, bool watch) {
  return with_watch(opcode::exists, path, watch);
}

request make_get_data(const std::string& path, bool watch) {
  return with_watch(opcode::get_data, path, watch);
}

request make_set_data(const std::string& path, std::string_view data, std::int32_t version) {
  request made{opcode::set_data, {}};
  jute_writer(made.body).text(path).text(data).number(version);
  return made;
}

request make_get_acl(const std::string& path) { return with_path(opcode::get_acl, path); }

request make_get_children(const std::string& path, bool watch) {
  return with_watch(opcode::get_children, path, watch);
}

request make_check(const std::string& path, std::int32_t version) {
  request made{opcode::check, {}};
  jute_writer(made.body).text(path).number(version);
  return made;
}

request make_barrier() { return make_multi({make_check("/", -1)}); }

request make_multi(const std::vector<request>& parts) {
  request made{opcode::multi, {}};
  jute_writer into(made.body);
  for (const request& each : parts) {
    into.number(static_cast<std::int32_t>(each.what)).flag(false).number(-1);
    made.body += each.body;
  }
  into.number(-1).flag(true).number(-1);
  return made;
}

result<created_node> read_created(std::string_view body) {
  jute_reader from(body);
  created_node read;
  read.path = from.text();
  read.stat = take_stat(from);
  if (!from.good()) return nonsense("the answer to a create");
  return read;
}

result<stat> read_stat(std::string_view body) {
  jute_reader from(body);
  const stat read = take_stat(from);
  if (!from.good()) return nonsense("a stat");
  return read;
}

result<node_data> read_data(std::string_view body) {
  jute_reader from(body);
  node_data read;
  read.data = from.text();
  read.stat = take_stat(from);
  if (!from.good()) return nonsense("a node's data");
  return read;
}

result<std::vector<std::string>> read_children(std::string_view body) {
  jute_reader from(body);
  const std::int32_t count = from.number();
  std::vector<std::string> read;
  // The announced number is not trusted: each child takes at least its length field.
  read.reserve(
      std::min<std::size_t>(static_cast<std::size_t>(std::max(count, 0)), body.size() / 4));
  for (std::int32_t i = 0; i < count && from.good(); ++i) read.emplace_back(from.text());
  if (!from.good()) return nonsense("a list of children");
  return read;
}

result<std::vector<acl_entry>> read_acl(std::string_view body) {
  jute_reader from(body);
  const std::int32_t count = from.number();
  std::vector<acl_entry> read;
  for (std::int32_t i = 0; i < count && from.good(); ++i) {
    acl_entry one;
    one.permissions = from.number();
    one.scheme = from.text();
    one.id = from.text();
    read.push_back(std::move(one));
  }
  if (!from.good()) return nonsense("an ACL");
  return read;
}

result<multi_outcome> read_multi(std::string_view body) {
  jute_reader from(body);
  multi_outcome outcome;
  while (from.good()) {
    const std::int32_t type = from.number();
    const bool done = from.flag();
    const std::int32_t problem = from.number();
    if (done) return outcome;
    if (type == end_of_multi) {
      // Parts before the failed one answer 0 too, parts after it -2: none was executed.
      const auto failed = static_cast<code>(from.number());
      if (failed != code::ok && outcome.failed == code::ok) outcome.failed = failed;
      continue;
    }
    if (problem != 0) return nonsense("the answer to a multi");
    switch (static_cast<opcode>(type)) {
      case opcode::plain_create:
        outcome.made.emplace_back(from.text());
        break;
      case opcode::create:
      case opcode::create_container:
        outcome.made.emplace_back(from.text());
        outcome.zxid = take_stat(from).created;
        break;
      case opcode::set_data:
        outcome.zxid = take_stat(from).changed;
        break;
      case opcode::remove:
      case opcode::check:
        break;
      default:
        return nonsense("the answer to a multi");
    }
  }
  return nonsense("the answer to a multi");
}

watch_event read_event(std::string_view body) {
  jute_reader from(body);
  watch_event event;
  event.what = static_cast<watch_event::type>(from.number());
  from.number();  // the state: always connected
  event.path = from.text();
  return event;
}

std::string make_greeting(const greeting& mine) {
  std::string bytes;
  jute_writer into(bytes);
  into.number(0).wide(mine.last_zxid).number(mine.timeout).wide(mine.session);
  into.text(mine.password).flag(false);  // not on a server that can only read
  return bytes;
}

result<greeting> read_greeting(std::string_view body) {
  jute_reader from(body);
  greeting theirs;
  from.number();  // protocol version
  theirs.timeout = from.number();
  theirs.session = from.wide();
  theirs.password = from.text();
  if (!from.good()) return nonsense("the greeting");
  return theirs;
}

std::string framed(std::string_view bytes) {
  std::string frame;
  frame.reserve(bytes.size() + 4);
  jute_writer(frame).text(bytes);
  return frame;
}

std::string framed(std::int32_t xid, const request& what) {
  std::string frame;
  frame.reserve(what.body.size() + 12);
  jute_writer into(frame);
  into.number(static_cast<std::int32_t>(what.body.size() + 8));
  into.number(xid).number(static_cast<std::int32_t>(what.what));
  frame += what.body;
  return frame;
}

}  // namespace holdfast::zookeeper
