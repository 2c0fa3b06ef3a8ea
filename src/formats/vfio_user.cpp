#include "formats/vfio_user.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rodeo::formats::vfio_user {
namespace {

constexpr std::uint16_t kSparseMmap = 1;
constexpr std::size_t kVersionBytes = 4;
constexpr std::size_t kDmaMapBytes = 32;
constexpr std::size_t kDmaUnmapBytes = 24;
constexpr std::size_t kInfoBytes = 16;
constexpr std::size_t kSetIrqsBytes = 20;
constexpr std::size_t kDmaAccessBytes = 16;
constexpr std::size_t kFeatureBytes = 8;

/// Fields in order; the caller has checked the length. Host-endian, as the protocol is.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : at_(bytes.data()) {}
  template <typename T>
  Reader& operator>>(T& value) {
    std::memcpy(&value, at_, sizeof value);
    at_ += sizeof value;
    return *this;
  }

 private:
  const std::byte* at_;
};

class Writer {
 public:
  explicit Writer(std::span<std::byte> bytes) : at_(bytes.data()) {}
  template <typename T>
  Writer& operator<<(T value) {
    std::memcpy(at_, &value, sizeof value);
    at_ += sizeof value;
    return *this;
  }
  void bytes(std::span<const std::byte> data) {
    if (!data.empty()) std::memcpy(at_, data.data(), data.size());
    at_ += data.size();
  }

 private:
  std::byte* at_;
};

using Invalid = std::unexpected<int>;

std::expected<Request, int> decode_set_irqs(std::span<const std::byte> payload) {
  if (payload.size() < kSetIrqsBytes) return Invalid(EINVAL);
  SetIrqs irqs;
  Reader(payload) >> irqs.argsz >> irqs.flags >> irqs.index >> irqs.start >> irqs.count;
  if (irqs.argsz < kSetIrqsBytes) return Invalid(EINVAL);
  if ((irqs.flags & SetIrqs::kDataBool) != 0) {
    if (payload.size() - kSetIrqsBytes < irqs.count) return Invalid(EINVAL);
    irqs.data = payload.subspan(kSetIrqsBytes, irqs.count);
  }
  return irqs;
}

std::expected<Request, int> decode_write_multi(std::span<const std::byte> payload) {
  std::uint64_t count = 0;
  if (payload.size() < sizeof count) return Invalid(EINVAL);
  Reader(payload) >> count;
  const auto rest = payload.subspan(sizeof count);
  if (count > rest.size() / SmallWrite::kBytes) return Invalid(EINVAL);
  return WriteMulti{rest.first(count * SmallWrite::kBytes)};
}

/// The four messages of {argsz, flags, index, count} and their like.
template <typename T>
std::expected<Request, int> decode_sixteen(std::span<const std::byte> payload) {
  if (payload.size() < kInfoBytes) return Invalid(EINVAL);
  T info;
  if constexpr (std::is_same_v<T, DeviceInfo>) {
    Reader(payload) >> info.argsz >> info.flags >> info.regions >> info.irqs;
  } else {
    Reader(payload) >> info.argsz >> info.flags >> info.index >> info.count;
  }
  if (info.argsz < kInfoBytes) return Invalid(EINVAL);
  return info;
}

RegionAccess read_access(std::span<const std::byte> payload) {
  RegionAccess access;
  Reader(payload) >> access.offset >> access.region >> access.count;
  return access;
}

}  // namespace

std::string_view command_name(std::uint16_t command) {
  switch (static_cast<Command>(command)) {
    case Command::version: return "VERSION";
    case Command::dma_map: return "DMA_MAP";
    case Command::dma_unmap: return "DMA_UNMAP";
    case Command::device_get_info: return "DEVICE_GET_INFO";
    case Command::device_get_region_info: return "DEVICE_GET_REGION_INFO";
    case Command::device_get_region_io_fds: return "DEVICE_GET_REGION_IO_FDS";
    case Command::device_get_irq_info: return "DEVICE_GET_IRQ_INFO";
    case Command::device_set_irqs: return "DEVICE_SET_IRQS";
    case Command::region_read: return "REGION_READ";
    case Command::region_write: return "REGION_WRITE";
    case Command::dma_read: return "DMA_READ";
    case Command::dma_write: return "DMA_WRITE";
    case Command::device_reset: return "DEVICE_RESET";
    case Command::region_write_multi: return "REGION_WRITE_MULTI";
    case Command::device_feature: return "DEVICE_FEATURE";
  }
  return "unknown";
}

