#include "emulator/dma_maps.h"

#include <linux/magic.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <csignal>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rodeo::emulator {
namespace {

constexpr std::uint64_t kPage = 4096;

/// The memory that this thread may be accessing. A SIGBUS in this memory means that a client shortened the file. Then
/// private memory replaces the whole mapping, so the access continues harmlessly. (Part of a mapping on huge pages cannot be
/// replaced.)
struct Touching {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  volatile bool lost = false;
};
thread_local Touching touching;

struct sigaction before_us{};

void on_bus_error(int signal, siginfo_t* info, void* context) {
  auto* const at = static_cast<std::byte*>(info->si_addr);
  if (touching.memory != nullptr && at >= touching.memory && at < touching.memory + touching.bytes) {
    if (::mmap(touching.memory, touching.bytes, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED) {
      touching.lost = true;
      return;
    }
  }
  if ((before_us.sa_flags & SA_SIGINFO) != 0 && before_us.sa_sigaction != nullptr) {
    before_us.sa_sigaction(signal, info, context);
    return;
  }
  ::signal(SIGBUS, SIG_DFL);  // the access repeats and ends the process, as it should
}

void catch_bus_errors() {
  static const bool once = [] {
    struct sigaction action{};
    action.sa_sigaction = &on_bus_error;
    action.sa_flags = SA_SIGINFO;
    ::sigemptyset(&action.sa_mask);
    return ::sigaction(SIGBUS, &action, &before_us) == 0;
  }();
  (void)once;
}

/// The page size of mmap and munmap for this file.
std::size_t page_of(int fd) {
  struct statfs status{};
  if (::fstatfs(fd, &status) == 0 && status.f_type == HUGETLBFS_MAGIC) return static_cast<std::size_t>(status.f_bsize);
  return kPage;
}

}  // namespace

void DmaMaps::add_client(ClientId client) {
  const std::lock_guard lock(mutex_);
  clients_.try_emplace(client);
}

void DmaMaps::remove_client(ClientId client) {
  unmap_all(client);
  const std::lock_guard lock(mutex_);
  clients_.erase(client);
}

int DmaMaps::map(ClientId client, const formats::vfio_user::DmaMap& wanted, const base::UniqueFd& fd) {
  using formats::vfio_user::DmaMap;
  if (wanted.size == 0 || wanted.size % kPage != 0 || wanted.address % kPage != 0 || wanted.offset % kPage != 0)
    return EINVAL;
  if (wanted.address + (wanted.size - 1) < wanted.address || wanted.offset + (wanted.size - 1) < wanted.offset)
    return EINVAL;
  if ((wanted.flags & ~(DmaMap::kRead | DmaMap::kWrite)) != 0 || wanted.flags == 0) return EINVAL;
  if (!fd) return EOPNOTSUPP;
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return EINVAL;
  if (S_ISREG(status.st_mode) && static_cast<std::uint64_t>(status.st_size) < wanted.offset + wanted.size) return EINVAL;
  const std::size_t page = page_of(fd.get());
  const std::size_t mapped_bytes = (wanted.size + page - 1) / page * page;
  {
    const std::lock_guard lock(mutex_);
    const auto found = clients_.find(client);
    if (found == clients_.end()) return EINVAL;
    if (found->second.size() >= max_maps_) return ENOSPC;
    const auto next = found->second.lower_bound(wanted.address);
    if (next != found->second.end() && next->first - wanted.address < wanted.size) return EEXIST;
    if (next != found->second.begin() && wanted.address - std::prev(next)->first < std::prev(next)->second.bytes)
      return EEXIST;
  }
  catch_bus_errors();
  const bool writable = (wanted.flags & DmaMap::kWrite) != 0;
  base::Mapping memory(::mmap(nullptr, mapped_bytes, PROT_READ | (writable ? PROT_WRITE : 0), MAP_SHARED | MAP_NORESERVE,
                              fd.get(), static_cast<off_t>(wanted.offset)),
                       mapped_bytes);
  if (!memory) return errno;
  const std::lock_guard lock(mutex_);
  clients_[client].emplace(wanted.address, Map{.address = wanted.address,
                                               .bytes = wanted.size,
                                               .number = next_number_++,
                                               .memory = std::move(memory),
                                               .readable = (wanted.flags & DmaMap::kRead) != 0,
                                               .writable = writable});
  return 0;
}

int DmaMaps::unmap(ClientId client, std::uint64_t address, std::uint64_t bytes) {
  waiting_.fetch_add(1);
  const std::lock_guard lock(mutex_);
  waiting_.fetch_sub(1);
  const auto found = clients_.find(client);
  if (found == clients_.end()) return ENOENT;
  ClientMaps& maps = found->second;
  if (bytes == 0 || address + (bytes - 1) < address) return EINVAL;
  const std::uint64_t last = address + (bytes - 1);
  auto first = maps.lower_bound(address);
  if (first != maps.begin()) {
    const Map& before = std::prev(first)->second;
    if (address - before.address < before.bytes) return EINVAL;  // the range would cut this map
  }
  auto end = first;
  while (end != maps.end() && end->first <= last) {
    if (last - end->first < end->second.bytes - 1) return EINVAL;
    ++end;
  }
  if (first == end) return ENOENT;
  maps.erase(first, end);
  return 0;
}

int DmaMaps::unmap_all(ClientId client) {
  waiting_.fetch_add(1);
  const std::lock_guard lock(mutex_);
  waiting_.fetch_sub(1);
  const auto found = clients_.find(client);
  if (found == clients_.end()) return ENOENT;
  found->second.clear();
  return 0;
}

std::size_t DmaMaps::maps() const {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const auto& [id, maps] : clients_) count += maps.size();
  return count;
}

