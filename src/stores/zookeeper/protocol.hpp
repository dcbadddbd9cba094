// ZooKeeper's wire protocol: the requests that the store needs, and their answers.
#pragma once

#include <holdfast/result.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::zookeeper {

// Jute, the encoding of ZooKeeper's wire: big-endian numbers, strings and
// buffers after their length.
//
// Appends to a text. Not thread-safe.
class jute_writer {
 public:
  explicit jute_writer(std::string& into) noexcept : into_(into) {}

  jute_writer& flag(bool value);
  jute_writer& number(std::int32_t value);
  jute_writer& wide(std::int64_t value);
  jute_writer& text(std::string_view value);  // also a buffer

 private:
  std::string& into_;
};

// Reads what a server sent, which may be anything: past the end every value is zero or empty, and
// good() stays false. Not thread-safe.
class jute_reader {
 public:
  explicit jute_reader(std::string_view from) noexcept : from_(from) {}

  bool flag();
  std::int32_t number();
  std::int64_t wide();
  std::string_view text();  // a length of -1, which is null, reads as empty

  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] std::string_view rest() const noexcept { return from_; }

 private:
  std::string_view take(std::size_t size);

  std::string_view from_;
  bool good_ = true;
};

enum class opcode : std::int32_t {
  plain_create = 1,
  remove = 2,
  exists = 3,
  get_data = 4,
  set_data = 5,
  get_acl = 6,
  get_children = 8,
  ping = 11,
  check = 13,  // a part of a multi: a node has this version
  multi = 14,
  create = 15,  // create2: the answer has the node's stat
  create_container = 19,
  auth = 100,
  close_session = -11,
};

// The codes that the store acts on; any other is only shown.
enum class code : std::int32_t {
  ok = 0,
  connection_loss = -4,
  unimplemented = -6,
  no_node = -101,
  no_auth = -102,
  bad_version = -103,
  node_exists = -110,
  session_expired = -112,
  invalid_acl = -114,
  auth_failed = -115,
  session_moved = -118,
};

// In words: "NoNode".
std::string text_of(code what);

// xids that the server uses on its own.
inline constexpr std::int32_t event_xid = -1;
inline constexpr std::int32_t ping_xid = -2;
inline constexpr std::int32_t auth_xid = -4;

struct stat {
  std::int64_t created = 0;     // czxid
  std::int64_t changed = 0;     // mzxid
  std::int64_t changed_at = 0;  // mtime, ms of the server's wall clock
  std::int32_t version = 0;     // of the data
  std::int64_t owner = 0;       // the session, for an ephemeral node
};

enum class node_kind : std::int32_t {
  persistent = 0,
  ephemeral = 1,
  ephemeral_sequential = 3,
  container = 4
};

// The access rights of nodes that we create.
enum class openness : std::uint8_t { everybody, creator };

// Larger ones make the server close the connection, for all claims that use it.
inline constexpr std::size_t request_size_limit = 900'000;

// One request, without its header.
struct request {
  opcode what{};
  std::string body;

  [[nodiscard]] bool writes() const noexcept;
};

request make_create(const std::string& path, std::string_view data, node_kind kind, openness acl);
request make_remove(const std::string& path, std::int32_t version = -1);
request make_exists(const std::string& path, bool watch);
request make_get_data(const std::string& path, bool watch);
request make_set_data(const std::string& path, std::string_view data, std::int32_t version = -1);
request make_get_acl(const std::string& path);
request make_get_children(const std::string& path, bool watch);
// A part of a multi, which fails unless the node's data has this version.
request make_check(const std::string& path, std::int32_t version);
// Goes through the quorum and changes nothing: what the session reads after it is as new as any
// answer that any client got before. ZooKeeper's own sync does not promise that: it is not ordered
// among the writes, and the leader answers it before it has applied what a follower has.
request make_barrier();
// All or nothing, of creates, removes, changes of data and checks.
request make_multi(const std::vector<request>& parts);

struct created_node {
  std::string path;
  zookeeper::stat stat;
};
struct node_data {
  std::string data;
  zookeeper::stat stat;
};
struct acl_entry {
  std::int32_t permissions = 0;
  std::string scheme;
  std::string id;
};

// The bodies of answers. unavailable: the bytes are malformed.
result<created_node> read_created(std::string_view body);
result<stat> read_stat(std::string_view body);
result<node_data> read_data(std::string_view body);
result<std::vector<std::string>> read_children(std::string_view body);
result<std::vector<acl_entry>> read_acl(std::string_view body);
// The outcome of a multi: the nodes it created, in order, or the code of the part that failed.
// The server reports no stat for nodes that a multi creates; if an earlier part changes data, its
// stat has the zxid of all.
struct multi_outcome {
  code failed = code::ok;
  std::vector<std::string> made;  // paths
  std::int64_t zxid = 0;
};
result<multi_outcome> read_multi(std::string_view body);

struct watch_event {
  enum class type : std::int32_t {
    reset = 0,  // our own: reconnected, the server's watches are gone
    created = 1,
    deleted = 2,
    data_changed = 3,
    children_changed = 4,
  };
  type what{};
  std::string path;
};
watch_event read_event(std::string_view body);

// The greeting.
struct greeting {
  std::int64_t last_zxid = 0;
  std::int32_t timeout = 0;  // ms
  std::int64_t session = 0;
  std::string password;
};
std::string make_greeting(const greeting& mine);
result<greeting> read_greeting(std::string_view body);

// A frame: the bytes after their length.
std::string framed(std::string_view bytes);
std::string framed(std::int32_t xid, const request& what);

}  // namespace holdfast::zookeeper
