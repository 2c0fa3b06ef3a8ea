// The messages of the vfio-user protocol in both directions: a driver and a PCI card that is a process
// (docs/reference/protocols/vfio-user.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rodeo::formats::vfio_user {

enum class Command : std::uint16_t {
  version = 1,
  dma_map = 2,
  dma_unmap = 3,
  device_get_info = 4,
  device_get_region_info = 5,
  device_get_region_io_fds = 6,
  device_get_irq_info = 7,
  device_set_irqs = 8,
  region_read = 9,
  region_write = 10,
  dma_read = 11,
  dma_write = 12,
  device_reset = 13,
  region_write_multi = 15,
  device_feature = 16,
};

/// "REGION_READ"; "unknown" for other numbers.
std::string_view command_name(std::uint16_t command);

struct Header {
  std::uint16_t id = 0;
  std::uint16_t command = 0;
  std::uint32_t size = 0;  ///< size of the message, header included
  std::uint32_t flags = 0;
  std::uint32_t error = 0;

  static constexpr std::uint32_t kTypeMask = 0xf;
  static constexpr std::uint32_t kReply = 1;
  static constexpr std::uint32_t kNoReply = 0x10;
  static constexpr std::uint32_t kError = 0x20;

  bool is_command() const { return (flags & kTypeMask) == 0; }
  bool is_reply() const { return (flags & kTypeMask) == kReply; }
  bool wants_no_reply() const { return (flags & kNoReply) != 0; }
  bool is_error() const { return (flags & kError) != 0; }
  bool operator==(const Header&) const = default;
};
inline constexpr std::size_t kHeaderBytes = 16;

inline constexpr std::uint16_t kMajor = 0;
inline constexpr std::uint16_t kMinor = 1;
inline constexpr std::size_t kDefaultTransferBytes = std::size_t{1} << 20;
/// Limit of the text in a VERSION message.
inline constexpr std::size_t kMaxVersionTextBytes = 16384;
/// Largest message of a peer with a limit of `transfer_bytes` for transfers.
constexpr std::size_t max_message_bytes(std::size_t transfer_bytes) {
  return kHeaderBytes + 16 + (transfer_bytes > kMaxVersionTextBytes ? transfer_bytes : kMaxVersionTextBytes);
}

/// The capabilities of a side. The default values hold for capabilities that it does not send.
struct Capabilities {
  std::uint64_t max_msg_fds = 1;
  std::uint64_t max_data_xfer_size = kDefaultTransferBytes;
  std::uint64_t max_dma_maps = 65535;
  std::uint64_t pgsizes = 4096;
  bool write_multiple = false;
  bool operator==(const Capabilities&) const = default;
};

struct Version {
  std::uint16_t major = kMajor;
  std::uint16_t minor = kMinor;
  Capabilities capabilities = {};
  bool operator==(const Version&) const = default;
};

struct DmaMap {
  std::uint32_t flags = 0;
  std::uint64_t offset = 0;   ///< place in the file behind the descriptor
  std::uint64_t address = 0;  ///< IOVA
  std::uint64_t size = 0;
  static constexpr std::uint32_t kRead = 1, kWrite = 2;
  bool operator==(const DmaMap&) const = default;
};

struct DmaUnmap {
  std::uint32_t argsz = 24;
  std::uint32_t flags = 0;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  static constexpr std::uint32_t kAll = 2;
  bool operator==(const DmaUnmap&) const = default;
};

struct DeviceInfo {
  std::uint32_t argsz = 16;
  std::uint32_t flags = 0;
  std::uint32_t regions = 0;
  std::uint32_t irqs = 0;
  static constexpr std::uint32_t kReset = 1, kPci = 2;
  bool operator==(const DeviceInfo&) const = default;
};

/// A part of a region.
struct Area {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  bool operator==(const Area&) const = default;
};

struct RegionInfo {
  std::uint32_t argsz = 32;
  std::uint32_t flags = 0;
  std::uint32_t index = 0;
  std::uint32_t cap_offset = 0;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;  ///< place of the region in the file of the descriptor that comes with the reply
  static constexpr std::uint32_t kRead = 1, kWrite = 2, kMmap = 4, kCaps = 8;
  static constexpr std::size_t kBytes = 32;
  bool operator==(const RegionInfo&) const = default;
};

struct RegionIoFds {
  std::uint32_t argsz = 16;
  std::uint32_t flags = 0;
  std::uint32_t index = 0;
  std::uint32_t count = 0;
  bool operator==(const RegionIoFds&) const = default;
};

struct IrqInfo {
  std::uint32_t argsz = 16;
  std::uint32_t flags = 0;
  std::uint32_t index = 0;
  std::uint32_t count = 0;
  static constexpr std::uint32_t kEventfd = 1, kMaskable = 2, kAutomasked = 4, kNoResize = 8;
  bool operator==(const IrqInfo&) const = default;
};

struct SetIrqs {
  std::uint32_t argsz = 20;
  std::uint32_t flags = 0;
  std::uint32_t index = 0;
  std::uint32_t start = 0;
  std::uint32_t count = 0;
  std::span<const std::byte> data = {};  ///< one byte for each vector, with kDataBool
  static constexpr std::uint32_t kDataNone = 1, kDataBool = 2, kDataEventfd = 4;
  static constexpr std::uint32_t kMask = 8, kUnmask = 16, kTrigger = 32;
};

