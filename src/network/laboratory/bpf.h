// A small builder of eBPF programs and the bpf(2) calls of the laboratory, without a compiler at run time or a library.
// Instruction set: Linux Documentation/bpf/standardization/instruction-set.rst.
#pragma once

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd_socket.h"

namespace rodeo::network::laboratory {

enum class Reg : std::uint8_t { r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, stack };

/// Instructions in order. Jumps go forward to labels; operations are on 64 bits unless their name says otherwise.
class BpfProgram {
 public:
  enum class Label : std::size_t {};

  BpfProgram& set(Reg to, std::int32_t value) { return immediate(BPF_MOV, to, value); }
  BpfProgram& move(Reg to, Reg from) { return operate(BPF_MOV, to, from); }
  BpfProgram& add(Reg to, Reg from) { return operate(BPF_ADD, to, from); }
  BpfProgram& add(Reg to, std::int32_t value) { return immediate(BPF_ADD, to, value); }
  BpfProgram& subtract(Reg from, Reg reg) { return operate(BPF_SUB, from, reg); }
  BpfProgram& multiply(Reg to, Reg by) { return operate(BPF_MUL, to, by); }
  BpfProgram& divide(Reg to, Reg by) { return operate(BPF_DIV, to, by); }  ///< unsigned; division by 0 gives 0
  BpfProgram& shift_right(Reg reg, std::int32_t bits) { return immediate(BPF_RSH, reg, bits); }
  BpfProgram& negate(Reg reg) { return immediate(BPF_NEG, reg, 0); }
  BpfProgram& load(Reg to, Reg address, std::int16_t offset) {
    return emit(BPF_LDX | BPF_MEM | BPF_DW, to, address, offset, 0);
  }
  BpfProgram& load_32(Reg to, Reg address, std::int16_t offset) {
    return emit(BPF_LDX | BPF_MEM | BPF_W, to, address, offset, 0);
  }
  BpfProgram& store(Reg address, std::int16_t offset, Reg from) {
    return emit(BPF_STX | BPF_MEM | BPF_DW, address, from, offset, 0);
  }
  BpfProgram& store_32(Reg address, std::int16_t offset, std::int32_t value) {
    return emit(BPF_ST | BPF_MEM | BPF_W, address, Reg::r0, offset, value);
  }
  /// *(address + offset) += reg, atomically; with `fetch` reg gets the previous value.
  BpfProgram& atomic_add(Reg address, std::int16_t offset, Reg reg, bool fetch) {
    return emit(BPF_STX | BPF_ATOMIC | BPF_DW, address, reg, offset, fetch ? BPF_ADD | BPF_FETCH : BPF_ADD);
  }
  /// The address of the first value of an array map.
  BpfProgram& map_value(Reg to, int map) { return wide(to, BPF_PSEUDO_MAP_VALUE, map); }
  BpfProgram& map(Reg to, int map) { return wide(to, BPF_PSEUDO_MAP_FD, map); }
  BpfProgram& call(bpf_func_id function) {
    return emit(BPF_JMP | BPF_CALL, Reg::r0, Reg::r0, 0, static_cast<std::int32_t>(function));
  }
  BpfProgram& exit() { return emit(BPF_JMP | BPF_EXIT, Reg::r0, Reg::r0, 0, 0); }

  Label label() {
    labels_.push_back(0);
    return Label{labels_.size() - 1};
  }
  BpfProgram& here(Label label) {
    labels_[static_cast<std::size_t>(label)] = instructions_.size();
    return *this;
  }
  BpfProgram& jump_if_greater(Reg left, Reg right, Label to) {
    return jump(BPF_JGT | BPF_X, left, right, to);
  }  ///< unsigned
  BpfProgram& jump_if_more(Reg left, Reg right, Label to) { return jump(BPF_JSGT | BPF_X, left, right, to); }  ///< signed
  BpfProgram& jump_if_zero(Reg reg, Label to) { return jump(BPF_JEQ | BPF_K, reg, Reg::r0, to); }
  BpfProgram& jump(Label to) { return jump(BPF_JA, Reg::r0, Reg::r0, to); }

  /// Loads the program as a classifier for traffic control. Error network.laboratory with the end of the verifier's log.
  Result<base::UniqueFd> load_classifier(const std::string& name) const;

 private:
  BpfProgram& emit(int code, Reg to, Reg from, std::int16_t offset, std::int32_t value);
  BpfProgram& wide(Reg to, int source, int map);
  BpfProgram& jump(int condition, Reg left, Reg right, Label to);
  BpfProgram& operate(int operation, Reg to, Reg from) { return emit(BPF_ALU64 | operation | BPF_X, to, from, 0, 0); }
  BpfProgram& immediate(int operation, Reg to, std::int32_t value) {
    // NOLINTNEXTLINE(misc-redundant-expression): BPF_K is 0
    return emit(BPF_ALU64 | operation | BPF_K, to, Reg::r0, 0, value);
  }

  struct Jump {
    std::size_t at;
    Label to;
  };
  std::vector<bpf_insn> instructions_;
  std::vector<std::size_t> labels_;
  std::vector<Jump> jumps_;
};

Result<base::UniqueFd> make_map(bpf_map_type type, const std::string& name, std::uint32_t value_bytes,
                                std::uint32_t entries);
Result<void> write_map(int map, std::uint32_t key, const void* value);
Result<void> read_map(int map, std::uint32_t key, void* value);
/// Number of CPUs for which a per-CPU map has values.
std::uint32_t possible_cpus();

/// Runs a classifier once on a frame (BPF_PROG_TEST_RUN) and returns its verdict.
Result<std::uint32_t> test_run(int program, std::span<const std::byte> frame);

}  // namespace rodeo::network::laboratory
