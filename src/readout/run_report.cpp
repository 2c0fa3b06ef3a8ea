#include "readout/run_report.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <span>
#include <string_view>
#include <tuple>

#include "input/losses.h"
#include "readout/back_pressure.h"
#include "readout/known_events.h"

namespace rodeo::readout {
namespace {

std::vector<NamedCounter> without_zeros(std::vector<NamedCounter> counters) {
  std::erase_if(counters, [](const NamedCounter& counter) { return counter.value == 0; });
  return counters;
}

double per_second(std::uint64_t count, double seconds) { return seconds > 0 ? static_cast<double>(count) / seconds : 0; }

void add_robs(RunReport& report, const ReadoutStatus& status) {
  double cpu_seconds = 0;
  std::uint64_t bytes_received = 0;
  for (const RobStatus& rob : status.robs) {
    for (const NamedCounter& lost : rob.builder.lost) add_counter(report.chunks_lost, lost);
    for (const NamedCounter& reason : rob.builder.incomplete_by_reason) add_counter(report.incomplete_by_reason, reason);
    if (rob.chunk_bytes) {
      report.bytes_built += rob.chunk_bytes->built;
      bytes_received += rob.chunk_bytes->received;
      for (const NamedCounter& lost : rob.chunk_bytes->lost) add_counter(report.bytes_lost, lost);
    }
    report.bytes_known = report.bytes_known && rob.chunk_bytes.has_value();
    report.fragments += rob.builder.fragments;
    for (const FragmentBuilder::Link& link : rob.builder.links) {
      if (link.missing > 0) report.missing.push_back(link);
      if (link.left_out > 0) report.left_out.push_back(link);
    }
    for (std::size_t i = 0; i < rob.places.size(); ++i) {
      if (rob.places[i].doubtful()) report.doubtful.push_back({rob.builder.links[i], rob.places[i]});
    }
    cpu_seconds += rob.builder.cpu_seconds;
  }
  std::ranges::stable_sort(report.missing, std::greater{}, &FragmentBuilder::Link::missing);
  std::ranges::stable_sort(report.left_out, std::greater{}, &FragmentBuilder::Link::left_out);
  std::ranges::stable_sort(report.doubtful, std::greater{}, [](const DoubtfulLink& one) {
    return std::tuple(one.place.out_of_step, one.place.in_doubt, one.place.moved);
  });
  report.cpu_seconds.emplace_back("readout", cpu_seconds);
  // If the input does not count bytes, the bytes that the builders received count as sent.
  report.bytes_in = counter_value(status.input, "sent_bytes", report.bytes_known ? bytes_received : report.bytes_payload);
  const std::uint64_t cut = input::cut_bytes(status.input);
  report.bytes_in += cut;
  add_counter(report.bytes_lost, {"cut", cut});
  report.bytes_lost = without_zeros(std::move(report.bytes_lost));
  report.chunks_lost = without_zeros(std::move(report.chunks_lost));
  report.incomplete_by_reason = without_zeros(std::move(report.incomplete_by_reason));
}

/// Fragments that a command left incomplete: those of the last tenth of a second. If there are more, a link was silent.
std::uint64_t open_at_stop(const RunReport& report, const ReadoutStatus& status) {
  constexpr double kMomentSeconds = 0.1;
  if (!status.stopped || status.data_seconds <= 0) return 0;
  const std::uint64_t open = counter_value(report.incomplete_by_reason, "run_ended");
  const double rate_hz = static_cast<double>(report.fragments) / status.data_seconds;
  return static_cast<double>(open) <= kMomentSeconds * rate_hz ? open : 0;
}

/// All ROBs and groups of an input have the same events. After the run, a ROB with fewer events has lost some, unless all
/// its links are removed.
void add_skipped(RunReport& report, const ReadoutStatus& status, bool over) {
  const auto has_links = [](const RobStatus& rob) {
    return std::ranges::any_of(rob.builder.links, [](const FragmentBuilder::Link& link) {
      return link.left_out == 0 && link.state == LinkState::active;
    });
  };
  std::vector<KnownEvents> known;
  for (const RobStatus& rob : status.robs) known.push_back({rob.builder.first_event, rob.builder.events});
  const std::uint64_t events = events_of_all(known);
  for (const RobStatus& rob : status.robs) {
    report.skipped += rob.builder.skipped;
    report.events += events * rob.groups;
    if (over && has_links(rob)) report.skipped += (events - rob.builder.events) * rob.groups;
  }
}

void add_consumers(RunReport& report, const ReadoutStatus& status) {
  for (const FragmentConsumer::Status& consumer : status.consumers) {
    report.cpu_seconds.emplace_back(consumer.name, consumer.cpu_seconds);
    report.bytes_written += counter_value(consumer.counters, "bytes_written");
    report.verified_chunks += counter_value(consumer.counters, "verified_chunks");
    report.mismatches += counter_value(consumer.counters, "mismatches");
    report.files.insert(report.files.end(), consumer.files.begin(), consumer.files.end());
  }
}

/// True for a trigger at a fixed rate without any veto: buffers absorbed all back-pressure. False if a consumer left
/// fragments out.
bool kept_up(const ReadoutSettings& settings, const ReadoutStatus& status) {
  const Parameters& input = settings.input.parameters;
  const bool paced = input.has("rate") && input.rate_hz("rate") > 0;
  return paced && counter_value(status.input, "vetoed", 1) == 0 &&
         std::ranges::all_of(status.consumers, [](const auto& consumer) { return skipped_by(consumer) == 0; });
}

/// True if triggers were vetoed although no later stage was full: the input, or its source, did not get enough of the
/// machine.
bool held_back(const ReadoutStatus& status) {
  const std::uint64_t vetoed = counter_value(status.input, "vetoed");
  return vetoed > 0 && vetoed * 100 >= counter_value(status.input, "triggers") + vetoed;
}

/// A failure may be the text of an error with several lines. Here it becomes one line.
std::string in_a_line(std::string text) {
  constexpr std::string_view kPrefix = "error[";
  for (std::size_t at = text.find(kPrefix); at != std::string::npos; at = text.find(kPrefix, at)) {
    const std::size_t end = text.find("]: ", at);
    if (end == std::string::npos) break;
    text.erase(at, end + 3 - at);
  }
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n')) {
    const std::size_t next = text.find_first_not_of(" \n", at);
    text.replace(at, (next == std::string::npos ? text.size() : next) - at, next == std::string::npos ? "" : "; ");
  }
  return text;
}

constexpr std::string_view kCutOff = "unwritten_aborted";
constexpr std::string_view kUnprocessed = "unprocessed_aborted";
constexpr std::string_view kGivenUp = "given_up";

/// Counters of consumers for fragments that did not pass them whole. The unwritten_ counters belong to them, too.
constexpr std::array<std::string_view, 7> kConsumerLosses{"exceptions", "work_threw", "not_taken", "undelivered",
                                                          "uncleared",  kGivenUp,     kUnprocessed};

/// Counters of verifying works for faults.
constexpr std::array<std::string_view, 6> kMismatches{"mismatches",     "wrong_chunks",     "duplicate_links",
                                                      "wrong_triggers", "broken_fragments", "missing_but_present"};

/// The non-zero counters whose names are wanted.
template <typename Wanted>
std::vector<NamedCounter> counters_if(const std::vector<NamedCounter>& counters, Wanted&& wanted) {
  std::vector<NamedCounter> out;
  std::ranges::copy_if(counters, std::back_inserter(out),
                       [&](const NamedCounter& counter) { return counter.value > 0 && wanted(counter.name); });
  return out;
}

auto one_of(std::span<const std::string_view> names) {
  return [names](std::string_view name) { return std::ranges::find(names, name) != names.end(); };
}

bool is_unwritten(std::string_view counter) { return counter.starts_with("unwritten_"); }
bool is_unpublished(std::string_view counter) { return counter.starts_with("unpublished_"); }
/// A share or limit that the configuration asks for is not a loss.
bool is_left_out(std::string_view counter) { return counter.starts_with("unwritten_beyond_"); }

/// Adds the losses of a run that was cut off: fragments without a result from a consumer were still in the consumer or
/// before it. Events count as written when their file is closed; `rodeo data recover` finds more.
void count_what_was_cut_off(RunReport& report) {
  for (FragmentConsumer::Status& consumer : report.consumers) {
    const bool writes = find_counter(consumer.counters, "events_written") != nullptr;
    // A consumer without a queue, which delays no stage.
    if (!writes && find_counter(consumer.counters, "exceptions") == nullptr) continue;
    std::uint64_t done = writes ? 0 : consumer.consumed;
    for (const FragmentConsumer::File& file : consumer.files) done += writes ? file.events : 0;
    if (writes) base::counter_named(consumer.counters, "events_written") = done;
    for (const NamedCounter& counter : consumer.counters)
      done += is_unwritten(counter.name) || is_unpublished(counter.name) || counter.name == kGivenUp ? counter.value : 0;
    base::counter_named(consumer.counters, writes ? kCutOff : kUnprocessed) +=
        report.fragments - std::min(report.fragments, done);
  }
}

/// During a run, no counter has the data in transit yet, so sums are checked only at its end.
Condition condition_of(const RunReport& report, bool over, bool aborted) {
  if (aborted || !report.failure.empty()) return Condition::aborted;
  if (report.mismatches > 0 || (over && !report.adds_up())) return Condition::wrong;
  return report.losses().empty() ? Condition::good : Condition::incomplete;
}

}  // namespace

