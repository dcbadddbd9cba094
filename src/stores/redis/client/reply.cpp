// hiredis calls the creators below; they put each value into its place in our reply. No exception
// passes through its C code.
#include "stores/redis/client/reply.hpp"

#include "stores/redis/client/hiredis.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <utility>

namespace holdfast::redis {

namespace {

// What the creators share, reached through hiredis's privdata.
struct building {
  const reader_limits limits;
  reply root;
  std::size_t announced = 0;  // elements of all arrays of the reply
  std::string problem;        // why a creator gave up
};

building& building_of(const redisReadTask* task) { return *static_cast<building*>(task->privdata); }

// Where the value of this task belongs. Arrays reserve their elements, so
// that addresses stay valid.
reply& place_of(const redisReadTask* task) {
  if (task->parent == nullptr) {
    reply& root = building_of(task).root;
    root = reply{};
    return root;
  }
  return static_cast<reply*>(task->parent->obj)->elements.emplace_back();
}

template <class Make>
void* guarded(const redisReadTask* task, Make&& make) noexcept {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    building_of(task).problem = "out of memory";
    return nullptr;
  }
}

void* create_string(const redisReadTask* task, char* text, std::size_t size) {
  return guarded(task, [&]() -> void* {
    // hiredis accepts any two bytes as the end of a string.
    if (task->type == REDIS_REPLY_STRING && std::memcmp(text + size, "\r\n", 2) != 0) {
      building_of(task).problem = "a string is longer than announced";
      return nullptr;
    }
    // As for a line whose end is still missing: the result must not depend
    // on whether it has arrived.
    if (task->type != REDIS_REPLY_STRING && size + 2 > building_of(task).limits.line) {
      building_of(task).problem = "a line too long";
      return nullptr;
    }
    reply& made = place_of(task);
    made.kind = task->type == REDIS_REPLY_ERROR    ? reply::type::error
                : task->type == REDIS_REPLY_STATUS ? reply::type::status
                                                   : reply::type::string;
    made.text.assign(text, size);
    return &made;
  });
}

void* create_array(const redisReadTask* task, std::size_t elements) {
  return guarded(task, [&]() -> void* {
    building& shared = building_of(task);
    std::size_t depth = 1;
    for (auto* outer = task->parent; outer != nullptr; outer = outer->parent) ++depth;
    if (depth > shared.limits.depth) {
      shared.problem = "arrays nested too deeply";
      return nullptr;
    }
    if (elements > shared.limits.elements - shared.announced) {
      shared.problem = "more than " + std::to_string(shared.limits.elements) + " elements";
      return nullptr;
    }
    shared.announced += elements;
    reply& made = place_of(task);
    made.kind = reply::type::array;
    made.elements.reserve(elements);
    return &made;
  });
}

void* create_integer(const redisReadTask* task, long long value) {
  return guarded(task, [&]() -> void* {
    reply& made = place_of(task);
    made.kind = reply::type::integer;
    made.integer = value;
    return &made;
  });
}

void* create_nil(const redisReadTask* task) {
  return guarded(task, [&]() -> void* { return &place_of(task); });
}

redisReplyObjectFunctions& creators() {
  static redisReplyObjectFunctions functions = [] {
    redisReplyObjectFunctions made{};
    made.createString = create_string;
    // The count's type differs between hiredis's versions.
    made.createArray = [](const redisReadTask* task, auto elements) -> void* {
      return create_array(task, static_cast<std::size_t>(elements));
    };
    made.createInteger = create_integer;
    made.createNil = create_nil;
    made.freeObject = [](void*) {};  // the root owns everything, and we own the root
    return made;
  }();
  return functions;
}

constexpr std::size_t number_digits = 18;  // fit without an overflow
constexpr std::size_t number_size = number_digits + 3;

// Takes a whole number off the front of `bytes`: the usual answer of our scripts,
// without the parser's buffer. Only if it is certain; everything else, and anything
// malformed, is left to the parser.
std::optional<std::int64_t> take_number(std::string_view& bytes) noexcept {
  if (bytes.size() < 4 || bytes[0] != ':' || bytes[1] < '0' || bytes[1] > '9') return std::nullopt;
  if (bytes[1] == '0' && bytes[2] != '\r') return std::nullopt;
  const char* const last = bytes.data() + std::min(bytes.size() - 2, number_digits + 1);
  std::int64_t value = 0;
  const char* end = bytes.data() + 1;
  while (end != last && *end >= '0' && *end <= '9') value = value * 10 + (*end++ - '0');
  if (end[0] != '\r' || end[1] != '\n') return std::nullopt;
  bytes.remove_prefix(static_cast<std::size_t>(end + 2 - bytes.data()));
  return value;
}

struct free_reader {
  void operator()(redisReader* reader) const noexcept { redisReaderFree(reader); }
};

}  // namespace

