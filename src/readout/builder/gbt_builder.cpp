#include "readout/builder/gbt_builder.h"

#include <algorithm>
#include <bit>
#include <set>
#include <stdexcept>
#include <thread>

#include <fmt/core.h>

#include "base/log.h"
#include "readout/extractor/field_extractor.h"

namespace rodeo::readout {
namespace {

constexpr std::uint64_t kSmallestWindow = 256;  // a batch of a run and the gap before an epoch fit several times
constexpr std::uint64_t kLargestGap = 256;

void check(const GbtSettings& settings, const BuilderContext& context) {
  if (context.links.empty()) {
    throw SetupError({"readout.no_links", "a ROB has no links", "", "give readout.rob.links, or an input that has some"});
  }
  if (context.links.size() > 65534) {
    throw SetupError({"readout.too_many_links", fmt::format("a ROB has {} links; 65534 is the most", context.links.size())});
  }
  std::set<std::uint32_t> ids;
  for (const BuilderLink& link : context.links) {
    if (!ids.insert(link.link_id).second) {
      throw SetupError({"readout.duplicate_link", fmt::format("link id {:#010x} (FID {:#018x}) stands twice in one ROB", link.link_id, link.fid.value),
                        "", "give each link of the ROB an id of its own"});
    }
  }
  if (settings.workers == 0 || settings.workers > context.links.size()) {
    throw SetupError({"readout.workers", fmt::format("{} workers for {} links", settings.workers, context.links.size()), "readout.builder.workers",
                      "use at least one worker and at most one per link"});
  }
}

}  // namespace

GbtBuilder::GbtBuilder(const GbtSettings& settings, const BuilderContext& context) {
  check(settings, context);
  window_ = std::max(kSmallestWindow, std::bit_ceil(settings.window));
  // A narrow counter must not take the gap for a round of its own.
  const TriggerFields fields = context.make_extractor()->fields();
  const std::uint64_t gap = std::min({window_ / 4, kLargestGap, (std::uint64_t{1} << fields.l1id_bits) / 4});
  progress_ = std::make_unique<WorkerProgress[]>(settings.workers);
  const std::span<WorkerProgress> progress{progress_.get(), settings.workers};
  epochs_ = std::make_unique<EpochMap>(gap, progress, [this](Sequence first) { assembler_->start(first); });
  const std::uint64_t buffers = settings.buffers != 0 ? settings.buffers : window_ + window_ / 4;
  assembler_ = std::make_unique<Assembler>(Assembler::Settings{.source_id = context.source_id,
                                                               .workers = settings.workers,
                                                               .window = window_,
                                                               .parts_per_slice = 1 + settings.max_extensions,
                                                               .fragments_per_worker = buffers,
                                                               .trigger_list = settings.trigger_list},
                                           *context.consumer);

  const std::size_t per_worker = (context.links.size() + settings.workers - 1) / settings.workers;
  const std::size_t record = record_bytes(settings.chunk_bytes);
  for (std::uint32_t index = 0; index < settings.workers; ++index) {
    const std::size_t first = index * per_worker;
    const auto links = context.links.subspan(first, std::min(per_worker, context.links.size() - first));
    std::vector<Fid> fids;
    for (const BuilderLink& link : links) fids.push_back(link.fid);
    GbtWorker::Equipment equipment;
    equipment.stream = context.input->open(fids);
    if (settings.trigger_list) {
      equipment.trigger_list = context.input->open_trigger_list();
      if (equipment.trigger_list == nullptr) {
        throw SetupError({"readout.no_trigger_list", "the input carries no list of triggers (TTC link)", "readout.builder.trigger_list",
                          "use an input that does, or set trigger_list = false"});
      }
      equipment.trigger_extractor = make_ttc_extractor();
    }
    equipment.extractor = context.make_extractor();
    if (context.make_checker) equipment.checker = context.make_checker();
    auto store = SliceStore::create({.buffer_bytes = std::max<std::size_t>(links.size() * record, 1024),
                                     .buffers = buffers,
                                     .max_extensions = settings.max_extensions});
    if (!store) throw SetupError(store.error());
    equipment.store = std::move(*store);
    GbtWorker::Settings worker;
    worker.index = index;
    worker.window = window_;
    worker.timeout_ns = static_cast<std::uint64_t>(settings.timeout.count());
    worker.idle = settings.idle;
    worker.cpu = index < settings.cpus.size() ? settings.cpus[index] : -1;
    worker.step_limit = settings.step_limit;
    worker.held_chunk_bytes = settings.largest_held_chunk;
    worker.thread_name = fmt::format("rodeo-gbt-{}", index);
    workers_.push_back(std::make_unique<GbtWorker>(worker, links, std::move(equipment), *epochs_, *assembler_, progress));
    base::log_debug("builder of ROB {:#010x}, worker {}: {} links, slices {}", context.source_id.value, index, links.size(),
                    workers_.back()->memory());
  }
}

GbtBuilder::~GbtBuilder() {
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void GbtBuilder::start() {
  for (const auto& worker : workers_) threads_.emplace_back([&worker = *worker] { worker.run(); });
}

void GbtBuilder::join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

bool GbtBuilder::set_link(Fid fid, LinkState state) {
  for (const auto& worker : workers_) {
    for (std::size_t i = 0; i < worker->links().size(); ++i) {
      if (worker->links()[i].fid != fid) continue;
      worker->command(i, state);
      return true;
    }
  }
  return false;
}

FragmentBuilder::Status GbtBuilder::status() const {
  Status status;
  status.window_events = window_;
  const auto named = [](std::vector<NamedCounter>& list, std::string_view name, std::uint64_t value) {
    for (NamedCounter& counter : list) {
      if (counter.name == name) {
        counter.value += value;
        return;
      }
    }
    list.push_back({std::string(name), value});
  };
  for (std::uint32_t index = 0; index < workers_.size(); ++index) {
    const GbtWorker& worker = *workers_[index];
    const FragmentCounters& fragments = assembler_->counters(index);
    status.fragments += fragments.read(FragmentCounter::built);
    status.incomplete += fragments.read(FragmentCounter::incomplete);
    status.chunks_built += fragments.read(FragmentCounter::chunks);
    status.payload_bytes += fragments.read(FragmentCounter::payload_bytes);
    for (std::size_t i = static_cast<std::size_t>(FragmentCounter::timeout); i < FragmentCounters::kCount; ++i) {
      named(status.incomplete_by_reason, kFragmentInfo[i].name, fragments.read(static_cast<FragmentCounter>(i)));
    }
    for (std::size_t i = 0; i < LostCounters::kCount; ++i) {
      named(status.lost, kLostInfo[i].name, worker.lost(static_cast<LostCounter>(i)));
    }
    status.open_events += worker.open_events();
    status.pool_fill = std::max(status.pool_fill, worker.pool_fill());
    status.held_by_consumer = status.held_by_consumer || worker.held();
    status.cpu_seconds += worker.cpu_seconds();
    for (std::size_t i = 0; i < worker.links().size(); ++i) {
      status.links.push_back(worker.link_status(i));
      status.chunks_received += status.links.back().chunks;
    }
  }
  return status;
}

void register_gbt_builder(Registry& registry) {
  registry.add_builder(
      {.name = "gbt",
       .help = "Many small chunks of many links: each worker copies its links' chunks into slices, which are assembled without copying",
       .keys =
           {{.name = "timeout", .type = KeyType::duration, .fallback = "10ms", .help = "Age at which an open event is closed without the links that have not delivered. It runs on the input's clock, only while the input is drained.", .minimum = 1000},
            {.name = "workers", .type = KeyType::integer, .fallback = "1", .help = "Threads that read and build; links are split evenly over them.", .minimum = 1, .maximum = 256},
            {.name = "window", .type = KeyType::integer, .fallback = "16384", .help = "Events that may be open at once, at least rate x timeout; rounded up to a power of two. A full window closes its oldest event as incomplete.", .minimum = 256, .maximum = 1 << 24},
            {.name = "chunk_size", .type = KeyType::size, .fallback = "64", .help = "Size of a typical chunk: an event's first buffer has room for one from each link.", .minimum = 1, .maximum = 65536},
            {.name = "buffers", .type = KeyType::integer, .fallback = "0", .help = "Slice buffers of each worker; 0 takes the window and a quarter more. Fragments that consumers keep hold theirs.", .minimum = 0, .maximum = 1 << 24},
            {.name = "max_extensions", .type = KeyType::integer, .fallback = "4", .help = "Buffers that a slice may take besides its first; what does not fit is cut, flagged and counted.", .minimum = 0, .maximum = 64},
            {.name = "step_limit", .type = KeyType::integer, .fallback = "8", .help = "Events that a link may skip and be believed at once; a longer jump wants the next chunk to confirm it.", .minimum = 1, .maximum = 128},
            {.name = "idle", .type = KeyType::choice, .fallback = "sleep", .help = "What a worker does when there is nothing to do: sleep is kind to the machine, spin gives the lowest latency.", .choices = {"sleep", "yield", "spin"}},
            {.name = "cpus", .type = KeyType::text_list, .fallback = "[]", .help = "CPUs that the workers are pinned to, one each; empty leaves them free."},
            {.name = "trigger_list", .type = KeyType::boolean, .fallback = "false", .help = "Align to the trigger's own list of L1 ids (TTC link): an event that no link delivered is then still built, flagged, empty."}}},
      [](const Parameters& parameters, const BuilderContext& context) -> std::unique_ptr<FragmentBuilder> {
        GbtSettings settings;
        settings.workers = static_cast<std::uint32_t>(parameters.integer("workers"));
        settings.timeout = parameters.duration("timeout");
        settings.window = static_cast<std::uint64_t>(parameters.integer("window"));
        settings.chunk_bytes = static_cast<std::uint32_t>(parameters.bytes("chunk_size"));
        settings.buffers = static_cast<std::uint64_t>(parameters.integer("buffers"));
        settings.max_extensions = static_cast<std::uint32_t>(parameters.integer("max_extensions"));
        settings.step_limit = static_cast<std::uint32_t>(parameters.integer("step_limit"));
        const std::string& idle = parameters.text("idle");
        settings.idle = idle == "spin" ? base::IdlePolicy::spin : idle == "yield" ? base::IdlePolicy::yield : base::IdlePolicy::sleep;
        for (const std::string& cpu : parameters.list("cpus")) settings.cpus.push_back(std::stoi(cpu));
        settings.trigger_list = parameters.boolean("trigger_list");
        return std::make_unique<GbtBuilder>(settings, context);
      });
}

}  // namespace rodeo::readout