std::uint64_t RunReport::lost() const {
  std::uint64_t sum = 0;
  for (const NamedCounter& reason : chunks_lost) sum += reason.value;
  return sum;
}

std::uint64_t RunReport::bytes_lost_sum() const {
  std::uint64_t sum = 0;
  for (const NamedCounter& reason : bytes_lost) sum += reason.value;
  return sum;
}

std::uint64_t RunReport::in_doubt() const {
  std::uint64_t sum = 0;
  for (const DoubtfulLink& one : doubtful) sum += one.place.in_doubt;
  return sum;
}

std::vector<NamedCounter> RunReport::input_losses() const { return counters_if(input, input::is_loss); }

std::vector<NamedCounter> losses_of(const FragmentConsumer::Status& consumer) {
  return counters_if(consumer.counters, [](std::string_view name) {
    return (is_unwritten(name) && !is_left_out(name)) || one_of(kConsumerLosses)(name);
  });
}

std::vector<NamedCounter> mismatches_of(const FragmentConsumer::Status& consumer) {
  return counters_if(consumer.counters, one_of(kMismatches));
}

std::vector<Loss> RunReport::losses() const {
  std::vector<Loss> out;
  const auto add = [&](std::string what, std::uint64_t lost, std::uint64_t of) {
    if (lost > 0) out.push_back({std::move(what), lost, of});
  };
  add("chunks lost", lost(), chunks_sent);
  if (condition == Condition::wrong || condition == Condition::aborted)  // otherwise these data may be in transit
    add("chunks neither built nor counted as lost", chunks_sent - std::min(chunks_sent, chunks_built + lost()), chunks_sent);
  add("fragments incomplete", incomplete - std::min(incomplete, open_at_stop), fragments);
  add("fragments lacking removed links", without_removed, fragments);
  add("events in no fragment", skipped, events);
  for (const FragmentConsumer::Status& consumer : consumers) {
    std::uint64_t unwritten = 0;
    for (const NamedCounter& counter : losses_of(consumer)) {
      if (is_unwritten(counter.name)) {
        unwritten += counter.value;
      } else {
        add(counter.name + " (" + consumer.name + ")", counter.value,
            consumer.consumed + (counter.name == kUnprocessed || counter.name == kGivenUp ? counter.value : 0));
      }
    }
    // Fragments that were skipped, or that still waited before the queue at the cut, are not in `consumed`.
    add("events not written by " + consumer.name, unwritten,
        std::max(consumer.consumed + skipped_by(consumer), unwritten + counter_value(consumer.counters, "events_written")));
  }
  for (const NamedCounter& counter : input_losses()) add(counter.name, counter.value, 0);
  add("input that brought nothing", no_data ? 1 : 0, 1);
  return out;
}

