// `rodeo card reset`.
#include "card/dma/channel.h"
#include "card/dma/memory.h"
#include "cli/card.h"

namespace rodeo::cli {
namespace {

struct ResetOptions {
  std::string id;
  unsigned channel = 0;
  std::string level = "internal";
};

Result<ExitCode> reset(const ResetOptions& options) {
  auto card = RODEO_TRY(open_card(options.id));
  // Opening a channel requires memory, although the card writes nothing to it.
  auto memory = card::DmaMemory::create(std::size_t{4} << 20);
  if (!memory) return std::unexpected(Error{"card.dma_memory", memory.error().what, {}, memory.error().next});
  auto channel = RODEO_TRY(card::DmaChannel::open(
      *card, options.channel, memory->shared(),
      {.source = card->type() == card::CardType::felix ? card::DataSource::fee : card::DataSource::internal,
       .check_firmware = false}));
  const auto level = options.level == "internal" ? card::ResetLevel::internal
                     : options.level == "siu"    ? card::ResetLevel::internal_siu
                                                 : card::ResetLevel::nothing;
  RODEO_TRY(channel->reset(level));
  return ExitCode::done;
}

}  // namespace

void add_card_care(Command& card) {
  auto options = std::make_shared<ResetOptions>();
  Command& resets = card.verb("reset", "Resets a DMA channel that has no owner");
  resets.example("rodeo card reset --id '#0'", "counters and queues")
      .example("rodeo card reset --id '#0' --channel 2 --level siu", "a C-RORC's link as well");
  add_card_id(resets, options->id);
  resets.option("--channel", options->channel, "DMA channel");
  resets.choice("--level,--reset", options->level, {"nothing", "internal", "siu"}, "How far");
  resets.run([options] { return reset(*options); });
}

}  // namespace rodeo::cli
