#include "readout/consumer/event_sampler.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/runtime_dir.h"
#include "readout/consumer/end_of_list.h"
#include "rodeo/settings.h"

namespace rodeo::readout {
namespace {

std::filesystem::path socket_of(const std::string& endpoint) {
  Result<std::filesystem::path> path = base::runtime_socket(endpoint + ".events");
  if (!path) throw SetupError(path.error());
  return *path;
}

std::uint64_t unix_now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count());
}

}  // namespace

EventSampler::EventSampler(SamplerSettings settings)
    : settings_(std::move(settings)),
      frame_(settings_.frame),
      copies_(settings_.samples, settings_.max_payload_bytes),
      queue_(settings_.samples),
      server_(socket_of(settings_.endpoint)),
      share_({.max_rate_hz = settings_.max_rate_hz}) {
  next_ = end_of_list();
}

EventSampler::~EventSampler() { EventSampler::stop(); }

void EventSampler::link(FragmentConsumer* next) { next_ = next != nullptr ? next : end_of_list(); }

void EventSampler::insert(FragmentPtr fragment) {
  if (watched_.load(std::memory_order_relaxed) && wanted(*fragment)) {
    if (FragmentPtr copy = copies_.copy(*fragment); copy && queue_.try_push(std::move(copy))) {
      taken_.fetch_add(1, std::memory_order_relaxed);
    } else if (fragment->payload_bytes() > copies_.payload_bytes()) {
      skipped_too_large_.fetch_add(1, std::memory_order_relaxed);
    } else {
      skipped_full_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  next_->insert(std::move(fragment));
}

bool EventSampler::wanted(const Fragment& fragment) {
  if (settings_.status_mask != 0 && (fragment.status & settings_.status_mask) == 0) return false;
  const auto& types = settings_.trigger_types;
  if (!types.empty() && std::find(types.begin(), types.end(), fragment.trigger_type) == types.end()) return false;
  if (settings_.prescale > 1 && matches_.fetch_add(1, std::memory_order_relaxed) % settings_.prescale != 0) return false;
  return share_.decide(fragment, 0) == ShareVerdict::accepted;
}

void EventSampler::set_run(const RunInfo& run) {
  formats::EventFrameSettings frame = settings_.frame;
  apply_run(frame, run);
  frame_ = formats::EventFrame(std::move(frame));
}

void EventSampler::start() {
  thread_ = std::thread([this] { run(); });
}

void EventSampler::stop() {
  ending_.store(true, std::memory_order_release);
  if (thread_.joinable()) thread_.join();
}

void EventSampler::run() {
  cpu_.attach();
  base::set_thread_name(settings_.name);
  FragmentPtr fragment;
  for (;;) {
    const bool ending = ending_.load(std::memory_order_acquire);
    const std::uint64_t now_ns = base::steady_now_ns();
    bool sent = false;
    while (queue_.try_pop(fragment)) {
      send(*fragment, now_ns);
      fragment.reset();
      sent = true;
    }
    if (ending) break;
    // Builders do not wake the sampler: a reader gets an event a few milliseconds late, and an idle sampler looks for
    // readers only ten times a second.
    server_.serve(sent ? 0 : server_.readers() > 0 ? 2 : 100, now_ns);
    watched_.store(server_.readers() > 0, std::memory_order_relaxed);
    publish();
  }
  watched_.store(false, std::memory_order_relaxed);
  server_.close_readers();
  publish();
  cpu_.detach();
}

void EventSampler::send(const Fragment& fragment, std::uint64_t now_ns) {
  const std::uint64_t unix_ns = unix_now_ns();
  frame_.store(fragment, event_stamp(fragment), ends_);
  event_.assign(ends_.head.begin(), ends_.head.end());
  for (const FragmentPart& part : fragment.all_parts()) event_.insert(event_.end(), part.data, part.data + part.size);
  event_.insert(event_.end(), ends_.tail.begin(), ends_.tail.end());
  server_.send({.sequence = fragment.sequence, .unix_ns = unix_ns, .ids = settings_.ids}, event_, now_ns);
}

void EventSampler::publish() {
  const SampleServer::Counters& counters = server_.counters();
  readers_.store(server_.readers(), std::memory_order_relaxed);
  readers_seen_.store(counters.readers_seen, std::memory_order_relaxed);
  readers_dropped_.store(counters.readers_dropped, std::memory_order_relaxed);
  sent_.store(counters.sent, std::memory_order_relaxed);
  missed_.store(counters.missed, std::memory_order_relaxed);
}

FragmentConsumer::Status EventSampler::status() const {
  const auto get = [](const std::atomic<std::uint64_t>& cell) { return cell.load(std::memory_order_relaxed); };
  Status out;
  out.name = settings_.name;
  out.queue_fill = static_cast<double>(queue_.size()) / static_cast<double>(queue_.capacity());
  out.consumed = get(taken_);
  out.cpu_seconds = cpu_.seconds();
  out.counters = {{"samples_taken", get(taken_)},
                  {"samples_skipped_queue_full", get(skipped_full_)},
                  {"samples_skipped_too_large", get(skipped_too_large_)},
                  {"samples_sent", get(sent_)},
                  {"samples_missed_by_readers", get(missed_)},
                  {"readers", get(readers_)},
                  {"readers_seen", get(readers_seen_)},
                  {"readers_dropped", get(readers_dropped_)}};
  return out;
}

namespace {

/// The values of the configuration, where an endpoint may be left out.
struct SamplerKeys : SamplerSettings {
  SamplerKeys() { endpoint.clear(); }
};

const Settings<SamplerKeys>& sampler_settings() {
  using S = SamplerSettings;
  static const Settings<SamplerKeys> settings{
      setting(&S::endpoint, "endpoint",
              "Readers connect to this name (`rodeo events tail --name`). Empty: the readout's name."),
      setting(&S::prescale, "prescale", "Samples one in this many of the matching fragments.", {.minimum = 1}),
      setting(&S::max_rate_hz, "max_rate", "Most samples in a second. 0: no limit.", {.minimum = 0, .unit = Unit::hertz}),
      setting(&S::status_mask, "status_mask",
              "Only fragments with one of these status bits: 1 BCID, 2 L1 id, 4 time-out, 8 corruption, 16 "
              "overflow. 0: any."),
      setting(&S::trigger_types, "trigger_types", "Only these trigger types (130, \"0x82\"). Empty: any."),
      setting(&S::max_payload_bytes, "max_payload", "Largest payload that is sampled.",
              {.minimum = 64, .maximum = 1 << 30, .unit = Unit::bytes}),
      setting(&S::samples, "samples", "Samples that may wait to be sent.", {.minimum = 2, .maximum = 65536}),
  };
  return settings;
}

}  // namespace

std::vector<Key> EventSampler::keys() { return sampler_settings().keys(); }

std::unique_ptr<FragmentConsumer> EventSampler::create(const Parameters& parameters, const RunInfo& run) {
  SamplerKeys keys = sampler_settings().read(parameters);
  if (parameters.has("name")) keys.name = parameters.text("name");
  if (keys.endpoint.empty()) keys.endpoint = run.readout_name;
  keys.frame = event_frame_settings(run);
  keys.ids = run.ids;
  return std::make_unique<EventSampler>(std::move(keys));
}

}  // namespace rodeo::readout
