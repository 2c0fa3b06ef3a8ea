#include "bench/card/data_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "card_registers/cru.h"
#include "card_registers/felix.h"
#include "formats/block.h"
#include "formats/provable.h"

namespace rodeo::bench {

using namespace card;

namespace {

namespace cru = card_registers::cru;
namespace felix = card_registers::felix;
using formats::PagePattern;

class PageCheck final : public DataCheck {
 public:
  /// `detect`: the links of an emulated card may send either payload; the first page shows which.
  /// `links` and `superpages`: as in DataCheckSettings.
  PageCheck(Card& card, const formats::SuperpageCheckSettings& settings, bool detect, std::uint32_t links,
            std::size_t superpages)
      : card_(card),
        settings_(settings),
        detect_(detect),
        links_(links),
        superpages_(superpages),
        check_(std::in_place, settings) {}
  void check(const Superpage& superpage, std::span<const std::byte> bytes) override {
    if (detect_ && bytes.size() >= formats::kRdhBytes + 8) detect(bytes.subspan(formats::kRdhBytes, 8));
    const auto link = static_cast<std::uint8_t>(superpage.link < 0 ? 0 : superpage.link);
    check_->check(link, bytes);
    if (link < brought_.size()) ++brought_[link];
  }
  void finish() override {
    check_->finish();
    for (const std::uint32_t link : check_->silent_links())
      silent_links_.push_back(fmt::format("silent_links: link {} ended, the others went on", link));
    if (!settings_.heartbeat_frames) return;
    find_late_links();
    find_absent_links();
  }
  std::uint64_t errors() const override { return check_->errors() + silent_links_.size() + late_links_.size(); }
  std::vector<NamedCount> counts() const override {
    std::vector<NamedCount> list{{"pages", check_->count(formats::SuperpageCounter::pages)}};
    for (std::size_t i = 0; i < formats::kSuperpageCounters; ++i) {
      const auto counter = static_cast<formats::SuperpageCounter>(i);
      const std::uint64_t count = check_->count(counter);
      if (formats::is_error(counter) && count != 0)
        list.push_back({std::string(formats::kSuperpageCounterInfo[i].name), count});
    }
    if (!late_links_.empty()) list.push_back({"first_orbit", late_links_.size()});
    if (!silent_links_.empty()) list.push_back({"silent_links", silent_links_.size()});
    return list;
  }
  std::vector<std::string> findings() const override {
    std::vector<std::string> list = late_links_;
    list.insert(list.end(), silent_links_.begin(), silent_links_.end());
    for (const auto& finding : check_->findings()) list.push_back(formats::describe(finding));
    return list;
  }

 private:
  void detect(std::span<const std::byte> begin) {
    detect_ = false;
    // The data generator's first two words are equal; provable payload has a mark.
    const bool counts = std::equal(begin.begin(), begin.begin() + 4, begin.begin() + 4);
    settings_.pattern = !counts && formats::Provable::is_mark(begin[7]) ? PagePattern::provable : PagePattern::ddg;
    check_.emplace(settings_);
  }

  /// Finds pages missing before a link's first page. No earlier page shows them, but the card reports the first orbit of the
  /// run.
  void find_late_links() {
    for (unsigned link = 0; link < cru::kDmaLinks; ++link) {
      const auto first = check_->first_orbit(static_cast<std::uint8_t>(link));
      const auto wanted =
          card_.read(cru::reg("datapath_link_first_orbit"), cru::datapath_index(card_.endpoint_or_zero(), link));
      if (first && wanted && *wanted != 0 && *first != *wanted)
        late_links_.push_back(
            fmt::format("first_orbit: link {}: the run began with orbit {:#x}, its data with {:#x}", link, *wanted, *first));
    }
  }

