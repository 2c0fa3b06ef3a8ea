#include "card/bench/data_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "card_registers/felix.h"
#include "formats/block_decoder.h"
#include "formats/fid.h"
#include "formats/provable.h"

namespace rodeo::card {

namespace {

namespace felix = card_registers::felix;
using formats::PagePattern;

constexpr std::size_t kLine = 64;

/// Links that brought nothing in the last eighth of the data, nor for four rounds of what each has at a time.
class SilentLinks {
 public:
  SilentLinks(std::size_t links, std::uint64_t bytes_at_a_time)
      : last_(links), round_(links * bytes_at_a_time), known_(links) {}

  void expect(std::size_t link) { known_[link] = true; }
  void has_data(std::size_t link) {
    last_[link] = bytes_;
    known_[link] = true;
  }
  void passed(std::size_t bytes) { bytes_ += bytes; }
  std::uint64_t count() const {
    const std::uint64_t longest = std::max(bytes_ / 8, 4 * round_);
    std::uint64_t silent = 0;
    for (std::size_t link = 0; link < last_.size(); ++link) silent += known_[link] && bytes_ - last_[link] > longest ? 1 : 0;
    return silent;
  }

 private:
  std::vector<std::uint64_t> last_;
  std::uint64_t round_;
  std::vector<bool> known_;
  std::uint64_t bytes_ = 0;
};

/// Two lines a superpage. A counting pattern without headers is checked exactly; whatever else is there must differ from
/// what the same lines held when the superpage came the last time.
class LineCheck final : public DataCheck {
 public:
  LineCheck(PagePattern pattern, std::uint32_t superpage_bytes, std::size_t superpages, std::uint32_t block_bytes)
      : pattern_(pattern), superpage_bytes_(superpage_bytes), block_bytes_(block_bytes), seen_(superpages + 1) {}

  void check(const Superpage& superpage, std::span<const std::byte> bytes) override {
    if (bytes.size() < kLine) return;
    if (pattern_ == PagePattern::cru_internal) return check_counter(superpage, bytes);
    const std::size_t place = superpage.offset / superpage_bytes_;
    const bool blocks = block_bytes_ != 0 && bytes.size() % block_bytes_ == 0;
    // The last line: of the last block where there are blocks (what follows in it may be padding), else of the superpage.
    const std::span<const std::byte> last = bytes.last(blocks ? block_bytes_ : kLine).first(kLine);
    // The sequence numbers of blocks go round, so only of provable data is it known that no two of them begin alike.
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
  std::vector<Lines> seen_;  // in each superpage, the last time
  std::array<std::uint32_t, 256> next_{};
  std::array<bool, 256> known_{};
  std::uint64_t stale_ = 0;
  std::uint64_t wrong_first_ = 0;
  std::uint64_t bad_last_ = 0;
  std::uint64_t sink_ = 0;
};

class PageCheck final : public DataCheck {
 public:
  /// `detect`: an emulated card's links may send either payload, as its configuration says; the first page tells.
  PageCheck(const formats::SuperpageCheckSettings& settings, bool detect, std::uint32_t superpage_bytes)
      : settings_(settings), detect_(detect), check_(std::in_place, settings), silent_(kLinks, superpage_bytes) {}
  void check(const Superpage& superpage, std::span<const std::byte> bytes) override {
    if (detect_ && bytes.size() >= formats::kRdhBytes + 8) detect(bytes.subspan(formats::kRdhBytes, 8));
    const auto link = static_cast<std::uint8_t>(superpage.link < 0 ? 0 : superpage.link);
    check_->check(link, bytes);
    silent_.passed(bytes.size());
    silent_.has_data(link % kLinks);
  }
  void finish() override { silent_links_ = silent_.count(); }
  std::uint64_t errors() const override { return check_->errors() + silent_links_; }
  std::vector<NamedCount> counts() const override {
    std::vector<NamedCount> list{{"pages", check_->counters().read(formats::SuperpageCounter::pages)}};
    for (std::size_t i = 0; i < formats::kSuperpageCounters; ++i) {
      const auto counter = static_cast<formats::SuperpageCounter>(i);
      const std::uint64_t count = check_->counters().read(counter);
      if (formats::is_error(counter) && count != 0)
        list.push_back({std::string(formats::kSuperpageCounterInfo[i].name), count});
    }
    if (silent_links_ != 0) list.push_back({"silent_links", silent_links_});
    return list;
  }
  std::vector<std::string> findings() const override {
    std::vector<std::string> list;
    for (const auto& finding : check_->findings()) list.push_back(formats::describe(finding));
    return list;
  }

