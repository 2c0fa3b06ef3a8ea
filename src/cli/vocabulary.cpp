#include "cli/vocabulary.h"

#include <span>

#include "card/dma/channel.h"
#include "emulator/session.h"
#include "formats/block_counters.h"
#include "formats/rdh_frame_decoder.h"
#include "formats/superpage_check.h"
#include "input/faults.h"
#include "readout/builder/assembler.h"
#include "readout/builder/worker_counters.h"

namespace rodeo::cli {
namespace {

constexpr std::string_view kCondition = "condition of a run";
constexpr std::string_view kLimit = "what limits a run (limited_by)";

constexpr Word kWords[] = {
    {"GOOD", kCondition, "", "Every fragment has all its links, and nothing is lost."},
    {"INCOMPLETE", kCondition, "",
     "Some fragment lacks a link, removed ones too, or is flagged, some chunk is in no fragment, the input lost data, was "
     "cut "
     "off at the end or brought none, or a consumer lost fragments or left them unwritten. The counters say why; "
     "`--fail-on-loss` makes it an exit status."},
    {"WRONG", kCondition, "",
     "The verifying processor found bytes that are not what was sent, or chunks are in no fragment and in no counter. Such "
     "data must "
     "not be trusted: seed, L1 id bits and CRC of sender and processor have to agree."},
    {"ABORTED", kCondition, "",
     "A failure (disk full, card gone, ...) or a third Ctrl-C ended the run before it had drained. `failure` in the report "
     "says which; "
     "`rodeo data recover` saves what files hold that were not closed."},

    {"nothing", kLimit, "", "No trigger was held back by the readout."},
    {"builder", kLimit, "",
     "The builder's workers have not enough time, or no room for open events. More workers (readout.builder.workers), a "
     "larger window, "
     "or fewer links for each ROB."},
    {"input", kLimit, "",
     "A hundredth of the triggers or more found the input busy, though nothing behind it was full: it, or the emulated card "
     "that feeds it, had not enough of the machine. Also if no chunk came at all."},
    {"a consumer's name", kLimit, "",
     "That consumer's queue was full more often than anything behind it. It needs more threads or a faster disk, or a "
     "smaller share of "
     "the events (fraction, full_queue = skip)."},

    {"sent", "counter of an input", "chunks", "Chunks that the input handed to builders; built + lost."},
    {"events", "counter of an input", "events", "Events of a recording that were played."},
    {"not_restamped", "counter of an input", "chunks",
     "Chunks of a recording whose L1 id could not be read, so that they were played as they are."},
    {"damaged", "counter of an input", "places", "Places where the recording is damaged; `rodeo data verify` lists them."},
    {"cut_blocks", "counter of an input", "blocks", "Blocks that the end of a recording cut off."},
    {"partial_block_bytes", "counter of an input", "bytes", "Bytes at the end of a span that are no whole block."},
    {"card_bytes", "counter of an input", "bytes", "Bytes that cards wrote into memory, blocks and headers included."},
    {"bytes", "counter of an input", "bytes", "Bytes of the chunks that it handed over."},
    {"card_lost_packets", "counter of an input", "packets",
     "Blocks or pages that the cards themselves count as lost: there was no free memory when they came. Read when they have "
     "stopped."},
    {"card_links_down", "counter of an input", "links",
     "Fibres that were down during the run, by the cards' status and sticky bits."},
    {"cards_silent", "counter of an input", "cards",
     "Cards that had brought nothing for a second or longer at the end, while others had. A hint; a warning names them."},
    {"cards_cut_off", "counter of an input", "cards",
     "Cards that still brought data when the readout stopped waiting for their end."},
    {"chunks_cut_off", "counter of an input", "chunks",
     "Chunks that an emulated card had no room or time for at the end; not in `sent`."},
    {"triggers_cut_off", "counter of an input", "triggers", "Triggers that an emulated card had no time for at the end."},
    {"triggers_missed", "counter of an input", "triggers",
     "Triggers that a card was given and did not take before it ended."},

    {"card_dropped", "counter, chunks lost", "chunks", "Lost in the emulated card: their DMA channel was not enabled."},
    {"card_lost", "counter, chunks lost", "chunks", "Lost in the emulated card, by a fault on demand."},
    {"card_corrupted", "counter, chunks lost", "chunks", "Made unreadable by the emulated card, by a fault on demand."},
    {"card_unmapped", "counter, chunks lost", "chunks",
     "Lost in the emulated card: no memory of the reader is where they belong."},
    {"card_link_down", "counter, chunks lost", "chunks", "Lost in the emulated card: their link was down."},

    {"exceptions", "counter of a consumer", "exceptions",
     "Exceptions that its code threw, each at a fragment that is lost; the log has their words."},
    {"latency_p50_us", "counter of a consumer", "us",
     "Half of the fragments were done in this time after their last data had come."},
    {"latency_p99_us", "counter of a consumer", "us",
     "99 of 100 fragments were done in this time after their last data had come."},
    {"latency_max_us", "counter of a consumer", "us", "The longest time that a fragment took."},
    {"work_threw", "counter of a processor", "fragments",
     "The work threw an exception at the fragment, which went on as it was."},
    {"too_large_for_work", "counter of a processor", "fragments",
     "The payload is larger than the work can take at once; the fragment went on as it was."},
    {"waited_for_copy", "counter of a processor", "times", "No memory for copies was free, and the processor waited."},
    {"read_bytes", "counter of a processor", "bytes", "Bytes read by the work `read`."},
    {"read_sum", "counter of a processor", "", "Sum of the words read: so that nobody can leave the reading out."},
    {"verified_chunks", "counter of a processor", "chunks", "Chunks that are byte for byte what their link has sent."},
    {"mismatches", "counter of a processor", "findings",
     "What is not as it was sent: wrong chunks, duplicate links, wrong triggers, broken fragments. Any makes a run WRONG."},
    {"mismatching_fragments", "counter of a processor", "fragments", "Fragments with a mismatch."},
    {"flagged_chunks", "counter of a processor", "chunks", "Chunks that are flagged for damage, and so prove nothing."},
    {"wrong_chunks", "counter of a processor", "chunks", "Chunks whose bytes are not what their link sent for this event."},
    {"duplicate_links", "counter of a processor", "links", "Links with more than one chunk in an event."},
    {"wrong_triggers", "counter of a processor", "fragments",
     "Fragments whose BCID or trigger type is not that of their L1 id."},
    {"broken_fragments", "counter of a processor", "fragments", "Fragments whose chunks do not fill their payload."},
    {"missing_but_present", "counter of a processor", "links", "Links that are listed as missing and have a chunk."},
    {"samples_taken", "counter of a sampler", "fragments", "Fragments copied for readers."},
    {"samples_skipped_queue_full", "counter of a sampler", "fragments", "Fragments not copied: the queue was full."},
    {"samples_skipped_too_large", "counter of a sampler", "fragments", "Fragments not copied: larger than max_payload."},
    {"samples_sent", "counter of a sampler", "fragments", "Fragments sent, counted for each reader."},
    {"samples_missed_by_readers", "counter of a sampler", "fragments", "Fragments that a reader was too slow for."},
    {"readers", "counter of a sampler", "readers", "Readers that listen now."},
    {"readers_seen", "counter of a sampler", "readers", "Readers that have come."},
    {"readers_dropped", "counter of a sampler", "readers", "Readers that were hung up on, since they took nothing."},
    {"events_written", "counter of a file writer", "events", "Events in files that are closed and whole."},
    {"bytes_written", "counter of a file writer", "bytes", "Bytes of files, as they are on disk."},
    {"disk_waits", "counter of a file writer", "times",
     "The disk was slower than the events, and the writer waited for it."},
    {"past_page_cache", "counter of a file writer", "", "1 if files are written past the page cache of the kernel."},
    {"unwritten_beyond_fraction", "counter of a file writer", "events", "Left out as asked for: beyond `fraction`."},
    {"unwritten_beyond_rate", "counter of a file writer", "events", "Left out as asked for: beyond `max_rate`."},
    {"unwritten_beyond_bytes", "counter of a file writer", "events", "Left out as asked for: beyond `max_bytes`."},
    {"unwritten_queue_full", "counter of a file writer", "events",
     "Lost for the files: the queue was full, and full_queue = skip lets such events pass unwritten."},
    {"unwritten_disk_full", "counter of a file writer", "events", "Lost for the files: the disk was full, or failed."},

    {"chunks_dropped", "counter of an emulated card", "chunks", "Chunks in blocks whose DMA channel was not enabled."},
    {"chunks_lost", "counter of an emulated card", "chunks", "Chunks in blocks that a fault on demand lost."},
    {"chunks_corrupted", "counter of an emulated card", "chunks",
     "Chunks in blocks that a fault on demand made unreadable."},
    {"chunks_unmapped", "counter of an emulated card", "chunks",
     "Chunks in blocks whose place no memory map of the client holds."},
    {"chunks_link_down", "counter of an emulated card", "chunks", "Chunks of links that were down."},
    {"chunks_open", "counter of an emulated card", "chunks", "Chunks in blocks that are not full yet."},
    {"chunks_cut_short", "counter of an emulated card", "chunks",
     "Chunks that were sent, of which a later block is missing."},
    {"blocks_dropped", "counter of an emulated card", "blocks", "Blocks whose DMA channel was not enabled."},
    {"blocks_lost", "counter of an emulated card", "blocks", "Blocks that a fault on demand lost."},
    {"blocks_corrupted", "counter of an emulated card", "blocks", "Blocks that a fault on demand made unreadable."},
    {"pages_dropped", "counter of an emulated card", "pages", "Pages that found no superpage."},
    {"pages_lost", "counter of an emulated card", "pages", "Pages in superpages that a fault on demand lost."},
    {"superpages_lost", "counter of an emulated card", "superpages", "Superpages that a fault on demand lost."},
    {"bytes_lost", "counter of an emulated card", "bytes", "Bytes in superpages that a fault on demand lost."},
    {"frames_dropped", "counter of an emulated card", "frames", "Heartbeat frames that found no superpage."},
    {"frames_lost", "counter of an emulated card", "frames", "Heartbeat frames in superpages that a fault on demand lost."},
    {"frames_corrupted", "counter of an emulated card", "frames",
     "Heartbeat frames behind an unreadable page, where nobody finds them."},
    {"frames_cut_off", "counter of an emulated card", "frames", "Heartbeat frames that were due, or under way, at the end."},
    {"frames_link_down", "counter of an emulated card", "frames", "Heartbeat frames of links that were down."},
    {"dma_faults", "counter of an emulated card", "writes", "Writes to memory that no map of the client holds."},
    {"readers_lost", "counter of an emulated card", "readers",
     "Readers that were gone while a DMA channel of theirs was on: it was ended for them."},
    {"maps_lost", "counter of an emulated card", "maps",
     "Maps of a client's memory that it cut short, or took away while they were in use."},
    {"descriptors_refused", "counter of an emulated card", "descriptors",
     "Superpages that the card could not take: no room, or an address or size that cannot be."},
    {"bad_descriptors", "counter of an emulated card", "descriptors",
     "DMA descriptors with an address or size that cannot be."},
    {"bad_read_pointers", "counter of an emulated card", "writes", "Read pointers outside of the buffer that they are for."},
    {"from_host_bytes", "counter of an emulated card", "bytes", "Bytes that the host sent to the front-end."},
    {"link_occupied_us", "counter of an emulated card", "us", "Time for which a link was taken by data when more came."},
    {"interrupts", "counter of an emulated card", "interrupts", "Interrupts raised."},
    {"unknown_registers", "counter of an emulated card", "accesses", "Accesses to registers that the card does not have."},

    {"followers_accepted", "counter of a trigger authority", "followers",
     "Processes with cards that were taken as followers."},
    {"followers_dropped", "counter of a trigger authority", "followers",
     "Followers that did not take their triggers, or went away."},
    {"followers_refused", "counter of a trigger authority", "followers",
     "Followers that were refused: another version, system or seed, or a name that is taken."},
    {"bad_messages", "counter of a trigger authority", "messages", "Messages that are not of the trigger protocol."},
};

void add(std::vector<Word>& words, std::span<const base::CounterInfo> counters, std::string_view kind) {
  for (const base::CounterInfo& counter : counters) words.push_back({counter.name, kind, counter.unit, counter.help});
}

}  // namespace

std::vector<Word> vocabulary() {
  std::vector<Word> words(std::begin(kWords), std::end(kWords));
  add(words, readout::kLostInfo, "counter, chunks lost");
  add(words, readout::kFragmentInfo, "counter of fragments");
  add(words, readout::kWorkerInfo, "counter of a builder");
  add(words, input::kGeneratorCounters, "counter of the generator");
  add(words, formats::kBlockCounterInfo, "counter of FELIX blocks");
  add(words, formats::kRdhFrameCounterInfo, "counter of RDH frames");
  add(words, formats::kSuperpageCounterInfo, "counter of a superpage check");
  add(words, card::kDmaCounters, "counter of a DMA channel");
  add(words, emulator::kServerCounters, "counter of an emulated card");
  return words;
}

}  // namespace rodeo::cli
