// Checks the FELIX blocks of one DMA channel: damage, flags of the card, payload, missing L1 ids, silent links.
#include <algorithm>
#include <cstring>

#include "bench/card/data_check.h"
#include "bench/card/silent_links.h"
#include "formats/block_decoder.h"
#include "formats/fid.h"
#include "formats/provable.h"

namespace rodeo::bench {

using namespace card;

namespace {

using formats::PagePattern;

struct FelixLinks {
  formats::BlockFormat format;
  std::vector<std::uint16_t> elinks;
};

/// The errors of a bench: damage on the way from the card, and chunks that the card marked as damaged.
constexpr bool is_error(formats::BlockCounter counter) { return formats::is_anomaly(counter) || formats::is_flag(counter); }

class BlockCheck final : public DataCheck {
 public:
  BlockCheck(FelixLinks links, const DataCheckSettings& settings, bool payload)
      : links_(std::move(links)),
        settings_(settings),
        provable_(settings.seed),
        payload_(payload),
        ids_(links_.elinks.size()),
        silent_(links_.elinks.size(), links_.format.block_bytes),
        link_ids_(links_.elinks.size()) {
    set_link_ids(settings.connector.value_or(0));
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
    for (std::size_t link = 0; link < ids_.size(); ++link) {
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
  /// The first block shows the type of its trailers.
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
  bool matches(std::span<const std::byte> chunk, LinkIndex link, L1Id l1id) {
    if (!provable_.matches(chunk, link_ids_[link], l1id) && (source_known_ || !find_source(chunk, link, l1id))) return false;
    source_known_ = true;
    return true;
  }
  /// The first correct chunk shows whether the links send a CRC, and, unless the settings have it, their connector. If none
  /// of the first few chunks is correct in any form, the form stays unknown.
  bool find_source(std::span<const std::byte> chunk, LinkIndex link, L1Id l1id) {
    constexpr std::uint32_t kConnectors = 256;
    if (tries_ == 0) return false;
    --tries_;
    for (const bool crc : {false, true}) {
      const formats::Provable provable(provable_.seed(), crc);
      for (std::uint32_t connector = settings_.connector.value_or(0); connector < kConnectors; ++connector) {
        if (provable.matches(chunk, link_id(link, connector), l1id)) {
          provable_ = provable;
          set_link_ids(connector);
          return true;
        }
        if (settings_.connector) break;
      }
    }
    return false;
  }
  std::uint32_t link_id(std::size_t link, std::uint32_t connector) const {
    return formats::fid_of_card_elink(settings_.detector, connector, links_.elinks[link]).default_link_id();
  }
  void set_link_ids(std::uint32_t connector) {
    for (std::size_t link = 0; link < link_ids_.size(); ++link) link_ids_[link] = link_id(link, connector);
  }

  /// Checks the payload of every chunk whose status is whole; the decoder has counted the others.
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
        if (chunk.size() < formats::Provable::kHeaderBytes || !matches(chunk, run.link, L1Id{l1id})) {
          ++wrong_payload_;
          ids_[run.link].known = false;
        } else {
          follow(ids_[run.link], l1id);
        }
      }
    }
  }

  /// L1 ids rise by one, or by the number of links that take turns: the smallest step up to now. The step across a reset, or
  /// across the wrap of a narrow counter, is not checked.
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
  DataCheckSettings settings_;
  formats::Provable provable_;
  bool source_known_ = false;
  unsigned tries_ = 16;
  bool payload_;
  LinkIndex ttc_link_ = 0xffff;
  std::vector<Ids> ids_;  // state of each link
  SilentLinks silent_;
  std::uint64_t l1id_gaps_ = 0;
  std::uint64_t silent_links_ = 0;
  std::vector<std::uint32_t> link_ids_;
  std::unique_ptr<formats::BlockDecoder> decoder_;
  std::unique_ptr<formats::DecodeBuffer> buffer_;
  std::uint64_t wrong_payload_ = 0;
  std::uint64_t no_block_ = 0;       // superpages that do not begin with a block
  std::uint64_t part_of_block_ = 0;  // superpages that end with a part of a block
};

}  // namespace

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

}  // namespace rodeo::bench