 private:
  static constexpr std::size_t kLinks = 32;

  void detect(std::span<const std::byte> begin) {
    detect_ = false;
    // Data generator: its first two words are equal; provable payload: a mark.
    const bool counts = std::equal(begin.begin(), begin.begin() + 4, begin.begin() + 4);
    settings_.pattern =
        !counts && begin[7] == std::byte{formats::Provable::kMark} ? PagePattern::provable : PagePattern::ddg;
    check_.emplace(settings_);
  }

  formats::SuperpageCheckSettings settings_;
  bool detect_;
  std::optional<formats::SuperpageCheck> check_;
  SilentLinks silent_;
  std::uint64_t silent_links_ = 0;
};

struct FelixLinks {
  formats::BlockFormat format;
  std::vector<std::uint16_t> elinks;
};

/// What a bench calls an error: damage on the way here, and chunks that the card itself marked as damaged.
constexpr bool is_error(formats::BlockCounter counter) {
  using enum formats::BlockCounter;
  return formats::is_anomaly(counter) || counter == given_up || counter == firmware_truncated ||
         counter == firmware_malformed || counter == firmware_crc;
}

class BlockCheck final : public DataCheck {
 public:
  BlockCheck(FelixLinks links, const DataCheckSettings& settings, bool payload)
      : links_(std::move(links)),
        provable_(settings.seed),
        payload_(payload),
        ids_(links_.elinks.size()),
        silent_(links_.elinks.size(), links_.format.block_bytes) {
    for (const std::uint16_t elink : links_.elinks) {
      link_ids_.push_back(
          formats::fid_of_card_elink(settings.detector, settings.connector.value_or(0), elink).default_link_id());
    }
  }

  void check(const Superpage&, std::span<const std::byte> bytes) override {
    if (!decoder_ && !find_format(bytes)) return;
    while (!bytes.empty()) {
      buffer_->clear();
      const std::size_t taken = decoder_->decode(bytes, *buffer_);
      if (taken == 0) {
        ++part_of_block_;
        break;
      }
      silent_.passed(taken);
      if (payload_) prove();
      bytes = bytes.subspan(taken);
    }
  }
  void finish() override {
    if (!payload_ || !decoder_) return;
    for (LinkIndex link = 0; link < ids_.size(); ++link) {
      if (link != ttc_link_) silent_.expect(link);
    }
    silent_links_ = silent_.count();
  }
  std::uint64_t errors() const override {
    std::uint64_t sum = wrong_payload_ + no_block_ + part_of_block_ + l1id_gaps_ + silent_links_;
    for (std::size_t i = 0; decoder_ && i < formats::kBlockCounters; ++i) {
      const auto counter = static_cast<formats::BlockCounter>(i);
      if (is_error(counter)) sum += decoder_->counters().read(counter);
    }
    return sum;
  }
  std::vector<NamedCount> counts() const override {
    std::vector<NamedCount> list;
    for (std::size_t i = 0; decoder_ && i < formats::kBlockCounters; ++i) {
      const auto counter = static_cast<formats::BlockCounter>(i);
      const std::uint64_t count = decoder_->counters().read(counter);
      const bool shown = counter == formats::BlockCounter::blocks || counter == formats::BlockCounter::chunks;
      if (shown || (is_error(counter) && count != 0))
        list.push_back({std::string(formats::kBlockCounterInfo[i].name), count});
    }
    if (no_block_ != 0) list.push_back({"no_block", no_block_});
    if (part_of_block_ != 0) list.push_back({"part_of_block", part_of_block_});
    if (wrong_payload_ != 0) list.push_back({"payload", wrong_payload_});
    if (l1id_gaps_ != 0) list.push_back({"l1id_gaps", l1id_gaps_});
    if (silent_links_ != 0) list.push_back({"silent_links", silent_links_});
    return list;
  }

