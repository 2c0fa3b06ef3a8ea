#include "input/card_input.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/named_counters.h"
#include "base/sentence.h"
#include "base/units.h"
#include "card/dma/data_taking.h"
#include "card/enumeration.h"
#include "card/numa.h"
#include "card_registers/cru.h"
#include "card_registers/felix.h"
#include "formats/fid.h"
#include "input/paged_stream.h"
#include "rodeo/settings.h"

namespace rodeo::input {
namespace {

namespace felix = card_registers::felix;
namespace cru = card_registers::cru;

constexpr std::uint64_t kQuietNs = 200'000'000;
constexpr std::uint64_t kSilentNs = 1'000'000'000;
constexpr std::uint64_t kLongestStopNs = 2'000'000'000;    // limit for a card whose generator the input may not stop
constexpr std::uint64_t kLongestDrainNs = 60'000'000'000;  // limit for a card whose generator the input has stopped

[[noreturn]] void fail(Error error) { throw SetupError(std::move(error)); }

template <typename T>
T need(Result<T> result, std::string_view doing) {
  if (!result) fail(result.error().within(doing));
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace

CardInput::CardInput(const CardInputSettings& settings) : settings_(settings) {
  if (settings.ids.empty()) {
    fail({"readout.no_cards", "the card input names no card", "readout.input.cards",
          "name at least one, for example cards = [\"#0\"]; `rodeo card list` shows them"});
  }
  std::uint32_t connector = settings.connector;
  for (const std::string& id : settings.ids) add_endpoint(id, connector++);
}

/// Switches generators on again that were on before the run: the next reader may need them.
CardInput::~CardInput() {
  for (Channel& channel : channels_) {
    if (!channel.generator_found_on) continue;
    if (auto done = set_generator(channel, true); !done) base::log_warning("{}", base::in_a_line(done.error()));
  }
}

void CardInput::add_endpoint(const std::string& id, std::uint32_t connector) {
  auto entry = need(card::find_card(id), fmt::format("cannot find card {}", id));
  entry.function.register_map = card::register_map_of(settings_.register_map);
  entry.function.silence = card::pci::kRunSilence;
  const std::shared_ptr<card::Card> card = need(card::Card::open(entry.function), fmt::format("cannot open card {}", id));
  if (card->endpoint_or_zero() == 1 && settings_.ids.size() == 1 && connector == 0)
    base::log_warning(
        "{} is endpoint 1 of its card, and connector = 0 gives its links the FIDs of endpoint 0. To read endpoint 1 "
        "alone, "
        "set readout.input.connector = 1, as its front-ends have it (also those of an emulated card)",
        card->address().text());
  for (const unsigned number : settings_.channels) {
    const bool alone = settings_.channels.size() == 1;
    add_channel(card,
                {.id = alone ? id : fmt::format("{} channel {}", id, number),
                 .number = number,
                 .first_of_card = number == settings_.channels.front(),
                 .type = card->type()},
                connector);
  }
}

void CardInput::add_channel(const std::shared_ptr<card::Card>& card, Channel channel, std::uint32_t connector) {
  switch (channel.type) {
    case card::CardType::felix: find_felix_links(channel, *card, connector); break;
    case card::CardType::cru: find_cru_links(channel, *card, connector); break;
    default:
      fail({"readout.card_type",
            fmt::format("the card input reads FELIX and CRU cards, but {} is a {}", channel.id, card::name_of(channel.type)),
            "readout.input.cards", "read it with `rodeo card bench dma`, or name another card"});
  }
  if (channel.links.empty()) {
    fail({"card.no_links",
          fmt::format("no link of card {} is enabled for its DMA channel {}", card->address().text(), channel.number),
          "readout.input.cards",
          "enable links, and give each a channel, in the card's configuration (`rodeo card config`)"});
  }
  const auto place = need(card::reader_place(settings_.numa, card->found().numa_node), "readout.input.numa");
  const card::StayAtCard here(place);
  card::DmaSettings dma{.source = settings_.source};
  auto source = need(DmaSpanSource::open(card, {.channel = channel.number,
                                                .memory_bytes = settings_.memory_bytes,
                                                .superpage_bytes = settings_.superpage_bytes,
                                                .node = place.node,
                                                .dma = dma}),
                     fmt::format("cannot read card {}", channel.id));
  base::log_info("card {} ({}): {} link{}, {}, readers {}", channel.id, card::name_of(channel.type), channel.links.size(),
                 channel.links.size() == 1 ? "" : "s", source->memory_description(), place.description);
  channel.place = place;
  channel.source = source.get();
  channel.spans = std::make_shared<CardSpans>(std::move(source));
  channels_.push_back(std::move(channel));
}

std::vector<std::size_t> CardInput::link_groups() const {
  std::vector<std::size_t> begins;
  for (const Channel& channel : channels_) begins.push_back(channel.links.front());
  return begins;
}

void CardInput::add_link(Channel& channel, std::uint16_t local, Fid fid) {
  channel.links.push_back(links_.all().size());
  channel.local_links.push_back(local);
  links_.add(fid);
}

void CardInput::find_felix_links(Channel& channel, card::Card& card, std::uint32_t connector) {
  const auto block = need(card.read64(felix::reg("block_bytes")), "cannot read the block size");
  channel.format.block_bytes = block == 0 ? formats::kBlockUnitBytes : static_cast<std::uint32_t>(block);
  channel.format.family = settings_.block_family;
  if (channel.format.block_bytes > formats::kBlockUnitBytes && channel.format.family == formats::BlockFamily::trailer16) {
    channel.format.family = formats::BlockFamily::phase2;  // 16-bit trailers have too few bits for such blocks
  }
  if (!channel.format.valid())
    fail({"card.misbehaved", fmt::format("the card claims blocks of {} bytes", block), channel.id, "check its firmware"});
  const auto links = std::min<std::uint64_t>(need(card.read64(felix::reg("links")), "cannot read the number of links"),
                                             felix::reg("elinks_enabled").count);
  for (std::uint32_t link = 0; link < links; ++link) {
    if (need(card.read64(felix::reg("link_channel"), link), "cannot read the DMA channel of a link") != channel.number)
      continue;
    channel.brings_list = channel.brings_list || (settings_.trigger_elink && *settings_.trigger_elink >> 6 == link);
    std::uint64_t enabled = need(card.read64(felix::reg("elinks_enabled"), link), "cannot read the enabled E-links");
    for (; enabled != 0; enabled &= enabled - 1) {
      const auto elink = static_cast<std::uint16_t>(link << 6 | static_cast<unsigned>(std::countr_zero(enabled)));
      if (settings_.trigger_elink == elink) continue;
      add_link(channel, elink, formats::fid_of_card_elink(settings_.detector, connector, elink));
    }
  }
}

void CardInput::find_cru_links(Channel& channel, card::Card& card, std::uint32_t connector) {
  if (!channel.first_of_card) return;  // one channel carries all links
  if (settings_.time_frame_length != 0) {
    need(card.modify(cru::reg("debug"), cru::kTimeFrameLength, settings_.time_frame_length),
         "cannot set the time frame's length");
  }
  const auto enabled =
      need(card.read(cru::reg("datapath_enable"), card.endpoint_or_zero()), "cannot read the enabled links");
  for (unsigned link = 0; link < cru::kLinks; ++link) {
    if ((enabled >> link & 1U) != 0)
      add_link(channel, static_cast<std::uint16_t>(link), Fid::of(settings_.detector, connector, link, 0));
  }
}

std::unique_ptr<SpanDecoder> CardInput::decoder(const Channel& channel, std::span<const std::uint16_t> local) const {
  if (channel.type == card::CardType::felix)
    return make_block_span_decoder(channel.format, settings_.max_chunk_bytes, local);
  const std::vector<std::uint8_t> links(local.begin(), local.end());
  return make_rdh_span_decoder(
      {.orbits_per_frame = settings_.orbits_per_frame, .max_chunk_bytes = settings_.max_chunk_bytes}, links);
}

std::unique_ptr<DataStream> CardInput::open(std::span<const Fid> links) {
  struct Part {
    std::vector<std::uint16_t> local;
    std::vector<LinkIndex> indices;
  };
  std::vector<Part> parts(channels_.size());
  const std::vector<std::size_t> positions = links_.select(links, "the cards of this input");
  for (std::size_t index = 0; index < positions.size(); ++index) {
    for (std::size_t e = 0; e < channels_.size(); ++e) {
      const auto& of = channels_[e].links;
      const auto local = std::find(of.begin(), of.end(), positions[index]);
      if (local == of.end()) continue;
      parts[e].local.push_back(channels_[e].local_links[static_cast<std::size_t>(local - of.begin())]);
      parts[e].indices.push_back(static_cast<LinkIndex>(index));
    }
  }
  std::vector<CardStream::Walk> walks;
  for (std::size_t e = 0; e < channels_.size(); ++e) {
    if (parts[e].local.empty()) continue;
    walks.push_back({.spans = channels_[e].spans,
                     .decoder = decoder(channels_[e], parts[e].local),
                     .links = std::move(parts[e].indices),
                     .place = channels_[e].place});
  }
  streams_.push_back(std::make_unique<CardStream>(std::move(walks), settings_.max_chunk_bytes));
  return std::make_unique<StreamHandle>(*streams_.back());
}

std::unique_ptr<DataStream> CardInput::open_trigger_list() {
  if (!settings_.trigger_elink) return nullptr;
  const auto brings = std::ranges::find_if(channels_, &Channel::brings_list);
  if (brings == channels_.end())
    throw std::runtime_error("trigger_elink names an E-link of a FELIX card, but no channel of this input carries it.");
  std::vector<CardStream::Walk> walks;
  walks.push_back({.spans = brings->spans,
                   .decoder = decoder(*brings, std::span(&*settings_.trigger_elink, 1)),
                   .links = {0},
                   .place = brings->place});
  lists_.push_back(std::make_unique<CardStream>(std::move(walks), settings_.max_chunk_bytes));
  return std::make_unique<StreamHandle>(*lists_.back());
}

Result<bool> CardInput::generator_is_on(Channel& channel) {
  card::Card& card = channel.source->card();
  if (channel.type == card::CardType::felix) {
    const auto word = card.read64(felix::reg("generator_control"));
    return word ? Result<bool>((*word & 1U) != 0) : std::unexpected(word.error());
  }
  const auto word = card.read(cru::reg("user_control"));
  return word ? Result<bool>(cru::kRunEnable.of(*word) != 0) : std::unexpected(word.error());
}

Result<void> CardInput::set_generator(Channel& channel, bool on) {
  if (channel.type == card::CardType::felix)
    return channel.source->card().write(felix::reg("generator_control"), on ? 1 : 0);
  const auto done = channel.source->card().modify(cru::reg("user_control"), cru::kRunEnable, on ? 1 : 0);
  return done ? Result<void>{} : std::unexpected(done.error());
}

void CardInput::start() {
  if (started_) return;
  // Generators stay off until all channels are on: data before that would be lost.
  for (Channel& channel : channels_) {
    if (!settings_.start_generator || !channel.first_of_card) continue;
    channel.generator_found_on =
        need(generator_is_on(channel), fmt::format("cannot read whether the generator of card {} is on", channel.id));
    if (channel.generator_found_on)
      need(set_generator(channel, false), fmt::format("cannot stop the generator of card {}", channel.id));
  }
  started_ = true;
  for (Channel& channel : channels_) need(channel.spans->start(), fmt::format("cannot start card {}", channel.id));
  for (Channel& channel : channels_) {
    if (settings_.source == card::DataSource::fee) channel.outages->begin(channel.source->card(), channel.local_links);
  }
  for (Channel& channel : channels_) {
    if (settings_.start_generator && channel.first_of_card)
      need(set_generator(channel, true), fmt::format("cannot start the generator of card {}", channel.id));
  }
}

/// Names each card that is silent while others send data: its events are incomplete, and no other message names it.
void CardInput::name_silent_cards() {
  if (std::ranges::all_of(channels_, [](const Channel& channel) { return channel.spans->bytes() == 0; })) {
    for (const Channel& channel : channels_)
      base::log_warning("card {} has sent no data: {}", channel.id, card::advice_without_data(channel.source->card()));
    return;
  }
  // Compares cards with each other, not with the clock: if the machine stood still, all cards were silent.
  std::vector<std::uint64_t> nothing_for;
  for (const Channel& channel : channels_) nothing_for.push_back(channel.spans->nothing_for_ns());
  const std::uint64_t least = std::ranges::min(nothing_for);
  const auto silent = [&](std::uint64_t ns) { return ns - least > kSilentNs; };
  silent_cards_ = static_cast<std::size_t>(std::ranges::count_if(nothing_for, silent));
  if (silent_cards_ == 0 && least > kSilentNs)
    base::log_info("no card has sent data for a second or longer: check the triggers, and what makes the readout busy");
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    if (silent(nothing_for[i]))
      base::log_warning("card {} has sent no data for {:.1f} s{}, but others have", channels_[i].id,
                        static_cast<double>(nothing_for[i]) * 1e-9,
                        channels_[i].spans->bytes() == 0 ? " and none before" : "");
  }
}

void CardInput::stop() {
  for (Channel& channel : channels_) channel.source->card().function().hurry();
  if (started_ && !stopped_) name_silent_cards();
  stopped_ = true;
  for (Channel& channel : channels_) {
    channel.outages->end(channel.source->card());
    if (started_ && settings_.start_generator && channel.first_of_card) {
      if (auto done = set_generator(channel, false); !done) base::log_warning("{}", base::in_a_line(done.error()));
    }
  }
  for (Channel& channel : channels_)
    channel.spans->stop(kQuietNs, settings_.start_generator ? kLongestDrainNs : kLongestStopNs);
}

std::vector<NamedCounter> CardInput::counters() const {
  std::uint64_t sent = 0;
  std::uint64_t sent_bytes = 0;
  std::vector<NamedCounter> anomalies;
  for (const auto& stream : streams_) {
    sent += stream->counters().chunks;
    sent_bytes += stream->counters().bytes;
    for (const NamedCounter& counter : stream->decoder_counters()) base::add_counter(anomalies, counter);
  }
  std::uint64_t bytes = 0;
  std::uint64_t lost = 0, links_down = 0;
  for (const Channel& channel : channels_) {
    bytes += channel.spans->bytes();
    links_down += channel.outages->links();
    if (channel.spans->ended()) lost += channel.spans->lost_packets();
  }
  std::vector<NamedCounter> all{{"sent", sent}, {"sent_bytes", sent_bytes}, {"card_bytes", bytes}};
  // If the generator of a card is not the input's, its data have no end, so cut data are no loss.
  const auto cut_off = [](const Channel& channel) { return channel.spans->ended() && channel.spans->cut_off(); };
  if (const auto cards = std::ranges::count_if(channels_, cut_off); settings_.start_generator && cards > 0)
    all.push_back({"cards_cut_off", static_cast<std::uint64_t>(cards)});
  if (silent_cards_ > 0) all.push_back({"cards_silent", silent_cards_});
  if (lost > 0) all.push_back({"card_lost_packets", lost});
  if (links_down > 0) all.push_back({"card_links_down", links_down});
  all.insert(all.end(), anomalies.begin(), anomalies.end());
  return all;
}

std::string CardInput::failure() const {
  for (const Channel& channel : channels_) {
    if (!channel.spans->ended() || !channel.spans->failure()) continue;
    const Error& error = *channel.spans->failure();
    return fmt::format("card {}: {} [{}]", channel.id, error.what, error.code);
  }
  return {};
}

namespace {

struct CardInputKeys : CardInputSettings {
  std::uint32_t trailer_bits = 16;
  unsigned channel = 0;
  std::vector<unsigned> several_channels = {};
};

const Settings<CardInputKeys>& card_input_table() {
  using K = CardInputKeys;
  static const Settings<K> table{
      setting(&K::ids, "cards", "Endpoints to read, each by PCI address, #N or serial:endpoint, as in `rodeo card list`.",
              {.required = true}),
      setting(&K::channel, "channel", "DMA channel of each endpoint.", {.maximum = 7}),
      setting(&K::several_channels, "channels",
              "DMA channels of each endpoint, instead of `channel`. Each has its own memory. A router has a reader for "
              "each.",
              {.maximum = 7}),
      setting(&K::memory_bytes, "memory",
              "Memory of a channel; a multiple of `superpage`. When all of it is full of unread data, the card is busy.",
              {.minimum = 1 << 20, .maximum = 1e12, .unit = Unit::bytes}),
      setting(&K::superpage_bytes, "superpage", "Piece of memory that the card fills as a whole; a multiple of 32KiB.",
              {.minimum = 32 << 10, .maximum = 1 << 30, .unit = Unit::bytes}),
      setting(&K::source, "source",
              {{"fee", card::DataSource::fee}, {"ddg", card::DataSource::ddg}, {"internal", card::DataSource::internal}},
              "Where the card takes data from: front-ends, its DDG (CRU) or its internal generator."),
      setting(&K::start_generator, "start_generator",
              "Let the card's own (or emulated) sources run only from the run's start to its end. A generator that was on "
              "before is switched on again."),
      setting(&K::numa, "numa",
              "Where the threads that read a card run, unless they are pinned: card (the CPUs of the card's NUMA node), "
              "off, or a node's number."),
      setting(&K::register_map, "register_map",
              "FELIX: register map of the cards, \"254.0\", instead of the map that they report. Empty: the map that they "
              "report; a card with an unknown map is refused."),
      setting(&K::detector, "detector", "Detector id in the FIDs of the links.", {.maximum = 255}),
      setting(&K::connector, "connector",
              "Connector id in the FIDs of the first endpoint's links; each further endpoint has the next number.",
              {.maximum = 65535}),
      setting(&K::trailer_bits, "trailer_bits",
              "FELIX: width of chunk trailers, 16 or 32; blocks of more than 1 KiB have 32.",
              {.minimum = 16, .maximum = 32}),
      setting(&K::trigger_elink, "trigger_elink",
              "FELIX: E-link number (of block headers) that carries the trigger's own list. -1 means none.",
              {.maximum = 2047}),
      setting(&K::time_frame_length, "time_frame_length",
              "CRU: orbits of a time frame, written to the card. 0: the card keeps its own value.", {.maximum = 4095}),
      setting(&K::orbits_per_frame, "orbits_per_frame",
              "CRU: orbits of a chunk. 1: heartbeat frames; the time frame's length: time frames.",
              {.minimum = 1, .maximum = 4096}),
      setting(&K::max_chunk_bytes, "max_chunk", "Longer chunks (frames that span superpages) are cut and marked.",
              {.minimum = 64, .maximum = 1 << 28, .unit = Unit::bytes}),
  };
  return table;
}

}  // namespace

CardInputSettings CardInputSettings::from(const Parameters& parameters) {
  CardInputKeys s = card_input_table().read(parameters);
  if (s.memory_bytes % s.superpage_bytes != 0 || s.memory_bytes / s.superpage_bytes < 4) {
    fail({"readout.card_memory",
          fmt::format("{} of memory are not four or more superpages of {}", base::format_size(s.memory_bytes),
                      base::format_size(s.superpage_bytes)),
          "readout.input.memory", "make it a multiple of `superpage`, at least four"});
  }
  s.channels = s.several_channels.empty() ? std::vector{s.channel} : s.several_channels;
  std::vector<unsigned> sorted = s.channels;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    fail({"readout.card_channels", fmt::format("DMA channel {} is named twice", *twice), "readout.input.channels",
          "name each channel once"});
  if (!s.register_map.empty() && !card::register_map_of(s.register_map))
    fail({"readout.card_map", fmt::format("`{}` is not a known register map", s.register_map), "readout.input.register_map",
          "the only known map is 254.0 (docs/reference/card-registers.md)"});
  if (s.trailer_bits == 32) s.block_family = formats::BlockFamily::trailer32;
  return s;
}

std::vector<Key> card_input_keys() { return card_input_table().keys(); }

}  // namespace rodeo::input
