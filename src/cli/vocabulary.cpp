#include "cli/vocabulary.h"

#include <algorithm>
#include <span>
#include <utility>

#include "card/dma/channel.h"
#include "cli/texts.h"
#include "emulator/session.h"
#include "farm/node/event_data.h"
#include "farm/node/node_status.h"
#include "farm/recorder/run_recording.h"
#include "farm/supervisor/events.h"
#include "farm/supervisor/nodes.h"
#include "farm/supervisor/orphans.h"
#include "farm/supervisor/readouts.h"
#include "formats/block_counters.h"
#include "formats/rdh_frame_decoder.h"
#include "formats/superpage_check.h"
#include "input/faults.h"
#include "readout/builder/assembler.h"
#include "readout/builder/worker_counters.h"
#include "readout/consumer/hlt_request_handler.h"
#include "router/router_status.h"
#include "storage/file_filter.h"
#include "storage/file_merge.h"
#include "transport/publisher.h"
#include "transport/replier.h"

namespace rodeo::cli {

std::vector<Word> vocabulary() {
  std::vector<Word> words = words_of(built_in_text("words.md"));
  const auto last = std::ranges::stable_partition(words, [](const Word& word) { return !word.text.empty(); });
  // The code that counts these has their meanings; the file has only causes and remedies.
  const std::vector<Word> counted(last.begin(), last.end());
  words.erase(last.begin(), last.end());
  const auto add = [&](std::span<const base::CounterInfo> counters, const char* kind) {
    for (const base::CounterInfo& counter : counters) {
      Word& word = words.emplace_back();
      if (const auto known = std::ranges::find(counted, counter.name, &Word::word); known != counted.end()) word = *known;
      word.word = counter.name;
      word.kind = kind;
      word.unit = counter.unit;
      word.text = counter.help;
    }
  };
  add(readout::kLostInfo, "counter, chunks lost");
  add(readout::kFragmentInfo, "counter of fragments");
  add(readout::kWorkerInfo, "counter of a builder");
  add(input::kGeneratorCounters, "counter of the generator");
  add(formats::kBlockCounterInfo, "counter of FELIX blocks");
  add(formats::kRdhFrameCounterInfo, "counter of RDH frames");
  add(formats::kSuperpageCounterInfo, "counter of a superpage check");
  add(card::kDmaCounters, "counter of a DMA channel");
  add(router::kReaderSums, "counter of a router");
  add(router::kReaderCounters, "counter of a router");
  add(router::kLinkCounters, "counter of a router's link");
  add(router::kFrontEndCounters, "counter of a router's way to front-ends");
  add(transport::kPublisherCounters, "counter of a publisher");
  add(farm::kNodeCounters, "counter of a filter node");
  add(farm::kCollectorCounters, "counter of a filter node's requests");
  add(farm::kDataCounters, "counter of a filter node's fragments");
  add(farm::kRecorderCounters, "counter of a recorder");
  add(dispatch::kDispatchCounters, "counter of a supervisor");
  add(farm::kNodesCounters, "counter of a supervisor's nodes");
  add(farm::kReadoutsCounters, "counter of a supervisor's readouts");
  add(farm::kOrphansCounters, "counter of a supervisor");
  add(farm::kEventsCounters, "counter of a supervisor");
  add(readout::kRetentionInfo, "counter of an hlt_request_handler");
  add(readout::kServiceInfo, "counter of an hlt_request_handler");
  add(transport::kReplierCounters, "counter of a service");
  add(emulator::kServerCounters, "counter of an emulated card");
  add(storage::kMergeCounters, "counter of `rodeo data merge`");
  add(storage::kFilterCounters, "counter of `rodeo data filter`");
  return words;
}

}  // namespace rodeo::cli