 private:
  /// The first block says which trailers its kind has.
  bool find_format(std::span<const std::byte> bytes) {
    if (bytes.size() < 4) return false;
    std::uint32_t header = 0;
    std::memcpy(&header, bytes.data(), sizeof header);
    for (const auto family :
         {formats::BlockFamily::trailer16, formats::BlockFamily::trailer32, formats::BlockFamily::phase2}) {
      formats::BlockFormat format = links_.format;
      format.family = family;
      if (!format.valid() || format.marker() != header >> 16) continue;
      decoder_ = std::make_unique<formats::BlockDecoder>(
          formats::BlockDecoder::Options{.format = format, .max_chunk_bytes = 1U << 20}, links_.elinks);
      buffer_ = std::make_unique<formats::DecodeBuffer>(decoder_->capacity_for(64));
      return true;
    }
    ++no_block_;
    return false;
  }
  /// The first chunk that is right with a CRC or without says which the links send.
  bool matches(std::span<const std::byte> chunk, std::uint32_t link_id, L1Id l1id) {
    if (provable_.matches(chunk, link_id, l1id)) {
      crc_known_ = true;
      return true;
    }
    if (crc_known_) return false;
    const formats::Provable with_crc(provable_.seed(), true);
    if (!with_crc.matches(chunk, link_id, l1id)) return false;
    provable_ = with_crc;
    return crc_known_ = true;
  }

  /// The payload of every chunk that is said to be whole; the decoder has counted the others.
  void prove() {
    constexpr std::uint8_t kCounted = chunk_status::kFirmwareTruncated | chunk_status::kSoftwareTruncated |
                                      chunk_status::kFirmwareMalformed | chunk_status::kSoftwareMalformed |
                                      chunk_status::kFirmwareCrc;
    for (const ChunkRun& run : buffer_->runs()) {
      if (run.link == ttc_link_) continue;
      if (run.count > 0) silent_.has_data(run.link);
      for (std::uint32_t i = 0; i < run.count; ++i) {
        if ((run.chunk_status(i) & kCounted) != 0) {
          ids_[run.link].known = false;
          continue;
        }
        const auto chunk = run.chunk(i);
        std::uint32_t l1id = 0;
        if (chunk.size() >= sizeof l1id) std::memcpy(&l1id, chunk.data(), sizeof l1id);
        if (chunk.size() < formats::Provable::kHeaderBytes || !matches(chunk, link_ids_[run.link], L1Id{l1id})) {
          ++wrong_payload_;
          ids_[run.link].known = false;
        } else {
          follow(ids_[run.link], l1id);
        }
      }
    }
  }

  /// L1 ids rise by one, or by the number of links that take turns: the smallest step that there was. Over a reset, or the wrap of
  /// a narrow counter, nothing can be said.
  struct Ids {
    std::uint32_t last = 0;
    std::uint32_t step = ~0U;
    bool known = false;
  };
  void follow(Ids& ids, std::uint32_t l1id) {
    const std::uint32_t step = l1id - ids.last;
    if (ids.known && l1id > ids.last && (l1id ^ ids.last) >> 24 == 0 && step != ids.step) {
      if (ids.step == ~0U || step < ids.step) {
        ids.step = step;
      } else {
        ++l1id_gaps_;
      }
    }
    ids.last = l1id;
    ids.known = true;
  }

 public:
  void skip_payload_of(LinkIndex link) { ttc_link_ = link; }

