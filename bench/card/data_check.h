// Checks the superpages of one DMA channel: all bytes, the headers, or the first and last line.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "card/card.h"
#include "card/dma/channel.h"
#include "formats/superpage_check.h"

namespace rodeo::bench {

enum class CheckLevel : std::uint8_t {
  none,  ///< first and last line of each superpage: new data, and the next counter if the pattern has one
  fast,  ///< headers, sizes, counters, time frames; no payload
  full   ///< headers and all bytes of payload
};

struct DataCheckSettings {
  CheckLevel level = CheckLevel::full;
  card::DataSource source = card::DataSource::internal;
  /// The payload after headers; nothing: the type of card and the source determine it.
  std::optional<formats::PagePattern> pattern = {};
  std::uint32_t superpage_bytes = 1U << 20;
  std::size_t superpages = 1024;  ///< number of superpages in the buffer
  std::uint32_t every = 1;
  std::uint32_t packet_counter_max = 255;
  bool heartbeat_frames = true;  ///< CRU: links send a heartbeat frame in each orbit
  std::uint32_t links = 0;       ///< CRU: bit per link that sends; 0: the links that are enabled in the card
  std::uint32_t time_frame_orbits = 256;
  bool resynchronise = true;
  std::uint64_t seed = 1;                       ///< seed of provable payload
  std::uint32_t detector = 0;                   ///< FELIX: detector id; the payload depends on it
  std::optional<std::uint32_t> connector = {};  ///< connector of this endpoint's links; nothing: taken from the first chunk
};

struct NamedCount {
  std::string name;
  std::uint64_t count = 0;
};

/// For one thread. Superpages may contain any bytes.
class DataCheck {
 public:
  virtual ~DataCheck() = default;
  virtual void check(const card::Superpage& superpage, std::span<const std::byte> bytes) = 0;
  /// Call this after the last superpage: silent links and links that began late are errors, too.
  virtual void finish() {}
  virtual std::uint64_t errors() const = 0;
  /// The errors that occurred, by name, and the pages, blocks or chunks checked.
  virtual std::vector<NamedCount> counts() const = 0;
  /// The first errors as text.
  virtual std::vector<std::string> findings() const { return {}; }
};

/// Checks the first and last line of each superpage. `block_bytes` 0: the data have no blocks.
std::unique_ptr<DataCheck> make_line_check(formats::PagePattern pattern, std::uint32_t superpage_bytes,
                                           std::size_t superpages, std::uint32_t block_bytes);

/// Checks FELIX blocks of any family from these E-links (11-bit numbers of the card). Checks the payload if the level is
/// full and the pattern provable, but not that of `ttc_elink`, which carries the trigger's own packets.
std::unique_ptr<DataCheck> make_block_check(std::uint32_t block_bytes, std::vector<std::uint16_t> elinks,
                                            const DataCheckSettings& settings, std::optional<std::uint16_t> ttc_elink = {});

/// Makes the check for a channel. Reads links and block size from the card; errors are those of the card.
Result<std::unique_ptr<DataCheck>> make_data_check(card::Card& card, unsigned channel, const DataCheckSettings& settings);

/// The pattern that a source of a card writes, if known: the links of an emulated card carry provable payload.
formats::PagePattern pattern_of(const card::Card& card, card::DataSource source);
/// "auto", "ddg", "words", "internal", "provable", "unknown"; nothing for any other name. "auto" gives an empty inner value.
std::optional<std::optional<formats::PagePattern>> pattern_named(std::string_view name);

}  // namespace rodeo::bench
