#include "formats/vfio_user.h"

#include <cerrno>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

namespace rodeo::formats::vfio_user {
namespace {

constexpr std::uint16_t kSparseMmap = 1;

/// A DMA_MAP in network format.
struct SizedDmaMap : DmaMap {
  std::uint32_t argsz = 32;
};

/// The fields of a message in order, host-endian by protocol: for reading and writing.
template <typename M>
auto fields(M& m) {
  using T = std::remove_const_t<M>;
  if constexpr (std::is_integral_v<T>)
    return std::tie(m);
  else if constexpr (std::is_same_v<T, DeviceReset>)
    return std::tuple<>();
  else if constexpr (std::is_same_v<T, Header>)
    return std::tie(m.id, m.command, m.size, m.flags, m.error);
  else if constexpr (std::is_same_v<T, Version>)
    return std::tie(m.major, m.minor);
  else if constexpr (std::is_same_v<T, SizedDmaMap>)
    return std::tie(m.argsz, m.flags, m.offset, m.address, m.size);
  else if constexpr (std::is_same_v<T, DmaUnmap>)
    return std::tie(m.argsz, m.flags, m.address, m.size);
  else if constexpr (std::is_same_v<T, DeviceInfo>)
    return std::tie(m.argsz, m.flags, m.regions, m.irqs);
  else if constexpr (std::is_same_v<T, RegionInfo>)
    return std::tie(m.argsz, m.flags, m.index, m.cap_offset, m.size, m.offset);
  else if constexpr (std::is_same_v<T, SetIrqs>)
    return std::tie(m.argsz, m.flags, m.index, m.start, m.count);
  else if constexpr (std::is_same_v<T, SmallWrite>)
    return std::tie(m.offset, m.region, m.count, m.value);
  else if constexpr (std::is_base_of_v<RegionAccess, T>)
    return std::tie(m.offset, m.region, m.count);
  else if constexpr (std::is_same_v<T, DmaAccess>)
    return std::tie(m.address, m.count);
  else if constexpr (std::is_same_v<T, Area>)
    return std::tie(m.offset, m.size);
  else if constexpr (std::is_same_v<T, DeviceFeature>)
    return std::tie(m.argsz, m.flags);
  else  // RegionIoFds, IrqInfo
    return std::tie(m.argsz, m.flags, m.index, m.count);
}

template <typename... T>
constexpr std::size_t sum_of_sizes(std::type_identity<std::tuple<T&...>>) {
  return (std::size_t{0} + ... + sizeof(T));
}
template <typename M>
constexpr std::size_t kBytes = sum_of_sizes(std::type_identity<decltype(fields(std::declval<M&>()))>{});

/// The caller has checked that kBytes<M> exist.
template <typename M>
M get(std::span<const std::byte> bytes) {
  M m;
  const std::byte* at = bytes.data();
  std::apply([&](auto&... field) { ((std::memcpy(&field, at, sizeof field), at += sizeof field), ...); }, fields(m));
  return m;
}

/// Returns the memory behind the message.
template <typename M>
std::span<std::byte> put(std::span<std::byte> out, const M& m, std::span<const std::byte> data = {}) {
  std::byte* at = out.data();
  std::apply([&](const auto&... field) { ((std::memcpy(at, &field, sizeof field), at += sizeof field), ...); }, fields(m));
  if (!data.empty()) std::memcpy(at, data.data(), data.size());
  return out.subspan(kBytes<M> + data.size());
}

using Invalid = std::unexpected<int>;

/// Decodes a message that is long enough, also by its own size field.
template <typename M>
std::expected<M, int> decode(std::span<const std::byte> payload) {
  if (payload.size() < kBytes<M>) return Invalid(EINVAL);
  const M m = get<M>(payload);
  if constexpr (requires { m.argsz; }) {
    if (m.argsz < kBytes<M>) return Invalid(EINVAL);
  }
  return m;
}

template <typename M>
std::optional<M> decode_reply(std::span<const std::byte> payload) {
  return payload.size() < kBytes<M> ? std::nullopt : std::optional(get<M>(payload));
}

std::expected<Request, int> decode_set_irqs(std::span<const std::byte> payload) {
  auto irqs = decode<SetIrqs>(payload);
  if (irqs && (irqs->flags & SetIrqs::kDataBool) != 0) {
    if (payload.size() - kBytes<SetIrqs> < irqs->count) return Invalid(EINVAL);
    irqs->data = payload.subspan(kBytes<SetIrqs>, irqs->count);
  }
  return irqs;
}

std::expected<Request, int> decode_region_write(std::span<const std::byte> payload) {
  auto write = decode<RegionWrite>(payload);
  if (!write) return Invalid(write.error());
  const auto data = payload.subspan(RegionAccess::kBytes);
  if (data.size() < write->count) return Invalid(EINVAL);
  write->data = data.first(write->count);
  return write;
}

std::expected<Request, int> decode_write_multi(std::span<const std::byte> payload) {
  const auto count = decode<std::uint64_t>(payload);
  if (!count) return Invalid(count.error());
  const auto rest = payload.subspan(sizeof *count);
  if (*count > rest.size() / SmallWrite::kBytes) return Invalid(EINVAL);
  return WriteMulti{rest.first(*count * SmallWrite::kBytes)};
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

Header read_header(std::span<const std::byte> bytes) { return get<Header>(bytes); }

SmallWrite WriteMulti::operator[](std::size_t i) const { return get<SmallWrite>(bytes.subspan(i * SmallWrite::kBytes)); }

std::expected<Version, int> decode_version(std::span<const std::byte> payload) {
  auto version = decode<Version>(payload);
  if (!version || payload.size() == kBytes<Version>) return version;
  const auto rest = payload.subspan(kBytes<Version>);
  const std::string_view all(reinterpret_cast<const char*>(rest.data()), rest.size());
  const auto end = all.find('\0');
  if (end == std::string_view::npos) return Invalid(EPROTO);
  const auto capabilities = parse_version_text(all.substr(0, end));
  if (!capabilities) return Invalid(capabilities.error());
  version->capabilities = *capabilities;
  return version;
}

std::expected<Request, int> decode_request(const Header& header, std::span<const std::byte> payload) {
  switch (static_cast<Command>(header.command)) {
    case Command::version: return decode_version(payload);
    case Command::dma_map: return decode<SizedDmaMap>(payload);
    case Command::dma_unmap: return decode<DmaUnmap>(payload);
    case Command::device_get_info: return decode<DeviceInfo>(payload);
    case Command::device_get_region_info: return decode<RegionInfo>(payload);
    case Command::device_get_region_io_fds: return decode<RegionIoFds>(payload);
    case Command::device_get_irq_info: return decode<IrqInfo>(payload);
    case Command::device_set_irqs: return decode_set_irqs(payload);
    case Command::region_read: return decode<RegionRead>(payload);
    case Command::region_write: return decode_region_write(payload);
    case Command::device_reset: return DeviceReset{};
    case Command::region_write_multi: return decode_write_multi(payload);
    case Command::device_feature: return decode<DeviceFeature>(payload);
    case Command::dma_read:
    case Command::dma_write: break;  // only the server sends these
  }
  return Invalid(ENOTSUP);
}

std::optional<DeviceInfo> decode_device_info(std::span<const std::byte> payload) {
  return decode_reply<DeviceInfo>(payload);
}

std::optional<IrqInfo> decode_irq_info(std::span<const std::byte> payload) { return decode_reply<IrqInfo>(payload); }

std::optional<RegionInfoReply> decode_region_info(std::span<const std::byte> payload) {
  if (payload.size() < RegionInfo::kBytes) return std::nullopt;
  RegionInfoReply reply{.info = get<RegionInfo>(payload), .areas = {}};
  const RegionInfo& info = reply.info;
  if ((info.flags & RegionInfo::kCaps) == 0 || info.argsz > payload.size()) return reply;
  // Offsets must increase, so that the chain ends.
  std::uint32_t at = info.cap_offset, before = 0;
  while (at != 0) {
    if (at <= before || at < RegionInfo::kBytes || at > payload.size() || payload.size() - at < 8) return std::nullopt;
    const auto capability = payload.subspan(at);  // id and version, offset of the next capability, then its own data
    if (get<std::uint16_t>(capability) == kSparseMmap) {
      if (capability.size() < 16) return std::nullopt;
      const auto count = get<std::uint32_t>(capability.subspan(8));
      if (count > (capability.size() - 16) / kBytes<Area>) return std::nullopt;
      reply.areas.emplace();
      for (std::size_t i = 0; i < count; ++i) reply.areas->push_back(get<Area>(capability.subspan(16 + i * kBytes<Area>)));
    }
    before = at;
    at = get<std::uint32_t>(capability.subspan(4));
  }
  return reply;
}

std::optional<std::span<const std::byte>> decode_region_data(std::span<const std::byte> payload) {
  const auto access = decode_reply<RegionAccess>(payload);
  if (!access || payload.size() - RegionAccess::kBytes < access->count) return std::nullopt;
  return payload.subspan(RegionAccess::kBytes, access->count);
}

std::optional<DmaAccess> decode_dma_access(std::span<const std::byte> payload, bool with_data) {
  auto access = decode_reply<DmaAccess>(payload);
  if (access && with_data) {
    if (payload.size() - kBytes<DmaAccess> < access->count) return std::nullopt;
    access->data = payload.subspan(kBytes<DmaAccess>, access->count);
  }
  return access;
}

std::span<std::byte> MessageWriter::message(std::uint16_t id, std::uint16_t command, std::uint32_t flags,
                                            std::size_t payload_bytes) {
  const std::size_t at = bytes_.size();
  const std::size_t size = kHeaderBytes + payload_bytes;
  bytes_.resize(at + size);
  const std::span<std::byte> room(bytes_.data() + at, size);
  return put(room, Header{.id = id, .command = command, .size = static_cast<std::uint32_t>(size), .flags = flags});
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

std::span<const std::byte> with_nul(const std::string& text) {
  return std::as_bytes(std::span(text.c_str(), text.size() + 1));
}

}  // namespace

void MessageWriter::request(std::uint16_t id, const Request& request, std::uint32_t flags) {
  constexpr Command kCommands[] = {Command::version,
                                   Command::dma_map,
                                   Command::dma_unmap,
                                   Command::device_get_info,
                                   Command::device_get_region_info,
                                   Command::device_get_region_io_fds,
                                   Command::device_get_irq_info,
                                   Command::device_set_irqs,
                                   Command::region_read,
                                   Command::region_write,
                                   Command::device_reset,
                                   Command::region_write_multi,
                                   Command::device_feature};
  static_assert(std::size(kCommands) == std::variant_size_v<Request>);
  const auto command = static_cast<std::uint16_t>(kCommands[request.index()]);
  const auto send = [&]<typename M>(const M& m, std::span<const std::byte> data = {}) {
    put(message(id, command, flags, kBytes<M> + data.size()), m, data);
  };
  std::visit(
      Overloaded{[&](const Version& m) { send(m, with_nul(version_text(m.capabilities))); },
                 [&](const DmaMap& m) { send(SizedDmaMap{m}); }, [&](const SetIrqs& m) { send(m, m.data); },
                 [&](RegionWrite m) {
                   m.count = static_cast<std::uint32_t>(m.data.size());
                   send(m, m.data);
                 },
                 [&](const WriteMulti& m) { send(std::uint64_t{m.size()}, m.bytes); }, [&](const auto& m) { send(m); }},
      request);
}

void MessageWriter::write_multi(std::uint16_t id, std::span<const SmallWrite> writes, std::uint32_t flags) {
  const auto command = static_cast<std::uint16_t>(Command::region_write_multi);
  auto out = put(message(id, command, flags, 8 + writes.size() * SmallWrite::kBytes), std::uint64_t{writes.size()});
  for (const SmallWrite& write : writes) out = put(out, write);
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
  put(reply_room(to, kBytes<Version> + text.size() + 1), version, with_nul(text));
}

void MessageWriter::reply(const Header& to, const DmaUnmap& unmap) { put(reply_room(to, kBytes<DmaUnmap>), unmap); }

void MessageWriter::reply(const Header& to, const DeviceInfo& info) { put(reply_room(to, kBytes<DeviceInfo>), info); }

void MessageWriter::reply(const Header& to, const RegionIoFds& fds) { put(reply_room(to, kBytes<RegionIoFds>), fds); }

void MessageWriter::reply(const Header& to, const IrqInfo& info) { put(reply_room(to, kBytes<IrqInfo>), info); }

void MessageWriter::reply(const Header& to, const RegionInfo& info, std::span<const Area> areas, std::uint32_t room) {
  const std::uint32_t needed = region_info_bytes(areas.size());
  const bool with_areas = !areas.empty() && room >= needed;
  RegionInfo out = info;
  out.argsz = needed;
  if (!areas.empty()) out.flags |= RegionInfo::kCaps;
  // Set also if the areas do not fit: QEMU treats an offset of 0 as an error.
  out.cap_offset = areas.empty() ? 0 : RegionInfo::kBytes;
  auto rest = put(reply_room(to, with_areas ? needed : RegionInfo::kBytes), out);
  if (!with_areas) return;
  rest = put(rest, std::uint64_t{1 << 16 | kSparseMmap});  // version 1 of the capability, without a next one
  rest = put(rest, std::uint64_t{areas.size()});
  for (const Area& area : areas) rest = put(rest, area);
}

void MessageWriter::reply(const Header& to, const RegionAccess& write) { put(reply_room(to, RegionAccess::kBytes), write); }

void MessageWriter::reply_write_multi(const Header& to, std::uint64_t count) { put(reply_room(to, sizeof count), count); }

std::span<std::byte> MessageWriter::reply_read(const Header& to, const RegionAccess& read) {
  return put(reply_room(to, RegionAccess::kBytes + read.count), read);
}

}  // namespace rodeo::formats::vfio_user
