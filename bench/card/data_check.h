// Looks at the superpages of one DMA channel: at everything in them, at headers, or at their first and last line.
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
  none,  ///< first and last line of each superpage: new data, and the pattern's next counter where there is one
  fast,  ///< headers, sizes, counters, time frames; no payload
  full   ///< and every byte of payload
};

struct DataCheckSettings {
  CheckLevel level = CheckLevel::full;
  card::DataSource source = card::DataSource::internal;
  /// What stands behind headers; nothing: what the type of card and the source say.
  std::optional<formats::PagePattern> pattern = {};
  std::uint32_t superpage_bytes = 1U << 20;
  std::size_t superpages = 1024;  ///< of the buffer
  std::uint32_t every = 1;
  std::uint32_t packet_counter_max = 255;
  bool heartbeat_frames = true;  ///< CRU: links send one each orbit
  std::uint32_t time_frame_orbits = 256;
  bool resynchronise = true;
  std::uint64_t seed = 1;                       ///< of provable payload
  std::uint32_t detector = 0;                   ///< FELIX: ids from which the payload follows
  std::optional<std::uint32_t> connector = {};  ///< of the links of this endpoint; nothing: what the first chunk says
};

struct NamedCount {
  std::string name;
  std::uint64_t count = 0;
};

/// One thread. Superpages may hold any bytes.
class DataCheck {
 public:
  virtual ~DataCheck() = default;
  virtual void check(const card::Superpage& superpage, std::span<const std::byte> bytes) = 0;
  /// After the last one: links that have fallen silent, or began late, are errors, too.
  virtual void finish() {}
  virtual std::uint64_t errors() const = 0;
  /// Errors by name (those that occurred), and pages, blocks or chunks seen.
  virtual std::vector<NamedCount> counts() const = 0;
  /// The first errors in words.
  virtual std::vector<std::string> findings() const { return {}; }
};

/// The first and last line of each superpage. `block_bytes` 0: no blocks.
std::unique_ptr<DataCheck> make_line_check(formats::PagePattern pattern, std::uint32_t superpage_bytes,
                                           std::size_t superpages, std::uint32_t block_bytes);

/// FELIX blocks of these E-links (11-bit numbers of the card), whatever their block family. Payload is looked at if the
/// level is full and the pattern provable, except that of `ttc_elink`, which carries the trigger's own packets.
std::unique_ptr<DataCheck> make_block_check(std::uint32_t block_bytes, std::vector<std::uint16_t> elinks,
                                            const DataCheckSettings& settings, std::optional<std::uint16_t> ttc_elink = {});

/// Errors: those of the card, which is asked for its links and block size.
Result<std::unique_ptr<DataCheck>> make_data_check(card::Card& card, unsigned channel, const DataCheckSettings& settings);

/// The pattern that a source of a card writes, as far as that is known: an emulated card's links carry provable payload.
formats::PagePattern pattern_of(const card::Card& card, card::DataSource source);
/// "auto", "ddg", "words", "internal", "provable", "unknown"; nothing for anything else. "auto" gives an empty inner value.
std::optional<std::optional<formats::PagePattern>> pattern_named(std::string_view name);

}  // namespace rodeo::bench
