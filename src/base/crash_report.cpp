#include "base/crash_report.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <utility>

namespace rodeo::base {
namespace {

struct FatalSignal {
  int number;
  const char* name;
};
// SIGBUS is not here: mapping_guard handles it for a shrunk file, and the process continues.
constexpr std::array kFatal = {FatalSignal{SIGSEGV, "SIGSEGV"}, FatalSignal{SIGFPE, "SIGFPE"}, FatalSignal{SIGILL, "SIGILL"},
                               FatalSignal{SIGABRT, "SIGABRT"}};
std::array<struct sigaction, kFatal.size()> g_before;

/// The address range of a plug-in's instructions.
struct Code {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
  std::array<char, 512> name{};  // name and path of the plug-in
};
std::array<Code, 64> g_code;
std::atomic<std::size_t> g_codes{0};

// The functions below run in a signal handler: no allocation, no lock, no C library function with state.

const Code* owner_of(std::uintptr_t address) {
  for (std::size_t i = 0; i < g_codes.load(std::memory_order_acquire); ++i) {
    if (address >= g_code[i].begin && address < g_code[i].end) return &g_code[i];
  }
  return nullptr;
}

/// The innermost plug-in with a return address on the stack. The kernel copies the stack, because it may end at any address.
const Code* caller_of(std::uintptr_t stack) {
  constexpr std::uintptr_t kPage = 4096;
  constexpr int kPages = 64;
  static std::array<std::uintptr_t, kPage / sizeof(std::uintptr_t)> words;
  for (int page = 0; page < kPages; ++page) {
    const std::uintptr_t bytes = kPage - stack % kPage;
    iovec to{words.data(), bytes};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a stack pointer is a number
    iovec from{reinterpret_cast<void*>(stack), bytes};
    if (::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) != static_cast<ssize_t>(bytes)) return nullptr;
    for (std::size_t i = 0; i < bytes / sizeof(std::uintptr_t); ++i) {
      if (const Code* code = owner_of(words[i])) return code;
    }
    stack += bytes;
  }
  return nullptr;
}

void say(std::initializer_list<const char*> texts) {
  for (const char* text : texts) {
    if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
  }
}

void on_fatal_signal(int signal, siginfo_t* info, void* context) {
  static std::atomic_flag spoken = ATOMIC_FLAG_INIT;
  if (!spoken.test_and_set()) {
    const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
    const Code* const running = owner_of(static_cast<std::uintptr_t>(registers[REG_RIP]));
    const Code* const code = running != nullptr ? running : caller_of(static_cast<std::uintptr_t>(registers[REG_RSP]));
    std::array<char, 17> thread{};
    ::prctl(PR_GET_NAME, thread.data());
    if (code != nullptr) {
      const char* name = "a fatal signal";
      for (const FatalSignal& one : kFatal) name = one.number == signal ? one.name : name;
      say({"\nerror[base.plugin_crashed]: ", name,
           running != nullptr ? " in the code of plug-in " : " in a function called by plug-in ", code->name.data(),
           ", in thread ", thread.data(),
           "\n  the process ends; `rodeo plugin test` tries a plug-in on a recording, alone\n"});
    }
  }
  for (std::size_t i = 0; i < kFatal.size(); ++i) {
    if (kFatal[i].number == signal) ::sigaction(signal, &g_before[i], nullptr);
  }
  // A fault recurs when the instruction runs again, and ends the process. A signal from another process must be raised
  // again.
  if (info->si_code <= 0) ::raise(signal);
}

}  // namespace

void name_in_crashes(std::string_view plugin, std::string_view path, void* library) {
  const std::size_t at = g_codes.load(std::memory_order_relaxed);
  link_map* map = nullptr;
  if (at == g_code.size() || ::dlinfo(library, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0) return;
  Code& code = g_code[at];
  const auto found = [](dl_phdr_info* object, std::size_t, void* wanted) {
    auto& [base, into] = *static_cast<std::pair<std::uintptr_t, Code*>*>(wanted);
    if (object->dlpi_addr != base) return 0;
    for (const ElfW(Phdr) & part : std::span(object->dlpi_phdr, object->dlpi_phnum)) {
      if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
      into->begin = base + part.p_vaddr;
      into->end = into->begin + part.p_memsz;
    }
    return 1;
  };
  std::pair<std::uintptr_t, Code*> wanted{map->l_addr, &code};
  ::dl_iterate_phdr(found, &wanted);
  fmt::format_to_n(code.name.data(), code.name.size() - 1, "`{}` ({})", plugin, path);
  g_codes.store(at + 1, std::memory_order_release);
  if (at != 0) return;
  struct sigaction action{};
  action.sa_sigaction = &on_fatal_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kFatal.size(); ++i) ::sigaction(kFatal[i].number, &action, &g_before[i]);
}

}  // namespace rodeo::base