struct reply_reader::parser {
  explicit parser(reader_limits limits)
      : shared{limits, {}, 0, {}}, reader(redisReaderCreateWithFunctions(&creators())) {
    if (reader == nullptr) throw std::bad_alloc();
    reader->privdata = &shared;
  }

  [[nodiscard]] std::size_t consumed() const noexcept { return fed - (reader->len - reader->pos); }

  // Is the reply that is being read too large, or has it an endless line?
  [[nodiscard]] bool oversized() const noexcept {
    if (fed - finished > shared.limits.bytes) return true;
    const std::size_t left = reader->len - reader->pos;
    return left > shared.limits.line &&
           std::memchr(reader->buf + reader->pos, '\n', shared.limits.line) == nullptr;
  }

  building shared;
  std::unique_ptr<redisReader, free_reader> reader;
  std::size_t fed = 0;       // bytes, in all
  std::size_t finished = 0;  // bytes of complete replies
  std::optional<error> broken;
};

reply_reader::reply_reader(reader_limits limits) : parser_(std::make_unique<parser>(limits)) {}
reply_reader::~reply_reader() = default;

result<void> reply_reader::feed(std::string_view bytes, std::vector<reply>& into) {
  parser& self = *parser_;
  const auto give_up = [&self](const std::string& why) {
    self.broken = error{errc::unavailable, "protocol error: " + why};
    return tl::unexpected(*self.broken);
  };
  if (self.broken) return tl::unexpected(*self.broken);
  // The parser holds no part of a reply.
  while (self.fed == self.finished && self.shared.limits.bytes >= number_size) {
    const auto number = take_number(bytes);
    if (!number) break;
    into.emplace_back().kind = reply::type::integer;
    into.back().integer = *number;
  }
  if (bytes.empty()) return {};
  if (redisReaderFeed(self.reader.get(), bytes.data(), bytes.size()) != REDIS_OK) {
    return give_up("out of memory");
  }
  self.fed += bytes.size();
  while (true) {
    void* complete = nullptr;
    if (redisReaderGetReply(self.reader.get(), &complete) != REDIS_OK) {
      return give_up(self.shared.problem.empty() ? self.reader->errstr : self.shared.problem);
    }
    if (complete == nullptr) break;
    if (self.consumed() - self.finished > self.shared.limits.bytes)
      return give_up("a reply too long");
    into.push_back(std::move(self.shared.root));
    self.shared.announced = 0;
    self.finished = self.consumed();
  }
  if (self.oversized()) return give_up("a reply too long");
  return {};
}

