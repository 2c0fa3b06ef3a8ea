#include "network/laboratory/bpf.h"

#include <fmt/core.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace rodeo::network::laboratory {

namespace {

int number(Reg reg) { return static_cast<int>(reg); }

long bpf(int command, bpf_attr& attributes) { return syscall(SYS_bpf, command, &attributes, sizeof attributes); }

std::uint64_t pointer(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

std::unexpected<Error> failed(const std::string& what) {
  const int reason = errno;
  return std::unexpected(
      Error{"network.laboratory", fmt::format("{}: {}", what, std::strerror(reason)), "",
            reason == EPERM ? "run it as root; a container also needs the capabilities BPF and NET_ADMIN" : ""});
}

void set_name(char (&to)[BPF_OBJ_NAME_LEN], const std::string& name) { std::snprintf(to, sizeof to, "%s", name.c_str()); }

}  // namespace

BpfProgram& BpfProgram::emit(int code, Reg to, Reg from, std::int16_t offset, std::int32_t value) {
  bpf_insn instruction{};
  instruction.code = static_cast<__u8>(code);
  instruction.dst_reg = static_cast<__u8>(number(to) & 0xf);
  instruction.src_reg = static_cast<__u8>(number(from) & 0xf);
  instruction.off = offset;
  instruction.imm = value;
  instructions_.push_back(instruction);
  return *this;
}

BpfProgram& BpfProgram::set(Reg to, std::int32_t value) { return emit(BPF_ALU64 | BPF_MOV | BPF_K, to, Reg::r0, 0, value); }
BpfProgram& BpfProgram::move(Reg to, Reg from) { return emit(BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0); }
BpfProgram& BpfProgram::add(Reg to, Reg from) { return emit(BPF_ALU64 | BPF_ADD | BPF_X, to, from, 0, 0); }
// NOLINTNEXTLINE(misc-redundant-expression): two of the parts are 0
BpfProgram& BpfProgram::add(Reg to, std::int32_t value) { return emit(BPF_ALU64 | BPF_ADD | BPF_K, to, Reg::r0, 0, value); }
BpfProgram& BpfProgram::subtract(Reg from, Reg reg) { return emit(BPF_ALU64 | BPF_SUB | BPF_X, from, reg, 0, 0); }
BpfProgram& BpfProgram::multiply(Reg to, Reg by) { return emit(BPF_ALU64 | BPF_MUL | BPF_X, to, by, 0, 0); }
BpfProgram& BpfProgram::divide(Reg to, Reg by) { return emit(BPF_ALU64 | BPF_DIV | BPF_X, to, by, 0, 0); }
BpfProgram& BpfProgram::shift_right(Reg reg, std::int32_t bits) {
  return emit(BPF_ALU64 | BPF_RSH | BPF_K, reg, Reg::r0, 0, bits);
}
BpfProgram& BpfProgram::negate(Reg reg) { return emit(BPF_ALU64 | BPF_NEG, reg, Reg::r0, 0, 0); }
BpfProgram& BpfProgram::load(Reg to, Reg address, std::int16_t offset) {
  return emit(BPF_LDX | BPF_MEM | BPF_DW, to, address, offset, 0);
}
BpfProgram& BpfProgram::load_32(Reg to, Reg address, std::int16_t offset) {
  return emit(BPF_LDX | BPF_MEM | BPF_W, to, address, offset, 0);
}
BpfProgram& BpfProgram::store(Reg address, std::int16_t offset, Reg from) {
  return emit(BPF_STX | BPF_MEM | BPF_DW, address, from, offset, 0);
}
BpfProgram& BpfProgram::store_32(Reg address, std::int16_t offset, std::int32_t value) {
  return emit(BPF_ST | BPF_MEM | BPF_W, address, Reg::r0, offset, value);
}
BpfProgram& BpfProgram::atomic_add(Reg address, std::int16_t offset, Reg reg, bool fetch) {
  return emit(BPF_STX | BPF_ATOMIC | BPF_DW, address, reg, offset, fetch ? BPF_ADD | BPF_FETCH : BPF_ADD);
}
BpfProgram& BpfProgram::wide(Reg to, int source, int map) {
  // NOLINTNEXTLINE(misc-redundant-expression): two of the parts are 0
  emit(BPF_LD | BPF_DW | BPF_IMM, to, static_cast<Reg>(source), 0, map);
  return emit(0, Reg::r0, Reg::r0, 0, 0);
}
BpfProgram& BpfProgram::map_value(Reg to, int map) { return wide(to, BPF_PSEUDO_MAP_VALUE, map); }
BpfProgram& BpfProgram::map(Reg to, int map) { return wide(to, BPF_PSEUDO_MAP_FD, map); }
BpfProgram& BpfProgram::call(bpf_func_id function) {
  return emit(BPF_JMP | BPF_CALL, Reg::r0, Reg::r0, 0, static_cast<std::int32_t>(function));
}
BpfProgram& BpfProgram::exit() { return emit(BPF_JMP | BPF_EXIT, Reg::r0, Reg::r0, 0, 0); }

BpfProgram& BpfProgram::here(Label label) {
  labels_[static_cast<std::size_t>(label)] = instructions_.size();
  return *this;
}
BpfProgram& BpfProgram::jump_if_greater(Reg left, Reg right, Label to) {
  jumps_.push_back({instructions_.size(), to});
  return emit(BPF_JMP | BPF_JGT | BPF_X, left, right, 0, 0);
}
BpfProgram& BpfProgram::jump_if_more(Reg left, Reg right, Label to) {
  jumps_.push_back({instructions_.size(), to});
  return emit(BPF_JMP | BPF_JSGT | BPF_X, left, right, 0, 0);
}
BpfProgram& BpfProgram::jump(Label to) {
  jumps_.push_back({instructions_.size(), to});
  return emit(BPF_JMP | BPF_JA, Reg::r0, Reg::r0, 0, 0);
}
BpfProgram& BpfProgram::jump_if_zero(Reg reg, Label to) {
  jumps_.push_back({instructions_.size(), to});
  return emit(BPF_JMP | BPF_JEQ | BPF_K, reg, Reg::r0, 0, 0);
}

Result<base::UniqueFd> BpfProgram::load_classifier(const std::string& name) const {
  std::vector<bpf_insn> linked = instructions_;
  for (const Jump& jump : jumps_)
    linked[jump.at].off = static_cast<__s16>(labels_[static_cast<std::size_t>(jump.to)] - jump.at - 1);
  std::array<char, 16384> said{};
  bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_SCHED_CLS;
  attributes.insn_cnt = static_cast<__u32>(linked.size());
  attributes.insns = pointer(linked.data());
  attributes.license = pointer("Apache-2.0");
  attributes.log_buf = pointer(said.data());
  attributes.log_size = said.size();
  attributes.log_level = 1;
  set_name(attributes.prog_name, name);
  const long fd = bpf(BPF_PROG_LOAD, attributes);
  if (fd < 0) {
    const std::string log(said.data());
    return failed(fmt::format("cannot load the eBPF program {}{}{}", name, log.empty() ? "" : ": ",
                              log.substr(log.size() > 400 ? log.size() - 400 : 0)));
  }
  return base::UniqueFd(static_cast<int>(fd));
}

Result<base::UniqueFd> make_map(bpf_map_type type, const std::string& name, std::uint32_t value_bytes,
                                std::uint32_t entries) {
  bpf_attr attributes{};
  attributes.map_type = type;
  attributes.key_size = 4;
  attributes.value_size = value_bytes;
  attributes.max_entries = entries;
  set_name(attributes.map_name, name);
  const long fd = bpf(BPF_MAP_CREATE, attributes);
  if (fd < 0) return failed(fmt::format("cannot make the eBPF map {}", name));
  return base::UniqueFd(static_cast<int>(fd));
}

Result<void> write_map(int map, std::uint32_t key, const void* value) {
  bpf_attr attributes{};
  attributes.map_fd = static_cast<__u32>(map);
  attributes.key = pointer(&key);
  attributes.value = pointer(value);
  if (bpf(BPF_MAP_UPDATE_ELEM, attributes) < 0) return failed("cannot write an eBPF map");
  return {};
}

Result<void> read_map(int map, std::uint32_t key, void* value) {
  bpf_attr attributes{};
  attributes.map_fd = static_cast<__u32>(map);
  attributes.key = pointer(&key);
  attributes.value = pointer(value);
  if (bpf(BPF_MAP_LOOKUP_ELEM, attributes) < 0) return failed("cannot read an eBPF map");
  return {};
}

std::uint32_t possible_cpus() {  // "0-1" or "0,2-5"; the kernel sizes per-CPU values by the last one
  std::string list;
  std::ifstream("/sys/devices/system/cpu/possible") >> list;
  const std::size_t last = list.find_last_of(",-");
  const std::string number = last == std::string::npos ? list : list.substr(last + 1);
  unsigned cpu = 0;
  std::sscanf(number.c_str(), "%u", &cpu);
  return cpu + 1;
}

Result<std::uint32_t> test_run(int program, std::span<const std::byte> frame) {
  bpf_attr attributes{};
  attributes.test.prog_fd = static_cast<__u32>(program);
  attributes.test.data_in = pointer(frame.data());
  attributes.test.data_size_in = static_cast<__u32>(frame.size());
  if (bpf(BPF_PROG_TEST_RUN, attributes) < 0) return failed("cannot test an eBPF program");
  return attributes.test.retval;
}

}  // namespace rodeo::network::laboratory
