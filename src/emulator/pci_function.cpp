#include "emulator/pci_function.h"

#include <sched.h>

#include <chrono>
#include <cstring>
#include <utility>

#include "base/pin.h"

namespace rodeo::emulator {
namespace {

constexpr std::chrono::milliseconds kRest{50};  // longest sleep; timed events (a link that comes back) are at most this late
// Longest sleep if registers lie in memory that a client may have mapped.
constexpr std::chrono::milliseconds kMemoryRest{1};

}  // namespace

PciFunction::PciFunction(Identity identity, EmulatedCardSettings settings, const card_registers::RegisterMap& map,
                         std::span<const card_registers::BarSize> bars, unsigned copies)
    : settings_(std::move(settings)),
      identity_(std::move(identity)),
      regions_(kRegions),
      config_(identity_.pci, bars, {.max_payload = settings_.max_payload, .lanes = settings_.lanes}),
      registers_(map, copies) {
  for (const auto& bar : bars) regions_[bar.bar].bytes = bar.bytes;
  regions_[kConfigRegion].bytes = ConfigSpace::kBytes;
  copy_configuration();
}

PciFunction::~PciFunction() = default;

/// Copies the values that the DMA thread needs.
void PciFunction::copy_configuration() {
  bus_master_.store(config_.bus_master(), std::memory_order_relaxed);
  max_payload_.store(config_.max_payload(), std::memory_order_relaxed);
  max_read_request_.store(config_.max_read_request(), std::memory_order_relaxed);
}

std::uint32_t PciFunction::ascii_serial() const {
  std::uint32_t word = 0;
  unsigned left = settings_.serial;
  for (int digit = 3; digit >= 0; --digit, left /= 10) word |= ('0' + left % 10) << (8 * digit);
  return word;
}

void PciFunction::start() {
  registers_.keep();
  if (identity_.directory.empty()) return;
  server_ = std::make_unique<Server>(
      *this, maps_, interrupts_,
      Server::Options{.directory = identity_.directory, .address = identity_.address, .idle = identity_.idle});
  thread_ = std::jthread([this] { run(); });
}

void PciFunction::stop() {
  stop_ = true;
  knock();
  if (thread_.joinable()) thread_.join();
  server_.reset();
}

void PciFunction::finish() {
  stop_ = true;
  knock();
  if (thread_.joinable()) thread_.join();
  leave();
}

/// Ends DMA for good; other parts do not wait for this function any more.
void PciFunction::leave() {
  const auto paused = pause();
  const std::lock_guard lock(mutex_);
  gone_ = true;
  cut_off();
}

std::unique_ptr<VfioUserSession> PciFunction::talk() {
  return std::make_unique<VfioUserSession>(next_talk_++, *this, maps_, interrupts_);
}

void PciFunction::turn() {
  const std::lock_guard lock(work_mutex_);
  if (!gone_) (void)work();
}

void PciFunction::run() {
  base::set_thread_name("dma");
  base::pin_thread_or_warn(identity_.cpu, "the DMA thread of " + identity_.address);
  base::Backoff backoff(identity_.idle);
  while (!stop_.load(std::memory_order_relaxed)) {
    while (work_waiting_.load(std::memory_order_relaxed) > 0 && !stop_.load(std::memory_order_relaxed)) ::sched_yield();
    const unsigned seen = knocks_.load();
    bool worked = false, is_idle = true;
    {
      const std::lock_guard lock(work_mutex_);
      worked = !gone_ && work();
      is_idle = gone_ || (!worked && this->is_idle());
    }
    if (worked) {
      backoff.reset();
    } else if (is_idle && identity_.idle == base::IdlePolicy::sleep) {
      rest(seen);
    } else {
      backoff.idle();
    }
  }
}

/// Sleeps until the next knock(); returns at once if there was one after `seen`.
void PciFunction::rest(unsigned seen) {
  const bool in_memory = regions_[0].fd >= 0 && server_->clients() > 0;
  std::unique_lock lock(rest_mutex_);
  resting_ = true;
  rest_.wait_for(lock, in_memory ? kMemoryRest : kRest, [&] { return knocks_.load() != seen; });
  resting_ = false;
}

/// Wakes the DMA thread after a change.
void PciFunction::knock() {
  knocks_.fetch_add(1);
  if (!resting_) return;
  const std::lock_guard lock(rest_mutex_);
  rest_.notify_one();
}

bool PciFunction::bar_memory(unsigned, std::uint64_t, std::span<std::byte>, bool) { return false; }

void PciFunction::read(ClientId client, unsigned region, std::uint64_t offset, std::span<std::byte> bytes) {
  if (region == kConfigRegion) {
    const std::lock_guard lock(mutex_);
    return config_.read(offset, bytes);
  }
  if (bar_memory(region, offset, bytes, false)) return;
  const std::lock_guard lock(mutex_);
  current_client_ = client;
  const std::uint64_t value = registers_.read(region, offset, bytes.size());
  std::memcpy(bytes.data(), &value, bytes.size());
}

void PciFunction::write(ClientId client, unsigned region, std::uint64_t offset, std::span<const std::byte> bytes) {
  if (region == kConfigRegion) {
    bool wants_reset = false;
    {
      const std::lock_guard lock(mutex_);
      wants_reset = config_.write(offset, bytes);
      copy_configuration();
    }
    knock();
    if (wants_reset) reset();
    return;
  }
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data(), bytes.size());
  if (bar_memory(region, offset, std::as_writable_bytes(std::span(&value, 1)).first(bytes.size()), true)) return knock();
  std::function<void()> after;
  {
    const std::lock_guard lock(mutex_);
    current_client_ = client;
    registers_.write(region, offset, bytes.size(), value);
    after = std::exchange(after_write_, nullptr);
  }
  if (after) {
    const auto paused = pause();
    const std::lock_guard lock(mutex_);
    after();
  }
  knock();
}