namespace {

struct meaning {
  std::string_view code;
  trouble what;
};

constexpr std::array meanings{
    meaning{"LOADING", trouble::passing},
    meaning{"BUSY", trouble::passing},
    meaning{"TRYAGAIN", trouble::passing},
    meaning{"CLUSTERDOWN", trouble::passing},
    meaning{"MASTERDOWN", trouble::passing},
    meaning{"MISCONF", trouble::passing},
    meaning{"NOREPLICAS", trouble::passing},
    meaning{"OOM", trouble::passing},
    meaning{"UNBLOCKED", trouble::passing},
    meaning{"NOTREADY", trouble::passing},
    meaning{"READONLY", trouble::demoted},
    meaning{"NOPERM", trouble::denied},
    meaning{"NOAUTH", trouble::denied},
    meaning{"WRONGPASS", trouble::denied},
    meaning{"DENIED", trouble::denied},
    meaning{"MOVED", trouble::moved},
    meaning{"ASK", trouble::ask},
    meaning{"NOSCRIPT", trouble::no_script},
    meaning{"WRONGTYPE", trouble::wrong_type},
};

struct remedy {
  std::string_view code;
  std::string_view text;
};

constexpr std::array remedies{
    remedy{"OOM", "the server's maxmemory is reached: raise it, or free memory"},
    remedy{"MISCONF", "the server cannot persist: look at its disk and log"},
    remedy{"NOREPLICAS", "fewer replicas than min-replicas-to-write: look at replication"},
    remedy{"BUSY", "a script runs too long: SCRIPT KILL ends it, if it has not written"},
};

std::string_view first_word(std::string_view text) noexcept {
  return text.substr(0, text.find(' '));
}

// Redis 6.2 wraps the error of a call: "ERR Error running script (...): @user_script: 1: OOM ...".
std::string_view unwrapped(std::string_view text) noexcept {
  if (!text.starts_with("ERR Error running script")) return text;
  for (const meaning& one : meanings) {
    for (auto at = text.find(one.code); at != std::string_view::npos;
         at = text.find(one.code, at + 1)) {
      const char before = text[at - 1];
      const std::size_t end = at + one.code.size();
      if ((before == ' ' || before == '-') && (end == text.size() || text[end] == ' ')) {
        return text.substr(at);
      }
    }
  }
  return text;
}

bool refused_in_script(std::string_view text) noexcept {
  return text.find("The user executing the script can't") != std::string_view::npos;
}

// Without arguments that the server repeats, and without the place in the script.
std::string_view without_arguments(std::string_view text) noexcept {
  for (const std::string_view mark : {", with args beginning with", " script: "}) {
    text = text.substr(0, text.find(mark));
  }
  constexpr std::size_t longest = 200;
  return text.substr(0, longest);
}

std::string grant_for(std::string_view text, std::string_view verb, const grants& wanted) {
  if (text.starts_with("NOAUTH"))
    return "give the password by --password-file, $HOLDFAST_PASSWORD or the URL";
  if (text.starts_with("WRONGPASS")) return "wrong user or password, or the user is disabled";
  if (text.starts_with("DENIED")) return "protected mode: bind or authenticate the server";
  if (text.find("channel") != std::string_view::npos) {
    return "grant the channels: " + (wanted.channels.empty() ? "&pattern" : wanted.channels);
  }
  if (text.find("key") != std::string_view::npos) {
    return "grant the keys: " + (wanted.keys.empty() ? "~pattern" : wanted.keys);
  }
  if (refused_in_script(text)) return "grant the commands that the script calls";
  std::string_view denied = verb;
  if (const auto open = text.find('\''); open != std::string_view::npos) {
    const auto close = text.find('\'', open + 1);
    if (close != std::string_view::npos) denied = text.substr(open + 1, close - open - 1);
  }
  std::string lower(denied);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return "grant the command: +" + lower;
}

errc code_of(trouble what) noexcept {
  switch (what) {
    case trouble::denied:
      return errc::denied;
    case trouble::wrong_type:
      return errc::name_conflict;
    case trouble::unknown_verb:
      return errc::unsupported;
    default:
      return errc::unavailable;
  }
}

}  // namespace

trouble classify(const reply& answer) noexcept {
  const std::string_view text = unwrapped(answer.text);
  const auto known = std::ranges::find(meanings, first_word(text), &meaning::code);
  if (known != meanings.end()) return known->what;
  if (refused_in_script(text)) return trouble::denied;
  if (text.starts_with("ERR max number of clients reached")) return trouble::passing;
  if (text.starts_with("ERR unknown command")) return trouble::unknown_verb;
  if (text.starts_with("ERR unknown subcommand")) return trouble::unknown_verb;
  return trouble::other;
}

bool says_demoted(const reply& answer) noexcept {
  const auto says = [](const reply& one) {
    return one.is_error() && classify(one) == trouble::demoted;
  };
  return says(answer) || std::ranges::any_of(answer.elements, says);
}

error to_error(const reply& answer, std::string_view verb, std::string_view where,
               const grants& wanted) {
  const trouble what = classify(answer);
  const std::string_view text = unwrapped(answer.text);
  std::string detail = std::string(where) + ", " + std::string(verb) + ": ";
  detail += without_arguments(text);
  if (what == trouble::denied) detail += "; " + grant_for(text, verb, wanted);
  const auto known = std::ranges::find(remedies, first_word(text), &remedy::code);
  if (known != remedies.end()) detail += "; " + std::string(known->text);
  return {code_of(what), std::move(detail)};
}

}  // namespace holdfast::redis
