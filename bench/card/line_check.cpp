// Checks the first and last line of each superpage: they must be new, or continue the pattern.
#include <array>
#include <cstring>

#include "bench/card/data_check.h"

namespace rodeo::bench {

using namespace card;

namespace {

using formats::PagePattern;

constexpr std::size_t kLine = 64;

/// Checks two lines a superpage. A counting pattern without headers is checked exactly; other data must differ from the
/// same lines at the last use of the superpage.
class LineCheck final : public DataCheck {
 public:
  LineCheck(PagePattern pattern, std::uint32_t superpage_bytes, std::size_t superpages, std::uint32_t block_bytes)
      : pattern_(pattern), superpage_bytes_(superpage_bytes), block_bytes_(block_bytes), seen_(superpages + 1) {}

  void check(const Superpage& superpage, std::span<const std::byte> bytes) override {
    if (bytes.size() < kLine) return;
    if (pattern_ == PagePattern::cru_internal) return check_counter(superpage, bytes);
    const std::size_t place = superpage.offset / superpage_bytes_;
    const bool blocks = block_bytes_ != 0 && bytes.size() % block_bytes_ == 0;
    // With blocks, the "last" line is the first of the last block (padding may follow); else it is the end of the superpage.
    const std::span<const std::byte> last = bytes.last(blocks ? block_bytes_ : kLine).first(kLine);
    // The sequence numbers of blocks wrap, so only provable data are certain to begin differently each time.
    if (place < seen_.size() && (!blocks || pattern_ == PagePattern::provable)) {
      Lines now{};
      std::memcpy(now.first.data(), bytes.data(), kLine);
      if (blocks) std::memcpy(now.last.data(), last.data(), kLine);
      if (seen_[place].first == now.first || (blocks && seen_[place].last == now.last)) ++stale_;
      seen_[place] = now;
    }
    if (blocks) {
      std::uint32_t header = 0;
      std::memcpy(&header, last.data(), sizeof header);
      const std::uint32_t marker = header >> 16;
      if (marker != 0xabcd && marker != 0xabce && (marker & 0xff) != 0xce) ++bad_last_;
    } else {
      std::uint64_t word = 0;
      std::memcpy(&word, last.data(), sizeof word);
      sink_ ^= word;
    }
  }
  std::uint64_t errors() const override { return stale_ + bad_last_ + wrong_first_; }
  std::vector<NamedCount> counts() const override {
    std::vector<NamedCount> list;
    if (stale_ != 0) list.push_back({"stale", stale_});
    if (wrong_first_ != 0) list.push_back({"wrong_first_line", wrong_first_});
    if (bad_last_ != 0) list.push_back({"wrong_last_line", bad_last_});
    return list;
  }

 private:
  using Line = std::array<std::uint64_t, kLine / 8>;
  struct Lines {
    Line first{};
    Line last{};
  };

  void check_counter(const Superpage& superpage, std::span<const std::byte> bytes) {
    const std::size_t link = superpage.link < 0 ? 0 : static_cast<std::size_t>(superpage.link) % next_.size();
    std::uint32_t first = 0;
    std::memcpy(&first, bytes.data(), sizeof first);
    if (known_[link] && first != next_[link]) ++wrong_first_;
    if (!formats::cru_internal_matches(bytes.first(kLine), first)) ++wrong_first_;
    const auto lines = static_cast<std::uint32_t>(bytes.size() / 32);
    if (!formats::cru_internal_matches(bytes.subspan(bytes.size() / 32 * 32 - kLine, kLine), first + lines - 2)) ++bad_last_;
    next_[link] = first + lines;
    known_[link] = true;
  }

  PagePattern pattern_;
  std::uint32_t superpage_bytes_;
  std::uint32_t block_bytes_;
  std::vector<Lines> seen_;  // the lines of each superpage at its last use
  std::array<std::uint32_t, 256> next_{};
  std::array<bool, 256> known_{};
  std::uint64_t stale_ = 0;
  std::uint64_t wrong_first_ = 0;
  std::uint64_t bad_last_ = 0;
  std::uint64_t sink_ = 0;
};

}  // namespace

std::unique_ptr<DataCheck> make_line_check(PagePattern pattern, std::uint32_t superpage_bytes, std::size_t superpages,
                                           std::uint32_t block_bytes) {
  return std::make_unique<LineCheck>(pattern, superpage_bytes, superpages, block_bytes);
}

}  // namespace rodeo::bench
