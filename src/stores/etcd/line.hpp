// The queue of a resource, as its keys show it: who holds, who waits, and for whom.
#pragma once

#include "stores/etcd/messages.hpp"
#include "stores/etcd/names.hpp"
#include "stores/payload.hpp"

#include <holdfast/fence.hpp>
#include <holdfast/spi/claim.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::etcd {

struct standing {
  claim_kind kind{};
  std::string id;     // of the key
  std::string claim;  // as people are shown it
  std::string key;
  std::string value;
  std::int64_t created = 0;  // the order of the queue
  std::int64_t fenced = 0;   // the same, or when its mode was changed
  std::int64_t lease = 0;
  spi::mode mode{};
  bool changed = false;  // its mode is not that of its key
  bool revoked = false;
  std::string owner;           // if it was handed on: as in owner_text(); else empty
  std::int64_t handed_on = 0;  // the revision at which it last was
  stores::permits_data permits{};

  [[nodiscard]] bool excludes() const noexcept { return mode != spi::mode::shared; }
};

// The keys that show a claim its blockers: all keys of the name; for a reader, its own and all but
// those of readers. Otherwise thousands of readers would read each other's keys whenever one comes.
std::vector<key_range> keys_around(const std::string& prefix, spi::mode mode,
                                   const std::string& own);

class line {
 public:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  // All keys that begin with `prefix`, in any order; others are ignored.
  line(const std::string& prefix, const std::vector<key_value>& kvs, std::int64_t revision = 0);

  [[nodiscard]] std::int64_t revision() const noexcept { return revision_; }  // as of when

  [[nodiscard]] const std::vector<standing>& claims() const noexcept { return claims_; }
  // `created`: its revision. The id alone may belong to an earlier claim on the same key.
  [[nodiscard]] std::size_t find(const std::string& id, std::int64_t created) const noexcept;
  // The one that was handed on to this owner.
  [[nodiscard]] std::size_t find_owned(std::string_view owner) const noexcept;

  // The blocker of that claim: for an exclusive claim the one just before it, for a reader the last
  // one before it that excludes it, for permits the first one that could make room.
  [[nodiscard]] std::size_t blocker_of(std::size_t place) const noexcept;
  // The same for a claim that would come now.
  [[nodiscard]] std::size_t blocker_of_next(spi::mode mode, std::uint32_t permits,
                                            std::uint32_t max) const noexcept;
  [[nodiscard]] bool holds(std::size_t place) const noexcept { return blocker_of(place) == none; }
  // Somebody waits for what that claim holds.
  [[nodiscard]] bool wanted(std::size_t place) const noexcept;

  // The name is in use as something other than `mode`: the first in the queue decides. For permits
  // also with another number. `place`: only those before it count.
  [[nodiscard]] std::optional<error> conflict(spi::mode mode, std::uint32_t max,
                                              std::size_t place) const;
  [[nodiscard]] bool has_latch() const noexcept { return has_latch_; }
  // A claim that is not among the keys has changed its mode: a reader that is a writer now.
  [[nodiscard]] bool lacks_claims() const noexcept { return lacks_claims_; }

 private:
  [[nodiscard]] std::size_t blocker(std::size_t place, spi::mode mode, std::uint32_t permits,
                                    std::uint32_t max) const noexcept;

  std::vector<standing> claims_;
  std::int64_t revision_ = 0;
  bool has_latch_ = false;
  bool lacks_claims_ = false;
};

}  // namespace holdfast::etcd
