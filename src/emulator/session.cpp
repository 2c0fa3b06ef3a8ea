#include "emulator/session.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace rodeo::emulator {
namespace {

using namespace formats::vfio_user;

constexpr std::size_t kMaxMessage = max_message_bytes(kDefaultTransferBytes);
constexpr std::size_t kReceiveBytes = 16384;  // least room for one read
constexpr std::size_t kMaxFds = 8;            // the limit that VERSION announces
constexpr std::size_t kMaxFdsHeld = 64;       // limit for incomplete messages; more descriptors are an attack

bool takes_fds(std::uint16_t command) {
  return command == static_cast<std::uint16_t>(Command::dma_map) ||
         command == static_cast<std::uint16_t>(Command::device_set_irqs);
}

}  // namespace

VfioUserSession::VfioUserSession(ClientId id, Device& device, DmaMaps& maps, Interrupts& interrupts, bool one_too_many)
    : id_(id), device_(device), maps_(maps), interrupts_(interrupts), one_too_many_(one_too_many), in_(kReceiveBytes) {
  maps_.add_client(id_);
}

VfioUserSession::~VfioUserSession() {
  interrupts_.remove_client(id_);
  maps_.remove_client(id_);
  device_.left(id_);
}

void VfioUserSession::cut_off() {
  if (!over_) counters_.add(ServerCounter::hung_up);
  over_ = true;
}

std::span<std::byte> VfioUserSession::room() {
  if (begin_ > 0) {
    std::memmove(in_.data(), in_.data() + begin_, end_ - begin_);
    stream_ += begin_;
    end_ -= begin_;
    begin_ = 0;
  }
  const std::size_t needed = end_ < kHeaderBytes ? kHeaderBytes : std::min<std::size_t>(read_header(in_).size, kMaxMessage);
  if (needed > in_.size()) in_.resize(needed);
  if (end_ == in_.size()) in_.resize(end_ + kReceiveBytes);
  return std::span(in_).subspan(end_);
}

/// The message, by its place in the stream, to which the descriptors belong that came with the bytes from in_[first] on.
std::uint64_t VfioUserSession::message_of_read(std::size_t first) const {
  std::size_t found = begin_;
  bool found_taker = false;
  for (std::size_t at = begin_; at < end_;) {
    const bool whole_header = end_ - at >= kHeaderBytes;
    const Header header = whole_header ? read_header(std::span(in_).subspan(at)) : Header{};
    // A message with an incomplete header is the last one here. The descriptors came with it: otherwise the read would have
    // continued.
    const bool taker = !whole_header || takes_fds(header.command);
    if (at >= first && (taker || !found_taker)) {
      found = at;
      found_taker = taker;
    }
    if (!whole_header || header.size < kHeaderBytes || header.size > kMaxMessage) break;
    at += header.size;
  }
  return stream_ + found;
}

void VfioUserSession::received(std::size_t bytes, base::ReceivedFds& fds) {
  const std::size_t first = end_;
  end_ += bytes;
  if (fds.truncated || fds.no_room) cut_off();
  if (fds.fds.empty()) return;
  std::size_t held = fds.fds.size();
  for (const Arrival& arrival : arrivals_) held += arrival.fds.size();
  if (held > kMaxFdsHeld) return cut_off();
  arrivals_.push_back({message_of_read(first), std::move(fds.fds)});
  fds.fds.clear();
}

/// Moves the descriptors of the message at this place of the stream into fds_.
void VfioUserSession::collect_fds(std::uint64_t at) {
  fds_.clear();
  for (Arrival& arrival : arrivals_) {
    if (arrival.at == at) std::ranges::move(arrival.fds, std::back_inserter(fds_));
  }
  std::erase_if(arrivals_, [&](const Arrival& arrival) { return arrival.at <= at; });
}

bool VfioUserSession::handle_message() {
  if (over_ || end_ - begin_ < kHeaderBytes) return false;
  const Header header = read_header(std::span(in_).subspan(begin_));
  if (header.size < kHeaderBytes || header.size > kMaxMessage || !header.is_command()) {
    cut_off();
    return false;
  }
  if (end_ - begin_ < header.size) return false;
  if (!arrivals_.empty() || !fds_.empty()) collect_fds(stream_ + begin_);
  const auto payload = std::span(in_).subspan(begin_ + kHeaderBytes, header.size - kHeaderBytes);
  begin_ += header.size;
  handle(header, payload);
  return true;
}

