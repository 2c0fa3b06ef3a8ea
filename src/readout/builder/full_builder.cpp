#include "readout/builder/full_builder.h"

#include <algorithm>
#include <bit>
#include <map>

#include <fmt/core.h>

#include "base/sentence.h"
#include "readout/builder/builder_common.h"

namespace rodeo::readout {
namespace {

// The most chunks of a link that may wait. Each of them keeps a page of the input's memory. The number is enough to follow a
// link alone (Credibility::votes()). With the trigger's list, the list may be behind by half of the window, at most by
// twice the contents of a card. `links`: number of links in the smallest group.
std::size_t most_aside(const Sequencer::Settings& rules, std::size_t links) {
  constexpr std::size_t kEnoughForMost = 128;
  constexpr std::size_t kMostListed = 8192;
  if (rules.listed) return std::max(std::min(rules.window / 2, kMostListed) / links, kEnoughForMost);
  return std::max(2 * rules.reach / std::max<std::size_t>(links, 2) + rules.step + 4, kEnoughForMost);
}

// The most entries that one worker may read the trigger's list ahead of another, in units of a worker's own book.
constexpr std::size_t kBooksApart = 4;

}  // namespace

FullBuilder::FullBuilder(const FullSettings& settings, const BuilderContext& context)
    : window_(std::max<std::uint64_t>(64, std::bit_ceil(settings.window))) {
  check_links(context, settings.workers);
  const double workers = settings.workers;
  check_memory(
      workers * static_cast<double>(settings.fragments * sizeof(FullFragment)),
      workers * static_cast<double>(std::min(settings.copies, settings.fragments)) *
          static_cast<double>(settings.copy_bytes),
      "fragments of a FULL-mode builder and their copies",
      "make readout.builder.fragments, readout.builder.copies, readout.builder.copy_size or the retention of a handler "
      "smaller, or end other programs");
  std::map<std::uint32_t, std::vector<BuilderLink>> groups;
  for (const BuilderLink& link : context.links) groups[link.group].push_back(link);
  if (settings.workers > groups.size()) {
    throw SetupError({"readout.workers",
                      fmt::format("{} workers for {} of links", settings.workers, base::counted(groups.size(), "group")),
                      "readout.builder.workers", "a group is built by one worker: use at most one worker per group"});
  }
  std::vector<std::vector<BuilderLink>> shares(settings.workers);
  std::size_t at = 0;
  for (const auto& [number, links] : groups) {
    std::vector<BuilderLink>& share = shares[at++ * settings.workers / groups.size()];
    share.insert(share.end(), links.begin(), links.end());
  }
  for (std::uint32_t index = 0; index < settings.workers; ++index) {
    WorkerEquipment equipment = equip_worker(context, shares[index]);
    std::size_t most = 0;
    std::size_t least = context.links.size();
    for (const auto& [number, links] : groups) {
      most = std::max(most, links.size());
      least = std::min(least, links.size());
    }
    Sequencer::Settings rules = sequencing(equipment.extractor->fields(), window_, settings.step_limit, most,
                                           settings.timeout, settings.trigger_list);
    rules.aside = most_aside(rules, least);
    FullWorker::Settings worker;
    worker.index = index;
    worker.timeout_ns = static_cast<std::uint64_t>(settings.timeout.count());
    worker.idle = settings.idle;
    worker.cpu = index < settings.cpus.size() ? settings.cpus[index] : -1;
    worker.thread_name = fmt::format("rodeo-full-{}", index);
    worker.waiting_chunks = rules.aside + 1;
    const FullWorker::FullSettings full{.source_id = context.source_id,
                                        .fragments = settings.fragments,
                                        .copies = std::min(settings.copies, settings.fragments),
                                        .copy_bytes = settings.copy_bytes,
                                        .copy_above = settings.copy_above};
    if (settings.trigger_list && list_ == nullptr)
      list_ = open_trigger_list(context, settings.workers, kBooksApart * rules.list_entries);
    workers_.push_back(std::make_unique<FullWorker>(worker, full, rules, shares[index], std::move(equipment), list_.get(),
                                                    *context.consumer));
  }
}

void FullBuilder::start() {
  for (const auto& worker : workers_) threads_.emplace_back([&worker = *worker] { worker.run(); });
}

void FullBuilder::join() {
  threads_.clear();
  joined_ = true;
}

void FullBuilder::give_up() {
  for (const auto& worker : workers_) worker->BuilderWorker::give_up();
  if (list_ != nullptr) list_->give_up();
}

bool FullBuilder::set_link(Fid fid, LinkState state) { return command_link(workers_, fid, state); }

void FullBuilder::share(ReaderTracks& tracks) {
  if (list_ != nullptr) return;  // the trigger's list decides
  for (const auto& worker : workers_) worker->share(tracks);
}

ChunkBytes FullBuilder::chunk_bytes() const { return chunk_bytes_of(workers_); }

std::vector<KnownPlace> FullBuilder::link_places() const { return link_places_of(workers_); }

FragmentBuilder::Status FullBuilder::status() const {
  Status status;
  status.window_events = window_;
  std::vector<FullWorker::GroupEvents> groups;
  std::vector<KnownEvents> known;
  for (const auto& worker : workers_) {
    add_worker(status, *worker, worker->fragments());
    for (const FullWorker::GroupEvents& group : worker->group_events()) {
      groups.push_back(group);
      known.push_back(group.known);
      status.first_event = std::min(status.first_event, group.known.first);
    }
  }
  // Groups carry the same events. At the end, a group with fewer events has lost some, unless all its links were removed.
  status.events = events_of_all(known);
  for (const FullWorker::GroupEvents& group : groups)
    status.skipped += group.skipped + (joined_ && group.has_links ? status.events - group.known.count : 0);
  return status;
}

void register_full_builder(Registry& registry) {
  using S = FullSettings;
  static const Settings<S> settings{
      common_builder_settings<S>(),
      setting(&S::window, "window",
              "Events of a group from its oldest gap to its newest event; rounded up to a power of two. A full "
              "window gives up its oldest gap.",
              {.minimum = 64, .maximum = 1 << 24}),
      setting(&S::step_limit, "step_limit",
              "Most chunks that a link may leave out if the next confirms it. A larger step is accepted only if the other "
              "links make it, too.",
              {.minimum = 1, .maximum = 4096}),
      setting(&S::fragments, "fragments", "Fragments of each worker that consumers can hold at once.",
              {.minimum = 16, .maximum = 1 << 24}),
      setting(&S::copies, "copies",
              "Fragments among them that have memory for a copy of their chunk. 0: chunks are never copied.",
              {.maximum = 1 << 20}),
      setting(&S::copy_bytes, "copy_size", "Largest chunk that is copied.",
              {.minimum = 64, .maximum = 1 << 26, .unit = Unit::bytes}),
      setting(&S::copy_above, "copy_above",
              "Fill of the input's memory above which chunks are copied out of it, so that consumers which keep fragments "
              "do not block it.",
              {.minimum = 0, .maximum = 1}),
  };
  registry.add_builder({.name = "full",
                        .help = "Few links with large chunks: each chunk is a fragment that refers to the input's memory; "
                                "links of a group take turns",
                        .keys = settings.keys()},
                       [](const Parameters& parameters, const BuilderContext& context) -> std::unique_ptr<FragmentBuilder> {
                         return std::make_unique<FullBuilder>(settings.read(parameters), context);
                       });
}

}  // namespace rodeo::readout
