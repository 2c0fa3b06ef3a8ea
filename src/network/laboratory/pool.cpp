#include "network/laboratory/pool.h"

#include <linux/pkt_cls.h>

#include <algorithm>
#include <limits>

namespace rodeo::network::laboratory {

namespace {

using Port = SharedPool::Port;
using enum Reg;

constexpr auto kFrames = static_cast<std::int16_t>(offsetof(Port, frames));
constexpr auto kBytes = static_cast<std::int16_t>(offsetof(Port, bytes));
constexpr auto kDrops = static_cast<std::int16_t>(offsetof(Port, drops));
constexpr auto kDroppedBytes = static_cast<std::int16_t>(offsetof(Port, dropped_bytes));
constexpr auto kMaxPool = static_cast<std::int16_t>(offsetof(Port, max_pool_bytes));
constexpr auto kFrameLength = static_cast<std::int16_t>(offsetof(__sk_buff, len));

/// r0 = this CPU's counters of the port, or 0. Spoils r1 to r5.
void find_counters(BpfProgram& program, int counters, std::uint32_t port) {
  program.store_32(stack, -4, static_cast<std::int32_t>(port))
      .move(r2, stack)
      .add(r2, -4)
      .map(r1, counters)
      .call(BPF_FUNC_map_lookup_elem);
}

void count(BpfProgram& program, std::int16_t frames, std::int16_t bytes) {  // r7: length, r0: counters
  program.load(r1, r0, frames).add(r1, 1).store(r0, frames, r1).load(r1, r0, bytes).add(r1, r7).store(r0, bytes, r1);
}

BpfProgram admission(int limit, int occupancy, int counters, std::uint32_t port) {
  BpfProgram program;
  const auto full = program.label();
  const auto admitted = program.label();
  const auto dropped = program.label();
  const auto no_maximum = program.label();
  program
      .load_32(r7, r1, kFrameLength)  // r7: length of the frame
      .map_value(r8, occupancy)
      .move(r9, r7)
      .atomic_add(r8, 0, r9, true)
      .add(r9, r7)  // r9: occupancy with this frame
      .map_value(r1, limit)
      .load(r1, r1, 0)
      .jump_if_greater(r9, r1, full);
  find_counters(program, counters, port);
  program.jump_if_zero(r0, admitted)
      .load(r1, r0, kMaxPool)
      .jump_if_greater(r1, r9, no_maximum)
      .store(r0, kMaxPool, r9)
      .here(no_maximum);
  count(program, kFrames, kBytes);
  program.here(admitted).set(r0, TC_ACT_OK).exit();

  program.here(full).move(r1, r7).negate(r1).atomic_add(r8, 0, r1, false);
  find_counters(program, counters, port);
  program.jump_if_zero(r0, dropped);
  count(program, kDrops, kDroppedBytes);
  program.here(dropped).set(r0, TC_ACT_SHOT).exit();
  return program;
}

BpfProgram releasing(int occupancy) {
  BpfProgram program;
  program.load_32(r7, r1, kFrameLength)
      .map_value(r8, occupancy)
      .negate(r7)
      .atomic_add(r8, 0, r7, false)
      .set(r0, TC_ACT_OK)
      .exit();
  return program;
}

}  // namespace

Result<SharedPool> SharedPool::make(std::uint32_t ports) {
  SharedPool pool;
  auto limit = make_map(BPF_MAP_TYPE_ARRAY, "pool_limit", sizeof(std::uint64_t), 1);
  auto occupancy = make_map(BPF_MAP_TYPE_ARRAY, "pool_occupancy", sizeof(std::int64_t), 1);
  auto counters = make_map(BPF_MAP_TYPE_PERCPU_ARRAY, "pool_counters", sizeof(Port), ports);
  for (auto* map : {&limit, &occupancy, &counters}) {
    if (!*map) return std::unexpected(map->error());
  }
  pool.limit_ = std::move(*limit);
  pool.occupancy_ = std::move(*occupancy);
  pool.counters_ = std::move(*counters);
  for (std::uint32_t port = 0; port < ports; ++port) {
    auto program = admission(pool.limit_.get(), pool.occupancy_.get(), pool.counters_.get(), port).load_classifier("admit");
    if (!program) return std::unexpected(program.error());
    pool.admit_.push_back(std::move(*program));
  }
  auto release = releasing(pool.occupancy_.get()).load_classifier("release");
  if (!release) return std::unexpected(release.error());
  pool.release_ = std::move(*release);
  if (auto set = pool.set_limit(std::nullopt); !set) return std::unexpected(set.error());
  return pool;
}

Result<void> SharedPool::set_limit(std::optional<std::uint64_t> bytes) {
  const std::uint64_t limit = bytes.value_or(std::numeric_limits<std::int64_t>::max());
  return write_map(limit_.get(), 0, &limit);
}

Result<void> SharedPool::forget_maximum() {
  std::vector<Port> cpus(possible_cpus());
  const auto entries = static_cast<std::uint32_t>(admit_.size());
  for (std::uint32_t i = 0; i < entries; ++i) {
    if (auto read = read_map(counters_.get(), i, cpus.data()); !read) return read;
    for (Port& cpu : cpus) cpu.max_pool_bytes = 0;
    if (auto written = write_map(counters_.get(), i, cpus.data()); !written) return written;
  }
  return {};
}

Result<Port> SharedPool::port(std::uint32_t port) const {
  std::vector<Port> cpus(possible_cpus());
  if (auto read = read_map(counters_.get(), port, cpus.data()); !read) return std::unexpected(read.error());
  Port sum;
  for (const Port& cpu : cpus) {
    sum.frames += cpu.frames;
    sum.bytes += cpu.bytes;
    sum.drops += cpu.drops;
    sum.dropped_bytes += cpu.dropped_bytes;
    sum.max_pool_bytes = std::max(sum.max_pool_bytes, cpu.max_pool_bytes);
  }
  return sum;
}

Result<std::int64_t> SharedPool::occupancy() const {
  std::int64_t bytes = 0;
  if (auto read = read_map(occupancy_.get(), 0, &bytes); !read) return std::unexpected(read.error());
  return bytes;
}

}  // namespace rodeo::network::laboratory