void VfioUserSession::refuse(const Header& header, int error) {
  counters_.add(ServerCounter::errors);
  if (!header.wants_no_reply()) out_.error(header, error);
}

void VfioUserSession::handle(const Header& header, std::span<const std::byte> payload) {
  counters_.add(ServerCounter::requests);
  const auto request = decode_request(header, payload);
  if (!request) {
    refuse(header, request.error());
    if (header.command == static_cast<std::uint16_t>(Command::version)) over_ = true;
    return;
  }
  if (const auto* version = std::get_if<Version>(&*request)) return negotiate(header, *version);
  if (!negotiated_) return refuse(header, EINVAL);
  if (fds_.size() > kMaxFds) return refuse(header, EINVAL);
  if (!takes_fds(header.command) && !fds_.empty()) return refuse(header, EINVAL);
  const std::size_t before = out_.bytes().size();
  answer(header, *request);
  if (header.wants_no_reply()) {
    out_.truncate(before);
    std::erase_if(passengers_, [&](const Passenger& passenger) { return passenger.at >= before; });
  }
}

void VfioUserSession::negotiate(const Header& header, const Version& version) {
  if (negotiated_ || version.major != kMajor || one_too_many_) {
    refuse(header, one_too_many_ ? EUSERS : EINVAL);
    over_ = true;
    return;
  }
  negotiated_ = true;
  out_.reply(header, Version{.major = kMajor,
                             .minor = std::min(version.minor, kMinor),
                             .capabilities = {.max_msg_fds = kMaxFds,
                                              .max_data_xfer_size = kDefaultTransferBytes,
                                              .max_dma_maps = kMaxDmaMaps,
                                              .pgsizes = 4096,
                                              .write_multiple = true}});
}

bool VfioUserSession::valid(const RegionAccess& access) const {
  if (access.region >= kRegions || access.count == 0 || access.count > kDefaultTransferBytes) return false;
  const std::uint64_t bytes = device_.region(access.region).bytes;
  return access.offset <= bytes && access.count <= bytes - access.offset;
}

namespace {

/// Calls `one` for each access of a long or unaligned range: naturally aligned, at most 4 bytes unless the whole is 8.
template <typename One>
void split(std::uint64_t offset, std::size_t bytes, One&& one) {
  if (bytes == 8 && offset % 8 == 0) return one(offset, std::size_t{0}, std::size_t{8});
  std::size_t at = 0;
  while (at < bytes) {
    const std::uint64_t here = offset + at;
    std::size_t width = here % 4 == 0 ? 4 : here % 2 == 0 ? 2 : 1;
    while (width > bytes - at) width /= 2;
    one(here, at, width);
    at += width;
  }
}

}  // namespace

void VfioUserSession::region_write(const RegionAccess& access, std::span<const std::byte> data) {
  split(access.offset, access.count, [&](std::uint64_t offset, std::size_t at, std::size_t width) {
    device_.write(id_, access.region, offset, data.subspan(at, width));
  });
}

void VfioUserSession::region_info(const Header& header, const RegionInfo& asked) {
  if (asked.index >= kRegions) return refuse(header, EINVAL);
  const Region& region = device_.region(asked.index);
  RegionInfo info{.index = asked.index, .size = region.bytes};
  if (region.bytes > 0) info.flags = RegionInfo::kRead | RegionInfo::kWrite;
  if (!region.mappable.empty()) info.flags |= RegionInfo::kMmap;
  const bool whole = asked.argsz >= region_info_bytes(region.mappable.size());
  if (whole && region.fd >= 0) passengers_.push_back({out_.bytes().size(), region.fd});
  out_.reply(header, info, region.mappable, asked.argsz);
}