/// The DMA thread retakes its lock as soon as it has released it. A waiting caller announces itself, and the thread waits.
std::unique_lock<std::mutex> PciFunction::pause() {
  work_waiting_.fetch_add(1);
  std::unique_lock lock(work_mutex_);
  work_waiting_.fetch_sub(1);
  return lock;
}

void PciFunction::reset() {
  const auto paused = pause();
  reset_locked();
}

void PciFunction::reset_locked() {
  const std::lock_guard lock(mutex_);
  config_.reset();
  copy_configuration();
  registers_.restore();
  reset_card();
}

void PciFunction::left(ClientId client) {
  if (stop_.load()) return;  // the card itself ends the work
  {
    const auto paused = pause();
    const std::lock_guard lock(mutex_);
    if (gone_ || !client_left(client)) return;
  }
  readers_lost_.fetch_add(1, std::memory_order_relaxed);
  knock();
}

bool PciFunction::inject(const Fault& fault) {
  switch (fault.kind) {
    case FaultKind::card_reset: reset(); return true;
    case FaultKind::removal:
      removed_ = true;
      leave();  // leave before the clients are disconnected: their last accesses must not restart anything
      if (server_) server_->unplug();
      return true;
    case FaultKind::replug:
      if (stop_) return false;
      reset();
      if (server_) server_->plug();
      {
        const auto paused = pause();
        gone_ = false;
      }
      removed_ = false;
      knock();
      return true;
    default: break;
  }
  bool done = false;
  {
    const auto paused = pause();
    const std::lock_guard lock(mutex_);
    done = inject_card(fault);
  }
  knock();
  return done;
}

FunctionReport PciFunction::report() const {
  FunctionReport report{
      .name = identity_.name, .type = identity_.type, .address = identity_.address, .endpoint = identity_.endpoint};
  report.running = running_;
  report.bytes = bytes_;
  report_card(report);
  report.add("dma_faults", dma_faults_);
  if (server_) {
    report.clients = server_->clients();
    report.requests = server_->read(ServerCounter::requests);
    for (const ServerCounter counter : {ServerCounter::errors, ServerCounter::hung_up})
      report.add(kServerCounters[static_cast<std::size_t>(counter)].name, server_->read(counter));
  }
  report.add("readers_lost", readers_lost_);
  report.add("maps_lost", maps_.lost_maps());
  report.add("interrupts", interrupts_.raised());
  const std::lock_guard lock(mutex_);
  report.add("unknown_registers", registers_.unknown());
  return report;
}

}  // namespace rodeo::emulator