struct RegionAccess {
  std::uint64_t offset = 0;
  std::uint32_t region = 0;
  std::uint32_t count = 0;  ///< bytes
  static constexpr std::size_t kBytes = 16;
  bool operator==(const RegionAccess&) const = default;
};

struct RegionRead : RegionAccess {};
struct RegionWrite : RegionAccess {
  std::span<const std::byte> data = {};  ///< `count` bytes
};

/// One write of a WRITE_MULTI: up to eight bytes.
struct SmallWrite : RegionAccess {
  std::uint64_t value = 0;
  static constexpr std::size_t kBytes = 24;
  bool operator==(const SmallWrite&) const = default;
};

/// A view of the writes in a WRITE_MULTI message.
struct WriteMulti {
  std::span<const std::byte> bytes = {};  ///< a whole number of writes
  std::size_t size() const { return bytes.size() / SmallWrite::kBytes; }
  SmallWrite operator[](std::size_t i) const;
};

/// Server to client (DMA without a descriptor), and its replies.
struct DmaAccess {
  std::uint64_t address = 0;
  std::uint64_t count = 0;
  std::span<const std::byte> data = {};
};

struct DeviceReset {};

struct DeviceFeature {
  std::uint32_t argsz = 8;
  std::uint32_t flags = 0;
  bool operator==(const DeviceFeature&) const = default;
};

/// A client's request. Spans refer to the message.
using Request = std::variant<Version, DmaMap, DmaUnmap, DeviceInfo, RegionInfo, RegionIoFds, IrqInfo, SetIrqs, RegionRead,
                             RegionWrite, DeviceReset, WriteMulti, DeviceFeature>;

/// Reads a header from the first 16 bytes, which must exist.
Header read_header(std::span<const std::byte> bytes);

/// Accepts any bytes. `payload`: the bytes after the header. Error: the errno for the reply - ENOTSUP for an unknown
/// command, EINVAL for lengths that do not fit, EPROTO for unreadable version data.
std::expected<Request, int> decode_request(const Header& header, std::span<const std::byte> payload);

/// The payload of VERSION, in request and reply. Error: EPROTO, EINVAL.
std::expected<Version, int> decode_version(std::span<const std::byte> payload);

// Replies, as the client reads them; nothing if the bytes are too few.
std::optional<DeviceInfo> decode_device_info(std::span<const std::byte> payload);
std::optional<IrqInfo> decode_irq_info(std::span<const std::byte> payload);
/// A region, with the sparse-mmap areas of the capability chain, if it has one; nothing for a chain that loops or leaves the
/// reply.
struct RegionInfoReply {
  RegionInfo info;
  std::optional<std::vector<Area>> areas;
};
std::optional<RegionInfoReply> decode_region_info(std::span<const std::byte> payload);
/// The data of a REGION_READ reply: count bytes after the repeated request.
std::optional<std::span<const std::byte>> decode_region_data(std::span<const std::byte> payload);
/// DMA_READ or DMA_WRITE, request or reply.
std::optional<DmaAccess> decode_dma_access(std::span<const std::byte> payload, bool with_data);

/// Writes messages one after the other into reused memory: no allocation once it has grown. One thread.
class MessageWriter {
 public:
  std::span<const std::byte> bytes() const { return bytes_; }
  bool empty() const { return bytes_.empty(); }
  void clear() { bytes_.clear(); }
  /// Removes the bytes after the first `bytes`.
  void truncate(std::size_t bytes) { bytes_.resize(bytes); }

  /// A request from a client.
  void request(std::uint16_t id, const Request& request, std::uint32_t flags = 0);
  /// WRITE_MULTI from its writes.
  void write_multi(std::uint16_t id, std::span<const SmallWrite> writes, std::uint32_t flags = 0);

  /// The reply to `to`: a header alone, or one with an error.
  void reply(const Header& to);
  void error(const Header& to, int error);
  void reply(const Header& to, const Version& version);
  void reply(const Header& to, const DmaUnmap& unmap);
  void reply(const Header& to, const DeviceInfo& info);
  void reply(const Header& to, const RegionIoFds& fds);
  void reply(const Header& to, const IrqInfo& info);
  /// The reply with a region's information: with sparse-mmap areas if they fit into the asker's argsz; info.argsz is the
  /// size needed.
  void reply(const Header& to, const RegionInfo& info, std::span<const Area> areas, std::uint32_t room);
  void reply(const Header& to, const RegionAccess& write);
  void reply_write_multi(const Header& to, std::uint64_t count);
  /// Appends a reply with room for the data of a REGION_READ; the caller fills the room before the next call.
  std::span<std::byte> reply_read(const Header& to, const RegionAccess& read);

 private:
  std::span<std::byte> message(std::uint16_t id, std::uint16_t command, std::uint32_t flags, std::size_t payload_bytes);
  std::span<std::byte> reply_room(const Header& to, std::size_t payload_bytes);

  std::vector<std::byte> bytes_;
};

/// Bytes of a reply with that many sparse-mmap areas.
constexpr std::uint32_t region_info_bytes(std::size_t areas) {
  return static_cast<std::uint32_t>(areas == 0 ? RegionInfo::kBytes : RegionInfo::kBytes + 16 + areas * 16);
}

/// The text of a VERSION message, without its NUL, and its parser. Unknown members are ignored. Error: EPROTO.
std::string version_text(const Capabilities& capabilities);
std::expected<Capabilities, int> parse_version_text(std::string_view text);

}  // namespace rodeo::formats::vfio_user
