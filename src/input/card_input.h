// CardInput: reads readout cards in the builder's own threads, without a network (as a Run 4 data handler does).
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
  std::vector<std::string> ids;             ///< "#2", "3b:00.0", "0233:1": one per endpoint
  std::vector<unsigned> channels = {0};     ///< of each endpoint
  std::uint64_t memory_bytes = 256U << 20;  ///< per channel
  std::uint32_t superpage_bytes = 1U << 20;
  std::uint32_t detector = 0;
  std::uint32_t connector = 0;  ///< of the first endpoint; the others count on
  std::uint32_t max_chunk_bytes = 64U << 10;
  std::uint32_t orbits_per_frame = 1;
  std::uint32_t time_frame_length = 0;  ///< CRU: orbits, written to the card; 0: as the card has it
  std::optional<std::uint16_t> trigger_elink;
  formats::BlockFamily block_family = formats::BlockFamily::trailer16;
  card::DataSource source = card::DataSource::fee;
  std::string register_map = {};  ///< FELIX: the map that cards are taken to have; empty: the one that each names
  std::string numa = "card";      ///< where readers run: see card::reader_place()
  bool start_generator = false;   ///< the card's own generator runs between start() and stop(), and is left as it was found

  /// Throws SetupError.
  static CardInputSettings from(const Parameters& parameters);
};

std::vector<Key> card_input_keys();

/// `type = "card"`. Opens the cards and owns their DMA channels. FELIX: chunks of the E-links that are enabled for its
/// channels. CRU: heartbeat or time frames of the enabled links. Each worker walks the memory of the channels that its links come by, and takes its own
/// links; memory goes back at the slowest worker's position, so a readout that does not keep up fills it, and the card is busy.
/// stop() first stops the card's own generator if it was to start it, takes what still comes until 200 ms of looking have
/// brought nothing, and then stops DMA. At the latest it does so after a minute - named by "cards_cut_off" - or, where the
/// generator is not its own and data never end, after two seconds.
class CardInput final : public DataInput {
 public:
  /// Throws SetupError: no such card, a channel that has an owner, no link enabled, no memory.
  explicit CardInput(const CardInputSettings& settings);
  ~CardInput() override;

  std::span<const Fid> links() const override { return links_.all(); }
  std::vector<std::size_t> link_groups() const override;
  std::unique_ptr<DataStream> open(std::span<const Fid> links) override;
  std::unique_ptr<DataStream> open_trigger_list() override;
  void start() override;
  void stop() override;

  /// "sent" (chunks read from the cards), "card_bytes", "cards_cut_off", "card_lost_packets" (blocks, pages that the cards say they have lost themselves;
  /// when they have stopped), "card_links_down" (fibres that were down during the run), and what the decoders found wrong, by name.
  std::vector<NamedCounter> counters() const override;

  /// The first card that failed.
  std::string failure() const override;

 private:
  /// A DMA channel of an endpoint.
  struct Channel {
    std::string id;  ///< of the card; of several channels with the number of this one
    unsigned number = 0;
    bool first_of_card = true;  ///< what is done to the card is done by this one
    bool brings_list = false;   ///< the trigger's
    card::ReaderPlace place = {};
    DmaSpanSource* source = nullptr;  // owned by spans
    std::shared_ptr<CardSpans> spans = {};
    card::CardType type = card::CardType::unknown;
    formats::BlockFormat format = {};
    bool generator_found_on = false;              // before it was started for this run
    std::vector<std::size_t> links = {};          // positions in links_
    std::vector<std::uint16_t> local_links = {};  // E-link or RDH link number of each
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
