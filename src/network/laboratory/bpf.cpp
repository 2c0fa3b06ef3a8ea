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
  instruction.dst_reg = static_cast<__u8>(static_cast<int>(to) & 0xf);
  instruction.src_reg = static_cast<__u8>(static_cast<int>(from) & 0xf);
  instruction.off = offset;
  instruction.imm = value;
  instructions_.push_back(instruction);
  return *this;
}

BpfProgram& BpfProgram::wide(Reg to, int source, int map) {
  // NOLINTNEXTLINE(misc-redundant-expression): two of the parts are 0
  emit(BPF_LD | BPF_DW | BPF_IMM, to, static_cast<Reg>(source), 0, map);
  return emit(0, Reg::r0, Reg::r0, 0, 0);
}

BpfProgram& BpfProgram::jump(int condition, Reg left, Reg right, Label to) {
  jumps_.push_back({instructions_.size(), to});
  return emit(BPF_JMP | condition, left, right, 0, 0);
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

std::uint32_t possible_cpus() {  // the text is "0-1" or "0,2-5"; the last number gives the size of per-CPU values
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