 private:
  FelixLinks links_;
  formats::Provable provable_;
  bool crc_known_ = false;
  bool payload_;
  LinkIndex ttc_link_ = 0xffff;
  std::vector<Ids> ids_;  // by link
  SilentLinks silent_;
  std::uint64_t l1id_gaps_ = 0;
  std::uint64_t silent_links_ = 0;
  std::vector<std::uint32_t> link_ids_;
  std::unique_ptr<formats::BlockDecoder> decoder_;
  std::unique_ptr<formats::DecodeBuffer> buffer_;
  std::uint64_t wrong_payload_ = 0;
  std::uint64_t no_block_ = 0;       // superpages that begin with none
  std::uint64_t part_of_block_ = 0;  // superpages that end with one
};

Result<FelixLinks> felix_links(Card& card, unsigned channel) {
  FelixLinks found;
  const auto block = card.read64(felix::reg("block_bytes"));
  if (!block) return std::unexpected(block.error());
  found.format.block_bytes =
      *block == 0 ? formats::kBlockUnitBytes : static_cast<std::uint32_t>(std::min<std::uint64_t>(*block, UINT32_MAX));
  const auto links = card.read64(felix::reg("links"));
  if (!links) return std::unexpected(links.error());
  for (std::uint32_t link = 0; link < std::min<std::uint64_t>(*links, felix::reg("elinks_enabled").count); ++link) {
    const auto to = card.read64(felix::reg("link_channel"), link);
    const auto enabled = card.read64(felix::reg("elinks_enabled"), link);
    if (!to) return std::unexpected(to.error());
    if (!enabled) return std::unexpected(enabled.error());
    if (*to != channel) continue;
    for (std::uint64_t bits = *enabled; bits != 0; bits &= bits - 1)
      found.elinks.push_back(static_cast<std::uint16_t>(link << 6 | static_cast<unsigned>(std::countr_zero(bits))));
  }
  return found;
}

}  // namespace

formats::PagePattern pattern_of(const Card& card, DataSource source) {
  const bool emulated = card.found().back_end == pci::BackEnd::vfio_user;
  if (card.type() == CardType::cru) {
    if (source == DataSource::internal) return PagePattern::cru_internal;
    if (source == DataSource::ddg) return PagePattern::ddg;
  }
  if (card.type() == CardType::crorc)
    return source != DataSource::fee || emulated ? PagePattern::words : PagePattern::unknown;
  return emulated ? PagePattern::provable : PagePattern::unknown;
}

std::optional<std::optional<formats::PagePattern>> pattern_named(std::string_view name) {
  if (name == "auto") return std::optional<PagePattern>{};
  if (name == "ddg") return PagePattern::ddg;
  if (name == "words") return PagePattern::words;
  if (name == "internal") return PagePattern::cru_internal;
  if (name == "provable") return PagePattern::provable;
  if (name == "unknown") return PagePattern::unknown;
  return std::nullopt;
}

std::unique_ptr<DataCheck> make_line_check(PagePattern pattern, std::uint32_t superpage_bytes, std::size_t superpages,
                                           std::uint32_t block_bytes) {
  return std::make_unique<LineCheck>(pattern, superpage_bytes, superpages, block_bytes);
}

std::unique_ptr<DataCheck> make_block_check(std::uint32_t block_bytes, std::vector<std::uint16_t> elinks,
                                            const DataCheckSettings& settings, std::optional<std::uint16_t> ttc_elink) {
  FelixLinks links{.format = {.block_bytes = block_bytes}, .elinks = std::move(elinks)};
  const auto ttc = ttc_elink ? std::ranges::find(links.elinks, *ttc_elink) : links.elinks.end();
  const auto ttc_index = static_cast<LinkIndex>(ttc == links.elinks.end() ? 0xffff : ttc - links.elinks.begin());
  auto check = std::make_unique<BlockCheck>(std::move(links), settings,
                                            settings.level == CheckLevel::full && settings.pattern == PagePattern::provable);
  check->skip_payload_of(ttc_index);
  return check;
}

Result<std::unique_ptr<DataCheck>> make_data_check(Card& card, unsigned channel, const DataCheckSettings& settings) {
  const PagePattern pattern = settings.pattern.value_or(pattern_of(card, settings.source));
  if (card.type() == CardType::felix) {
    auto links = felix_links(card, channel);
    if (!links) return std::unexpected(links.error());
    if (settings.level == CheckLevel::none)
      return make_line_check(pattern, settings.superpage_bytes, settings.superpages, links->format.block_bytes);
    constexpr std::uint16_t kTtcElink = 7U << 3 | 3U;  // of link 0: carries the trigger's own packets
    DataCheckSettings known = settings;
    known.pattern = pattern;
    if (!known.connector) known.connector = card.endpoint_or_zero();
    return make_block_check(links->format.block_bytes, std::move(links->elinks), known, kTtcElink);
  }
  if (settings.level == CheckLevel::none) return make_line_check(pattern, settings.superpage_bytes, settings.superpages, 0);
  // Without headers there is nothing that would be faster to check than the pattern itself.
  const bool headers_only = settings.level == CheckLevel::fast && pattern != PagePattern::cru_internal;
  const bool emulated = card.found().back_end == pci::BackEnd::vfio_user;
  const bool detect = !headers_only && !settings.pattern && emulated &&
                      (pattern == PagePattern::ddg || pattern == PagePattern::provable) && card.type() == CardType::cru;
  return std::make_unique<PageCheck>(
      formats::SuperpageCheckSettings{.pattern = headers_only ? PagePattern::unknown : pattern,
                                      .packet_counter_max = settings.packet_counter_max,
                                      .every = settings.every,
                                      .time_frame_orbits = settings.time_frame_orbits,
                                      .resynchronise = settings.resynchronise,
                                      .seed = settings.seed},
      detect, settings.superpage_bytes);
}

}  // namespace rodeo::card
