// The kernel's NUMA policy for a piece of memory, read back.
#pragma once

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <span>

namespace rodeo::test {

/// MPOL_DEFAULT, MPOL_PREFERRED, MPOL_BIND; -1: the kernel does not tell.
inline int policy_of(std::span<const std::byte> memory) {
  int policy = -1;
  if (::syscall(SYS_get_mempolicy, &policy, nullptr, 0, memory.data(), MPOL_F_ADDR) != 0) return -1;
  return policy;
}

/// False in a sandbox that forbids policies, or without NUMA in the kernel.
inline bool takes_policies() {
  constexpr std::size_t kPage = 4096;
  void* page = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
  const unsigned long mask = 1;
  const bool taken = ::syscall(SYS_mbind, page, kPage, MPOL_PREFERRED, &mask, 8 * sizeof mask, 0) == 0;
  ::munmap(page, kPage);
  return taken;
}

}  // namespace rodeo::test
