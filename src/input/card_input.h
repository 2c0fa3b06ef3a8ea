// CardInput: reads readout cards in the builder's own threads, without a network (like a Run 4 data handler).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/block.h"
#include "input/card_stream.h"
#include "input/dma_span_source.h"
#include "input/link_outages.h"
#include "input/offered_links.h"
#include "rodeo/input.h"
#include "rodeo/plugin.h"

namespace rodeo::input {

struct CardInputSettings {
  std::vector<std::string> ids;             ///< "#2", "3b:00.0", "0233:1": one id for each endpoint
  std::vector<unsigned> channels = {0};     ///< DMA channels that are read, the same for each endpoint
  std::uint64_t memory_bytes = 256U << 20;  ///< memory of each channel
  std::uint32_t superpage_bytes = 1U << 20;
  std::uint32_t detector = 0;
  std::uint32_t connector = 0;  ///< connector id of the first endpoint; the next endpoints have the next numbers
  std::uint32_t max_chunk_bytes = 64U << 10;
  std::uint32_t orbits_per_frame = 1;
  std::uint32_t time_frame_length = 0;  ///< CRU: orbits, written to the card; 0: the card keeps its own value
  std::optional<std::uint16_t> trigger_elink;
  formats::BlockFamily block_family = formats::BlockFamily::trailer16;
  card::DataSource source = card::DataSource::fee;
  std::string register_map = {};  ///< FELIX: register map of the cards; empty: the map that each card names
  std::string numa = "card";      ///< place of reader threads: see card::reader_place()
  bool start_generator = false;   ///< run the card's own generator between start() and stop() only

  /// Reads the settings. Throws SetupError.
  static CardInputSettings from(const Parameters& parameters);
};

std::vector<Key> card_input_keys();

/// `type = "card"`. Opens the cards and owns their DMA channels. FELIX: chunks of the E-links that are enabled for its
/// channels. CRU: heartbeat or time frames of the enabled links. Each worker walks the memory of the channels that carry its
/// links, and takes these links. Memory returns to the card at the slowest worker's position. A readout that is too slow
/// lets the memory fill, and the card is busy. stop() first stops the card's generator if the input started it. Then it
/// reads until 200 ms of polling have brought nothing, and stops DMA. After a minute the input stops DMA anyway (counted as
/// "cards_cut_off"); if the generator is not the input's and the data never end, after two seconds.
class CardInput final : public DataInput {
 public:
  /// Throws SetupError: no such card, a channel with another owner, no enabled link, no memory.
  explicit CardInput(const CardInputSettings& settings);
  ~CardInput() override;

  std::span<const Fid> links() const override { return links_.all(); }
  std::vector<std::size_t> link_groups() const override;
  std::unique_ptr<DataStream> open(std::span<const Fid> links) override;
  std::unique_ptr<DataStream> open_trigger_list() override;
  void start() override;
  void stop() override;

  /// "sent" (chunks read from the cards), "card_bytes", "cards_cut_off", "card_lost_packets" (blocks or pages that the
  /// stopped cards report as lost), "cards_silent", "card_links_down" (fibres that were down during the run), and the
  /// anomalies that the decoders found, by name.
  std::vector<NamedCounter> counters() const override;

  /// The failure of the first card that failed; empty if none has.
  std::string failure() const override;

 private:
  /// A DMA channel of an endpoint.
  struct Channel {
    std::string id;  ///< id of the card, plus the channel's number if several are read
    unsigned number = 0;
    bool first_of_card = true;  ///< this channel does the work that is done once per card
    bool brings_list = false;   ///< the channel carries the trigger's list
    card::ReaderPlace place = {};
    DmaSpanSource* source = nullptr;  // owned by spans
    std::shared_ptr<CardSpans> spans = {};
    card::CardType type = card::CardType::unknown;
    formats::BlockFormat format = {};
    bool generator_found_on = false;              // the generator was on before this run
    std::vector<std::size_t> links = {};          // the channel's links as positions in links_
    std::vector<std::uint16_t> local_links = {};  // E-link or RDH link number of each link
    std::unique_ptr<LinkOutages> outages = std::make_unique<LinkOutages>();
  };

  void name_silent_cards();
  void add_endpoint(const std::string& id, std::uint32_t connector);
  void add_channel(const std::shared_ptr<card::Card>& card, Channel channel, std::uint32_t connector);
  void find_felix_links(Channel& channel, card::Card& card, std::uint32_t connector);
  void find_cru_links(Channel& channel, card::Card& card, std::uint32_t connector);
  void add_link(Channel& channel, std::uint16_t local, Fid fid);
  std::unique_ptr<SpanDecoder> decoder(const Channel& channel, std::span<const std::uint16_t> local) const;
  Result<bool> generator_is_on(Channel& channel);
  Result<void> set_generator(Channel& channel, bool on);

  CardInputSettings settings_;
  std::vector<Channel> channels_;
  OfferedLinks links_;
  std::vector<std::unique_ptr<CardStream>> streams_;
  std::vector<std::unique_ptr<CardStream>> lists_;
  bool started_ = false;
  bool stopped_ = false;
  std::atomic<std::size_t> silent_cards_{0};
};

}  // namespace rodeo::input