  /// Finds links that brought no page while every link with pages brought four superpages, although each orbit has a frame
  /// of every link. In a buffer with fewer superpages than links, some links get none.
  void find_absent_links() {
    std::uint32_t links = links_;
    if (links == 0) {
      const auto enabled = card_.read(cru::reg("datapath_enable"), card_.endpoint_or_zero());
      if (!enabled)
        return silent_links_.push_back("silent_links: the enabled links cannot be read: " + enabled.error().what);
      links = *enabled;
    }
    links &= (1U << cru::kLinks) - 1;
    std::uint32_t here = 0;
    std::uint64_t fewest = UINT64_MAX;
    for (unsigned link = 0; link < cru::kDmaLinks; ++link) {
      if (!check_->first_orbit(static_cast<std::uint8_t>(link))) continue;
      here |= 1U << link;
      fewest = std::min(fewest, brought_[link]);
    }
    if (here == 0 || fewest < 4 || superpages_ < static_cast<std::size_t>(std::popcount(links))) return;
    for (unsigned link = 0; link < cru::kLinks; ++link) {
      if (((links & ~here) >> link & 1U) != 0)
        silent_links_.push_back(fmt::format("silent_links: link {} brought nothing", link));
    }
  }

  Card& card_;
  formats::SuperpageCheckSettings settings_;
  bool detect_;
  std::uint32_t links_;
  std::size_t superpages_;
  std::array<std::uint64_t, cru::kDmaLinks> brought_{};  // superpages of each link
  std::optional<formats::SuperpageCheck> check_;
  std::vector<std::string> late_links_;  // the late links as text
  std::vector<std::string> silent_links_;
};

/// The E-links of a FELIX channel, as the card reports them.
struct ChannelLinks {
  std::uint32_t block_bytes = 0;
  std::vector<std::uint16_t> elinks;
};

Result<ChannelLinks> felix_links(Card& card, unsigned channel) {
  ChannelLinks found;
  const auto block = RODEO_TRY(card.read64(felix::reg("block_bytes")));
  found.block_bytes =
      block == 0 ? formats::kBlockUnitBytes : static_cast<std::uint32_t>(std::min<std::uint64_t>(block, UINT32_MAX));
  const auto links = RODEO_TRY(card.read64(felix::reg("links")));
  for (std::uint32_t link = 0; link < std::min<std::uint64_t>(links, felix::reg("elinks_enabled").count); ++link) {
    const auto to = RODEO_TRY(card.read64(felix::reg("link_channel"), link));
    const auto enabled = RODEO_TRY(card.read64(felix::reg("elinks_enabled"), link));
    if (to != channel) continue;
    for (std::uint64_t bits = enabled; bits != 0; bits &= bits - 1)
      found.elinks.push_back(static_cast<std::uint16_t>(link << 6 | static_cast<unsigned>(std::countr_zero(bits))));
  }
  return found;
}

}  // namespace

formats::PagePattern pattern_of(const Card& card, DataSource source) {
  const bool emulated = card.found().capabilities().emulated;
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

Result<std::unique_ptr<DataCheck>> make_data_check(Card& card, unsigned channel, const DataCheckSettings& settings) {
  const PagePattern pattern = settings.pattern.value_or(pattern_of(card, settings.source));
  if (card.type() == CardType::felix) {
    auto links = RODEO_TRY(felix_links(card, channel));
    if (settings.level == CheckLevel::none)
      return make_line_check(pattern, settings.superpage_bytes, settings.superpages, links.block_bytes);
    constexpr std::uint16_t kTtcElink = 7U << 3 | 3U;  // E-link of link 0 with the trigger's own packets
    DataCheckSettings known = settings;
    known.pattern = pattern;
    return make_block_check(links.block_bytes, std::move(links.elinks), known, kTtcElink);
  }
  if (settings.level == CheckLevel::none) return make_line_check(pattern, settings.superpage_bytes, settings.superpages, 0);
  // The pattern without headers has no faster check than the full one.
  const bool headers_only = settings.level == CheckLevel::fast && pattern != PagePattern::cru_internal;
  const bool emulated = card.found().capabilities().emulated;
  const bool detect = !headers_only && !settings.pattern && emulated &&
                      (pattern == PagePattern::ddg || pattern == PagePattern::provable) && card.type() == CardType::cru;
  return std::make_unique<PageCheck>(
      card,
      formats::SuperpageCheckSettings{.pattern = headers_only ? PagePattern::unknown : pattern,
                                      .packet_counter_max = settings.packet_counter_max,
                                      .every = settings.every,
                                      .heartbeat_frames = settings.heartbeat_frames && card.type() == CardType::cru,
                                      .time_frame_orbits = settings.time_frame_orbits,
                                      .resynchronise = settings.resynchronise,
                                      .seed = settings.seed},
      detect, settings.links, settings.superpages);
}

}  // namespace rodeo::bench
