#include "card/pci/keeper_memory.h"

#include <cstring>

#include <fmt/format.h>

#include "card/pci/held_memory.h"

namespace rodeo::card::pci {

Result<void> KeeperMemory::map(std::span<std::byte> memory, int fd, std::uint64_t fd_offset, std::uint64_t iova) {
  if (fd < 0) {
    return std::unexpected(
        Error{"card.dma_memory",
              "memory for a card needs a file behind it: the keeper holds the file while the card may write to the memory",
              "", "take it from memfd_create, hugetlbfs or /dev/shm"});
  }
  KeeperRequest request{.operation = KeeperOperation::map, .iova = iova, .bytes = memory.size(), .offset = fd_offset};
  RODEO_TRY(keeper_.ask(request, fd));
  std::map<std::uint64_t, Run> runs{{iova, {iova, memory.size()}}};
  if (physical_) {
    runs.clear();
    if (auto done = read_physical(iova, memory.size(), runs); !done) {
      request.operation = KeeperOperation::unmap;
      (void)keeper_.ask(request);
      return done;
    }
  }
  const auto held = RODEO_TRY(mutex_.hold());
  runs_.merge(runs);
  return {};
}

Result<void> KeeperMemory::read_physical(std::uint64_t iova, std::uint64_t bytes, std::map<std::uint64_t, Run>& runs) {
  for (std::uint64_t done = 0; done < bytes;) {
    const auto answer = RODEO_TRY(keeper_.ask({.operation = KeeperOperation::physical, .iova = iova + done}));
    const std::vector<std::byte>& data = answer.reply.data;
    std::uint64_t described = 0;
    for (std::size_t at = 0; at + sizeof(PhysicalRun) <= data.size(); at += sizeof(PhysicalRun)) {
      PhysicalRun run;
      std::memcpy(&run, data.data() + at, sizeof run);
      if (run.bytes > bytes - done - described) run.bytes = bytes - done - described;
      if (run.bytes == 0) break;
      runs[iova + done + described] = {run.address, run.bytes};
      described += run.bytes;
    }
    if (described == 0)
      return std::unexpected(
          Error{"card.keeper", "the keeper does not know the physical addresses of memory that it holds"});
    done += described;
  }
  return {};
}

Result<void> KeeperMemory::unmap(std::uint64_t iova, std::uint64_t bytes) {
  RODEO_TRY(keeper_.ask({.operation = KeeperOperation::unmap, .iova = iova, .bytes = bytes}));
  const auto held = RODEO_TRY(mutex_.hold());
  runs_.erase(runs_.lower_bound(iova), runs_.lower_bound(iova + bytes));
  return {};
}

Result<std::pair<std::uint64_t, std::uint64_t>> KeeperMemory::bus_address(std::uint64_t iova) const {
  const auto held = RODEO_TRY(mutex_.hold());
  auto after = runs_.upper_bound(iova);
  if (after != runs_.begin()) {
    const auto& [begin, run] = *std::prev(after);
    if (iova - begin < run.bytes) return std::pair{run.address + (iova - begin), run.bytes - (iova - begin)};
  }
  return std::unexpected(Error{"card.dma_memory", fmt::format("{:#x} is not mapped", iova)});
}

}  // namespace rodeo::card::pci
