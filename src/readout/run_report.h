// What a run came to: the numbers of the end-of-run report, computed once from the last status, and the arithmetic that says
// whether anything was lost.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "readout/readout_status.h"
#include "readout/settings.h"

namespace rodeo::readout {

/// good: every fragment has all its links, no chunk is lost. incomplete: fragments without all their links, removed ones too, chunks in no
/// fragment, an input that lost data, was cut off or brought none, or a consumer that lost data. wrong: the verifying processor found bytes that
/// are not what was sent, or chunks are in no fragment and no counter.
using process::Condition;
using process::name_of;

/// So many of so many that are not as they should be.
struct Loss {
  std::string what;
  std::uint64_t lost = 0;
  std::uint64_t of = 0;  ///< 0: nobody knows
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
  std::optional<double> offered_rate_hz;  // nothing where the input does not know what was vetoed: a card, a recording
  double trigger_rate_hz = 0;
  std::optional<double> dead_time_fraction;  // likewise

  /// By the sources, where they say what was lost on the way to the input; else by the input.
  std::uint64_t chunks_sent = 0;
  bool no_data = false;  ///< the run is over, and no chunk came
  std::uint64_t chunks_built = 0;
  std::vector<NamedCounter> chunks_lost;  ///< by reason, zeros left out
  std::uint64_t lost() const;
  /// What the input found to be missing or unreadable in what it was given, by name: lost in a card, on a link, in a recording.
  std::vector<NamedCounter> input_losses() const;
  /// sent == built + every reason. False means a defect of Rodeo or of a plug-in, and the run is not to be trusted.
  bool adds_up() const { return chunks_sent == chunks_built + lost() && bytes_add_up(); }
  /// The same of the bytes of chunks, of what came to the input. True where a builder does not count them.
  bool bytes_add_up() const { return !bytes_known || bytes_in == bytes_built + bytes_lost_sum(); }
  std::uint64_t bytes_lost_sum() const;

  /// What is lost, not built whole or not written, and how much of it. A run that has some is not good.
  std::vector<Loss> losses() const;
  /// The largest of these fractions.
  double loss_fraction() const;
  /// More is lost than the configuration lets pass: a fraction above it, or, where nothing may be lost, anything at all.
  bool lost_too_much() const;

  std::string limited_by;
  std::uint64_t fragments = 0;
  std::uint64_t incomplete = 0;
  std::uint64_t events = 0;                        ///< of all ROBs: known to have been
  std::uint64_t skipped = 0;                       ///< of these, in no fragment of their ROB
  std::uint64_t without_removed = 0;               ///< fragments, complete or not, that lack links which were removed
  std::vector<NamedCounter> incomplete_by_reason;  ///< fragments, zeros left out
  std::vector<FragmentBuilder::Link> missing;      ///< links that some events were built without, the worst first
  std::vector<FragmentBuilder::Link>
      left_out;                        ///< links that some events were built without because they were removed, likewise
  std::vector<DoubtfulLink> doubtful;  ///< the worst first
  /// Chunks in fragments that are flagged because the place of their link was not proven.
  std::uint64_t in_doubt() const;

  std::uint64_t bytes_in = 0;            ///< of chunks that the input handed over
  bool bytes_known = true;               ///< all builders count them
  std::uint64_t bytes_built = 0;         ///< of these, in fragments
  std::vector<NamedCounter> bytes_lost;  ///< of lost chunks by reason, and "cut" off chunks in fragments, zeros left out
  std::uint64_t bytes_payload = 0;
  std::uint64_t bytes_written = 0;

  Latency latency;
  std::vector<std::pair<std::string, double>> cpu_seconds;  ///< by stage, upstream first
  std::uint64_t verified_chunks = 0;
  std::uint64_t mismatches = 0;
  std::vector<FragmentConsumer::File> files;

  std::vector<FragmentConsumer::Status> consumers;
  std::string input_type;  ///< advice depends on it
  std::vector<NamedCounter> input;
  double fail_on_loss = 1;  ///< the largest fraction that may be lost
};

/// Fragments that a consumer lost, left unwritten without being told to, or could not do its work on, by name.
std::vector<NamedCounter> losses_of(const FragmentConsumer::Status& consumer);

/// What a work that verifies found to be wrong, by name.
std::vector<NamedCounter> mismatches_of(const FragmentConsumer::Status& consumer);

/// `aborted`: the user would not wait for the run to drain.
RunReport make_report(const ReadoutSettings& settings, const ReadoutStatus& status, const std::string& limited_by,
                      bool aborted);

}  // namespace rodeo::readout
