// Messages between the keeper and its clients (docs/reference/protocols/keeper.md), and packets that carry descriptors.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/fd_socket.h"
#include "card/pci/function.h"

namespace rodeo::card::pci {

using Descriptor = base::UniqueFd;

inline constexpr std::uint32_t kKeeperMagic = 0x524b5052;
inline constexpr std::uint16_t kKeeperVersion = 2;
inline constexpr std::size_t kKeeperMostData = 32768;
inline constexpr std::size_t kKeeperMostDescriptors = 8;
inline constexpr std::uint32_t kKeepFlag = 1;

enum class KeeperOperation : std::uint16_t {
  open_vfio = 1,
  open_uio,
  map,
  unmap,
  physical,
  keep,
  status,
  stop,
  reset,
  lock
};

struct KeeperRequest {
  KeeperOperation operation = KeeperOperation::status;
  Address address = {};
  std::uint32_t flags = 0;
  std::uint64_t iova = 0;
  std::uint64_t bytes = 0;
  std::uint64_t offset = 0;
};

struct KeeperReply {
  KeeperOperation operation = KeeperOperation::status;
  std::uint64_t value = 0;
  std::vector<std::byte> data;

  std::string text() const { return {reinterpret_cast<const char*>(data.data()), data.size()}; }
};

/// A packet and the descriptors that came with it.
struct KeeperPacket {
  std::vector<std::byte> bytes;
  std::vector<Descriptor> descriptors;
};

std::vector<std::byte> encode(const KeeperRequest& request);
std::vector<std::byte> encode(const KeeperReply& reply);
/// Encodes a refusal.
std::vector<std::byte> encode(KeeperOperation operation, const Error& error);

/// Parses a packet from any client. Checks version and operation; send the Error (card.keeper) as the reply.
Result<KeeperRequest> decode_request(std::span<const std::byte> packet);
/// Parses a reply to `operation`; a refusal becomes the Error.
Result<KeeperReply> decode_reply(std::span<const std::byte> packet, KeeperOperation operation);

/// Sends one packet with at most kKeeperMostDescriptors descriptors; waits at most 1 s if the receiver's socket is full.
/// False: not sent.
bool send_packet(int socket, std::span<const std::byte> packet, std::span<const int> descriptors = {});
/// Waits for one packet, at most `wait`. An empty packet: the other end has closed. Errors: card.timeout, card.keeper.
Result<KeeperPacket> receive_packet(int socket, std::chrono::milliseconds wait);

}  // namespace rodeo::card::pci