double RunReport::loss_fraction() const {
  double most = 0;
  for (const Loss& loss : losses()) most = std::max(most, loss.fraction());
  return most;
}

bool RunReport::lost_too_much() const { return loss_fraction() > fail_on_loss || (fail_on_loss == 0 && !losses().empty()); }

RunReport make_report(const ReadoutSettings& settings, const ReadoutStatus& status, const std::string& limited_by,
                      bool aborted) {
  RunReport report;
  report.name = settings.name;
  report.run_number = settings.run.run_number;
  report.seconds = status.seconds;
  report.unix_start = status.unix_start;
  report.failure = in_a_line(status.failure);
  report.links = status.links();
  report.fail_on_loss = settings.fail_on_loss;
  report.limited_by = kept_up(settings, status) ? kLimitedByNothing : limited_by;
  if (report.limited_by == kLimitedByNothing && held_back(status)) report.limited_by = kLimitedByInput;
  report.incomplete = status.incomplete();
  report.without_removed = status.without_removed();
  const std::string& input = settings.input.type;
  report.sent_by_input = input == "generator" || input == "file" || input == "event_file";
  report.chunks_built = status.chunks_built();
  // If the input does not count chunks, the chunks that the builders received count as sent.
  report.chunks_sent = counter_value(status.input, "sent", status.chunks_received());
  const std::uint64_t triggers = counter_value(status.input, "triggers", status.events());
  // Without a count of vetoed triggers, the time before the first event and after the last one is no time of triggers.
  const bool only_events = find_counter(status.input, "vetoed") == nullptr && status.data_seconds > 0;
  const double trigger_seconds = status.trigger_seconds > 0 ? status.trigger_seconds
                                 : only_events              ? std::min(status.data_seconds, status.seconds)
                                                            : status.seconds;
  report.trigger_seconds = trigger_seconds;
  report.trigger_rate_hz = per_second(triggers, trigger_seconds);
  if (const NamedCounter* const vetoed = find_counter(status.input, "vetoed")) {
    const std::uint64_t offered = triggers + vetoed->value;
    report.offered_rate_hz = per_second(offered, trigger_seconds);
    report.dead_time_fraction = offered > 0 ? static_cast<double>(vetoed->value) / static_cast<double>(offered) : 0;
  }
  report.events_built = status.events();
  report.bytes_payload = status.payload_bytes();
  report.latency = status.latency;
  report.input = status.input;
  report.consumers = status.consumers;
  // A card, or an emulator in another process, uses no CPU time of this process.
  const bool emulates = input == "generator" || input == "card";
  if (status.input_cpu_seconds > 0)
    report.cpu_seconds.emplace_back(emulates ? "emulator" : "input", status.input_cpu_seconds);
  const bool over = status.phase == Phase::stopped;
  add_robs(report, status);
  report.open_at_stop = open_at_stop(report, status);
  add_skipped(report, status, over);
  add_consumers(report, status);
  if (aborted) count_what_was_cut_off(report);
  report.input_type = settings.input.type;
  report.no_data = over && report.chunks_sent == 0;
  if (report.no_data && report.limited_by == kLimitedByNothing) report.limited_by = kLimitedByInput;
  report.condition = condition_of(report, over, aborted);
  return report;
}

}  // namespace rodeo::readout