Header read_header(std::span<const std::byte> bytes) {
  Header header;
  Reader(bytes) >> header.id >> header.command >> header.size >> header.flags >> header.error;
  return header;
}

SmallWrite WriteMulti::operator[](std::size_t i) const {
  SmallWrite write;
  Reader(bytes.subspan(i * SmallWrite::kBytes)) >> write.offset >> write.region >> write.count >> write.value;
  return write;
}

std::expected<Version, int> decode_version(std::span<const std::byte> payload) {
  if (payload.size() < kVersionBytes) return Invalid(EINVAL);
  Version version;
  Reader(payload) >> version.major >> version.minor;
  const auto rest = payload.subspan(kVersionBytes);
  if (rest.empty()) return version;
  const std::string_view all(reinterpret_cast<const char*>(rest.data()), rest.size());
  const auto end = all.find('\0');
  if (end == std::string_view::npos) return Invalid(EPROTO);
  const auto capabilities = parse_version_text(all.substr(0, end));
  if (!capabilities) return Invalid(capabilities.error());
  version.capabilities = *capabilities;
  return version;
}

std::expected<Request, int> decode_request(const Header& header, std::span<const std::byte> payload) {
  switch (static_cast<Command>(header.command)) {
    case Command::version: return decode_version(payload);
    case Command::dma_map: {
      if (payload.size() < kDmaMapBytes) return Invalid(EINVAL);
      DmaMap map;
      std::uint32_t argsz = 0;
      Reader(payload) >> argsz >> map.flags >> map.offset >> map.address >> map.size;
      if (argsz < kDmaMapBytes) return Invalid(EINVAL);
      return map;
    }
    case Command::dma_unmap: {
      if (payload.size() < kDmaUnmapBytes) return Invalid(EINVAL);
      DmaUnmap unmap;
      Reader(payload) >> unmap.argsz >> unmap.flags >> unmap.address >> unmap.size;
      if (unmap.argsz < kDmaUnmapBytes) return Invalid(EINVAL);
      return unmap;
    }
    case Command::device_get_info: return decode_sixteen<DeviceInfo>(payload);
    case Command::device_get_region_info: {
      if (payload.size() < RegionInfo::kBytes) return Invalid(EINVAL);
      RegionInfo info;
      Reader(payload) >> info.argsz >> info.flags >> info.index >> info.cap_offset >> info.size >> info.offset;
      if (info.argsz < RegionInfo::kBytes) return Invalid(EINVAL);
      return info;
    }
    case Command::device_get_region_io_fds: return decode_sixteen<RegionIoFds>(payload);
    case Command::device_get_irq_info: return decode_sixteen<IrqInfo>(payload);
    case Command::device_set_irqs: return decode_set_irqs(payload);
    case Command::region_read: {
      if (payload.size() < RegionAccess::kBytes) return Invalid(EINVAL);
      return RegionRead{read_access(payload)};
    }
    case Command::region_write: {
      if (payload.size() < RegionAccess::kBytes) return Invalid(EINVAL);
      const RegionAccess access = read_access(payload);
      const auto data = payload.subspan(RegionAccess::kBytes);
      if (data.size() < access.count) return Invalid(EINVAL);
      return RegionWrite{access, data.first(access.count)};
    }
    case Command::device_reset: return DeviceReset{};
    case Command::region_write_multi: return decode_write_multi(payload);
    case Command::device_feature: {
      if (payload.size() < kFeatureBytes) return Invalid(EINVAL);
      DeviceFeature feature;
      Reader(payload) >> feature.argsz >> feature.flags;
      return feature;
    }
    case Command::dma_read:
    case Command::dma_write: break;  // the server's own
  }
  return Invalid(ENOTSUP);
}

std::optional<DeviceInfo> decode_device_info(std::span<const std::byte> payload) {
  if (payload.size() < kInfoBytes) return std::nullopt;
  DeviceInfo info;
  Reader(payload) >> info.argsz >> info.flags >> info.regions >> info.irqs;
  return info;
}

std::optional<IrqInfo> decode_irq_info(std::span<const std::byte> payload) {
  if (payload.size() < kInfoBytes) return std::nullopt;
  IrqInfo info;
  Reader(payload) >> info.argsz >> info.flags >> info.index >> info.count;
  return info;
}

