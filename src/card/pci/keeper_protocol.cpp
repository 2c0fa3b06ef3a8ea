#include "card/pci/keeper_protocol.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/core.h>

namespace rodeo::card::pci {
namespace {

struct RequestLayout {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t operation;
  std::uint32_t address;
  std::uint32_t flags;
  std::uint64_t iova;
  std::uint64_t bytes;
  std::uint64_t offset;
};
static_assert(sizeof(RequestLayout) == 40);

struct ReplyLayout {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t operation;
  std::uint32_t status;
  std::uint32_t data_bytes;
  std::uint64_t value;
};
static_assert(sizeof(ReplyLayout) == 24);

constexpr std::uint32_t kDone = 0;
constexpr std::uint32_t kRefused = 1;

std::vector<std::byte> packet(const ReplyLayout& layout, std::span<const std::byte> data) {
  std::vector<std::byte> bytes(sizeof layout + data.size());
  std::memcpy(bytes.data(), &layout, sizeof layout);
  if (!data.empty()) std::memcpy(bytes.data() + sizeof layout, data.data(), data.size());
  return bytes;
}

Error malformed(std::string what) {
  return Error{"card.keeper", std::move(what), "",
               "use one version of rodeo for the keeper and its clients: `rodeo card keep --stop`"};
}

/// Parses four texts, each ended by NUL; missing texts are empty.
Error decode_error(std::string_view data) {
  std::array<std::string, 4> texts;
  for (std::string& text : texts) {
    const std::size_t end = std::min(data.find('\0'), data.size());
    text = data.substr(0, end);
    data.remove_prefix(std::min(end + 1, data.size()));
  }
  if (texts[0].empty()) texts[0] = "card.keeper";
  return Error{texts[0], texts[1], texts[2], texts[3]};
}

}  // namespace

std::vector<std::byte> encode(const KeeperRequest& request) {
  const Address& at = request.address;
  const RequestLayout layout{kKeeperMagic,
                             kKeeperVersion,
                             static_cast<std::uint16_t>(request.operation),
                             static_cast<std::uint32_t>(at.domain << 16 | at.bus << 8 | at.device << 3 | at.function),
                             request.flags,
                             request.iova,
                             request.bytes,
                             request.offset};
  std::vector<std::byte> bytes(sizeof layout);
  std::memcpy(bytes.data(), &layout, sizeof layout);
  return bytes;
}

std::vector<std::byte> encode(const KeeperReply& reply) {
  return packet({kKeeperMagic, kKeeperVersion, static_cast<std::uint16_t>(reply.operation), kDone,
                 static_cast<std::uint32_t>(reply.data.size()), reply.value},
                reply.data);
}

std::vector<std::byte> encode(KeeperOperation operation, const Error& error) {
  std::string data;
  for (const std::string* text : {&error.code, &error.what, &error.where, &error.next}) {
    data.append(text->c_str(), std::min(std::strlen(text->c_str()), kKeeperMostData / 8));
    data.push_back('\0');
  }
  return packet({kKeeperMagic, kKeeperVersion, static_cast<std::uint16_t>(operation), kRefused,
                 static_cast<std::uint32_t>(data.size()), 0},
                std::as_bytes(std::span(data)));
}

Result<KeeperRequest> decode_request(std::span<const std::byte> packet) {
  RequestLayout layout{};
  if (packet.size() != sizeof layout) return std::unexpected(malformed(fmt::format("a request of {} bytes", packet.size())));
  std::memcpy(&layout, packet.data(), sizeof layout);
  if (layout.magic != kKeeperMagic) return std::unexpected(malformed("a request that does not begin with the magic number"));
  if (layout.version != kKeeperVersion)
    return std::unexpected(
        malformed(fmt::format("the keeper speaks version {}, the request has version {}", kKeeperVersion, layout.version)));
  if (layout.operation < static_cast<std::uint16_t>(KeeperOperation::open_vfio) ||
      layout.operation > static_cast<std::uint16_t>(KeeperOperation::lock))
    return std::unexpected(malformed(fmt::format("the keeper knows no operation {}", layout.operation)));
  if ((layout.flags & ~kKeepFlag) != 0)
    return std::unexpected(malformed(fmt::format("the keeper knows no flags {:#x}", layout.flags)));
  return KeeperRequest{
      static_cast<KeeperOperation>(layout.operation),
      Address{static_cast<std::uint16_t>(layout.address >> 16), static_cast<std::uint8_t>(layout.address >> 8),
              static_cast<std::uint8_t>(layout.address >> 3 & 0x1f), static_cast<std::uint8_t>(layout.address & 7)},
      layout.flags,
      layout.iova,
      layout.bytes,
      layout.offset};
}

Result<KeeperReply> decode_reply(std::span<const std::byte> packet, KeeperOperation operation) {
  ReplyLayout layout{};
  if (packet.size() < sizeof layout)
    return std::unexpected(malformed(fmt::format("the keeper sent a reply of {} bytes", packet.size())));
  std::memcpy(&layout, packet.data(), sizeof layout);
  const std::span<const std::byte> data = packet.subspan(sizeof layout);
  if (layout.magic != kKeeperMagic || layout.data_bytes != data.size() || data.size() > kKeeperMostData)
    return std::unexpected(malformed("the keeper sent a malformed reply"));
  if (layout.status != kDone)
    return std::unexpected(decode_error({reinterpret_cast<const char*>(data.data()), data.size()}));
  if (layout.version != kKeeperVersion || layout.operation != static_cast<std::uint16_t>(operation))
    return std::unexpected(malformed("the keeper answered another request"));
  return KeeperReply{operation, layout.value, {data.begin(), data.end()}};
}

bool send_packet(int socket, std::span<const std::byte> bytes, std::span<const int> descriptors) {
  return base::send_all(socket, bytes, descriptors, std::chrono::seconds{1}).status == base::IoStatus::done;
}

Result<KeeperPacket> receive_packet(int socket, std::chrono::milliseconds wait) {
  if (!base::wait_for(socket, POLLIN, std::chrono::steady_clock::now() + wait))
    return std::unexpected(Error{"card.timeout", fmt::format("the keeper did not answer within {} ms", wait.count()), "",
                                 "`rodeo card keep --status` shows what it is doing; end it if it hangs"});
  // One byte more than the longest message: so a message that is too long is noticed, not cut.
  KeeperPacket packet;
  packet.bytes.resize(sizeof(ReplyLayout) + kKeeperMostData + 1);
  base::ReceivedFds received;
  const base::IoResult result = base::receive_some(socket, packet.bytes, received);
  if (result.status == base::IoStatus::failed)
    return std::unexpected(Error{"card.keeper", fmt::format("cannot receive a message: {}", std::strerror(errno))});
  packet.bytes.resize(result.status == base::IoStatus::closed ? 0 : result.bytes);
  packet.descriptors = std::move(received.fds);
  return packet;
}

}  // namespace rodeo::card::pci