int VfioUserSession::set_irqs(const SetIrqs& irqs) {
  const auto action = irqs.flags & (SetIrqs::kMask | SetIrqs::kUnmask | SetIrqs::kTrigger);
  const auto data = irqs.flags & (SetIrqs::kDataNone | SetIrqs::kDataBool | SetIrqs::kDataEventfd);
  if (action != SetIrqs::kTrigger) return action == SetIrqs::kMask || action == SetIrqs::kUnmask ? ENOTSUP : EINVAL;
  if (irqs.index >= kIrqIndices) return EINVAL;
  const std::uint32_t vectors = irqs.index == kMsiIndex ? device_.vectors() : 0;
  if (irqs.start > vectors || irqs.count > vectors - irqs.start) return EINVAL;
  switch (data) {
    case SetIrqs::kDataNone:
      if (irqs.count == 0) {
        for (std::uint32_t vector = 0; vector < vectors; ++vector) interrupts_.set(id_, vector, {});
      }
      for (std::uint32_t i = 0; i < irqs.count; ++i) interrupts_.raise(id_, irqs.start + i);
      return 0;
    case SetIrqs::kDataBool:
      for (std::uint32_t i = 0; i < irqs.count; ++i) {
        if (irqs.data[i] != std::byte{0}) interrupts_.raise(id_, irqs.start + i);
      }
      return 0;
    case SetIrqs::kDataEventfd:
      // Without descriptors the vectors are cleared.
      if (!fds_.empty() && fds_.size() != irqs.count) return EINVAL;
      for (std::uint32_t i = 0; i < irqs.count; ++i) {
        base::UniqueFd fd;
        if (!fds_.empty()) fd = std::move(fds_[i]);
        interrupts_.set(id_, irqs.start + i, std::move(fd));
      }
      return 0;
    default: return EINVAL;
  }
}

void VfioUserSession::answer(const Header& header, const Request& request) {
  const auto finish = [&](int error) {
    if (error != 0) return refuse(header, error);
    out_.reply(header);
  };
  if (const auto* read = std::get_if<RegionRead>(&request)) {
    if (!valid(*read)) return refuse(header, EINVAL);
    const std::span<std::byte> data = out_.reply_read(header, *read);
    split(read->offset, read->count, [&](std::uint64_t offset, std::size_t at, std::size_t width) {
      device_.read(id_, read->region, offset, data.subspan(at, width));
    });
  } else if (const auto* write = std::get_if<RegionWrite>(&request)) {
    if (!valid(*write)) return refuse(header, EINVAL);
    region_write(*write, write->data);
    out_.reply(header, RegionAccess{*write});
  } else if (const auto* multi = std::get_if<WriteMulti>(&request)) {
    for (std::size_t i = 0; i < multi->size(); ++i) {
      if (const SmallWrite one = (*multi)[i]; one.count > sizeof one.value || !valid(one)) return refuse(header, EINVAL);
    }
    for (std::size_t i = 0; i < multi->size(); ++i) {
      const SmallWrite one = (*multi)[i];
      region_write(one, std::as_bytes(std::span(&one.value, 1)).first(one.count));
    }
    out_.reply_write_multi(header, multi->size());
  } else if (const auto* map = std::get_if<DmaMap>(&request)) {
    if (fds_.size() > 1) return refuse(header, EINVAL);
    const base::UniqueFd none;
    finish(maps_.map(id_, *map, fds_.empty() ? none : fds_.front()));
  } else if (const auto* unmap = std::get_if<DmaUnmap>(&request)) {
    if ((unmap->flags & ~DmaUnmap::kAll) != 0) return refuse(header, ENOTSUP);
    const bool all = (unmap->flags & DmaUnmap::kAll) != 0;
    if (all && (unmap->address != 0 || unmap->size != 0)) return refuse(header, EINVAL);
    const int error = all ? maps_.unmap_all(id_) : maps_.unmap(id_, unmap->address, unmap->size);
    if (error != 0) return refuse(header, error);
    out_.reply(header, *unmap);
  } else if (std::holds_alternative<DeviceInfo>(request)) {
    out_.reply(header, DeviceInfo{.flags = DeviceInfo::kReset | DeviceInfo::kPci, .regions = kRegions, .irqs = kIrqIndices});
  } else if (const auto* region = std::get_if<RegionInfo>(&request)) {
    region_info(header, *region);
  } else if (const auto* io_fds = std::get_if<RegionIoFds>(&request)) {
    if (io_fds->index >= kRegions) return refuse(header, EINVAL);
    out_.reply(header, RegionIoFds{.index = io_fds->index});
  } else if (const auto* irq = std::get_if<IrqInfo>(&request)) {
    if (irq->index >= kIrqIndices) return refuse(header, EINVAL);
    IrqInfo info{.index = irq->index};
    if (irq->index == kMsiIndex) {
      info.flags = IrqInfo::kEventfd | IrqInfo::kNoResize;
      info.count = device_.vectors();
    }
    out_.reply(header, info);
  } else if (const auto* irqs = std::get_if<SetIrqs>(&request)) {
    finish(set_irqs(*irqs));
  } else if (std::holds_alternative<DeviceReset>(request)) {
    device_.reset();
    finish(0);
  } else {
    refuse(header, ENOTSUP);
  }
}

}  // namespace rodeo::emulator