DmaMaps::Use::Use(DmaMaps& maps) : maps_(maps) {
  // A DMA engine retakes this lock as soon as it has released it, so waiting callers go first.
  while (maps_.waiting_.load(std::memory_order_relaxed) > 0) ::sched_yield();
  lock_ = std::unique_lock(maps_.mutex_);
}

DmaMaps::Use::~Use() {
  if (touching.lost) {
    maps_.lost_maps_.fetch_add(1, std::memory_order_relaxed);
    for (auto& [id, maps] : maps_.clients_) {
      for (auto& [address, map] : maps) map.lost = map.lost || map.memory.data() == touching.memory;
    }
  }
  touching.memory = nullptr;
  touching.lost = false;
}

std::span<std::byte> DmaMaps::Use::find(ClientId client, std::uint64_t address, std::uint64_t bytes, bool write) {
  const auto found = maps_.clients_.find(client);
  if (found == maps_.clients_.end() || bytes == 0) return {};
  ClientMaps& maps = found->second;
  auto next = maps.upper_bound(address);
  if (next == maps.begin()) return {};
  Map& map = std::prev(next)->second;
  const std::uint64_t offset = address - map.address;
  if (offset >= map.bytes || map.lost || (write ? !map.writable : !map.readable)) return {};
  if (touching.lost && touching.memory != map.memory.data()) {
    maps_.lost_maps_.fetch_add(1, std::memory_order_relaxed);
    for (auto& [at, other] : maps) other.lost = other.lost || other.memory.data() == touching.memory;
    touching.lost = false;
  }
  touching.memory = map.memory.data();
  touching.bytes = map.memory.size();
  return {map.memory.data() + offset, static_cast<std::size_t>(std::min(bytes, map.bytes - offset))};
}

bool DmaMaps::Use::write(ClientId client, std::uint64_t address, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto memory = find(client, address, bytes.size());
    if (memory.empty()) return false;
    std::memcpy(memory.data(), bytes.data(), memory.size());
    address += memory.size();
    bytes = bytes.subspan(memory.size());
  }
  return true;
}

bool DmaMaps::Use::read(ClientId client, std::uint64_t address, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const auto memory = find(client, address, bytes.size(), false);
    if (memory.empty()) return false;
    std::memcpy(bytes.data(), memory.data(), memory.size());
    address += memory.size();
    bytes = bytes.subspan(memory.size());
  }
  return true;
}

/// The map that holds the start of a range, if adjacent writable maps cover the whole range; else null.
const DmaMaps::Map* DmaMaps::covering(const ClientMaps& maps, std::uint64_t address, std::uint64_t bytes) {
  if (bytes == 0 || address + (bytes - 1) < address) return nullptr;
  const Map* first = nullptr;
  while (bytes > 0) {
    auto next = maps.upper_bound(address);
    if (next == maps.begin()) return nullptr;
    const Map& map = std::prev(next)->second;
    const std::uint64_t offset = address - map.address;
    if (offset >= map.bytes || !map.writable) return nullptr;
    const std::uint64_t here = std::min(bytes, map.bytes - offset);
    bytes -= here;
    address += here;
    if (first == nullptr) first = &map;
  }
  return first;
}

bool DmaMaps::Use::holds(ClientId client, std::uint64_t address, std::uint64_t bytes) const {
  const auto found = maps_.clients_.find(client);
  return found != maps_.clients_.end() && covering(found->second, address, bytes) != nullptr;
}

std::optional<ClientId> DmaMaps::Use::owner(std::uint64_t address, std::uint64_t bytes) const {
  std::optional<ClientId> owner;
  std::uint64_t newest = 0;
  for (const auto& [id, maps] : maps_.clients_) {
    const Map* const map = covering(maps, address, bytes);
    if (map == nullptr || (owner && map->number < newest)) continue;
    owner = id;
    newest = map->number;
  }
  return owner;
}

}  // namespace rodeo::emulator
