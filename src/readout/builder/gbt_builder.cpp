#include "readout/builder/gbt_builder.h"

#include <algorithm>
#include <bit>
#include <thread>

#include <fmt/core.h>

#include "base/log.h"
#include "base/sentence.h"
#include "formats/fid.h"
#include "readout/builder/builder_common.h"

namespace rodeo::readout {
namespace {

constexpr std::uint64_t kSmallestWindow = 256;  // a batch of a run, and the gap before an epoch, fit several times
// Least memory of each link for chunks whose event is not known yet; it is not touched before it is needed. A card may
// deliver superpages of one link, a megabyte or more each, before those of another.
constexpr std::size_t kLeastWaitingBytes = 32 * 1024;
constexpr std::size_t kMostWaitingBytes = 8 * 1024 * 1024;

std::size_t buffer_bytes(const GbtSettings& settings, std::size_t links) {
  return std::max<std::size_t>(links * chunk_record_bytes(settings.chunk_bytes), 1024);
}

std::uint64_t window_of(const GbtSettings& settings) { return std::max(kSmallestWindow, std::bit_ceil(settings.window)); }

std::uint64_t buffers_of(const GbtSettings& settings) {
  const std::uint64_t window = window_of(settings);
  return settings.buffers != 0 ? settings.buffers : window + window / 4;
}

constexpr std::string_view kSmaller =
    "make readout.builder.window, readout.builder.buffers, readout.builder.chunk_size or the retention of a handler "
    "smaller, or end "
    "other programs";

const Settings<GbtSettings>& gbt_settings() {
  using S = GbtSettings;
  static const Settings<S> settings{
      common_builder_settings<S>(),
      setting(&S::window, "window",
              "Events that may be open at once, at least rate x timeout; rounded up to a power of two. A full window "
              "closes its oldest event as incomplete. Cards that one worker reads stay within half a window of "
              "each other.",
              {.minimum = 256, .maximum = 1 << 24}),
      setting(&S::chunk_bytes, "chunk_size",
              "Size of a typical chunk: an event's first buffer has room for one from each link.",
              {.minimum = 1, .maximum = 1 << 28, .unit = Unit::bytes}),
      setting(&S::buffers, "buffers",
              "Slice buffers of each worker; 0: a quarter more than the window, plus as many as an hlt_request_handler "
              "may hold. "
              "A fragment holds its buffers while consumers keep it.",
              {.maximum = 1 << 24}),
      setting(&S::max_extensions, "max_extensions",
              "Buffers that a slice may have after its first. A chunk that does not fit is cut, flagged and counted.",
              {.maximum = 64}),
      setting(&S::step_limit, "step_limit",
              "Most events that a link may leave out between two chunks. A larger step is accepted only if the other links "
              "make it, too.",
              {.minimum = 1, .maximum = 128}),
      setting(&S::sort_links, "sort_links",
              "Put the chunks of a fragment in the order of their link ids. Without it their order is not defined."),
  };
  return settings;
}

// Checks all memory before any of it is touched: slots and fragments in normal memory, slices in arenas.
void check_all_memory(const GbtSettings& settings, std::size_t links) {
  const std::uint64_t parts = std::uint64_t{settings.workers} * (1 + settings.max_extensions);
  const std::uint64_t bitmaps = 2 * sizeof(std::uint32_t) * ((links + 31) / 32 + 1);
  const std::uint64_t event = sizeof(EventSlot) + sizeof(OpenEvent) + sizeof(WorkerPart) + bitmaps;
  const std::uint64_t fragment =
      sizeof(BuiltFragment) + parts * sizeof(FragmentPart) + settings.workers * sizeof(Slice*) + bitmaps + 64;
  const double workers = settings.workers;
  const double objects = workers * (static_cast<double>(window_of(settings) * event) +
                                    static_cast<double>(buffers_of(settings) * (fragment + sizeof(Slice))));
  const double slices = workers * static_cast<double>(buffers_of(settings)) *
                        static_cast<double>(buffer_bytes(settings, settings.links_per_worker(links)));
  check_memory(objects, slices, "open events, fragments and slices", kSmaller);
}

}  // namespace

std::size_t GbtSettings::chunks_per_slice(std::size_t links, std::size_t bytes) const {
  return buffer_bytes(*this, links_per_worker(links)) / chunk_record_bytes(bytes) * (1 + max_extensions);
}

GbtBuilder::GbtBuilder(const GbtSettings& settings, const BuilderContext& context) {
  check_links(context, settings.workers);
  check_all_memory(settings, context.links.size());
  constexpr std::size_t kMostBuffer = std::size_t{1} << 31;
  if (buffer_bytes(settings, settings.links_per_worker(context.links.size())) > kMostBuffer) {
    throw SetupError({"base.memory",
                      "a slice's first buffer, with a chunk of chunk_size from each link of a worker, is above 2 GiB",
                      "readout.builder.chunk_size", "make chunk_size smaller, or use more workers"});
  }
  window_ = window_of(settings);
  progress_ = std::make_unique<WorkerProgress[]>(settings.workers);
  const std::span<WorkerProgress> progress{progress_.get(), settings.workers};
  const std::uint64_t buffers = buffers_of(settings);
  // Each open event has a buffer.
  Sequencer::Settings rules = sequencing(context.make_extractor()->fields(), std::min(window_, buffers), settings.step_limit,
                                         1, settings.timeout, settings.trigger_list);
  rules.several_threads = settings.workers > 1;
  constexpr std::size_t kListed = 1024;
  rob_ = std::make_unique<RobSequence>(rules, settings.trigger_list ? open_trigger_list(context, 1, kListed) : nullptr);
  std::vector<std::uint32_t> link_ids;
  for (const BuilderLink& link : context.links) link_ids.push_back(link.link_id);
  assembler_ = std::make_unique<Assembler>(Assembler::Settings{.source_id = context.source_id,
                                                               .link_ids = std::move(link_ids),
                                                               .workers = settings.workers,
                                                               .window = window_,
                                                               .parts_per_slice = 1 + settings.max_extensions,
                                                               .fragments_per_worker = buffers,
                                                               .trigger_list = settings.trigger_list,
                                                               .sort_links = settings.sort_links},
                                           *rob_, context.make_extractor(), *context.consumer);

  for (std::uint32_t index = 0; index < settings.workers; ++index) {
    const std::size_t first = assembler_->first_link(index);
    const auto links = context.links.subspan(first, assembler_->first_link(index + 1) - first);
    WorkerEquipment equipment = equip_worker(context, links);
    auto store = SliceStore::create({.buffer_bytes = buffer_bytes(settings, links.size()),
                                     .buffers = buffers,
                                     .max_extensions = settings.max_extensions});
    if (!store) throw SetupError(without_memory(store.error(), kSmaller));
    GbtWorker::Settings worker;
    worker.index = index;
    worker.timeout_ns = static_cast<std::uint64_t>(settings.timeout.count());
    worker.idle = settings.idle;
    worker.cpu = index < settings.cpus.size() ? settings.cpus[index] : -1;
    worker.waiting_chunks = rules.aside + 1;
    worker.waiting_bytes = std::max({std::min(rules.aside * settings.chunk_bytes, kMostWaitingBytes), kLeastWaitingBytes,
                                     std::size_t{4} * settings.chunk_bytes});
    worker.thread_name = fmt::format("rodeo-gbt-{}", index);
    workers_.push_back(std::make_unique<GbtWorker>(worker, window_, links, std::move(equipment), std::move(*store), *rob_,
                                                   *assembler_, progress));
    base::log_debug("builder of ROB {}, worker {}: {}, slices {}", formats::to_text(context.source_id), index,
                    base::counted(links.size(), "link"), workers_.back()->memory());
  }
}

void GbtBuilder::start() {
  try {
    for (const auto& worker : workers_) threads_.emplace_back([&worker = *worker] { worker.run(); });
  } catch (...) {
    // Workers wait for the end of all peers, so the peers that never started must end here.
    for (std::size_t i = threads_.size(); i < workers_.size(); ++i) {
      rob_->set_never_started(i);
      progress_[i].drained = progress_[i].ended = true;
    }
    throw;
  }
}

void GbtBuilder::join() { threads_.clear(); }

void GbtBuilder::give_up() {
  for (const auto& worker : workers_) worker->give_up();
}

bool GbtBuilder::set_link(Fid fid, LinkState state) { return command_link(workers_, fid, state); }

void GbtBuilder::share(ReaderTracks& tracks) {
  if (rob_->sequencer.settings().listed) return;  // the trigger's list decides
  for (const auto& worker : workers_) worker->share(tracks);
}

ChunkBytes GbtBuilder::chunk_bytes() const { return chunk_bytes_of(workers_); }

std::vector<KnownPlace> GbtBuilder::link_places() const { return link_places_of(workers_); }

FragmentBuilder::Status GbtBuilder::status() const {
  Status status;
  status.window_events = window_;
  for (std::uint32_t index = 0; index < workers_.size(); ++index)
    add_worker(status, *workers_[index], assembler_->counters(index));
  status.skipped = rob_->sequencer.skipped();
  status.events = status.fragments + status.skipped;
  status.first_event = assembler_->first_event();
  return status;
}

GbtSettings GbtSettings::from(const Parameters& parameters) { return gbt_settings().read(parameters); }

void register_gbt_builder(Registry& registry) {
  registry.add_builder({.name = "gbt",
                        .help = "Many small chunks of many links: each worker copies its links' chunks into slices, which "
                                "are assembled without copying",
                        .keys = gbt_settings().keys()},
                       [](const Parameters& parameters, const BuilderContext& context) -> std::unique_ptr<FragmentBuilder> {
                         return std::make_unique<GbtBuilder>(GbtSettings::from(parameters), context);
                       });
}

}  // namespace rodeo::readout
