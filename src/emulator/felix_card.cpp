#include "emulator/felix_card.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "emulator/copies_done.h"

namespace rodeo::emulator {
namespace {

namespace felix = card_registers::felix;

constexpr std::uint64_t kDone = felix::kDone.mask();
constexpr unsigned kBusyVector = 7;
// Time limit for the end of a channel, counted in this process's own running time. A driver waits for two seconds.
constexpr std::uint64_t kLongestEndNs = 1'000'000'000;
constexpr std::chrono::nanoseconds kTimeoutOfReadouts = std::chrono::milliseconds{10};  // default of readout.builder.timeout

}  // namespace

FelixCard::FelixCard(Identity identity, EmulatedCardSettings settings, std::unique_ptr<trigger::TriggerSource> triggers)
    : PciFunction(std::move(identity), std::move(settings), felix::kMap, felix::kBars),
      source_(settings_.felix),
      triggers_(std::move(triggers)) {
  if (settings_.flush >= kTimeoutOfReadouts)
    base::log_warning(
        "card {}: blocks that are not full are sent after {}: a readout loses good data unless its "
        "readout.builder.timeout is longer "
        "(default: {})",
        this->identity().name, base::format_duration(settings_.flush), base::format_duration(kTimeoutOfReadouts));
  const std::size_t bytes = region(0).bytes;
  bar0_fd_.reset(::memfd_create("rodeo-felix-bar0", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!bar0_fd_ || ::ftruncate(bar0_fd_.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(bar0_fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    throw SetupError({"base.resources", std::string("cannot make the memory of BAR 0: ") + std::strerror(errno)});
  }
  bar0_ = {::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bar0_fd_.get(), 0), bytes};
  if (!bar0_) {
    throw SetupError({"base.resources", std::string("cannot map the memory of BAR 0: ") + std::strerror(errno)});
  }
  region_to_change(0).fd = bar0_fd_.get();
  region_to_change(0).mappable = {{0, bytes}};
  ranges_.reserve(4096);
  define_registers();
  reset_card();
  start();
}

FelixCard::~FelixCard() { stop(); }

void FelixCard::set_temperature(double celsius) {
  registers().set(felix::reg("temperature"),
                  static_cast<std::uint64_t>(std::llround((celsius + 273.15) * 4096 / 503.975)) & 0xfff);
}

void FelixCard::define_registers() {
  RegisterFile& regs = registers();
  const auto& source = settings_.felix;
  const auto set = [&](const card_registers::Register& reg, std::uint64_t value) { regs.set(reg, value); };
  set(felix::reg("register_map_version"), felix::kRegisterMapVersion);
  set(felix::reg("build_time"), 0x2611211200);
  set(felix::reg("git_commit_time"), 1'795'000'000);
  set(felix::reg("git_tag"), 0x30'2e'34'2d'6d'65'2d'72);  // "r-em-4.0"
  set(felix::reg("git_hash"), 0x0de0c0de);
  set(felix::reg("generic_constants"), felix::kDescriptors | std::uint64_t{Interrupts::kMaxVectors} << 8);
  set(felix::reg("card_type"), felix::kCardType712);
  set(felix::reg("pcie_endpoint"), identity().endpoint);
  set(felix::reg("pcie_endpoints"), settings_.endpoints);
  set(felix::reg("firmware_mode"),
      static_cast<std::uint64_t>(source.full_mode ? felix::FirmwareMode::full : felix::FirmwareMode::gbt));
  set(felix::reg("links"), source.links);
  set(felix::reg("block_bytes"), source.format.block_bytes);
  set(felix::reg("serial"), settings_.serial);
  set(felix::reg("from_host_length_is_5bit"), source.from_host_length == formats::FromHostLength::bytes ? 1 : 0);
  set(felix::reg("pll_lock"), 1);
  set(felix::reg("core_voltage"), 1297);  // 0.95 V
  set(felix::reg("fpga_dna"), 0x4002'0000'0000'0000U + settings_.serial);
  set(felix::reg("generator_control"), 1);
  set_temperature(settings_.temperature);
  for (unsigned link = 0; link < FelixSource::kMaxLinks; ++link) {
    const bool there = link < source.links;
    regs.set(felix::reg("elinks_enabled"), there ? source_.enabled(link) : 0, link);
    regs.set(felix::reg("link_status"), there ? 1 : 0, link);
    regs.set(felix::reg("link_optical_power"), there ? 6000 + 37 * link : 0, link);
  }
  regs.on_write(felix::reg("elinks_enabled"), [this](std::uint32_t link, std::uint64_t mask) { enabled_[link] = mask; });
  regs.on_write(felix::reg("link_channel"), [this](std::uint32_t link, std::uint64_t channel) {
    channel_of_[link] = static_cast<unsigned>(channel % felix::kToHostDescriptors);
  });
  regs.on_write(felix::reg("generator_control"),
                [this](std::uint32_t, std::uint64_t value) { generating_ = (value & 1U) != 0; });
  regs.on_write(felix::reg("interrupt_enable"), [this](std::uint32_t, std::uint64_t value) { interrupt_enable_ = value; });
  regs.on_write(felix::reg("interrupt_test"),
                [this](std::uint32_t, std::uint64_t value) { interrupts().raise(static_cast<unsigned>(value & 7U)); });
  regs.on_read(felix::reg("blocks_sent"), [this](std::uint32_t index) { return channels_[index].sent.load(); });
  regs.on_read(felix::reg("blocks_dropped"), [this](std::uint32_t index) { return channels_[index].dropped.load(); });
  regs.on_read(felix::reg("dma_busy_status"), [this](std::uint32_t) {
    std::uint64_t value = registers().get(felix::reg("dma_busy_status"));
    const std::uint64_t busy = full_ ? 1 : 0;
    value = (value & ~std::uint64_t{1}) | busy | (busy << 3);
    registers().set(felix::reg("dma_busy_status"), value);
    return value;
  });
}

std::atomic_ref<std::uint64_t> FelixCard::at(const card_registers::Register& reg, unsigned index) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(bar0_.data() + reg.at(index)));
}

bool FelixCard::bar_memory(unsigned bar, std::uint64_t offset, std::span<std::byte> bytes, bool write) {
  if (bar != 0) return false;
  std::byte* const memory = bar0_.data() + offset;
  const auto access = [&]<typename T>(T) {
    const std::atomic_ref cell(*reinterpret_cast<T*>(memory));
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    if (write) {
      cell.store(value, std::memory_order_release);
    } else {
      value = cell.load(std::memory_order_acquire);
      std::memcpy(bytes.data(), &value, sizeof value);
    }
  };
  switch (bytes.size()) {
    case 8: access(std::uint64_t{}); break;
    case 4: access(std::uint32_t{}); break;
    case 2: access(std::uint16_t{}); break;
    default: access(std::uint8_t{}); break;
  }
  return true;
}

void FelixCard::reset_card() {
  std::memset(bar0_.data(), 0, bar0_.size());
  at(felix::reg("dma_pointer_gap")).store(felix::kPointerGap, std::memory_order_relaxed);
  for (unsigned i = 0; i < felix::kMaxDescriptors; ++i) {
    channels_[i].stuck = false;
    at(felix::reg("dma_status"), i).store(kDone, std::memory_order_release);
  }
  for (unsigned link = 0; link < FelixSource::kMaxLinks; ++link) {
    enabled_[link] = registers().get(felix::reg("elinks_enabled"), link);
    channel_of_[link] = 0;
    source_.set_up(link, link < settings_.felix.links);
    source_.shift_bcids(link, false);
    lights_[link] = {};
  }
  interrupt_enable_ = 0;
  generating_ = true;
  cut_off();
}

bool FelixCard::handle_commands() {
  bool any = false;
  const auto taken = [&](const card_registers::Register& reg) {
    if (at(reg).load(std::memory_order_relaxed) == 0) return false;
    any = true;
    return true;
  };
  const auto answered = [&](const card_registers::Register& reg) { at(reg).store(0, std::memory_order_release); };
  if (taken(felix::reg("dma_reset"))) {
    at(felix::reg("dma_enable")).store(0, std::memory_order_relaxed);
    for (unsigned i = 0; i < felix::kMaxDescriptors; ++i) {
      end(i);
      at(felix::reg("dma_position"), i).store(0, std::memory_order_relaxed);
    }
    answered(felix::reg("dma_reset"));
  }
  if (taken(felix::reg("dma_fifo_flush"))) {
    clear_source();
    answered(felix::reg("dma_fifo_flush"));
  }
  if (taken(felix::reg("soft_reset"))) {
    clear_source();
    answered(felix::reg("soft_reset"));
  }
  if (taken(felix::reg("register_reset"))) {
    const std::lock_guard lock(mutex());
    registers().restore();
    for (unsigned link = 0; link < FelixSource::kMaxLinks; ++link) {
      enabled_[link] = registers().get(felix::reg("elinks_enabled"), link);
      channel_of_[link] = 0;
    }
    generating_ = true;
    answered(felix::reg("register_reset"));
  }
  return any;
}

/// Publishes the counts of the source for other threads, and adds `triggers`.
void FelixCard::publish_books(std::uint64_t triggers) {
  {
    const std::lock_guard lock(books_mutex_);
    books_ = source_.books();
    triggers_seen_ += triggers;
  }
  blocks_lost_.store(source_.blocks_lost(), std::memory_order_relaxed);
  blocks_corrupted_.store(source_.blocks_corrupted(), std::memory_order_relaxed);
  l1ids_flipped_.store(source_.l1ids_flipped(), std::memory_order_relaxed);
  bcids_shifted_.store(source_.bcids_shifted(), std::memory_order_relaxed);
}

bool FelixCard::handle_requests() {
  bool any = handle_commands();
  for (unsigned i = 0; i < felix::kDescriptors; ++i) any = update_channel(i) || any;
  return any;
}

void FelixCard::links_come_up(std::uint64_t now_ns) {
  for (unsigned link = 0; link < settings_.felix.links; ++link) {
    source_.enable(link, enabled_[link].load(std::memory_order_relaxed));
    if (!lights_[link].comes_up(now_ns)) continue;
    const std::lock_guard lock(mutex());
    (void)inject_card({.kind = FaultKind::link_up, .link = link});
  }
}

FelixCard::Wanted FelixCard::wanted() const {
  const std::span to_host(channels_.begin(), felix::kToHostDescriptors);
  if (std::ranges::find(to_host, Channel::State::ending, &Channel::state) != to_host.end()) return Wanted::end;
  if (!bus_master() || std::ranges::none_of(to_host, &Channel::running)) return Wanted::nothing;
  return generating_.load(std::memory_order_relaxed) ? Wanted::data : Wanted::pause;
}

/// False: the memory is full.
bool FelixCard::check_room(std::uint64_t triggers) {
  const bool full = triggers == 0;
  if (full_.exchange(full, std::memory_order_relaxed) != full && full &&
      (interrupt_enable_.load(std::memory_order_relaxed) >> kBusyVector & 1U) != 0)
    interrupts().raise(kBusyVector);
  return !full;
}

void FelixCard::write_blocks(std::uint64_t triggers, std::uint64_t now_ns, std::uint64_t flush_begun_ns) {
  {
    DmaMaps::Use use(maps());
    use_ = &use;
    for (Channel& channel : channels_) channel.memory = {};
    if (triggers > 0) source_.append(ranges_, *this, now_ns);
    if (source_.oldest_ns() <= flush_begun_ns) source_.flush(*this, flush_begun_ns);
    use_ = nullptr;
    copies_done();
  }
  for (unsigned i = 0; i < felix::kToHostDescriptors; ++i) {
    if (channels_[i].running()) publish(i);
  }
  publish_books(triggers);
  occupied_us_.store(source_.occupied_us(), std::memory_order_relaxed);
  triggers_->done(triggers);
}

bool FelixCard::work() {
  bool any = handle_requests();
  const std::uint64_t now = base::steady_now_ns();
  ending_.check(now);
  links_come_up(now);
  any = read_from_host(now) || any;

  const Wanted wanted = this->wanted();
  const bool ending = wanted == Wanted::end;
  running_.store(wanted == Wanted::data, std::memory_order_relaxed);
  const bool held = taking_.follow(wanted);
  const bool nothing_open = source_.oldest_ns() == FelixSource::kNone;
  const bool idle = !taking_.any() && nothing_open;
  if (wanted == Wanted::nothing || !bus_master() || idle) return ending ? end_cut_off() : any;

  const std::uint64_t most = triggers_that_fit();
  const bool room = check_room(most);
  // There is no room for triggers, and a driver that waits for the end does not make any. Open blocks have reserved room.
  const bool hopeless = ending && (!room || ending_.ns() > kLongestEndNs);
  if (hopeless && !open_blocks_fit()) return end_cut_off();
  if (!room && !hopeless) return any;
  ranges_.clear();
  // Triggers that the links have not carried yet wait in the front-ends, which are busy above fifo_triggers.
  const std::uint64_t carried = hopeless ? 0 : std::min(most, source_.triggers_on_links(now));
  const std::uint64_t count = taking_.any() && carried > 0 ? triggers_->take(carried, ranges_) : 0;
  if (held && carried > 0 && count == 0) taking_.has_all();
  const bool last = ending && (!taking_.any() || hopeless);
  const auto flush = static_cast<std::uint64_t>(settings_.flush.count());
  const std::uint64_t flush_begun = last ? FelixSource::kNone : now - std::min(now, flush);
  if (count > 0 || (!nothing_open && source_.oldest_ns() <= flush_begun)) {
    write_blocks(count, now, flush_begun);
    any = true;
  }
  if (hopeless) return end_cut_off();
  return last ? end_channels() : any;
}

bool FelixCard::is_idle() const { return std::ranges::none_of(channels_, &Channel::running); }

bool FelixCard::inject_card(const Fault& fault) {
  if (fault.kind == FaultKind::temperature) {
    set_temperature(fault.value);
    return true;
  }
  if (fault.link >= settings_.felix.links) return false;
  const unsigned link = fault.link;
  Channel& channel = channels_[channel_of_[link].load(std::memory_order_relaxed)];
  switch (fault.kind) {
    case FaultKind::link_down:
    case FaultKind::link_up:
      lights_[link].apply(fault);
      source_.set_up(link, lights_[link].up);
      registers().set(felix::reg("link_status"), (lights_[link].up ? 1U : 0U) | 2U, link);
      return true;
    case FaultKind::corrupt_rdh: source_.corrupt_block(link); return true;
    case FaultKind::truncated_page: source_.truncate_chunk(link); return true;
    case FaultKind::dropped_superpage: source_.lose_block(link); return true;
    case FaultKind::flipped_l1id: source_.flip_l1id(link); return true;
    case FaultKind::wrong_bcid:
      if (fault.ends || fault.duration.count() > 0) {
        source_.shift_bcids(link, !fault.ends);
      } else {
        source_.shift_bcid(link);
      }
      return true;
    case FaultKind::stuck_fifo: channel.stuck = !fault.ends && !channel.stuck; return true;
    default: return false;
  }
}

void FelixCard::report_card(FunctionReport& report) const {
  ChunkBooks books;
  {
    const std::lock_guard lock(books_mutex_);
    books = books_;
    report.triggers = triggers_seen_;
  }
  report.chunks = books.chunks[static_cast<std::size_t>(BlockFate::sent)];
  report.superpages = bytes_ / settings_.felix.format.block_bytes;
  report.add("blocks_dropped", blocks_dropped_);
  report.add("blocks_lost", blocks_lost_);
  report.add("blocks_corrupted", blocks_corrupted_);
  report.add("l1ids_flipped", l1ids_flipped_);
  report.add("bcids_shifted", bcids_shifted_);
  report.add("bad_descriptors", bad_descriptors_);
  report.add("long_packets", long_packets_);
  report.add("bad_read_pointers", bad_read_pointers_);
  report.add("from_host_bytes", from_host_bytes_);
  report.add("from_host_messages", from_host_messages_);
  report.add("from_host_bad_packets", from_host_bad_packets_);
  report.add("from_host_too_long", from_host_too_long_);
  report.add("chunks_looped_back", looped_back_);
  report.add("link_occupied_us", occupied_us_);
  for (std::size_t i = 1; i < kBlockFates; ++i) report.add(kChunkCounters[i], books.chunks[i]);
  report.add("chunks_link_down", books.link_down);
  report.add("chunks_open", books.open());
  report.add("chunks_cut_short", books.cut_short);
  report.add("triggers_cut_off", triggers_cut_off_);
}

}  // namespace rodeo::emulator
