#include "network/laboratory/pool.h"

#include <linux/pkt_cls.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "network/laboratory/settings.h"

namespace rodeo::network::laboratory {

namespace {

using Port = SharedPool::Port;
using enum Reg;

/// set() writes these words; the programs read them.
struct Rules {
  std::uint64_t shared = 0;
  std::uint64_t dedicated = 0;
  std::uint64_t port_limit = 0;
  std::uint64_t alpha = 0;  // alpha in units of 2^-20; 0: no threshold
  std::uint64_t cell = 0;
  std::uint64_t metadata = 0;
};

/// The programs write these words. One word for each port follows: its occupancy in charged bytes. `shared` is the sum over
/// ports of the occupancy beyond their dedicated memory: each change of a port's word is atomic and adds exactly its
/// difference to `shared`.
struct State {
  std::int64_t frames = 0;
  std::int64_t charged = 0;
  std::int64_t shared = 0;
};

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kMostAlpha = std::uint64_t{1} << 30;  // times the 8 GB of check(), this fits into 63 bits

std::int16_t at(std::size_t offset) { return static_cast<std::int16_t>(offset); }
std::int16_t port_offset(std::uint32_t port) { return at(sizeof(State) + 8 * std::size_t{port}); }

/// Sets r0 = this CPU's counters of the port, or 0. Overwrites r1 to r5.
void find_counters(BpfProgram& program, int counters, std::uint32_t port) {
  program.store_32(stack, -4, static_cast<std::int32_t>(port))
      .move(r2, stack)
      .add(r2, -4)
      .map(r1, counters)
      .call(BPF_FUNC_map_lookup_elem);
}

void add_to_counter(BpfProgram& program, std::size_t counter, auto value) {  // r0 must point to the counters; overwrites r1
  program.load(r1, r0, at(counter)).add(r1, value).store(r0, at(counter), r1);
}

void raise_counter(BpfProgram& program, std::size_t counter, Reg value) {
  const auto lower = program.label();
  program.load(r1, r0, at(counter)).jump_if_greater(r1, value, lower).store(r0, at(counter), value).here(lower);
}

/// Sets r7 = length of the frame, r6 = bytes charged for it, r1 = rules, r8 = state. Overwrites r2.
void charge_of_frame(BpfProgram& program, int rules, int state) {
  const auto counted = program.label();
  program.load_32(r7, r1, at(offsetof(__sk_buff, len)))
      .map_value(r1, rules)
      .map_value(r8, state)
      .move(r6, r7)
      .load(r2, r1, at(offsetof(Rules, cell)))
      .jump_if_zero(r2, counted)
      .load(r3, r1, at(offsetof(Rules, metadata)))
      .add(r6, r3)
      .add(r6, r2)
      .add(r6, -1)
      .divide(r6, r2)
      .multiply(r6, r2)
      .here(counted);
}

/// Sets reg to the part of reg that is beyond the dedicated memory; register `dedicated` has the size of this memory.
void shared_part(BpfProgram& program, Reg reg, Reg dedicated) {
  const auto more = program.label();
  const auto done = program.label();
  program.jump_if_more(reg, dedicated, more).set(reg, 0).jump(done).here(more).subtract(reg, dedicated).here(done);
}

BpfProgram admission(int rules, int state, int counters, std::uint32_t port) {
  BpfProgram program;
  const auto over_port_limit = program.label();
  const auto pool_full = program.label();
  const auto over_threshold = program.label();
  const auto fits = program.label();
  const auto admitted = program.label();
  const auto dropped = program.label();
  charge_of_frame(program, rules, state);
  program.move(r9, r6)
      .atomic_add(r8, port_offset(port), r9, true)  // r9: held by the port before this frame
      .move(r2, r9)
      .add(r2, r6)  // r2: held with this frame
      .load(r3, r1, at(offsetof(Rules, port_limit)))
      .jump_if_more(r2, r3, over_port_limit)
      .load(r4, r1, at(offsetof(Rules, dedicated)));
  shared_part(program, r2, r4);
  shared_part(program, r9, r4);
  program.jump_if_zero(r2, fits)
      .move(r5, r2)
      .subtract(r5, r9)  // r5: shared memory that the frame takes
      .move(r3, r5)
      .atomic_add(r8, at(offsetof(State, shared)), r3, true)  // r3: shared memory used before this frame
      .move(r0, r3)
      .add(r0, r5)
      .load(r4, r1, at(offsetof(Rules, shared)))
      .jump_if_more(r0, r4, pool_full)
      .load(r0, r1, at(offsetof(Rules, alpha)))
      .jump_if_zero(r0, fits)
      .subtract(r4, r3)  // r4: free shared memory
      .multiply(r4, r0)
      .shift_right(r4, 20)
      .jump_if_more(r2, r4, over_threshold);

  program.here(fits)
      .move(r9, r7)
      .atomic_add(r8, at(offsetof(State, frames)), r9, true)
      .add(r9, r7)  // r9: bytes of frames, with this one
      .move(r2, r6)
      .atomic_add(r8, at(offsetof(State, charged)), r2, true)
      .add(r6, r2);  // r6: bytes charged for them
  find_counters(program, counters, port);
  program.jump_if_zero(r0, admitted);
  raise_counter(program, offsetof(Port, max_pool_bytes), r9);
  raise_counter(program, offsetof(Port, max_cell_bytes), r6);
  add_to_counter(program, offsetof(Port, frames), 1);
  add_to_counter(program, offsetof(Port, bytes), r7);
  program.here(admitted).set(r0, TC_ACT_OK).exit();

  const auto refuse = [&](BpfProgram::Label label, std::size_t counter, bool took_shared) {
    program.here(label);
    if (took_shared) program.negate(r5).atomic_add(r8, at(offsetof(State, shared)), r5, false);
    program.negate(r6).atomic_add(r8, port_offset(port), r6, false);
    find_counters(program, counters, port);
    program.jump_if_zero(r0, dropped);
    add_to_counter(program, counter, 1);
    add_to_counter(program, offsetof(Port, dropped_bytes), r7);
    program.jump(dropped);
  };
  refuse(pool_full, offsetof(Port, drops.pool_full), true);
  refuse(over_threshold, offsetof(Port, drops.threshold), true);
  refuse(over_port_limit, offsetof(Port, drops.port_limit), false);
  program.here(dropped).set(r0, TC_ACT_SHOT).exit();
  return program;
}

BpfProgram releasing(int rules, int state, std::uint32_t port) {
  BpfProgram program;
  charge_of_frame(program, rules, state);
  program.negate(r7)
      .atomic_add(r8, at(offsetof(State, frames)), r7, false)
      .negate(r6)
      .atomic_add(r8, at(offsetof(State, charged)), r6, false)
      .move(r9, r6)
      .atomic_add(r8, port_offset(port), r9, true)  // r9: held by the port before this frame
      .add(r6, r9)                                  // r6: held with this frame
      .load(r4, r1, at(offsetof(Rules, dedicated)));
  shared_part(program, r6, r4);
  shared_part(program, r9, r4);
  program.subtract(r6, r9).atomic_add(r8, at(offsetof(State, shared)), r6, false).set(r0, TC_ACT_OK).exit();
  return program;
}

}  // namespace

Result<SharedPool> SharedPool::make(std::uint32_t ports) {
  SharedPool pool;
  pool.ports_ = ports;
  const auto state_bytes = static_cast<std::uint32_t>(sizeof(State) + 8 * ports);
  pool.rules_ = RODEO_TRY(make_map(BPF_MAP_TYPE_ARRAY, "pool_rules", sizeof(Rules), 1));
  pool.state_ = RODEO_TRY(make_map(BPF_MAP_TYPE_ARRAY, "pool_state", state_bytes, 1));
  pool.counters_ = RODEO_TRY(make_map(BPF_MAP_TYPE_PERCPU_ARRAY, "pool_counters", sizeof(Port), ports));
  const auto [rules, state, counters] = std::tuple(pool.rules_.get(), pool.state_.get(), pool.counters_.get());
  for (std::uint32_t port = 0; port < ports; ++port) {
    pool.admit_.push_back(RODEO_TRY(admission(rules, state, counters, port).load_classifier("admit")));
    pool.release_.push_back(RODEO_TRY(releasing(rules, state, port).load_classifier("release")));
  }
  RODEO_TRY(pool.set({}));
  return pool;
}

Result<void> SharedPool::set(const SwitchBuffer& buffer) {
  RODEO_TRY(check(buffer));
  const bool shared = buffer.shared_bytes.has_value();
  const Rules rules{
      .shared = buffer.shared_bytes.value_or(kNoLimit),
      .dedicated = shared ? buffer.dedicated_bytes_per_port : 0,
      .port_limit = std::min(buffer.port_limit_bytes.value_or(kNoLimit), kNoLimit),
      .alpha =
          shared ? std::min(static_cast<std::uint64_t>(std::min(buffer.dynamic_threshold, 1024.0) * 0x1p20), kMostAlpha) : 0,
      .cell = buffer.cell_bytes,
      .metadata = buffer.first_cell_metadata_bytes};
  return write_map(rules_.get(), 0, &rules);
}

Result<void> SharedPool::forget_maximum() {
  std::vector<Port> cpus(possible_cpus());
  for (std::uint32_t i = 0; i < ports_; ++i) {
    RODEO_TRY(read_map(counters_.get(), i, cpus.data()));
    for (Port& cpu : cpus) cpu.max_pool_bytes = cpu.max_cell_bytes = 0;
    RODEO_TRY(write_map(counters_.get(), i, cpus.data()));
  }
  return {};
}

Result<Port> SharedPool::port(std::uint32_t port) const {
  std::vector<Port> cpus(possible_cpus());
  RODEO_TRY(read_map(counters_.get(), port, cpus.data()));
  Port sum;
  for (const Port& cpu : cpus) {
    sum.frames += cpu.frames;
    sum.bytes += cpu.bytes;
    sum.dropped_bytes += cpu.dropped_bytes;
    sum.drops += cpu.drops;
    sum.max_pool_bytes = std::max(sum.max_pool_bytes, cpu.max_pool_bytes);
    sum.max_cell_bytes = std::max(sum.max_cell_bytes, cpu.max_cell_bytes);
  }
  return sum;
}

Result<std::int64_t> SharedPool::occupancy() const {
  std::vector<std::int64_t> words(sizeof(State) / 8 + ports_);
  RODEO_TRY(read_map(state_.get(), 0, words.data()));
  return words[offsetof(State, frames) / 8];
}

}  // namespace rodeo::network::laboratory
