#include "cli/vocabulary.h"

#include <algorithm>
#include <iterator>
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

    {"nothing", kLimit, "", "No trigger was held back by the readout, and no fragment left out because a queue was full."},
    {"builder", kLimit, "",
     "The builder's workers have not enough time, or no room for open events. More workers (readout.builder.workers), a "
     "larger window, "
     "or fewer links for each ROB."},
    {"input", kLimit, "",
     "A hundredth of the triggers or more found the input busy, though nothing behind it was full: it, or the emulated card "
     "that feeds it, had not enough of the machine. Also if no chunk came at all."},
    {"a consumer's name", kLimit, "",
     "That consumer's queue was full more often than anything behind it, so that the run waited or, with full_queue = skip, "
     "fragments were left out. It needs more threads or a faster disk, or a "
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

// What usually lies behind a counter that says that something is not as it should be, and what to do: one table for all counters, for
// whoever counts them. A word may be that of several counters.
struct Advice {
  std::string_view word, cause, next;
};
constexpr Advice kAdvice[] = {
    {"late",
     "The event waited for the time-out and this link was slower, or the ring was full; a card or a network that lags "
     "behind the others, or a busy machine.",
     "See which links lag (rodeo readout status: missing). Raise readout.builder.timeout or readout.builder.window if they "
     "are slow by design; give the readout more of the machine if `limited by` names the builder."},
    {"duplicate",
     "A front end that sends an event twice, two FIDs for one link, or FULL-mode links read by the gbt builder.",
     "Look at the links that are `bad` in the report; check readout.rob.links and the builder's type against how the "
     "detector sends."},
    {"out_of_sequence", "A bit flipped in an L1 id, chunks out of order, or a link that counts for itself since a reset.",
     "If one link has them, look at its fibre and front end; if all have them, the extractor does not fit the detector: "
     "readout.extractor and its keys."},
    {"malformed", "The extractor is not the detector's, or the chunks were damaged on their way.",
     "Compare readout.extractor with the detector's format; record some chunks (rodeo data record) and look at them (rodeo "
     "data dump)."},
    {"link_removed", "The link was removed by hand (rodeo readout link) or by the policy, and still sends.",
     "Take it back with `rodeo readout link`, or set readout.link_policy.restore."},
    {"overflow", "Chunks are larger than the configuration allows for one event.",
     "Raise chunk_size or max_extensions of readout.builder."},
    {"plugin_threw", "A defect of the plug-in, or data that it does not expect.",
     "The log names plug-in and link; `rodeo plugin test` calls it with recorded chunks, outside of a run."},
    {"not_listed",
     "A chunk of an event that the trigger did not send: a flipped bit, or a trigger list that belongs to another "
     "partition.",
     "Check that the list's link is that of the detector's own trigger; without a list, set readout.builder.trigger_list = "
     "false."},
    {"corrupt", "Errors on a link (its light, its clock), or an integrity check that does not fit the detector.",
     "The report names the links that are `bad`: look at their fibres and at `rodeo card status`; compare readout.checker "
     "with what the front end sends."},
    {"truncated", "A chunk was larger than its slice, or was cut by the card.",
     "Raise chunk_size or max_extensions of readout.builder; look for busy links in the report."},
    {"timeout",
     "A link brought nothing for this event for the whole time-out: switched off, slower than the others, or lost.",
     "The report names the links that are missing. Switch off in the configuration what shall not be read, let "
     "readout.link_policy remove what is dead, or raise readout.builder.timeout."},
    {"ring_full",
     "More events were open than readout.builder.window has room for: one link is far behind the others, or a consumer "
     "holds many fragments.",
     "Look at the missing links first; then raise readout.builder.window (rate x time-out at least), or remove what "
     "`limited by` names."},
    {"run_ended", "The run ended while links had still to bring these events.",
     "Nothing, if they are few. Stop the triggers before the readout if every event counts."},
    {"missing", "Links skipped the event: their front end did not send it, or the chunk was lost before the readout.",
     "The report names the links; compare with what the card counts (rodeo card status) and with the counters of the "
     "input."},
    {"bcid_mismatch", "A front end that lost its place, or an event counter reset that not all of them got.",
     "The chunks that differ are marked in the event (rodeo data dump); resynchronise the front ends."},
    {"not_triggered", "The event is in the data and not in the trigger's own list.",
     "See whether the list itself has gaps; else as for `not_listed`."},
    {"doubtful_id", "L1 ids of few bits cannot tell a reset from a jump.",
     "Set readout.builder.trigger_list = true if the detector has the trigger's list."},
    {"empty", "All links were silent for a trigger that the list has.",
     "Look at the detector's busy and at its links' status."},
    {"vetoed",
     "Something behind the input had no room: then `limited by` names it. Or the generator itself had not enough of the "
     "machine.",
     "Remove what `limited by` names; dead time is no loss of data."},
    {"overdue", "The machine had too little time for the generator.",
     "Lower the rate or the number of links, or leave it a core."},
    {"card_lost_packets", "The readout gave memory back too slowly, and the card does not hold back its trigger.",
     "Read `limited by`; give more memory to the card (rodeo doctor checks huge pages), or a faster consumer."},
    {"card_links_down", "A fibre that is not plugged in, has no light, or a front end that is off.",
     "`rodeo card status` shows the links; switch off those that shall not be read."},
    {"sequence_gaps", "Blocks were lost between the card and the readout, or the recording lacks some.",
     "Compare with card_lost_packets; verify a recording with `rodeo data verify`."},
    {"lost_blocks", "Blocks were lost between the card and the readout, or the recording lacks some.",
     "Compare with card_lost_packets; verify a recording with `rodeo data verify`."},
    {"bad_marker", "What lies where a block should begin is none: another block size, or damaged memory.",
     "Compare the block size of firmware and configuration (rodeo card status)."},
    {"bad_trailer", "A block is damaged, or of another format than its header says.",
     "`rodeo data verify` of a recording says where; compare firmware and block format."},
    {"packet_gaps", "Pages of a link were lost between the card and the readout.",
     "Compare with card_lost_packets; read `limited by`."},
    {"lost_pages", "Pages of a link were lost between the card and the readout.",
     "Compare with card_lost_packets; read `limited by`."},
    {"bad_rdh", "What lies where a header should be is none: another RDH version, or damaged memory.",
     "Compare the header version and page size of firmware and configuration."},
    {"skipped_bytes", "The decoder had to search for the next header behind damaged data.",
     "`rodeo data verify` of a recording says where."},
    {"damaged", "The file was cut, or is not what was written.",
     "`rodeo data verify FILE` says where; `rodeo data recover` saves whole events of event files."},
    {"chunks_cut_off", "The run ended while the emulated card had data that nobody took.",
     "Read `limited by`: a readout that keeps up leaves nothing."},
    {"triggers_cut_off", "The emulated card had too little of the machine.",
     "Lower the rate or the number of links, or leave the emulator a core."},
    {"triggers_missed", "A card ended before it took the triggers that it was given.",
     "Stop the readout before the emulator."},
    {"cards_cut_off", "The card's generator or trigger went on when the readout was told to stop.",
     "Stop the source of triggers first."},
    {"cards_silent", "A card that gets no triggers, or whose links are off.",
     "`rodeo card status` of the card that the warning names."},
    {"exceptions", "A defect of the consumer, or of what it uses.",
     "The log has the words; tell the author of the consumer."},
    {"work_threw", "A defect of the work's plug-in, or data that it does not expect.",
     "The log names the work; `rodeo plugin test` calls it outside of a run."},
    {"too_large_for_work", "Fragments are larger than the configuration expects.", "Raise max_payload of the processor."},
    {"waited_for_copy", "Fragments that were copied are held by a slow consumer behind the processor.",
     "Raise `copies`, or give that consumer more threads."},
    {"disk_waits", "The disk is slower than the events for a while.",
     "Nothing while `limited by` does not name the writer; else raise `buffers`, write a fraction, or use a faster disk."},
    {"unwritten_queue_full", "The disk is slower than the events, and full_queue = skip asks not to wait for it.",
     "A longer queue helps with bursts; else a faster disk, several writers, a fraction, or full_queue = wait, which holds "
     "back the run."},
    {"unwritten_disk_full", "The file system is full, or failed; `failure` in the report says which.",
     "Free space, or give the writer another directory; files are closed whole, and `min_free` keeps some space."},
    {"mismatches", "Seed, L1 id bits or CRC of sender and processor differ; else a defect of what lies between them.",
     "Compare the keys of the input (or of the emulator) with those of the processor; then keep the files and report it."},
    {"wrong_chunks", "Seed, L1 id bits or CRC of sender and processor differ; else a defect of what lies between them.",
     "Compare the keys of the input (or of the emulator) with those of the processor; then keep the files and report it."},
    {"duplicate_links", "Two links have one id, or a defect of the builder.", "Check readout.rob.links and link_ids."},
    {"wrong_triggers", "The chunk format carries no BCID, or the trigger is not the emulated one.",
     "Set check_trigger = false for such formats."},
    {"broken_fragments", "A plug-in that changes payloads, or a defect.",
     "Leave out works that change fragments before the one that verifies."},
    {"missing_but_present", "A defect of the builder.", "Keep the files and report it."},
    {"samples_skipped_queue_full", "The sampler copies slower than it is asked to.",
     "Raise `prescale` or lower `max_rate` of the sampler; the run is not touched."},
    {"samples_missed_by_readers", "A reader is slower than its samples.", "Raise `prescale`; the run is not touched."},
};

void add(std::vector<Word>& words, std::span<const base::CounterInfo> counters, std::string_view kind) {
  for (const base::CounterInfo& counter : counters)
    words.push_back({.word = counter.name, .kind = kind, .unit = counter.unit, .text = counter.help});
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
  for (Word& word : words) {
    const auto advice = std::ranges::find(kAdvice, word.word, &Advice::word);
    if (advice == std::end(kAdvice) || !word.kind.starts_with("counter")) continue;
    word.cause = advice->cause;
    word.next = advice->next;
  }
  return words;
}

}  // namespace rodeo::cli
