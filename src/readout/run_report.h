// The numbers of the end-of-run report, computed once from the last status, and the balance that shows whether data were
// lost.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "readout/readout_status.h"
#include "readout/settings.h"

namespace rodeo::readout {

/// good: every fragment has all its links, and no chunk is lost. incomplete: fragments lack links (also removed ones),
/// chunks are lost, the input lost data, was cut off or brought none, or a consumer lost data. wrong: the verifying
/// processor found bytes that differ from those sent, or chunks are in no fragment and in no counter.
using process::Condition;
using process::name_of;

/// A number of items that are lost or faulty, and the number of all such items.
struct Loss {
  std::string what;
  std::uint64_t lost = 0;
  std::uint64_t of = 0;  ///< number of all items; 0: not known
  double fraction() const { return of > 0 ? static_cast<double>(lost) / static_cast<double>(of) : 0; }
};

/// A link that was moved, is out of step, or has chunks in doubt.
struct DoubtfulLink {
  FragmentBuilder::Link link;
  KnownPlace place;
};

struct RunReport {
  std::string name;
  std::uint32_t run_number = 0;
  double seconds = 0;
  double unix_start = 0;
  Condition condition = Condition::good;
  std::string failure;

  std::uint64_t links = 0;
  std::optional<double> offered_rate_hz;  // empty if the input does not count vetoed triggers: a card, a recording
  double trigger_rate_hz = 0;
  double trigger_seconds = 0;                ///< the time of that rate
  std::optional<double> dead_time_fraction;  // empty for such an input, too

  /// Number of chunks that the sources counted, if they report losses before the input; else that of the input.
  std::uint64_t chunks_sent = 0;
  bool sent_by_input = false;  ///< the input itself is the source of the chunks: a generator, a recording
  bool no_data = false;        ///< the run is over, and no chunk arrived
  std::uint64_t chunks_built = 0;
  std::vector<NamedCounter> chunks_lost;  ///< lost chunks by reason, zeros left out
  std::uint64_t lost() const;
  /// Data that the input found missing or unreadable, by name: lost in a card, on a link, in a recording.
  std::vector<NamedCounter> input_losses() const;
  /// sent == built + the sum of all reasons. False means a defect of Rodeo or of a plug-in: do not trust the run.
  bool adds_up() const { return chunks_sent == chunks_built + lost() && bytes_add_up(); }
  /// adds_up() for the bytes of chunks that reached the input. True if a builder does not count bytes.
  bool bytes_add_up() const { return !bytes_known || bytes_in == bytes_built + bytes_lost_sum(); }
  std::uint64_t bytes_lost_sum() const;

  /// The items that were lost, built incomplete or not written, with their numbers. A run with losses is not good.
  std::vector<Loss> losses() const;
  /// The largest fraction among losses().
  double loss_fraction() const;
  /// True if the losses exceed fail_on_loss: by their fraction or, if fail_on_loss is 0, because there are any.
  bool lost_too_much() const;

  std::string limited_by;
  std::uint64_t fragments = 0;
  std::uint64_t events_built = 0;  ///< events of the ROB that has built most
  std::uint64_t incomplete = 0;
  std::uint64_t open_at_stop = 0;                  ///< incomplete because a command ended the run while data came; no loss
  std::uint64_t events = 0;                        ///< known events, summed over all ROBs
  std::uint64_t skipped = 0;                       ///< known events without a fragment in their ROB
  std::uint64_t without_removed = 0;               ///< fragments, complete or not, that lack removed links
  std::vector<NamedCounter> incomplete_by_reason;  ///< fragments, zeros left out
  std::vector<FragmentBuilder::Link> missing;      ///< links that were missing in some events, the worst first
  std::vector<FragmentBuilder::Link>
      left_out;                        ///< links that some events lack because these links were removed, the worst first
  std::vector<DoubtfulLink> doubtful;  ///< links in doubt, the worst first
  /// Number of chunks in fragments that are flagged because the place of their link was not proven.
  std::uint64_t in_doubt() const;

  std::uint64_t bytes_in = 0;     ///< bytes of the chunks that the input handed over, with those that it cut off
  bool bytes_known = true;        ///< all builders count bytes
  std::uint64_t bytes_built = 0;  ///< the part of bytes_in that is in fragments
  /// Bytes of lost chunks, by reason; "cut": bytes cut off chunks in fragments; zeros left out.
  std::vector<NamedCounter> bytes_lost;
  std::uint64_t bytes_payload = 0;
  std::uint64_t bytes_written = 0;

  Latency latency;
  std::vector<std::pair<std::string, double>> cpu_seconds;  ///< CPU time by stage, upstream first
  std::uint64_t verified_chunks = 0;
  std::uint64_t mismatches = 0;
  std::vector<FragmentConsumer::File> files;

  std::vector<FragmentConsumer::Status> consumers;
  std::string input_type;  ///< the advice depends on it
  std::vector<NamedCounter> input;
  double fail_on_loss = 1;  ///< the largest fraction that may be lost
};

/// Fragments that a consumer lost, failed to write or failed to process, by name.
std::vector<NamedCounter> losses_of(const FragmentConsumer::Status& consumer);

/// Faults that a verifying work found, by name.
std::vector<NamedCounter> mismatches_of(const FragmentConsumer::Status& consumer);

/// `aborted`: the run was cut off before it had drained.
RunReport make_report(const ReadoutSettings& settings, const ReadoutStatus& status, const std::string& limited_by,
                      bool aborted);

}  // namespace rodeo::readout