std::optional<RegionInfoReply> decode_region_info(std::span<const std::byte> payload) {
  if (payload.size() < RegionInfo::kBytes) return std::nullopt;
  RegionInfoReply reply;
  RegionInfo& info = reply.info;
  Reader(payload) >> info.argsz >> info.flags >> info.index >> info.cap_offset >> info.size >> info.offset;
  if ((info.flags & RegionInfo::kCaps) == 0 || info.argsz > payload.size()) return reply;
  // Offsets must grow, so that a chain ends.
  std::uint32_t at = info.cap_offset, before = 0;
  while (at != 0) {
    if (at <= before || at < RegionInfo::kBytes || at > payload.size() || payload.size() - at < 8) return std::nullopt;
    std::uint16_t id = 0, version = 0;
    std::uint32_t next = 0;
    Reader(payload.subspan(at)) >> id >> version >> next;
    if (id == kSparseMmap) {
      if (payload.size() - at < 16) return std::nullopt;
      std::uint32_t count = 0;
      Reader(payload.subspan(at + 8)) >> count;
      if (count > (payload.size() - at - 16) / 16) return std::nullopt;
      reply.areas.emplace(count);
      Reader reader(payload.subspan(at + 16));
      for (Area& area : *reply.areas) reader >> area.offset >> area.size;
    }
    before = at;
    at = next;
  }
  return reply;
}

std::optional<std::span<const std::byte>> decode_region_data(std::span<const std::byte> payload) {
  if (payload.size() < RegionAccess::kBytes) return std::nullopt;
  const RegionAccess access = read_access(payload);
  if (payload.size() - RegionAccess::kBytes < access.count) return std::nullopt;
  return payload.subspan(RegionAccess::kBytes, access.count);
}

std::optional<DmaAccess> decode_dma_access(std::span<const std::byte> payload, bool with_data) {
  if (payload.size() < kDmaAccessBytes) return std::nullopt;
  DmaAccess access;
  Reader(payload) >> access.address >> access.count;
  if (with_data) {
    if (payload.size() - kDmaAccessBytes < access.count) return std::nullopt;
    access.data = payload.subspan(kDmaAccessBytes, access.count);
  }
  return access;
}

std::span<std::byte> MessageWriter::message(std::uint16_t id, std::uint16_t command, std::uint32_t flags,
                                            std::size_t payload_bytes) {
  const std::size_t at = bytes_.size();
  const std::size_t size = kHeaderBytes + payload_bytes;
  bytes_.resize(at + size);
  const std::span<std::byte> room(bytes_.data() + at, size);
  Writer(room) << id << command << static_cast<std::uint32_t>(size) << flags << std::uint32_t{0};
  return room.subspan(kHeaderBytes);
}

std::span<std::byte> MessageWriter::reply_room(const Header& to, std::size_t payload_bytes) {
  return message(to.id, to.command, Header::kReply, payload_bytes);
}

namespace {

template <typename... T>
struct Overloaded : T... {
  using T::operator()...;
};
template <typename... T>
Overloaded(T...) -> Overloaded<T...>;

std::uint16_t number(Command command) { return static_cast<std::uint16_t>(command); }

}  // namespace

void MessageWriter::request(std::uint16_t id, const Request& request, std::uint32_t flags) {
  const auto room = [&](Command command, std::size_t bytes) { return Writer(message(id, number(command), flags, bytes)); };
  std::visit(
      Overloaded{
          [&](const Version& m) {
            const std::string text = version_text(m.capabilities);
            Writer out = room(Command::version, kVersionBytes + text.size() + 1);
            out << m.major << m.minor;
            out.bytes(std::as_bytes(std::span(text.c_str(), text.size() + 1)));
          },
          [&](const DmaMap& m) {
            room(Command::dma_map, kDmaMapBytes)
                << static_cast<std::uint32_t>(kDmaMapBytes) << m.flags << m.offset << m.address << m.size;
          },
          [&](const DmaUnmap& m) { room(Command::dma_unmap, kDmaUnmapBytes) << m.argsz << m.flags << m.address << m.size; },
          [&](const DeviceInfo& m) {
            room(Command::device_get_info, kInfoBytes) << m.argsz << m.flags << m.regions << m.irqs;
          },
          [&](const RegionInfo& m) {
            room(Command::device_get_region_info, RegionInfo::kBytes)
                << m.argsz << m.flags << m.index << m.cap_offset << m.size << m.offset;
          },
          [&](const RegionIoFds& m) {
            room(Command::device_get_region_io_fds, kInfoBytes) << m.argsz << m.flags << m.index << m.count;
          },
          [&](const IrqInfo& m) {
            room(Command::device_get_irq_info, kInfoBytes) << m.argsz << m.flags << m.index << m.count;
          },
          [&](const SetIrqs& m) {
            Writer out = room(Command::device_set_irqs, kSetIrqsBytes + m.data.size());
            out << m.argsz << m.flags << m.index << m.start << m.count;
            out.bytes(m.data);
          },
          [&](const RegionRead& m) { room(Command::region_read, RegionAccess::kBytes) << m.offset << m.region << m.count; },
          [&](const RegionWrite& m) {
            Writer out = room(Command::region_write, RegionAccess::kBytes + m.data.size());
            out << m.offset << m.region << static_cast<std::uint32_t>(m.data.size());
            out.bytes(m.data);
          },
          [&](const DeviceReset&) { room(Command::device_reset, 0); },
          [&](const WriteMulti& m) {
            Writer out = room(Command::region_write_multi, 8 + m.bytes.size());
            out << std::uint64_t{m.size()};
            out.bytes(m.bytes);
          },
          [&](const DeviceFeature& m) { room(Command::device_feature, kFeatureBytes) << m.argsz << m.flags; },
      },
      request);
}

