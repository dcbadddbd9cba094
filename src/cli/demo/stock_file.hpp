// The shop: a stock in a plain file, whose update is read, think, write, and nothing in it that
// would keep two buyers apart; and a file of orders, a line each.
#pragma once

#include <cstdint>
#include <string>

namespace holdfast::cli {

// Any number of processes may use one folder at a time: what comes of that is the point.
class stock_file {
 public:
  explicit stock_file(const std::string& folder);

  void fill(std::int64_t items) const;
  [[nodiscard]] std::int64_t left() const;

  // Takes one item if there is one: looks, thinks, writes. `still` is asked before it writes.
  enum class sale : std::uint8_t { done, sold_out, abandoned };
  template <class Still>
  sale sell(std::uint32_t buyer, Still&& still) const {
    const std::int64_t items = left();
    if (items <= 0) return sale::sold_out;
    think();
    if (!still()) return sale::abandoned;
    fill(items - 1);
    order(buyer, items);
    return sale::done;
  }

  [[nodiscard]] std::int64_t orders() const;

 private:
  static void think() noexcept;
  void order(std::uint32_t buyer, std::int64_t item) const;

  std::string stock_;
  std::string orders_;
};

}  // namespace holdfast::cli