void MessageWriter::write_multi(std::uint16_t id, std::span<const SmallWrite> writes, std::uint32_t flags) {
  Writer out(message(id, number(Command::region_write_multi), flags, 8 + writes.size() * SmallWrite::kBytes));
  out << std::uint64_t{writes.size()};
  for (const SmallWrite& write : writes) out << write.offset << write.region << write.count << write.value;
}

void MessageWriter::reply(const Header& to) { reply_room(to, 0); }

void MessageWriter::error(const Header& to, int error) {
  const std::size_t at = bytes_.size();
  message(to.id, to.command, Header::kReply | Header::kError, 0);
  const auto number = static_cast<std::uint32_t>(error);
  std::memcpy(bytes_.data() + at + 12, &number, sizeof number);
}

void MessageWriter::reply(const Header& to, const Version& version) {
  const std::string text = version_text(version.capabilities);
  Writer out(reply_room(to, kVersionBytes + text.size() + 1));
  out << version.major << version.minor;
  out.bytes(std::as_bytes(std::span(text.c_str(), text.size() + 1)));
}

void MessageWriter::reply(const Header& to, const DmaUnmap& unmap) {
  Writer(reply_room(to, kDmaUnmapBytes)) << unmap.argsz << unmap.flags << unmap.address << unmap.size;
}

void MessageWriter::reply(const Header& to, const DeviceInfo& info) {
  Writer(reply_room(to, kInfoBytes)) << info.argsz << info.flags << info.regions << info.irqs;
}

void MessageWriter::reply(const Header& to, const RegionIoFds& fds) {
  Writer(reply_room(to, kInfoBytes)) << fds.argsz << fds.flags << fds.index << fds.count;
}

void MessageWriter::reply(const Header& to, const IrqInfo& info) {
  Writer(reply_room(to, kInfoBytes)) << info.argsz << info.flags << info.index << info.count;
}

void MessageWriter::reply(const Header& to, const RegionInfo& info, std::span<const Area> areas, std::uint32_t room) {
  const std::uint32_t needed = region_info_bytes(areas.size());
  const bool with_areas = !areas.empty() && room >= needed;
  RegionInfo out = info;
  out.argsz = needed;
  if (!areas.empty()) out.flags |= RegionInfo::kCaps;
  // Also where there is no room for what is there: QEMU takes an offset of 0 for a fault.
  out.cap_offset = areas.empty() ? 0 : RegionInfo::kBytes;
  Writer writer(reply_room(to, with_areas ? needed : RegionInfo::kBytes));
  writer << out.argsz << out.flags << out.index << out.cap_offset << out.size << out.offset;
  if (!with_areas) return;
  writer << kSparseMmap << std::uint16_t{1} << std::uint32_t{0} << static_cast<std::uint32_t>(areas.size())
         << std::uint32_t{0};
  for (const Area& area : areas) writer << area.offset << area.size;
}

void MessageWriter::reply(const Header& to, const RegionAccess& write) {
  Writer(reply_room(to, RegionAccess::kBytes)) << write.offset << write.region << write.count;
}

void MessageWriter::reply_write_multi(const Header& to, std::uint64_t count) { Writer(reply_room(to, 8)) << count; }

std::span<std::byte> MessageWriter::reply_read(const Header& to, const RegionAccess& read) {
  const auto room = reply_room(to, RegionAccess::kBytes + read.count);
  Writer(room) << read.offset << read.region << read.count;
  return room.subspan(RegionAccess::kBytes);
}

}  // namespace rodeo::formats::vfio_user
